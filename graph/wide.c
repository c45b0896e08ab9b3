#include "graph/wide.h"

#include "base/str.h"
#include "graph/graph_internal.h"

#include <assert.h>
#include <string.h>

static bool is_narrow(enum msc_dtype dtype) {
    return dtype == MSC_DTYPE_F16 || dtype == MSC_DTYPE_BF16;
}

size_t msc_graph_own_bytes(const struct msc_graph *g, int32_t tensor) {
    return msc_dtype_bytes(msc_graph_own(g)->tensors[tensor]->tensor.dtype);
}

// ---- Widening ---------------------------------------------------------------------------------

// True if a Cast produces the tensor and only Casts read it.
static bool is_between_casts(const struct msc_graph *g, int32_t tensor) {
    const struct msc_graph_tensor *t = g->tensors[tensor];
    int32_t producer = t->tensor.producer;
    bool is_between = producer != MSC_NO_ID && g->joints[producer]->joint.op == MSC_OP_CAST &&
                      t->n_consumers > 0 && !msc_graph_is_output(g, tensor);
    for (int32_t i = 0; is_between && i < t->n_consumers; i++) {
        is_between = g->joints[t->consumers[i]]->joint.op == MSC_OP_CAST;
    }
    return is_between;
}

static bool has_narrow(const struct msc_graph *g) {
    for (int32_t i = 0; i < g->n_tensors; i++) {
        if (is_narrow(g->tensors[i]->tensor.dtype) && !is_between_casts(g, i)) {
            return true;
        }
    }
    for (size_t i = 0; i < g->n_bodies; i++) {
        if (has_narrow(g->bodies[i])) {
            return true;
        }
    }
    return false;
}

static enum msc_status widen_tensor(struct msc_graph *g, int32_t tensor) {
    struct msc_tensor *t = &g->tensors[tensor]->tensor;
    struct msc_array *wide;
    if (!is_narrow(t->dtype) || is_between_casts(g, tensor)) {
        return MSC_OK;
    }
    t->dtype = MSC_DTYPE_F32;
    if (t->data != NULL) {
        MSC_TRY(msc_array_convert(&wide, t->data, MSC_DTYPE_F32));
        msc_array_release((struct msc_array *)t->data);
        t->data = wide;
    }
    return MSC_OK;
}

// Replaces the bodies of a joint by those that `make` returns.
static enum msc_status replace_bodies(struct msc_graph *g, struct msc_joint *j,
                                      enum msc_status (*make)(struct msc_graph **out,
                                                              const struct msc_graph *body)) {
    const struct msc_graph **graphs = (const struct msc_graph **)j->graphs;
    for (int32_t i = 0; i < j->n_graphs; i++) {
        struct msc_graph *body;
        MSC_TRY(msc_grow(&g->bodies, &g->bodies_capacity, g->n_bodies + 1, sizeof(g->bodies[0])));
        MSC_TRY(make(&body, graphs[i]));
        g->bodies[g->n_bodies++] = body;
        graphs[i] = body;
    }
    return MSC_OK;
}

// The signature of an external joint in float32: a plug-in computes it in that type.
static enum msc_status widen_signature(struct msc_graph *g, struct msc_attr *attr) {
    struct msc_str text = {0};
    const char *c = attr->value;
    while (c[0] != '\0') {
        size_t n = strncmp(c, "float16[", 8) == 0 ? 7 : strncmp(c, "bfloat16[", 9) == 0 ? 8 : 0;
        msc_str_append_n(&text, n > 0 ? "float32" : c, n > 0 ? 7 : 1);
        c += n > 0 ? n : 1;
    }
    const char *kept = msc_str_keep(&text, &g->arena);
    attr->value = kept;
    return MSC_ALLOCATED(kept);
}

