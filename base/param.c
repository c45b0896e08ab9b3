#include "base/param.h"

#include "base/json.h"
#include "base/str.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define INTEGER_LIMIT 9007199254740992.0 // 2^53: doubles above it do not represent every integer

int msc_param_index(const char *names, const char *text) {
    size_t length = strlen(text);
    int index = 0;
    for (const char *name = names; name; index++) {
        size_t name_length = strcspn(name, "|");
        if (name_length == length && memcmp(name, text, length) == 0) {
            return index;
        }
        name = name[name_length] == '|' ? name + name_length + 1 : NULL;
    }
    return -1;
}

void msc_param_defaults(const struct msc_param params[], void *target) {
    for (const struct msc_param *p = params; p->name; p++) {
        void *member = (char *)target + p->offset;
        switch (p->type) {
        case MSC_PARAM_BOOL:
            *(bool *)member = p->number != 0;
            break;
        case MSC_PARAM_I64:
            *(int64_t *)member = (int64_t)p->number;
            break;
        case MSC_PARAM_F64:
        case MSC_PARAM_DURATION:
            *(double *)member = p->number;
            break;
        case MSC_PARAM_TEXT:
        case MSC_PARAM_WORD:
            *(const char **)member = p->text;
            break;
        case MSC_PARAM_ENUM:
            assert(p->text && msc_param_index(p->names, p->text) >= 0);
            *(int *)member = msc_param_index(p->names, p->text);
            break;
        case MSC_PARAM_JSON:
        case MSC_PARAM_OBJECT:
            *(const cJSON **)member = NULL;
            break;
        }
    }
}

static enum msc_status write_i64(cJSON *object, const char *key, int64_t value) {
    if (fabs((double)value) <= INTEGER_LIMIT) {
        return msc_json_add_number(object, key, (double)value);
    }
    enum msc_status status = MSC_OK;
    struct msc_str text = {0};
    msc_str_i64(&text, value);
    MSC_TRY_OUT(msc_str_status(&text));
    MSC_TRY_OUT(msc_json_add_text(object, key, msc_str_text(&text)));
out:
    msc_str_finish(&text);
    return status;
}

// JSON has no infinity. An infinite limit is therefore omitted; reading then gives the default.
static enum msc_status write_f64(cJSON *object, const char *key, double value) {
    return isfinite(value) ? msc_json_add_number(object, key, value) : MSC_OK;
}

static enum msc_status write_text(cJSON *object, const char *key, const char *value) {
    return value ? msc_json_add_text(object, key, value)
                 : msc_json_add(object, key, cJSON_CreateNull());
}

static enum msc_status write_enum(cJSON *object, const struct msc_param *p, int index) {
    enum msc_status status = MSC_OK;
    struct msc_str name = {0};
    const char *place = p->names;
    for (int i = 0; i < index; i++) {
        place = strchr(place, '|') + 1;
    }
    msc_str_append_n(&name, place, strcspn(place, "|"));
    MSC_TRY_OUT(msc_str_status(&name));
    MSC_TRY_OUT(msc_json_add_text(object, p->name, msc_str_text(&name)));
out:
    msc_str_finish(&name);
    return status;
}

static enum msc_status write_param(cJSON *object, const struct msc_param *p, const void *target) {
    const void *member = (const char *)target + p->offset;
    const cJSON *json = NULL;
    const char *text = NULL;
    switch (p->type) {
    case MSC_PARAM_BOOL:
        return msc_json_add_bool(object, p->name, *(const bool *)member);
    case MSC_PARAM_I64:
        return write_i64(object, p->name, *(const int64_t *)member);
    case MSC_PARAM_F64:
    case MSC_PARAM_DURATION:
        return write_f64(object, p->name, *(const double *)member);
    case MSC_PARAM_TEXT:
        return write_text(object, p->name, *(const char *const *)member);
    case MSC_PARAM_ENUM:
        return write_enum(object, p, *(const int *)member);
    case MSC_PARAM_WORD:
        text = *(const char *const *)member;
        return text ? write_text(object, p->name, text) : MSC_OK;
    case MSC_PARAM_JSON:
        json = *(const cJSON *const *)member;
        return msc_json_add(object, p->name, json ? cJSON_Duplicate(json, 1) : cJSON_CreateNull());
    case MSC_PARAM_OBJECT:
        json = *(const cJSON *const *)member;
        return json ? msc_json_add(object, p->name, cJSON_Duplicate(json, 1)) : MSC_OK;
    }
    return MSC_FAIL(MSC_E_INVALID, "parameter %s has no known type", p->name);
}

enum msc_status msc_param_write(const struct msc_param params[], const void *target,
                                struct cJSON *object) {
    for (const struct msc_param *p = params; p->name; p++) {
        MSC_TRY(write_param(object, p, target));
    }
    return MSC_OK;
}

