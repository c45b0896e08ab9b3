#include "graph/passes/prune.h"

#include "graph/passes/prune_internal.h"
#include "graph/shuffle.h"
#include "graph/wide.h"

#include <string.h>

// The weight's remaining elements, or the elements that replace them. *out is a reference that the
// caller releases.
static enum msc_status weight_elements(struct msc_array **out, const struct msc_prune *p,
                                       int32_t tensor) {
    const struct msc_tensor *t = msc_graph_tensor(p->from, tensor);
    const struct msc_array *given = p->elements ? p->elements[tensor] : NULL;
    int64_t dims[MSC_MAX_DIMS];
    char expected[MSC_DIMS_TEXT_BYTES], found[MSC_DIMS_TEXT_BYTES];
    if (!given) {
        return msc_graph_prune_array(out, t->data, p->channels, tensor, p->is_gone);
    }
    int n_dims = msc_array_n_dims(given);
    msc_prune__dims(dims, p, tensor);
    if (n_dims != t->n_dims || msc_array_dtype(given) != t->dtype ||
        memcmp(msc_array_dims(given), dims, (size_t)n_dims * sizeof(dims[0])) != 0) {
        return MSC_FAIL(MSC_E_INVALID, "weight %s: its new elements are %s%s, expected %s%s",
                        t->name, msc_dtype_name(msc_array_dtype(given)),
                        msc_dims_format(found, n_dims, msc_array_dims(given)),
                        msc_dtype_name(t->dtype), msc_dims_format(expected, t->n_dims, dims));
    }
    *out = msc_array_retain(given);
    return MSC_OK;
}

// ---- Values -----------------------------------------------------------------------------------

static enum msc_status copy_weight(struct msc_prune *p, int32_t tensor) {
    const struct msc_tensor *t = msc_graph_tensor(p->from, tensor);
    struct msc_array *data;
    if (t->data == NULL) {
        return MSC_FAIL(MSC_E_STATE, "graph '%s': weight %s has no elements", p->from->name,
                        t->name);
    }
    MSC_TRY(weight_elements(&data, p, tensor));
    enum msc_status status = msc_builder_constant(&p->values[tensor], p->builder, t->name, data);
    msc_array_release(data);
    MSC_TRY(status);
    p->values[tensor]->layout = t->layout;
    return MSC_OK;
}

static enum msc_status find_value(struct msc_value **out, struct msc_prune *p, int32_t tensor) {
    if (p->values[tensor] == NULL) {
        MSC_TRY(copy_weight(p, tensor));
    }
    *out = p->values[tensor];
    return MSC_OK;
}

static enum msc_status copy_input(struct msc_prune *p, const struct msc_joint *j) {
    int32_t from = j->outputs[0], tensor, prims[MSC_MAX_DIMS];
    const struct msc_tensor *t = msc_graph_tensor(p->from, from);
    for (int i = 0; i < t->n_dims; i++) {
        prims[i] = MSC_NO_ID;
        if (t->prims[i] != MSC_NO_ID) {
            const char *name = msc_graph_prim(p->from, t->prims[i])->name;
            MSC_TRY(msc_graph_add_symbol(&prims[i], p->builder->graph, name));
        }
    }
    MSC_TRY(msc_graph_add_symbolic_input(&tensor, p->builder->graph, j->name, t->alias, t->dtype,
                                         t->layout, t->n_dims, t->dims, prims));
    return msc_builder_activation(&p->values[from], p->builder, t->alias, tensor);
}

// Copies a `constant` joint. Other joints may have the same weight, so the joint gets a value of
// its own.
static enum msc_status copy_constant(struct msc_prune *p, const struct msc_joint *j) {
    struct msc_value *weight;
    const char *alias = msc_graph_tensor(p->from, j->outputs[0])->alias;
    int32_t tensor;
    MSC_TRY(find_value(&weight, p, j->operands[0]));
    struct msc_value copy = *weight;
    copy.alias = alias;
    copy.joint_name = j->name;
    copy.tensor = MSC_NO_ID;
    MSC_TRY(msc_builder_tensor(&tensor, p->builder, &copy));
    weight->weight = copy.weight;
    return msc_builder_activation(&p->values[j->outputs[0]], p->builder, alias, tensor);
}

// ---- Joints -----------------------------------------------------------------------------------

