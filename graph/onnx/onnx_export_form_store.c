// Quantises activations to unsigned bytes, and stores constants for float kernels as integers that
// the runtime converts at load.
#include "graph/onnx/onnx_export_form.h"

#include <string.h>

enum { SIGNED_OFFSET = 128 }; // turns signed into unsigned bytes

static const struct msc_onnx_integers unsigned_bytes = {MSC_ONNX_UINT8, 0, 255, 8};

static enum msc_status add_byte(const char **out, struct msc_onnx_export *e, const char *base,
                                const char *what, int32_t value) {
    if (value < unsigned_bytes.low || value > unsigned_bytes.high) {
        return MSC_FAIL(MSC_E_INVALID, "%s %d of '%s' is not in 0 to 255", what, (int)value, base);
    }
    const char *name = msc_arena_printf(&e->arena, "%s_%s", base, what);
    return msc_onnx__add_integers(out, e, name, &unsigned_bytes, 0, NULL, &value, 1);
}

// True if a joint that only moves elements produces the tensor from a tensor with the same edit.
// The bytes are then already within the range.
static bool is_moved_from(const struct msc_onnx_export *e, int32_t tensor,
                          const struct msc_edit *edit) {
    const struct msc_target *target = e->options->sites->scheme.target;
    const struct msc_joint *j = msc_graph_joint(e->graph, msc_graph_producer(e->graph, tensor));
    if (msc_target_role(target, e->graph, j) != MSC_TARGET_MOVES) {
        return false;
    }
    const struct msc_edit *before = msc_onnx__byte_edit(e, j->id, 0);
    return before != NULL && msc_hash_equal(before->hash, edit->hash);
}

// The range of bytes that the pair after the tensor can produce. QuantizeLinear saturates only to
// the whole range of the type. Rounding is monotonic, so bounds on the floats become the rounded
// bounds on the integers.
static void find_range(int32_t *low, int32_t *high, const struct msc_onnx_export *e, int32_t tensor,
                       const struct msc_edit *edit) {
    const struct msc_quant *q = &edit->quant;
    float limits[2];
    *low = q->low;
    *high = q->high;
    if (msc_onnx__limits_of(limits, e, tensor)) {
        *low = msc_quantize_value(limits[0], q->scales[0], q->zero_points[0], q->low, q->high);
        *high = msc_quantize_value(limits[1], q->scales[0], q->zero_points[0], q->low, q->high);
    }
    int32_t offset = q->low < 0 ? SIGNED_OFFSET : 0;
    bool is_within = is_moved_from(e, tensor, edit);
    *low = is_within ? unsigned_bytes.low : *low + offset;
    *high = is_within ? unsigned_bytes.high : *high + offset;
}

// A factor before a pair becomes part of the pair's scale: rint(a x / s) = rint(x / (s / a)).
static enum msc_status scale_of_tail(const char **scale, struct msc_onnx_export *e, int32_t tensor,
                                     const struct msc_quant *q) {
    struct msc_tail tail;
    if (!msc_onnx__tail_to(&tail, e, tensor) || tail.factor == 1) {
        return MSC_OK;
    }
    float *value = msc_arena_alloc(&e->arena, sizeof(*value));
    const char *name = msc_arena_printf(&e->arena, "%s_unscaled", e->names[tensor]);
    MSC_TRY(MSC_ALLOCATED(value && name));
    *value = (float)((double)q->scales[0] / tail.factor);
    return msc_onnx__add_initializer(scale, e, name, MSC_ONNX_FLOAT, 0, NULL, value,
                                     sizeof(*value));
}

