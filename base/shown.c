#include "base/shown.h"

#include "base/json.h"
#include "base/str.h"
#include "base/utf8.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define MOST_BYTES 8 // of an escape, including NUL

// The character that begins here and its length. Invalid UTF-8 is 0, byte by byte.
static uint32_t next_character(size_t *n_bytes, const char *text) {
    uint32_t code = (unsigned char)*text;
    *n_bytes = code < 0x80 ? 1 : msc_utf8_next(&code, text, strnlen(text, 4));
    if (*n_bytes == 0) {
        *n_bytes = 1;
        return 0;
    }
    return code;
}

// Must the character be escaped? True for control characters (C0, DEL, C1), and thus for invalid
// bytes, for marks of text direction and for line and paragraph separators.
static bool is_obeyed(uint32_t code) {
    return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0x061c ||
           (code >= 0x200e && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
}

// The escape of a character; `byte` is its first byte.
static void escape(char out[MOST_BYTES], uint32_t code, char byte) {
    if (code == '\n' || code == '\r' || code == '\t') {
        snprintf(out, MOST_BYTES, "\\%c", code == '\n' ? 'n' : code == '\r' ? 'r' : 't');
    } else if (code < 0x80) {
        snprintf(out, MOST_BYTES, "\\x%02x", (unsigned)(unsigned char)byte);
    } else {
        snprintf(out, MOST_BYTES, "\\u%04x", (unsigned)(code & 0xffff));
    }
}

static void escape_json(char out[MOST_BYTES], uint32_t code, char byte) {
    (void)byte;
    snprintf(out, MOST_BYTES, "\\u%04x", code == 0 ? 0xfffdu : (unsigned)(code & 0xffff));
}

static void shown_append(struct msc_str *out, const char *text, bool keeps_lines,
                         void (*as)(char out[MOST_BYTES], uint32_t code, char byte)) {
    const char *plain = text;
    while (*text) {
        char shown[MOST_BYTES];
        size_t n = 0;
        uint32_t code = next_character(&n, text);
        if (is_obeyed(code) && !(keeps_lines && code == '\n')) {
            as(shown, code, *text);
            msc_str_append_n(out, plain, (size_t)(text - plain));
            msc_str_append(out, shown);
            plain = text + n;
        }
        text += n;
    }
    msc_str_append(out, plain);
}

void msc_shown_append(struct msc_str *out, const char *text) {
    shown_append(out, text, false, escape);
}

void msc_shown_append_lines(struct msc_str *out, const char *text) {
    shown_append(out, text, true, escape);
}

void msc_shown_append_json(struct msc_str *out, const char *text) {
    shown_append(out, text, true, escape_json);
}

void msc_shown_append_string(struct msc_str *out, const char *text) {
    struct msc_str json = {0};
    msc_json_write_text(&json, text);
    msc_shown_append_json(out, msc_str_text(&json));
    out->failed |= json.failed;
    msc_str_finish(&json);
}

void msc_shown_append_path(struct msc_str *out, const char *path) {
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/-";
    msc_str_append(out, path[0] == '-' ? "./" : "");
    if (path[0] != '\0' && path[strspn(path, plain)] == '\0') {
        msc_str_append(out, path);
        return;
    }
    struct msc_str shown = {0};
    msc_shown_append(&shown, path);
    msc_str_char(out, '\'');
    for (const char *c = msc_str_text(&shown); *c; c++) {
        if (*c == '\'') {
            msc_str_append(out, "'\\'"); // closing quote, escaped quote, opening quote
        }
        msc_str_char(out, *c);
    }
    msc_str_char(out, '\'');
    out->failed |= shown.failed;
    msc_str_finish(&shown);
}

size_t msc_shown_copy(char *out, size_t n_bytes, const char *text) {
    size_t length = 0, n_written = 0;
    bool has_room = true;
    while (*text) {
        char shown[MOST_BYTES];
        const char *from = text;
        size_t n = 0;
        uint32_t code = next_character(&n, text);
        text += n;
        if (is_obeyed(code)) {
            escape(shown, code, *from);
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
        char shown[MOST_BYTES];
        size_t n = 0;
        uint32_t code = next_character(&n, text);
        if (is_obeyed(code)) {
            escape(shown, code, *text);
        }
        width += is_obeyed(code) ? strlen(shown) : 1;
        text += n;
    }
    return width;
}
