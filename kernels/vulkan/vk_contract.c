// Matrix products that the fast families do not support (Gemm, other types, more axes), and Einsum
// of one or two operands. Each product is described by a list of axes with a stride in every
// operand.
#include "graph/einsum.h"
#include "kernels/lowering/lowering.h"
#include "kernels/vulkan/vk_joint.h"

#include <string.h>

struct contraction {
    int n_out, n_axes;                // the first n_out axes are the output's, the others are
                                      // summed
    int32_t axes[MSC_EINSUM_AXES][4]; // length; strides in a, b, c (shaders/contract.comp)
    bool has_b, has_c;
    float alpha, beta;
};

static void add_axis(struct contraction *c, int64_t length, int64_t a, int64_t b, int64_t more) {
    const int64_t row[4] = {length, a, b, more};
    for (int i = 0; i < 4; i++) {
        c->axes[c->n_axes][i] = (int32_t)row[i];
    }
    c->n_axes++;
}

// ---- Operators --------------------------------------------------------------------------------

typedef bool (*describe_fn)(struct contraction *out, const struct msc_vk_joint_desc *d);

static bool describe_einsum(struct contraction *c, const struct msc_vk_joint_desc *d) {
    struct msc_einsum e;
    int ranks[2] = {0};
    const char *equation = msc_joint_attr(d->joint, "equation");
    for (int k = 0; k < d->n_x && k < 2; k++) {
        ranks[k] = d->x[k].n_dims;
    }
    if (!equation || d->n_x > 2 || msc_einsum_parse(&e, equation, d->n_x, ranks) != NULL) {
        return false;
    }
    for (int k = 0; k < d->n_x; k++) {
        int32_t strides[MSC_MAX_DIMS];
        const struct msc_view *x = &d->x[k];
        msc_vk_strides(strides, x->n_dims, x->dims);
        for (int i = 0; i < x->n_dims; i++) {
            int32_t *axis = c->axes[e.axes[k][i]];
            axis[0] = x->dims[i] > axis[0] ? (int32_t)x->dims[i] : axis[0];
            axis[1 + k] += x->dims[i] == 1 ? 0 : strides[i];
        }
    }
    c->n_out = e.n_output_axes;
    c->n_axes = e.n_axes;
    c->has_b = d->n_x > 1;
    return true;
}

static bool describe_gemm(struct contraction *c, const struct msc_vk_joint_desc *d) {
    bool trans_a, trans_b;
    int32_t more[2] = {0, 0};
    const struct msc_view *a = &d->x[0], *b = &d->x[1];
    if (!msc_joint_attr_bool(d->joint, "trans_a", &trans_a) ||
        !msc_joint_attr_bool(d->joint, "trans_b", &trans_b) ||
        !msc_joint_attr_float(d->joint, "alpha", &c->alpha) ||
        !msc_joint_attr_float(d->joint, "beta", &c->beta) || a->n_dims != 2 || b->n_dims != 2) {
        return false;
    }
    c->has_b = true;
    c->has_c = d->n_x > 2 && d->x[2].dtype != MSC_DTYPE_NONE;
    if (c->has_c) {
        msc_vk_broadcast_strides(more, &d->x[2], 2);
    }
    add_axis(c, d->y[0].dims[0], trans_a ? 1 : a->dims[1], 0, more[0]);
    add_axis(c, d->y[0].dims[1], 0, trans_b ? b->dims[1] : 1, more[1]);
    c->n_out = 2;
    add_axis(c, a->dims[trans_a ? 0 : 1], trans_a ? a->dims[1] : 1, trans_b ? 1 : b->dims[1], 0);
    return true;
}

static bool describe_matmul(struct contraction *c, const struct msc_vk_joint_desc *d) {
    const struct msc_view *x[2] = {&d->x[0], &d->x[1]}, *y = &d->y[0];
    int32_t strides[2][MSC_MAX_DIMS];
    int64_t depth = x[0]->dims[x[0]->n_dims - 1];
    int n_batch = y->n_dims - (x[0]->n_dims > 1) - (x[1]->n_dims > 1);
    for (int f = 0; f < 2; f++) {
        struct msc_view batch = {.n_dims = x[f]->n_dims > 2 ? x[f]->n_dims - 2 : 0};
        int64_t matrix = msc_dims_product(x[f]->n_dims - batch.n_dims, x[f]->dims + batch.n_dims);
        memcpy(batch.dims, x[f]->dims, sizeof(batch.dims));
        msc_vk_broadcast_strides(strides[f], &batch, n_batch);
        for (int i = 0; i < n_batch; i++) {
            strides[f][i] *= (int32_t)matrix;
        }
    }
    for (int i = 0; i < n_batch; i++) {
        add_axis(c, y->dims[i], strides[0][i], strides[1][i], 0);
    }
    int64_t cols = x[1]->n_dims > 1 ? x[1]->dims[x[1]->n_dims - 1] : 1;
    if (x[0]->n_dims > 1) {
        add_axis(c, x[0]->dims[x[0]->n_dims - 2], depth, 0, 0);
    }
    if (x[1]->n_dims > 1) {
        add_axis(c, cols, 0, 1, 0);
    }
    c->n_out = c->n_axes;
    c->has_b = true;
    add_axis(c, depth, 1, cols, 0);
    return true;
}

