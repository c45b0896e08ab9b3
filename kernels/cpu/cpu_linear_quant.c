// QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear between float32 and bytes, with
// constant scales: one for all elements, or one per position along an axis.
#include "base/alloc.h"
#include "base/platform.h"
#include "graph/linear_quant.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/simd.h"

#include <math.h>
#include <string.h>

struct kernel {
    enum msc_op op;
    enum msc_dtype dtype;         // type of the bytes
    int64_t outer, length, inner; // the tensor in memory order, split around the axis of the scales
    int32_t n_outputs;
    float *scales;  // [length]
    int32_t *zeros; // [length]
};

// ---- Preparing --------------------------------------------------------------------------------

static void cpu_linear_quant_release(void *kernel) {
    struct kernel *k = kernel;
    if (k) {
        msc_free(k->scales);
        msc_free(k->zeros);
        msc_free(k);
    }
}

// Splits the input's memory around the axis of the scales.
static void cpu_linear_quant_divide(struct kernel *k, const struct msc_value *x, int axis) {
    int64_t dims[MSC_MAX_DIMS];
    int positions[MSC_MAX_DIMS], at;
    msc_lowering_positions(positions, x->n_dims, x->layout);
    for (int i = 0; i < x->n_dims; i++) {
        dims[positions[i]] = x->dims[i];
    }
    at = positions[axis];
    k->outer = msc_dims_product(at, dims);
    k->length = dims[at];
    k->inner = msc_dims_product(x->n_dims - at - 1, dims + at + 1);
}

static enum msc_status read_scales(struct kernel *k, const struct msc_graph *g,
                                   const struct msc_joint *joint, const struct msc_value *x) {
    const struct msc_array *scales = msc_lowering_constant(g, joint, 1);
    const struct msc_array *zeros = msc_lowering_constant(g, joint, 2);
    struct msc_linear_quant m;
    MSC_TRY(msc_linear_quant_init(&m, joint, x->n_dims, x->dims, msc_array_n_dims(scales),
                                  msc_array_dims(scales)));
    if (m.length > 0) {
        cpu_linear_quant_divide(k, x, msc_lowering_axis(joint, "axis", x->n_dims));
    }
    k->scales = msc_alloc_zero((size_t)k->length, sizeof(k->scales[0]));
    k->zeros = msc_alloc_zero((size_t)k->length, sizeof(k->zeros[0]));
    MSC_TRY(MSC_ALLOCATED(k->scales && k->zeros));
    for (int64_t i = 0; i < k->length; i++) {
        k->scales[i] = ((const float *)msc_array_data(scales))[i];
        k->zeros[i] = zeros ? (int32_t)msc_array_get_i64(zeros, i) : 0;
    }
    return MSC_OK;
}

static enum msc_status cpu_linear_quant_prepare(void **out, struct msc_cpu_backend *b,
                                                const struct msc_plan *plan,
                                                const struct msc_step *step) {
    (void)b;
    const struct msc_joint *joint = step->joints[0].joint;
    const struct msc_value *x = &plan->values[step->inputs[0]];
    const struct msc_value *y = &plan->values[step->outputs[0]];
    struct kernel *k = msc_alloc_zero(1, sizeof(*k));
    MSC_TRY(MSC_ALLOCATED(k));
    k->op = joint->op;
    k->dtype = joint->op == MSC_OP_DEQUANTIZE ? x->dtype : y->dtype;
    k->n_outputs = step->n_outputs;
    k->outer = k->length = 1;
    k->inner = msc_dims_product(x->n_dims, x->dims);
    enum msc_status status =
        joint->op == MSC_OP_DYNAMIC_QUANTIZE ? MSC_OK : read_scales(k, plan->graph, joint, x);
    if (status != MSC_OK) {
        cpu_linear_quant_release(k);
        return status;
    }
    *out = k;
    return MSC_OK;
}

// ---- Running ----------------------------------------------------------------------------------

static void cpu_linear_quant_quantize_run(uint8_t out[], const float x[], int64_t n,
                                          const struct msc_quant *q) {
    struct msc_simd_bytes bytes = msc_simd_bytes_of(q);
    msc_simd_best()->quantize(out, x, n, &bytes);
}

