#include "base/param.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

// The arguments of the functions that read one value.
struct reading {
    const struct msc_param *param;
    void *member;
    const cJSON *value;
    const char *where;
    struct msc_arena *arena;
};

static enum msc_status fail_value(const struct reading *r, const char *expected) {
    struct msc_str found = {0};
    msc_json_write(&found, r->value);
    enum msc_status status = MSC_FAIL(MSC_E_INVALID, "%s: \"%s\" is %.80s, expected %s", r->where,
                                      r->param->name, msc_str_text(&found), expected);
    msc_str_finish(&found);
    return status;
}

static enum msc_status check_range(const struct reading *r, double number) {
    const struct msc_param *p = r->param;
    if ((p->min == 0 && p->max == 0) || (number >= p->min && number <= p->max)) {
        return MSC_OK;
    }
    struct msc_str range = {0};
    msc_str_append(&range, isinf(p->max) ? "at least " : isinf(p->min) ? "at most " : "");
    if (!isinf(p->min)) {
        msc_json_write_number(&range, p->min);
    }
    msc_str_append(&range, isinf(p->min) || isinf(p->max) ? "" : " to ");
    if (!isinf(p->max)) {
        msc_json_write_number(&range, p->max);
    }
    if (p->unit) {
        msc_str_char(&range, ' ');
        msc_str_append(&range, p->unit);
    }
    enum msc_status status = fail_value(r, msc_str_text(&range));
    msc_str_finish(&range);
    return status;
}

static enum msc_status read_bool(const struct reading *r) {
    if (!cJSON_IsBool(r->value)) {
        return fail_value(r, "true or false");
    }
    *(bool *)r->member = cJSON_IsTrue(r->value);
    return MSC_OK;
}

static enum msc_status read_i64(const struct reading *r) {
    int64_t number = 0;
    bool is_text = cJSON_IsString(r->value);
    if (is_text && !msc_parse_i64(&number, r->value->valuestring)) {
        return fail_value(r, "a whole number");
    }
    if (!is_text) {
        double value = cJSON_IsNumber(r->value) ? r->value->valuedouble : 0.5;
        // Above 2^53, a double cannot hold every integer.
        if (value != floor(value) || fabs(value) > 9007199254740992.0) {
            return fail_value(r, "a whole number");
        }
        number = (int64_t)value;
    }
    MSC_TRY(check_range(r, (double)number));
    *(int64_t *)r->member = number;
    return MSC_OK;
}

static enum msc_status read_f64(const struct reading *r) {
    if (!cJSON_IsNumber(r->value)) {
        return fail_value(r, "a number");
    }
    MSC_TRY(check_range(r, r->value->valuedouble));
    *(double *)r->member = r->value->valuedouble;
    return MSC_OK;
}

static enum msc_status read_duration(const struct reading *r) {
    double seconds = r->value->valuedouble;
    bool good = cJSON_IsNumber(r->value) && seconds >= 0;
    if (cJSON_IsString(r->value)) {
        good = msc_parse_duration(&seconds, r->value->valuestring);
    }
    if (!good) {
        return fail_value(r, "a time such as \"8h\", \"1h30m\" or a number of seconds");
    }
    MSC_TRY(check_range(r, seconds));
    *(double *)r->member = seconds;
    return MSC_OK;
}

static enum msc_status read_text(const struct reading *r) {
    const char **member = r->member;
    if (cJSON_IsNull(r->value) && !r->param->text) {
        *member = NULL; // msc_param_write writes null for a text that was not set
        return MSC_OK;
    }
    if (!cJSON_IsString(r->value)) {
        return fail_value(r, "a string");
    }
    const char *copy = msc_arena_strdup(r->arena, r->value->valuestring);
    MSC_TRY(MSC_ALLOCATED(copy));
    *member = copy;
    return MSC_OK;
}

