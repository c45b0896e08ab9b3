// Convolutions and matrix products between integers that models quantise themselves: QLinearConv,
// QLinearMatMul, ConvInteger, MatMulInteger, with constant weights and one scale and zero point for
// all activations. Sums are those of weighted steps (cpu_gemm.h); what follows them is
//
//     rint((float)(sum + bias) * scale[c]) + zero point,  scale[c] = x_scale * w_scale[c] / y_scale
//
// limited to the type: how float32 results are quantised whose scale is scale[c], with a step of 1.
// The weights are handed on as floats under scale[c], and an edit that makes their integers of them.
#include "base/alloc.h"
#include "kernels/cpu/cpu_gemm.h"

#include <math.h>
#include <string.h>

// Where the operands of an operator stand; 0: it has none.
struct places {
    bool is_conv;
    int weight, bias;
    int x_scale, x_zero, w_scale, w_zero, y_scale, y_zero;
};

static const struct places *places_of(enum msc_op op) {
    static const struct {
        enum msc_op op;
        struct places places;
    } table[] = {
        {MSC_OP_QLINEAR_CONV, {true, 3, 8, 1, 2, 4, 5, 6, 7}},
        {MSC_OP_QLINEAR_MATMUL, {false, 3, 0, 1, 2, 4, 5, 6, 7}},
        {MSC_OP_CONV_INTEGER, {.is_conv = true, .weight = 1, .x_zero = 2, .w_zero = 3}},
        {MSC_OP_MATMUL_INTEGER, {.is_conv = false, .weight = 1, .x_zero = 2, .w_zero = 3}},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (table[i].op == op) {
            return &table[i].places;
        }
    }
    return NULL;
}

// ---- Acceptance -------------------------------------------------------------------------------

static bool is_byte(enum msc_dtype dtype) {
    return dtype == MSC_DTYPE_U8 || dtype == MSC_DTYPE_I8;
}

static const struct msc_array *constant(const struct msc_graph *g, const struct msc_joint *joint,
                                        int place) {
    return place > 0 ? msc_lowering_constant(g, joint, place) : NULL;
}

// A list of n numbers of this type, or of one for all. Absent ones are.
static bool is_list(const struct msc_graph *g, const struct msc_joint *joint, int place,
                    enum msc_dtype dtype, int64_t n) {
    const struct msc_array *a = constant(g, joint, place);
    if (place == 0 || !msc_lowering_operand(g, joint, place)) {
        return true;
    }
    return a && msc_array_dtype(a) == dtype &&
           (msc_array_n_elements(a) == 1 || msc_array_n_elements(a) == n);
}

static int64_t number(const struct msc_array *a, int64_t i) {
    return a ? msc_array_get_i64(a, msc_array_n_elements(a) == 1 ? 0 : i) : 0;
}

static float scale_at(const struct msc_array *a, int64_t i) {
    return a ? (float)msc_array_get_double(a, msc_array_n_elements(a) == 1 ? 0 : i) : 1.0f;
}

// In the reference kernels' order.
static float channel_scale(const struct msc_graph *g, const struct msc_joint *joint,
                           const struct places *p, int64_t channel) {
    return scale_at(constant(g, joint, p->x_scale), 0) *
           scale_at(constant(g, joint, p->w_scale), channel) /
           scale_at(constant(g, joint, p->y_scale), 0);
}

static bool describe(struct msc_gemm_spec *out, const struct msc_graph *g,
                     const struct msc_joint *joint, const struct places *p) {
    const struct msc_tensor *x = msc_lowering_operand(g, joint, 0);
    const struct msc_tensor *w = msc_lowering_operand(g, joint, p->weight);
    if (p->is_conv) {
        return msc_gemm_describe_window(out, joint, x, w, msc_lowering_output(g, joint));
    }
    if (x->n_dims < 1 || w->n_dims != 2) {
        return false;
    }
    *out = (struct msc_gemm_spec){
        .desc = {.kind = MSC_GEMM_LINEAR,
                 .batch = msc_dims_product(x->n_dims - 1, x->dims),
                 .groups = 1,
                 .in_channels = w->dims[0],
                 .out_channels = w->dims[1],
                 .is_input_first = true},
        .out_axis = 1,
        .channel_axis = x->n_dims - 1,
    };
    return out->desc.batch > 0 && out->desc.in_channels > 0 && out->desc.out_channels > 0;
}