// Quantises rows in which each element has its own scale.
MSC_SIMD static void quantize_rows(uint8_t *restrict out, const float *restrict x,
                                   const struct kernel *k, float low, float high) {
    const float *restrict scales = k->scales;
    const int32_t *restrict zeros = k->zeros;
    int64_t n = k->length;
    for (int64_t r = 0; r < k->outer; r++, x += n, out += n) {
        for (int64_t i = 0; i < n; i++) {
            float q = rintf(x[i] / scales[i]) + (float)zeros[i];
            q = q > low ? q : low;
            q = q < high ? q : high;
            out[i] = (uint8_t)(int32_t)q;
        }
    }
}

static void cpu_linear_quant_quantize(const struct kernel *k, uint8_t *out, const float *x) {
    struct msc_quant q = msc_cpu_byte_quant(k->dtype, NULL, NULL);
    if (k->inner == 1 && k->length > 1) {
        quantize_rows(out, x, k, (float)q.low, (float)q.high);
        return;
    }
    for (int64_t i = 0; i < k->outer * k->length; i++) {
        q.scales = &k->scales[i % k->length];
        q.zero_points = &k->zeros[i % k->length];
        cpu_linear_quant_quantize_run(out + i * k->inner, x + i * k->inner, k->inner, &q);
    }
}

MSC_SIMD static void scale_rows(float *restrict x, const float *restrict scales, int64_t n_rows,
                                int64_t n) {
    for (int64_t r = 0; r < n_rows; r++, x += n) {
        for (int64_t i = 0; i < n; i++) {
            x[i] *= scales[i];
        }
    }
}

MSC_SIMD static void cpu_linear_quant_subtract_rows(float *restrict x,
                                                    const int32_t *restrict zeros, int64_t n_rows,
                                                    int64_t n) {
    for (int64_t r = 0; r < n_rows; r++, x += n) {
        for (int64_t i = 0; i < n; i++) {
            x[i] -= (float)zeros[i];
        }
    }
}

static void dequantize(const struct kernel *k, float *out, const char *codes) {
    if (k->inner == 1 && k->length > 1) {
        msc_cpu_expand(out, codes, k->dtype, k->outer * k->length, 0, 0, -1);
        cpu_linear_quant_subtract_rows(out, k->zeros, k->outer, k->length);
        scale_rows(out, k->scales, k->outer, k->length);
        return;
    }
    for (int64_t i = 0; i < k->outer * k->length; i++) {
        int64_t c = i % k->length;
        struct msc_quant q = msc_cpu_byte_quant(k->dtype, &k->scales[c], &k->zeros[c]);
        msc_cpu_dequantize(out + i * k->inner, codes + i * k->inner, k->dtype, k->inner, &q);
    }
}

static void quantize_dynamically(const struct kernel *k, const struct msc_call *call) {
    const float *x = call->inputs[0].data;
    float scale;
    int32_t zero;
    msc_quant_find_dynamic(&scale, &zero, x, k->inner);
    struct msc_quant q = msc_cpu_byte_quant(MSC_DTYPE_U8, &scale, &zero);
    cpu_linear_quant_quantize_run(call->outputs[0].data, x, k->inner, &q);
    if (k->n_outputs > 1) {
        *(float *)call->outputs[1].data = scale;
    }
    if (k->n_outputs > 2) {
        *(uint8_t *)call->outputs[2].data = (uint8_t)zero;
    }
}

static enum msc_status cpu_linear_quant_run(void *kernel, struct msc_cpu_backend *b,
                                            const struct msc_call *call, int thread) {
    const struct kernel *k = kernel;
    (void)b;
    (void)thread;
    if (k->op == MSC_OP_DYNAMIC_QUANTIZE) {
        quantize_dynamically(k, call);
    } else if (k->op == MSC_OP_QUANTIZE) {
        cpu_linear_quant_quantize(k, call->outputs[0].data, call->inputs[0].data);
    } else {
        dequantize(k, call->outputs[0].data, call->inputs[0].data);
    }
    return MSC_OK;
}

const struct msc_cpu_family msc_cpu_linear_quant = {
    .prepare = cpu_linear_quant_prepare,
    .release = cpu_linear_quant_release,
    .run = cpu_linear_quant_run,
};
