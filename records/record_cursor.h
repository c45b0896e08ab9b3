// A place in a line of a record, and what is read there: the one form that the writer of record_line.c
// produces. A checksum that fits makes any other form the work of another program or schema.
#ifndef MSC_RECORDS_RECORD_CURSOR_H
#define MSC_RECORDS_RECORD_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct msc_record_cursor {
    const char *at;
    const char *end;
    bool is_good; // all that was expected was there
};

// Moves behind a text if that is what comes next. (Inline, as texts are short and known.)
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

// Any double, "inf" and "-inf" among them.
double msc_record__read_number(struct msc_record_cursor *c);
int64_t msc_record__read_i64(struct msc_record_cursor *c);
// A JSON text, decoded into `out` of `capacity` bytes; what does not fit is cut.
void msc_record__read_text(struct msc_record_cursor *c, char *out, size_t capacity);

#endif
