// Finds what a model quantises itself: QuantizeLinear with the DequantizeLinear that undoes it, and
// weights that the model stores as integers (data/array_codes.h). Steps then run on the integers,
// as they do if a trial quantises a float model in the same way.
#include "kernels/engine/planner_internal.h"

#include "data/array_codes.h"
#include "kernels/backend.h"

#include <math.h>

// ---- Activations ------------------------------------------------------------------------------

// The elements of operand `position` of a step's first joint if it is a constant; otherwise NULL.
static const struct msc_array *constant_operand(const struct msc_plan *plan,
                                                const struct msc_step *s, int32_t position) {
    const struct msc_step_joint *j = &s->joints[0];
    bool is_constant = position < j->n_operands && j->operands[position].kind == MSC_OPERAND_WEIGHT;
    return is_constant ? msc_graph_tensor(plan->graph, j->operands[position].index)->data : NULL;
}

static bool is_byte(enum msc_dtype dtype) {
    return dtype == MSC_DTYPE_U8 || dtype == MSC_DTYPE_I8;
}

// True if the step's QuantizeLinear or DequantizeLinear has bytes of type `dtype` and one constant
// scale.
static bool has_one_scale(const struct msc_plan *plan, const struct msc_step *s,
                          enum msc_dtype dtype) {
    const struct msc_joint *joint = s->joints[0].joint;
    const struct msc_array *scale = constant_operand(plan, s, 1);
    const struct msc_array *zero = constant_operand(plan, s, 2);
    const char *format = msc_joint_attr(joint, "format");
    bool has_zero = joint->n_operands > 2 && joint->operands[2] != MSC_NO_ID;
    if (!is_byte(dtype) || !scale || msc_array_dtype(scale) != MSC_DTYPE_F32 ||
        msc_array_n_elements(scale) != 1 || (has_zero && !zero) || (format && format[0] != '\0')) {
        return false;
    }
    float s0 = *(const float *)msc_array_data(scale);
    return isfinite(s0) && s0 > 0.0f && (!zero || msc_array_n_elements(zero) == 1);
}

static enum msc_status read_quant(struct msc_quant *out, const struct msc_planner *p,
                                  const struct msc_step *s, enum msc_dtype dtype) {
    const struct msc_array *zero = constant_operand(p->plan, s, 2);
    int32_t *zero_point = msc_arena_array(p->arena, 1, sizeof(zero_point[0]));
    int32_t low = dtype == MSC_DTYPE_I8 ? -128 : 0;
    MSC_TRY(MSC_ALLOCATED(zero_point));
    *zero_point = zero ? (int32_t)msc_array_get_i64(zero, 0) : 0;
    *out = (struct msc_quant){.bits = 8,
                              .low = low,
                              .high = low + 255,
                              .axis = -1,
                              .n = 1,
                              .scales = msc_array_data(constant_operand(p->plan, s, 1)),
                              .zero_points = zero_point};
    msc_quant_seal(out);
    return MSC_OK;
}

static bool is_step_of(const struct msc_step *s, enum msc_op op) {
    return s->kind == MSC_STEP_RUN && s->n_joints == 1 && s->joints[0].joint->op == op;
}

// The step that makes a value, not counting aliases; MSC_NO_ID if the value is an input.
static int32_t maker_of(const struct msc_plan *plan, int32_t value) {
    int32_t step = plan->values[value].step;
    while (step != MSC_NO_ID && plan->steps[step].kind == MSC_STEP_ALIAS) {
        step = plan->values[plan->steps[step].inputs[0]].step;
    }
    return step;
}

// Sets `undone` and `quant` of a step that undoes a QuantizeLinear.
static enum msc_status find_undone(struct msc_planner *p, struct msc_step *s) {
    const struct msc_plan *plan = p->plan;
    const struct msc_value *codes = &plan->values[s->inputs[0]];
    const struct msc_value *out = &plan->values[s->outputs[0]];
    int32_t maker = maker_of(plan, s->inputs[0]);
    const struct msc_step *from = maker == MSC_NO_ID ? NULL : &plan->steps[maker];
    struct msc_quant given;
    struct msc_quant *own = msc_arena_alloc(p->arena, sizeof(*own));
    MSC_TRY(MSC_ALLOCATED(own));
    if (!from || !is_step_of(from, MSC_OP_QUANTIZE) || out->dtype != MSC_DTYPE_F32 ||
        plan->values[from->inputs[0]].dtype != MSC_DTYPE_F32 ||
        plan->values[from->inputs[0]].layout != out->layout ||
        !has_one_scale(plan, from, codes->dtype) || !has_one_scale(plan, s, codes->dtype)) {
        return MSC_OK;
    }
    MSC_TRY(read_quant(&given, p, from, codes->dtype));
    MSC_TRY(read_quant(own, p, s, codes->dtype));
    if (msc_hash_equal(given.hash, own->hash)) {
        s->undone = maker;
        s->quant = own;
    }
    return MSC_OK;
}