// Appends a number such as "4" or "1.5"; integers never have an exponent.
static void help_number(struct msc_str *out, double number) {
    if (isfinite(number)) {
        msc_json_write_number(out, number);
    } else {
        msc_str_append(out, number > 0 ? "no limit" : "none");
    }
}

static bool is_text(const struct msc_param *p) {
    return p->type == MSC_PARAM_TEXT || p->type == MSC_PARAM_WORD || p->type == MSC_PARAM_ENUM;
}

static bool is_json(const struct msc_param *p) {
    return p->type == MSC_PARAM_JSON || p->type == MSC_PARAM_OBJECT;
}

// True if the help should show a default. JSON values and texts without a default have none to
// show, or the parameter's help text describes it.
static bool has_default(const struct msc_param *p) {
    return !is_json(p) && (!is_text(p) || p->text);
}

static void help_default(const struct msc_param *p, struct msc_str *out) {
    msc_str_append(out, "default ");
    if (is_text(p)) {
        msc_str_append(out, p->text);
    } else if (p->type == MSC_PARAM_BOOL) {
        msc_str_append(out, p->number != 0 ? "true" : "false");
    } else {
        help_number(out, p->number);
        msc_str_append(out, p->type == MSC_PARAM_DURATION && isfinite(p->number) ? " s" : "");
    }
}

static void help_range(const struct msc_param *p, struct msc_str *out) {
    bool is_number =
        p->type == MSC_PARAM_I64 || p->type == MSC_PARAM_F64 || p->type == MSC_PARAM_DURATION;
    if (p->type == MSC_PARAM_ENUM) {
        msc_str_append(out, ", one of ");
        for (const char *c = p->names; *c; c++) {
            msc_str_append_n(out, *c == '|' ? ", " : c, *c == '|' ? 2 : 1);
        }
    }
    if (is_number && (p->min != 0 || p->max != 0)) {
        msc_str_append(out, isinf(p->max) ? ", at least " : isinf(p->min) ? ", at most " : ", ");
        if (!isinf(p->min)) {
            help_number(out, p->min);
        }
        msc_str_append(out, isinf(p->min) || isinf(p->max) ? "" : " to ");
        if (!isinf(p->max)) {
            help_number(out, p->max);
        }
    }
    if (p->unit) {
        msc_str_append(out, ", in ");
        msc_str_append(out, p->unit);
    }
}

void msc_param_help(const struct msc_param params[], struct msc_str *out) {
    size_t widest = 0;
    for (const struct msc_param *p = params; p->name; p++) {
        size_t width = strlen(p->name);
        widest = width > widest ? width : widest;
    }
    for (const struct msc_param *p = params; p->name; p++) {
        msc_str_printf(out, "  %-*s  %s", (int)widest, p->name, p->help ? p->help : "");
        if (has_default(p)) {
            msc_str_append(out, " (");
            help_default(p, out);
            help_range(p, out);
            msc_str_char(out, ')');
        }
        msc_str_char(out, '\n');
    }
}

static const char *type_name(enum msc_param_type type) {
    static const char *const names[] = {
        [MSC_PARAM_BOOL] = "bool",     [MSC_PARAM_I64] = "integer", [MSC_PARAM_F64] = "number",
        [MSC_PARAM_TEXT] = "text",     [MSC_PARAM_WORD] = "text",   [MSC_PARAM_ENUM] = "name",
        [MSC_PARAM_DURATION] = "time", [MSC_PARAM_JSON] = "json",   [MSC_PARAM_OBJECT] = "json",
    };
    return names[type];
}

static enum msc_status param_describe(const struct msc_param *p, cJSON *object) {
    MSC_TRY(msc_json_add_text(object, "name", p->name));
    MSC_TRY(msc_json_add_text(object, "type", type_name(p->type)));
    MSC_TRY(msc_json_add_text(object, "help", p->help ? p->help : ""));
    if (is_text(p)) {
        MSC_TRY(p->text ? msc_json_add_text(object, "default", p->text) : MSC_OK);
    } else if (p->type == MSC_PARAM_BOOL) {
        MSC_TRY(msc_json_add_bool(object, "default", p->number != 0));
    } else if (!is_json(p)) {
        MSC_TRY(msc_json_add_number(object, "default", p->number));
    }
    if (p->min != 0 || p->max != 0) {
        MSC_TRY(msc_json_add_number(object, "min", p->min));
        MSC_TRY(msc_json_add_number(object, "max", p->max));
    }
    MSC_TRY(p->unit ? msc_json_add_text(object, "unit", p->unit) : MSC_OK);
    return p->names ? msc_json_add_text(object, "names", p->names) : MSC_OK;
}

enum msc_status msc_param_describe(const struct msc_param params[], struct cJSON *list) {
    for (const struct msc_param *p = params; p->name; p++) {
        cJSON *object = cJSON_CreateObject();
        MSC_TRY(msc_json_push(list, object));
        MSC_TRY(param_describe(p, object));
    }
    return MSC_OK;
}
