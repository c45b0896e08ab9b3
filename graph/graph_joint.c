// Adds a joint: chooses its name, completes its attributes and infers its outputs.
#include "graph/graph_internal.h"
#include "graph/op_attrs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *msc_graph__default_scope(enum msc_op op) {
    return op == MSC_OP_INPUT || op == MSC_OP_CONSTANT ? "" : "block";
}

// Returns the given name if it is free, else the operator's hint with the first free number.
static const char *make_name(struct msc_graph *g, const struct msc_joint_spec *spec) {
    const char *name = spec->name == NULL ? "" : spec->name;
    if (name[0] != '\0' && msc_graph__live_joint(g, name) == MSC_NO_ID) {
        return msc_arena_strdup(&g->arena, name);
    }
    const char *hint = msc_op_info(spec->op)->hint;
    char text[96];
    snprintf(text, sizeof(text), "%s", hint);
    for (int n = 1; msc_graph__live_joint(g, text) != MSC_NO_ID; n++) {
        snprintf(text, sizeof(text), "%s_%d", hint, n);
    }
    return msc_arena_strdup(&g->arena, text);
}

static int compare_attrs(const void *a, const void *b) {
    return strcmp(((const struct msc_attr *)a)->key, ((const struct msc_attr *)b)->key);
}

static enum msc_status check_keys(const struct msc_joint *joint, const struct msc_attr sorted[],
                                  int32_t n) {
    for (int32_t i = 1; i < n; i++) {
        if (strcmp(sorted[i - 1].key, sorted[i].key) == 0) {
            return MSC_FAIL(MSC_E_INVALID, "joint '%s': attribute %s is given twice", joint->name,
                            sorted[i].key);
        }
    }
    return MSC_OK;
}

// Copies the given attributes, adds defaults for missing ones, and sorts by key unless the graph
// keeps the given order.
static enum msc_status complete_attrs(struct msc_joint *joint, struct msc_graph *g,
                                      const struct msc_joint_spec *spec) {
    int n_defaults;
    const struct msc_op_attr *defaults = msc_op_attrs(spec->op, &n_defaults);
    size_t most = (size_t)spec->n_attrs + (size_t)n_defaults;
    struct msc_attr *attrs = msc_arena_array(&g->arena, most, sizeof(attrs[0]));
    MSC_TRY(MSC_ALLOCATED(attrs));
    int32_t n = 0;
    for (int32_t i = 0; i < spec->n_attrs; i++) {
        const struct msc_attr *given = &spec->attrs[i];
        const struct msc_op_attr *row = msc_op_attr_find(spec->op, given->key);
        if (row != NULL && !msc_attr_is_valid(row->type, given->value)) {
            return MSC_FAIL(MSC_E_INVALID, "joint '%s': attribute %s is '%s', expected %s",
                            joint->name, given->key, given->value, msc_attr_type_name(row->type));
        }
        attrs[n].key = msc_arena_strdup(&g->arena, given->key);
        attrs[n].value = msc_arena_strdup(&g->arena, given->value);
        MSC_TRY(MSC_ALLOCATED(attrs[n].key && attrs[n].value));
        n++;
    }
    for (int i = 0; i < n_defaults; i++) {
        const char *key = defaults[i].key;
        bool is_given = msc_graph__find_attr(spec->attrs, spec->n_attrs, key, strlen(key)) != NULL;
        bool is_written = defaults[i].value != NULL && strcmp(defaults[i].value, MSC_ATTR_LEFT_OUT);
        if (is_written && !is_given) {
            attrs[n++] = (struct msc_attr){key, defaults[i].value};
        }
    }
    struct msc_attr *sorted = msc_arena_array(&g->arena, most, sizeof(sorted[0]));
    MSC_TRY(MSC_ALLOCATED(sorted));
    for (int32_t i = 0; i < n; i++) {
        sorted[i] = attrs[i];
    }
    qsort(sorted, (size_t)n, sizeof(sorted[0]), compare_attrs);
    joint->attrs = g->notes.keeps_attr_order ? attrs : sorted;
    joint->n_attrs = n;
    return check_keys(joint, sorted, n);
}

static enum msc_status hold_bodies(struct msc_joint *joint, struct msc_graph *g,
                                   const struct msc_joint_spec *spec) {
    const struct msc_graph **graphs =
        msc_arena_array(&g->arena, (size_t)spec->n_graphs + 1, sizeof(graphs[0]));
    MSC_TRY(MSC_ALLOCATED(graphs));
    for (int32_t i = 0; i < spec->n_graphs; i++) {
        MSC_TRY(msc_grow(&g->bodies, &g->bodies_capacity, g->n_bodies + 1, sizeof(g->bodies[0])));
        g->bodies[g->n_bodies++] = msc_graph_retain(spec->graphs[i]);
        graphs[i] = spec->graphs[i];
    }
    joint->n_graphs = spec->n_graphs;
    joint->graphs = graphs;
    return MSC_OK;
}