static enum msc_status widen_joint(struct msc_graph *g, struct msc_joint *j) {
    struct msc_attr *attrs = (struct msc_attr *)j->attrs;
    const struct msc_tensor *y = &g->tensors[j->outputs[0]]->tensor;
    for (int32_t i = 0; i < j->n_attrs; i++) {
        if (strcmp(attrs[i].key, "dtype") == 0 && y->dtype == MSC_DTYPE_F32 &&
            is_narrow(msc_dtype_find(attrs[i].value))) {
            attrs[i].value = msc_dtype_name(MSC_DTYPE_F32);
        }
    }
    for (int32_t i = 0; j->op == MSC_OP_EXTERNAL && i < j->n_attrs; i++) {
        if (strcmp(attrs[i].key, "signature") == 0) {
            MSC_TRY(widen_signature(g, &attrs[i]));
        }
    }
    if (j->op == MSC_OP_CAST && y->dtype == MSC_DTYPE_F32 &&
        g->tensors[j->operands[0]]->tensor.dtype == y->dtype) {
        j->op = MSC_OP_IDENTITY;
        j->n_attrs = 0;
    }
    return replace_bodies(g, j, msc_graph_widen);
}

static enum msc_status widen_all(struct msc_graph *g) {
    // Widens all tensors first: widen_tensor looks for Casts, and some Casts become identities
    // below.
    for (int32_t i = 0; i < g->n_tensors; i++) {
        MSC_TRY(widen_tensor(g, i));
    }
    for (int32_t i = 0; i < g->n_joints; i++) {
        MSC_TRY(widen_joint(g, &g->joints[i]->joint));
    }
    return MSC_OK;
}

enum msc_status msc_graph_widen(struct msc_graph **out, const struct msc_graph *g) {
    struct msc_graph *wide;
    assert(g->is_final);
    if (g->own != NULL || !has_narrow(g)) {
        *out = msc_graph_retain(g);
        return MSC_OK;
    }
    MSC_TRY(msc_graph_clone(&wide, g));
    enum msc_status status = widen_all(wide);
    if (status != MSC_OK) {
        msc_graph_destroy(wide);
        return status;
    }
    wide->own = msc_graph_retain(g);
    *out = wide;
    return MSC_OK;
}

// ---- Rounding ---------------------------------------------------------------------------------

// Adds a Cast of *tensor, which becomes the Cast's output.
static enum msc_status add_cast(int32_t *tensor, struct msc_graph *g, enum msc_dtype dtype) {
    const struct msc_attr attr = {"dtype", msc_dtype_name(dtype)};
    const struct msc_joint_spec spec = {
        .op = MSC_OP_CAST, .n_inputs = 1, .inputs = tensor, .n_attrs = 1, .attrs = &attr};
    int32_t joint;
    MSC_TRY(msc_graph_add_joint(&joint, g, &spec));
    *tensor = g->joints[joint]->outputs[0];
    return MSC_OK;
}

// True if the tensor needs no rounding: it is a constant, or its joint only selects or moves
// elements of an operand that is rounded already.
static bool is_rounded(const struct msc_graph *g, const struct msc_graph *own, int32_t tensor) {
    const struct msc_joint *j = &g->joints[g->tensors[tensor]->tensor.producer]->joint;
    bool is_move = j->op == MSC_OP_IDENTITY || j->op == MSC_OP_RELU || j->op == MSC_OP_MAX_POOL2D ||
                   msc_op_has_trait(j->op, MSC_TRAIT_PART);
    return j->op == MSC_OP_CONSTANT || (is_move && own->tensors[j->operands[0]]->tensor.dtype ==
                                                       own->tensors[tensor]->tensor.dtype);
}

// Rounds the tensor with two Casts. The rounded tensor takes over the alias (the model's own name),
// because other modules look up tensors by alias.
static enum msc_status round_tensor(int32_t *map, struct msc_graph *g, int32_t tensor,
                                    enum msc_dtype own) {
    int32_t rounded = tensor;
    MSC_TRY(add_cast(&rounded, g, own));
    MSC_TRY(add_cast(&rounded, g, MSC_DTYPE_F32));
    struct msc_tensor *from = &g->tensors[tensor]->tensor;
    if (g->joints[from->producer]->joint.op != MSC_OP_INPUT) {
        const char *alias = from->alias;
        MSC_TRY(msc_graph_set_alias(g, tensor, ""));
        MSC_TRY(msc_graph_set_alias(g, rounded, alias));
    }
    *map = rounded;
    return MSC_OK;
}

