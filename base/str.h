// Growing text, and text helpers that do not depend on the locale.
//
// Appends do not report errors one by one: a string that could not grow remembers the failure,
// and msc_str_status reports it once at the end.
//
//     struct msc_str text = {0};
//     msc_str_printf(&text, "%d joints", n);
//     msc_str_double(&text, loss);      // the shortest form that reads back to the same bits
//     MSC_TRY_OUT(msc_str_status(&text));
//     out: msc_str_finish(&text);
#ifndef MSC_BASE_STR_H
#define MSC_BASE_STR_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

MSC_PUBLIC_BEGIN

struct msc_arena;

struct msc_str {
    char *data; // NULL until something is appended, then ends in NUL
    size_t length;
    size_t capacity;
    bool failed;
    bool has_styles; // keeps the marks of msc_style_begin and _end (base/style.h)
};

void msc_str_append(struct msc_str *s, const char *text);
void msc_str_append_n(struct msc_str *s, const char *text, size_t length);
void msc_str_char(struct msc_str *s, char c);
void msc_str_printf(struct msc_str *s, const char *format, ...) MSC_PRINTF(2, 3);
// Appends an item to a list: ", " unless it is the first, then the text.
void msc_str_item(struct msc_str *s, const char *text);
void msc_str_i64(struct msc_str *s, int64_t value);
void msc_str_u64(struct msc_str *s, uint64_t value);
// The shortest decimal that strtod reads back to the same double, independent of the locale.
// Exponents are written like "1e-05", as with %g. For some powers of two, the text is one digit
// longer than the shortest. Other texts: "nan", "inf", "-inf".
void msc_str_double(struct msc_str *s, double value);
// Like msc_str_double, for a float.
void msc_str_float(struct msc_str *s, float value);
// Appends a CSV cell, quoted if needed.
void msc_str_csv(struct msc_str *s, const char *text);
void msc_str_clear(struct msc_str *s); // sets the length to 0; memory and failure are kept
void msc_str_finish(struct msc_str *s);
// The text, "" if empty. Borrowed until the next append.
const char *msc_str_text(const struct msc_str *s);
enum msc_status msc_str_status(const struct msc_str *s);
// Passes the memory to the caller (msc_free) and leaves `s` empty. If MSC_OK, *out is not NULL.
enum msc_status msc_str_take(char **out, struct msc_str *s);
// Copies the text into the arena and finishes `s`. NULL if memory was short for the copy or an
// earlier append.
char *msc_str_keep(struct msc_str *s, struct msc_arena *arena);

// Reads an integer or a real number. False if `text` contains anything else, or the number
// overflows.
bool msc_parse_i64(int64_t *out, const char *text);
bool msc_parse_u64(uint64_t *out, const char *text);
bool msc_parse_double(double *out, const char *text);
// mantissa * 10^exponent, rounded as strtod does, computed in integer arithmetic. False if the
// exponent is outside -27…22, or is above 0 while the mantissa has more than 53 bits.
bool msc_round_decimal(double *out, uint64_t mantissa, int exponent);
// Reads a duration in seconds: "8h", "90m", "30s", "1h30m", "45" (seconds). False if malformed or
// negative.
bool msc_parse_duration(double *out_s, const char *text);
// Appends "1.25 ms", "12.3 s", "12 min 03 s" or "3 h 04 min".
void msc_str_append_duration(struct msc_str *s, double seconds);
// Reads a number of bytes: "512", "256K", "64M", "4G" (powers of 1024; may end in B or iB).
bool msc_parse_bytes(uint64_t *out, const char *text);
// True if `pattern` with the wildcards "*" and "?" matches all of `text`.
bool msc_glob_match(const char *pattern, const char *text);
// The candidate nearest to `word` by edit distance; NULL if none is near enough.
const char *msc_suggest(const char *word, const char *const candidates[], size_t n);

MSC_PUBLIC_END

#endif
