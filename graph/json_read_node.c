// Reads one node of the JSON form: its tensors, operands and attributes.
#include "graph/json_reader.h"

#include <string.h>

// A tensor as the file describes it.
struct entry {
    const char *name;
    const char *alias;
    struct msc_infer_tensor type;
};

static enum msc_status read_shape(struct entry *entry, const cJSON *object, const char *where) {
    const cJSON *list, *item;
    MSC_TRY(msc_json_get_array(&list, object, "shape", where));
    if (cJSON_GetArraySize(list) > MSC_MAX_DIMS) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: '%s' has %d dimensions, expected at most %d", where,
                        entry->name, cJSON_GetArraySize(list), MSC_MAX_DIMS);
    }
    cJSON_ArrayForEach(item, list) {
        double value = item->valuedouble;
        bool is_whole = cJSON_IsNumber(item) && value >= -1 && value <= 9007199254740992.0 &&
                        value == (double)(int64_t)value;
        if (!is_whole) {
            return MSC_FAIL(MSC_E_FORMAT,
                            "%s: shape of '%s' has an element that is not a dimension", where,
                            entry->name);
        }
        entry->type.dims[entry->type.n_dims++] = (struct msc_dim){(int64_t)value, MSC_NO_ID};
    }
    return MSC_OK;
}

// Reads the prims of symbolic dimensions, whose length is -1.
static enum msc_status read_dim_prims(struct entry *entry, const struct msc_graph_reader *r,
                                      const cJSON *object, const char *where) {
    const cJSON *list;
    MSC_TRY(msc_graph__read_array(&list, object, "prims", where));
    int n = cJSON_GetArraySize(list);
    if (n != 0 && n != entry->type.n_dims) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: '%s' has %d prims, expected %d", where, entry->name, n,
                        entry->type.n_dims);
    }
    for (int i = 0; i < entry->type.n_dims; i++) {
        struct msc_dim *dim = &entry->type.dims[i];
        if (dim->value >= 0) {
            continue;
        }
        const char *prim = "";
        if (n > 0) {
            MSC_TRY(msc_graph__read_element(&prim, cJSON_GetArrayItem(list, i), "prims", where));
        }
        dim->prim = msc_graph_find_prim(r->g, prim);
        if (dim->prim == MSC_NO_ID) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: dimension %d of '%s' names the unknown prim '%s'",
                            where, i, entry->name, prim);
        }
    }
    return MSC_OK;
}

static enum msc_status read_tensor(struct entry *entry, const struct msc_graph_reader *r,
                                   const cJSON *object, const char *where) {
    const char *dtype, *layout;
    *entry = (struct entry){.type.n_values = -1};
    MSC_TRY(msc_json_get_text(&entry->name, object, "name", where));
    MSC_TRY(msc_graph__read_text(&entry->alias, object, "alias", where));
    MSC_TRY(msc_json_get_text(&dtype, object, "dtype", where));
    MSC_TRY(msc_graph__read_text(&layout, object, "layout", where));
    entry->type.dtype = msc_dtype_find(dtype);
    if (entry->type.dtype == MSC_DTYPE_NONE) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: '%s' has the unknown type '%s'", where, entry->name,
                        dtype);
    }
    if (strlen(layout) >= sizeof(entry->type.layout)) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: layout '%s' of '%s' is too long", where, layout,
                        entry->name);
    }
    memcpy(entry->type.layout, layout, strlen(layout) + 1);
    MSC_TRY(read_shape(entry, object, where));
    return read_dim_prims(entry, r, object, where);
}

// True if both have the same type and shape; all symbolic dimensions are considered equal.
static bool is_same_type(const struct msc_infer_tensor *a, const struct msc_tensor *b) {
    bool is_same = a->dtype == b->dtype && a->n_dims == b->n_dims;
    for (int i = 0; is_same && i < a->n_dims; i++) {
        is_same = a->dims[i].value == b->dims[i];
    }
    return is_same;
}

static enum msc_status fail_type(const struct entry *entry, const struct msc_tensor *t,
                                 const char *where, const char *source) {
    int64_t dims[MSC_MAX_DIMS];
    for (int i = 0; i < entry->type.n_dims; i++) {
        dims[i] = entry->type.dims[i].value;
    }
    char here[MSC_DIMS_TEXT_BYTES], there[MSC_DIMS_TEXT_BYTES];
    return MSC_FAIL(MSC_E_FORMAT, "%s: '%s' is %s%s, but %s%s according to its %s", where,
                    entry->name, msc_dtype_name(entry->type.dtype),
                    msc_dims_format(here, entry->type.n_dims, dims), msc_dtype_name(t->dtype),
                    msc_dims_format(there, t->n_dims, t->dims), source);
}

