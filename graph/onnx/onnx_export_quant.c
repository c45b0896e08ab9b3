// Writes quantised values: a weight as stored integers with a DequantizeLinear, an activation
// through QuantizeLinear and DequantizeLinear.
//
// ONNX Runtime clamps rint(x / s) + z to the whole range of the type, MSC to [low, high]. If [low,
// high] is narrower, a Clip of the float value before the pair enforces it. The Clip's bounds are
// (low - z) * s and (high - z) * s in float32. Divided by s, they may differ from low - z and
// high - z by one part in 2^23. Because these integers have at most 16 bits, rounding still gives
// exactly low and high. Weights in 16-bit float types are stored as such; activations are cast to
// the type and back.
#include "graph/onnx/onnx_export_form.h"

#include "data/array_codes.h"
#include "graph/target.h"

#include <string.h>

enum { SIGNED_OFFSET = 128 }; // turns signed into unsigned bytes

static enum msc_status add_limit(const char **out, struct msc_onnx_export *e, const char *name,
                                 float value) {
    float *copy = msc_arena_alloc(&e->arena, sizeof(*copy));
    MSC_TRY(MSC_ALLOCATED(copy && name));
    *copy = value;
    return msc_onnx__add_initializer(out, e, name, MSC_ONNX_FLOAT, 0, NULL, copy, sizeof(*copy));
}

static enum msc_status clip_to(const char **value, struct msc_onnx_export *e, const char *base,
                               float low, float high) {
    const char *inputs[3] = {*value};
    MSC_TRY(add_limit(&inputs[1], e, msc_arena_printf(&e->arena, "%s_low", base), low));
    MSC_TRY(add_limit(&inputs[2], e, msc_arena_printf(&e->arena, "%s_high", base), high));
    return msc_onnx__add_step(value, e, "Clip", msc_arena_printf(&e->arena, "%s_clipped", base),
                              inputs, 3);
}

// Replaces *value by the Max or Min of the value and one bound per channel. Channels are axis
// q->axis of n_dims.
static enum msc_status limit_channels(const char **value, struct msc_onnx_export *e,
                                      const char *base, bool is_low, const struct msc_quant *q,
                                      int n_dims) {
    const char *inputs[2] = {*value}, *what = is_low ? "low" : "high";
    int64_t dims[MSC_MAX_DIMS] = {q->n};
    float *limits = msc_arena_array(&e->arena, (size_t)q->n, sizeof(limits[0]));
    const char *name = msc_arena_printf(&e->arena, "%s_%s", base, what);
    const char *result = msc_arena_printf(&e->arena, "%s_clipped_%s", base, what);
    MSC_TRY(MSC_ALLOCATED(limits && name && result));
    for (int i = 1; i < n_dims - q->axis; i++) {
        dims[i] = 1;
    }
    for (int32_t c = 0; c < q->n; c++) {
        limits[c] = (float)((is_low ? q->low : q->high) - q->zero_points[c]) * q->scales[c];
    }
    MSC_TRY(msc_onnx__add_initializer(&inputs[1], e, name, MSC_ONNX_FLOAT, n_dims - q->axis, dims,
                                      limits, (size_t)q->n * sizeof(limits[0])));
    return msc_onnx__add_step(value, e, is_low ? "Max" : "Min", result, inputs, 2);
}

static enum msc_status onnx_export_quant_clip(const char **value, struct msc_onnx_export *e,
                                              const char *base, const struct msc_quant *q,
                                              int n_dims) {
    if (q->axis >= 0) {
        MSC_TRY(limit_channels(value, e, base, true, q, n_dims));
        return limit_channels(value, e, base, false, q, n_dims);
    }
    float scale = q->scales[0];
    float low = (float)(q->low - q->zero_points[0]) * scale;
    float high = (float)(q->high - q->zero_points[0]) * scale;
    return clip_to(value, e, base, low, high);
}

// Replaces *value by a Cast of it.
static enum msc_status onnx_export_quant_cast(const char **value, struct msc_onnx_export *e,
                                              const char *wanted, enum msc_dtype type) {
    const char *inputs[3] = {*value};
    Onnx__NodeProto *node;
    const char *name = wanted == NULL ? NULL : msc_onnx__free_name(e, &e->value_names, wanted);
    MSC_TRY(MSC_ALLOCATED(name));
    MSC_TRY(msc_onnx__add_node(&node, e, "Cast", wanted, inputs, 1, &name, 1));
    *value = name;
    return msc_onnx__put_int(e, node, "to", msc_onnx_type(type));
}

