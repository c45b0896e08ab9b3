#include "base/shown.h"
#include "base/shown_internal.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

uint32_t msc_shown__next(size_t *n_bytes, const char *text) {
    uint32_t code = (unsigned char)*text;
    *n_bytes = code < 0x80 ? 1 : msc_utf8_next(&code, text, strnlen(text, 4));
    if (*n_bytes == 0) {
        *n_bytes = 1;
        return 0;
    }
    return code;
}

bool msc_shown__is_obeyed(uint32_t code) {
    return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0x061c ||
           (code >= 0x200e && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
}

void msc_shown__escape(char out[MSC_SHOWN_BYTES], uint32_t code, char byte) {
    if (code == '\n' || code == '\r' || code == '\t') {
        snprintf(out, MSC_SHOWN_BYTES, "\\%c", code == '\n' ? 'n' : code == '\r' ? 'r' : 't');
    } else if (code < 0x80) {
        snprintf(out, MSC_SHOWN_BYTES, "\\x%02x", (unsigned)(unsigned char)byte);
    } else {
        snprintf(out, MSC_SHOWN_BYTES, "\\u%04x", (unsigned)(code & 0xffff));
    }
}

size_t msc_shown_copy(char *out, size_t n_bytes, const char *text) {
    size_t length = 0, n_written = 0;
    bool has_room = true;
    while (*text) {
        char shown[MSC_SHOWN_BYTES];
        const char *from = text;
        size_t n = 0;
        uint32_t code = msc_shown__next(&n, text);
        text += n;
        if (msc_shown__is_obeyed(code)) {
            msc_shown__escape(shown, code, *from);
            from = shown;
            n = strlen(shown);
        }
        length += n;
        has_room = has_room && n_written + n < n_bytes;
        if (has_room) {
            memcpy(out + n_written, from, n);
            n_written += n;
        }
    }
    if (n_bytes > 0) {
        out[n_written] = '\0';
    }
    return length;
}

size_t msc_shown_width(const char *text) {
    size_t width = 0;
    while (*text) {
        char shown[MSC_SHOWN_BYTES];
        size_t n = 0;
        uint32_t code = msc_shown__next(&n, text);
        if (msc_shown__is_obeyed(code)) {
            msc_shown__escape(shown, code, *text);
        }
        width += msc_shown__is_obeyed(code) ? strlen(shown) : 1;
        text += n;
    }
    return width;
}
