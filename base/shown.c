#include "base/shown.h"

#include "base/json.h"
#include "base/shown_internal.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

static void escape_json(char out[MSC_SHOWN_BYTES], uint32_t code, char byte) {
    (void)byte;
    snprintf(out, MSC_SHOWN_BYTES, "\\u%04x", code == 0 ? 0xfffdu : (unsigned)(code & 0xffff));
}

static void shown_append(struct msc_str *out, const char *text, bool keeps_lines,
                         void (*as)(char out[MSC_SHOWN_BYTES], uint32_t code, char byte)) {
    const char *plain = text;
    while (*text) {
        char shown[MSC_SHOWN_BYTES];
        size_t n = 0;
        uint32_t code = msc_shown__next(&n, text);
        if (msc_shown__is_obeyed(code) && !(keeps_lines && code == '\n')) {
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
    shown_append(out, text, false, msc_shown__escape);
}

void msc_shown_append_lines(struct msc_str *out, const char *text) {
    shown_append(out, text, true, msc_shown__escape);
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