// Casts to the type and back. Numbers beyond the largest of the type would become infinity (even in
// bfloat16, because it rounds to fewer digits than float32), so a Clip comes first.
static enum msc_status round_activation(const char **out, struct msc_onnx_export *e,
                                        const char *base, enum msc_dtype type) {
    float most = type == MSC_DTYPE_F16 ? MSC_F16_MAX : MSC_BF16_MAX;
    MSC_TRY(clip_to(out, e, base, -most, most));
    MSC_TRY(onnx_export_quant_cast(
        out, e, msc_arena_printf(&e->arena, "%s_%s", base, msc_dtype_name(type)), type));
    return onnx_export_quant_cast(out, e, msc_arena_printf(&e->arena, "%s_rounded", base),
                                  MSC_DTYPE_F32);
}

// Sets the attribute `axis` of the last node to q's axis, unless q has a single scale.
static enum msc_status put_axis(struct msc_onnx_export *e, const struct msc_quant *q) {
    return q->axis < 0 ? MSC_OK : msc_onnx__put_int(e, e->nodes[e->n_nodes - 1], "axis", q->axis);
}

enum msc_status msc_onnx__quantize_integers(const char *inputs[3], struct msc_onnx_export *e,
                                            int32_t tensor, const struct msc_quant *q) {
    const char *base = e->names[tensor];
    int64_t n = q->n;
    struct msc_onnx_integers type;
    MSC_TRY(msc_onnx__pick_integers(&type, q, false));
    if (q->low != type.low || q->high != type.high) {
        int n_dims = e->graph->tensors[tensor]->tensor.n_dims;
        MSC_TRY(onnx_export_quant_clip(&inputs[0], e, base, q, n_dims));
    }
    MSC_TRY(msc_onnx__add_parameters(&inputs[1], e, base, q, &type, q->axis >= 0, &n));
    MSC_TRY(msc_onnx__add_step(&inputs[0], e, "QuantizeLinear",
                               msc_arena_printf(&e->arena, "%s_quantized", base), inputs, 3));
    return put_axis(e, q);
}

// Adds a LeakyRelu of slope 1, which changes nothing. ONNX Runtime 1.32 makes a QLinearConv of a
// convolution right before or after a pair, even if the pair has scales per channel. The model then
// fails at run time, because QLinearConv requires a single scale.
static enum msc_status shield_channels(const char **value, struct msc_onnx_export *e,
                                       const char *base) {
    const char *input = *value;
    MSC_TRY(msc_onnx__add_step(value, e, "LeakyRelu",
                               msc_arena_printf(&e->arena, "%s_shield", base), &input, 1));
    return msc_onnx__put_float(e, e->nodes[e->n_nodes - 1], "alpha", 1.0f);
}

enum msc_status msc_onnx__quantize_activation(const char **value, struct msc_onnx_export *e,
                                              int32_t tensor, const struct msc_quant *q) {
    const char *base = e->names[tensor];
    if (q->type != MSC_DTYPE_NONE) {
        return round_activation(value, e, base, q->type);
    }
    const char *inputs[3] = {*value};
    MSC_TRY((q->axis < 0 ? MSC_OK : shield_channels(&inputs[0], e, base)));
    MSC_TRY(msc_onnx__quantize_integers(inputs, e, tensor, q));
    MSC_TRY(msc_onnx__add_step(value, e, "DequantizeLinear",
                               msc_arena_printf(&e->arena, "%s_dequantized", base), inputs, 3));
    MSC_TRY(put_axis(e, q));
    return q->axis < 0 ? MSC_OK : shield_channels(value, e, base);
}

// Adds the node that produces a weight's value.
static enum msc_status add_result(Onnx__NodeProto **node, struct msc_onnx_export *e,
                                  const char *op_type, const char *base, const char *const inputs[],
                                  size_t n_inputs, const char **result) {
    const char *name = msc_arena_printf(&e->arena, "%s_dequantized", base);
    return name == NULL ? MSC_FAIL(MSC_E_NOMEM, "out of memory")
                        : msc_onnx__add_node(node, e, op_type, name, inputs, n_inputs, result, 1);
}

