#include "base/json.h"

#include "base/alloc.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

#define INTEGER_LIMIT 9007199254740992.0 // 2^53: doubles above it do not represent every integer

cJSON *msc_json_get(const cJSON *object, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

const char *msc_json_text_of(const cJSON *object, const char *key) {
    const cJSON *value = msc_json_get(object, key);
    return cJSON_IsString(value) ? value->valuestring : NULL;
}

double msc_json_number_of(const cJSON *object, const char *key) {
    const cJSON *value = msc_json_get(object, key);
    return cJSON_IsNumber(value) ? value->valuedouble : NAN;
}

enum msc_status msc_json_of_user(enum msc_status status) {
    return status == MSC_E_FORMAT ? msc_status_restore(MSC_E_INVALID, msc_status_message())
                                  : status;
}

static const char *json_get_kind_of(const cJSON *value) {
    static const struct {
        int type;
        const char *name;
    } kinds[] = {
        {cJSON_False, "false"},   {cJSON_True, "true"},     {cJSON_NULL, "null"},
        {cJSON_Number, "number"}, {cJSON_String, "string"}, {cJSON_Array, "array"},
        {cJSON_Object, "object"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if ((value->type & 0xff) == kinds[i].type) {
            return kinds[i].name;
        }
    }
    return "unknown value";
}

static enum msc_status fail_kind(const cJSON *value, const char *key, const char *where,
                                 const char *expected) {
    return MSC_FAIL(MSC_E_FORMAT, "%s: \"%s\" is %s%s, expected %s", where, key,
                    cJSON_IsNull(value) || cJSON_IsBool(value) ? "" : "of type ",
                    json_get_kind_of(value), expected);
}

static enum msc_status json_get_find(const cJSON **out, const cJSON *object, const char *key,
                                     const char *where, const char *expected) {
    *out = msc_json_get(object, key);
    if (!*out) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: \"%s\" is missing, expected %s", where, key, expected);
    }
    return MSC_OK;
}

bool msc_json_read_i64(int64_t *out, const cJSON *item, int64_t low, int64_t high) {
    double number = cJSON_IsNumber(item) ? item->valuedouble : NAN;
    if (!(number >= (double)low && number <= (double)high) || number != floor(number)) {
        return false;
    }
    *out = (int64_t)number;
    return true;
}

enum msc_status msc_json_get_text(const char **out, const cJSON *object, const char *key,
                                  const char *where) {
    const cJSON *value = NULL;
    MSC_TRY(json_get_find(&value, object, key, where, "a string"));
    if (!cJSON_IsString(value)) {
        return fail_kind(value, key, where, "a string");
    }
    *out = value->valuestring;
    return MSC_OK;
}

enum msc_status msc_json_get_double(double *out, const cJSON *object, const char *key,
                                    const char *where) {
    const cJSON *value = NULL;
    MSC_TRY(json_get_find(&value, object, key, where, "a number"));
    if (!cJSON_IsNumber(value)) {
        return fail_kind(value, key, where, "a number");
    }
    *out = value->valuedouble;
    return MSC_OK;
}

enum msc_status msc_json_get_i64(int64_t *out, const cJSON *object, const char *key,
                                 const char *where) {
    const cJSON *value = NULL;
    MSC_TRY(json_get_find(&value, object, key, where, "a whole number"));
    if (cJSON_IsString(value)) {
        if (!msc_parse_i64(out, value->valuestring)) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: \"%s\" is \"%s\", expected a 64-bit whole number",
                            where, key, value->valuestring);
        }
        return MSC_OK;
    }
    if (!cJSON_IsNumber(value)) {
        return fail_kind(value, key, where, "a whole number");
    }
    double number = value->valuedouble;
    if (!(fabs(number) <= INTEGER_LIMIT) || number != floor(number)) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s: \"%s\" is %.17g, expected a whole number (beyond 2^53 as a string)",
                        where, key, number);
    }
    *out = (int64_t)number;
    return MSC_OK;
}

enum msc_status msc_json_get_bool(bool *out, const cJSON *object, const char *key,
                                  const char *where) {
    const cJSON *value = NULL;
    MSC_TRY(json_get_find(&value, object, key, where, "true or false"));
    if (!cJSON_IsBool(value)) {
        return fail_kind(value, key, where, "true or false");
    }
    *out = cJSON_IsTrue(value);
    return MSC_OK;
}

enum msc_status msc_json_get_object(const cJSON **out, const cJSON *object, const char *key,
                                    const char *where) {
    const cJSON *value = NULL;
    MSC_TRY(json_get_find(&value, object, key, where, "an object"));
    if (!cJSON_IsObject(value)) {
        return fail_kind(value, key, where, "an object");
    }
    *out = value;
    return MSC_OK;
}

enum msc_status msc_json_get_array(const cJSON **out, const cJSON *object, const char *key,
                                   const char *where) {
    const cJSON *value = NULL;
    MSC_TRY(json_get_find(&value, object, key, where, "an array"));
    if (!cJSON_IsArray(value)) {
        return fail_kind(value, key, where, "an array");
    }
    *out = value;
    return MSC_OK;
}

enum msc_status msc_json_get_texts(const char *const **out, size_t *n, const cJSON *object,
                                   const char *key, const char *what, const char *where,
                                   struct msc_arena *arena) {
    const cJSON *list, *item;
    *out = NULL;
    *n = 0;
    if (!msc_json_get(object, key)) {
        return MSC_OK;
    }
    MSC_TRY(msc_json_get_array(&list, object, key, where));
    const char **texts =
        msc_arena_array(arena, (size_t)cJSON_GetArraySize(list) + 1, sizeof(texts[0]));
    cJSON_ArrayForEach(item, list) {
        if (!cJSON_IsString(item)) {
            return MSC_FAIL(MSC_E_INVALID, "%s.%s: expected a list of %s", where, key, what);
        }
        char *copy = msc_arena_strdup(arena, item->valuestring);
        MSC_TRY(MSC_ALLOCATED(texts && copy));
        texts[(*n)++] = copy;
    }
    *out = texts;
    return MSC_OK;
}

static bool is_known(const char *key, const char *const known[], size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (strcmp(key, known[i]) == 0) {
            return true;
        }
    }
    return false;
}

enum msc_status msc_json_fail_key(const char *key, const char *const known[], size_t n,
                                  const char *where) {
    const char *near = msc_suggest(key, known, n);
    if (near) {
        return MSC_FAIL(MSC_E_INVALID, "%s: unknown key \"%s\", did you mean \"%s\"?", where, key,
                        near);
    }
    struct msc_str names = {0};
    for (size_t i = 0; i < n; i++) {
        msc_str_item(&names, known[i]);
    }
    enum msc_status status =
        MSC_FAIL(MSC_E_INVALID, "%s: unknown key \"%s\", the known key%s %s", where, key,
                 n == 1 ? " is" : "s are", n > 0 ? msc_str_text(&names) : "none");
    msc_str_finish(&names);
    return status;
}

enum msc_status msc_json_check_keys(const cJSON *object, const char *const known[], size_t n,
                                    const char *where) {
    const cJSON *member = NULL;
    cJSON_ArrayForEach(member, object) {
        const char *key = member->string ? member->string : "";
        if (is_known(key, known, n)) {
            continue;
        }
        return msc_json_fail_key(key, known, n, where);
    }
    return MSC_OK;
}
