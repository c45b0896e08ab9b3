// Reads a graph's JSON form. Parents must come before their children; unknown keys are ignored.
#include "graph/json_reader.h"
#include "graph/operators_internal.h"

#include <string.h>

// The place that error messages name, for example "file.json: nodes[3]".
static enum msc_status json_read_place(const char **out, struct msc_graph_reader *r,
                                       const char *list, int index) {
    *out = msc_arena_printf(&r->scratch, "%s: %s[%d]", r->name, list, index);
    return MSC_ALLOCATED(*out);
}

static enum msc_status read_prim(struct msc_graph_reader *r, const cJSON *object,
                                 const char *where) {
    struct msc_read_prim prim = {.where = where};
    const cJSON *list, *item;
    struct msc_attr *attrs;
    MSC_TRY(msc_json_get_text(&prim.name, object, "name", where));
    MSC_TRY(msc_json_get_text(&prim.optype, object, "optype", where));
    MSC_TRY(msc_graph__read_array(&list, object, "parents", where));
    const char **parents =
        msc_arena_array(&r->scratch, (size_t)cJSON_GetArraySize(list), sizeof(parents[0]));
    MSC_TRY(MSC_ALLOCATED(parents));
    cJSON_ArrayForEach(item, list) {
        MSC_TRY(msc_graph__read_element(&parents[prim.n_parents++], item, "parents", where));
    }
    MSC_TRY(msc_graph__read_attrs(&attrs, &prim.n_attrs, r, object, where));
    prim.parents = parents;
    prim.attrs = attrs;
    return msc_graph__read_prim(r, &prim);
}

static enum msc_status read_prims(struct msc_graph_reader *r, const cJSON *root) {
    const cJSON *list, *item;
    MSC_TRY(msc_graph__read_array(&list, root, "prims", r->name));
    int i = 0;
    cJSON_ArrayForEach(item, list) {
        const char *where;
        MSC_TRY(json_read_place(&where, r, "prims", i++));
        MSC_TRY(read_prim(r, item, where));
    }
    return MSC_OK;
}

// Reads a list of tensor names.
static enum msc_status read_names(const char ***out, size_t *n, struct msc_graph_reader *r,
                                  const cJSON *root, const char *key) {
    const cJSON *list, *item;
    MSC_TRY(msc_json_get_array(&list, root, key, r->name));
    *n = 0;
    *out = msc_arena_array(&r->scratch, (size_t)cJSON_GetArraySize(list), sizeof(**out));
    MSC_TRY(MSC_ALLOCATED(*out));
    cJSON_ArrayForEach(item, list) {
        MSC_TRY(msc_graph__read_element(&(*out)[(*n)++], item, key, r->name));
    }
    return MSC_OK;
}

// Reads the pairs of a map of strings, which may be absent.
static enum msc_status read_pairs(const struct msc_attr **out, size_t *n,
                                  struct msc_graph_reader *r, const cJSON *notes, const char *key,
                                  const char *where) {
    const cJSON *map, *item;
    *n = 0;
    if (!msc_json_get(notes, key)) {
        return MSC_OK;
    }
    MSC_TRY(msc_json_get_object(&map, notes, key, where));
    struct msc_attr *pairs =
        msc_arena_array(&r->scratch, (size_t)cJSON_GetArraySize(map) + 1, sizeof(pairs[0]));
    MSC_TRY(MSC_ALLOCATED(pairs));
    cJSON_ArrayForEach(item, map) {
        struct msc_attr *pair = &pairs[(*n)++];
        pair->key = item->string == NULL ? "" : item->string;
        MSC_TRY(msc_graph__read_element(&pair->value, item, key, where));
    }
    *out = pairs;
    return MSC_OK;
}

static enum msc_status read_opset(int64_t *out, const cJSON *notes, const char *where) {
    if (!msc_json_get(notes, "opset")) {
        return MSC_OK;
    }
    MSC_TRY(msc_json_get_i64(out, notes, "opset", where));
    return msc_graph__check_opset(*out, where);
}

