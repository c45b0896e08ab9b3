// Reads values at a position in a line. Accepts only the exact form that record_line.c writes. A
// line with a valid checksum and another form was written by another program or for another schema.
#ifndef MSC_RECORDS_RECORD_CURSOR_H
#define MSC_RECORDS_RECORD_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct msc_record_cursor {
    const char *at;
    const char *end;
    bool is_good; // did all values and texts so far have the expected form?
};

// Moves past a text if it comes next. Inline, because texts are short constants.
static inline bool msc_record__accept_n(struct msc_record_cursor *c, const char *text,
                                        size_t length) {
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, text, length) != 0) {
        return false;
    }
    c->at += length;
    return true;
}

static inline bool msc_record__accept(struct msc_record_cursor *c, const char *text) {
    return msc_record__accept_n(c, text, strlen(text));
}

static inline void msc_record__expect(struct msc_record_cursor *c, const char *text) {
    c->is_good = c->is_good && msc_record__accept(c, text);
}

// Reads any double, including "inf" and "-inf".
double msc_record__read_number(struct msc_record_cursor *c);
int64_t msc_record__read_i64(struct msc_record_cursor *c);
// Reads a JSON string and decodes it into `out` of `capacity` bytes; a longer one is truncated.
void msc_record__read_text(struct msc_record_cursor *c, char *out, size_t capacity);

#endif
