#include "graph/passes/unroll.h"

#include "base/str.h"
#include "graph/graph_internal.h"

#include <stdio.h>
#include <string.h>

enum { MOST_JOINED = 32 }; // maximum number of operands of a concat

struct unroller {
    const struct msc_graph *from;
    const struct msc_unroll *unroll;
    struct msc_graph *to;
    struct msc_arena arena;
    // [n_tensors] copy of each tensor in this chunk, and in the previous chunk
    int32_t *now, *before;
    int32_t **parts; // [n_gathered][n_chunks]
    int32_t *outputs;
    int32_t n_outputs;
};

static const char *chunk_name(struct unroller *u, const char *name, int64_t chunk) {
    return chunk == 0 ? name : msc_arena_printf(&u->arena, "chunk_%lld/%s", (long long)chunk, name);
}

static bool is_shared(const struct msc_joint *j) {
    return j->op == MSC_OP_CONSTANT;
}

// ---- Shared by all chunks ---------------------------------------------------------------------

static enum msc_status copy_prims(struct unroller *u) {
    for (int32_t i = 0; i < u->from->n_prims; i++) {
        const struct msc_prim *p = u->from->prims[i];
        int32_t id;
        MSC_TRY(msc_graph__add_prim(&id, u->to, p->name, p->optype, p->n_parents, p->parents,
                                    p->n_attrs, p->attrs));
    }
    return MSC_OK;
}

static enum msc_status copy_weights(struct unroller *u) {
    for (int32_t i = 0; i < u->from->n_tensors; i++) {
        const struct msc_tensor *t = &u->from->tensors[i]->tensor;
        if (t->producer == MSC_NO_ID) {
            MSC_TRY(msc_graph__add_tensor(&u->now[i], u->to, t));
            u->to->tensors[u->now[i]]->tensor.data = msc_array_retain(t->data);
        }
    }
    return MSC_OK;
}

static enum msc_status add_inputs(struct unroller *u) {
    for (int32_t i = 0; i < u->from->n_inputs; i++) {
        int32_t tensor = u->from->inputs[i];
        const struct msc_tensor *t = &u->from->tensors[tensor]->tensor;
        const struct msc_joint *j = &u->from->joints[t->producer]->joint;
        bool is_chunked = u->unroll->is_chunked[i];
        int64_t dims[MSC_MAX_DIMS + 1] = {u->unroll->n_chunks};
        memcpy(dims + is_chunked, t->dims, (size_t)t->n_dims * sizeof(dims[0]));
        MSC_TRY(msc_graph_add_input(&u->now[tensor], u->to, j->name, t->alias, t->dtype,
                                    is_chunked ? "" : t->layout, t->n_dims + is_chunked, dims));
    }
    return MSC_OK;
}

// ---- A chunk ----------------------------------------------------------------------------------

static enum msc_status copy_outputs(struct unroller *u, struct msc_graph_joint *to,
                                    const struct msc_joint *j) {
    for (int32_t i = 0; i < j->n_outputs; i++) {
        struct msc_tensor t = u->from->tensors[j->outputs[i]]->tensor;
        t.name = msc_arena_printf(&u->arena, "%s:%d", to->joint.name, (int)i);
        t.alias = "";
        t.producer = u->to->n_joints; // id that the joint is about to get
        MSC_TRY(MSC_ALLOCATED(t.name));
        MSC_TRY(msc_graph__add_tensor(&to->outputs[i], u->to, &t));
        u->now[j->outputs[i]] = to->outputs[i];
    }
    return MSC_OK;
}

