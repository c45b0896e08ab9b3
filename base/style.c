#include "base/style.h"

#include "base/shown.h"
#include "base/str.h"

#include <string.h>

// Indexed by enum msc_style.
static const char *const escapes[] = {"\033[0m", "\033[1m",  "\033[1;32m",
                                      "\033[2m", "\033[33m", "\033[1;31m"};

// The mark of each style: \x01 for the first, and so on.
static const char marks[] = "\x01\x02\x03\x04\x05\x06";

void msc_style_begin(struct msc_str *out, enum msc_style style) {
    if (out->has_styles && style != MSC_STYLE_PLAIN) {
        msc_str_char(out, marks[style]);
    }
}

void msc_style_end(struct msc_str *out) {
    if (out->has_styles) {
        msc_str_char(out, marks[MSC_STYLE_PLAIN]);
    }
}

const char *msc_style_escape(enum msc_style style) {
    return escapes[style];
}

static void show_part(struct msc_str *out, const char *text, size_t length) {
    struct msc_str part = {0};
    msc_str_append_n(&part, text, length);
    msc_shown_append_lines(out, msc_str_text(&part));
    out->failed |= part.failed;
    msc_str_finish(&part);
}

void msc_style_show(struct msc_str *out, const struct msc_str *text) {
    const char *at = msc_str_text(text);
    if (!text->has_styles) {
        msc_shown_append_lines(out, at);
        return;
    }
    while (*at) {
        size_t n = strcspn(at, marks);
        show_part(out, at, n);
        at += n;
        if (*at) {
            msc_str_append(out, escapes[*at - marks[0]]);
            at++;
        }
    }
}