// ---- Weights ----------------------------------------------------------------------------------

// Reads the scale and zero point of one channel. False if a code minus the zero point may not fit
// int8, or if the scale is not an ordinary number.
static bool read_channel(float *scale, int32_t *zero_point, const struct msc_array_codes *codes,
                         int64_t channel) {
    const struct msc_array *zeros = codes->zero_points;
    *scale = ((const float *)msc_array_data(codes->scales))[channel];
    *zero_point = zeros ? (int32_t)msc_array_get_i64(zeros, channel) : 0;
    return *scale > 0x1p-60f && *scale < 0x1p60f && codes->low - *zero_point >= INT8_MIN &&
           codes->high - *zero_point <= INT8_MAX;
}

// Makes the edit that gives a weight's own codes. *out is NULL if the weight has none that a kernel
// can multiply.
static enum msc_status find_own_edit(const struct msc_edit **out, const struct msc_planner *p,
                                     const struct msc_slot *slot) {
    const struct msc_array *data = msc_graph_tensor(p->graph, slot->tensor)->data;
    const struct msc_array_codes *codes = data ? msc_array_codes_of(data) : NULL;
    *out = NULL;
    if (!codes) {
        return MSC_OK;
    }
    int64_t n = msc_array_n_elements(codes->scales);
    struct msc_edit *edit = msc_arena_alloc(p->arena, sizeof(*edit));
    float *scales = msc_arena_array(p->arena, (size_t)n, sizeof(scales[0]));
    int32_t *zero_points = msc_arena_array(p->arena, (size_t)n, sizeof(zero_points[0]));
    MSC_TRY(MSC_ALLOCATED(edit && scales && zero_points));
    bool fits = n == 1 || codes->axis == slot->channel_axis;
    fits = fits && (!codes->zero_points || msc_array_n_elements(codes->zero_points) == n);
    for (int64_t c = 0; fits && c < n; c++) {
        fits = read_channel(&scales[c], &zero_points[c], codes, c);
    }
    if (!fits) {
        return MSC_OK;
    }
    *edit = msc_edit_quantize((struct msc_quant){.bits = 8,
                                                 .low = codes->low,
                                                 .high = codes->high,
                                                 .axis = n == 1 ? -1 : codes->axis,
                                                 .n = (int32_t)n,
                                                 .scales = scales,
                                                 .zero_points = zero_points});
    *out = edit;
    return MSC_OK;
}

static enum msc_status find_own_edits(struct msc_planner *p, struct msc_step *s) {
    for (int32_t i = 0; i < s->n_weight_slots; i++) {
        int32_t bound = p->plan->bound_slots[s->weight_slots[i]];
        const struct msc_slot *slot = &p->plan->sites.slots[bound];
        if (slot->kind == MSC_SITE_WEIGHT) {
            MSC_TRY(find_own_edit(&s->own_edits[i], p, slot));
        }
    }
    return MSC_OK;
}

enum msc_status msc_planner__find_pairs(struct msc_planner *p) {
    bool has_pairs = false;
    for (int32_t i = 0; i < p->plan->n_steps; i++) {
        struct msc_step *s = &p->plan->steps[i];
        s->undone = MSC_NO_ID;
        if (is_step_of(s, MSC_OP_DEQUANTIZE)) {
            MSC_TRY(find_undone(p, s));
            has_pairs = has_pairs || s->quant;
        }
    }
    for (int32_t i = 0; has_pairs && i < p->plan->n_steps; i++) {
        MSC_TRY(find_own_edits(p, &p->plan->steps[i]));
    }
    return MSC_OK;
}