// Copies a joint for a chunk, with the chunk's tensors as operands and outputs.
static enum msc_status copy_joint(struct unroller *u, const struct msc_graph_joint *from,
                                  int64_t chunk) {
    const struct msc_joint *j = &from->joint;
    struct msc_graph_joint *to;
    struct msc_joint_spec spec = {
        .op = j->op,
        .name = chunk_name(u, j->name, chunk),
        .scope = j->scope,
        .n_attrs = j->n_attrs,
        .attrs = j->attrs,
        .n_graphs = j->n_graphs,
        .graphs = j->graphs,
    };
    MSC_TRY(MSC_ALLOCATED(spec.name));
    MSC_TRY(msc_graph__new_joint(&to, u->to, &spec, j->n_operands, j->n_outputs));
    for (int32_t i = 0; i < j->n_operands; i++) {
        to->operands[i] = j->operands[i] == MSC_NO_ID ? MSC_NO_ID : u->now[j->operands[i]];
    }
    for (int32_t i = 0; i < j->n_weights; i++) {
        to->weights[i].role = msc_arena_strdup(&u->to->arena, from->weights[i].role);
        MSC_TRY(MSC_ALLOCATED(to->weights[i].role));
    }
    // Copies the attributes instead of completing them: a parameter that is given as an input must
    // not get its default attribute.
    to->joint.n_attrs = 0;
    struct msc_attr *attrs = (struct msc_attr *)to->joint.attrs;
    for (int32_t i = 0; i < j->n_attrs; i++) {
        attrs[i].key = msc_arena_strdup(&u->to->arena, j->attrs[i].key);
        attrs[i].value = msc_arena_strdup(&u->to->arena, j->attrs[i].value);
        MSC_TRY(MSC_ALLOCATED(attrs[i].key && attrs[i].value));
        to->joint.n_attrs++;
    }
    MSC_TRY(copy_outputs(u, to, j));
    msc_graph__refresh_joint(u->to, to);
    return msc_graph__push_joint(u->to, to);
}

static enum msc_status unroll_add_joint(int32_t *out, struct unroller *u, const char *name,
                                        enum msc_op op, int32_t n_inputs, const int32_t inputs[],
                                        int32_t n_attrs, const struct msc_attr attrs[]) {
    int32_t joint;
    const struct msc_joint_spec spec = {.op = op,
                                        .name = name,
                                        .n_inputs = n_inputs,
                                        .inputs = inputs,
                                        .n_attrs = n_attrs,
                                        .attrs = attrs};
    MSC_TRY(MSC_ALLOCATED(name));
    MSC_TRY(msc_graph_add_joint(&joint, u->to, &spec));
    *out = u->to->joints[joint]->outputs[0];
    return MSC_OK;
}

// Adds a reshape to the dimensions of `t`. If `first` is not 0, an axis of this length precedes
// them.
static enum msc_status unroll_reshape(int32_t *out, struct unroller *u, const char *name,
                                      int32_t from, int64_t first, const struct msc_tensor *t) {
    struct msc_str text = {0};
    const char *separator = "";
    if (first > 0) {
        msc_str_printf(&text, "%lld", (long long)first);
        separator = ",";
    }
    for (int i = 0; i < t->n_dims; i++) {
        msc_str_printf(&text, "%s%lld", separator, (long long)t->dims[i]);
        separator = ",";
    }
    enum msc_status status = msc_str_status(&text);
    if (status == MSC_OK) {
        const struct msc_attr attr = {"shape", msc_str_text(&text)};
        status = unroll_add_joint(out, u, name, MSC_OP_RESHAPE, 1, &from, 1, &attr);
    }
    msc_str_finish(&text);
    return status;
}

static enum msc_status take_chunk(struct unroller *u, int32_t tensor, int32_t all, int64_t chunk) {
    const struct msc_tensor *t = &u->from->tensors[tensor]->tensor;
    const char *name = u->from->joints[t->producer]->joint.name;
    char begin[24], end[24];
    snprintf(begin, sizeof(begin), "%lld", (long long)chunk);
    snprintf(end, sizeof(end), "%lld", (long long)chunk + 1);
    const struct msc_attr attrs[] = {{"begin", begin}, {"end", end}, {"axes", "0"}};
    int32_t cut = MSC_NO_ID;
    MSC_TRY(unroll_add_joint(
        &cut, u, msc_arena_printf(&u->arena, "chunk_%lld/%s_cut", (long long)chunk, name),
        MSC_OP_STRIDED_SLICE, 1, &all, 3, attrs));
    return unroll_reshape(&u->now[tensor], u,
                          msc_arena_printf(&u->arena, "chunk_%lld/%s", (long long)chunk, name), cut,
                          0, t);
}

static enum msc_status check_state(const struct unroller *u, int32_t input, int32_t state) {
    const struct msc_tensor *to = &u->from->tensors[input]->tensor;
    const struct msc_tensor *t = &u->from->tensors[state]->tensor;
    if (to->dtype == t->dtype && to->n_dims == t->n_dims &&
        memcmp(to->dims, t->dims, (size_t)t->n_dims * sizeof(t->dims[0])) == 0) {
        return MSC_OK;
    }
    char a[MSC_DIMS_TEXT_BYTES], b[MSC_DIMS_TEXT_BYTES];
    return MSC_FAIL(MSC_E_INVALID, "input %s is %s %s, but %s, which feeds it, is %s %s", to->alias,
                    msc_dims_format(a, to->n_dims, to->dims), msc_dtype_name(to->dtype),
                    msc_tensor_label(t), msc_dims_format(b, t->n_dims, t->dims),
                    msc_dtype_name(t->dtype));
}