// How a quantised weight is stored.
struct stored {
    int n_dims, n_scale_dims;
    int64_t dims[MSC_MAX_DIMS], scale_dims[MSC_MAX_DIMS];
    int32_t axis;   // axis of the scales, or -1
    int64_t block;  // elements along the axis that share a scale; 0: no blocks
    bool is_shaped; // the stored dims differ from the weight's
};

// True if a Reshape must follow the weight, because activations are also quantised. ONNX Runtime
// 1.31 fuses products with blocked weights like any other product, and then fails at run time. The
// Reshape prevents this.
static bool needs_shield(const struct msc_onnx_export *e, int32_t weight) {
    const struct msc_sites *sites = e->options->sites;
    for (int32_t i = 0; i < sites->n_slots; i++) {
        for (int32_t k = 0; sites->slots[i].tensor == weight && k < sites->n_slots; k++) {
            if (sites->slots[k].joint == sites->slots[i].joint &&
                sites->slots[k].kind == MSC_SITE_ACTIVATION &&
                msc_edit_quant(e->options->slot_edits[k]) != NULL) {
                return true;
            }
        }
    }
    return false;
}

// Sets block size, axis and dims of the stored weight. Axes that a group extends over are stored as
// one axis.
static void describe_blocks(struct stored *s, const struct msc_tensor *t, const struct msc_quant *q,
                            bool is_shielded) {
    int end = q->axis + q->group_axes;
    int first = is_shielded && q->group_axes == 1 && t->n_dims < MSC_MAX_DIMS ? 1 : 0;
    int64_t length = msc_dims_product(q->group_axes, t->dims + q->axis);
    s->dims[0] = 1;
    memcpy(s->dims + first, t->dims, (size_t)q->axis * sizeof(t->dims[0]));
    s->axis = q->axis + first;
    s->dims[s->axis] = length;
    memcpy(s->dims + s->axis + 1, t->dims + end, (size_t)(t->n_dims - end) * sizeof(t->dims[0]));
    s->n_dims = s->n_scale_dims = t->n_dims - q->group_axes + 1 + first;
    memcpy(s->scale_dims, s->dims, sizeof(s->dims));
    s->scale_dims[s->axis] = (length + q->group_size - 1) / q->group_size;
    s->block = length < q->group_size ? length : q->group_size;
    s->is_shaped = first > 0 || q->group_axes > 1;
}

static void describe_stored(struct stored *s, const struct msc_onnx_export *e, int32_t weight,
                            const struct msc_quant *q) {
    const struct msc_tensor *t = &e->graph->tensors[weight]->tensor;
    *s = (struct stored){.n_dims = t->n_dims, .n_scale_dims = q->axis < 0 ? 0 : 1, .axis = q->axis};
    memcpy(s->dims, t->dims, sizeof(s->dims));
    s->scale_dims[0] = q->n;
    if (q->group_size > 0) {
        describe_blocks(s, t, q, needs_shield(e, weight));
    }
}

// Restores the dims of a weight that is stored with fewer axes.
static enum msc_status restore_dims(const char **result, struct msc_onnx_export *e,
                                    const struct msc_tensor *t, const char *base,
                                    const char *blocks) {
    const char *inputs[2] = {blocks};
    Onnx__NodeProto *node;
    const char *name = msc_arena_printf(&e->arena, "%s_dims", base);
    MSC_TRY(MSC_ALLOCATED(name));
    int64_t n = t->n_dims;
    MSC_TRY(msc_onnx__add_initializer(&inputs[1], e, name, MSC_ONNX_INT64, 1, &n, t->dims,
                                      (size_t)n * sizeof(n)));
    return add_result(&node, e, "Reshape", base, inputs, 2, result);
}