static void tensor_of_entry(struct msc_tensor *t, const struct entry *entry) {
    *t = (struct msc_tensor){
        .name = entry->name,
        .alias = entry->alias,
        .layout = entry->type.layout,
        .dtype = entry->type.dtype,
        .n_dims = entry->type.n_dims,
    };
    for (int i = 0; i < t->n_dims; i++) {
        t->dims[i] = entry->type.dims[i].value;
        t->prims[i] = entry->type.dims[i].prim;
    }
}

static enum msc_status read_weight(int32_t *out, struct msc_graph_reader *r, const cJSON *object,
                                   const char *where) {
    struct entry entry;
    MSC_TRY(read_tensor(&entry, r, object, where));
    *out = msc_graph__live_tensor(r->g, entry.name);
    if (*out == MSC_NO_ID) {
        struct msc_tensor t;
        tensor_of_entry(&t, &entry);
        MSC_TRY(msc_graph__add_empty_weight(out, r->g, &t));
        if (r->weights == NULL) {
            return MSC_OK;
        }
        const char *stored = msc_arena_printf(&r->scratch, "%s%s", r->prefix, entry.name);
        MSC_TRY(MSC_ALLOCATED(stored));
        const struct msc_array *data = msc_array_list_find(r->weights, stored);
        if (data == NULL) {
            return MSC_FAIL(MSC_E_NOT_FOUND, "%s: the weights file has no elements for weight '%s'",
                            where, entry.name);
        }
        return msc_graph_set_weight_data(r->g, *out, data);
    }
    const struct msc_tensor *t = &r->g->tensors[*out]->tensor;
    if (t->producer != MSC_NO_ID || !is_same_type(&entry.type, t)) {
        return fail_type(&entry, t, where, "first mention");
    }
    return MSC_OK;
}

#define MAX_BODIES 2

// A node while it is being read.
struct node {
    struct msc_joint_spec spec;
    struct entry *outputs;
    const char *where;
};

static enum msc_status read_inputs(struct node *node, struct msc_graph_reader *r,
                                   const cJSON *object) {
    const cJSON *list, *item;
    MSC_TRY(msc_graph__read_array(&list, object, "inputs", node->where));
    int32_t *inputs =
        msc_arena_array(&r->scratch, (size_t)cJSON_GetArraySize(list), sizeof(inputs[0]));
    MSC_TRY(MSC_ALLOCATED(inputs));
    cJSON_ArrayForEach(item, list) {
        const char *name;
        MSC_TRY(msc_graph__read_element(&name, item, "inputs", node->where));
        int32_t tensor = msc_graph__live_tensor(r->g, name);
        if (tensor == MSC_NO_ID && name[0] != '\0') {
            return MSC_FAIL(MSC_E_FORMAT, "%s: input '%s' must come before the node that reads it",
                            node->where, name);
        }
        inputs[node->spec.n_inputs++] = tensor;
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

static enum msc_status read_weights(struct node *node, struct msc_graph_reader *r,
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
        weight->role = item->string;
        MSC_TRY(read_weight(&weight->tensor, r, item, node->where));
    }
    node->spec.weights = weights;
    return MSC_OK;
}

static enum msc_status read_outputs(struct node *node, struct msc_graph_reader *r,
                                    const cJSON *object) {
    const cJSON *list, *item;
    MSC_TRY(msc_json_get_array(&list, object, "outputs", node->where));
    size_t n = (size_t)cJSON_GetArraySize(list);
    node->outputs = msc_arena_array(&r->scratch, n, sizeof(node->outputs[0]));
    const char **aliases = msc_arena_array(&r->scratch, n, sizeof(aliases[0]));
    MSC_TRY(MSC_ALLOCATED(node->outputs && aliases));
    if (n == 0) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: '%s' has no outputs", node->where, node->spec.name);
    }
    cJSON_ArrayForEach(item, list) {
        int32_t i = node->spec.n_outputs++;
        struct entry *entry = &node->outputs[i];
        MSC_TRY(read_tensor(entry, r, item, node->where));
        const char *name = msc_arena_printf(&r->scratch, "%s:%d", node->spec.name, (int)i);
        MSC_TRY(MSC_ALLOCATED(name));
        if (strcmp(entry->name, name) != 0) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: output %d is called '%s', expected '%s'",
                            node->where, (int)i, entry->name, name);
        }
        aliases[i] = entry->alias;
    }
    node->spec.aliases = aliases;
    return MSC_OK;
}

