// Changes graphs (replaces tensors, removes joints) and copies them.
#include "graph/graph_internal.h"
#include "graph/wide.h"

#include <assert.h>
#include <string.h>

static enum msc_status check_replacement(const struct msc_tensor *from,
                                         const struct msc_tensor *to) {
    if ((from->producer == MSC_NO_ID) != (to->producer == MSC_NO_ID)) {
        return MSC_FAIL(MSC_E_INVALID,
                        "tensor '%s' cannot replace '%s': only one of them is a weight", to->name,
                        from->name);
    }
    bool fits = from->dtype == to->dtype && from->n_dims == to->n_dims;
    for (int i = 0; fits && i < from->n_dims; i++) {
        fits = from->dims[i] < 0 || to->dims[i] < 0 || from->dims[i] == to->dims[i];
    }
    if (!fits) {
        char expected[MSC_DIMS_TEXT_BYTES], found[MSC_DIMS_TEXT_BYTES];
        return MSC_FAIL(MSC_E_INVALID, "tensor '%s' cannot replace '%s': expected %s%s, found %s%s",
                        to->name, from->name, msc_dtype_name(from->dtype),
                        msc_dims_format(expected, from->n_dims, from->dims),
                        msc_dtype_name(to->dtype), msc_dims_format(found, to->n_dims, to->dims));
    }
    return MSC_OK;
}

// Replaces output `from` by `to`. The alias of `from` moves to `to`, unless `to` is an input of the
// graph or already an output.
static enum msc_status replace_output(struct msc_graph *g, int32_t from, int32_t to) {
    bool was_output = false, is_output = false;
    for (int32_t i = 0; i < g->n_outputs; i++) {
        is_output |= g->outputs[i] == to;
        if (g->outputs[i] == from) {
            g->outputs[i] = to;
            was_output = true;
        }
    }
    const struct msc_tensor *t = &g->tensors[to]->tensor;
    if (!was_output || is_output || g->joints[t->producer]->joint.op == MSC_OP_INPUT) {
        return MSC_OK;
    }
    const char *alias = g->tensors[from]->tensor.alias;
    MSC_TRY(msc_graph_set_alias(g, from, ""));
    return msc_graph_set_alias(g, to, alias);
}

enum msc_status msc_graph_replace_tensor(struct msc_graph *g, int32_t from, int32_t to) {
    assert(from >= 0 && from < g->n_tensors && to >= 0 && to < g->n_tensors);
    if (from == to) {
        return MSC_OK;
    }
    const struct msc_tensor *target = &g->tensors[to]->tensor;
    MSC_TRY(check_replacement(&g->tensors[from]->tensor, target));
    for (int32_t i = 0; i < g->n_joints; i++) {
        struct msc_graph_joint *j = g->joints[i];
        if (j->is_dead || i == target->producer) {
            continue;
        }
        bool is_reader = false;
        for (int32_t k = 0; k < j->joint.n_operands; k++) {
            if (j->operands[k] == from) {
                j->operands[k] = to;
                is_reader = true;
            }
        }
        if (is_reader) {
            msc_graph__refresh_joint(g, j);
        }
    }
    g->is_final = false;
    return target->producer == MSC_NO_ID ? MSC_OK : replace_output(g, from, to);
}

enum msc_status msc_graph_replace_operand(struct msc_graph *g, int32_t joint, int32_t operand,
                                          int32_t to) {
    struct msc_graph_joint *j = g->joints[joint];
    const struct msc_graph_tensor *from = g->tensors[j->operands[operand]];
    MSC_TRY(check_replacement(&from->tensor, &g->tensors[to]->tensor));
    j->operands[operand] = to;
    msc_graph__refresh_joint(g, j);
    g->is_final = false;
    return MSC_OK;
}

enum msc_status msc_graph_remove_joint(struct msc_graph *g, int32_t joint) {
    assert(joint >= 0 && joint < g->n_joints);
    struct msc_graph_joint *j = g->joints[joint];
    j->is_dead = true;
    for (int32_t i = 0; i < j->joint.n_outputs; i++) {
        g->tensors[j->outputs[i]]->is_dead = true;
    }
    if (j->joint.op == MSC_OP_INPUT) {
        int32_t kept = 0;
        for (int32_t i = 0; i < g->n_inputs; i++) {
            if (g->inputs[i] != j->outputs[0]) {
                g->inputs[kept++] = g->inputs[i];
            }
        }
        g->n_inputs = kept;
    }
    g->is_final = false;
    return MSC_OK;
}

static enum msc_status set_data(struct msc_graph *g, int32_t tensor, const struct msc_array *data) {
    assert(tensor >= 0 && tensor < g->n_tensors);
    struct msc_tensor *t = &g->tensors[tensor]->tensor;
    int n_dims = msc_array_n_dims(data);
    const int64_t *dims = msc_array_dims(data);
    bool fits =
        t->producer == MSC_NO_ID && t->dtype == msc_array_dtype(data) && t->n_dims == n_dims;
    for (int i = 0; fits && i < n_dims; i++) {
        fits = t->dims[i] == dims[i];
    }
    if (!fits) {
        char expected[MSC_DIMS_TEXT_BYTES], found[MSC_DIMS_TEXT_BYTES];
        return MSC_FAIL(MSC_E_INVALID, "%s '%s' is %s%s, but its new elements are %s%s",
                        t->producer == MSC_NO_ID ? "weight" : "activation", t->name,
                        msc_dtype_name(t->dtype), msc_dims_format(expected, t->n_dims, t->dims),
                        msc_dtype_name(msc_array_dtype(data)),
                        msc_dims_format(found, n_dims, dims));
    }
    const struct msc_array *old = t->data;
    t->data = msc_array_retain(data);
    msc_array_release((struct msc_array *)old);
    return MSC_OK;
}

