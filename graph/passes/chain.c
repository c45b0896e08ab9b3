#include "graph/passes/chain.h"

#include "base/alloc.h"
#include "graph/cost.h"
#include "graph/passes/extract.h"

struct chain {
    const struct msc_graph *g;
    int32_t *last_use; // [n_tensors] the last joint that reads it, or -1
    int64_t *lengths;  // [n_prims] of msc_graph_sample_lengths
    int32_t reader;    // the joint whose inputs are visited
    // Tensors that joints have computed and later joints read: their number and the sum of their
    // ids, which is the id of the only one.
    int32_t n_live;
    int64_t sum_live;
};

static bool is_computed(const struct msc_graph *g, int32_t tensor) {
    int32_t producer = tensor == MSC_NO_ID ? MSC_NO_ID : msc_graph_producer(g, tensor);
    return producer != MSC_NO_ID && !msc_graph_is_shared(g, producer);
}

static void note_use(void *payload, int32_t tensor) {
    struct chain *c = payload;
    if (is_computed(c->g, tensor)) {
        c->last_use[tensor] = c->reader;
    }
}

static enum msc_status chain_init(struct chain *c, struct msc_arena *arena) {
    const struct msc_graph *g = c->g;
    size_t n_tensors = (size_t)msc_graph_n_tensors(g);
    c->last_use = msc_arena_array(arena, n_tensors + 1, sizeof c->last_use[0]);
    c->lengths = msc_arena_array(arena, (size_t)msc_graph_n_prims(g) + 1, sizeof c->lengths[0]);
    MSC_TRY(MSC_ALLOCATED(c->last_use && c->lengths));
    for (size_t i = 0; i < n_tensors; i++) {
        c->last_use[i] = -1;
    }
    for (c->reader = 0; c->reader < msc_graph_n_joints(g); c->reader++) {
        msc_graph_visit_inputs(g, msc_graph_joint(g, c->reader), note_use, c);
    }
    msc_graph_sample_lengths(c->lengths, g);
    return MSC_OK;
}

// ---- Operators and patterns -------------------------------------------------------------------

// True for joints that runtimes compute together with the joint before them.
static bool is_follower(const struct msc_joint *j) {
    return msc_op_is_elementwise(j->op) || j->op == MSC_OP_BATCH_NORM || j->op == MSC_OP_QUANTIZE;
}

static void end_use(void *payload, int32_t tensor) {
    struct chain *c = payload;
    if (is_computed(c->g, tensor) && c->last_use[tensor] == c->reader) {
        c->last_use[tensor] = -1; // a joint may read a tensor twice
        c->n_live--;
        c->sum_live -= tensor;
    }
}

static void pass_joint(struct chain *c, int32_t joint) {
    const struct msc_joint *j = msc_graph_joint(c->g, joint);
    c->reader = joint;
    msc_graph_visit_inputs(c->g, j, end_use, c);
    for (int32_t k = 0; k < j->n_outputs; k++) {
        if (c->last_use[j->outputs[k]] > joint) {
            c->n_live++;
            c->sum_live += j->outputs[k];
        }
    }
}

// Numbers the groups between single tensors; returns how many there are.
static int32_t number_groups(int32_t groups[], struct chain *c, bool keeps_patterns) {
    int32_t group = -1;
    bool is_end = true;
    for (int32_t i = 0; i < msc_graph_n_joints(c->g); i++) {
        groups[i] = -1;
        if (msc_graph_is_shared(c->g, i)) {
            continue;
        }
        bool follows = keeps_patterns && group >= 0 && is_follower(msc_graph_joint(c->g, i));
        group += is_end && !follows;
        groups[i] = group;
        pass_joint(c, i);
        is_end = c->n_live == 1 && msc_graph_counts_samples(c->g, (int32_t)c->sum_live, c->lengths);
    }
    return group + 1;
}

static enum msc_status divide(int32_t groups[], int32_t *n_groups, const struct msc_graph *g,
                              bool keeps_patterns) {
    struct msc_arena arena = {0};
    struct chain c = {.g = g};
    enum msc_status status = chain_init(&c, &arena);
    if (status == MSC_OK) {
        *n_groups = number_groups(groups, &c, keeps_patterns);
    }
    msc_arena_finish(&arena);
    return status;
}

// ---- Limits -----------------------------------------------------------------------------------

void msc_graph_chain_join(int32_t groups[], const struct msc_graph *g, const int32_t into[]) {
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        groups[i] = groups[i] < 0 ? -1 : into[groups[i]];
    }
}

// Joins the neighbours with the least work until `most` groups are left.
static void join_least(int32_t into[], double work[], int32_t n, int32_t most) {
    for (int32_t left = n; left > most; left--) {
        int32_t first = 0;
        for (int32_t i = 1; i + 1 < left; i++) {
            first = work[i] + work[i + 1] < work[first] + work[first + 1] ? i : first;
        }
        work[first] += work[first + 1];
        for (int32_t i = first + 1; i + 1 < left; i++) {
            work[i] = work[i + 1];
        }
        for (int32_t i = 0; i < n; i++) {
            into[i] -= into[i] > first;
        }
    }
}

enum msc_status msc_graph_chain_limit(int32_t groups[], int32_t *n_groups,
                                      const struct msc_graph *g, int32_t most) {
    struct msc_arena arena = {0};
    int32_t n = *n_groups;
    if (n <= most) {
        return MSC_OK;
    }
    double *work = msc_arena_array(&arena, (size_t)n + 1, sizeof work[0]);
    int32_t *into = msc_arena_array(&arena, (size_t)n + 1, sizeof into[0]);
    enum msc_status status = MSC_ALLOCATED(work && into);
    for (int32_t i = 0; i < n && status == MSC_OK; i++) {
        work[i] = 0.0;
        into[i] = i;
    }
    for (int32_t i = 0; i < msc_graph_n_joints(g) && status == MSC_OK; i++) {
        const struct msc_joint *j = msc_graph_joint(g, i);
        if (groups[i] >= 0) {
            work[groups[i]] += msc_joint_macs(g, j) + 1.0;
        }
    }
    if (status == MSC_OK) {
        join_least(into, work, n, most);
        msc_graph_chain_join(groups, g, into);
        *n_groups = most;
    }
    msc_arena_finish(&arena);
    return status;
}

enum msc_status msc_graph_chain(int32_t groups[], int32_t *n_groups, const struct msc_graph *g,
                                int32_t most) {
    MSC_TRY(divide(groups, n_groups, g, false));
    if (*n_groups > most) {
        MSC_TRY(divide(groups, n_groups, g, true));
    }
    return msc_graph_chain_limit(groups, n_groups, g, most);
}