// What weights less their zero points may be. False when no byte holds it.
static bool find_range(struct msc_quant *out, enum msc_dtype dtype, const struct msc_array *zeros) {
    int64_t least = number(zeros, 0), greatest = least;
    for (int64_t i = 0; zeros && i < msc_array_n_elements(zeros); i++) {
        int64_t zero = number(zeros, i);
        least = zero < least ? zero : least;
        greatest = zero > greatest ? zero : greatest;
    }
    int64_t low = dtype == MSC_DTYPE_I8 ? -128 : 0;
    *out = (struct msc_quant){
        .bits = 8, .low = (int32_t)(low - greatest), .high = (int32_t)(low + 255 - least)};
    return msc_quant_is_integer(out);
}

// Every sum, bias included, fits int32; every scale is one that weights can be given.
static bool has_good_numbers(const struct msc_graph *g, const struct msc_joint *joint,
                             const struct places *p, int64_t channels) {
    const int64_t most = (int64_t)1 << 30;
    const struct msc_array *bias = constant(g, joint, p->bias);
    const struct msc_array *weight = constant(g, joint, p->weight);
    struct msc_quant range;
    bool fits = find_range(&range, msc_array_dtype(weight), constant(g, joint, p->w_zero));
    int64_t size = -range.low > range.high ? -range.low : range.high;
    fits = fits && msc_array_n_elements(weight) / channels * 255 * size < most;
    for (int64_t c = 0; fits && c < channels; c++) {
        float scale = channel_scale(g, joint, p, c);
        int64_t added = number(bias, c);
        fits = scale > 0x1p-60f && scale < 0x1p60f && added > -most && added < most;
    }
    return fits;
}

static bool accepts(const struct msc_graph *g, const struct msc_joint *joint) {
    const struct places *p = places_of(joint->op);
    const struct msc_tensor *x = msc_lowering_operand(g, joint, 0),
                            *y = msc_lowering_output(g, joint);
    const struct msc_tensor *x_zero = msc_lowering_operand(g, joint, p->x_zero);
    const struct msc_array *weight = constant(g, joint, p->weight);
    struct msc_gemm_spec spec;
    if (!msc_lowering_is_computed(g, joint, 0) || !weight || !is_byte(x->dtype) ||
        !is_byte(msc_array_dtype(weight)) || (p->y_zero ? !is_byte(y->dtype) : false) ||
        (x_zero && msc_tensor_n_elements(x_zero) != 1) || !describe(&spec, g, joint, p)) {
        return false;
    }
    int64_t n = spec.desc.out_channels;
    return is_list(g, joint, p->x_scale, MSC_DTYPE_F32, 1) &&
           is_list(g, joint, p->w_scale, MSC_DTYPE_F32, n) &&
           is_list(g, joint, p->w_zero, msc_array_dtype(weight), n) &&
           is_list(g, joint, p->y_scale, MSC_DTYPE_F32, 1) &&
           is_list(g, joint, p->y_zero, y->dtype, 1) &&
           is_list(g, joint, p->bias, MSC_DTYPE_I32, n) && has_good_numbers(g, joint, p, n);
}

// ---- Preparing --------------------------------------------------------------------------------

struct kernel {
    struct msc_cpu_gemm *gemm;
    struct msc_array *weight;     // as floats
    float *scales;                // [channels]
    int32_t *zeros, *bias;        // [channels] nothing but 0; bias may be NULL
    struct msc_edit edit;         // of the weight
    int32_t n_inputs, zero_input; // of the step; zero_input MSC_NO_ID: x_zero it is
    int32_t x_zero, y_zero;
    bool gives_sums;
};

