// Binding: the graph built anew with a number for every symbol. Joints whose results become
// constants by that (shape arithmetic) are folded into attributes of their readers, or stay as
// `constant` joints of the same name where somebody reads them as data.
#include "graph/bind_internal.h"

#include "base/str.h"
#include "graph/constant_internal.h"

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

// Every dimension of the inputs that is a bare symbol, once each: those that can be bound.
static enum msc_status list_symbols(struct msc_str *out, const struct msc_graph *g) {
    for (int32_t i = 0; i < g->n_prims; i++) {
        bool is_of_input = false;
        for (int32_t k = 0; k < g->n_inputs; k++) {
            const struct msc_tensor *t = &g->tensors[g->inputs[k]]->tensor;
            for (int d = 0; d < t->n_dims; d++) {
                is_of_input |= t->prims[d] == i;
            }
        }
        if (is_of_input && is_symbol(g->prims[i])) {
            msc_str_printf(out, "%s%s", out->length == 0 ? "" : ", ", g->prims[i]->name);
        }
    }
    return msc_str_status(out);
}

static enum msc_status fail_unknown(const struct msc_graph *g, const char *symbol) {
    struct msc_str names = {0};
    enum msc_status status = list_symbols(&names, g);
    if (status == MSC_OK) {
        status = MSC_FAIL(MSC_E_INVALID, "graph '%s' has no symbol '%s' to bind; it has: %s",
                          g->name, symbol, names.length == 0 ? "none" : msc_str_text(&names));
    }
    msc_str_finish(&names);
    return status;
}

static enum msc_status bind_names(struct msc_bind *b, const struct msc_binding bindings[],
                                  size_t n) {
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
    if (value != 0) { // arrays may be empty
        MSC_TRY(check_value(g, g->prims[prim]->name, value));
    }
    if (b->symbols[prim] >= 0 && b->symbols[prim] != value) {
        return MSC_FAIL(MSC_E_INVALID,
                        "input '%s': dimension %d is %lld, but its symbol '%s' is %lld elsewhere",
                        t->alias, dim, (long long)value, g->prims[prim]->name,
                        (long long)b->symbols[prim]);
    }
    b->symbols[prim] = value;
    return MSC_OK;
}

static enum msc_status bind_inputs(struct msc_bind *b, const struct msc_input_shape shapes[],
                                   size_t n) {
    const struct msc_graph *g = b->from;
    if (n != (size_t)g->n_inputs) {
        return MSC_FAIL(MSC_E_INVALID, "graph '%s' has %d inputs, found shapes for %zu", g->name,
                        (int)g->n_inputs, n);
    }
    for (size_t i = 0; i < n; i++) {
        const struct msc_tensor *t = &g->tensors[g->inputs[i]]->tensor;
        if (shapes[i].n_dims != t->n_dims) {
            return MSC_FAIL(MSC_E_INVALID, "input '%s' has %d dimensions, found %d", t->alias,
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
                            "input '%s': dimension %d, '%s', is not bound; give it a value as %s=N",
                            t.alias, d, name, name);
        }
    }
    int32_t tensor;
    MSC_TRY(msc_graph_add_symbolic_input(&tensor, b->builder->graph, j->name, t.alias, t.dtype,
                                         t.layout, t.n_dims, t.dims, prims));
    return msc_builder_activation(&b->values[from], b->builder, t.alias, tensor);
}

// For those who need its contents, an input stands there as the constant that it is this time. The
// input itself stays, for those who read it as data.
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

// What a joint is called in the new graph; NULL when memory is short.
static const char *joint_name(const struct msc_bind *b, const struct msc_joint *j) {
    return b->prefix == NULL ? j->name
                             : msc_arena_printf(&b->builder->arena, "%s%s", b->prefix, j->name);
}

// A weight, or the output of a `constant` joint when `joint` names it.
static enum msc_status copy_weight(struct msc_value **out, struct msc_bind *b,
                                   const struct msc_tensor *weight, const struct msc_joint *joint) {
    struct msc_builder *builder = b->builder;
    const char *alias = joint == NULL ? "" : b->from->tensors[joint->outputs[0]]->tensor.alias;
    if (weight->data != NULL) {
        MSC_TRY(msc_builder_constant(out, builder, weight->name, weight->data));
    } else {
        MSC_TRY(msc_builder_activation(out, builder, weight->name, MSC_NO_ID));
        MSC_TRY(msc_graph__add_empty_weight(&(*out)->weight, builder->graph, weight));
    }
    (*out)->alias = alias;
    (*out)->layout = weight->layout;
    (*out)->joint_name = joint == NULL ? NULL : joint_name(b, joint);
    return joint == NULL || (*out)->joint_name != NULL ? MSC_OK : msc_graph__no_memory(b->from);
}

