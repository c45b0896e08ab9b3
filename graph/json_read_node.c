// Reads one node of the JSON form: its tensors, operands and attributes.
#include "graph/json_reader.h"

#include <string.h>

static enum msc_status read_shape(struct msc_read_tensor *t, const cJSON *object) {
    const cJSON *list, *item;
    MSC_TRY(msc_json_get_array(&list, object, "shape", t->where));
    if (cJSON_GetArraySize(list) > MSC_MAX_DIMS) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: '%s' has %d dimensions, expected at most %d", t->where,
                        t->name, cJSON_GetArraySize(list), MSC_MAX_DIMS);
    }
    cJSON_ArrayForEach(item, list) {
        int64_t value;
        if (!msc_json_read_i64(&value, item, -1, INT64_C(1) << 53)) {
            return MSC_FAIL(MSC_E_FORMAT,
                            "%s: shape of '%s' has an element that is not a dimension", t->where,
                            t->name);
        }
        t->type.dims[t->type.n_dims++] = (struct msc_dim){value, MSC_NO_ID};
    }
    return MSC_OK;
}

// Reads the prims of symbolic dimensions, whose length is -1.
static enum msc_status read_dim_prims(struct msc_read_tensor *t, const struct msc_graph_reader *r,
                                      const cJSON *object) {
    const cJSON *list;
    MSC_TRY(msc_graph__read_array(&list, object, "prims", t->where));
    int n = cJSON_GetArraySize(list);
    if (n != 0 && n != t->type.n_dims) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: '%s' has %d prims, expected %d", t->where, t->name, n,
                        t->type.n_dims);
    }
    for (int i = 0; i < t->type.n_dims; i++) {
        if (t->type.dims[i].value >= 0) {
            continue;
        }
        const char *prim = "";
        if (n > 0) {
            const cJSON *item = cJSON_GetArrayItem(list, i);
            MSC_TRY(msc_graph__read_element(&prim, item, "prims", t->where));
        }
        MSC_TRY(msc_graph__read_symbol(t, r, i, prim));
    }
    return MSC_OK;
}

static enum msc_status read_tensor(struct msc_read_tensor *t, const struct msc_graph_reader *r,
                                   const cJSON *object, const char *where) {
    const char *dtype, *layout;
    *t = (struct msc_read_tensor){.where = where, .has_type = true, .type.n_values = -1};
    t->has_layout = msc_json_get(object, "layout") != NULL;
    MSC_TRY(msc_json_get_text(&t->name, object, "name", where));
    MSC_TRY(msc_graph__read_text(&t->alias, object, "alias", where));
    MSC_TRY(msc_json_get_text(&dtype, object, "dtype", where));
    MSC_TRY(msc_graph__read_text(&layout, object, "layout", where));
    MSC_TRY(msc_graph__read_dtype(t, dtype));
    MSC_TRY(msc_graph__read_layout(t, layout));
    MSC_TRY(read_shape(t, object));
    return read_dim_prims(t, r, object);
}

#define MAX_BODIES 2

static enum msc_status read_inputs(struct msc_read_joint *node, struct msc_graph_reader *r,
                                   const cJSON *object) {
    const cJSON *list, *item;
    MSC_TRY(msc_graph__read_array(&list, object, "inputs", node->where));
    int32_t *inputs =
        msc_arena_array(&r->scratch, (size_t)cJSON_GetArraySize(list), sizeof(inputs[0]));
    MSC_TRY(MSC_ALLOCATED(inputs));
    cJSON_ArrayForEach(item, list) {
        const char *name;
        MSC_TRY(msc_graph__read_element(&name, item, "inputs", node->where));
        MSC_TRY(msc_graph__read_input(&inputs[node->spec.n_inputs++], r, name, node->where));
    }
    node->spec.inputs = inputs;
    MSC_TRY(msc_graph__read_array(&list, object, "parents", node->where));
    cJSON_ArrayForEach(item, list) {
        const char *name;
        MSC_TRY(msc_graph__read_element(&name, item, "parents", node->where));
        if (msc_graph_find_joint(r->g, name) == MSC_NO_ID) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: cannot find parent '%s'", node->where, name);
        }
    }
    return MSC_OK;
}

