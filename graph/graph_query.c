#include "graph/graph_internal.h"
#include "graph/op_attrs.h"
#include "graph/wide.h"

#include <assert.h>
#include <string.h>

const char *msc_graph_name(const struct msc_graph *g) {
    return g->name;
}

int32_t msc_graph_n_joints(const struct msc_graph *g) {
    return g->n_joints;
}

int32_t msc_graph_n_tensors(const struct msc_graph *g) {
    return g->n_tensors;
}

int32_t msc_graph_n_prims(const struct msc_graph *g) {
    return g->n_prims;
}

const struct msc_joint *msc_graph_joint(const struct msc_graph *g, int32_t id) {
    assert(id >= 0 && id < g->n_joints);
    return &g->joints[id]->joint;
}

const struct msc_tensor *msc_graph_tensor(const struct msc_graph *g, int32_t id) {
    assert(id >= 0 && id < g->n_tensors);
    return &g->tensors[id]->tensor;
}

const struct msc_prim *msc_graph_prim(const struct msc_graph *g, int32_t id) {
    assert(id >= 0 && id < g->n_prims);
    return g->prims[id];
}

// Returns ids[i]; a negative `i` counts from the end.
static int32_t graph_query_pick(const int32_t ids[], int32_t n, int32_t i) {
    i = i < 0 ? i + n : i;
    assert(i >= 0 && i < n);
    return ids[i];
}

int32_t msc_graph_n_inputs(const struct msc_graph *g) {
    return g->n_inputs;
}

int32_t msc_graph_input(const struct msc_graph *g, int32_t i) {
    return graph_query_pick(g->inputs, g->n_inputs, i);
}

int32_t msc_graph_n_outputs(const struct msc_graph *g) {
    return g->n_outputs;
}

int32_t msc_graph_output(const struct msc_graph *g, int32_t i) {
    return graph_query_pick(g->outputs, g->n_outputs, i);
}

int32_t msc_joint_input(const struct msc_joint *j, int32_t i) {
    return graph_query_pick(j->inputs, j->n_inputs, i);
}

int32_t msc_joint_output(const struct msc_joint *j, int32_t i) {
    return graph_query_pick(j->outputs, j->n_outputs, i);
}

int32_t msc_joint_parent(const struct msc_joint *j, int32_t i) {
    return graph_query_pick(j->parents, j->n_parents, i);
}

int32_t msc_joint_child(const struct msc_joint *j, int32_t i) {
    return graph_query_pick(j->children, j->n_children, i);
}

int32_t msc_graph__live_joint(const struct msc_graph *g, const char *name) {
    int32_t id = msc_graph__names_find(&g->joint_names, name);
    return id == MSC_NO_ID || g->joints[id]->is_dead ? MSC_NO_ID : id;
}

int32_t msc_graph__live_tensor(const struct msc_graph *g, const char *name) {
    int32_t id = msc_graph__names_find(&g->tensor_names, name);
    return id == MSC_NO_ID || g->tensors[id]->is_dead ? MSC_NO_ID : id;
}

int32_t msc_graph_find_joint(const struct msc_graph *g, const char *name) {
    return msc_graph__live_joint(g, name);
}

int32_t msc_graph_find_tensor(const struct msc_graph *g, const char *name) {
    int32_t id = msc_graph__live_tensor(g, name);
    if (id != MSC_NO_ID || name[0] == '\0') {
        return id;
    }
    id = msc_graph__names_find(&g->aliases, name);
    if (id == MSC_NO_ID) {
        return MSC_NO_ID;
    }
    if (!g->tensors[id]->is_dead && strcmp(g->tensors[id]->tensor.alias, name) == 0) {
        return id;
    }
    // The tensor in the table no longer has this alias, so look for another tensor that has it.
    for (id = 0; id < g->n_tensors; id++) {
        if (!g->tensors[id]->is_dead && strcmp(g->tensors[id]->tensor.alias, name) == 0) {
            return id;
        }
    }
    return MSC_NO_ID;
}

int32_t msc_graph_find_prim(const struct msc_graph *g, const char *name) {
    return msc_graph__names_find(&g->prim_names, name);
}

int32_t msc_graph_consumers(const struct msc_graph *g, int32_t tensor, const int32_t **joints) {
    assert(g->is_final && tensor >= 0 && tensor < g->n_tensors);
    if (joints != NULL) {
        *joints = g->tensors[tensor]->consumers;
    }
    return g->tensors[tensor]->n_consumers;
}