static enum msc_status check_output(struct msc_prune *p, const struct msc_joint *j, int32_t i,
                                    const struct msc_value *v) {
    const struct msc_tensor *t = msc_graph_tensor(p->builder->graph, v->tensor);
    int64_t dims[MSC_MAX_DIMS];
    char expected[MSC_DIMS_TEXT_BYTES], found[MSC_DIMS_TEXT_BYTES];
    int n_dims = msc_graph_tensor(p->from, j->outputs[i])->n_dims;
    msc_prune__dims(dims, p, j->outputs[i]);
    if (t->n_dims != n_dims || memcmp(t->dims, dims, (size_t)n_dims * sizeof(dims[0])) != 0) {
        return MSC_FAIL(MSC_E_STATE, "joint '%s' (%s) has shape %s after pruning, expected %s",
                        j->name, msc_op_info(j->op)->name,
                        msc_dims_format(found, t->n_dims, t->dims),
                        msc_dims_format(expected, n_dims, dims));
    }
    return MSC_OK;
}

// Keeps a layout that was derived from consumers, because inference from operands cannot find it.
static enum msc_status keep_layout(struct msc_prune *p, const struct msc_value *v,
                                   const char *layout) {
    struct msc_graph *g = p->builder->graph;
    struct msc_tensor *t = &g->tensors[v->tensor]->tensor;
    if (t->layout[0] == '\0' && layout[0] != '\0') {
        t->layout = msc_arena_strdup(&g->arena, layout);
    }
    return MSC_ALLOCATED(t->layout);
}

static enum msc_status add_joint(struct msc_prune *p, struct msc_builder_copy *copy,
                                 const struct msc_joint *j) {
    MSC_TRY(msc_builder_add(copy->outputs, p->builder, &copy->joint));
    for (int32_t i = 0; i < j->n_outputs; i++) {
        p->values[j->outputs[i]] = copy->outputs[i];
        MSC_TRY(check_output(p, j, i, copy->outputs[i]));
        MSC_TRY(keep_layout(p, copy->outputs[i], msc_graph_tensor(p->from, j->outputs[i])->layout));
    }
    return MSC_OK;
}

// ---- Operands that are not pruned themselves --------------------------------------------------

static const struct msc_channel_follower *find_follower(const struct msc_prune *p,
                                                        const struct msc_joint *j, int32_t tensor) {
    for (int32_t i = 0; i < p->channels->n_followers; i++) {
        const struct msc_channel_follower *f = &p->channels->followers[i];
        int64_t n = f->joint == j->id && f->tensor == tensor
                        ? msc_graph_tensor(p->from, tensor)->dims[f->axis]
                        : 0;
        if (msc_prune__count(p, f->of_tensor, f->of_axis, n) < n) {
            return f;
        }
    }
    return NULL;
}

static enum msc_status name_follower(const char **out, struct msc_prune *p,
                                     const struct msc_joint *j, int32_t tensor) {
    *out = msc_arena_printf(&p->builder->arena, "%s.%s", msc_graph_tensor(p->from, tensor)->name,
                            j->name);
    return MSC_ALLOCATED(*out);
}

// Gives the joint its own copy of a shared constant, with only the elements that it reads.
static enum msc_status copy_constant_for(struct msc_value **out, struct msc_prune *p,
                                         const struct msc_joint *j,
                                         const struct msc_channel_follower *f) {
    const struct msc_value *whole = p->values[f->tensor];
    struct msc_array *left;
    const char *name;
    MSC_TRY(name_follower(&name, p, j, f->tensor));
    MSC_TRY(msc_prune__cut_axis(&left, p->channels, p->is_gone, f->of_tensor, f->of_axis,
                                whole->constant, f->axis));
    enum msc_status status = msc_builder_constant(out, p->builder, name, left);
    msc_array_release(left);
    MSC_TRY(status);
    (*out)->layout = whole->layout;
    return MSC_OK;
}

static enum msc_status take_for(struct msc_value **out, struct msc_prune *p,
                                const struct msc_joint *j, const struct msc_channel_follower *f) {
    struct msc_value *operands[2] = {p->values[f->tensor], NULL};
    const struct msc_attr axis = {"axis", msc_builder_int(p->builder, f->axis)};
    const char *name, *alias = "";
    int64_t n = msc_graph_tensor(p->from, f->tensor)->dims[f->axis], n_left = 0;
    int64_t dims[] = {msc_prune__count(p, f->of_tensor, f->of_axis, n)};
    struct msc_array *indices;
    MSC_TRY(name_follower(&name, p, j, f->tensor));
    MSC_TRY(msc_array_create(&indices, MSC_DTYPE_I64, 1, dims));
    for (int64_t i = 0; i < n; i++) {
        int32_t unit = msc_channels_unit(p->channels, f->of_tensor, f->of_axis, i);
        if (unit == MSC_NO_ID || !p->is_gone[unit]) {
            ((int64_t *)msc_array_data(indices))[n_left++] = i;
        }
    }
    enum msc_status status = msc_builder_constant(&operands[1], p->builder, name, indices);
    msc_array_release(indices);
    const struct msc_builder_joint joint = {.op = MSC_OP_TAKE,
                                            .name = name,
                                            .scope = j->scope,
                                            .n_operands = 2,
                                            .operands = operands,
                                            .n_attrs = 1,
                                            .attrs = &axis,
                                            .n_outputs = 1,
                                            .aliases = &alias};
    return status == MSC_OK ? msc_builder_add(out, p->builder, &joint) : status;
}