static enum msc_status copy_constant(struct msc_bind *b, const struct msc_joint *j) {
    int32_t weight = j->operands[0];
    if (weight == MSC_NO_ID) {
        return MSC_FAIL(MSC_E_INVALID, "joint '%s' is a constant without elements", j->name);
    }
    if (b->values[weight] != NULL) {
        // Another joint holds this weight too; the elements are shared, the name is not.
        struct msc_value *shared = b->values[weight];
        struct msc_value *copy = msc_arena_alloc(&b->builder->arena, sizeof(*copy));
        if (copy == NULL) {
            return msc_graph__no_memory(b->from);
        }
        *copy = *shared;
        copy->alias = b->from->tensors[j->outputs[0]]->tensor.alias;
        copy->joint_name = joint_name(b, j);
        copy->tensor = MSC_NO_ID;
        b->values[j->outputs[0]] = copy;
        return MSC_OK;
    }
    const struct msc_tensor *t = &b->from->tensors[weight]->tensor;
    MSC_TRY(copy_weight(&b->values[weight], b, t, j));
    b->values[j->outputs[0]] = b->values[weight];
    return MSC_OK;
}

// Letters that only a look backwards found before would be lost with new inference.
static enum msc_status keep_layout(struct msc_graph *g, int32_t tensor, const char *layout) {
    struct msc_tensor *t = &g->tensors[tensor]->tensor;
    if (t->layout[0] == '\0' && strlen(layout) == (size_t)t->n_dims) {
        t->layout = msc_arena_strdup(&g->arena, layout);
        if (t->layout == NULL) {
            return msc_graph__no_memory(g);
        }
    }
    return MSC_OK;
}

// The contents of an operand where they are known beside the data, else what stands for it.
static enum msc_status find_operand(struct msc_value **out, struct msc_bind *b, int32_t tensor,
                                    bool needs_contents) {
    if (needs_contents && b->known != NULL && b->known[tensor] != NULL) {
        *out = b->known[tensor];
        return MSC_OK;
    }
    if (b->values[tensor] == NULL) {
        MSC_TRY(copy_weight(&b->values[tensor], b, &b->from->tensors[tensor]->tensor, NULL));
    }
    *out = b->values[tensor];
    return MSC_OK;
}

// Adds a joint that reads data, but for operands whose contents tell lengths, or (`is_known`) that
// reads contents wherever there are some.
static enum msc_status add_joint(struct msc_builder_copy *copy, struct msc_bind *b,
                                 const struct msc_joint *j, bool is_known) {
    MSC_TRY(msc_builder_copy_joint(copy, b->builder, j));
    copy->joint.name = joint_name(b, j);
    if (copy->joint.name == NULL) {
        return msc_graph__no_memory(b->from);
    }
    // Such a joint is there to make a constant an output.
    copy->joint.stays = j->op == MSC_OP_IDENTITY && msc_graph_is_output(b->from, j->outputs[0]);
    for (int32_t i = 0; i < j->n_operands; i++) {
        if (j->operands[i] != MSC_NO_ID) {
            bool needs_contents = is_known || msc_bind__needs_contents(b, j, i);
            MSC_TRY(find_operand(&copy->operands[i], b, j->operands[i], needs_contents));
        }
    }
    for (int32_t i = 0; i < j->n_outputs; i++) {
        copy->aliases[i] = b->from->tensors[j->outputs[i]]->tensor.alias;
    }
    struct msc_graph *bodies[2] = {NULL, NULL};
    enum msc_status status = msc_bind__copy_bodies(bodies, b, j);
    if (status == MSC_OK) {
        copy->joint.graphs = (const struct msc_graph *const *)bodies;
        status = msc_builder_add(copy->outputs, b->builder, &copy->joint);
    }
    msc_graph_destroy(bodies[0]);
    msc_graph_destroy(bodies[1]);
    return status;
}

// Does the joint make contents of contents that others read as data?
static bool makes_contents(const struct msc_bind *b, const struct msc_joint *j) {
    bool is_asked = false, has_known = false;
    for (int32_t i = 0; b->known != NULL && msc_constant_is_folded(j->op) && i < j->n_outputs; i++) {
        is_asked = is_asked || b->is_parameter[j->outputs[i]];
    }
    for (int32_t i = 0; is_asked && i < j->n_operands; i++) {
        has_known = has_known || (j->operands[i] != MSC_NO_ID && b->known[j->operands[i]] != NULL);
    }
    return has_known;
}

