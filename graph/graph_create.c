// Creates and destroys graphs, and adds tensors.
#include "graph/graph_internal.h"
#include "graph/operators_internal.h"

#include <assert.h>
#include <string.h>

enum msc_status msc_graph_create(struct msc_graph **out, const char *name) {
    struct msc_graph *g = msc_alloc_zero(1, sizeof(*g));
    MSC_TRY(MSC_ALLOCATED(g));
    g->name = msc_arena_strdup(&g->arena, name);
    if (g->name == NULL) {
        msc_graph_destroy(g);
        return MSC_FAIL(MSC_E_NOMEM, "graph '%s': out of memory", name);
    }
    *out = g;
    return MSC_OK;
}

enum msc_status msc_graph__create_like(struct msc_graph **out, const char *name,
                                       const struct msc_graph *from) {
    MSC_TRY(msc_graph_create(out, name));
    (*out)->operators = msc_operators_retain(from->operators);
    return MSC_OK;
}

struct msc_graph *msc_graph_retain(const struct msc_graph *g) {
    struct msc_graph *own = (struct msc_graph *)g;
    __atomic_fetch_add(&own->n_references, 1, __ATOMIC_RELAXED);
    return own;
}

void msc_graph_destroy(struct msc_graph *g) {
    if (g == NULL || __atomic_fetch_sub(&g->n_references, 1, __ATOMIC_ACQ_REL) > 0) {
        return;
    }
    for (size_t i = 0; i < g->n_bodies; i++) {
        msc_graph_destroy(g->bodies[i]);
    }
    msc_free(g->bodies);
    msc_graph_destroy(g->own);
    msc_operators_release(g->operators);
    for (int32_t i = 0; i < g->n_tensors; i++) {
        msc_array_release((struct msc_array *)g->tensors[i]->tensor.data);
    }
    msc_graph__names_finish(&g->joint_names);
    msc_graph__names_finish(&g->tensor_names);
    msc_graph__names_finish(&g->aliases);
    msc_graph__names_finish(&g->prim_names);
    msc_free(g->joints);
    msc_free(g->tensors);
    msc_free(g->prims);
    msc_free(g->inputs);
    msc_free(g->outputs);
    msc_arena_finish(&g->arena);
    msc_free(g);
}

// Limits of a tensor, larger than any machine can hold. If a tensor is within them, its number of
// bytes fits in 64 bits, and so do sums and small multiples of its lengths.
#define MAX_LENGTH ((int64_t)1 << 40)
#define MAX_ELEMENTS ((int64_t)1 << 48)

// Fails if the tensor exceeds a limit. Symbolic lengths and lengths of 0 count as 1, so that
// strides fit in 64 bits, too.
static enum msc_status check_size(const struct msc_tensor *t) {
    int64_t n_elements = 1;
    for (int i = 0; i < t->n_dims; i++) {
        int64_t length = t->dims[i] < 1 ? 1 : t->dims[i];
        if (length > MAX_LENGTH || n_elements > MAX_ELEMENTS / length) {
            char text[MSC_DIMS_TEXT_BYTES];
            return MSC_FAIL(
                MSC_E_INVALID,
                "tensor '%s' of %s is too large: the limits are 2^40 along a dimension and "
                "2^48 elements",
                t->name, msc_dims_format(text, t->n_dims, t->dims));
        }
        n_elements *= length;
    }
    return MSC_OK;
}

static enum msc_status check_tensor(const struct msc_graph *g, const struct msc_tensor *t) {
    if (t->n_dims < 0 || t->n_dims > MSC_MAX_DIMS) {
        return MSC_FAIL(MSC_E_INVALID, "tensor '%s' has %d dimensions, expected 0 to %d", t->name,
                        t->n_dims, MSC_MAX_DIMS);
    }
    if (t->layout[0] != '\0' && strlen(t->layout) != (size_t)t->n_dims) {
        return MSC_FAIL(MSC_E_INVALID, "tensor '%s': layout '%s' does not name %d axes", t->name,
                        t->layout, t->n_dims);
    }
    if (t->dtype <= MSC_DTYPE_NONE || t->dtype >= MSC_DTYPE_COUNT) {
        return MSC_FAIL(MSC_E_INVALID, "tensor '%s' has an unknown element type", t->name);
    }
    for (int i = 0; i < t->n_dims; i++) {
        bool is_symbolic = t->prims[i] != MSC_NO_ID;
        if (t->prims[i] >= g->n_prims || t->prims[i] < MSC_NO_ID) {
            return MSC_FAIL(MSC_E_INVALID, "tensor '%s': dimension %d has an unknown prim", t->name,
                            i);
        }
        if (t->dims[i] < -1 || is_symbolic != (t->dims[i] == -1)) {
            return MSC_FAIL(MSC_E_INVALID,
                            "tensor '%s': dimension %d is %lld%s, expected 0 or more, or "
                            "-1 with a symbol",
                            t->name, i, (long long)t->dims[i], is_symbolic ? " with a symbol" : "");
        }
    }
    MSC_TRY(check_size(t));
    if (msc_graph__live_tensor(g, t->name) != MSC_NO_ID) {
        return MSC_FAIL(MSC_E_INVALID, "graph '%s' already has a tensor '%s'", g->name, t->name);
    }
    return MSC_OK;
}

static enum msc_status put_alias(struct msc_graph *g, const char *alias, int32_t tensor) {
    int32_t holder = msc_graph__names_find(&g->aliases, alias);
    bool is_held = holder != MSC_NO_ID && !g->tensors[holder]->is_dead &&
                   strcmp(g->tensors[holder]->tensor.alias, alias) == 0;
    if (alias[0] == '\0' || is_held) {
        return MSC_OK;
    }
    return msc_graph__names_put(&g->aliases, alias, tensor);
}

enum msc_status msc_graph__add_tensor(int32_t *out, struct msc_graph *g,
                                      const struct msc_tensor *tensor) {
    MSC_TRY(check_tensor(g, tensor));
    struct msc_graph_tensor *t = msc_arena_alloc(&g->arena, sizeof(*t));
    MSC_TRY(MSC_ALLOCATED(t));
    t->tensor = *tensor;
    t->tensor.data = NULL;
    t->tensor.name = msc_arena_strdup(&g->arena, tensor->name);
    t->tensor.alias = msc_arena_strdup(&g->arena, tensor->alias);
    t->tensor.layout = msc_arena_strdup(&g->arena, tensor->layout);
    t->n_values = -1;
    MSC_TRY(MSC_ALLOCATED(t->tensor.name && t->tensor.alias && t->tensor.layout));
    for (int i = t->tensor.n_dims; i < MSC_MAX_DIMS; i++) {
        t->tensor.dims[i] = 0;
        t->tensor.prims[i] = MSC_NO_ID;
    }
    int32_t id = g->n_tensors;
    MSC_TRY(msc_grow(&g->tensors, &g->tensors_capacity, (size_t)id + 1, sizeof(g->tensors[0])));
    MSC_TRY(msc_graph__names_put(&g->tensor_names, t->tensor.name, id));
    g->tensors[id] = t;
    g->n_tensors = id + 1;
    g->is_final = false;
    *out = id;
    return put_alias(g, t->tensor.alias, id);
}

enum msc_status msc_graph_set_alias(struct msc_graph *g, int32_t tensor, const char *alias) {
    assert(tensor >= 0 && tensor < g->n_tensors);
    const char *copy = msc_arena_strdup(&g->arena, alias);
    MSC_TRY(MSC_ALLOCATED(copy));
    g->tensors[tensor]->tensor.alias = copy;
    return put_alias(g, copy, tensor);
}