static void release(void *kernel) {
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

static enum msc_status allocate(struct kernel *k, const struct msc_graph *g,
                                const struct msc_joint *joint, const struct places *p,
                                int64_t channels) {
    const struct msc_array *weight = constant(g, joint, p->weight);
    bool has_bias = constant(g, joint, p->bias) != NULL;
    MSC_TRY(msc_array_create(&k->weight, MSC_DTYPE_F32, msc_array_n_dims(weight),
                             msc_array_dims(weight)));
    k->scales = msc_alloc_zero((size_t)channels, sizeof(k->scales[0]));
    k->zeros = msc_alloc_zero((size_t)channels, sizeof(k->zeros[0]));
    k->bias = has_bias ? msc_alloc_zero((size_t)channels, sizeof(k->bias[0])) : NULL;
    return k->scales && k->zeros && (k->bias || !has_bias)
               ? MSC_OK
               : MSC_FAIL(MSC_E_NOMEM, "joint %s: out of memory", joint->name);
}

// What the edit makes integers of: these times their scale, once rounded, which dividing by it and
// rounding to whole numbers undoes.
static void fill(struct kernel *k, const struct msc_graph *g, const struct msc_joint *joint,
                 const struct places *p, int axis) {
    const struct msc_array *weight = constant(g, joint, p->weight);
    const struct msc_array *zeros = constant(g, joint, p->w_zero);
    const struct msc_array *bias = constant(g, joint, p->bias);
    int64_t channels = msc_array_dim(weight, axis), low = 0, high = 0;
    int64_t inner =
        msc_dims_product(msc_array_n_dims(weight) - axis - 1, msc_array_dims(weight) + axis + 1);
    float *out = msc_array_data(k->weight);
    for (int64_t c = 0; c < channels; c++) {
        k->scales[c] = channel_scale(g, joint, p, c);
        if (bias) {
            k->bias[c] = (int32_t)number(bias, c);
        }
    }
    for (int64_t i = 0; i < msc_array_n_elements(weight); i++) {
        int64_t c = i / inner % channels;
        int64_t q = msc_array_get_i64(weight, i) - number(zeros, c);
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

static enum msc_status init(struct kernel *k, struct msc_cpu_backend *b,
                            const struct msc_plan *plan, const struct msc_step *step) {
    const struct msc_step_joint *anchor = &step->joints[0];
    const struct msc_joint *joint = anchor->joint;
    const struct msc_graph *g = plan->graph;
    const struct places *p = places_of(joint->op);
    struct msc_gemm_spec spec;
    if (!describe(&spec, g, joint, p)) {
        return MSC_FAIL(MSC_E_INVALID, "joint %s: not as its family takes it", joint->name);
    }
    MSC_TRY(allocate(k, g, joint, p, spec.desc.out_channels));
    fill(k, g, joint, p, spec.out_axis);
    bool reads_zero = msc_lowering_is_computed(g, joint, p->x_zero);
    k->n_inputs = step->n_inputs;
    k->zero_input = reads_zero ? anchor->operands[p->x_zero].index : MSC_NO_ID;
    k->x_zero = (int32_t)number(constant(g, joint, p->x_zero), 0);
    k->y_zero = (int32_t)number(constant(g, joint, p->y_zero), 0);
    k->gives_sums = p->y_scale == 0;
    struct msc_cpu_gemm_source source = {.input = anchor->operands[0].index,
                                         .weight = k->weight,
                                         .integer_bias = k->bias,
                                         .gives_sums = k->gives_sums};
    return msc_cpu_gemm_create(&k->gemm, b, plan, step, &spec, &source);
}

static enum msc_status prepare(void **out, struct msc_cpu_backend *b, const struct msc_plan *plan,
                               const struct msc_step *step) {
    struct kernel *k = msc_alloc_zero(1, sizeof(*k));
    enum msc_status status =
        k ? init(k, b, plan, step)
          : MSC_FAIL(MSC_E_NOMEM, "joint %s: out of memory", step->joints[0].joint->name);
    if (status != MSC_OK) {
        release(k);
        return status;
    }
    *out = k;
    return MSC_OK;
}

static enum msc_status weights(void *kernel, struct msc_cpu_backend *b,
                               const struct msc_edit *const edits[], void **out, size_t *n_bytes) {
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

static enum msc_status run(void *kernel, struct msc_cpu_backend *b, const struct msc_call *call,
                           int thread) {
    const struct kernel *k = kernel;
    static const float one = 1.0f; // what follows the sums is a step
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

static void layouts(const struct msc_graph *g, const struct msc_step *step,
                    const enum msc_layout coming[], struct msc_step_layouts *out) {
    if (places_of(step->joints[0].joint->op)->is_conv) {
        msc_lowering__conv_layouts(g, step, coming, out);
    }
}

const struct msc_cpu_family msc_cpu_integer = {
    .name = "integer",
    .accepts = accepts,
    .layouts = layouts,
    .prepare = prepare,
    .release = release,
    .run = run,
    .weights = weights,
    .release_weights = msc_cpu_gemm_release_weights,
};