// Sets the data, converted to the tensor's type.
static enum msc_status set_converted(struct msc_graph *g, int32_t tensor,
                                     const struct msc_array *data) {
    struct msc_array *converted;
    MSC_TRY(msc_array_convert(&converted, data, g->tensors[tensor]->tensor.dtype));
    enum msc_status status = set_data(g, tensor, converted);
    msc_array_release(converted);
    return status;
}

enum msc_status msc_graph_set_weight_data(struct msc_graph *g, int32_t tensor,
                                          const struct msc_array *data) {
    if (g->own == NULL || !msc_graph_is_widened(g, tensor)) {
        MSC_TRY(set_data(g, tensor, data));
        return g->own == NULL ? MSC_OK : set_data(g->own, tensor, data);
    }
    MSC_TRY(set_converted(g->own, tensor, data));
    return set_converted(g, tensor, g->own->tensors[tensor]->tensor.data);
}

static enum msc_status clone_joint(struct msc_graph *copy, const struct msc_graph_joint *j) {
    struct msc_joint_spec spec = {
        .op = j->joint.op,
        .name = j->joint.name,
        .scope = j->joint.scope,
        .n_attrs = j->joint.n_attrs,
        .attrs = j->joint.attrs,
        .n_graphs = j->joint.n_graphs,
        .graphs = j->joint.graphs,
    };
    struct msc_graph_joint *to;
    size_t n_operands = (size_t)j->joint.n_operands;
    MSC_TRY(msc_graph__new_joint(&to, copy, &spec, j->joint.n_operands, j->joint.n_outputs));
    memcpy(to->operands, j->operands, n_operands * sizeof(int32_t));
    memcpy(to->outputs, j->outputs, (size_t)j->joint.n_outputs * sizeof(int32_t));
    for (int32_t i = 0; i < j->joint.n_weights; i++) {
        to->weights[i].role = msc_arena_strdup(&copy->arena, j->weights[i].role);
        MSC_TRY(MSC_ALLOCATED(to->weights[i].role));
    }
    // Copies the attributes instead of completing them: a parameter that is given as an input must
    // not get its default attribute.
    to->joint.n_attrs = 0;
    struct msc_attr *attrs = (struct msc_attr *)to->joint.attrs;
    for (int32_t i = 0; i < j->joint.n_attrs; i++) {
        attrs[i].key = msc_arena_strdup(&copy->arena, j->joint.attrs[i].key);
        attrs[i].value = msc_arena_strdup(&copy->arena, j->joint.attrs[i].value);
        MSC_TRY(MSC_ALLOCATED(attrs[i].key && attrs[i].value));
        to->joint.n_attrs++;
    }
    msc_graph__refresh_joint(copy, to);
    return msc_graph__push_joint(copy, to);
}

static enum msc_status clone_tensor(struct msc_graph *copy, const struct msc_graph_tensor *t) {
    int32_t id;
    MSC_TRY(msc_graph__add_tensor(&id, copy, &t->tensor));
    struct msc_graph_tensor *to = copy->tensors[id];
    if (t->tensor.data != NULL) {
        to->tensor.data = msc_array_retain(t->tensor.data);
    }
    if (t->n_values >= 0) {
        size_t n = (size_t)t->n_values;
        to->values = msc_arena_array(&copy->arena, n, sizeof(to->values[0]));
        MSC_TRY(MSC_ALLOCATED(to->values));
        memcpy(to->values, t->values, n * sizeof(to->values[0]));
        to->n_values = t->n_values;
    }
    return MSC_OK;
}

static enum msc_status copy_ids(int32_t **to, int32_t *n_to, size_t *capacity, const int32_t *from,
                                int32_t n) {
    MSC_TRY(msc_grow(to, capacity, (size_t)n, sizeof(int32_t)));
    for (int32_t i = 0; i < n; i++) {
        (*to)[i] = from[i];
    }
    *n_to = n;
    return MSC_OK;
}

static enum msc_status clone_parts(struct msc_graph *copy, const struct msc_graph *g) {
    for (int32_t i = 0; i < g->n_prims; i++) {
        const struct msc_prim *p = g->prims[i];
        int32_t id;
        MSC_TRY(msc_graph__add_prim(&id, copy, p->name, p->optype, p->n_parents, p->parents,
                                    p->n_attrs, p->attrs));
    }
    for (int32_t i = 0; i < g->n_tensors; i++) {
        MSC_TRY(clone_tensor(copy, g->tensors[i]));
    }
    for (int32_t i = 0; i < g->n_joints; i++) {
        MSC_TRY(clone_joint(copy, g->joints[i]));
    }
    MSC_TRY(
        copy_ids(&copy->inputs, &copy->n_inputs, &copy->inputs_capacity, g->inputs, g->n_inputs));
    MSC_TRY(copy_ids(&copy->outputs, &copy->n_outputs, &copy->outputs_capacity, g->outputs,
                     g->n_outputs));
    MSC_TRY(msc_graph_set_notes(copy, &g->notes));
    return msc_graph_finalize(copy);
}

enum msc_status msc_graph_clone(struct msc_graph **out, const struct msc_graph *g) {
    assert(g->is_final);
    struct msc_graph *copy;
    MSC_TRY(msc_graph__create_like(&copy, g->name, g));
    enum msc_status status = clone_parts(copy, g);
    if (status != MSC_OK) {
        msc_graph_destroy(copy);
        return status;
    }
    *out = copy;
    return MSC_OK;
}
