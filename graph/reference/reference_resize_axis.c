// One axis of a resize: its scale and region, and the input coordinate for each output coordinate.
// Float32 and float64 are mixed as in ONNX Runtime, so that ties are rounded in the same direction.
#include "graph/reference/reference_resize.h"

#include "graph/reference/reference_internal.h"
#include "graph/target.h"

#include <math.h>
#include <string.h>

static float half_pixel(const struct msc_resize_axis *a, float x) {
    return (x + 0.5f) / a->scale - 0.5f;
}

static float half_pixel_symmetric(const struct msc_resize_axis *a, float x) {
    float adjustment = (float)a->out / (a->scale * (float)a->in);
    float offset = (float)a->in / 2.0f * (1.0f - adjustment);
    return (float)((double)offset + ((double)x + 0.5) / (double)a->scale - 0.5);
}

static float pytorch_half_pixel(const struct msc_resize_axis *a, float x) {
    return a->out > 1 ? (x + 0.5f) / a->scale - 0.5f : 0.0f;
}

static float align_corners(const struct msc_resize_axis *a, float x) {
    return a->out > 1 ? x * (float)(a->in - 1) / (float)(a->out - 1) : 0.0f;
}

// Divides by the exact output length (input length * scale), before truncation to an integer.
static float align_corners_scaled(const struct msc_resize_axis *a, float x) {
    float length = (float)a->out, scaled = a->scale * (float)a->in;
    length = fabsf(scaled - length) > 1e-3f ? scaled : length;
    return a->out > 1 ? x * (float)(a->in - 1) / (length - 1.0f) : 0.0f;
}

static float asymmetric(const struct msc_resize_axis *a, float x) {
    return x / a->scale;
}

static float tf_half_pixel_for_nn(const struct msc_resize_axis *a, float x) {
    return (x + 0.5f) / a->scale;
}

static float tf_crop_and_resize(const struct msc_resize_axis *a, float x) {
    float last = (float)(a->in - 1);
    if (a->out == 1) {
        return (float)(0.5 * (double)(a->begin + a->end) * (double)last);
    }
    return a->begin * last + x * (a->end - a->begin) * last / (float)(a->out - 1);
}

static const struct {
    const char *name;
    float (*transform)(const struct msc_resize_axis *a, float x);
} transforms[] = {
    {"half_pixel", half_pixel},
    {"half_pixel_symmetric", half_pixel_symmetric},
    {"pytorch_half_pixel", pytorch_half_pixel},
    {"align_corners", align_corners},
    {MSC_TARGET_ALIGN_SCALED, align_corners_scaled},
    {"asymmetric", asymmetric},
    {"tf_half_pixel_for_nn", tf_half_pixel_for_nn},
    {"tf_crop_and_resize", tf_crop_and_resize},
};

static enum msc_status read_transform(struct msc_resize_axes *r,
                                      const struct msc_reference_call *call) {
    const char *name = msc_reference__get_text(call, "coordinate_transformation_mode");
    for (size_t i = 0; i < sizeof(transforms) / sizeof(transforms[0]); i++) {
        if (strcmp(name, transforms[i].name) == 0) {
            r->transform = transforms[i].transform;
            r->is_cropping = r->transform == tf_crop_and_resize;
            return MSC_OK;
        }
    }
    return msc_reference__fail_text(call, "coordinate_transformation_mode");
}

// Reads scales and regions of all axes. If sizes are given instead, the scale is output size /
// input size.
enum msc_status msc_resize_axes_init(struct msc_resize_axes *r,
                                     const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0], *out = &call->outputs[0];
    float scales[MSC_MAX_DIMS], roi[2 * MSC_MAX_DIMS];
    int n, n_roi, n_dims = x->n_dims;
    bool changes = false;
    MSC_TRY(read_transform(r, call));
    MSC_TRY(msc_reference__param_floats(scales, &n, call, "scales", "scales", MSC_MAX_DIMS));
    MSC_TRY(msc_reference__param_floats(roi, &n_roi, call, "roi", "roi", 2 * MSC_MAX_DIMS));
    if (n != 0 && n != n_dims) {
        return MSC_FAIL(MSC_E_INVALID, "joint %s: scales has %d numbers, expected %d",
                        call->joint->name, n, n_dims);
    }
    if (r->is_cropping && n_roi != 2 * n_dims) {
        return MSC_FAIL(MSC_E_INVALID, "joint %s: roi has %d numbers, expected %d",
                        call->joint->name, n_roi, 2 * n_dims);
    }
    for (int i = 0; i < n_dims; i++) {
        struct msc_resize_axis *a = &r->axes[i];
        *a = (struct msc_resize_axis){.in = x->dims[i], .out = out->dims[i], .end = 1.0f};
        a->scale = n > 0 ? scales[i] : (float)a->out / (float)a->in;
        if (n_roi == 2 * n_dims) {
            a->begin = roi[i];
            a->end = roi[n_dims + i];
        }
        if (a->out > 0 && (a->in < 1 || !(a->scale > 0.0f))) {
            return MSC_FAIL(MSC_E_INVALID,
                            "joint %s: axis %d of length %lld cannot be scaled by %g",
                            call->joint->name, i, (long long)a->in, (double)a->scale);
        }
        changes = changes || a->out != a->in;
    }
    for (int i = 0; i < n_dims; i++) {
        struct msc_resize_axis *a = &r->axes[i];
        a->is_kept = a->in == a->out && (a->scale == 1.0f || !changes);
    }
    return MSC_OK;
}

float msc_resize_coordinate(const struct msc_resize_axes *r, int axis, int64_t o) {
    const struct msc_resize_axis *a = &r->axes[axis];
    return a->is_kept ? (float)o : r->transform(a, (float)o);
}

bool msc_resize_is_outside(const struct msc_resize_axes *r, int axis, float coordinate) {
    // This form of the comparison counts NaN as outside.
    return r->is_cropping && !(coordinate >= 0.0f && coordinate <= (float)(r->axes[axis].in - 1));
}
