// Writes Resize: converts modes that opset 21 no longer has, and sizes that keep the aspect ratio.
#include "graph/onnx/onnx_export_internal.h"
#include "graph/target.h"

#include <math.h>
#include <string.h>

static enum msc_status export_resize_unsupported(const struct msc_onnx_joint *j, const char *key) {
    return MSC_FAIL(MSC_E_UNSUPPORTED, "ONNX has no equivalent of %s with %s '%s'",
                    msc_op_info(j->joint->op)->name, key, msc_joint_attr(j->joint, key));
}

// A joint that keeps the aspect ratio has both scales and sizes, but a node can have only one of
// the two.
struct kept_ratio {
    bool is_told; // the scales alone give exactly the joint's sizes
    // If !is_told: the sizes to request for the axes that share one scale. The runtime uses the
    // smallest ratio of requested size to length as the scale.
    int n_axes;
    int64_t axes[MSC_MAX_DIMS], asked[MSC_MAX_DIMS];
};

// Chooses sizes to request: the joint's sizes, plus 1 for each size that was rounded down. False if
// the smallest ratio of requested size to length is not the joint's scale, or if this scale does
// not give the joint's sizes.
static bool ask_sizes(struct kept_ratio *r, const struct msc_tensor *x, const float scales[],
                      const int64_t sizes[]) {
    float scale = 1.0f;
    bool is_least = false;
    for (int d = 0; d < x->n_dims; d++) {
        float length = (float)x->dims[d], own = (float)sizes[d] / length;
        if (scales[d] == 1.0f && own == 1.0f) {
            continue;
        }
        scale = r->n_axes == 0 ? scales[d] : scale;
        int64_t asked = own < scale ? sizes[d] + 1 : sizes[d];
        if (scales[d] != scale || (float)asked / length < scale ||
            (int64_t)floorf(scale * length + 0.5f) != sizes[d]) {
            return false;
        }
        is_least = is_least || own == scale;
        r->axes[r->n_axes] = d;
        r->asked[r->n_axes++] = asked;
    }
    return is_least;
}

static enum msc_status read_ratio(struct kept_ratio *r, const struct msc_onnx_joint *j) {
    const struct msc_tensor *x = msc_graph_tensor(j->e->graph, j->joint->operands[0]);
    float scales[MSC_MAX_DIMS];
    int64_t sizes[MSC_MAX_DIMS];
    if (msc_joint_attr_floats(j->joint, "scales", scales, MSC_MAX_DIMS) != x->n_dims ||
        msc_joint_attr_list(j->joint, "size", sizes, MSC_MAX_DIMS) != x->n_dims) {
        return export_resize_unsupported(j, "scales");
    }
    r->is_told = true;
    // A runtime truncates scale * length, computed in float or double.
    for (int d = 0; d < x->n_dims; d++) {
        r->is_told = r->is_told && (int64_t)(scales[d] * (float)x->dims[d]) == sizes[d] &&
                     (int64_t)((double)scales[d] * (double)x->dims[d]) == sizes[d];
    }
    return r->is_told || ask_sizes(r, x, scales, sizes) ? MSC_OK
                                                        : export_resize_unsupported(j, "scales");
}

static bool has_list(const struct msc_onnx_joint *j, const char *key) {
    const char *text = msc_joint_attr(j->joint, key);
    return text != NULL && text[0] != '\0';
}

// Sets the scales inputs[2] and the sizes inputs[3]; one of them is "".
static enum msc_status find_lengths(const char *inputs[], struct kept_ratio *r,
                                    struct msc_onnx_joint *j) {
    bool has_both = has_list(j, "scales") && has_list(j, "size");
    MSC_TRY(has_both ? read_ratio(r, j) : MSC_OK);
    if (r->n_axes > 0) {
        return msc_onnx__int64s(&inputs[3], j, "size", r->asked, (size_t)r->n_axes);
    }
    MSC_TRY(msc_onnx__list_input(&inputs[2], j, "scales"));
    return has_both ? MSC_OK : msc_onnx__list_input(&inputs[3], j, "size");
}

static enum msc_status put_resize_modes(struct msc_onnx_joint *j, const char *transform,
                                        const char *method) {
    const char *rounding = msc_joint_attr(j->joint, "rounding_method");
    bool is_nearest = strcmp(method, "nearest") == 0;
    if (strcmp(transform, "tf_half_pixel_for_nn") == 0) {
        // Opset 13 removed tf_half_pixel_for_nn. Its coordinates are those of half_pixel plus 0.5,
        // so half_pixel with another rounding gives the same elements.
        bool is_floor = strcmp(rounding, "floor") == 0;
        if (!is_nearest || (!is_floor && strcmp(rounding, "round_prefer_floor") != 0)) {
            return export_resize_unsupported(j, "coordinate_transformation_mode");
        }
        transform = "half_pixel";
        rounding = is_floor ? "round_prefer_ceil" : "ceil";
    }
    if (strcmp(transform, MSC_TARGET_ALIGN_SCALED) == 0) {
        transform = "align_corners";
    }
    MSC_TRY(msc_onnx__put_text(j->e, j->node, "mode", method));
    MSC_TRY(msc_onnx__put_text(j->e, j->node, "coordinate_transformation_mode", transform));
    return is_nearest ? msc_onnx__put_text(j->e, j->node, "nearest_mode", rounding) : MSC_OK;
}

enum msc_status msc_onnx__write_resize(struct msc_onnx_joint *j) {
    const char *transform = msc_joint_attr(j->joint, "coordinate_transformation_mode");
    const char *method = msc_joint_attr(j->joint, "method");
    const char *inputs[4] = {j->inputs[0], "", "", ""};
    struct kept_ratio ratio = {.n_axes = 0};
    if (strcmp(transform, "tf_crop_and_resize") == 0) {
        MSC_TRY(msc_onnx__list_input(&inputs[1], j, "roi"));
    }
    MSC_TRY(find_lengths(inputs, &ratio, j));
    MSC_TRY(msc_onnx__add_own(j, inputs, 4));
    if (j->joint->op == MSC_OP_RESIZE_ANTIALIAS) {
        MSC_TRY(msc_onnx__put_int(j->e, j->node, "antialias", 1));
    }
    method = strcmp(method, "nearest_neighbor") == 0 ? "nearest" : method;
    MSC_TRY(put_resize_modes(j, transform, method));
    MSC_TRY(msc_onnx__put_attrs(j, "cubic_alpha cubic_exclude extrapolation_value axes "
                                   "keep_aspect_ratio_policy"));
    if (ratio.n_axes == 0) {
        return MSC_OK;
    }
    MSC_TRY(msc_onnx__put_ints(j->e, j->node, "axes", ratio.axes, (size_t)ratio.n_axes));
    return msc_onnx__put_text(j->e, j->node, "keep_aspect_ratio_policy", "not_larger");
}
