// JSON based on cJSON: loading that reports the position of a syntax error, and a writer with
// byte-stable output. base/json_get.h, which this header includes, reads members of objects.
//
// Trees are cJSON's; walk them with its functions. Write with msc_json_write, never with
// cJSON_Print. msc_json_write gives numbers their shortest round-trip form, independent of the
// locale, and keeps the order of keys.
#ifndef MSC_BASE_JSON_H
#define MSC_BASE_JSON_H

#include "base/json_get.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

MSC_PUBLIC_BEGIN

struct msc_arena;
struct msc_hash;
struct msc_str;

// Parses JSON text. The caller owns *out (cJSON_Delete). Error messages begin with
// "name:line:column: ". The following are errors: duplicate keys, text after the value, nesting
// deeper than 200 levels, and strings that are not UTF-8 or contain NUL. A byte-order mark is
// skipped.
enum msc_status msc_json_parse(cJSON **out, const char *text, size_t length, const char *name);
enum msc_status msc_json_load(cJSON **out, const char *path);
// Like msc_json_parse, for an object whose member `key` contains lists that may be long. These
// lists are checked, but are kept as text (cJSON_Raw).
enum msc_status msc_json_parse_lists(cJSON **out, const char *text, size_t length, const char *name,
                                     const char *key);
// Reads a list and passes its elements to `take` one by one. An element is valid only during the
// call. Reading ends at the first error that `take` returns.
enum msc_status msc_json_each(const char *text, size_t length, const char *name,
                              enum msc_status (*take)(void *payload, const cJSON *element),
                              void *payload);

// Appends compact JSON, without spaces or newlines. Whole numbers below 2^53 are written as
// integers, other numbers in shortest round-trip form, NaN and infinities as null.
void msc_json_write(struct msc_str *out, const cJSON *value);
// Like msc_json_write, with line breaks, two-space indentation and a newline at the end, for files
// that people edit.
void msc_json_write_pretty(struct msc_str *out, const cJSON *value);
// Appends a JSON string literal with quotes and escapes. A byte that is not UTF-8 (as in some file
// names) becomes U+FFFD, so that the output is always valid.
void msc_json_write_text(struct msc_str *out, const char *text);
// Appends a JSON number in shortest round-trip form; null if it is not finite.
void msc_json_write_number(struct msc_str *out, double value);

// Hash of the compact form. May fail with MSC_E_NOMEM.
enum msc_status msc_json_hash(struct msc_hash *out, const cJSON *value);

// Add members; MSC_E_NOMEM if memory is short. 64-bit integers are stored as strings.
enum msc_status msc_json_add_text(cJSON *object, const char *key, const char *value);
enum msc_status msc_json_add_number(cJSON *object, const char *key, double value);
enum msc_status msc_json_add_bool(cJSON *object, const char *key, bool value);
enum msc_status msc_json_add_u64_text(cJSON *object, const char *key, uint64_t value);
// Adds a member and takes ownership of `value`, which is freed on failure. A NULL value means out
// of memory.
enum msc_status msc_json_add(cJSON *object, const char *key, cJSON *value);
enum msc_status msc_json_push(cJSON *array, cJSON *value);

MSC_PUBLIC_END

#endif
