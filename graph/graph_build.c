// Adds inputs, weights and outputs to a graph.
#include "graph/graph_internal.h"

#include <string.h>

enum msc_status msc_graph_add_input(int32_t *tensor, struct msc_graph *g, const char *name,
                                    const char *alias, enum msc_dtype dtype, const char *layout,
                                    int n_dims, const int64_t dims[]) {
    int32_t prims[MSC_MAX_DIMS];
    for (int i = 0; i < MSC_MAX_DIMS; i++) {
        prims[i] = MSC_NO_ID;
    }
    return msc_graph_add_symbolic_input(tensor, g, name, alias, dtype, layout, n_dims, dims, prims);
}

// If the symbol has no source yet, records the input dimension that defines it.
static enum msc_status set_symbol_source(struct msc_graph *g, int32_t prim, const char *input,
                                         int dim) {
    struct msc_prim *p = g->prims[prim];
    if (strcmp(p->optype, "shape") != 0 || p->n_attrs != 0) {
        return MSC_OK;
    }
    struct msc_attr *attrs = msc_arena_array(&g->arena, 3, sizeof(attrs[0]));
    MSC_TRY(MSC_ALLOCATED(attrs));
    attrs[0] = (struct msc_attr){"dim", msc_arena_printf(&g->arena, "%d", dim)};
    attrs[1] = (struct msc_attr){"out_idx", "0"};
    attrs[2] = (struct msc_attr){"producer", input};
    MSC_TRY(MSC_ALLOCATED(attrs[0].value));
    p->attrs = attrs;
    p->n_attrs = 3;
    return MSC_OK;
}

enum msc_status msc_graph_add_symbolic_input(int32_t *tensor, struct msc_graph *g, const char *name,
                                             const char *alias, enum msc_dtype dtype,
                                             const char *layout, int n_dims, const int64_t dims[],
                                             const int32_t prims[]) {
    if (name == NULL || name[0] == '\0') {
        return MSC_FAIL(MSC_E_INVALID, "graph '%s': an input has no name", g->name);
    }
    if (msc_graph__live_joint(g, name) != MSC_NO_ID) {
        return MSC_FAIL(MSC_E_INVALID, "graph '%s' already has a joint '%s'", g->name, name);
    }
    struct msc_joint_spec spec = {.op = MSC_OP_INPUT, .name = name};
    struct msc_graph_joint *joint;
    MSC_TRY(msc_graph__new_joint(&joint, g, &spec, 0, 1));
    struct msc_tensor t = {
        .name = msc_arena_printf(&g->arena, "%s:0", name),
        .alias = alias == NULL ? name : alias,
        .layout = layout == NULL ? "" : layout,
        .dtype = dtype,
        .n_dims = n_dims,
        .producer = g->n_joints,
    };
    MSC_TRY(MSC_ALLOCATED(t.name));
    for (int i = 0; i < n_dims && i < MSC_MAX_DIMS; i++) {
        t.dims[i] = dims[i];
        t.prims[i] = prims[i];
    }
    MSC_TRY(msc_grow(&g->inputs, &g->inputs_capacity, (size_t)g->n_inputs + 1, sizeof(int32_t)));
    MSC_TRY(msc_graph__add_tensor(tensor, g, &t));
    for (int i = 0; i < n_dims; i++) {
        if (prims[i] != MSC_NO_ID) {
            MSC_TRY(set_symbol_source(g, prims[i], joint->joint.name, i));
        }
    }
    joint->outputs[0] = *tensor;
    MSC_TRY(msc_graph__push_joint(g, joint));
    g->inputs[g->n_inputs++] = *tensor;
    return MSC_OK;
}

enum msc_status msc_graph__add_empty_weight(int32_t *out, struct msc_graph *g,
                                            const struct msc_tensor *tensor) {
    if (tensor->name[0] == '\0') {
        return MSC_FAIL(MSC_E_INVALID, "graph '%s': a weight has no name", g->name);
    }
    struct msc_tensor t = *tensor;
    t.producer = MSC_NO_ID;
    t.output = MSC_NO_ID;
    return msc_graph__add_tensor(out, g, &t);
}

enum msc_status msc_graph_add_weight(int32_t *tensor, struct msc_graph *g, const char *name,
                                     const char *alias, const char *layout,
                                     const struct msc_array *data) {
    struct msc_tensor t = {
        .name = name,
        .alias = alias == NULL ? "" : alias,
        .layout = layout == NULL ? "" : layout,
        .dtype = msc_array_dtype(data),
        .n_dims = msc_array_n_dims(data),
    };
    for (int i = 0; i < t.n_dims; i++) {
        t.dims[i] = msc_array_dims(data)[i];
        t.prims[i] = MSC_NO_ID;
    }
    MSC_TRY(msc_graph__add_empty_weight(tensor, g, &t));
    g->tensors[*tensor]->tensor.data = msc_array_retain(data);
    return MSC_OK;
}

enum msc_status msc_graph__set_outputs(struct msc_graph *g, int32_t n, const int32_t tensors[]) {
    if (n < 1) {
        return MSC_FAIL(MSC_E_INVALID, "graph '%s': no outputs given", g->name);
    }
    for (int32_t i = 0; i < n; i++) {
        if (tensors[i] < 0 || tensors[i] >= g->n_tensors) {
            return MSC_FAIL(MSC_E_INVALID, "graph '%s': output %d is not a tensor of the graph",
                            g->name, i);
        }
        const struct msc_tensor *t = &g->tensors[tensors[i]]->tensor;
        if (t->producer == MSC_NO_ID) {
            return MSC_FAIL(MSC_E_INVALID,
                            "graph '%s': output '%s' is a weight, expected a joint's output",
                            g->name, t->name);
        }
    }
    MSC_TRY(msc_grow(&g->outputs, &g->outputs_capacity, (size_t)n, sizeof(int32_t)));
    memcpy(g->outputs, tensors, (size_t)n * sizeof(int32_t));
    g->n_outputs = n;
    g->is_final = false;
    return MSC_OK;
}

enum msc_status msc_graph__default_alias(struct msc_graph *g, int32_t tensor) {
    const struct msc_tensor *t = &g->tensors[tensor]->tensor;
    const struct msc_joint *j = &g->joints[t->producer]->joint;
    if (t->alias[0] != '\0') {
        return MSC_OK;
    }
    if (j->n_outputs == 1) {
        return msc_graph_set_alias(g, tensor, j->name);
    }
    char *alias = msc_arena_strdup(&g->arena, t->name);
    MSC_TRY(MSC_ALLOCATED(alias));
    for (char *c = strchr(alias, ':'); c != NULL; c = strchr(c, ':')) {
        *c = '_';
    }
    return msc_graph_set_alias(g, tensor, alias);
}

enum msc_status msc_graph_set_outputs(struct msc_graph *g, int32_t n, const int32_t tensors[]) {
    MSC_TRY(msc_graph__set_outputs(g, n, tensors));
    for (int32_t i = 0; i < n; i++) {
        MSC_TRY(msc_graph__default_alias(g, g->outputs[i]));
    }
    return MSC_OK;
}
