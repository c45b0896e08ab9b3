// JSON over cJSON: loading with the place of a syntax error, typed members with errors that name
// the path, and a writer for lines that must be byte-stable.
//
// Reading and trees are cJSON's; use its own functions for walking. Writing goes through
// msc_json_write, never cJSON_Print: numbers come out in their shortest round-trip form whatever
// the locale, keys in the tree's order.
#ifndef MSC_BASE_JSON_H
#define MSC_BASE_JSON_H

#include "base/status.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

MSC_PUBLIC_BEGIN

struct msc_arena;
struct msc_hash;
struct msc_str;

// *out is owned by the caller (cJSON_Delete). `name` stands in the error text: "name:line:column:
// ...". Duplicate keys, trailing text, nesting beyond 200 and strings that are no UTF-8 or hold NUL are
// errors; a byte-order mark is passed over.
enum msc_status msc_json_parse(cJSON **out, const char *text, size_t length, const char *name);
enum msc_status msc_json_load(cJSON **out, const char *path);
// The same of an object whose member `key` has lists that may be long: these stay text (cJSON_Raw), as
// sound as all else.
enum msc_status msc_json_parse_lists(cJSON **out, const char *text, size_t length, const char *name,
                                     const char *key);
// Reads a list and hands its elements over one by one, each for the time of the call. An error of the
// call ends it.
enum msc_status msc_json_each(const char *text, size_t length, const char *name,
                              enum msc_status (*take)(void *payload, const cJSON *element),
                              void *payload);

// Appends compact JSON (no spaces, no newline). Numbers that are whole and below 2^53 print as
// integers; others shortest round-trip; nan and infinities print as null.
void msc_json_write(struct msc_str *out, const cJSON *value);
// The same with line breaks, two-space indentation and a newline at the end, for files people edit.
void msc_json_write_pretty(struct msc_str *out, const cJSON *value);
// Appends a JSON string literal with quotes and escapes. What is no UTF-8, such as the name of a file may
// be, becomes U+FFFD byte by byte: whatever is written can be read.
void msc_json_write_text(struct msc_str *out, const char *text);
// Appends a JSON number, shortest round trip; not finite: null.
void msc_json_write_number(struct msc_str *out, double value);

// Hash of the compact form. MSC_E_NOMEM.
enum msc_status msc_json_hash(struct msc_hash *out, const cJSON *value);

// What people have written wrongly is theirs to mend, no damage: MSC_E_FORMAT becomes MSC_E_INVALID,
// with the same text. For those who read configurations by what follows.
enum msc_status msc_json_of_user(enum msc_status status);

// Members of an object. `where` begins the error text. MSC_E_FORMAT when the member is absent or of
// another type.
enum msc_status msc_json_get_text(const char **out, const cJSON *object, const char *key,
                                  const char *where); // borrowed from the tree
enum msc_status msc_json_get_double(double *out, const cJSON *object, const char *key,
                                    const char *where);
enum msc_status msc_json_get_i64(int64_t *out, const cJSON *object, const char *key,
                                 const char *where); // an integer, or text of one
enum msc_status msc_json_get_bool(bool *out, const cJSON *object, const char *key,
                                  const char *where);
enum msc_status msc_json_get_object(const cJSON **out, const cJSON *object, const char *key,
                                    const char *where);
enum msc_status msc_json_get_array(const cJSON **out, const cJSON *object, const char *key,
                                   const char *where);
// The strings of a list, copied into the arena; none where there is no such key. `what`, as "name
// patterns", says of what a list is expected.
enum msc_status msc_json_get_texts(const char *const **out, size_t *n, const cJSON *object,
                                   const char *key, const char *what, const char *where,
                                   struct msc_arena *arena);
// MSC_E_INVALID that `key` is none of those known; suggests one, or lists them.
enum msc_status msc_json_fail_key(const char *key, const char *const known[], size_t n,
                                  const char *where);
// Every key of `object` must be in `known`; else fails like that.
enum msc_status msc_json_check_keys(const cJSON *object, const char *const known[], size_t n,
                                    const char *where);

// Adds members; MSC_E_NOMEM when memory is short. 64-bit numbers go in as text.
enum msc_status msc_json_add_text(cJSON *object, const char *key, const char *value);
enum msc_status msc_json_add_number(cJSON *object, const char *key, double value);
enum msc_status msc_json_add_bool(cJSON *object, const char *key, bool value);
enum msc_status msc_json_add_u64_text(cJSON *object, const char *key, uint64_t value);
// Takes ownership of `value` (freed on failure; NULL value means out of memory).
enum msc_status msc_json_add(cJSON *object, const char *key, cJSON *value);
enum msc_status msc_json_push(cJSON *array, cJSON *value);

MSC_PUBLIC_END

#endif
