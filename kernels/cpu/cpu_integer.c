// Convolutions and matrix products on integers that models quantise themselves: QLinearConv,
// QLinearMatMul, ConvInteger, MatMulInteger, with constant weights and one scale and zero point for
// all activations. cpu_gemm.h computes the integer sums. The result of output channel c is
//
//     rint((float)(sum + bias) * scale[c]) + zero point,  scale[c] = x_scale * w_scale[c] / y_scale
//
// clamped to the range of the output type. cpu_gemm.h gives the same result for a step of floats
// whose output is quantised with scale 1. So cpu_gemm.h gets the weights as floats (the integers
// times scale[c]), with an edit that quantises these floats to the original integers.
#include "base/alloc.h"
#include "kernels/cpu/cpu_gemm.h"
#include "kernels/lowering/integer.h"

#include <string.h>

// ---- Preparing --------------------------------------------------------------------------------

struct kernel {
    struct msc_cpu_gemm *gemm;
    struct msc_array *weight; // as float32
    float *scales;            // [channels]
    int32_t *zeros, *bias;    // [channels] zero points of the weight: all 0; bias may be NULL
    struct msc_edit edit;     // edit of the weight
    // Index of the step input that contains the zero point of x; MSC_NO_ID: the constant x_zero.
    int32_t n_inputs, zero_input;
    int32_t x_zero, y_zero;
    bool gives_sums;
};

static void cpu_integer_release(void *kernel) {
    struct kernel *k = kernel;
    if (k) {
        msc_cpu_gemm_release(k->gemm);
        msc_array_release(k->weight);
        msc_free(k->scales);
        msc_free(k->zeros);
        msc_free(k->bias);
        msc_free(k);
    }
}

static enum msc_status cpu_integer_allocate(struct kernel *k, const struct msc_graph *g,
                                            const struct msc_joint *joint,
                                            const struct msc_integer_places *p, int64_t channels) {
    const struct msc_array *weight = msc_integer_constant(g, joint, p->weight);
    bool has_bias = msc_integer_constant(g, joint, p->bias) != NULL;
    MSC_TRY(msc_array_create(&k->weight, MSC_DTYPE_F32, msc_array_n_dims(weight),
                             msc_array_dims(weight)));
    k->scales = msc_alloc_zero((size_t)channels, sizeof(k->scales[0]));
    k->zeros = msc_alloc_zero((size_t)channels, sizeof(k->zeros[0]));
    k->bias = has_bias ? msc_alloc_zero((size_t)channels, sizeof(k->bias[0])) : NULL;
    return MSC_ALLOCATED(k->scales && k->zeros && (k->bias || !has_bias));
}

// Fills in the weights: integers times their scale, rounded once. The edit divides by the scale and
// rounds, which gives the same integers.
static void cpu_integer_fill(struct kernel *k, const struct msc_graph *g,
                             const struct msc_joint *joint, const struct msc_integer_places *p,
                             int axis) {
    const struct msc_array *weight = msc_integer_constant(g, joint, p->weight);
    const struct msc_array *zeros = msc_integer_constant(g, joint, p->w_zero);
    const struct msc_array *bias = msc_integer_constant(g, joint, p->bias);
    int64_t channels = msc_array_dim(weight, axis), low = 0, high = 0;
    int64_t inner =
        msc_dims_product(msc_array_n_dims(weight) - axis - 1, msc_array_dims(weight) + axis + 1);
    float *out = msc_array_data(k->weight);
    for (int64_t c = 0; c < channels; c++) {
        k->scales[c] = msc_integer_scale(g, joint, p, c);
        if (bias) {
            k->bias[c] = (int32_t)msc_integer_number(bias, c);
        }
    }
    for (int64_t i = 0; i < msc_array_n_elements(weight); i++) {
        int64_t c = i / inner % channels;
        int64_t q = msc_array_get_i64(weight, i) - msc_integer_number(zeros, c);
        low = q < low ? q : low;
        high = q > high ? q : high;
        out[i] = (float)q * k->scales[c];
    }
    k->edit = msc_edit_quantize((struct msc_quant){.bits = 8,
                                                   .low = (int32_t)low,
                                                   .high = (int32_t)high,
                                                   .axis = axis,
                                                   .n = (int32_t)channels,
                                                   .scales = k->scales,
                                                   .zero_points = k->zeros});
}

