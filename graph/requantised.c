#include "graph/requantised.h"

#include "base/alloc.h"
#include "graph/tail.h"

struct finder {
    const struct msc_graph *g;
    const struct msc_target *target;
    int32_t *parent; // [n_tensors] union-find; a class's lowest tensor id is its root
    // [n_tensors] true inside a tail (graph/tail.h), where tensors are not requantised
    bool *is_inside;
    bool *is_integer; // [n_tensors] produced or read by a joint that computes in integer arithmetic
};

bool msc_graph__has_stored_factor(const struct msc_graph *g, const struct msc_joint *j) {
    for (int32_t i = 0; i < 2 && (j->op == MSC_OP_MATMUL || j->op == MSC_OP_GEMM); i++) {
        int32_t producer = msc_graph_tensor(g, j->operands[i])->producer;
        const struct msc_joint *p = producer == MSC_NO_ID ? NULL : msc_graph_joint(g, producer);
        if (p != NULL && p->op == MSC_OP_DEQUANTIZE &&
            msc_graph_weight_of(g, p->operands[0]) != MSC_NO_ID) {
            return true;
        }
    }
    return false;
}

static bool is_float_activation(const struct msc_graph *g, int32_t tensor) {
    return tensor != MSC_NO_ID && msc_graph_weight_of(g, tensor) == MSC_NO_ID &&
           msc_dtype_is_float(msc_graph_tensor(g, tensor)->dtype);
}

static int32_t find_root(int32_t parent[], int32_t i) {
    while (parent[i] != i) {
        i = parent[i] = parent[parent[i]];
    }
    return i;
}

static void join(struct finder *f, int32_t a, int32_t b) {
    int32_t x = find_root(f->parent, a), y = find_root(f->parent, b);
    f->parent[x > y ? x : y] = x > y ? y : x;
}

// True if the joint moves the elements of this operand; false if the operand is a parameter.
static bool is_moved(const struct msc_joint *j, int32_t operand) {
    struct msc_op_role role;
    return operand == 0 || (msc_op_role(j->op, operand, &role) && role.is_repeated);
}

static void join_moved(struct finder *f, const struct msc_joint *j) {
    for (int32_t k = 0; k < j->n_operands; k++) {
        for (int32_t o = 0; is_moved(j, k) && o < j->n_outputs; o++) {
            if (is_float_activation(f->g, j->operands[k]) &&
                is_float_activation(f->g, j->outputs[o])) {
                join(f, j->operands[k], j->outputs[o]);
            }
        }
    }
}

static bool is_tail(enum msc_target_role role) {
    return role == MSC_TARGET_SATURATES || role == MSC_TARGET_AFFINE;
}

static void mark_joint(struct finder *f, const struct msc_joint *j) {
    struct msc_tail tail;
    if (msc_graph__has_stored_factor(f->g, j)) {
        return;
    }
    enum msc_target_role role = msc_target_role(f->target, f->g, j);
    bool is_behind = is_tail(role) && msc_graph__find_tail(&tail, f->g, f->target, j->outputs[0]);
    const struct msc_joint *maker = is_behind ? tail.maker : j;
    bool makes_integers = msc_target_role(f->target, f->g, maker) == MSC_TARGET_INTEGER &&
                          !msc_graph__has_stored_factor(f->g, maker);
    if (role == MSC_TARGET_MOVES) {
        join_moved(f, j);
    }
    if (is_behind) {
        f->is_inside[msc_graph__passed_on(f->g, j)] = true;
    }
    for (int32_t k = 0; msc_target_is_integer(role) && k < j->n_operands; k++) {
        if (is_float_activation(f->g, j->operands[k])) {
            f->is_integer[j->operands[k]] = true;
        }
    }
    for (int32_t o = 0; makes_integers && o < j->n_outputs; o++) {
        f->is_integer[j->outputs[o]] = is_float_activation(f->g, j->outputs[o]);
    }
}

enum msc_status msc_graph__find_requantised(int32_t class_of[], const struct msc_graph *g,
                                            const struct msc_target *target,
                                            struct msc_arena *scratch) {
    size_t n = (size_t)msc_graph_n_tensors(g);
    struct finder f = {.g = g, .target = target};
    f.parent = msc_arena_array(scratch, n + 1, sizeof(f.parent[0]));
    f.is_inside = msc_arena_array(scratch, n + 1, sizeof(bool));
    f.is_integer = msc_arena_array(scratch, n + 1, sizeof(bool));
    // [n_tensors] for the root of a class: true if the class is requantised
    bool *is_live = msc_arena_array(scratch, n + 1, sizeof(bool));
    MSC_TRY(MSC_ALLOCATED(f.parent && f.is_inside && f.is_integer && is_live));
    for (size_t t = 0; t < n; t++) {
        f.parent[t] = (int32_t)t;
    }
    for (int32_t j = 0; j < msc_graph_n_joints(g); j++) {
        mark_joint(&f, msc_graph_joint(g, j));
    }
    for (size_t t = 0; t < n; t++) {
        int32_t root = find_root(f.parent, (int32_t)t);
        is_live[root] = is_live[root] || (f.is_integer[t] && !f.is_inside[t]);
    }
    for (size_t t = 0; t < n; t++) {
        int32_t root = find_root(f.parent, (int32_t)t);
        bool is_in = is_live[root] && !f.is_inside[t] && is_float_activation(g, (int32_t)t);
        class_of[t] = is_in ? root : MSC_NO_ID;
    }
    return MSC_OK;
}