static enum msc_status fail_enum(const struct reading *r) {
    struct msc_str expected = {0};
    msc_str_append(&expected, "one of ");
    for (const char *c = r->param->names; *c; c++) {
        if (*c == '|') {
            msc_str_append(&expected, ", ");
        } else {
            msc_str_char(&expected, *c);
        }
    }
    enum msc_status status = fail_value(r, msc_str_text(&expected));
    msc_str_finish(&expected);
    return status;
}

static enum msc_status read_enum(const struct reading *r) {
    if (!cJSON_IsString(r->value)) {
        return fail_enum(r);
    }
    const char *name = r->param->names;
    size_t length = strlen(r->value->valuestring);
    for (int index = 0; name; index++) {
        size_t name_length = strcspn(name, "|");
        if (name_length == length && memcmp(name, r->value->valuestring, length) == 0) {
            *(int *)r->member = index;
            return MSC_OK;
        }
        name = name[name_length] == '|' ? name + name_length + 1 : NULL;
    }
    return fail_enum(r);
}

static enum msc_status read_json(const struct reading *r) {
    *(const cJSON **)r->member = cJSON_IsNull(r->value) ? NULL : r->value;
    return MSC_OK;
}

static enum msc_status (*const readers[])(const struct reading *r) = {
    [MSC_PARAM_BOOL] = read_bool,         [MSC_PARAM_I64] = read_i64,
    [MSC_PARAM_F64] = read_f64,           [MSC_PARAM_TEXT] = read_text,
    [MSC_PARAM_WORD] = read_text,         [MSC_PARAM_ENUM] = read_enum,
    [MSC_PARAM_DURATION] = read_duration, [MSC_PARAM_JSON] = read_json,
    [MSC_PARAM_OBJECT] = read_json,
};

static bool is_ignored(const char *key, const char *const ignore[]) {
    for (size_t i = 0; ignore && ignore[i]; i++) {
        if (strcmp(ignore[i], key) == 0) {
            return true;
        }
    }
    return false;
}

static const struct msc_param *find_param(const struct msc_param params[], const char *key) {
    for (const struct msc_param *p = params; p->name; p++) {
        if (strcmp(p->name, key) == 0) {
            return p;
        }
    }
    return NULL;
}

static enum msc_status fail_unknown(const struct msc_param params[], const char *const ignore[],
                                    const char *key, const char *where) {
    struct msc_arena arena = {0};
    size_t n_params = 0;
    size_t n_ignored = 0;
    while (params[n_params].name) {
        n_params++;
    }
    while (ignore && ignore[n_ignored]) {
        n_ignored++;
    }
    const char **known = msc_arena_array(&arena, n_params + n_ignored + 1, sizeof *known);
    enum msc_status status = MSC_FAIL(MSC_E_INVALID, "%s: unknown key \"%s\"", where, key);
    if (known) {
        for (size_t i = 0; i < n_params; i++) {
            known[i] = params[i].name;
        }
        for (size_t i = 0; i < n_ignored; i++) {
            known[n_params + i] = ignore[i];
        }
        status = msc_json_fail_key(key, known, n_params + n_ignored, where);
    }
    msc_arena_finish(&arena);
    return status;
}

enum msc_status msc_param_read(const struct msc_param params[], void *target,
                               const struct cJSON *object, const char *where,
                               const char *const ignore[], struct msc_arena *arena) {
    if (!object) {
        return MSC_OK;
    }
    if (!cJSON_IsObject(object)) {
        return MSC_FAIL(MSC_E_INVALID, "%s: expected an object", where);
    }
    const cJSON *value = NULL;
    cJSON_ArrayForEach(value, object) {
        const char *key = value->string ? value->string : "";
        const struct msc_param *p = find_param(params, key);
        if (!p && is_ignored(key, ignore)) {
            continue;
        }
        if (!p) {
            return fail_unknown(params, ignore, key, where);
        }
        struct reading r = {p, (char *)target + p->offset, value, where, arena};
        MSC_TRY(readers[p->type](&r));
    }
    return MSC_OK;
}