enum msc_status msc_graph__new_joint(struct msc_graph_joint **out, struct msc_graph *g,
                                     const struct msc_joint_spec *spec, int n_operands,
                                     int n_outputs) {
    struct msc_graph_joint *j = msc_arena_alloc(&g->arena, sizeof(*j));
    MSC_TRY(MSC_ALLOCATED(j));
    const char *scope = spec->scope == NULL ? msc_graph__default_scope(spec->op) : spec->scope;
    j->joint.op = spec->op;
    j->joint.name = make_name(g, spec);
    j->joint.shared_ref = "";
    j->joint.scope = msc_arena_strdup(&g->arena, scope);
    j->operands = msc_arena_array(&g->arena, (size_t)n_operands, sizeof(int32_t));
    j->inputs = msc_arena_array(&g->arena, (size_t)n_operands, sizeof(int32_t));
    j->weights = msc_arena_array(&g->arena, (size_t)n_operands, sizeof(j->weights[0]));
    j->outputs = msc_arena_array(&g->arena, (size_t)n_outputs, sizeof(int32_t));
    MSC_TRY(MSC_ALLOCATED(j->joint.name && j->joint.scope && j->operands && j->inputs &&
                          j->weights && j->outputs));
    j->joint.operands = j->operands;
    j->joint.inputs = j->inputs;
    j->joint.weights = j->weights;
    j->joint.outputs = j->outputs;
    j->joint.n_operands = n_operands;
    j->joint.n_outputs = n_outputs;
    *out = j;
    MSC_TRY(hold_bodies(&j->joint, g, spec));
    return complete_attrs(&j->joint, g, spec);
}

enum msc_status msc_graph__push_joint(struct msc_graph *g, struct msc_graph_joint *joint) {
    int32_t id = g->n_joints;
    MSC_TRY(msc_grow(&g->joints, &g->joints_capacity, (size_t)id + 1, sizeof(g->joints[0])));
    MSC_TRY(msc_graph__names_put(&g->joint_names, joint->joint.name, id));
    joint->joint.id = id;
    g->joints[id] = joint;
    g->n_joints = id + 1;
    g->is_final = false;
    return MSC_OK;
}

void msc_graph__refresh_joint(const struct msc_graph *g, struct msc_graph_joint *j) {
    j->joint.n_inputs = 0;
    j->joint.n_weights = 0;
    for (int32_t i = 0; i < j->joint.n_operands; i++) {
        int32_t tensor = j->operands[i];
        if (tensor == MSC_NO_ID) {
            continue;
        }
        if (g->tensors[tensor]->tensor.producer != MSC_NO_ID) {
            j->inputs[j->joint.n_inputs++] = tensor;
        } else {
            j->weights[j->joint.n_weights++].tensor = tensor;
        }
    }
}

// Reads the elements of a small weight of integers or booleans, so that inference can use them.
static void read_values(struct msc_infer_tensor *out) {
    bool is_whole = msc_dtype_is_integer(out->dtype) || out->dtype == MSC_DTYPE_BOOL;
    int64_t n = msc_array_n_elements(out->data);
    for (int64_t i = 0; is_whole && n <= MSC_INFER_MAX_VALUES && i < n; i++) {
        int64_t value = msc_array_get_i64(out->data, i);
        // msc_array_get_i64 clamps larger elements to INT64_MAX.
        if (out->dtype == MSC_DTYPE_U64 && value == INT64_MAX) {
            return;
        }
        out->values[i] = (struct msc_dim){value, MSC_NO_ID};
    }
    out->n_values = is_whole && n <= MSC_INFER_MAX_VALUES ? (int)n : -1;
}

void msc_graph__infer_tensor(struct msc_infer_tensor *out, const struct msc_graph *g,
                             int32_t tensor) {
    const struct msc_graph_tensor *t = g->tensors[tensor];
    memset(out, 0, sizeof(*out));
    out->dtype = t->tensor.dtype;
    out->n_dims = t->tensor.n_dims;
    for (int i = 0; i < t->tensor.n_dims; i++) {
        out->dims[i] = (struct msc_dim){t->tensor.dims[i], t->tensor.prims[i]};
    }
    snprintf(out->layout, sizeof(out->layout), "%s", t->tensor.layout);
    int32_t weight = msc_graph_weight_of(g, tensor);
    out->data = weight == MSC_NO_ID ? NULL : g->tensors[weight]->tensor.data;
    out->n_values = t->n_values;
    for (int32_t i = 0; i < t->n_values; i++) {
        out->values[i] = t->values[i];
    }
    if (out->n_values < 0 && out->data != NULL) {
        read_values(out);
    }
}