static enum msc_status take_outputs(struct msc_bind *b, const struct msc_joint *j,
                                    const struct msc_builder_copy *copy) {
    for (int32_t i = 0; i < j->n_outputs; i++) {
        b->values[j->outputs[i]] = copy->outputs[i];
        if (copy->outputs[i]->tensor != MSC_NO_ID) {
            MSC_TRY(keep_layout(b->builder->graph, copy->outputs[i]->tensor,
                                b->from->tensors[j->outputs[i]]->tensor.layout));
        }
    }
    return MSC_OK;
}

// Contents of all outputs, when they can be computed at once. *is_done: nobody reads them as data.
static enum msc_status copy_contents(bool *is_done, struct msc_bind *b, const struct msc_joint *j) {
    struct msc_builder_copy copy;
    bool is_data = false, is_constant = true;
    MSC_TRY(add_joint(&copy, b, j, true));
    for (int32_t i = 0; i < j->n_outputs; i++) {
        is_data = is_data || b->is_data[j->outputs[i]];
        is_constant = is_constant && copy.outputs[i]->constant != NULL;
    }
    *is_done = !is_data || !is_constant;
    for (int32_t i = 0; !*is_done && i < j->n_outputs; i++) {
        b->known[j->outputs[i]] = copy.outputs[i];
        copy.outputs[i]->alias = ""; // the names are those of the data
        copy.outputs[i]->joint_name = NULL;
    }
    return *is_done ? take_outputs(b, j, &copy) : MSC_OK;
}

static enum msc_status copy_operator(struct msc_bind *b, const struct msc_joint *j) {
    struct msc_builder_copy copy;
    bool is_done = false;
    if (makes_contents(b, j)) {
        MSC_TRY(copy_contents(&is_done, b, j));
    }
    if (is_done) {
        return MSC_OK;
    }
    MSC_TRY(add_joint(&copy, b, j, false));
    return take_outputs(b, j, &copy);
}

enum msc_status msc_bind__copy_joint(struct msc_bind *b, const struct msc_joint *j) {
    if (j->op == MSC_OP_INPUT) {
        MSC_TRY(copy_input(b, j));
        return copy_parameter(b, j);
    }
    if (msc_bind__is_decided(b, j)) {
        return msc_bind__take_branch(b, j);
    }
    if (msc_bind__holds_joints(j)) {
        return msc_bind__split(b, j);
    }
    return j->op == MSC_OP_CONSTANT ? copy_constant(b, j) : copy_operator(b, j);
}

static enum msc_status reserve_names(struct msc_builder *builder, const struct msc_graph *g) {
    for (int32_t i = 0; i < g->n_joints; i++) {
        const struct msc_joint *j = &g->joints[i]->joint;
        MSC_TRY(msc_builder_reserve(builder, j->name));
        if (msc_bind__holds_joints(j)) {
            MSC_TRY(reserve_names(builder, j->graphs[0]));
        }
    }
    return MSC_OK;
}

static enum msc_status copy_joints(struct msc_bind *b) {
    const struct msc_graph *g = b->from;
    MSC_TRY(reserve_names(b->builder, g));
    for (int32_t i = 0; i < g->n_joints; i++) {
        MSC_TRY(msc_bind__copy_joint(b, &g->joints[i]->joint));
    }
    return MSC_OK;
}

static enum msc_status set_outputs(struct msc_bind *b) {
    const struct msc_graph *g = b->from;
    int32_t *outputs = msc_arena_array(&b->builder->arena, (size_t)g->n_outputs, sizeof(*outputs));
    if (outputs == NULL) {
        return msc_graph__no_memory(g);
    }
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
                                "graph '%s': dimension %d of '%s' depends on data, its length is "
                                "not known before the network runs",
                                g->name, d, t->name);
            }
        }
    }
    return MSC_OK;
}

static enum msc_status start(struct msc_bind *b) {
    size_t n_tensors = (size_t)b->from->n_tensors, n_prims = (size_t)b->from->n_prims;
    MSC_TRY(msc_graph_create(&b->builder->graph, b->from->name));
    b->values = msc_arena_array(&b->builder->arena, n_tensors, sizeof(b->values[0]));
    b->symbols = msc_arena_array(&b->builder->arena, n_prims + 1, sizeof(b->symbols[0]));
    if (b->values == NULL || b->symbols == NULL) {
        return msc_graph__no_memory(b->from);
    }
    memset(b->symbols, 0xff, n_prims * sizeof(b->symbols[0]));
    return MSC_OK;
}