enum msc_status msc_onnx__quantize_bytes(const char **value, struct msc_onnx_export *e,
                                         int32_t tensor, const struct msc_edit *edit) {
    const struct msc_quant *q = &edit->quant;
    int32_t offset = q->low < 0 ? SIGNED_OFFSET : 0, low, high;
    const char *base = e->names[tensor];
    const char *inputs[3] = {*value}, *bounds[3];
    const char *scale = msc_arena_printf(&e->arena, "%s_scale", base);
    const char *bytes = msc_arena_printf(&e->arena, "%s_quantized", base);
    const char *clipped = msc_arena_printf(&e->arena, "%s_clipped", base);
    const char *floats = msc_arena_printf(&e->arena, "%s_dequantized", base);
    MSC_TRY(MSC_ALLOCATED(scale && bytes && clipped && floats));
    find_range(&low, &high, e, tensor, edit);
    MSC_TRY(msc_onnx__add_initializer(&inputs[1], e, scale, MSC_ONNX_FLOAT, 0, NULL, q->scales,
                                      sizeof(float)));
    MSC_TRY(add_byte(&inputs[2], e, base, "zero_point", q->zero_points[0] + offset));
    const char *parameters[3] = {inputs[0], inputs[1], inputs[2]};
    MSC_TRY(scale_of_tail(&parameters[1], e, tensor, q));
    MSC_TRY(msc_onnx__add_step(&inputs[0], e, "QuantizeLinear", bytes, parameters, 3));
    if (low != unsigned_bytes.low || high != unsigned_bytes.high) {
        bounds[0] = inputs[0];
        MSC_TRY(add_byte(&bounds[1], e, base, "low", low));
        MSC_TRY(add_byte(&bounds[2], e, base, "high", high));
        MSC_TRY(msc_onnx__add_step(&inputs[0], e, "Clip", clipped, bounds, 3));
    }
    return msc_onnx__add_step(value, e, "DequantizeLinear", floats, inputs, 3);
}

bool msc_onnx__describe_folded(struct msc_onnx_folded *f, const struct msc_tensor *t,
                               const struct msc_quant *q) {
    *f = (struct msc_onnx_folded){.n_dims = t->n_dims};
    for (int i = 0; i < t->n_dims; i++) {
        f->dims[i] = t->dims[i];
        f->scale_dims[i] = i == q->axis ? t->dims[i] : 1;
    }
    if (q->group_size == 0) {
        return true;
    }
    int end = q->axis + q->group_axes;
    int64_t length = msc_dims_product(q->group_axes, t->dims + q->axis);
    int64_t size = length < q->group_size ? length : q->group_size;
    f->n_dims = t->n_dims - q->group_axes + 2;
    if (length % size != 0 || f->n_dims > MSC_MAX_DIMS) {
        return false;
    }
    f->dims[q->axis] = length / size;
    f->dims[q->axis + 1] = size;
    memcpy(f->dims + q->axis + 2, t->dims + end, (size_t)(t->n_dims - end) * sizeof(f->dims[0]));
    memcpy(f->scale_dims, f->dims, sizeof(f->dims));
    f->scale_dims[q->axis + 1] = 1;
    return true;
}

// Zero points as floats; NULL if memory is short.
static const float *float_zero_points(struct msc_onnx_export *e, const struct msc_quant *q,
                                      bool *has_any) {
    float *out = msc_arena_array(&e->arena, (size_t)q->n + 1, sizeof(out[0]));
    *has_any = false;
    for (int32_t i = 0; out != NULL && i < q->n; i++) {
        out[i] = (float)q->zero_points[i];
        *has_any = *has_any || q->zero_points[i] != 0;
    }
    return out;
}

enum msc_status msc_onnx__add_factors(struct msc_onnx_factors *out, struct msc_onnx_export *e,
                                      const char *base, const struct msc_quant *q, int n_dims,
                                      const int64_t dims[]) {
    const char *scale = msc_arena_printf(&e->arena, "%s_scale", base);
    const char *zero = msc_arena_printf(&e->arena, "%s_zero_point", base);
    bool has_zero_points;
    const float *zero_points = float_zero_points(e, q, &has_zero_points);
    MSC_TRY(MSC_ALLOCATED(scale && zero && zero_points));
    *out = (struct msc_onnx_factors){0};
    if (has_zero_points) {
        MSC_TRY(msc_onnx__add_initializer(&out->zero_points, e, zero, MSC_ONNX_FLOAT, n_dims, dims,
                                          zero_points, (size_t)q->n * sizeof(float)));
    }
    return msc_onnx__add_initializer(&out->scales, e, scale, MSC_ONNX_FLOAT, n_dims, dims,
                                     q->scales, (size_t)q->n * sizeof(float));
}

