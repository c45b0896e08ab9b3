// Checks whether a record was made with the configuration of this search, by comparing two JSON
// trees.
#include "base/json.h"
#include "base/str.h"
#include "records/record_header.h"

#include <stdio.h>
#include <string.h>

#define MAX_PATH_TEXT 512
// Longer values are truncated in the error message.
#define MAX_VALUE_TEXT 60

struct comparison {
    const char *file;
    const char *const *free_keys; // members of config that may differ
    const char *programs[2];      // the program that wrote the record, and this program
    char path[MAX_PATH_TEXT];
};

// A short text of a value; "nothing" for NULL.
static void describe_value(char out[MAX_VALUE_TEXT + 4], const cJSON *value) {
    struct msc_str text = {0};
    if (value) {
        msc_json_write(&text, value);
    } else {
        msc_str_append(&text, "nothing");
    }
    snprintf(out, MAX_VALUE_TEXT + 4, "%.*s%s", MAX_VALUE_TEXT, msc_str_text(&text),
             text.length > MAX_VALUE_TEXT ? "..." : "");
    msc_str_finish(&text);
}

// A hash cannot be set back like a parameter, so the message suggests likely causes.
static enum msc_status fail_graph(const struct comparison *c, const char *stored,
                                  const char *wanted) {
    return MSC_FAIL(
        MSC_E_STATE,
        "%s: it is the record of another search: %s is %s there and %s here; either the model "
        "differs, or another version of the program read it and folded constants "
        "differently (%s there, %s here); restore what differs, name another record, "
        "or start afresh with --restart",
        c->file, c->path, stored, wanted, c->programs[0], c->programs[1]);
}

static enum msc_status fail_different(const struct comparison *c, const cJSON *stored,
                                      const cJSON *wanted) {
    char old_text[MAX_VALUE_TEXT + 4];
    char new_text[MAX_VALUE_TEXT + 4];
    describe_value(old_text, stored);
    describe_value(new_text, wanted);
    if (strcmp(c->path, "env.graph") == 0 || strcmp(c->path, "env.weights") == 0) {
        return fail_graph(c, old_text, new_text);
    }
    return MSC_FAIL(MSC_E_STATE,
                    "%s: it is the record of another search: %s is %s there and %s here; set it "
                    "back, name another record, or start afresh with --restart",
                    c->file, c->path, old_text, new_text);
}

static bool is_listed(const char *const list[], const char *key) {
    for (size_t i = 0; list && list[i]; i++) {
        if (strcmp(list[i], key) == 0) {
            return true;
        }
    }
    return false;
}

// True if a member of config may differ: its path within config matches one of the patterns.
static bool is_free_in_config(const struct comparison *c, const char *key) {
    static const char config[] = "config";
    char path[MAX_PATH_TEXT];
    const char *inside = c->path + sizeof config - 1;
    if (strncmp(c->path, config, sizeof config - 1) != 0 || (*inside && *inside != '.')) {
        return false;
    }
    snprintf(path, sizeof path, "%s%s%s", *inside ? inside + 1 : "", *inside ? "." : "", key);
    for (size_t i = 0; c->free_keys && c->free_keys[i]; i++) {
        if (msc_glob_match(c->free_keys[i], path)) {
            return true;
        }
    }
    return false;
}

// True if a member may differ between launches of one search. `stored` or `wanted` may be NULL.
static bool is_free_key(const struct comparison *c, const char *key, const cJSON *stored,
                        const cJSON *wanted) {
    static const char *const top[] = {"program",  "numerics", "measured",
                                      "sameness", "features", NULL};
    if (strcmp(key, "budget") == 0 && (cJSON_IsObject(stored) || cJSON_IsObject(wanted))) {
        return true;
    }
    if (c->path[0] == '\0') {
        return is_listed(top, key);
    }
    if (strcmp(c->path, "hashes") == 0) {
        return !stored || !wanted;
    }
    return is_free_in_config(c, key);
}

static enum msc_status compare_values(struct comparison *c, const cJSON *stored,
                                      const cJSON *wanted);

static enum msc_status compare_member(struct comparison *c, const char *key, const cJSON *stored,
                                      const cJSON *wanted) {
    size_t length = strlen(c->path);
    snprintf(c->path + length, sizeof c->path - length, "%s%s", length > 0 ? "." : "", key);
    MSC_TRY(compare_values(c, stored, wanted));
    c->path[length] = '\0';
    return MSC_OK;
}

static enum msc_status compare_objects(struct comparison *c, const cJSON *stored,
                                       const cJSON *wanted) {
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, stored) {
        const cJSON *other = msc_json_get(wanted, item->string);
        if (!is_free_key(c, item->string, item, other)) {
            MSC_TRY(compare_member(c, item->string, item, other));
        }
    }
    cJSON_ArrayForEach(item, wanted) {
        if (!msc_json_get(stored, item->string) && !is_free_key(c, item->string, NULL, item)) {
            MSC_TRY(compare_member(c, item->string, NULL, item));
        }
    }
    return MSC_OK;
}

static enum msc_status compare_arrays(struct comparison *c, const cJSON *stored,
                                      const cJSON *wanted) {
    const cJSON *a = stored->child;
    const cJSON *b = wanted->child;
    for (size_t i = 0; a || b; i++) {
        size_t length = strlen(c->path);
        snprintf(c->path + length, sizeof c->path - length, "[%zu]", i);
        MSC_TRY(compare_values(c, a, b));
        c->path[length] = '\0';
        a = a ? a->next : NULL;
        b = b ? b->next : NULL;
    }
    return MSC_OK;
}

static enum msc_status compare_values(struct comparison *c, const cJSON *stored,
                                      const cJSON *wanted) {
    if (cJSON_IsObject(stored) && cJSON_IsObject(wanted)) {
        return compare_objects(c, stored, wanted);
    }
    if (cJSON_IsArray(stored) && cJSON_IsArray(wanted)) {
        return compare_arrays(c, stored, wanted);
    }
    bool is_equal = stored && wanted && (stored->type & 0xff) == (wanted->type & 0xff);
    if (is_equal && cJSON_IsString(stored)) {
        is_equal = strcmp(stored->valuestring, wanted->valuestring) == 0;
    } else if (is_equal && cJSON_IsNumber(stored)) {
        is_equal = stored->valuedouble == wanted->valuedouble;
    }
    return is_equal ? MSC_OK : fail_different(c, stored, wanted);
}

static const char *program_of(const cJSON *header) {
    const cJSON *program = msc_json_get(header, "program");
    return cJSON_IsString(program) ? program->valuestring : "unknown";
}

enum msc_status msc_record_header_compare(const struct cJSON *stored, const struct cJSON *wanted,
                                          const char *const free_keys[], const char *path) {
    struct comparison c = {
        .file = path, .free_keys = free_keys, .programs = {program_of(stored), program_of(wanted)}};
    return compare_values(&c, stored, wanted);
}
