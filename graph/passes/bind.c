// Binding: rebuilds a graph with a number for every symbol. Joints whose results become constant
// (shape arithmetic) are folded into attributes of their consumers. If a consumer reads such a
// result as data, a `constant` joint of the same name replaces the joint.
#include "graph/passes/bind.h"
#include "graph/passes/bind_internal.h"
#include "graph/passes/constant_internal.h"

#include <string.h>

static enum msc_status reserve_names(const struct msc_bind *b, const struct msc_graph *g) {
    for (int32_t i = 0; i < g->n_joints; i++) {
        const struct msc_joint *j = &g->joints[i]->joint;
        MSC_TRY(msc_builder_reserve(b->builder, j->name));
        if (msc_bind__holds_joints(b, j)) {
            MSC_TRY(reserve_names(b, j->graphs[0]));
        }
    }
    return MSC_OK;
}

static enum msc_status copy_joints(struct msc_bind *b) {
    const struct msc_graph *g = b->from;
    MSC_TRY(reserve_names(b, g));
    for (int32_t i = 0; i < g->n_joints; i++) {
        MSC_TRY(msc_bind__copy_joint(b, &g->joints[i]->joint));
    }
    return MSC_OK;
}

static enum msc_status set_outputs(struct msc_bind *b) {
    const struct msc_graph *g = b->from;
    int32_t *outputs = msc_arena_array(&b->builder->arena, (size_t)g->n_outputs, sizeof(*outputs));
    MSC_TRY(MSC_ALLOCATED(outputs));
    for (int32_t i = 0; i < g->n_outputs; i++) {
        MSC_TRY(msc_builder_tensor(&outputs[i], b->builder, b->values[g->outputs[i]]));
    }
    MSC_TRY(msc_graph__set_outputs(b->builder->graph, g->n_outputs, outputs));
    return msc_graph_finalize(b->builder->graph);
}

static enum msc_status check_bound(const struct msc_graph *g) {
    for (int32_t i = 0; i < g->n_tensors; i++) {
        const struct msc_tensor *t = &g->tensors[i]->tensor;
        for (int d = 0; d < t->n_dims; d++) {
            if (t->prims[d] != MSC_NO_ID) {
                return MSC_FAIL(MSC_E_UNSUPPORTED,
                                "graph '%s': dimension %d of '%s' depends on data; its length is "
                                "unknown until the network runs",
                                g->name, d, t->name);
            }
        }
    }
    return MSC_OK;
}

static enum msc_status bind_start(struct msc_bind *b) {
    size_t n_tensors = (size_t)b->from->n_tensors, n_prims = (size_t)b->from->n_prims;
    MSC_TRY(msc_graph__create_like(&b->builder->graph, b->from->name, b->from));
    MSC_TRY(msc_graph_set_notes(b->builder->graph, &b->from->notes));
    b->values = msc_arena_array(&b->builder->arena, n_tensors, sizeof(b->values[0]));
    b->symbols = msc_arena_array(&b->builder->arena, n_prims + 1, sizeof(b->symbols[0]));
    MSC_TRY(MSC_ALLOCATED(b->values && b->symbols));
    memset(b->symbols, 0xff, n_prims * sizeof(b->symbols[0]));
    return MSC_OK;
}

static enum msc_status bind_build(struct msc_bind *b) {
    MSC_TRY(copy_joints(b));
    return set_outputs(b);
}

static enum msc_status build_bound(struct msc_bind *b) {
    MSC_TRY(bind_build(b));
    return check_bound(b->builder->graph);
}

static enum msc_status bind_finish(struct msc_graph **out, struct msc_bind *b,
                                   enum msc_status status) {
    if (status == MSC_OK) {
        *out = b->builder->graph;
    } else {
        msc_graph_destroy(b->builder->graph);
    }
    msc_builder_finish(b->builder);
    return status;
}

enum msc_status msc_graph_bind_open(struct msc_graph **out, const struct msc_graph *g,
                                    const struct msc_binding bindings[], size_t n) {
    struct msc_builder builder = {.evaluate = msc_constant_evaluate};
    struct msc_bind b = {.from = g, .builder = &builder};
    enum msc_status status = bind_start(&b);
    if (status == MSC_OK) {
        status = msc_bind__names(&b, bindings, n);
    }
    if (status == MSC_OK) {
        status = bind_build(&b);
    }
    return bind_finish(out, &b, status);
}

// Sets *out to `bound` if all its lengths are known. Otherwise destroys it and returns an error.
static enum msc_status give_bound(struct msc_graph **out, struct msc_graph *bound) {
    enum msc_status status = check_bound(bound);
    if (status != MSC_OK) {
        msc_graph_destroy(bound);
        bound = NULL;
    }
    *out = bound;
    return status;
}

enum msc_status msc_graph_bind(struct msc_graph **out, const struct msc_graph *g,
                               const struct msc_binding bindings[], size_t n) {
    struct msc_graph *bound;
    MSC_TRY(msc_graph_bind_open(&bound, g, bindings, n));
    return give_bound(out, bound);
}

