// Translates operators on shapes, and operators with parameters that are attributes in one opset
// and inputs in another.
#include "graph/onnx/onnx_import_internal.h"
#include "graph/target.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum msc_status msc_onnx__dropout(struct msc_onnx_node *n) {
    double training = 0.0, ratio = 0.5;
    if (n->inputs[0] == NULL ||
        (msc_onnx__input(n, 2) != NULL && !msc_onnx__scalar(&training, msc_onnx__input(n, 2)))) {
        return MSC_ONNX_UNSUPPORTED("training_mode is computed at run time, expected a constant");
    }
    // A ratio of 0 drops nothing. Exporters leave such nodes in inference models.
    bool has_ratio = msc_onnx__input(n, 1) && msc_onnx__scalar(&ratio, msc_onnx__input(n, 1));
    if (training != 0.0 && !(has_ratio && ratio == 0.0)) {
        return MSC_ONNX_UNSUPPORTED("training_mode is set, expected a model for inference");
    }
    if (n->proto->n_output > 1) {
        // The mask output is true for every element, because all are kept.
        struct msc_value *operands[2];
        MSC_TRY(msc_onnx__make_scalar(&operands[0], n, MSC_DTYPE_BOOL, 1));
        MSC_TRY(msc_onnx__add_helper(&operands[1], n, MSC_OP_SHAPE_OF, n->inputs, 1));
        MSC_TRY(msc_onnx__add_helper(&operands[0], n, MSC_OP_BROADCAST_TO, operands, 2));
        MSC_TRY(msc_onnx__define_extra(n, 1, operands[0]));
    }
    return msc_onnx__add_last(n, MSC_OP_IDENTITY, n->inputs, 1);
}

// Sets a limit of Clip, unless it is beyond the range of float32 and thus has no effect.
static void set_limit(struct msc_onnx_node *n, const char *key, float value) {
    if (!isinf(value) && fabsf(value) < FLT_MAX) {
        msc_onnx__set_float(n, key, value);
    }
}

enum msc_status msc_onnx__clip(struct msc_onnx_node *n) {
    if (n->opset < 11) {
        float low, high;
        MSC_TRY(msc_onnx__float(&low, n, "min", -FLT_MAX));
        MSC_TRY(msc_onnx__float(&high, n, "max", FLT_MAX));
        set_limit(n, "min", low);
        set_limit(n, "max", high);
        return msc_onnx__add_last(n, MSC_OP_CLIP, n->inputs, 1);
    }
    return msc_onnx__add_last(n, MSC_OP_CLIP, n->inputs, n->n_inputs);
}

enum msc_status msc_onnx__extremum(struct msc_onnx_node *n) {
    enum msc_op op = n->n_inputs == 1 ? MSC_OP_IDENTITY : n->rule.op;
    return msc_onnx__add_last(n, op, n->inputs, n->n_inputs);
}

enum msc_status msc_onnx__sum(struct msc_onnx_node *n) {
    if (n->n_inputs == 1) {
        return msc_onnx__add_last(n, MSC_OP_IDENTITY, n->inputs, 1);
    }
    struct msc_value *operands[2] = {n->inputs[0], NULL};
    for (int i = 1; i < n->n_inputs - 1; i++) {
        operands[1] = n->inputs[i];
        MSC_TRY(msc_onnx__add_helper(&operands[0], n, MSC_OP_ADD, operands, 2));
    }
    operands[1] = n->inputs[n->n_inputs - 1];
    return msc_onnx__add_last(n, MSC_OP_ADD, operands, 2);
}

enum msc_status msc_onnx__transpose(struct msc_onnx_node *n) {
    int rank = msc_onnx__shape(n, n->inputs[0]).n_dims;
    int64_t axes[MSC_MAX_DIMS];
    const int64_t *given;
    int n_given;
    MSC_TRY(msc_onnx__ints(&given, &n_given, n, "perm"));
    if (n_given > 0 && n_given != rank) {
        return MSC_FAIL(MSC_E_FORMAT, "perm has %d axes, but the input has %d", n_given, rank);
    }
    for (int i = 0; i < rank; i++) {
        axes[i] = n_given > 0 ? given[i] : rank - 1 - i;
    }
    msc_onnx__set_ints(n, "axes", axes, rank);
    return msc_onnx__add_last(n, MSC_OP_PERMUTE_DIMS, n->inputs, 1);
}

