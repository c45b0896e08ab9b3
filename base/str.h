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
    char *data; // ends in NUL once something was appended; NULL before
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
// The shortest decimal that strtod reads back to the same double ("1e-05" style like %g,
// independent of the locale; at some powers of two one digit longer). Not finite: "nan", "inf",
// "-inf".
void msc_str_double(struct msc_str *s, double value);
// The same for a float.
void msc_str_float(struct msc_str *s, float value);
// Appends a CSV cell, quoted if needed.
void msc_str_csv(struct msc_str *s, const char *text);
void msc_str_clear(struct msc_str *s); // sets the length to 0; memory and failure are kept
void msc_str_finish(struct msc_str *s);
// The text, "" when empty. Borrowed until the next append.
const char *msc_str_text(const struct msc_str *s);
enum msc_status msc_str_status(const struct msc_str *s);
// Passes the memory to the caller (msc_free) and leaves `s` empty. Never NULL if MSC_OK.
enum msc_status msc_str_take(char **out, struct msc_str *s);
// Copies the text into the arena and finishes `s`. NULL if memory was short, for the copy or for
// an earlier append.
char *msc_str_keep(struct msc_str *s, struct msc_arena *arena);

// Reads an integer or a real that fills all of `text`. False if it does not, or overflows.
bool msc_parse_i64(int64_t *out, const char *text);
bool msc_parse_u64(uint64_t *out, const char *text);
bool msc_parse_double(double *out, const char *text);
// mantissa * 10^exponent, rounded as strtod does, in integer arithmetic. False outside its range
// (an exponent outside -27…22, or a mantissa of more than 53 bits with an exponent above 0).
bool msc_round_decimal(double *out, uint64_t mantissa, int exponent);
// "8h", "90m", "30s", "1h30m", "45" (seconds) -> seconds. False when malformed or negative.
bool msc_parse_duration(double *out_s, const char *text);
// Appends "1.25 ms", "12.3 s", "12 min 03 s" or "3 h 04 min".
void msc_str_append_duration(struct msc_str *s, double seconds);
// "512", "256K", "64M", "4G" (powers of 1024; an ending B or iB is allowed) -> bytes.
bool msc_parse_bytes(uint64_t *out, const char *text);
// Do the wildcards "*" and "?" match all of `text`?
bool msc_glob_match(const char *pattern, const char *text);
// The candidate nearest to `word` by edit distance, or NULL if none is near enough.
const char *msc_suggest(const char *word, const char *const candidates[], size_t n);

MSC_PUBLIC_END

#endif