static enum msc_status find_operand(struct msc_value *operands[], struct msc_prune *p,
                                    const struct msc_joint *j, int32_t i) {
    const struct msc_channel_follower *f = find_follower(p, j, j->operands[i]);
    int32_t k = 0;
    while (j->operands[k] != j->operands[i]) {
        k++;
    }
    if (k < i) {
        operands[i] = operands[k]; // the joint reads the same tensor twice
        return MSC_OK;
    }
    MSC_TRY(find_value(&operands[i], p, j->operands[i]));
    return f == NULL                       ? MSC_OK
           : operands[i]->constant != NULL ? copy_constant_for(&operands[i], p, j, f)
                                           : take_for(&operands[i], p, j, f);
}

static enum msc_status copy_operator(struct msc_prune *p, const struct msc_joint *j) {
    struct msc_builder_copy copy;
    MSC_TRY(msc_builder_copy_joint(&copy, p->builder, j));
    for (int32_t i = 0; i < j->n_operands; i++) {
        if (j->operands[i] != MSC_NO_ID) {
            MSC_TRY(find_operand(copy.operands, p, j, i));
        }
    }
    for (int32_t i = 0; i < j->n_outputs; i++) {
        copy.aliases[i] = msc_graph_tensor(p->from, j->outputs[i])->alias;
    }
    MSC_TRY(msc_prune__attrs(&copy, p, j));
    return add_joint(p, &copy, j);
}

// ---- Shuffles ---------------------------------------------------------------------------------

// Makes the indices of the `take` that replaces a shuffle: for each remaining output channel, the
// position of its input channel among the remaining input channels.
static enum msc_status make_indices(struct msc_value **out, struct msc_prune *p,
                                    const struct msc_shuffle *s) {
    int32_t y = s->merge->outputs[0], x = s->split->operands[0];
    int64_t length = msc_graph_tensor(p->from, y)->dims[s->axis], n = 0;
    int64_t dims[] = {msc_prune__count(p, y, s->axis, length)};
    struct msc_array *indices;
    MSC_TRY(msc_array_create(&indices, MSC_DTYPE_I64, 1, dims));
    for (int64_t c = 0; c < length; c++) {
        int32_t unit = msc_channels_unit(p->channels, y, s->axis, c);
        if (unit == MSC_NO_ID || !p->is_gone[unit]) {
            ((int64_t *)msc_array_data(indices))[n++] =
                msc_prune__count(p, x, s->axis, msc_shuffle_from(s, c));
        }
    }
    const char *name = msc_arena_printf(&p->builder->arena, "%s.channels", s->merge->name);
    enum msc_status status = name == NULL ? MSC_FAIL(MSC_E_NOMEM, "out of memory")
                                          : msc_builder_constant(out, p->builder, name, indices);
    msc_array_release(indices);
    return status;
}

static enum msc_status take_shuffled(struct msc_prune *p, const struct msc_shuffle *s) {
    struct msc_value *operands[2], *output;
    const char *alias = msc_graph_tensor(p->from, s->merge->outputs[0])->alias;
    const struct msc_attr axis = {"axis", msc_builder_int(p->builder, s->axis)};
    const struct msc_builder_joint joint = {.op = MSC_OP_TAKE,
                                            .name = s->merge->name,
                                            .scope = s->merge->scope,
                                            .n_operands = 2,
                                            .operands = operands,
                                            .n_attrs = 1,
                                            .attrs = &axis,
                                            .n_outputs = 1,
                                            .aliases = &alias};
    struct msc_builder_copy copy = {.joint = joint, .outputs = &output};
    MSC_TRY(find_value(&operands[0], p, s->split->operands[0]));
    MSC_TRY(make_indices(&operands[1], p, s));
    return add_joint(p, &copy, s->merge);
}

// True if the joint is part of a shuffle that loses channels. *is_last is true if it is the last
// joint of the shuffle.
static bool find_cut_shuffle(struct msc_shuffle *s, bool *is_last, const struct msc_prune *p,
                             const struct msc_joint *j) {
    *is_last = msc_shuffle_find(s, p->from, j);
    return (*is_last || msc_shuffle_around(s, p->from, j)) &&
           msc_prune__is_cut(p, s->merge->outputs[0], s->axis);
}