static enum msc_status cpu_integer_init(struct kernel *k, struct msc_cpu_backend *b,
                                        const struct msc_plan *plan, const struct msc_step *step) {
    const struct msc_step_joint *anchor = &step->joints[0];
    const struct msc_joint *joint = anchor->joint;
    const struct msc_graph *g = plan->graph;
    const struct msc_integer_places *p = msc_integer_places_of(joint->op);
    struct msc_gemm_spec spec;
    if (!msc_integer_describe(&spec, g, joint, p)) {
        return MSC_FAIL(MSC_E_INVALID, "joint %s: the integer kernels do not support it",
                        joint->name);
    }
    MSC_TRY(cpu_integer_allocate(k, g, joint, p, spec.desc.out_channels));
    cpu_integer_fill(k, g, joint, p, spec.out_axis);
    bool reads_zero = msc_lowering_is_computed(g, joint, p->x_zero);
    k->n_inputs = step->n_inputs;
    k->zero_input = reads_zero ? anchor->operands[p->x_zero].index : MSC_NO_ID;
    k->x_zero = (int32_t)msc_integer_number(msc_integer_constant(g, joint, p->x_zero), 0);
    k->y_zero = (int32_t)msc_integer_number(msc_integer_constant(g, joint, p->y_zero), 0);
    k->gives_sums = p->y_scale == 0;
    struct msc_cpu_gemm_source source = {.input = anchor->operands[0].index,
                                         .weight = k->weight,
                                         .integer_bias = k->bias,
                                         .gives_sums = k->gives_sums,
                                         .weight_slot = 0,
                                         .bias_slot = MSC_NO_ID};
    return msc_cpu_gemm_create(&k->gemm, b, plan, step, &spec, &source);
}

static enum msc_status cpu_integer_prepare(void **out, struct msc_cpu_backend *b,
                                           const struct msc_plan *plan,
                                           const struct msc_step *step) {
    struct kernel *k = msc_alloc_zero(1, sizeof(*k));
    enum msc_status status =
        k ? cpu_integer_init(k, b, plan, step)
          : MSC_FAIL(MSC_E_NOMEM, "joint %s: out of memory", step->joints[0].joint->name);
    if (status != MSC_OK) {
        cpu_integer_release(k);
        return status;
    }
    *out = k;
    return MSC_OK;
}

static enum msc_status cpu_integer_weights(void *kernel, struct msc_cpu_backend *b,
                                           const struct msc_edit *const edits[], void **out,
                                           size_t *n_bytes) {
    const struct kernel *k = kernel;
    const struct msc_edit *const own[1] = {&k->edit};
    (void)edits;
    return msc_cpu_gemm_weights(k->gemm, b, own, out, n_bytes);
}

// ---- Running ----------------------------------------------------------------------------------

static int32_t read_zero(const struct kernel *k, const struct msc_call *call) {
    if (k->zero_input == MSC_NO_ID) {
        return k->x_zero;
    }
    const struct msc_view *v = &call->inputs[k->zero_input];
    return v->dtype == MSC_DTYPE_I8 ? *(const int8_t *)v->data : *(const uint8_t *)v->data;
}

static enum msc_status cpu_integer_run(void *kernel, struct msc_cpu_backend *b,
                                       const struct msc_call *call, int thread) {
    const struct kernel *k = kernel;
    static const float one = 1.0f; // the result is quantised with scale 1
    struct msc_view inputs[2], none = {.dtype = MSC_DTYPE_F32};
    int32_t x = k->gemm->input, x_zero = read_zero(k, call);
    struct msc_quant in = msc_cpu_byte_quant(call->inputs[x].dtype, &one, &x_zero);
    struct msc_quant out = msc_cpu_byte_quant(call->outputs[0].dtype, &one, &k->y_zero);
    memcpy(inputs, call->inputs, (size_t)k->n_inputs * sizeof(inputs[0]));
    inputs[x].quant = &in;
    struct msc_quantized quantized = {call->outputs[0], &out};
    quantized.view.quant = &out;
    struct msc_call inner = {.inputs = inputs, .outputs = call->outputs, .weights = call->weights};
    if (!k->gives_sums) {
        inner.outputs = &none;
        inner.quantized = &quantized;
        inner.n_quantized = 1;
    }
    return msc_cpu_gemm_run(k->gemm, b, &inner, thread);
}

const struct msc_cpu_family msc_cpu_integer = {
    .prepare = cpu_integer_prepare,
    .release = cpu_integer_release,
    .run = cpu_integer_run,
    .weights = cpu_integer_weights,
    .release_weights = msc_cpu_gemm_release_weights,
};