static enum msc_status read_weights(struct msc_read_joint *node, struct msc_graph_reader *r,
                                    const cJSON *object) {
    if (!msc_json_get(object, "weights")) {
        return MSC_OK;
    }
    const cJSON *map, *item;
    MSC_TRY(msc_json_get_object(&map, object, "weights", node->where));
    struct msc_weight_spec *weights =
        msc_arena_array(&r->scratch, (size_t)cJSON_GetArraySize(map), sizeof(weights[0]));
    MSC_TRY(MSC_ALLOCATED(weights));
    cJSON_ArrayForEach(item, map) {
        struct msc_weight_spec *weight = &weights[node->spec.n_weights++];
        struct msc_read_tensor t;
        weight->role = item->string;
        MSC_TRY(read_tensor(&t, r, item, node->where));
        MSC_TRY(msc_graph__read_weight(&weight->tensor, r, &t, weight->role, &node->spec));
    }
    node->spec.weights = weights;
    return MSC_OK;
}

static enum msc_status read_outputs(struct msc_read_joint *node, struct msc_graph_reader *r,
                                    const cJSON *object) {
    const cJSON *list, *item;
    MSC_TRY(msc_json_get_array(&list, object, "outputs", node->where));
    size_t n = (size_t)cJSON_GetArraySize(list);
    struct msc_read_tensor *outputs = msc_arena_array(&r->scratch, n, sizeof(outputs[0]));
    const char **aliases = msc_arena_array(&r->scratch, n, sizeof(aliases[0]));
    MSC_TRY(MSC_ALLOCATED(outputs && aliases));
    if (n == 0) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: '%s' has no outputs", node->where, node->spec.name);
    }
    cJSON_ArrayForEach(item, list) {
        int32_t i = node->spec.n_outputs++;
        MSC_TRY(read_tensor(&outputs[i], r, item, node->where));
        MSC_TRY(msc_graph__check_output_name(r, node->spec.name, i, outputs[i].name, node->where));
        aliases[i] = outputs[i].alias;
    }
    node->outputs = outputs;
    node->spec.aliases = aliases;
    return MSC_OK;
}

static enum msc_status read_node(struct msc_read_joint *node, struct msc_graph_reader *r,
                                 const cJSON *object) {
    const char *optype;
    MSC_TRY(msc_json_get_text(&node->spec.name, object, "name", node->where));
    MSC_TRY(msc_json_get_text(&optype, object, "optype", node->where));
    MSC_TRY(msc_graph__read_op(&node->spec.op, r, node->spec.name, optype, node->where));
    if (msc_json_get(object, "scope")) {
        MSC_TRY(msc_json_get_text(&node->spec.scope, object, "scope", node->where));
    }
    struct msc_attr *attrs;
    MSC_TRY(msc_graph__read_attrs(&attrs, &node->spec.n_attrs, r, object, node->where));
    node->spec.attrs = attrs;
    MSC_TRY(read_outputs(node, r, object));
    MSC_TRY(read_inputs(node, r, object));
    return read_weights(node, r, object);
}

// Reads the bodies of control flow.
static enum msc_status read_bodies(struct msc_read_joint *node, struct msc_graph_reader *r,
                                   const cJSON *object, struct msc_graph *bodies[MAX_BODIES]) {
    const cJSON *list, *item;
    MSC_TRY(msc_graph__read_array(&list, object, "graphs", node->where));
    cJSON_ArrayForEach(item, list) {
        if (node->spec.n_graphs == MAX_BODIES) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: the node has more than %d graphs", node->where,
                            MAX_BODIES);
        }
        int32_t i = node->spec.n_graphs;
        MSC_TRY(msc_graph__read_body(&bodies[i], r, item, node->spec.op, node->spec.name, i));
        node->spec.n_graphs++;
    }
    node->spec.graphs = (const struct msc_graph *const *)bodies;
    return MSC_OK;
}

enum msc_status msc_graph__read_node(struct msc_graph_reader *r, const cJSON *object,
                                     const char *where) {
    struct msc_read_joint node = {.where = where};
    struct msc_graph *bodies[MAX_BODIES] = {NULL};
    int32_t joint;
    enum msc_status status = read_node(&node, r, object);
    if (status == MSC_OK) {
        status = read_bodies(&node, r, object, bodies);
    }
    if (status == MSC_OK) {
        status = msc_graph__read_joint(&joint, r, &node);
    }
    for (int i = 0; i < MAX_BODIES; i++) {
        msc_graph_destroy(bodies[i]);
    }
    return status == MSC_E_INVALID ? msc_status_prefix(MSC_E_FORMAT, "%s", where) : status;
}
