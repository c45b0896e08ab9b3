#include "base/json.h"

#include "base/hash.h"
#include "base/str.h"
#include "base/utf8.h"

#include <math.h>
#include <string.h>

#define INDENT 2
#define COMPACT (-1) // instead of a depth

// 2^53. All integers below it are exact in double, so each prints exactly.
#define INTEGER_LIMIT 9007199254740992.0

// The number of bytes of the character at `c`; 0 if it is not UTF-8.
static size_t read_character(uint32_t *code, const char *c) {
    *code = (unsigned char)*c;
    return *code < 0x80 ? 1 : msc_utf8_next(code, c, strnlen(c, 4));
}

// JSON may hold characters 0x7f to 0x9f as they are, but YAML and TOML, which take the same text,
// may not.
static bool is_control(uint32_t code) {
    return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

void msc_json_write_text(struct msc_str *out, const char *text) {
    static const char special[] = "\"\\\b\f\n\r\t";
    static const char letters[] = "\"\\bfnrt";
    msc_str_char(out, '"');
    const char *plain = text;
    size_t n = 1;
    for (const char *c = text; *c; c += n) {
        uint32_t code;
        n = read_character(&code, c);
        if (n > 0 && !is_control(code) && *c != '"' && *c != '\\') {
            continue;
        }
        msc_str_append_n(out, plain, (size_t)(c - plain));
        code = n > 0 ? code : 0xfffd;
        n = n > 0 ? n : 1;
        plain = c + n;
        const char *found = strchr(special, *c);
        if (found) {
            msc_str_char(out, '\\');
            msc_str_char(out, letters[found - special]);
        } else {
            msc_str_printf(out, "\\u%04x", (unsigned)code);
        }
    }
    msc_str_append(out, plain);
    msc_str_char(out, '"');
}

void msc_json_write_number(struct msc_str *out, double value) {
    if (!isfinite(value)) {
        msc_str_append(out, "null");
    } else if (fabs(value) < INTEGER_LIMIT && value == floor(value)) {
        if (signbit(value)) {
            msc_str_char(out, '-'); // also for -0, because an integer has no -0
        }
        msc_str_u64(out, (uint64_t)fabs(value));
    } else {
        msc_str_double(out, value);
    }
}

static void break_line(struct msc_str *out, int depth) {
    if (depth == COMPACT) {
        return;
    }
    msc_str_char(out, '\n');
    for (int i = 0; i < depth * INDENT; i++) {
        msc_str_char(out, ' ');
    }
}

static void write_value(struct msc_str *out, const cJSON *value, int depth) {
    bool is_object = cJSON_IsObject(value);
    if (is_object || cJSON_IsArray(value)) {
        int inner = depth == COMPACT ? COMPACT : depth + 1;
        msc_str_char(out, is_object ? '{' : '[');
        for (const cJSON *item = value->child; item; item = item->next) {
            break_line(out, inner);
            if (is_object) {
                msc_json_write_text(out, item->string ? item->string : "");
                msc_str_append(out, depth == COMPACT ? ":" : ": ");
            }
            write_value(out, item, inner);
            if (item->next) {
                msc_str_char(out, ',');
            }
        }
        if (value->child) {
            break_line(out, depth);
        }
        msc_str_char(out, is_object ? '}' : ']');
    } else if (cJSON_IsString(value)) {
        msc_json_write_text(out, value->valuestring);
    } else if (cJSON_IsNumber(value)) {
        msc_json_write_number(out, value->valuedouble);
    } else if (cJSON_IsBool(value)) {
        msc_str_append(out, cJSON_IsTrue(value) ? "true" : "false");
    } else if (cJSON_IsRaw(value) && value->valuestring) {
        msc_str_append(out, value->valuestring);
    } else {
        msc_str_append(out, "null");
    }
}

void msc_json_write(struct msc_str *out, const cJSON *value) {
    write_value(out, value, COMPACT);
}

void msc_json_write_pretty(struct msc_str *out, const cJSON *value) {
    write_value(out, value, 0);
    msc_str_char(out, '\n');
}

enum msc_status msc_json_hash(struct msc_hash *out, const cJSON *value) {
    struct msc_str text = {0};
    msc_json_write(&text, value);
    enum msc_status status = msc_str_status(&text);
    if (status == MSC_OK) {
        *out = msc_hash_bytes(msc_str_text(&text), text.length);
    }
    msc_str_finish(&text);
    return status;
}

enum msc_status msc_json_add(cJSON *object, const char *key, cJSON *value) {
    if (!object || !value || !cJSON_AddItemToObject(object, key, value)) {
        cJSON_Delete(value);
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    return MSC_OK;
}

enum msc_status msc_json_push(cJSON *array, cJSON *value) {
    if (!array || !value || !cJSON_AddItemToArray(array, value)) {
        cJSON_Delete(value);
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    return MSC_OK;
}

enum msc_status msc_json_add_text(cJSON *object, const char *key, const char *value) {
    return msc_json_add(object, key, cJSON_CreateString(value));
}

enum msc_status msc_json_add_number(cJSON *object, const char *key, double value) {
    return msc_json_add(object, key, cJSON_CreateNumber(value));
}

enum msc_status msc_json_add_bool(cJSON *object, const char *key, bool value) {
    return msc_json_add(object, key, cJSON_CreateBool(value));
}

enum msc_status msc_json_add_u64_text(cJSON *object, const char *key, uint64_t value) {
    enum msc_status status = MSC_OK;
    struct msc_str text = {0};
    msc_str_u64(&text, value);
    MSC_TRY_OUT(msc_str_status(&text));
    MSC_TRY_OUT(msc_json_add_text(object, key, msc_str_text(&text)));
out:
    msc_str_finish(&text);
    return status;
}
