#include "graph/cost.h"

#include <string.h>

// The shape from which costs are computed: the tensor's own, or a shape that the caller gives.
struct shape {
    int n_dims;
    const int64_t *dims;
};

static struct shape shape_of(const struct msc_graph *g, const int64_t (*dims)[MSC_MAX_DIMS],
                             int32_t tensor) {
    const struct msc_tensor *t = msc_graph_tensor(g, tensor);
    return (struct shape){t->n_dims, dims != NULL ? dims[tensor] : t->dims};
}

static double dim_product(struct shape t, int first, int end) {
    double product = 1;
    for (int i = first; i < end; i++) {
        product *= t.dims[i] < 0 ? 0 : (double)t.dims[i]; // an unknown length counts as 0
    }
    return product;
}

// Each output element of a convolution reads every input channel of its group at every kernel
// position. The number of these reads is the number of elements of the weight, divided by the
// number of output channels. In a transposed convolution, each input element is instead multiplied
// by the weights of every output channel of its group.
static double conv_macs(const struct msc_graph *g, const struct msc_joint *j,
                        const int64_t (*dims)[MSC_MAX_DIMS]) {
    struct shape w = shape_of(g, dims, j->operands[1]);
    struct shape walked =
        shape_of(g, dims, j->op == MSC_OP_CONV2D_TRANSPOSE ? j->operands[0] : j->outputs[0]);
    return dim_product(walked, 0, walked.n_dims) * dim_product(w, 1, w.n_dims);
}

static double product_macs(const struct msc_graph *g, const struct msc_joint *j,
                           const int64_t (*dims)[MSC_MAX_DIMS]) {
    struct shape x = shape_of(g, dims, j->operands[0]), y = shape_of(g, dims, j->outputs[0]);
    bool trans_a = false;
    if (x.n_dims == 0) {
        return 0;
    }
    (void)msc_joint_attr_bool(j, "trans_a", &trans_a);
    int64_t depth = x.dims[trans_a ? x.n_dims - 2 : x.n_dims - 1];
    depth = depth < 0 ? 0 : depth;
    return dim_product(y, 0, y.n_dims) * (double)depth;
}

// For each sample and time step, the input is multiplied by one weight and the state by the
// other.
static int recurrent_products(struct msc_product out[2], const struct msc_graph *g,
                              const struct msc_joint *j, const int64_t (*dims)[MSC_MAX_DIMS]) {
    double samples = dim_product(shape_of(g, dims, j->operands[0]), 0, 2);
    for (int i = 0; i < 2; i++) {
        struct shape w = shape_of(g, dims, j->operands[i + 1]);
        out[i] = (struct msc_product){samples * dim_product(w, 0, w.n_dims),
                                      {i == 0 ? 0 : MSC_NO_ID, i + 1}};
    }
    return 2;
}

static int list_products(struct msc_product out[2], const struct msc_graph *g,
                         const struct msc_joint *j, const int64_t (*dims)[MSC_MAX_DIMS]) {
    out[0] = (struct msc_product){0, {0, 1}};
    if (msc_op_is_conv(j->op) || j->op == MSC_OP_CONV2D_TRANSPOSE) {
        out[0].macs = conv_macs(g, j, dims);
        return 1;
    }
    switch (j->op) {
    case MSC_OP_LINEAR:
    case MSC_OP_LINEAR_BIAS:
    case MSC_OP_MATMUL:
    case MSC_OP_GEMM:
        out[0].macs = product_macs(g, j, dims);
        return 1;
    case MSC_OP_RNN:
    case MSC_OP_GRU:
    case MSC_OP_LSTM:
        return recurrent_products(out, g, j, dims);
    default:
        return 0;
    }
}

int msc_joint_products_of(struct msc_product out[2], const struct msc_graph *g,
                          const struct msc_joint *j, const int64_t (*dims)[MSC_MAX_DIMS]) {
    return list_products(out, g, j, dims);
}

int msc_joint_products(struct msc_product out[2], const struct msc_graph *g,
                       const struct msc_joint *j) {
    return list_products(out, g, j, NULL);
}

double msc_joint_macs_of(const struct msc_graph *g, const struct msc_joint *j,
                         const int64_t (*dims)[MSC_MAX_DIMS]) {
    struct msc_product products[2];
    double macs = 0;
    int n = list_products(products, g, j, dims);
    for (int i = 0; i < n; i++) {
        macs += products[i].macs;
    }
    return macs;
}

double msc_joint_macs(const struct msc_graph *g, const struct msc_joint *j) {
    return msc_joint_macs_of(g, j, NULL);
}

bool msc_tensor_is_stored(const struct msc_tensor *t) {
    return strncmp(t->name, MSC_ADDED_PREFIX, strlen(MSC_ADDED_PREFIX)) != 0;
}
