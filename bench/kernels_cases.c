// What bench_kernels measures: joints as in published networks, and the graphs they stand in.
#include "bench/kernels.h"

#include "tests/joint_attrs.h"

#include <stdio.h>
#include <string.h>

// ---- What is measured -------------------------------------------------------------------------

const struct bench_product bench_products[] = {
    {"3x3 64-64 56x56", 8, 64, 64, 56, 3, 1, 1, 0, false},
    {"3x3 64-64 56x56, zero point", 8, 64, 64, 56, 3, 1, 1, 113, false},
    {"3x3 256-256 14x14", 8, 256, 256, 14, 3, 1, 1, 0, false},
    {"3x3 128-256 28x28, stride 2", 8, 128, 256, 28, 3, 2, 1, 0, false},
    {"1x1 24-144 56x56", 8, 24, 144, 56, 1, 1, 1, 0, false},
    {"1x1 96-24 56x56", 8, 96, 24, 56, 1, 1, 1, 0, false},
    {"1x1 64-256 56x56", 8, 64, 256, 56, 1, 1, 1, 0, false},
    {"1x1 256-1024 14x14", 8, 256, 1024, 14, 1, 1, 1, 0, false},
    {"depthwise 3x3 144 28x28", 8, 144, 144, 28, 3, 1, 144, 0, false},
    {"depthwise 3x3 96 112x112, stride 2", 8, 96, 96, 112, 3, 2, 96, 0, false},
    {"linear 512x512x512", 512, 512, 512, 1, 0, 1, 1, 0, false},
    {"linear 320x120x6625", 320, 120, 6625, 1, 0, 1, 1, 0, false},
    {"3x3 64-64 56x56, 128 images", 128, 64, 64, 56, 3, 1, 1, 0, true},
    {"3x3 256-256 56x56, 32 images", 32, 256, 256, 56, 3, 1, 1, 0, true},
    {"linear 4096x4096x4096", 4096, 4096, 4096, 1, 0, 1, 1, 0, true},
};
const int bench_n_products = (int)(sizeof(bench_products) / sizeof(bench_products[0]));

int64_t bench_product_out_size(const struct bench_product *p) {
    return p->kernel == 0 ? 1 : (p->size + 2 * (p->kernel / 2) - p->kernel) / p->stride + 1;
}

double bench_product_operations(const struct bench_product *p) {
    double area = p->kernel == 0 ? 1.0 : (double)(p->kernel * p->kernel);
    int64_t size = bench_product_out_size(p);
    return 2.0 * area * (double)(p->batch * p->in / p->groups * p->out * size * size);
}

const struct bench_mover bench_movers[] = {
    {"relu 6.4 MB", MSC_OP_RELU, 1, 4, {8, 64, 56, 56}, "", false, 0},
    {"add 6.4 MB", MSC_OP_ADD, 2, 4, {8, 64, 56, 56}, "", false, 0},
    {"add 0.8 MB", MSC_OP_ADD, 2, 4, {1, 64, 56, 56}, "", false, 0},
    {"sigmoid 6.4 MB", MSC_OP_SIGMOID, 1, 4, {8, 64, 56, 56}, "", false, 0},
    {"relu 0.4 MB", MSC_OP_RELU, 1, 4, {1, 32, 56, 56}, "", false, 0},
    {"add 0.4 MB", MSC_OP_ADD, 2, 4, {1, 32, 56, 56}, "", false, 0},
    {"max pool 3x3, stride 2",
     MSC_OP_MAX_POOL2D,
     1,
     4,
     {8, 64, 112, 112},
     "pool_size=3,3;strides=2,2;padding=1,1,1,1",
     true,
     0},
    {"avg pool 2x2, stride 2",
     MSC_OP_AVG_POOL2D,
     1,
     4,
     {8, 64, 112, 112},
     "pool_size=2,2;strides=2,2",
     true,
     0},
    {"global avg pool 1280 7x7", MSC_OP_GLOBAL_AVG_POOL, 1, 4, {8, 1280, 7, 7}, "", true, 0},
    {"resize nearest x2",
     MSC_OP_RESIZE,
     1,
     4,
     {8, 64, 40, 40},
     "scales=1,1,2,2;method=nearest_neighbor;coordinate_transformation_mode=asymmetric;"
     "rounding_method=floor",
     true,
     0},
    {"resize linear x2",
     MSC_OP_RESIZE,
     1,
     4,
     {8, 64, 40, 40},
     "scales=1,1,2,2;method=linear",
     true,
     0},
    {"softmax 320x6625", MSC_OP_SOFTMAX, 1, 2, {320, 6625}, "axis=-1", false, 0},
    {"concat 2x64", MSC_OP_CONCAT, 2, 4, {8, 64, 56, 56}, "axis=1", false, 0},
    {"transpose NCHW to NHWC",
     MSC_OP_PERMUTE_DIMS,
     1,
     4,
     {8, 64, 56, 56},
     "axes=0,2,3,1",
     false,
     0},
    {"matmul 4x512x512x512", MSC_OP_MATMUL, 2, 3, {4, 512, 512}, "", false, 8.0 * 512 * 512 * 512},
};
const int bench_n_movers = (int)(sizeof(bench_movers) / sizeof(bench_movers[0]));