enum msc_status msc_onnx__axes(struct msc_onnx_node *n) {
    struct msc_value *operands[2] = {n->inputs[0], NULL};
    MSC_TRY(msc_onnx__list_param(&operands[1], n, 1, "axes"));
    return msc_onnx__add_last(n, n->rule.op, operands, operands[1] == NULL ? 1 : 2);
}

enum msc_status msc_onnx__split(struct msc_onnx_node *n) {
    struct msc_value *operands[2] = {n->inputs[0], NULL};
    MSC_TRY(msc_onnx__list_param(&operands[1], n, 1, "split"));
    MSC_TRY(msc_onnx__copy_attrs(n, MSC_OP_SPLIT));
    bool is_empty = operands[1] == NULL || (operands[1]->constant != NULL &&
                                            msc_array_n_elements(operands[1]->constant) == 0);
    // The list of lengths may be empty if there is only one part, the whole axis.
    int n_outputs = (int)n->proto->n_output;
    return msc_onnx__add_some(n, MSC_OP_SPLIT, operands, is_empty ? 1 : 2, n_outputs);
}

enum msc_status msc_onnx__slice(struct msc_onnx_node *n) {
    struct msc_value *operands[5] = {n->inputs[0]};
    static const char *const names[] = {"", "starts", "ends", "axes", "steps"};
    for (int i = 1; i < 5; i++) {
        MSC_TRY(msc_onnx__list_param(&operands[i], n, i, names[i]));
    }
    if (operands[1] == NULL || operands[2] == NULL) {
        return MSC_FAIL(MSC_E_FORMAT, "starts or ends are missing");
    }
    return msc_onnx__add_last(n, MSC_OP_STRIDED_SLICE, operands, 5);
}

enum msc_status msc_onnx__pad(struct msc_onnx_node *n) {
    struct msc_value *operands[4] = {n->inputs[0], NULL, NULL, NULL};
    const char *mode;
    MSC_TRY(msc_onnx__text(&mode, n, "mode", "constant"));
    MSC_TRY(msc_onnx__list_param(&operands[1], n, 1, n->opset < 2 ? "paddings" : "pads"));
    if (operands[1] == NULL) {
        return MSC_FAIL(MSC_E_FORMAT, "pads are missing");
    }
    if (strcmp(mode, "constant") != 0 && strcmp(mode, "reflect") != 0 &&
        strcmp(mode, "edge") != 0 && strcmp(mode, "wrap") != 0) {
        return MSC_ONNX_UNSUPPORTED("mode '%s' is not supported", mode);
    }
    msc_onnx__set(n, "pad_mode", mode);
    if (n->opset < 11) {
        float value;
        MSC_TRY(msc_onnx__float(&value, n, "value", 0.0f));
        msc_onnx__set_float(n, "pad_value", value);
        return msc_onnx__add_last(n, MSC_OP_PAD, operands, 2);
    }
    operands[3] = msc_onnx__input(n, 3);
    operands[2] = msc_onnx__input(n, 2);
    double value;
    if (msc_onnx__scalar(&value, operands[2]) && msc_array_fits_float(operands[2]->constant, 0)) {
        // An infinite value is kept, unlike an infinite limit of Clip (set_limit).
        msc_onnx__set_float(n, "pad_value", (float)value);
        operands[2] = NULL;
    }
    return msc_onnx__add_last(n, MSC_OP_PAD, operands, 4);
}

static bool is_empty_list(const struct msc_value *v) {
    return v == NULL || (v->constant != NULL && msc_array_n_elements(v->constant) == 0);
}

