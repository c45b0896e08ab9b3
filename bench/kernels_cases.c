// Reads the table of kernel cases (tests/kernels/kernel_cases.def) for bench_kernels.
#include "bench/kernels.h"

#include "base/rng.h"

#include "tests/joint_attrs.h"

#include <stdlib.h>
#include <string.h>

// ---- Products ---------------------------------------------------------------------------------

// The first number of an attribute; 1 without the attribute.
static int64_t read_attribute(const struct kernel_case *row, const char *key) {
    struct joint_attrs attrs;
    joint_attrs_read(&attrs, row->attributes);
    for (int32_t i = 0; i < attrs.n; i++) {
        if (strcmp(attrs.rows[i].key, key) == 0) {
            return strtoll(attrs.rows[i].value, NULL, 10);
        }
    }
    return 1;
}

bool bench_product_of(struct bench_product *out, const struct kernel_case *row) {
    struct kernel_operand o[KERNEL_MAX_OPERANDS];
    bool is_linear = row->op == MSC_OP_LINEAR_BIAS;
    if (!is_linear && row->op != MSC_OP_CONV2D_BIAS) {
        return false;
    }
    kernel_case_operands(o, row);
    *out = (struct bench_product){.batch = o[0].dims[0],
                                  .in = o[0].dims[1],
                                  .out = o[1].dims[0],
                                  .size = is_linear ? 1 : o[0].dims[2],
                                  .kernel = is_linear ? 0 : o[1].dims[2],
                                  .stride = read_attribute(row, "strides"),
                                  .groups = read_attribute(row, "groups"),
                                  .zero_point = o[0].zero_point};
    return true;
}

int64_t bench_product_out_size(const struct bench_product *p) {
    return p->kernel == 0 ? 1 : (p->size + 2 * (p->kernel / 2) - p->kernel) / p->stride + 1;
}

double bench_product_operations(const struct bench_product *p) {
    double area = p->kernel == 0 ? 1.0 : (double)(p->kernel * p->kernel);
    int64_t size = bench_product_out_size(p);
    return 2.0 * area * (double)(p->batch * p->in / p->groups * p->out * size * size);
}

// ---- Graphs -----------------------------------------------------------------------------------

void bench_fill(float x[], int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        x[i] = (float)(i % 17) * 0.125f - 1.0f;
    }
}

// Weights are almost normally distributed, as those of networks are. The largest are near the limit
// of int8 at the scale of kernels_steps.c.
static void fill_weights(float x[], int64_t n) {
    struct msc_rng rng;
    msc_rng_seed(&rng, 1, 1);
    for (int64_t i = 0; i < n; i++) {
        double sum = 0.0;
        for (int k = 0; k < 12; k++) {
            sum += msc_rng_double(&rng) - 0.5;
        }
        x[i] = (float)(0.36 * sum);
    }
}

static void fill_operand(void *payload, const struct kernel_operand *o, float x[], int64_t n) {
    (void)payload;
    if (o->role[0] != '\0') {
        fill_weights(x, n);
    } else {
        bench_fill(x, n);
    }
}

static enum msc_status build(int32_t *output, struct msc_graph *g, const struct kernel_case *row) {
    struct kernel_builder b = {.graph = g, .fill = fill_operand};
    struct bench_product product;
    int32_t joint;
    enum msc_status status = kernel_case_build(&joint, &b, row);
    for (int i = 0; i < b.n_inputs; i++) {
        msc_array_release(b.inputs[i]); // steps run in their own memory
    }
    MSC_TRY(status);
    if (bench_product_of(&product, row)) {
        struct msc_joint_spec relu = {
            .op = MSC_OP_RELU, .n_inputs = 1, .inputs = msc_graph_joint(g, joint)->outputs};
        MSC_TRY(msc_graph_add_joint(&joint, g, &relu));
    }
    *output = msc_graph_joint(g, joint)->outputs[0];
    return MSC_OK;
}

enum msc_status bench_build(struct msc_graph **out, int32_t *output,
                            const struct kernel_case *row) {
    MSC_TRY(msc_graph_create(out, "bench"));
    enum msc_status status = build(output, *out, row);
    if (status != MSC_OK) {
        msc_graph_destroy(*out);
    }
    return status;
}
