// Replaces an Einsum of two factors by `matmul` if the Einsum is a matrix product. If the axes of a
// factor or of the result have another order than in a matrix product, permutations are added. The
// operands of a matrix product can be compressed, and every backend has a fast kernel for it. If a
// factor is constant, the Einsum becomes a linear layer if possible (fuse_einsum_linear.c).
#include "graph/passes/fuse_einsum_internal.h"

#include "base/str.h"
#include "graph/op_attrs.h"

static const char *const patterns[] = {"y:einsum(a, b)"};

// A matrix product. Its axes are the leading (batch) axes, each factor's own axis (rows of a,
// columns of b), and the summed axis.
struct product {
    struct msc_einsum e;
    struct msc_einsum_factor a, b;
    int depth; // number of the summed axis
    int n_lead, lead[MSC_MAX_DIMS];
};

static bool read_factor(struct msc_einsum_factor *out, const struct msc_einsum *e, int operand,
                        int n_dims) {
    for (int axis = 0; axis < e->n_axes; axis++) {
        out->at[axis] = -1;
    }
    for (int i = 0; i < n_dims; i++) {
        int axis = e->axes[operand][i];
        if (out->at[axis] >= 0) {
            return false; // a repeated axis selects a diagonal
        }
        out->at[axis] = i;
    }
    return true;
}

// The last axis of the output that `factor` has and `other` lacks; -1 if there is none.
static int own_axis(const struct msc_einsum *e, const struct msc_einsum_factor *factor,
                    const struct msc_einsum_factor *other) {
    int own = -1;
    for (int axis = 0; axis < e->n_output_axes; axis++) {
        own = factor->at[axis] >= 0 && other->at[axis] < 0 ? axis : own;
    }
    return own;
}

// Lists the leading (batch) axes in the output's order. One factor may lack some axes at the
// beginning of this list, because it is then broadcast. False if a factor lacks an axis after an
// axis that both factors have, because it would need an additional axis of length 1.
static bool order_lead(struct product *p) {
    bool is_shared = false;
    int n_lacking_a = 0, n_lacking_b = 0;
    for (int axis = 0; axis < p->e.n_output_axes; axis++) {
        if (axis == p->a.own || axis == p->b.own) {
            continue;
        }
        bool lacks_a = p->a.at[axis] < 0, lacks_b = p->b.at[axis] < 0;
        if (is_shared && (lacks_a || lacks_b)) {
            return false;
        }
        is_shared = is_shared || (!lacks_a && !lacks_b);
        n_lacking_a += lacks_a;
        n_lacking_b += lacks_b;
        p->lead[p->n_lead++] = axis;
    }
    return n_lacking_a == 0 || n_lacking_b == 0;
}

static bool read_equation(struct product *p, const struct msc_graph *g,
                          const struct msc_joint *einsum) {
    const struct msc_tensor *a = &g->tensors[p->a.tensor]->tensor;
    const struct msc_tensor *b = &g->tensors[p->b.tensor]->tensor;
    const char *equation = msc_joint_attr(einsum, "equation");
    return msc_dtype_is_float(a->dtype) && equation &&
           msc_einsum_parse(&p->e, equation, 2, (const int[]){a->n_dims, b->n_dims}) == NULL &&
           read_factor(&p->a, &p->e, 0, a->n_dims) && read_factor(&p->b, &p->e, 1, b->n_dims);
}

static bool is_product(struct product *p, const struct msc_graph *g) {
    p->depth = p->e.n_output_axes;
    p->a.own = own_axis(&p->e, &p->a, &p->b);
    p->b.own = own_axis(&p->e, &p->b, &p->a);
    return p->e.n_axes == p->depth + 1 && p->a.at[p->depth] >= 0 && p->b.at[p->depth] >= 0 &&
           p->a.own >= 0 && p->b.own >= 0 && msc_einsum__same_length(g, &p->a, &p->b, p->depth) &&
           order_lead(p);
}

// ---- Replacement ------------------------------------------------------------------------------