static enum msc_status set_inputs(struct unroller *u, const int32_t inputs[], int64_t chunk) {
    for (int32_t i = 0; i < u->from->n_inputs; i++) {
        int32_t tensor = u->from->inputs[i], state = u->unroll->state_of[i];
        u->now[tensor] = inputs[i];
        if (u->unroll->is_chunked[i]) {
            MSC_TRY(take_chunk(u, tensor, inputs[i], chunk));
        } else if (state != MSC_NO_ID && chunk > 0) {
            u->now[tensor] = u->before[state];
        }
    }
    return MSC_OK;
}

static enum msc_status add_chunk(struct unroller *u, const int32_t inputs[], int64_t chunk) {
    const struct msc_graph *g = u->from;
    MSC_TRY(set_inputs(u, inputs, chunk));
    for (int32_t i = 0; i < g->n_joints; i++) {
        const struct msc_joint *j = &g->joints[i]->joint;
        if (j->op != MSC_OP_INPUT && (chunk == 0 || !is_shared(j))) {
            MSC_TRY(copy_joint(u, g->joints[i], chunk));
        }
    }
    for (size_t i = 0; i < u->unroll->n_gathered; i++) {
        u->parts[i][chunk] = u->now[u->unroll->gathered[i]];
    }
    for (int32_t i = 0; i < g->n_outputs; i++) {
        const struct msc_tensor *t = &g->tensors[g->outputs[i]]->tensor;
        if (chunk == 0 || !is_shared(&g->joints[t->producer]->joint)) {
            u->outputs[u->n_outputs++] = u->now[g->outputs[i]];
        }
    }
    memcpy(u->before, u->now, (size_t)g->n_tensors * sizeof(u->now[0]));
    return MSC_OK;
}

// ---- Gathered tensors -------------------------------------------------------------------------

static enum msc_status unroll_join(int32_t *out, struct unroller *u, const char *name,
                                   int32_t parts[], int64_t n) {
    const struct msc_attr axis = {"axis", "0"};
    while (n > 1) {
        int64_t n_joined = 0;
        for (int64_t i = 0; i < n; i += MOST_JOINED) {
            int64_t count = n - i < MOST_JOINED ? n - i : MOST_JOINED;
            int32_t joined = parts[i];
            if (count > 1) {
                MSC_TRY(unroll_add_joint(&joined, u, name, MSC_OP_CONCAT, (int32_t)count, &parts[i],
                                         1, &axis));
            }
            parts[n_joined++] = joined;
        }
        n = n_joined;
    }
    *out = parts[0];
    return MSC_OK;
}

static enum msc_status unroll_gather(int32_t *out, struct unroller *u, size_t index) {
    int32_t tensor = u->unroll->gathered[index], *parts = u->parts[index];
    const struct msc_tensor *t = &u->from->tensors[tensor]->tensor;
    if (msc_graph_weight_of(u->from, tensor) != MSC_NO_ID || msc_tensor_n_elements(t) < 0) {
        *out = parts[0];
        return MSC_OK;
    }
    const char *name = u->from->joints[t->producer]->joint.name;
    for (int64_t c = 0; (t->n_dims == 0 || t->dims[0] != 1) && c < u->unroll->n_chunks; c++) {
        MSC_TRY(unroll_reshape(&parts[c], u,
                               msc_arena_printf(&u->arena, "chunk_%lld/%s_row", (long long)c, name),
                               parts[c], 1, t));
    }
    return unroll_join(out, u, msc_arena_printf(&u->arena, "%s_chunks", name), parts,
                       u->unroll->n_chunks);
}

// ---- The whole graph --------------------------------------------------------------------------