static enum msc_status infer_outputs(struct msc_infer_tensor outputs[], struct msc_graph *g,
                                     const struct msc_graph_joint *j, struct msc_arena *scratch) {
    size_t n = (size_t)j->joint.n_operands;
    struct msc_infer_tensor *tensors = msc_arena_array(scratch, n, sizeof(tensors[0]));
    const struct msc_infer_tensor **operands = msc_arena_array(scratch, n, sizeof(operands[0]));
    MSC_TRY(MSC_ALLOCATED(tensors && operands));
    for (size_t i = 0; i < n; i++) {
        if (j->operands[i] != MSC_NO_ID) {
            msc_graph__infer_tensor(&tensors[i], g, j->operands[i]);
            operands[i] = &tensors[i];
        }
    }
    for (int32_t i = 0; i < j->joint.n_outputs; i++) {
        outputs[i].n_values = -1;
    }
    struct msc_infer call = {
        .graph = g,
        .joint = &j->joint,
        .n_operands = j->joint.n_operands,
        .operands = operands,
        .n_outputs = j->joint.n_outputs,
        .outputs = outputs,
    };
    return msc_infer(&call);
}

static enum msc_status add_output(struct msc_graph *g, struct msc_graph_joint *j, int32_t index,
                                  const char *alias, const struct msc_infer_tensor *inferred) {
    struct msc_tensor t = {
        .name = msc_arena_printf(&g->arena, "%s:%d", j->joint.name, (int)index),
        .alias = alias == NULL ? "" : alias,
        .layout = inferred->layout,
        .dtype = inferred->dtype,
        .n_dims = inferred->n_dims,
        .producer = g->n_joints,
        .output = index,
    };
    MSC_TRY(MSC_ALLOCATED(t.name));
    for (int i = 0; i < inferred->n_dims && i < MSC_MAX_DIMS; i++) {
        t.dims[i] = inferred->dims[i].value;
        t.prims[i] = inferred->dims[i].prim;
    }
    MSC_TRY(msc_graph__add_tensor(&j->outputs[index], g, &t));
    struct msc_graph_tensor *added = g->tensors[j->outputs[index]];
    if (inferred->n_values >= 0) {
        size_t n = (size_t)inferred->n_values;
        added->values = msc_arena_array(&g->arena, n, sizeof(added->values[0]));
        MSC_TRY(MSC_ALLOCATED(added->values));
        memcpy(added->values, inferred->values, n * sizeof(added->values[0]));
        added->n_values = inferred->n_values;
    }
    return MSC_OK;
}

// On failure, marks the outputs already added as dead, so that no query finds outputs without a
// joint.
static enum msc_status add_outputs(struct msc_graph *g, struct msc_graph_joint *j,
                                   const struct msc_joint_spec *spec,
                                   const struct msc_infer_tensor outputs[]) {
    int32_t n_before = g->n_tensors;
    enum msc_status status = MSC_OK;
    for (int32_t i = 0; i < j->joint.n_outputs && status == MSC_OK; i++) {
        const char *alias = spec->aliases == NULL ? NULL : spec->aliases[i];
        status = add_output(g, j, i, alias, &outputs[i]);
    }
    if (status == MSC_OK) {
        msc_graph__refresh_joint(g, j);
        status = msc_graph__push_joint(g, j);
    }
    for (int32_t i = n_before; status != MSC_OK && i < g->n_tensors; i++) {
        g->tensors[i]->is_dead = true;
    }
    return status;
}

enum msc_status msc_graph__add_joint(int32_t *out, struct msc_graph *g,
                                     const struct msc_joint_spec *spec,
                                     const struct msc_infer_tensor *declared) {
    if ((unsigned)spec->op >= MSC_OP_COUNT || spec->op == MSC_OP_INPUT || spec->n_outputs < 0) {
        return MSC_FAIL(MSC_E_INVALID,
                        "graph '%s': joint '%s' has an invalid operator or number of outputs",
                        g->name, spec->name == NULL ? "" : spec->name);
    }
    struct msc_arena scratch = {0};
    enum msc_status status = MSC_OK;
    struct msc_graph_joint *j = NULL;
    int n_outputs = spec->n_outputs == 0 ? 1 : spec->n_outputs;
    int n_operands = msc_graph__count_operands(spec);
    MSC_TRY_OUT(msc_graph__new_joint(&j, g, spec, n_operands, n_outputs));
    MSC_TRY_OUT(msc_graph__deal_operands(j, g, spec));
    if (declared == NULL) {
        struct msc_infer_tensor *inferred =
            msc_arena_array(&scratch, (size_t)n_outputs, sizeof(inferred[0]));
        MSC_TRY_OUT(MSC_ALLOCATED(inferred));
        MSC_TRY_OUT(infer_outputs(inferred, g, j, &scratch));
        declared = inferred;
    }
    MSC_TRY_OUT(add_outputs(g, j, spec, declared));
    *out = j->joint.id;
out:
    msc_arena_finish(&scratch);
    return status;
}

enum msc_status msc_graph_add_joint(int32_t *joint, struct msc_graph *g,
                                    const struct msc_joint_spec *spec) {
    return msc_graph__add_joint(joint, g, spec, NULL);
}