// ---- The graph --------------------------------------------------------------------------------

static enum msc_status copy_joint(struct msc_prune *p, const struct msc_joint *j) {
    struct msc_shuffle s;
    bool is_last;
    if (j->op == MSC_OP_INPUT) {
        return copy_input(p, j);
    }
    if (j->op == MSC_OP_CONSTANT) {
        return copy_constant(p, j);
    }
    if (find_cut_shuffle(&s, &is_last, p, j)) {
        return is_last ? take_shuffled(p, &s) : MSC_OK;
    }
    return copy_operator(p, j);
}

static enum msc_status set_outputs(struct msc_prune *p) {
    const struct msc_graph *g = p->from;
    int32_t *outputs = msc_arena_array(&p->builder->arena, (size_t)g->n_outputs, sizeof(*outputs));
    MSC_TRY(MSC_ALLOCATED(outputs));
    for (int32_t i = 0; i < g->n_outputs; i++) {
        MSC_TRY(msc_builder_tensor(&outputs[i], p->builder, p->values[g->outputs[i]]));
    }
    MSC_TRY(msc_graph__set_outputs(p->builder->graph, g->n_outputs, outputs));
    return msc_graph_finalize(p->builder->graph);
}

static enum msc_status prune_build(struct msc_prune *p) {
    struct msc_builder *b = p->builder;
    MSC_TRY(msc_graph__create_like(&b->graph, p->from->name, p->from));
    MSC_TRY(msc_graph_set_notes(b->graph, &p->from->notes));
    p->values = msc_arena_array(&b->arena, (size_t)p->from->n_tensors, sizeof(p->values[0]));
    MSC_TRY(MSC_ALLOCATED(p->values));
    for (int32_t i = 0; i < p->from->n_joints; i++) {
        MSC_TRY(msc_builder_reserve(b, p->from->joints[i]->joint.name));
    }
    for (int32_t i = 0; i < p->from->n_joints; i++) {
        MSC_TRY(copy_joint(p, &p->from->joints[i]->joint));
    }
    return set_outputs(p);
}

static enum msc_status prune_plain(struct msc_graph **out, const struct msc_graph *g,
                                   const struct msc_channels *channels, const bool is_gone[],
                                   const struct msc_array *const elements[]) {
    struct msc_builder builder = {0};
    struct msc_prune p = {.from = g,
                          .channels = channels,
                          .is_gone = is_gone,
                          .elements = elements,
                          .builder = &builder};
    MSC_TRY(msc_channels_check(channels, is_gone));
    enum msc_status status = prune_build(&p);
    if (status == MSC_OK) {
        *out = builder.graph;
    } else {
        msc_graph_destroy(builder.graph);
    }
    msc_builder_finish(&builder);
    return status;
}

// Converts replaced elements to the types of the weights in `own`. The caller owns the arrays in
// `to`; entries without replaced elements do not change.
static enum msc_status convert_elements(struct msc_array *to[], const struct msc_graph *own,
                                        const struct msc_array *const from[]) {
    for (int32_t i = 0; from != NULL && i < own->n_tensors; i++) {
        if (from[i] != NULL) {
            MSC_TRY(msc_array_convert(&to[i], from[i], own->tensors[i]->tensor.dtype));
        }
    }
    return MSC_OK;
}

// Prunes the graph in the model's own types, and widens the result.
static enum msc_status prune_wide(struct msc_graph **out, const struct msc_graph *g,
                                  const struct msc_channels *channels, const bool is_gone[],
                                  const struct msc_array *const elements[]) {
    const struct msc_graph *own = msc_graph_own(g);
    struct msc_graph *pruned = NULL;
    struct msc_array **converted = msc_alloc_zero((size_t)g->n_tensors + 1, sizeof(converted[0]));
    MSC_TRY(MSC_ALLOCATED(converted));
    enum msc_status status = convert_elements(converted, own, elements);
    if (status == MSC_OK) {
        status = prune_plain(&pruned, own, channels, is_gone,
                             (const struct msc_array *const *)converted);
    }
    if (status == MSC_OK) {
        status = msc_graph_widen(out, pruned);
    }
    for (int32_t i = 0; i < g->n_tensors; i++) {
        msc_array_release(converted[i]);
    }
    msc_free(converted);
    msc_graph_destroy(pruned);
    return status;
}

enum msc_status msc_graph_prune(struct msc_graph **out, const struct msc_graph *g,
                                const struct msc_channels *channels, const bool is_gone[],
                                const struct msc_array *const elements[]) {
    return msc_graph_own(g) == g ? prune_plain(out, g, channels, is_gone, elements)
                                 : prune_wide(out, g, channels, is_gone, elements);
}
