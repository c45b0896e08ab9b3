#include "graph/shuffle.h"

#include "graph/reshape.h"

#include <string.h>

// The joint that produces the tensor, if it has this operator and the tensor has a single
// consumer; else NULL.
static const struct msc_joint *sole_maker(const struct msc_graph *g, int32_t tensor,
                                          enum msc_op op) {
    const int32_t *readers;
    int32_t producer = msc_graph_producer(g, tensor);
    const struct msc_joint *j = producer == MSC_NO_ID ? NULL : msc_graph_joint(g, producer);
    bool is_sole = j != NULL && j->op == op && msc_graph_consumers(g, tensor, &readers) == 1 &&
                   !msc_graph_is_output(g, tensor);
    return is_sole ? j : NULL;
}

static const struct msc_joint *sole_reader(const struct msc_graph *g, const struct msc_joint *j) {
    const int32_t *readers;
    bool is_sole = msc_graph_consumers(g, j->outputs[0], &readers) == 1;
    return is_sole ? msc_graph_joint(g, readers[0]) : NULL;
}

static bool has_same_shape(const struct msc_tensor *a, const struct msc_tensor *b) {
    bool is_same = a->n_dims == b->n_dims;
    for (int i = 0; is_same && i < a->n_dims; i++) {
        is_same = a->dims[i] == b->dims[i] && a->prims[i] == b->prims[i] &&
                  (a->dims[i] >= 0 || a->prims[i] != MSC_NO_ID);
    }
    return is_same;
}

// Finds, for each axis of `inner`, the axis of `outer` that it is a factor of (-1 if its length is
// 1). False if an axis of `inner` merges axes of `outer`, or their relation is unknown.
static bool find_owners(int owners[MSC_MAX_DIMS], const struct msc_graph *g,
                        const struct msc_tensor *outer, const struct msc_tensor *inner) {
    struct msc_reshape_block blocks[MSC_RESHAPE_PARTS + 1];
    int n = msc_reshape_blocks(blocks, g, outer, inner);
    for (int i = 0; i < MSC_MAX_DIMS; i++) {
        owners[i] = -1;
    }
    for (int b = 0; b < n; b++) {
        if (blocks[b].n_in != 1) {
            return false;
        }
        for (int k = 0; k < blocks[b].n_out; k++) {
            int axis = blocks[b].out[k].axis;
            if (owners[axis] >= 0) {
                return false; // parts of this axis come from two axes of `outer`
            }
            owners[axis] = blocks[b].in[0].axis;
        }
    }
    return true;
}

// Reads the factors of `axis` and their order in the output. *is_turned is true if the order
// changes.
static void read_factors(struct msc_shuffle *s, bool *is_turned, const struct msc_tensor *parts,
                         const int owners[], const int64_t axes[], int axis) {
    int position[MSC_MAX_DIMS] = {0};
    s->axis = axis;
    s->n_factors = 0;
    for (int i = 0; i < parts->n_dims; i++) {
        if (owners[i] == axis) {
            position[i] = s->n_factors;
            s->factors[s->n_factors++] = parts->dims[i];
        }
    }
    *is_turned = false;
    for (int i = 0, k = 0; i < parts->n_dims; i++) {
        if (owners[axes[i]] == axis) {
            *is_turned = *is_turned || position[axes[i]] != k;
            s->order[k++] = position[axes[i]];
        }
    }
}

bool msc_shuffle_find(struct msc_shuffle *out, const struct msc_graph *g,
                      const struct msc_joint *merge) {
    struct msc_shuffle s = {.merge = merge};
    int in_owners[MSC_MAX_DIMS], out_owners[MSC_MAX_DIMS], n_turned = 0;
    int64_t axes[MSC_MAX_DIMS];
    if (merge->op != MSC_OP_RESHAPE) {
        return false;
    }
    s.turn = sole_maker(g, merge->operands[0], MSC_OP_PERMUTE_DIMS);
    s.split = s.turn == NULL ? NULL : sole_maker(g, s.turn->operands[0], MSC_OP_RESHAPE);
    if (s.split == NULL) {
        return false;
    }
    const struct msc_tensor *x = msc_graph_tensor(g, s.split->operands[0]);
    const struct msc_tensor *parts = msc_graph_tensor(g, s.split->outputs[0]);
    const struct msc_tensor *turned = msc_graph_tensor(g, s.turn->outputs[0]);
    const struct msc_tensor *y = msc_graph_tensor(g, merge->outputs[0]);
    if (!has_same_shape(x, y) || !find_owners(in_owners, g, x, parts) ||
        !find_owners(out_owners, g, y, turned) ||
        msc_joint_attr_list(s.turn, "axes", axes, MSC_MAX_DIMS) != parts->n_dims) {
        return false;
    }
    for (int i = 0; i < parts->n_dims; i++) {
        axes[i] += axes[i] < 0 ? parts->n_dims : 0;
        if (in_owners[axes[i]] != out_owners[i]) {
            return false;
        }
    }
    for (int i = 0; i < x->n_dims; i++) {
        struct msc_shuffle one = s;
        bool is_turned;
        read_factors(&one, &is_turned, parts, in_owners, axes, i);
        n_turned += is_turned;
        *out = is_turned ? one : *out;
    }
    return n_turned == 1;
}

bool msc_shuffle_around(struct msc_shuffle *out, const struct msc_graph *g,
                        const struct msc_joint *j) {
    bool is_first = j->op == MSC_OP_RESHAPE;
    const struct msc_joint *next =
        is_first || j->op == MSC_OP_PERMUTE_DIMS ? sole_reader(g, j) : NULL;
    next = is_first && next != NULL ? sole_reader(g, next) : next;
    return next != NULL && msc_shuffle_find(out, g, next) &&
           (is_first ? out->split : out->turn) == j;
}

int64_t msc_shuffle_from(const struct msc_shuffle *s, int64_t c) {
    int64_t at[MSC_MAX_DIMS], from = 0;
    for (int k = s->n_factors - 1; k >= 0; k--) {
        int64_t length = s->factors[s->order[k]];
        at[s->order[k]] = c % length;
        c /= length;
    }
    for (int k = 0; k < s->n_factors; k++) {
        from = from * s->factors[k] + at[k];
    }
    return from;
}