static enum msc_status round_body(struct msc_graph **out, const struct msc_graph *body) {
    int32_t *map;
    if (body->own == NULL) {
        *out = msc_graph_retain(body);
        return MSC_OK;
    }
    map = msc_alloc_zero((size_t)body->n_tensors + 1, sizeof(map[0]));
    MSC_TRY(MSC_ALLOCATED(map));
    enum msc_status status = msc_graph_round(out, map, body);
    msc_free(map);
    return status;
}

static void map_ids(int32_t ids[], int32_t n, const int32_t map[]) {
    for (int32_t i = 0; i < n; i++) {
        ids[i] = ids[i] == MSC_NO_ID ? MSC_NO_ID : map[ids[i]];
    }
}

// Adds Casts that round the tensors, and lets the joints of `g` read the rounded tensors. Only the
// first n_joints joints are changed, because the Casts, added after them, must read the originals.
static enum msc_status round_all(struct msc_graph *g, int32_t map[], const struct msc_graph *own) {
    int32_t n_tensors = g->n_tensors, n_joints = g->n_joints;
    for (int32_t i = 0; i < n_tensors; i++) {
        enum msc_dtype dtype = own->tensors[i]->tensor.dtype;
        bool is_weight = g->tensors[i]->tensor.producer == MSC_NO_ID;
        map[i] = i;
        if (!is_weight && dtype != g->tensors[i]->tensor.dtype && !is_rounded(g, own, i)) {
            MSC_TRY(round_tensor(&map[i], g, i, dtype));
        }
    }
    for (int32_t i = 0; i < n_joints; i++) {
        struct msc_graph_joint *j = g->joints[i];
        map_ids(j->operands, j->joint.n_operands, map);
        msc_graph__refresh_joint(g, j);
        MSC_TRY(replace_bodies(g, &j->joint, round_body));
    }
    map_ids(g->outputs, g->n_outputs, map);
    return MSC_OK;
}

// Finalizes the rounded graph and updates `map`. Finalizing renumbers tensors, so they are looked
// up by name. It also removes Casts that no joint reads; then the tensor before the Casts is
// mapped.
static enum msc_status find_again(int32_t map[], struct msc_arena *arena, struct msc_graph *rounded,
                                  const struct msc_graph *g) {
    size_t n = (size_t)g->n_tensors;
    const char **names = msc_arena_array(arena, n + 1, sizeof(names[0]));
    MSC_TRY(MSC_ALLOCATED(names));
    for (size_t i = 0; i < n; i++) {
        names[i] = rounded->tensors[map[i]]->tensor.name;
    }
    MSC_TRY(msc_graph_finalize(rounded));
    for (size_t i = 0; i < n; i++) {
        map[i] = msc_graph__live_tensor(rounded, names[i]);
        map[i] = map[i] != MSC_NO_ID ? map[i]
                                     : msc_graph__live_tensor(rounded, g->tensors[i]->tensor.name);
    }
    return MSC_OK;
}

enum msc_status msc_graph_round(struct msc_graph **out, int32_t map[], const struct msc_graph *g) {
    struct msc_arena arena = {0};
    struct msc_graph *rounded;
    MSC_TRY(msc_graph_clone(&rounded, g));
    enum msc_status status = round_all(rounded, map, msc_graph_own(g));
    if (status == MSC_OK) {
        status = find_again(map, &arena, rounded, g);
    }
    msc_arena_finish(&arena);
    if (status != MSC_OK) {
        msc_graph_destroy(rounded);
        return status;
    }
    *out = rounded;
    return MSC_OK;
}
