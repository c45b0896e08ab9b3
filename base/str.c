#include "base/str.h"

#include "base/alloc.h"

#include <stdint.h>
#include <string.h>

void msc_str_append(struct msc_str *s, const char *text) {
    msc_str_append_n(s, text, strlen(text));
}

void msc_str_append_n(struct msc_str *s, const char *text, size_t length) {
    if (s->failed) {
        return;
    }
    if (length > SIZE_MAX - 1 - s->length ||
        msc_grow(&s->data, &s->capacity, s->length + length + 1, 1) != MSC_OK) {
        s->failed = true;
        return;
    }
    if (length > 0) {
        memcpy(s->data + s->length, text, length);
    }
    s->length += length;
    s->data[s->length] = '\0';
}

void msc_str_char(struct msc_str *s, char c) {
    msc_str_append_n(s, &c, 1);
}

void msc_str_item(struct msc_str *s, const char *text) {
    msc_str_append(s, s->length > 0 ? ", " : "");
    msc_str_append(s, text);
}

void msc_str_i64(struct msc_str *s, int64_t value) {
    if (value < 0) {
        msc_str_char(s, '-');
        msc_str_u64(s, -(uint64_t)value);
    } else {
        msc_str_u64(s, (uint64_t)value);
    }
}

void msc_str_u64(struct msc_str *s, uint64_t value) {
    char digits[20]; // 2^64 - 1 has 20 digits
    size_t first = sizeof digits;
    do {
        digits[--first] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    msc_str_append_n(s, digits + first, sizeof digits - first);
}

void msc_str_csv(struct msc_str *s, const char *text) {
    if (!strpbrk(text, ",\"\r\n")) {
        msc_str_append(s, text);
        return;
    }
    msc_str_char(s, '"');
    for (; *text; text++) {
        msc_str_append(s, *text == '"' ? "\"" : "");
        msc_str_char(s, *text);
    }
    msc_str_char(s, '"');
}

void msc_str_clear(struct msc_str *s) {
    s->length = 0;
    if (s->data) {
        s->data[0] = '\0';
    }
}

void msc_str_finish(struct msc_str *s) {
    msc_free(s->data);
    *s = (struct msc_str){0};
}

const char *msc_str_text(const struct msc_str *s) {
    return s->data ? s->data : "";
}

enum msc_status msc_str_status(const struct msc_str *s) {
    if (s->failed) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory: cannot allocate a text of more than %zu bytes",
                        s->length);
    }
    return MSC_OK;
}

enum msc_status msc_str_take(char **out, struct msc_str *s) {
    msc_str_append_n(s, "", 0);
    enum msc_status status = msc_str_status(s);
    if (status == MSC_OK) {
        *out = s->data;
        s->data = NULL;
    }
    msc_str_finish(s);
    return status;
}

char *msc_str_keep(struct msc_str *s, struct msc_arena *arena) {
    char *copy = s->failed ? NULL : msc_arena_strndup(arena, msc_str_text(s), s->length);
    msc_str_finish(s);
    return copy;
}
