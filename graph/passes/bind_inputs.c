// Binds the symbols of inputs, by name or by shapes, and makes the values that replace the inputs
// in the new graph.
#include "graph/passes/bind_internal.h"

#include "base/str.h"
#include "graph/passes/bind.h"

#include <string.h>

static bool is_symbol(const struct msc_prim *p) {
    return strcmp(p->optype, "shape") == 0;
}

static enum msc_status check_value(const struct msc_graph *g, const char *symbol, int64_t value) {
    if (value < 1 || value > INT32_MAX) {
        return MSC_FAIL(MSC_E_INVALID, "graph '%s': symbol '%s' is bound to %lld, expected 1 to %d",
                        g->name, symbol, (long long)value, INT32_MAX);
    }
    return MSC_OK;
}

static enum msc_status fail_unknown(const struct msc_graph *g, const char *symbol) {
    struct msc_str place = {0};
    msc_str_printf(&place, "graph '%s'", g->name);
    enum msc_status status = msc_graph_fail_binding(g, msc_str_text(&place), symbol);
    msc_str_finish(&place);
    return status;
}

enum msc_status msc_bind__names(struct msc_bind *b, const struct msc_binding bindings[], size_t n) {
    for (size_t i = 0; i < n; i++) {
        int32_t prim = msc_graph_find_prim(b->from, bindings[i].symbol);
        if (prim == MSC_NO_ID || !is_symbol(b->from->prims[prim])) {
            return fail_unknown(b->from, bindings[i].symbol);
        }
        MSC_TRY(check_value(b->from, bindings[i].symbol, bindings[i].value));
        b->symbols[prim] = bindings[i].value;
    }
    return MSC_OK;
}

static enum msc_status bind_dim(struct msc_bind *b, const struct msc_tensor *t, int dim,
                                int64_t value) {
    const struct msc_graph *g = b->from;
    int32_t prim = t->prims[dim];
    if (prim == MSC_NO_ID && t->dims[dim] != value) {
        return MSC_FAIL(MSC_E_INVALID, "input '%s': dimension %d is %lld, expected %lld", t->alias,
                        dim, (long long)value, (long long)t->dims[dim]);
    }
    if (prim == MSC_NO_ID || !is_symbol(g->prims[prim])) {
        return MSC_OK;
    }
    if (value != 0) { // 0 is allowed here, because arrays may be empty
        MSC_TRY(check_value(g, g->prims[prim]->name, value));
    }
    if (b->symbols[prim] >= 0 && b->symbols[prim] != value) {
        return MSC_FAIL(
            MSC_E_INVALID,
            "input '%s': dimension %d is %lld, but its symbol '%s' is already bound to %lld",
            t->alias, dim, (long long)value, g->prims[prim]->name, (long long)b->symbols[prim]);
    }
    b->symbols[prim] = value;
    return MSC_OK;
}

enum msc_status msc_bind__shapes(struct msc_bind *b, const struct msc_input_shape shapes[],
                                 size_t n) {
    const struct msc_graph *g = b->from;
    if (n != (size_t)g->n_inputs) {
        return MSC_FAIL(MSC_E_INVALID, "graph '%s' has %d inputs, but %zu shapes were given",
                        g->name, (int)g->n_inputs, n);
    }
    for (size_t i = 0; i < n; i++) {
        const struct msc_tensor *t = &g->tensors[g->inputs[i]]->tensor;
        if (shapes[i].n_dims != t->n_dims) {
            return MSC_FAIL(MSC_E_INVALID,
                            "input '%s' has %d dimensions, but the given shape has %d", t->alias,
                            t->n_dims, shapes[i].n_dims);
        }
        for (int d = 0; d < t->n_dims; d++) {
            MSC_TRY(bind_dim(b, t, d, shapes[i].dims[d]));
        }
    }
    return MSC_OK;
}

static enum msc_status copy_input(struct msc_bind *b, const struct msc_joint *j) {
    int32_t from = j->outputs[0];
    struct msc_tensor t = b->from->tensors[from]->tensor;
    int32_t prims[MSC_MAX_DIMS];
    for (int d = 0; d < t.n_dims; d++) {
        int32_t prim = t.prims[d];
        prims[d] = MSC_NO_ID;
        if (prim == MSC_NO_ID) {
            continue;
        }
        bool is_bare = is_symbol(b->from->prims[prim]);
        t.dims[d] = is_bare ? b->symbols[prim]
                            : msc_dim_evaluate(b->from, (struct msc_dim){-1, prim}, b->symbols);
        if (t.dims[d] < 0 && b->keeps_symbols && is_bare) {
            MSC_TRY(msc_graph_add_symbol(&prims[d], b->builder->graph, b->from->prims[prim]->name));
        } else if (t.dims[d] < 0) {
            const char *name = b->from->prims[prim]->name;
            return MSC_FAIL(MSC_E_INVALID,
                            "input '%s': dimension %d, '%s', is not bound; give it a value: --bind "
                            "%s=N, or bind in the configuration",
                            t.alias, d, name, name);
        }
    }
    int32_t tensor;
    MSC_TRY(msc_graph_add_symbolic_input(&tensor, b->builder->graph, j->name, t.alias, t.dtype,
                                         t.layout, t.n_dims, t.dims, prims));
    return msc_builder_activation(&b->values[from], b->builder, t.alias, tensor);
}

// If a consumer needs the elements of an input in advance, makes a constant with the given
// elements, which this consumer reads. Consumers that read the input as data still read the input.
static enum msc_status copy_parameter(struct msc_bind *b, const struct msc_joint *j) {
    int32_t from = j->outputs[0];
    for (int32_t i = 0; b->is_parameter != NULL && i < b->from->n_inputs; i++) {
        if (b->from->inputs[i] == from && b->is_parameter[from]) {
            const char *alias = b->from->tensors[from]->tensor.alias;
            struct msc_value **value = b->is_data[from] ? &b->known[from] : &b->values[from];
            return msc_builder_constant(value, b->builder, alias, b->arrays[i]);
        }
    }
    return MSC_OK;
}

enum msc_status msc_bind__copy_input(struct msc_bind *b, const struct msc_joint *j) {
    MSC_TRY(copy_input(b, j));
    return copy_parameter(b, j);
}
