#include "graph/channels/channels_internal.h"
#include "graph/reshape.h"

#include <string.h>

// True if the joint's rule made a choice, but another rule then froze the axis that the choice left
// free.
static bool is_in_vain(struct msc_channels_finder *f, const struct msc_joint *j) {
    if (f->chosen[j->id] == MSC_NO_ID) {
        return false;
    }
    const struct msc_channels_call call = {.f = f, .g = f->g, .j = j};
    return !msc_channels__has_free(&call, f->freed[j->id]);
}

// ---- Walk over the graph ----------------------------------------------------------------------

typedef bool (*rule_fn)(struct msc_channels_call *c);

static const rule_fn rules[MSC_OP_COUNT] = {
#define MSC_OP(id, name, onnx, hint, roles, channels, infer, kernel, folding, discontinuity)       \
    [MSC_OP_##id] = msc_channels__##channels,
#include "graph/ops.def"
#undef MSC_OP
};

static void begin(struct msc_channels_finder *f) {
    int32_t n_axes = msc_graph_n_tensors(f->g) * MSC_MAX_DIMS;
    for (int32_t i = 0; i < f->n_nodes; i++) {
        f->parents[i] = i;
        f->is_frozen[i] = false;
    }
    memset(f->roles, 0, (size_t)n_axes * sizeof(f->roles[0]));
    memset(f->told, 0xff, (size_t)n_axes * sizeof(f->told[0]));
    f->n_reads = 0;
    f->n_followers = 0;
    for (int32_t i = 0; i < msc_graph_n_joints(f->g); i++) {
        f->chosen[i] = MSC_NO_ID;
    }
    // Freezes axes of length 1, which cannot lose their only index, and shared parameters, which
    // are not pruned.
    for (int32_t i = 0; i < n_axes; i++) {
        for (int32_t k = 0; k < f->periods[i]; k++) {
            f->is_frozen[f->first[i] + k] = f->periods[i] == 1 || f->is_shared[i / MSC_MAX_DIMS];
        }
    }
}

static void freeze_outputs(struct msc_channels_finder *f) {
    for (int32_t i = 0; i < msc_graph_n_outputs(f->g); i++) {
        int32_t tensor = msc_graph_output(f->g, i);
        const struct msc_joint *j = msc_graph_joint(f->g, msc_graph_tensor(f->g, tensor)->producer);
        struct msc_channels_call call = {.f = f, .g = f->g, .j = j};
        for (int k = 0; k < msc_graph_tensor(f->g, tensor)->n_dims; k++) {
            msc_channels__freeze(&call, (struct msc_axis){tensor, k});
        }
    }
}

static void ask_rules(struct msc_channels_finder *f, bool *is_done) {
    begin(f);
    for (int late = 0; late < 2; late++) {
        for (int32_t i = 0; i < msc_graph_n_joints(f->g); i++) {
            const struct msc_joint *j = msc_graph_joint(f->g, i);
            struct msc_channels_call call = {.f = f, .g = f->g, .j = j, .is_late = late == 1};
            if (late == 1 && is_done[i]) {
                continue;
            }
            is_done[i] = rules[j->op](&call);
            if (is_done[i]) {
                msc_channels__freeze_rest(&call);
            }
        }
        freeze_outputs(f);
    }
}

static int32_t root_of(struct msc_channels_finder *f, int32_t tensor, int axis, int32_t index) {
    return msc_channels__find_root(f, f->first[tensor * MSC_MAX_DIMS + axis] + index);
}

// True if all consumers of a shared parameter read it along axes that are tied to each other
// anyway.
static bool is_tied_anyway(struct msc_channels_finder *f, int32_t tensor) {
    const struct msc_channel_follower *first = NULL;
    const int32_t *readers;
    int32_t n_same = 0, n = (int32_t)msc_graph_tensor(f->g, tensor)->dims[0];
    for (int32_t i = 0; i < f->n_followers; i++) {
        const struct msc_channel_follower *one = &f->followers[i];
        if (one->tensor != tensor) {
            continue;
        }
        first = first == NULL ? one : first;
        bool is_same = true;
        for (int32_t k = 0; is_same && k < n; k++) {
            int32_t root = root_of(f, one->of_tensor, one->of_axis, k);
            is_same =
                !f->is_frozen[root] && root == root_of(f, first->of_tensor, first->of_axis, k);
        }
        n_same += is_same;
    }
    return n_same == msc_graph_consumers(f->g, tensor, &readers);
}

// From now on, treats the shared parameters for which is_tied_anyway is true like other weights.
// True if there are any.
static bool tie_shared(struct msc_channels_finder *f) {
    bool is_any = false;
    for (int32_t i = 0; i < msc_graph_n_tensors(f->g); i++) {
        if (f->is_shared[i] && is_tied_anyway(f, i)) {
            f->is_shared[i] = false;
            is_any = true;
        }
    }
    return is_any;
}

// Calls the rules repeatedly. If the axis that a choice left free was frozen later, the choice is
// refused in the next round. Ends when there is no such choice.
static void find_classes(struct msc_channels_finder *f, bool *is_done) {
    bool is_again = true;
    while (is_again) {
        ask_rules(f, is_done);
        is_again = tie_shared(f);
        for (int32_t i = 0; i < msc_graph_n_joints(f->g); i++) {
            const struct msc_joint *j = msc_graph_joint(f->g, i);
            if (is_in_vain(f, j)) {
                f->n_refused[i] = f->chosen[i] + 1;
                is_again = true;
            }
        }
    }
}

static enum msc_status number_nodes(struct msc_channels_finder *f) {
    int32_t n_tensors = msc_graph_n_tensors(f->g);
    size_t n_axes = (size_t)n_tensors * MSC_MAX_DIMS;
    int64_t n = 0;
    f->first = msc_arena_array(f->arena, n_axes, sizeof(f->first[0]));
    f->periods = msc_arena_array(f->arena, n_axes, sizeof(f->periods[0]));
    MSC_TRY(MSC_ALLOCATED(f->first && f->periods));
    for (int32_t i = 0; i < n_tensors; i++) {
        const struct msc_tensor *t = msc_graph_tensor(f->g, i);
        for (int k = 0; k < MSC_MAX_DIMS; k++) {
            int64_t period = k < t->n_dims ? msc_reshape_period(f->g, t, k) : 0;
            f->first[i * MSC_MAX_DIMS + k] = period > 0 ? (int32_t)n : MSC_NO_ID;
            n += period;
            if (n > INT32_MAX) {
                return MSC_FAIL(
                    MSC_E_UNSUPPORTED,
                    "graph '%s': its axes have %lld indices, but pruning supports at most 2^31 - 1",
                    msc_graph_name(f->g), (long long)n);
            }
            f->periods[i * MSC_MAX_DIMS + k] = (int32_t)period;
        }
    }
    f->n_nodes = (int32_t)n;
    return MSC_OK;
}

// Finds the shared parameters: 1-D float weights that several joints read, but no joint as its
// first operand.
static enum msc_status find_shared(struct msc_channels_finder *f) {
    int32_t n_tensors = msc_graph_n_tensors(f->g);
    f->is_shared = msc_arena_array(f->arena, (size_t)n_tensors + 1, sizeof(bool));
    MSC_TRY(MSC_ALLOCATED(f->is_shared));
    for (int32_t i = 0; i < n_tensors; i++) {
        const struct msc_tensor *t = msc_graph_tensor(f->g, i);
        const int32_t *readers;
        int32_t n = msc_graph_consumers(f->g, i, &readers);
        bool is_list = t->producer == MSC_NO_ID && t->data != NULL && t->n_dims == 1 &&
                       msc_dtype_is_float(t->dtype);
        for (int32_t r = 0; is_list && r < n; r++) {
            const struct msc_joint *j = msc_graph_joint(f->g, readers[r]);
            is_list = j->op != MSC_OP_CONSTANT && j->operands[0] != i;
        }
        f->is_shared[i] = is_list && n > 1;
    }
    return MSC_OK;
}

static size_t count_operands(const struct msc_graph *g) {
    size_t n = 0;
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        n += (size_t)msc_graph_joint(g, i)->n_operands;
    }
    return n;
}

