#include "report/html.h"

#include "base/json.h"
#include "base/shown.h"

#include <string.h>

// A name of more than NAME_CHARACTERS is cut in the middle; NAME_HEAD characters remain before
// the cut.
#define NAME_CHARACTERS 120
#define NAME_HEAD 80

static void append_escaped(struct msc_str *out, const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        switch (text[i]) {
        case '&':
            msc_str_append(out, "&amp;");
            break;
        case '<':
            msc_str_append(out, "&lt;");
            break;
        case '>':
            msc_str_append(out, "&gt;");
            break;
        case '"':
            msc_str_append(out, "&quot;");
            break;
        case '\'':
            msc_str_append(out, "&#39;");
            break;
        default:
            msc_str_char(out, text[i]);
        }
    }
}

void msc_html_text(struct msc_str *out, const char *text) {
    struct msc_str shown = {0};
    msc_shown_append(&shown, text);
    append_escaped(out, msc_str_text(&shown), shown.length);
    out->failed |= shown.failed;
    msc_str_finish(&shown);
}

static size_t bytes_of_characters(const char *text, size_t n_characters) {
    size_t at = 0;
    for (; n_characters > 0 && text[at]; n_characters--) {
        do {
            at++;
        } while (((unsigned char)text[at] & 0xC0) == 0x80);
    }
    return at;
}

void msc_html_name(struct msc_str *out, const char *name) {
    struct msc_str shown = {0};
    msc_shown_append(&shown, name);
    const char *text = msc_str_text(&shown);
    size_t n = msc_shown_width(text);
    if (n <= NAME_CHARACTERS) {
        append_escaped(out, text, shown.length);
    } else {
        size_t tail = bytes_of_characters(text, n - (NAME_CHARACTERS - NAME_HEAD));
        append_escaped(out, text, bytes_of_characters(text, NAME_HEAD));
        msc_str_append(out, "…");
        append_escaped(out, text + tail, shown.length - tail);
    }
    out->failed |= shown.failed;
    msc_str_finish(&shown);
}

enum msc_status msc_html_json(struct msc_str *out, const struct cJSON *value) {
    struct msc_str json = {0}, shown = {0};
    msc_json_write(&json, value);
    msc_shown_append_json(&shown, msc_str_text(&json));
    const char *text = msc_str_text(&shown);
    for (size_t i = 0; i < shown.length; i++) {
        if (strchr("<>&", text[i])) {
            msc_str_printf(out, "\\u%04x", (unsigned)text[i]);
        } else if (strncmp(text + i, "\u2028", 3) == 0 || strncmp(text + i, "\u2029", 3) == 0) {
            msc_str_append(out, text[i + 2] == (char)0xA8 ? "\\u2028" : "\\u2029");
            i += 2;
        } else {
            msc_str_char(out, text[i]);
        }
    }
    out->failed |= json.failed || shown.failed;
    msc_str_finish(&shown);
    msc_str_finish(&json);
    return msc_str_status(out);
}
