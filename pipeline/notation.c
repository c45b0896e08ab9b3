#include "pipeline/notation.h"

#include "base/json.h"

#include <string.h>

// Blanks of the lines: a prefix of keys has none.
static const char *indent_of(const struct msc_notation *n) {
    return n->is_toml ? "" : n->in;
}

static void put_key(const struct msc_notation *n, const char *key) {
    msc_str_append(n->out, n->in);
    msc_str_append(n->out, key);
}

// Whether YAML reads the text as it stands, without quotes: words of letters, and paths that are no
// numbers.
static bool is_plain(const char *text) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    static const char usual[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./";
    static const char of_numbers[] = "0123456789-.eE";
    bool is_word = *text && strspn(text, letters) == strlen(text) && strcmp(text, "true") != 0 &&
                   strcmp(text, "false") != 0 && strcmp(text, "null") != 0;
    return is_word ||
           (text[0] != '-' && strchr(text, '.') && strpbrk(text, letters) &&
            strspn(text, usual) == strlen(text) && strspn(text, of_numbers) < strlen(text));
}

static void put_value(const struct msc_notation *n, const cJSON *value) {
    const cJSON *item = NULL;
    if (cJSON_IsString(value) && !n->is_toml && is_plain(value->valuestring)) {
        msc_str_append(n->out, value->valuestring);
    } else if (!cJSON_IsArray(value) && !cJSON_IsObject(value)) {
        msc_json_write(n->out, value); // text in JSON is text in YAML and TOML
    } else {
        msc_str_char(n->out, cJSON_IsArray(value) ? '[' : '{');
        cJSON_ArrayForEach(item, value) {
            msc_str_append(n->out, item == value->child ? "" : ", ");
            if (item->string) {
                msc_str_printf(n->out, "%s%s", item->string, n->is_toml ? " = " : ": ");
            }
            put_value(n, item);
        }
        msc_str_char(n->out, cJSON_IsArray(value) ? ']' : '}');
    }
}

static void put_pair(const struct msc_notation *n, const char *key, const cJSON *value) {
    put_key(n, key);
    msc_str_append(n->out, n->is_toml ? " = " : ": ");
    put_value(n, value);
    msc_str_char(n->out, '\n');
}

void msc_notation_comment(const struct msc_notation *n, const char *text) {
    while (*text) {
        size_t length = strcspn(text, "\n");
        msc_str_printf(n->out, "%s# ", indent_of(n));
        msc_str_append_n(n->out, text, length);
        msc_str_char(n->out, '\n');
        text += length + (text[length] == '\n');
    }
}

void msc_notation_put(const struct msc_notation *n, const char *key, const cJSON *value) {
    put_pair(n, key, value);
}

void msc_notation_suggest(const struct msc_notation *n, const char *key, const cJSON *value) {
    struct msc_notation bare = *n;
    msc_str_printf(n->out, "%s# ", indent_of(n));
    bare.in = n->is_toml ? n->in : "";
    put_pair(&bare, key, value);
}

void msc_notation_list(const struct msc_notation *n, const char *key, const cJSON *list) {
    const cJSON *item = NULL;
    put_key(n, key);
    msc_str_append(n->out, n->is_toml ? " = [\n" : ":\n");
    cJSON_ArrayForEach(item, list) {
        msc_str_printf(n->out, "%s  %s", indent_of(n), n->is_toml ? "" : "- ");
        put_value(n, item);
        msc_str_append(n->out, n->is_toml ? ",\n" : "\n");
    }
    msc_str_append(n->out, n->is_toml ? "]\n" : "");
}