// ---- Graphs -----------------------------------------------------------------------------------

void bench_fill(float x[], int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        x[i] = (float)(i % 17) * 0.125f - 1.0f;
    }
}

static enum msc_status add_weight(int32_t *tensor, struct msc_graph *g, const char *name,
                                  const char *layout, int n_dims, const int64_t dims[]) {
    struct msc_array *data;
    MSC_TRY(msc_array_create(&data, MSC_DTYPE_F32, n_dims, dims));
    bench_fill(msc_array_data(data), msc_array_n_elements(data));
    enum msc_status status = msc_graph_add_weight(tensor, g, name, NULL, layout, data);
    msc_array_release(data);
    return status;
}

static enum msc_status kernels_cases_add_joint(int32_t *output, struct msc_graph *g, enum msc_op op,
                                               int n_inputs, const int32_t inputs[],
                                               const char *attributes, int n_weights,
                                               const struct msc_weight_spec weights[]) {
    struct joint_attrs attrs;
    int32_t joint;
    joint_attrs_read(&attrs, attributes);
    struct msc_joint_spec spec = {.op = op,
                                  .n_inputs = n_inputs,
                                  .inputs = inputs,
                                  .n_weights = n_weights,
                                  .weights = weights,
                                  .n_attrs = attrs.n,
                                  .attrs = attrs.rows};
    MSC_TRY(msc_graph_add_joint(&joint, g, &spec));
    *output = msc_graph_joint(g, joint)->outputs[0];
    return MSC_OK;
}

// A convolution or linear layer with bias and relu behind it, as in most networks.
static enum msc_status add_product(int32_t *y, struct msc_graph *g, const struct bench_product *p) {
    char attributes[128];
    int32_t x, w, b;
    bool is_linear = p->kernel == 0;
    MSC_TRY(msc_graph_add_input(&x, g, "x", "x", MSC_DTYPE_F32, is_linear ? "NC" : "NCHW",
                                is_linear ? 2 : 4, (int64_t[]){p->batch, p->in, p->size, p->size}));
    int64_t dims[4] = {p->out, p->in / p->groups, p->kernel, p->kernel};
    MSC_TRY(add_weight(&w, g, "w", is_linear ? "OI" : "OIHW", is_linear ? 2 : 4, dims));
    MSC_TRY(add_weight(&b, g, "b", "O", 1, dims));
    struct msc_weight_spec weights[2] = {{"weight", w}, {"bias", b}};
    snprintf(attributes, sizeof(attributes), "padding=%d,%d,%d,%d;strides=%d,%d;groups=%d",
             (int)p->kernel / 2, (int)p->kernel / 2, (int)p->kernel / 2, (int)p->kernel / 2,
             (int)p->stride, (int)p->stride, (int)p->groups);
    MSC_TRY(kernels_cases_add_joint(y, g, is_linear ? MSC_OP_LINEAR_BIAS : MSC_OP_CONV2D_BIAS, 1,
                                    &x, is_linear ? "" : attributes, 2, weights));
    return kernels_cases_add_joint(y, g, MSC_OP_RELU, 1, y, "", 0, NULL);
}

static enum msc_status add_mover(int32_t *y, struct msc_graph *g, const struct bench_mover *m) {
    int32_t inputs[2] = {MSC_NO_ID, MSC_NO_ID};
    static const char *const names[] = {"x", "y"};
    for (int i = 0; i < m->n_inputs; i++) {
        MSC_TRY(msc_graph_add_input(&inputs[i], g, names[i], names[i], MSC_DTYPE_F32,
                                    m->n_dims == 4 ? "NCHW" : "", m->n_dims, m->dims));
    }
    if (m->is_behind_conv) {
        int32_t w;
        MSC_TRY(add_weight(&w, g, "w", "OIHW", 4, (int64_t[]){m->dims[1], m->dims[1], 1, 1}));
        struct msc_weight_spec weight = {"weight", w};
        MSC_TRY(kernels_cases_add_joint(&inputs[0], g, MSC_OP_CONV2D, 1, inputs, "", 1, &weight));
    }
    return kernels_cases_add_joint(y, g, m->op, m->n_inputs, inputs, m->attributes, 0, NULL);
}

enum msc_status bench_build(struct msc_graph **out, int32_t *output,
                            const struct bench_product *product, const struct bench_mover *mover) {
    MSC_TRY(msc_graph_create(out, "bench"));
    enum msc_status status =
        product ? add_product(output, *out, product) : add_mover(output, *out, mover);
    if (status != MSC_OK) {
        msc_graph_destroy(*out);
    }
    return status;
}
