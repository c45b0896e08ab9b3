// Reads a configuration in YAML, by libyaml, as a tree of JSON.
//
// Plain values are read by the core schema of YAML 1.2: null, true, false and decimal numbers are
// what they look like; everything else, such as 8h or yes, is text. An alias (*name) stands for a
// copy of its anchor. A file holds one document.
#include "config/config_internal.h"

#include "base/str.h"
#include "config/tree.h"

#include <math.h>
#include <yaml.h>

struct reader {
    yaml_document_t document;
    const char *path;
    size_t n_nodes;
};

static enum msc_status fail_at(const struct reader *r, yaml_mark_t at, const char *what) {
    return MSC_FAIL(MSC_E_INVALID, "%s:%zu:%zu: %s", r->path, at.line + 1, at.column + 1, what);
}

static bool is_number(double *out, const char *text) {
    return strspn(text, "+-.0123456789eE") == strlen(text) && strpbrk(text, "0123456789") &&
           msc_parse_double(out, text) && isfinite(*out);
}

static bool is_one_of(const char *text, const char *a, const char *b, const char *c) {
    return strcmp(text, a) == 0 || strcmp(text, b) == 0 || strcmp(text, c) == 0;
}

// The text of a scalar ends in NUL, which yaml_parser_load adds.
static enum msc_status read_scalar(const struct reader *r, cJSON **out, const yaml_node_t *node) {
    const char *text = (const char *)node->data.scalar.value;
    bool is_plain = node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    double number = 0;
    if (strlen(text) != node->data.scalar.length) {
        return fail_at(r, node->start_mark, "text with a zero byte");
    }
    if (!is_plain) {
        *out = cJSON_CreateString(text);
    } else if (!*text || strcmp(text, "~") == 0 || is_one_of(text, "null", "Null", "NULL")) {
        *out = cJSON_CreateNull();
    } else if (is_one_of(text, "true", "True", "TRUE")) {
        *out = cJSON_CreateTrue();
    } else if (is_one_of(text, "false", "False", "FALSE")) {
        *out = cJSON_CreateFalse();
    } else {
        *out = is_number(&number, text) ? cJSON_CreateNumber(number) : cJSON_CreateString(text);
    }
    return MSC_ALLOCATED(*out);
}

static enum msc_status read_node(struct reader *r, cJSON **out, int index, int depth);

static enum msc_status read_list(struct reader *r, cJSON *list, const yaml_node_t *node,
                                 int depth) {
    for (yaml_node_item_t *item = node->data.sequence.items.start;
         item < node->data.sequence.items.top; item++) {
        cJSON *value = NULL;
        MSC_TRY(read_node(r, &value, *item, depth + 1));
        MSC_TRY(msc_json_push(list, value));
    }
    return MSC_OK;
}

static enum msc_status read_object(struct reader *r, cJSON *object, const yaml_node_t *node,
                                   int depth) {
    for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = yaml_document_get_node(&r->document, pair->key);
        cJSON *value = NULL;
        const char *name = (const char *)key->data.scalar.value;
        if (key->type != YAML_SCALAR_NODE || strlen(name) != key->data.scalar.length) {
            return fail_at(r, key->start_mark, "expected a key that is text");
        }
        if (msc_json_get(object, name)) {
            return MSC_FAIL(MSC_E_INVALID, "%s:%zu:%zu: duplicate key %s", r->path,
                            key->start_mark.line + 1, key->start_mark.column + 1, name);
        }
        MSC_TRY(read_node(r, &value, pair->value, depth + 1));
        MSC_TRY(msc_json_add(object, name, value));
    }
    return MSC_OK;
}

static enum msc_status read_node(struct reader *r, cJSON **out, int index, int depth) {
    const yaml_node_t *node = yaml_document_get_node(&r->document, index);
    if (depth > MSC_CONFIG_DEEPEST) {
        return fail_at(r, node->start_mark, "nested too deeply, or an alias within its own anchor");
    }
    if (++r->n_nodes > MSC_CONFIG_MOST_NODES) {
        return fail_at(r, node->start_mark, "too many values; do aliases repeat each other?");
    }
    if (node->type == YAML_SCALAR_NODE) {
        return read_scalar(r, out, node);
    }
    bool is_list = node->type == YAML_SEQUENCE_NODE;
    cJSON *tree = is_list ? cJSON_CreateArray() : cJSON_CreateObject();
    MSC_TRY(MSC_ALLOCATED(tree));
    enum msc_status status =
        is_list ? read_list(r, tree, node, depth) : read_object(r, tree, node, depth);
    if (status != MSC_OK) {
        cJSON_Delete(tree);
        return status;
    }
    *out = tree;
    return MSC_OK;
}

// What libyaml says against the text. Marks start at 0.
static enum msc_status fail_parse(const yaml_parser_t *parser, const char *path) {
    yaml_mark_t at = parser->problem_mark;
    return parser->error == YAML_MEMORY_ERROR
               ? MSC_FAIL(MSC_E_NOMEM, "%s: out of memory", path)
               : MSC_FAIL(MSC_E_INVALID, "%s:%zu:%zu: %s", path, at.line + 1, at.column + 1,
                          parser->problem ? parser->problem : "not YAML");
}

// Refuses a second document, of which nothing would be read.
static enum msc_status check_end(yaml_parser_t *parser, const struct reader *r) {
    yaml_document_t next;
    if (!yaml_parser_load(parser, &next)) {
        return fail_parse(parser, r->path);
    }
    const yaml_node_t *root = yaml_document_get_root_node(&next);
    enum msc_status status =
        root ? fail_at(r, next.start_mark, "a second document; a configuration is one") : MSC_OK;
    yaml_document_delete(&next);
    return status;
}

enum msc_status msc_config__read_yaml(cJSON **out, const char *text, size_t length,
                                      const char *path) {
    yaml_parser_t parser;
    struct reader r = {.path = path};
    if (!yaml_parser_initialize(&parser)) {
        return MSC_FAIL(MSC_E_NOMEM, "%s: out of memory", path);
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
    enum msc_status status =
        yaml_parser_load(&parser, &r.document) ? MSC_OK : fail_parse(&parser, path);
    if (status == MSC_OK) {
        status = yaml_document_get_root_node(&r.document)
                     ? read_node(&r, out, 1, 0)
                     : MSC_FAIL(MSC_E_INVALID, "%s: the file is empty", path);
        if (status == MSC_OK) {
            status = check_end(&parser, &r);
        }
        yaml_document_delete(&r.document);
    }
    yaml_parser_delete(&parser);
    if (status != MSC_OK) {
        cJSON_Delete(*out);
        *out = NULL;
    }
    return status;
}