int32_t msc_graph_producer(const struct msc_graph *g, int32_t tensor) {
    assert(tensor >= 0 && tensor < g->n_tensors);
    const struct msc_graph_tensor *t = g->tensors[tensor];
    if (t->tensor.producer != MSC_NO_ID) {
        return t->tensor.producer;
    }
    assert(g->is_final);
    return t->consumers[0];
}

int32_t msc_graph_weight_of(const struct msc_graph *g, int32_t tensor) {
    const struct msc_tensor *t = msc_graph_tensor(g, tensor);
    if (t->producer == MSC_NO_ID) {
        return tensor;
    }
    const struct msc_joint *producer = msc_graph_joint(g, t->producer);
    return producer->op == MSC_OP_CONSTANT ? producer->operands[0] : MSC_NO_ID;
}

bool msc_graph_is_output(const struct msc_graph *g, int32_t tensor) {
    for (int32_t i = 0; i < g->n_outputs; i++) {
        if (g->outputs[i] == tensor) {
            return true;
        }
    }
    return false;
}

bool msc_graph_is_bound(const struct msc_graph *g) {
    for (int32_t i = 0; i < g->n_tensors; i++) {
        if (msc_tensor_n_elements(&g->tensors[i]->tensor) < 0) {
            return false;
        }
    }
    return true;
}

int32_t msc_graph_entries(const struct msc_graph *g, const int32_t **joints) {
    assert(g->is_final);
    *joints = g->entries;
    return g->n_entries;
}

int32_t msc_graph_exits(const struct msc_graph *g, const int32_t **joints) {
    assert(g->is_final);
    *joints = g->exits;
    return g->n_exits;
}

const char *msc_tensor_label(const struct msc_tensor *t) {
    return t->alias[0] != '\0' ? t->alias : t->name;
}

int64_t msc_tensor_n_elements(const struct msc_tensor *t) {
    return msc_dims_product(t->n_dims, t->dims);
}

int msc_tensor_axis(const struct msc_tensor *t, char letter) {
    const char *at = letter == '\0' ? NULL : strchr(t->layout, letter);
    return at == NULL ? -1 : (int)(at - t->layout);
}

int64_t msc_tensor_dim(const struct msc_tensor *t, int axis) {
    axis = axis < 0 ? axis + t->n_dims : axis;
    assert(axis >= 0 && axis < t->n_dims);
    return t->dims[axis];
}

const char *msc_joint_attr(const struct msc_joint *j, const char *key) {
    for (int32_t i = 0; i < j->n_attrs; i++) {
        if (strcmp(j->attrs[i].key, key) == 0) {
            return j->attrs[i].value;
        }
    }
    return NULL;
}

bool msc_joint_attr_i64(const struct msc_joint *j, const char *key, int64_t *out) {
    const char *value = msc_joint_attr(j, key);
    return value != NULL && msc_attr_read_int(out, value);
}

bool msc_joint_attr_float(const struct msc_joint *j, const char *key, float *out) {
    const char *value = msc_joint_attr(j, key);
    return value != NULL && msc_attr_read_float(out, value);
}

bool msc_joint_attr_bool(const struct msc_joint *j, const char *key, bool *out) {
    const char *value = msc_joint_attr(j, key);
    return value != NULL && msc_attr_read_bool(out, value);
}

int msc_joint_attr_list(const struct msc_joint *j, const char *key, int64_t out[], int max) {
    const char *value = msc_joint_attr(j, key);
    return value == NULL ? -1 : msc_attr_read_ints(out, max, value);
}

int msc_joint_attr_floats(const struct msc_joint *j, const char *key, float out[], int max) {
    const char *value = msc_joint_attr(j, key);
    return value == NULL ? -1 : msc_attr_read_floats(out, max, value);
}

int32_t msc_joint_weight(const struct msc_joint *j, const char *role) {
    for (int32_t i = 0; i < j->n_weights; i++) {
        if (strcmp(j->weights[i].role, role) == 0) {
            return j->weights[i].tensor;
        }
    }
    return MSC_NO_ID;
}

int msc_joint_operand(const struct msc_joint *j, const char *role) {
    for (int32_t i = 0; i < j->n_operands; i++) {
        struct msc_op_role at;
        if (j->operands[i] != MSC_NO_ID && msc_op_role(j->op, i, &at) &&
            strncmp(at.name, role, (size_t)at.length) == 0 && role[at.length] == '\0') {
            return i;
        }
    }
    return -1;
}

const struct msc_graph *msc_graph_own(const struct msc_graph *g) {
    return g->own == NULL ? g : g->own;
}

bool msc_graph_is_widened(const struct msc_graph *g, int32_t tensor) {
    return msc_graph_own(g)->tensors[tensor]->tensor.dtype != g->tensors[tensor]->tensor.dtype;
}