static enum msc_status read_notes(struct msc_graph_reader *r, const cJSON *root) {
    const cJSON *object;
    struct msc_graph_notes notes = {.keeps_attr_order = r->g->notes.keeps_attr_order};
    if (!msc_json_get(root, "notes")) {
        return MSC_OK;
    }
    MSC_TRY(msc_json_get_object(&object, root, "notes", r->name));
    const char *where = msc_arena_printf(&r->scratch, "%s: notes", r->name);
    MSC_TRY(MSC_ALLOCATED(where));
    MSC_TRY(read_opset(&notes.opset, object, where));
    if (msc_json_get(object, "model_version")) {
        MSC_TRY(msc_json_get_i64(&notes.model_version, object, "model_version", where));
    }
    MSC_TRY(msc_graph__read_text(&notes.doc, object, "doc", where));
    MSC_TRY(msc_graph__read_text(&notes.graph_doc, object, "graph_doc", where));
    MSC_TRY(msc_graph__read_text(&notes.domain, object, "domain", where));
    MSC_TRY(read_pairs(&notes.metadata, &notes.n_metadata, r, object, "metadata", where));
    MSC_TRY(read_pairs(&notes.input_docs, &notes.n_input_docs, r, object, "input_docs", where));
    MSC_TRY(read_pairs(&notes.output_docs, &notes.n_output_docs, r, object, "output_docs", where));
    return msc_graph_set_notes(r->g, &notes);
}

// True if a node has attributes that are not sorted by key.
static bool has_given_order(const cJSON *nodes) {
    const cJSON *node, *attr;
    cJSON_ArrayForEach(node, nodes) {
        const char *last = "";
        cJSON_ArrayForEach(attr, cJSON_GetObjectItemCaseSensitive(node, "attrs")) {
            if (attr->string != NULL && strcmp(attr->string, last) < 0) {
                return true;
            }
            last = attr->string == NULL ? last : attr->string;
        }
    }
    return false;
}

static enum msc_status read_graph(struct msc_graph_reader *r, const cJSON *root) {
    const cJSON *list, *item;
    r->g->notes.keeps_attr_order = has_given_order(msc_json_get(root, "nodes"));
    MSC_TRY(read_prims(r, root));
    MSC_TRY(msc_json_get_array(&list, root, "nodes", r->name));
    int i = 0;
    cJSON_ArrayForEach(item, list) {
        const char *where;
        MSC_TRY(json_read_place(&where, r, "nodes", i++));
        MSC_TRY(msc_graph__read_node(r, item, where));
    }
    const char **inputs, **outputs;
    size_t n_inputs, n_outputs;
    MSC_TRY(read_names(&inputs, &n_inputs, r, root, "inputs"));
    MSC_TRY(read_names(&outputs, &n_outputs, r, root, "outputs"));
    return msc_graph__read_ends(r, r->name, inputs, n_inputs, outputs, n_outputs);
}

enum msc_status msc_graph__read_body(struct msc_graph **out, struct msc_graph_reader *around,
                                     const cJSON *object, enum msc_op op, const char *name,
                                     int32_t which) {
    struct msc_graph_reader r = {.name = around->name, .weights = around->weights};
    const char *graph_name;
    enum msc_status status = MSC_OK;
    r.prefix = msc_graph_body_prefix(&around->scratch, around->prefix, op, name, which);
    MSC_TRY(MSC_ALLOCATED(r.prefix));
    if (!cJSON_IsObject(object)) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: the bodies of '%s' are not objects", r.name, name);
    }
    MSC_TRY_OUT(msc_json_get_text(&graph_name, object, "name", r.name));
    MSC_TRY_OUT(msc_graph__create_like(&r.g, graph_name, around->g));
    MSC_TRY_OUT(read_graph(&r, object));
    *out = r.g;
    r.g = NULL;
out:
    msc_graph_destroy(r.g);
    msc_arena_finish(&r.scratch);
    return status;
}

enum msc_status msc_graph_read_json(struct msc_graph **out, const char *text, size_t length,
                                    const char *name, const struct msc_array_list *weights,
                                    struct msc_operators *operators) {
    cJSON *root = NULL;
    struct msc_graph_reader r = {.name = name, .weights = weights, .prefix = ""};
    enum msc_status status = MSC_OK;
    const char *graph_name;
    MSC_TRY_OUT(msc_json_parse(&root, text, length, name));
    if (!cJSON_IsObject(root)) {
        status = MSC_FAIL(MSC_E_FORMAT, "%s: expected an object", name);
        goto out;
    }
    MSC_TRY_OUT(msc_json_get_text(&graph_name, root, "name", name));
    MSC_TRY_OUT(msc_graph_create(&r.g, graph_name));
    r.g->operators = msc_operators_retain(operators);
    status = read_graph(&r, root);
    status = status == MSC_OK ? read_notes(&r, root) : status;
    if (status == MSC_E_INVALID) {
        status = msc_status_prefix(MSC_E_FORMAT, "%s", name);
    }
    if (status != MSC_OK) {
        goto out;
    }
    *out = r.g;
    r.g = NULL;
out:
    msc_graph_destroy(r.g);
    msc_arena_finish(&r.scratch);
    cJSON_Delete(root);
    return status;
}