static enum msc_status read_node(struct node *node, struct msc_graph_reader *r,
                                 const cJSON *object) {
    const char *optype;
    MSC_TRY(msc_json_get_text(&node->spec.name, object, "name", node->where));
    MSC_TRY(msc_json_get_text(&optype, object, "optype", node->where));
    if (!msc_op_find(&node->spec.op, optype)) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "%s: '%s' has the unknown operator '%s'", node->where,
                        node->spec.name, optype);
    }
    if (node->spec.name[0] == '\0' || msc_graph_find_joint(r->g, node->spec.name) != MSC_NO_ID) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: the name '%s' is empty or occurs twice", node->where,
                        node->spec.name);
    }
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

static enum msc_status add_input(struct msc_graph_reader *r, const struct node *node) {
    if (node->spec.n_outputs != 1 || node->spec.n_inputs != 0 || node->spec.n_weights != 0) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: '%s' is an input, expected one output and no operands",
                        node->where, node->spec.name);
    }
    struct msc_tensor t;
    int32_t tensor;
    tensor_of_entry(&t, &node->outputs[0]);
    return msc_graph_add_symbolic_input(&tensor, r->g, node->spec.name, t.alias, t.dtype, t.layout,
                                        t.n_dims, t.dims, t.prims);
}

// Checks that the inferred type and shape of an output agree with the file. The symbols and the
// layout, if the file has one, are then taken from the file, because the file may be more specific.
static enum msc_status check_output(struct msc_graph_reader *r, struct msc_tensor *t,
                                    const struct node *node, int32_t index) {
    const struct entry *entry = &node->outputs[index];
    if (!is_same_type(&entry->type, t)) {
        return fail_type(entry, t, node->where, "inputs");
    }
    const char *layout = msc_arena_strdup(&r->g->arena, entry->type.layout);
    MSC_TRY(MSC_ALLOCATED(layout));
    if (layout[0] != '\0' && strlen(layout) != (size_t)t->n_dims) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: layout '%s' of '%s' does not name %d axes", node->where,
                        layout, entry->name, t->n_dims);
    }
    t->layout = layout[0] == '\0' ? t->layout : layout;
    for (int i = 0; i < t->n_dims; i++) {
        t->prims[i] = entry->type.dims[i].prim;
    }
    return MSC_OK;
}

static enum msc_status json_read_node_add_node(struct msc_graph_reader *r,
                                               const struct node *node) {
    if (node->spec.op == MSC_OP_INPUT) {
        return add_input(r, node);
    }
    int32_t joint;
    size_t n = (size_t)node->spec.n_outputs;
    if (r->weights == NULL) {
        struct msc_infer_tensor *declared = msc_arena_array(&r->scratch, n, sizeof(declared[0]));
        MSC_TRY(MSC_ALLOCATED(declared));
        for (size_t i = 0; i < n; i++) {
            declared[i] = node->outputs[i].type;
        }
        return msc_graph__add_joint(&joint, r->g, &node->spec, declared);
    }
    MSC_TRY(msc_graph_add_joint(&joint, r->g, &node->spec));
    for (size_t i = 0; i < n; i++) {
        int32_t output = r->g->joints[joint]->outputs[i];
        MSC_TRY(check_output(r, &r->g->tensors[output]->tensor, node, (int32_t)i));
    }
    return MSC_OK;
}

// Reads the bodies of control flow.
static enum msc_status read_bodies(struct node *node, struct msc_graph_reader *r,
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
    struct node node = {.where = where};
    struct msc_graph *bodies[MAX_BODIES] = {NULL};
    enum msc_status status = read_node(&node, r, object);
    if (status == MSC_OK) {
        status = read_bodies(&node, r, object, bodies);
    }
    if (status == MSC_OK) {
        status = json_read_node_add_node(r, &node);
    }
    for (int i = 0; i < MAX_BODIES; i++) {
        msc_graph_destroy(bodies[i]);
    }
    return status == MSC_E_INVALID ? msc_status_prefix(MSC_E_FORMAT, "%s", where) : status;
}