static bool describe_linear(struct contraction *c, const struct msc_vk_joint_desc *d) {
    const struct msc_tensor *w = msc_lowering_operand(d->plan->graph, d->joint, 1);
    const char *layout = w->layout;
    bool is_out_first = strcmp(layout, "OI") == 0;
    if (w->n_dims != 2 || (!is_out_first && strcmp(layout, "IO") != 0)) {
        return false;
    }
    int64_t n_in = w->dims[is_out_first ? 1 : 0], n_out = w->dims[is_out_first ? 0 : 1];
    add_axis(c, msc_dims_product(d->x[0].n_dims - 1, d->x[0].dims), n_in, 0, 0);
    add_axis(c, n_out, 0, is_out_first ? n_in : 1, 1);
    c->n_out = 2;
    add_axis(c, n_in, 1, is_out_first ? 1 : n_out, 0);
    c->has_b = true;
    c->has_c = d->n_x > 2 && d->x[2].dtype != MSC_DTYPE_NONE;
    return true;
}

static const struct {
    enum msc_op op;
    describe_fn describe;
} rows[] = {
    {MSC_OP_EINSUM, describe_einsum},      {MSC_OP_GEMM, describe_gemm},
    {MSC_OP_MATMUL, describe_matmul},      {MSC_OP_LINEAR, describe_linear},
    {MSC_OP_LINEAR_BIAS, describe_linear},
};

// ---- Kernels ----------------------------------------------------------------------------------

static bool vk_contract_describe(struct contraction *c, const struct msc_vk_joint_desc *d) {
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].op == d->joint->op) {
            return rows[i].describe(c, d);
        }
    }
    return false;
}

static enum msc_status vk_contract_init(struct msc_vk_joint *k, struct msc_vk_backend *b,
                                        const struct msc_vk_joint_desc *d) {
    struct contraction c = {.alpha = 1.0f, .beta = 1.0f};
    bool is_real = msc_vk_is_real(d->y[0].dtype);
    int64_t count = 1;
    if (d->n_y != 1 || !msc_vk_joint_has_elements(b, d) || !vk_contract_describe(&c, d) ||
        (!is_real && (c.alpha != 1.0f || c.has_c))) {
        return msc_vk_joint_refuse(d);
    }
    for (int i = c.n_out; i < c.n_axes; i++) {
        count *= c.axes[i][0];
    }
    struct msc_vk_stage *s = msc_vk_joint_stage(k, (uint64_t)msc_view_n_elements(&d->y[0]), 3);
    MSC_TRY(msc_vk_joint_numbers(s, b, c.axes, sizeof(c.axes)));
    s->turns = (uint64_t)(count * (1 + c.n_axes - c.n_out));
    s->push[0] = (uint32_t)count;
    memcpy(&s->push[1], &c.alpha, sizeof(c.alpha));
    memcpy(&s->push[2], &c.beta, sizeof(c.beta));
    s->n_push = 3;
    const uint32_t constants[] = {b->vk->tuning.lanes,
                                  0,
                                  (uint32_t)c.n_out,
                                  (uint32_t)(c.n_axes - c.n_out),
                                  msc_vk_element(d->x[0].dtype),
                                  c.has_b ? msc_vk_element(d->x[1].dtype) : 0,
                                  c.has_c ? msc_vk_element(d->x[2].dtype) : 0,
                                  msc_vk_element(d->y[0].dtype),
                                  !is_real,
                                  (uint32_t)c.has_b | (uint32_t)c.has_c << 1};
    MSC_VK_CHECK_CONSTANTS(MSC_VK_CONTRACT, constants);
    return msc_vk_pipeline(&s->pipeline, b->vk, MSC_VK_CONTRACT, constants);
}

const struct msc_vk_family msc_vk_contract = {
    .name = "sums of products", .init = vk_contract_init, MSC_VK_JOINT_FUNCTIONS};