static enum msc_status make_room(struct unroller *u, int32_t **inputs) {
    size_t n_tensors = (size_t)u->from->n_tensors + 1, n_chunks = (size_t)u->unroll->n_chunks;
    size_t n_gathered = u->unroll->n_gathered;
    u->now = msc_arena_array(&u->arena, n_tensors, sizeof(int32_t));
    u->before = msc_arena_array(&u->arena, n_tensors, sizeof(int32_t));
    u->parts = msc_arena_array(&u->arena, n_gathered + 1, sizeof(u->parts[0]));
    u->outputs = msc_arena_array(&u->arena, n_gathered + (size_t)u->from->n_outputs * n_chunks + 1,
                                 sizeof(int32_t));
    *inputs = msc_arena_array(&u->arena, (size_t)u->from->n_inputs + 1, sizeof(int32_t));
    bool has_all = u->now && u->before && u->parts && u->outputs && *inputs;
    for (size_t i = 0; has_all && i < n_gathered; i++) {
        u->parts[i] = msc_arena_array(&u->arena, n_chunks + 1, sizeof(int32_t));
        has_all = u->parts[i] != NULL;
    }
    return MSC_ALLOCATED(has_all);
}

static enum msc_status unroll_build(struct unroller *u) {
    int32_t *inputs;
    MSC_TRY(make_room(u, &inputs));
    for (int32_t i = 0; i < u->from->n_inputs; i++) {
        if (u->unroll->state_of[i] != MSC_NO_ID) {
            MSC_TRY(check_state(u, u->from->inputs[i], u->unroll->state_of[i]));
        }
    }
    MSC_TRY(copy_prims(u));
    MSC_TRY(copy_weights(u));
    MSC_TRY(add_inputs(u));
    for (int32_t i = 0; i < u->from->n_inputs; i++) {
        inputs[i] = u->now[u->from->inputs[i]];
    }
    for (int64_t c = 0; c < u->unroll->n_chunks; c++) {
        MSC_TRY(add_chunk(u, inputs, c));
    }
    for (size_t i = 0; i < u->unroll->n_gathered; i++) {
        int32_t tensor;
        MSC_TRY(unroll_gather(&tensor, u, i));
        u->outputs[u->n_outputs++] = tensor;
    }
    MSC_TRY(msc_graph__set_outputs(u->to, u->n_outputs, u->outputs));
    return msc_graph_finalize(u->to);
}

// Finds the unrolled joints by name, because ids changed when the graph was finalized.
static enum msc_status find_joints(struct msc_unrolled *out, struct unroller *u) {
    size_t n_joints = (size_t)u->to->n_joints, n_gathered = u->unroll->n_gathered;
    out->joints = msc_alloc((n_joints + 1) * sizeof(int32_t));
    out->chunks = msc_alloc_zero(n_joints + 1, sizeof(int32_t));
    out->gathered = msc_alloc_zero(n_gathered + 1, sizeof(int32_t));
    MSC_TRY(MSC_ALLOCATED(out->joints && out->chunks && out->gathered));
    memset(out->joints, 0xff, n_joints * sizeof(int32_t));
    for (int32_t i = 0; i < u->from->n_joints; i++) {
        const struct msc_joint *j = &u->from->joints[i]->joint;
        for (int64_t c = 0; j->op != MSC_OP_INPUT && c < u->unroll->n_chunks; c++) {
            const char *name = chunk_name(u, j->name, c);
            int32_t joint = name == NULL ? MSC_NO_ID : msc_graph_find_joint(u->to, name);
            if (joint != MSC_NO_ID) {
                out->joints[joint] = i;
                out->chunks[joint] = (int32_t)c;
            }
        }
    }
    for (size_t i = 0; i < n_gathered; i++) {
        out->gathered[i] = u->to->outputs[u->to->n_outputs - (int32_t)n_gathered + (int32_t)i];
    }
    return MSC_OK;
}

enum msc_status msc_graph_unroll(struct msc_unrolled *out, const struct msc_graph *g,
                                 const struct msc_unroll *unroll) {
    struct unroller u = {.from = g, .unroll = unroll};
    *out = (struct msc_unrolled){0};
    MSC_TRY(msc_graph__create_like(&u.to, g->name, g));
    enum msc_status status = unroll_build(&u);
    if (status == MSC_OK) {
        status = find_joints(out, &u);
    }
    out->graph = u.to;
    if (status != MSC_OK) {
        msc_unrolled_finish(out);
    }
    msc_arena_finish(&u.arena);
    return status;
}

void msc_unrolled_finish(struct msc_unrolled *unrolled) {
    msc_graph_destroy(unrolled->graph);
    msc_free(unrolled->gathered);
    msc_free(unrolled->joints);
    msc_free(unrolled->chunks);
    *unrolled = (struct msc_unrolled){0};
}