static enum msc_status start(struct msc_channels_finder *f, bool **is_done) {
    size_t n_axes = (size_t)msc_graph_n_tensors(f->g) * MSC_MAX_DIMS;
    size_t n_joints = (size_t)msc_graph_n_joints(f->g);
    MSC_TRY(number_nodes(f));
    MSC_TRY(find_shared(f));
    size_t n_nodes = (size_t)f->n_nodes;
    f->parents = msc_arena_array(f->arena, n_nodes, sizeof(f->parents[0]));
    f->is_frozen = msc_arena_array(f->arena, n_nodes, sizeof(f->is_frozen[0]));
    f->places = msc_arena_array(f->arena, n_nodes, sizeof(f->places[0]));
    f->roles = msc_arena_array(f->arena, n_axes, sizeof(f->roles[0]));
    f->told = msc_arena_array(f->arena, n_axes, sizeof(f->told[0]));
    // A joint sums over units of at most two operands (a recurrent layer), so it has at most two
    // reads.
    f->reads = msc_arena_array(f->arena, 2 * n_joints, sizeof(f->reads[0]));
    f->followers = msc_arena_array(f->arena, 2 * count_operands(f->g), sizeof(f->followers[0]));
    f->n_refused = msc_arena_array(f->arena, n_joints, sizeof(f->n_refused[0]));
    f->chosen = msc_arena_array(f->arena, n_joints, sizeof(f->chosen[0]));
    f->freed = msc_arena_array(f->arena, n_joints, sizeof(f->freed[0]));
    *is_done = msc_arena_array(f->arena, n_joints, sizeof(**is_done));
    bool has_all = f->parents && f->is_frozen && f->places && f->roles && f->told && f->reads &&
                   f->followers && f->n_refused && f->chosen && f->freed && *is_done;
    return MSC_ALLOCATED(has_all);
}

enum msc_status msc_channels_find(struct msc_channels *out, const struct msc_graph *g,
                                  const struct msc_sites *sites) {
    struct msc_arena work = {0};
    struct msc_channels_finder f = {.g = g, .sites = sites, .arena = &work};
    bool *is_done;
    *out = (struct msc_channels){.n_tensors = msc_graph_n_tensors(g)};
    enum msc_status status = start(&f, &is_done);
    if (status == MSC_OK) {
        find_classes(&f, is_done);
        for (int32_t i = 0; i < f.n_nodes; i++) {
            f.parents[i] = msc_channels__find_root(&f, i);
        }
        status = msc_channels__group(out, &f);
    }
    if (status != MSC_OK) {
        msc_channels_finish(out);
    }
    msc_arena_finish(&work);
    return status;
}

void msc_channels_finish(struct msc_channels *channels) {
    if (channels->storage != NULL) {
        msc_arena_finish(channels->storage);
        msc_free(channels->storage);
    }
    *channels = (struct msc_channels){0};
}