// Permutes the factor, if necessary, so that its leading axes come first, followed by the two axes
// `last`.
static enum msc_status fuse_einsum_bring(int32_t *out, struct msc_graph *g, const struct product *p,
                                         const struct msc_einsum_factor *factor, const int last[2],
                                         int32_t einsum, const char *what) {
    int64_t order[MSC_MAX_DIMS];
    int n = 0;
    for (int i = 0; i < p->n_lead; i++) {
        if (factor->at[p->lead[i]] >= 0) {
            order[n++] = factor->at[p->lead[i]];
        }
    }
    order[n++] = factor->at[last[0]];
    order[n++] = factor->at[last[1]];
    *out = factor->tensor;
    return msc_einsum__is_in_order(order, n) ? MSC_OK
                                             : msc_einsum__permute(out, g, einsum, what, order, n);
}

// Finds, for each axis of the output, its position in the matrix product. The axes of the product
// are the leading axes, a's own axis and b's own axis.
static void order_result(int64_t order[], const struct product *p) {
    for (int axis = 0; axis < p->e.n_output_axes; axis++) {
        order[axis] = p->n_lead + (axis == p->b.own);
        for (int i = 0; i < p->n_lead; i++) {
            order[axis] = p->lead[i] == axis ? i : order[axis];
        }
    }
}

// Adds a matrix product, and replaces the Einsum by a permutation of the product's result.
static enum msc_status replace_permuted(struct msc_fuse *f, const struct msc_match *m,
                                        int32_t einsum, struct msc_joint_spec *product,
                                        const int64_t order[], int n) {
    struct msc_graph *g = f->graph;
    struct msc_str name = {0}, axes = {0};
    int32_t joint;
    msc_str_printf(&name, "%s/product", g->joints[einsum]->joint.name);
    msc_attr_write_ints(&axes, order, (size_t)n);
    product->name = msc_str_text(&name);
    struct msc_attr attr = {"axes", msc_str_text(&axes)};
    struct msc_joint_spec last = {
        .op = MSC_OP_PERMUTE_DIMS, .n_inputs = 1, .n_attrs = 1, .attrs = &attr};
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_str_status(&name));
    MSC_TRY_OUT(msc_str_status(&axes));
    MSC_TRY_OUT(msc_graph_add_joint(&joint, g, product));
    last.inputs = g->joints[joint]->outputs;
    status = msc_fuse__replace(f, m, einsum, &last);
out:
    msc_str_finish(&name);
    msc_str_finish(&axes);
    return status;
}

static enum msc_status fuse_einsum_replace(struct msc_fuse *f, const struct msc_match *m,
                                           int32_t einsum, const struct product *p) {
    struct msc_graph *g = f->graph;
    int64_t order[MSC_MAX_DIMS];
    int32_t factors[2];
    MSC_TRY(fuse_einsum_bring(&factors[0], g, p, &p->a, (const int[]){p->a.own, p->depth}, einsum,
                              "a"));
    MSC_TRY(fuse_einsum_bring(&factors[1], g, p, &p->b, (const int[]){p->depth, p->b.own}, einsum,
                              "b"));
    struct msc_joint_spec product = {.op = MSC_OP_MATMUL, .n_inputs = 2, .inputs = factors};
    order_result(order, p);
    return msc_einsum__is_in_order(order, p->e.n_output_axes)
               ? msc_fuse__replace(f, m, einsum, &product)
               : replace_permuted(f, m, einsum, &product, order, p->e.n_output_axes);
}

enum msc_status msc_fuse_einsum(bool *done, struct msc_fuse *f, int32_t joint) {
    struct msc_match m;
    if (!msc_fuse__find(&m, f, patterns, 1, joint)) {
        return MSC_OK;
    }
    struct product p = {.a.tensor = msc_match_tensor(&m, "a"),
                        .b.tensor = msc_match_tensor(&m, "b")};
    if (!read_equation(&p, f->graph, &f->graph->joints[joint]->joint)) {
        return MSC_OK;
    }
    MSC_TRY(msc_fuse__einsum_linear(done, f, &m, joint, &p.e, &p.a, &p.b));
    if (*done || !is_product(&p, f->graph)) {
        return MSC_OK;
    }
    // In the product, a's own axis comes before b's. Exchange the factors if the output has the
    // opposite order.
    if (p.b.own < p.a.own) {
        struct msc_einsum_factor a = p.a;
        p.a = p.b;
        p.b = a;
    }
    *done = true;
    return fuse_einsum_replace(f, &m, joint, &p);
}
