// Convolutions and matrix products on integers that models quantise themselves, with constant
// weights and one scale and zero point for all activations.
#include "kernels/lowering/families_internal.h"
#include "kernels/lowering/integer.h"

const struct msc_integer_places *msc_integer_places_of(enum msc_op op) {
    static const struct {
        enum msc_op op;
        struct msc_integer_places places;
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

const struct msc_array *msc_integer_constant(const struct msc_graph *g,
                                             const struct msc_joint *joint, int place) {
    return place > 0 ? msc_lowering_constant(g, joint, place) : NULL;
}

int64_t msc_integer_number(const struct msc_array *a, int64_t i) {
    return a ? msc_array_get_i64(a, msc_array_n_elements(a) == 1 ? 0 : i) : 0;
}

static float scale_at(const struct msc_array *a, int64_t i) {
    return a ? (float)msc_array_get_double(a, msc_array_n_elements(a) == 1 ? 0 : i) : 1.0f;
}

float msc_integer_scale(const struct msc_graph *g, const struct msc_joint *joint,
                        const struct msc_integer_places *p, int64_t channel) {
    return scale_at(msc_integer_constant(g, joint, p->x_scale), 0) *
           scale_at(msc_integer_constant(g, joint, p->w_scale), channel) /
           scale_at(msc_integer_constant(g, joint, p->y_scale), 0);
}

bool msc_integer_describe(struct msc_gemm_spec *out, const struct msc_graph *g,
                          const struct msc_joint *joint, const struct msc_integer_places *p) {
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

// ---- Acceptance -------------------------------------------------------------------------------

static bool family_integer_is_byte(enum msc_dtype dtype) {
    return dtype == MSC_DTYPE_U8 || dtype == MSC_DTYPE_I8;
}

// True if the operand is absent, or a constant of this type with one or n elements.
static bool is_list(const struct msc_graph *g, const struct msc_joint *joint, int place,
                    enum msc_dtype dtype, int64_t n) {
    const struct msc_array *a = msc_integer_constant(g, joint, place);
    if (place == 0 || !msc_lowering_operand(g, joint, place)) {
        return true;
    }
    return a && msc_array_dtype(a) == dtype &&
           (msc_array_n_elements(a) == 1 || msc_array_n_elements(a) == n);
}

// Finds the range of weights minus their zero points. False if the range does not fit a byte.
static bool family_integer_find_range(struct msc_quant *out, enum msc_dtype dtype,
                                      const struct msc_array *zeros) {
    int64_t least = msc_integer_number(zeros, 0), greatest = least;
    for (int64_t i = 0; zeros && i < msc_array_n_elements(zeros); i++) {
        int64_t zero = msc_integer_number(zeros, i);
        least = zero < least ? zero : least;
        greatest = zero > greatest ? zero : greatest;
    }
    int64_t low = dtype == MSC_DTYPE_I8 ? -128 : 0;
    *out = (struct msc_quant){
        .bits = 8, .low = (int32_t)(low - greatest), .high = (int32_t)(low + 255 - least)};
    return msc_quant_is_integer(out);
}

// True if every sum with its bias fits int32 and every scale is valid for a weight.
static bool has_good_numbers(const struct msc_graph *g, const struct msc_joint *joint,
                             const struct msc_integer_places *p, int64_t channels) {
    const int64_t most = (int64_t)1 << 30;
    const struct msc_array *bias = msc_integer_constant(g, joint, p->bias);
    const struct msc_array *weight = msc_integer_constant(g, joint, p->weight);
    struct msc_quant range;
    bool fits = family_integer_find_range(&range, msc_array_dtype(weight),
                                          msc_integer_constant(g, joint, p->w_zero));
    int64_t size = -range.low > range.high ? -range.low : range.high;
    fits = fits && msc_array_n_elements(weight) / channels * 255 * size < most;
    for (int64_t c = 0; fits && c < channels; c++) {
        float scale = msc_integer_scale(g, joint, p, c);
        int64_t added = msc_integer_number(bias, c);
        fits = scale > 0x1p-60f && scale < 0x1p60f && added > -most && added < most;
    }
    return fits;
}

static bool family_integer_accepts(const struct msc_graph *g, const struct msc_joint *joint) {
    const struct msc_integer_places *p = msc_integer_places_of(joint->op);
    const struct msc_tensor *x = msc_lowering_operand(g, joint, 0),
                            *y = msc_lowering_output(g, joint);
    const struct msc_tensor *x_zero = msc_lowering_operand(g, joint, p->x_zero);
    const struct msc_array *weight = msc_integer_constant(g, joint, p->weight);
    struct msc_gemm_spec spec;
    if (!msc_lowering_is_computed(g, joint, 0) || !weight || !family_integer_is_byte(x->dtype) ||
        !family_integer_is_byte(msc_array_dtype(weight)) ||
        (p->y_zero ? !family_integer_is_byte(y->dtype) : false) ||
        (x_zero && msc_tensor_n_elements(x_zero) != 1) ||
        !msc_integer_describe(&spec, g, joint, p)) {
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

static void family_integer_layouts(const struct msc_graph *g, const struct msc_step *step,
                                   const enum msc_layout coming[], struct msc_step_layouts *out) {
    if (msc_integer_places_of(step->joints[0].joint->op)->is_conv) {
        msc_family__conv_layouts(g, step, coming, out);
    }
}

const struct msc_family_def msc_family__integer = {
    .name = "integer",
    .accepts = family_integer_accepts,
    .layouts = family_integer_layouts,
};