// Converts 8-bit integers to unsigned ones for targets that require it.
static enum msc_status make_unsigned(struct msc_quant *q, struct msc_array *integers,
                                     struct msc_onnx_export *e) {
    const struct msc_sites *sites = e->options->sites;
    const struct msc_target *target = sites == NULL ? NULL : sites->scheme.target;
    int32_t *values = msc_array_data(integers);
    if (target == NULL || !target->stores_unsigned || q->low >= 0 || q->bits != 8 ||
        q->group_size > 0) {
        return MSC_OK;
    }
    int32_t *zero_points = msc_arena_array(&e->arena, (size_t)q->n, sizeof(zero_points[0]));
    MSC_TRY(MSC_ALLOCATED(zero_points));
    for (int32_t i = 0; i < q->n; i++) {
        zero_points[i] = q->zero_points[i] + SIGNED_OFFSET;
    }
    for (int64_t i = 0; i < msc_array_n_elements(integers); i++) {
        values[i] += SIGNED_OFFSET;
    }
    q->zero_points = zero_points;
    q->low += SIGNED_OFFSET;
    q->high += SIGNED_OFFSET;
    return MSC_OK;
}

static enum msc_status put_integers(const char **out, struct msc_onnx_integers *type,
                                    struct msc_quant *q, struct msc_onnx_export *e, int32_t weight,
                                    const struct msc_array *elements, const struct stored *stored) {
    struct msc_array *integers;
    MSC_TRY(msc_quantize_array(&integers, elements, q));
    enum msc_status status = make_unsigned(q, integers, e);
    if (status == MSC_OK) {
        bool is_narrow = !msc_onnx__has_forms(e) || stored->block > 0;
        status = msc_onnx__pick_integers(type, q, is_narrow);
    }
    if (status == MSC_OK) {
        status = msc_onnx__put_packed(out, e, e->names[weight], type, q->bits, stored->n_dims,
                                      stored->dims, msc_array_data(integers),
                                      (size_t)msc_array_n_elements(integers));
    }
    msc_array_release(integers);
    return status;
}

static enum msc_status store_integers(const char **result, struct msc_onnx_export *e,
                                      int32_t weight, const struct msc_array *elements,
                                      const struct msc_quant *q) {
    const struct msc_tensor *t = &e->graph->tensors[weight]->tensor;
    const char *base = e->names[weight];
    const char *inputs[3], *blocks = NULL;
    struct msc_onnx_integers type;
    struct msc_quant as_stored = *q;
    struct stored stored;
    Onnx__NodeProto *node;
    describe_stored(&stored, e, weight, q);
    MSC_TRY(put_integers(&inputs[0], &type, &as_stored, e, weight, elements, &stored));
    MSC_TRY(msc_onnx__add_parameters(&inputs[1], e, base, &as_stored, &type, stored.n_scale_dims,
                                     stored.scale_dims));
    if (!stored.is_shaped) {
        MSC_TRY(add_result(&node, e, "DequantizeLinear", base, inputs, 3, result));
    } else {
        MSC_TRY(msc_onnx__add_step(&blocks, e, "DequantizeLinear",
                                   msc_arena_printf(&e->arena, "%s_blocks", base), inputs, 3));
        node = e->nodes[e->n_nodes - 1];
        MSC_TRY(restore_dims(result, e, t, base, blocks));
    }
    if (stored.block > 0) {
        MSC_TRY(msc_onnx__put_int(e, node, "block_size", stored.block));
    }
    return stored.axis < 0 ? MSC_OK : msc_onnx__put_int(e, node, "axis", stored.axis);
}

static enum msc_status store_floats(const char **result, struct msc_onnx_export *e,
                                    const struct msc_array *elements, const char *base,
                                    const struct msc_quant *q) {
    const char *stored;
    struct msc_array *rounded;
    Onnx__NodeProto *node;
    size_t n_bytes = (size_t)msc_array_n_elements(elements) * msc_dtype_bytes(q->type);
    uint16_t *halves = msc_arena_alloc(&e->arena, n_bytes + 1);
    const char *name = msc_arena_printf(&e->arena, "%s_%s", base, msc_dtype_name(q->type));
    MSC_TRY(MSC_ALLOCATED(halves && name));
    MSC_TRY(msc_fake_quantize_array(&rounded, elements, q));
    const float *x = msc_array_data(rounded);
    for (int64_t i = 0; i < msc_array_n_elements(rounded); i++) {
        halves[i] = q->type == MSC_DTYPE_F16 ? msc_f32_to_f16(x[i]) : msc_f32_to_bf16(x[i]);
    }
    msc_array_release(rounded);
    MSC_TRY(msc_onnx__add_initializer(&stored, e, name, msc_onnx_type(q->type),
                                      msc_array_n_dims(elements), msc_array_dims(elements), halves,
                                      n_bytes));
    MSC_TRY(add_result(&node, e, "Cast", base, &stored, 1, result));
    return msc_onnx__put_int(e, node, "to", MSC_ONNX_FLOAT);
}