static enum msc_status set_method(struct msc_onnx_node *n, const char *mode) {
    static const char *const methods[][2] = {{"nearest", "nearest_neighbor"},
                                             {"linear", "linear"},
                                             {"bilinear", "linear"},
                                             {"cubic", "cubic"}};
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (strcmp(mode, methods[i][0]) == 0) {
            msc_onnx__set(n, "method", methods[i][1]);
            return MSC_OK;
        }
    }
    return MSC_ONNX_UNSUPPORTED("mode '%s' is not supported", mode);
}

// Sets the attributes of Upsample, and of Resize in opset 10: both divide the coordinate by the
// scale.
static enum msc_status set_old_modes(struct msc_onnx_node *n, const char *rounding) {
    const char *mode;
    MSC_TRY(msc_onnx__text(&mode, n, "mode", "nearest"));
    MSC_TRY(set_method(n, mode));
    msc_onnx__set(n, "coordinate_transformation_mode", "asymmetric");
    msc_onnx__set(n, "rounding_method", rounding);
    return MSC_OK;
}

static enum msc_status old_resize(struct msc_onnx_node *n, struct msc_value *x,
                                  struct msc_value *scales, const char *rounding) {
    struct msc_value *operands[3] = {x, NULL, scales};
    MSC_TRY(set_old_modes(n, rounding));
    return msc_onnx__add_last(n, MSC_OP_RESIZE, operands, 3);
}

// Reports whether any axis shrinks or grows. If the scales are computed, both are true.
static void find_directions(bool *shrinks, bool *grows, const struct msc_value *scales) {
    int64_t n = scales->constant == NULL ? 0 : msc_array_n_elements(scales->constant);
    *shrinks = *grows = scales->constant == NULL;
    for (int64_t i = 0; i < n; i++) {
        double scale = msc_array_get_double(scales->constant, i);
        *shrinks = *shrinks || scale < 1;
        *grows = *grows || scale > 1;
    }
}

// For the nearest element, ONNX Runtime rounds up on axes that shrink and down on axes that grow.
// Two joints are therefore added: the first shrinks axes, the second grows axes.
static enum msc_status resize_10(struct msc_onnx_node *n) {
    struct msc_value *scales = msc_onnx__input(n, 1), *one, *shrunk;
    bool shrinks, grows;
    const char *mode;
    MSC_TRY(msc_onnx__text(&mode, n, "mode", "nearest"));
    if (scales == NULL) {
        return MSC_FAIL(MSC_E_FORMAT, "scales are missing");
    }
    find_directions(&shrinks, &grows, scales);
    shrinks = shrinks && strcmp(mode, "nearest") == 0;
    if (!shrinks || !grows) {
        return old_resize(n, n->inputs[0], scales, shrinks ? "ceil" : "floor");
    }
    MSC_TRY(msc_onnx__make_scalar(&one, n, MSC_DTYPE_F32, 1));
    struct msc_value *pair[2] = {scales, one}, *operands[3] = {n->inputs[0]};
    MSC_TRY(msc_onnx__add_helper(&operands[2], n, MSC_OP_MINIMUM, pair, 2));
    MSC_TRY(set_old_modes(n, "ceil"));
    MSC_TRY(msc_onnx__add_helper(&shrunk, n, MSC_OP_RESIZE, operands, 3));
    MSC_TRY(msc_onnx__add_helper(&scales, n, MSC_OP_MAXIMUM, pair, 2));
    return old_resize(n, shrunk, scales, "floor");
}