enum msc_status msc_graph_bind_shapes(struct msc_graph **out, const struct msc_graph *g,
                                      const struct msc_input_shape shapes[], size_t n) {
    struct msc_builder builder = {.evaluate = msc_constant_evaluate};
    struct msc_bind b = {.from = g, .builder = &builder};
    enum msc_status status = bind_start(&b);
    if (status == MSC_OK) {
        status = msc_bind__shapes(&b, shapes, n);
    }
    if (status == MSC_OK) {
        status = build_bound(&b);
    }
    return bind_finish(out, &b, status);
}

static enum msc_status bind_arrays(struct msc_bind *b, const struct msc_array *const arrays[],
                                   size_t n) {
    struct msc_input_shape *shapes = msc_arena_array(&b->builder->arena, n + 1, sizeof(shapes[0]));
    MSC_TRY(MSC_ALLOCATED(shapes));
    for (size_t i = 0; i < n; i++) {
        shapes[i].n_dims = msc_array_n_dims(arrays[i]);
        memcpy(shapes[i].dims, msc_array_dims(arrays[i]),
               (size_t)shapes[i].n_dims * sizeof(shapes[i].dims[0]));
    }
    MSC_TRY(msc_bind__shapes(b, shapes, n));
    b->arrays = arrays;
    return msc_bind__mark(b);
}

enum msc_status msc_graph_bind_known(struct msc_graph **out, bool is_parameter[],
                                     const struct msc_graph *g,
                                     const struct msc_array *const arrays[], size_t n) {
    struct msc_builder builder = {.evaluate = msc_constant_evaluate};
    struct msc_bind b = {.from = g, .builder = &builder};
    enum msc_status status = bind_start(&b);
    if (status == MSC_OK) {
        status = bind_arrays(&b, arrays, n);
    }
    if (status == MSC_OK) {
        status = bind_build(&b);
    }
    for (size_t i = 0; status == MSC_OK && is_parameter != NULL && i < n; i++) {
        is_parameter[i] = b.is_parameter[g->inputs[i]];
    }
    return bind_finish(out, &b, status);
}

enum msc_status msc_graph_bind_arrays(struct msc_graph **out, const struct msc_graph *g,
                                      const struct msc_array *const arrays[], size_t n) {
    struct msc_graph *bound;
    MSC_TRY(msc_graph_bind_known(&bound, NULL, g, arrays, n));
    return give_bound(out, bound);
}

enum msc_status msc_graph_take_branches(struct msc_graph **out, int32_t *n_taken,
                                        const struct msc_graph *g,
                                        const struct msc_array *const arrays[], size_t n) {
    struct msc_builder builder = {.evaluate = msc_constant_evaluate};
    struct msc_bind b = {.from = g,
                         .builder = &builder,
                         .arrays = arrays,
                         .keeps_symbols = true,
                         .takes_branches = true,
                         .n_taken = n_taken};
    *n_taken = 0;
    if (n != (size_t)g->n_inputs) {
        return MSC_FAIL(MSC_E_INVALID, "graph '%s' has %d inputs, but %zu arrays were given",
                        g->name, (int)g->n_inputs, n);
    }
    enum msc_status status = bind_start(&b);
    if (status == MSC_OK) {
        status = msc_bind__mark(&b);
    }
    if (status == MSC_OK) {
        status = bind_build(&b);
    }
    return bind_finish(out, &b, status);
}

static bool is_split(const struct msc_bind *b, const struct msc_graph *g) {
    for (int32_t i = 0; i < g->n_joints; i++) {
        const struct msc_joint *j = &g->joints[i]->joint;
        bool is_whole = !msc_bind__holds_joints(b, j);
        for (int32_t k = 0; is_whole && k < j->n_graphs; k++) {
            is_whole = is_split(b, j->graphs[k]);
        }
        if (!is_whole) {
            return false;
        }
    }
    return true;
}

enum msc_status msc_graph_split(struct msc_graph **out, const struct msc_graph *g) {
    struct msc_builder builder = {.evaluate = msc_constant_evaluate};
    struct msc_bind b = {.from = g, .builder = &builder, .keeps_symbols = true};
    if (is_split(&b, g)) {
        *out = msc_graph_retain(g);
        return MSC_OK;
    }
    enum msc_status status = bind_start(&b);
    if (status == MSC_OK) {
        status = bind_build(&b);
    }
    return bind_finish(out, &b, status);
}

// True if a joint has operands, and all of them are constant.
static bool has_constant_operands(const struct msc_graph *g) {
    for (int32_t i = 0; i < g->n_joints; i++) {
        const struct msc_joint *j = &g->joints[i]->joint;
        bool is_constant = j->op != MSC_OP_CONSTANT && j->n_operands > 0;
        for (int32_t k = 0; is_constant && k < j->n_operands; k++) {
            is_constant =
                j->operands[k] == MSC_NO_ID || msc_graph_weight_of(g, j->operands[k]) != MSC_NO_ID;
        }
        if (is_constant) {
            return true;
        }
    }
    return false;
}

enum msc_status msc_graph_compute_constants(struct msc_graph **out, const struct msc_graph *g) {
    struct msc_builder builder = {.evaluate = msc_constant_evaluate_all};
    struct msc_bind b = {.from = g, .builder = &builder, .keeps_symbols = true};
    if (!has_constant_operands(g)) {
        *out = msc_graph_retain(g);
        return MSC_OK;
    }
    enum msc_status status = bind_start(&b);
    if (status == MSC_OK) {
        status = bind_build(&b);
    }
    return bind_finish(out, &b, status);
}
