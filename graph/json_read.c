// Reads a graph's JSON form. Parents must come before their children; unknown keys are ignored. If
// weights are given, the outputs of every joint are inferred and must agree with the file. Without
// weights, the shapes in the file are used unchecked, because such a graph cannot be computed
// anyway.
#include "graph/json_reader.h"
#include "graph/operators_internal.h"

#include <string.h>

// The place that error messages name, for example "file.json: nodes[3]".
static enum msc_status json_read_place(const char **out, struct msc_graph_reader *r,
                                       const char *list, int index) {
    *out = msc_arena_printf(&r->scratch, "%s: %s[%d]", r->name, list, index);
    return MSC_ALLOCATED(*out);
}

static const struct prim_kind {
    const char *optype;
    int n_parents;
} prim_kinds[] = {
    {"shape", 0},    {"Int", 0},      {"Add", 2}, {"Sub", 2}, {"Mul", 2},
    {"FloorDiv", 2}, {"FloorMod", 2}, {"Max", 2}, {"Min", 2},
};

static enum msc_status check_prim(const char *optype, int n_parents, const char *where) {
    for (size_t i = 0; i < sizeof(prim_kinds) / sizeof(prim_kinds[0]); i++) {
        if (strcmp(prim_kinds[i].optype, optype) != 0) {
            continue;
        }
        if (prim_kinds[i].n_parents != n_parents) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: %s expects %d parents, found %d", where, optype,
                            prim_kinds[i].n_parents, n_parents);
        }
        return MSC_OK;
    }
    return MSC_FAIL(MSC_E_UNSUPPORTED, "%s: a prim has the unknown operator '%s'", where, optype);
}

static enum msc_status read_prim(struct msc_graph_reader *r, const cJSON *object,
                                 const char *where) {
    const char *name, *optype;
    const cJSON *list;
    MSC_TRY(msc_json_get_text(&name, object, "name", where));
    MSC_TRY(msc_json_get_text(&optype, object, "optype", where));
    MSC_TRY(msc_graph__read_array(&list, object, "parents", where));
    MSC_TRY(check_prim(optype, cJSON_GetArraySize(list), where));
    int32_t parents[3];
    int n_parents = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, list) {
        const char *parent = "";
        MSC_TRY(msc_graph__read_element(&parent, item, "parents", where));
        parents[n_parents] = msc_graph_find_prim(r->g, parent);
        if (parents[n_parents++] == MSC_NO_ID) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: cannot find parent '%s'", where, parent);
        }
    }
    struct msc_attr *attrs;
    int32_t n_attrs;
    MSC_TRY(msc_graph__read_attrs(&attrs, &n_attrs, r, object, where));
    int32_t prim;
    if (msc_graph_find_prim(r->g, name) != MSC_NO_ID) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: the prim '%s' occurs twice", where, name);
    }
    MSC_TRY(msc_graph__add_prim(&prim, r->g, name, optype, n_parents, parents, n_attrs, attrs));
    if (strcmp(r->g->prims[prim]->name, name) != 0) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: the prim '%s' is the same expression as '%s'", where,
                        name, r->g->prims[prim]->name);
    }
    return MSC_OK;
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

// Reads a list of tensor names as ids.
static enum msc_status read_names(int32_t **out, int32_t *n, struct msc_graph_reader *r,
                                  const cJSON *root, const char *key) {
    const cJSON *list, *item;
    MSC_TRY(msc_json_get_array(&list, root, key, r->name));
    *n = 0;
    *out = msc_arena_array(&r->scratch, (size_t)cJSON_GetArraySize(list), sizeof(**out));
    MSC_TRY(MSC_ALLOCATED(*out));
    cJSON_ArrayForEach(item, list) {
        const char *name = "";
        MSC_TRY(msc_graph__read_element(&name, item, key, r->name));
        int32_t tensor = msc_graph__live_tensor(r->g, name);
        if (tensor == MSC_NO_ID) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: %s names the unknown tensor '%s'", r->name, key,
                            name);
        }
        (*out)[(*n)++] = tensor;
    }
    return MSC_OK;
}

// Orders the inputs as the file lists them. The list must contain each input node once.
static enum msc_status order_inputs(struct msc_graph_reader *r, const cJSON *root) {
    int32_t *inputs;
    int32_t n;
    MSC_TRY(read_names(&inputs, &n, r, root, "inputs"));
    bool fits = n == r->g->n_inputs;
    for (int32_t i = 0; fits && i < n; i++) {
        int32_t producer = r->g->tensors[inputs[i]]->tensor.producer;
        fits = producer != MSC_NO_ID && r->g->joints[producer]->joint.op == MSC_OP_INPUT;
        for (int32_t k = 0; k < i; k++) {
            fits &= inputs[k] != inputs[i];
        }
    }
    if (!fits) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: inputs must list each of the %d input nodes once",
                        r->name, (int)r->g->n_inputs);
    }
    for (int32_t i = 0; i < n; i++) {
        r->g->inputs[i] = inputs[i];
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
    if (*out < MSC_ONNX_OLDEST_OPSET || *out > MSC_ONNX_NEWEST_OPSET) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: \"opset\" is %lld, expected %d to %d", where,
                        (long long)*out, MSC_ONNX_OLDEST_OPSET, MSC_ONNX_NEWEST_OPSET);
    }
    return MSC_OK;
}

static enum msc_status read_notes(struct msc_graph_reader *r, const cJSON *root) {
    const cJSON *object;
    struct msc_graph_notes notes = {0};
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

static enum msc_status read_graph(struct msc_graph_reader *r, const cJSON *root) {
    const cJSON *list, *item;
    MSC_TRY(read_prims(r, root));
    MSC_TRY(msc_json_get_array(&list, root, "nodes", r->name));
    int i = 0;
    cJSON_ArrayForEach(item, list) {
        const char *where;
        MSC_TRY(json_read_place(&where, r, "nodes", i++));
        MSC_TRY(msc_graph__read_node(r, item, where));
    }
    MSC_TRY(order_inputs(r, root));
    int32_t *outputs;
    int32_t n;
    MSC_TRY(read_names(&outputs, &n, r, root, "outputs"));
    MSC_TRY(msc_graph__set_outputs(r->g, n, outputs));
    return msc_graph_finalize(r->g);
}

enum msc_status msc_graph__read_body(struct msc_graph **out, struct msc_graph_reader *around,
                                     const cJSON *object, enum msc_op op, const char *name,
                                     int32_t which) {
    struct msc_graph_reader r = {.name = around->name, .weights = around->weights};
    const char *graph_name;
    enum msc_status status = MSC_OK;
    r.prefix = msc_graph__body_prefix(&around->scratch, around->prefix, op, name, which);
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

enum msc_status msc_graph__read_json(struct msc_graph **out, const char *text, size_t length,
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

enum msc_status msc_graph_read_json(struct msc_graph **out, const char *text, size_t length,
                                    const char *name, const struct msc_array_list *weights) {
    return msc_graph__read_json(out, text, length, name, weights, NULL);
}