enum msc_status msc_onnx__quantize_weight(const char *result, struct msc_onnx_export *e,
                                          int32_t weight, const struct msc_array *elements,
                                          const struct msc_quant *q) {
    bool is_float = q->type != MSC_DTYPE_NONE, is_folded = false;
    if (!is_float && msc_onnx__is_folded(e, weight)) {
        MSC_TRY(msc_onnx__fold_weight(&is_folded, result, e, weight, elements, q));
    }
    if (is_folded) {
        return MSC_OK;
    }
    return is_float ? store_floats(&result, e, elements, e->names[weight], q)
                    : store_integers(&result, e, weight, elements, q);
}

// Elements are exact multiples of their scales, so rounding them gives the codes that they come
// from.
enum msc_status msc_onnx__write_codes(const char *result, struct msc_onnx_export *e, int32_t weight,
                                      const struct msc_array *elements) {
    const struct msc_array_codes *codes = msc_array_codes_of(elements);
    int32_t n = (int32_t)msc_array_n_elements(codes->scales);
    bool is_signed = codes->low < 0;
    int32_t *zeros = msc_arena_array(&e->arena, (size_t)n + 1, sizeof zeros[0]);
    MSC_TRY(MSC_ALLOCATED(zeros));
    for (int32_t i = 0; i < n; i++) {
        zeros[i] = codes->zero_points ? (int32_t)msc_array_get_i64(codes->zero_points, i) : 0;
        is_signed = is_signed || zeros[i] < 0;
    }
    const struct msc_quant q = {.bits = 8,
                                .low = is_signed ? -128 : 0,
                                .high = is_signed ? 127 : 255,
                                .axis = n > 1 ? codes->axis : -1,
                                .n = n,
                                .scales = msc_array_data(codes->scales),
                                .zero_points = zeros};
    return store_integers(&result, e, weight, elements, &q);
}

enum msc_status msc_onnx__round_bias(const char *result, struct msc_onnx_export *e, int32_t bias,
                                     const struct msc_array *elements,
                                     const struct msc_bias_rounding *rounding) {
    int64_t n = msc_array_n_elements(elements), n_steps = rounding->n;
    const char *base = e->names[bias], *inputs[2];
    const float *x = msc_array_data(elements);
    int32_t *integers = msc_arena_array(&e->arena, (size_t)n + 1, sizeof(integers[0]));
    const char *name = msc_arena_printf(&e->arena, "%s_quantized", base);
    const char *scale = msc_arena_printf(&e->arena, "%s_scale", base);
    Onnx__NodeProto *node;
    MSC_TRY(MSC_ALLOCATED(integers && name && scale));
    for (int64_t c = 0; c < n; c++) {
        integers[c] = msc_bias_round(x[c], msc_bias_step(rounding, c % n_steps));
    }
    MSC_TRY(msc_onnx__add_initializer(&inputs[0], e, name, MSC_ONNX_INT32,
                                      msc_array_n_dims(elements), msc_array_dims(elements),
                                      integers, (size_t)n * sizeof(integers[0])));
    MSC_TRY(msc_onnx__add_initializer(&inputs[1], e, scale, MSC_ONNX_FLOAT, n_steps > 1, &n_steps,
                                      rounding->steps,
                                      (size_t)n_steps * sizeof(rounding->steps[0])));
    if (msc_onnx__is_folded(e, bias)) {
        return msc_onnx__scale_bias(result, e, base, inputs);
    }
    MSC_TRY(add_result(&node, e, "DequantizeLinear", base, inputs, 2, &result));
    return n_steps > 1 ? msc_onnx__put_int(e, node, "axis", msc_array_n_dims(elements) - 1)
                       : MSC_OK;
}
