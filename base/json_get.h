// Reads members of JSON objects. Some getters accept any member; the others fail with an error that
// says which member is wrong and what was expected.
//
//     const char *name = msc_json_text_of(plan, "name");        // NULL: absent, or not a string
//     MSC_TRY(msc_json_get_i64(&id, plan, "id", "plans[3]"));   // 'plans[3]: "id" is missing, ...'
//
// Keys are case-sensitive. An object may be NULL, which means that it has no members. The tree owns
// everything returned.
#ifndef MSC_BASE_JSON_GET_H
#define MSC_BASE_JSON_GET_H

#include "base/status.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

MSC_PUBLIC_BEGIN

struct msc_arena;

// The member, or NULL.
cJSON *msc_json_get(const cJSON *object, const char *key);
// The text of a member that is a string, else NULL.
const char *msc_json_text_of(const cJSON *object, const char *key);
// The value of a member that is a number, else NaN.
double msc_json_number_of(const cJSON *object, const char *key);

// Reads a whole number from `low` to `high`, which are within +-2^53. False, without a change of
// *out, if the item (may be NULL) is not one.
bool msc_json_read_i64(int64_t *out, const cJSON *item, int64_t low, int64_t high);

// Turns MSC_E_FORMAT into MSC_E_INVALID and keeps the message, because a mistake in a file that a
// person wrote is invalid input, not damage. Readers of configurations wrap the functions below in
// this one.
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
// Fails with MSC_E_INVALID and the message that the key is unknown. The message suggests a similar
// known key, or lists all known keys.
enum msc_status msc_json_fail_key(const char *key, const char *const known[], size_t n,
                                  const char *where);
// Fails like msc_json_fail_key unless every key of `object` is in `known`.
enum msc_status msc_json_check_keys(const cJSON *object, const char *const known[], size_t n,
                                    const char *where);

MSC_PUBLIC_END

#endif