enum msc_status msc_onnx__scale_integers(const char **value, struct msc_onnx_export *e,
                                         const char *base, const struct msc_onnx_factors *factors) {
    const char *floats = msc_arena_printf(&e->arena, "%s_floats", base);
    const char *centred = msc_arena_printf(&e->arena, "%s_centred", base);
    const char *scaled = msc_arena_printf(&e->arena, "%s_scaled", base);
    MSC_TRY(msc_onnx__add_step(value, e, "Cast", floats, value, 1));
    MSC_TRY(msc_onnx__put_int(e, e->nodes[e->n_nodes - 1], "to", MSC_ONNX_FLOAT));
    if (factors->zero_points != NULL) {
        const char *inputs[2] = {*value, factors->zero_points};
        MSC_TRY(msc_onnx__add_step(value, e, "Sub", centred, inputs, 2));
    }
    const char *inputs[2] = {*value, factors->scales};
    return msc_onnx__add_step(value, e, "Mul", scaled, inputs, 2);
}

enum msc_status msc_onnx__scale_bias(const char *result, struct msc_onnx_export *e,
                                     const char *base, const char *const inputs[2]) {
    const char *value = inputs[0];
    const struct msc_onnx_factors factors = {.scales = inputs[1]};
    MSC_TRY(msc_onnx__scale_integers(&value, e, base, &factors));
    e->nodes[e->n_nodes - 1]->output[0] = (char *)result;
    return MSC_OK;
}

// The runtime evaluates a Cast, Sub and Mul of constants once, at load. It would run a
// DequantizeLinear in each inference.
enum msc_status msc_onnx__fold_weight(bool *is_done, const char *result, struct msc_onnx_export *e,
                                      int32_t weight, const struct msc_array *elements,
                                      const struct msc_quant *q) {
    const struct msc_tensor *t = msc_graph_tensor(e->graph, weight);
    const char *base = e->names[weight], *inputs[2];
    struct msc_onnx_integers type;
    struct msc_onnx_factors factors;
    struct msc_array *integers;
    struct msc_onnx_folded f;
    *is_done = msc_onnx__describe_folded(&f, t, q);
    if (!*is_done) {
        return MSC_OK;
    }
    MSC_TRY(msc_onnx__pick_integers(&type, q, false));
    MSC_TRY(msc_quantize_array(&integers, elements, q));
    enum msc_status status =
        msc_onnx__put_packed(&inputs[0], e, base, &type, q->bits, f.n_dims, f.dims,
                             msc_array_data(integers), (size_t)msc_array_n_elements(integers));
    msc_array_release(integers);
    MSC_TRY(status);
    bool is_whole = q->axis < 0;
    MSC_TRY(msc_onnx__add_factors(&factors, e, base, q, is_whole ? 0 : f.n_dims, f.scale_dims));
    MSC_TRY(msc_onnx__scale_integers(&inputs[0], e, base, &factors));
    if (q->group_size > 0) {
        int64_t n = t->n_dims;
        const char *name = msc_arena_printf(&e->arena, "%s_dims", base);
        MSC_TRY(MSC_ALLOCATED(name));
        MSC_TRY(msc_onnx__add_initializer(&inputs[1], e, name, MSC_ONNX_INT64, 1, &n, t->dims,
                                          (size_t)n * sizeof(n)));
        MSC_TRY(msc_onnx__add_step(&inputs[0], e, "Reshape", name, inputs, 2));
    }
    e->nodes[e->n_nodes - 1]->output[0] = (char *)result;
    return MSC_OK;
}
