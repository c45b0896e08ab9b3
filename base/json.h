// JSON based on cJSON: loading that reports the position of a syntax error, typed getters whose
// errors name the path, and a writer with byte-stable output.
//
// Trees are cJSON's; walk them with its functions. Write with msc_json_write, never cJSON_Print:
// it writes numbers in their shortest round-trip form, independent of the locale, and keeps the
// order of keys.
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

// *out is owned by the caller (cJSON_Delete). Errors begin with "name:line:column: ". Duplicate
// keys, text after the value, nesting deeper than 200 levels, and strings that are not UTF-8 or
// contain NUL are errors. A byte-order mark is skipped.
enum msc_status msc_json_parse(cJSON **out, const char *text, size_t length, const char *name);
enum msc_status msc_json_load(cJSON **out, const char *path);
// The same for an object whose member `key` contains lists that may be long. These lists are
// checked, but stay text (cJSON_Raw).
enum msc_status msc_json_parse_lists(cJSON **out, const char *text, size_t length, const char *name,
                                     const char *key);
// Reads a list and passes its elements to `take` one by one. An element is valid during the call
// only. The first error that `take` returns ends the reading.
enum msc_status msc_json_each(const char *text, size_t length, const char *name,
                              enum msc_status (*take)(void *payload, const cJSON *element),
                              void *payload);

// Appends compact JSON (no spaces, no newline). Whole numbers below 2^53 print as integers,
// others in shortest round-trip form, NaN and infinities as null.
void msc_json_write(struct msc_str *out, const cJSON *value);
// The same with line breaks, two-space indentation and a newline at the end, for files people edit.
void msc_json_write_pretty(struct msc_str *out, const cJSON *value);
// Appends a JSON string literal with quotes and escapes. Each byte that is not UTF-8 (as in a
// file name) becomes U+FFFD, so that the output is always valid.
void msc_json_write_text(struct msc_str *out, const char *text);
// Appends a JSON number in shortest round-trip form; null if it is not finite.
void msc_json_write_number(struct msc_str *out, double value);

// Hash of the compact form. May fail with MSC_E_NOMEM.
enum msc_status msc_json_hash(struct msc_hash *out, const cJSON *value);

// Turns MSC_E_FORMAT into MSC_E_INVALID and keeps the message: a mistake in a file that a person
// wrote is invalid input, not damage. For readers of configurations, around the functions below.
enum msc_status msc_json_of_user(enum msc_status status);

// Get members of an object. Error messages begin with `where`. MSC_E_FORMAT if the member is
// absent or has another type.
enum msc_status msc_json_get_text(const char **out, const cJSON *object, const char *key,
                                  const char *where); // borrowed from the tree
enum msc_status msc_json_get_double(double *out, const cJSON *object, const char *key,
                                    const char *where);
enum msc_status msc_json_get_i64(int64_t *out, const cJSON *object, const char *key,
                                 const char *where); // an integer, or a string that contains one
enum msc_status msc_json_get_bool(bool *out, const cJSON *object, const char *key,
                                  const char *where);
enum msc_status msc_json_get_object(const cJSON **out, const cJSON *object, const char *key,
                                    const char *where);
enum msc_status msc_json_get_array(const cJSON **out, const cJSON *object, const char *key,
                                   const char *where);
// The strings of a list, copied into the arena; n = 0 if the key is absent. `what` names the
// elements in error messages, as in "expected a list of name patterns".
enum msc_status msc_json_get_texts(const char *const **out, size_t *n, const cJSON *object,
                                   const char *key, const char *what, const char *where,
                                   struct msc_arena *arena);
// Fails with MSC_E_INVALID: unknown key. Suggests a similar known key, or lists them all.
enum msc_status msc_json_fail_key(const char *key, const char *const known[], size_t n,
                                  const char *where);
// Fails in the same way unless every key of `object` is in `known`.
enum msc_status msc_json_check_keys(const cJSON *object, const char *const known[], size_t n,
                                    const char *where);

// Add members; MSC_E_NOMEM if memory is short. 64-bit integers are stored as strings.
enum msc_status msc_json_add_text(cJSON *object, const char *key, const char *value);
enum msc_status msc_json_add_number(cJSON *object, const char *key, double value);
enum msc_status msc_json_add_bool(cJSON *object, const char *key, bool value);
enum msc_status msc_json_add_u64_text(cJSON *object, const char *key, uint64_t value);
// Takes ownership of `value` (freed on failure); a NULL value means out of memory.
enum msc_status msc_json_add(cJSON *object, const char *key, cJSON *value);
enum msc_status msc_json_push(cJSON *array, cJSON *value);

MSC_PUBLIC_END

#endif