static enum msc_status set_resize_modes(enum msc_op *op, struct msc_onnx_node *n) {
    const char *mode, *transform, *nearest, *policy;
    float alpha, extrapolation;
    int64_t exclude, antialias;
    MSC_TRY(msc_onnx__text(&mode, n, "mode", "nearest"));
    MSC_TRY(msc_onnx__text(&transform, n, "coordinate_transformation_mode", "half_pixel"));
    MSC_TRY(msc_onnx__text(&nearest, n, "nearest_mode", "round_prefer_floor"));
    MSC_TRY(msc_onnx__text(&policy, n, "keep_aspect_ratio_policy", "stretch"));
    MSC_TRY(msc_onnx__float(&alpha, n, "cubic_coeff_a", -0.75f));
    MSC_TRY(msc_onnx__float(&extrapolation, n, "extrapolation_value", 0.0f));
    MSC_TRY(msc_onnx__int(&exclude, n, "exclude_outside", 0));
    MSC_TRY(msc_onnx__int(&antialias, n, "antialias", 0));
    const struct msc_target *target =
        n->import->options->by_text ? NULL : msc_target_find("generic");
    bool is_scaled = msc_target_meaning(target, MSC_TARGET_ALIGNED_LENGTH) == MSC_TARGET_SCALED;
    if (is_scaled && strcmp(transform, "align_corners") == 0) {
        transform = MSC_TARGET_ALIGN_SCALED;
    }
    if (strcmp(policy, "stretch") != 0) {
        msc_onnx__set(n, "keep_aspect_ratio_policy", policy);
    }
    *op = antialias != 0 ? MSC_OP_RESIZE_ANTIALIAS : MSC_OP_RESIZE;
    MSC_TRY(set_method(n, mode));
    msc_onnx__set(n, "coordinate_transformation_mode", transform);
    msc_onnx__set(n, "rounding_method", nearest);
    msc_onnx__set_float(n, "cubic_alpha", alpha);
    msc_onnx__set_bool(n, "cubic_exclude", exclude != 0);
    msc_onnx__set_float(n, "extrapolation_value", extrapolation);
    return MSC_OK;
}

enum msc_status msc_onnx__resize(struct msc_onnx_node *n) {
    if (n->opset < 11) {
        return resize_10(n);
    }
    struct msc_value *operands[4] = {n->inputs[0], NULL, msc_onnx__input(n, 2),
                                     msc_onnx__input(n, 3)};
    const int64_t *axes;
    int n_axes;
    enum msc_op op = MSC_OP_RESIZE;
    MSC_TRY(set_resize_modes(&op, n));
    MSC_TRY(msc_onnx__ints(&axes, &n_axes, n, "axes"));
    if (n_axes > 0) {
        msc_onnx__set_ints(n, "axes", axes, n_axes);
    }
    // An empty list means that the input is absent.
    for (int i = 2; i < 4; i++) {
        operands[i] = is_empty_list(operands[i]) ? NULL : operands[i];
    }
    if ((operands[2] == NULL) == (operands[3] == NULL)) {
        return MSC_FAIL(MSC_E_FORMAT, "expected exactly one of the inputs scales and sizes");
    }
    const char *transform;
    MSC_TRY(msc_onnx__text(&transform, n, "coordinate_transformation_mode", ""));
    if (strcmp(transform, "tf_crop_and_resize") == 0) {
        operands[1] = is_empty_list(msc_onnx__input(n, 1)) ? NULL : n->inputs[1];
    }
    return msc_onnx__add_last(n, op, operands, 4);
}

enum msc_status msc_onnx__upsample(struct msc_onnx_node *n) {
    const float *values;
    float planes[4] = {1, 1};
    int count;
    struct msc_value *scales = msc_onnx__input(n, 1);
    MSC_TRY(msc_onnx__floats(&values, &count, n, "scales"));
    if (n->opset < 7) {
        MSC_TRY(msc_onnx__float(&planes[2], n, "height_scale", 0));
        MSC_TRY(msc_onnx__float(&planes[3], n, "width_scale", 0));
        values = planes;
        count = 4;
    }
    if (scales == NULL && count > 0) {
        struct msc_array *array;
        int64_t dim = count;
        MSC_TRY(msc_array_create_from(&array, MSC_DTYPE_F32, 1, &dim, values));
        enum msc_status status = msc_builder_constant(&scales, &n->import->builder, "", array);
        msc_array_release(array);
        MSC_TRY(status);
    }
    return scales == NULL ? MSC_FAIL(MSC_E_FORMAT, "scales are missing")
                          : old_resize(n, n->inputs[0], scales, "floor");
}