static enum msc_status build(struct msc_bind *b) {
    MSC_TRY(copy_joints(b));
    return set_outputs(b);
}

static enum msc_status build_bound(struct msc_bind *b) {
    MSC_TRY(build(b));
    return check_bound(b->builder->graph);
}

static enum msc_status finish(struct msc_graph **out, struct msc_bind *b, enum msc_status status) {
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
    struct msc_builder builder = {0};
    struct msc_bind b = {.from = g, .builder = &builder};
    enum msc_status status = start(&b);
    if (status == MSC_OK) {
        status = bind_names(&b, bindings, n);
    }
    if (status == MSC_OK) {
        status = build(&b);
    }
    return finish(out, &b, status);
}

// Hands `bound` over when all of its lengths are known.
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
    struct msc_builder builder = {0};
    struct msc_bind b = {.from = g, .builder = &builder};
    enum msc_status status = start(&b);
    if (status == MSC_OK) {
        status = bind_inputs(&b, shapes, n);
    }
    if (status == MSC_OK) {
        status = build_bound(&b);
    }
    return finish(out, &b, status);
}

static enum msc_status bind_arrays(struct msc_bind *b, const struct msc_array *const arrays[],
                                   size_t n) {
    struct msc_input_shape *shapes = msc_arena_array(&b->builder->arena, n + 1, sizeof(shapes[0]));
    if (shapes == NULL) {
        return msc_graph__no_memory(b->from);
    }
    for (size_t i = 0; i < n; i++) {
        shapes[i].n_dims = msc_array_n_dims(arrays[i]);
        memcpy(shapes[i].dims, msc_array_dims(arrays[i]),
               (size_t)shapes[i].n_dims * sizeof(shapes[i].dims[0]));
    }
    MSC_TRY(bind_inputs(b, shapes, n));
    b->arrays = arrays;
    return msc_bind__mark(b);
}

enum msc_status msc_graph_bind_known(struct msc_graph **out, bool is_parameter[],
                                     const struct msc_graph *g,
                                     const struct msc_array *const arrays[], size_t n) {
    struct msc_builder builder = {0};
    struct msc_bind b = {.from = g, .builder = &builder};
    enum msc_status status = start(&b);
    if (status == MSC_OK) {
        status = bind_arrays(&b, arrays, n);
    }
    if (status == MSC_OK) {
        status = build(&b);
    }
    for (size_t i = 0; status == MSC_OK && is_parameter != NULL && i < n; i++) {
        is_parameter[i] = b.is_parameter[g->inputs[i]];
    }
    return finish(out, &b, status);
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
    struct msc_builder builder = {0};
    struct msc_bind b = {.from = g,
                         .builder = &builder,
                         .arrays = arrays,
                         .keeps_symbols = true,
                         .takes_branches = true,
                         .n_taken = n_taken};
    *n_taken = 0;
    if (n != (size_t)g->n_inputs) {
        return MSC_FAIL(MSC_E_INVALID, "graph '%s' has %d inputs, found %zu", g->name,
                        (int)g->n_inputs, n);
    }
    enum msc_status status = start(&b);
    if (status == MSC_OK) {
        status = msc_bind__mark(&b);
    }
    if (status == MSC_OK) {
        status = build(&b);
    }
    return finish(out, &b, status);
}

static bool is_split(const struct msc_graph *g) {
    for (int32_t i = 0; i < g->n_joints; i++) {
        const struct msc_joint *j = &g->joints[i]->joint;
        bool is_whole = !msc_bind__holds_joints(j);
        for (int32_t k = 0; is_whole && k < j->n_graphs; k++) {
            is_whole = is_split(j->graphs[k]);
        }
        if (!is_whole) {
            return false;
        }
    }
    return true;
}

enum msc_status msc_graph_split(struct msc_graph **out, const struct msc_graph *g) {
    struct msc_builder builder = {0};
    struct msc_bind b = {.from = g, .builder = &builder, .keeps_symbols = true};
    if (is_split(g)) {
        *out = msc_graph_retain(g);
        return MSC_OK;
    }
    enum msc_status status = start(&b);
    if (status == MSC_OK) {
        status = build(&b);
    }
    return finish(out, &b, status);
}
