#include "graph/reference/reference_resize.h"

#include "base/alloc.h"
#include "graph/reference/reference_internal.h"

#include <math.h>
#include <string.h>

// One axis of a resize. Coordinates are float32, as in ONNX Runtime.
struct axis {
    int64_t in, out;
    float scale;
    bool is_scaled;   // the scale was given, not the length
    float begin, end; // region of interest, relative
};

// Where output coordinate x lies on the input axis.
typedef float (*transform_fn)(const struct axis *a, float x);

static float half_pixel(const struct axis *a, float x) {
    return (x + 0.5f) / a->scale - 0.5f;
}

static float half_pixel_symmetric(const struct axis *a, float x) {
    float adjustment = (float)a->out / (a->scale * (float)a->in);
    float offset = (float)a->in / 2.0f * (1.0f - adjustment);
    return offset + (x + 0.5f) / a->scale - 0.5f;
}

static float pytorch_half_pixel(const struct axis *a, float x) {
    return a->out > 1 ? (x + 0.5f) / a->scale - 0.5f : 0.0f;
}

// The length that the scale gives counts, before it is cut to an integer.
static float align_corners(const struct axis *a, float x) {
    float length = (float)a->out, scaled = a->scale * (float)a->in;
    length = a->is_scaled && fabsf(scaled - length) > 1e-3f ? scaled : length;
    return a->out > 1 ? x * (float)(a->in - 1) / (length - 1.0f) : 0.0f;
}

static float asymmetric(const struct axis *a, float x) {
    return x / a->scale;
}

static float tf_half_pixel_for_nn(const struct axis *a, float x) {
    return (x + 0.5f) / a->scale;
}

static float tf_crop_and_resize(const struct axis *a, float x) {
    float last = (float)(a->in - 1);
    if (a->out == 1) {
        return 0.5f * (a->begin + a->end) * last;
    }
    return a->begin * last + x * (a->end - a->begin) * last / (float)(a->out - 1);
}

static const struct {
    const char *name;
    transform_fn transform;
} transforms[] = {
    {"half_pixel", half_pixel},
    {"half_pixel_symmetric", half_pixel_symmetric},
    {"pytorch_half_pixel", pytorch_half_pixel},
    {"align_corners", align_corners},
    {"asymmetric", asymmetric},
    {"tf_half_pixel_for_nn", tf_half_pixel_for_nn},
    {"tf_crop_and_resize", tf_crop_and_resize},
};

static float round_prefer_floor(float x) {
    return ceilf(x - 0.5f);
}

static float round_prefer_ceil(float x) {
    return floorf(x + 0.5f);
}

static const struct {
    const char *name;
    float (*round)(float);
} roundings[] = {
    {"round_prefer_floor", round_prefer_floor},
    {"round_prefer_ceil", round_prefer_ceil},
    {"floor", floorf},
    {"ceil", ceilf},
};

enum method {
    NEAREST,
    LINEAR,
    CUBIC,
};

static const struct {
    const char *name;
    enum method method;
    int n_taps;
} methods[] = {
    {"nearest", NEAREST, 1},
    {"nearest_neighbor", NEAREST, 1},
    {"linear", LINEAR, 2},
    {"cubic", CUBIC, 4},
};

// The joint's modes.
struct resize {
    const struct msc_view *x, *out;
    transform_fn transform;
    float (*round)(float);
    enum method method;
    int n_taps;
    bool excludes_outside;
    float cubic_alpha;
    float extrapolation;
};

// Keys' cubic kernel with parameter A for a fraction t in [0, 1).
static void cubic_weights(float w[4], float t, float A) {
    float s = t + 1.0f, u = 1.0f - t, v = 2.0f - t;
    w[0] = ((A * s - 5.0f * A) * s + 8.0f * A) * s - 4.0f * A;
    w[1] = ((A + 2.0f) * t - (A + 3.0f)) * t * t + 1.0f;
    w[2] = ((A + 2.0f) * u - (A + 3.0f)) * u * u + 1.0f;
    w[3] = ((A * v - 5.0f * A) * v + 8.0f * A) * v - 4.0f * A;
}

static int64_t clamp(int64_t i, int64_t length) {
    return i < 0 ? 0 : i >= length ? length - 1 : i;
}

static void find_taps(struct msc_resize_taps *t, const struct resize *r, const struct axis *a,
                      int64_t o) {
    float x = r->transform(a, (float)o);
    *t = (struct msc_resize_taps){.n = r->n_taps, .weights = {1.0f}};
    bool is_cropping = r->transform == tf_crop_and_resize;
    if (is_cropping && !(x >= 0.0f && x <= (float)(a->in - 1))) {
        t->n = 0; // also where the region is no number
        return;
    }
    if (!is_cropping && a->scale == 1.0f && a->in == a->out) {
        t->n = 1;
        t->at[0] = o;
        return;
    }
    if (r->method == NEAREST) {
        t->at[0] = clamp((int64_t)r->round(x), a->in);
        return;
    }
    int64_t floor_x = (int64_t)floorf(x);
    float fraction = x - floorf(x);
    if (r->method == LINEAR) {
        t->weights[0] = 1.0f - fraction;
        t->weights[1] = fraction;
    } else {
        cubic_weights(t->weights, fraction, r->cubic_alpha);
    }
    float sum = 0.0f;
    for (int i = 0; i < t->n; i++) {
        int64_t at = floor_x + i - (r->method == CUBIC ? 1 : 0);
        t->at[i] = clamp(at, a->in);
        if (r->excludes_outside && at != t->at[i]) {
            t->weights[i] = 0.0f;
        }
        sum += t->weights[i];
    }
    for (int i = 0; r->excludes_outside && i < t->n; i++) {
        t->weights[i] /= sum;
    }
}

// Scales and regions of all axes; a size instead of scales gives their ratio.
static enum msc_status reference_resize_taps_read_axes(struct axis axes[], const struct resize *r,
                                                       const struct msc_reference_call *call) {
    float scales[MSC_MAX_DIMS], roi[2 * MSC_MAX_DIMS];
    int n, n_roi, n_dims = r->x->n_dims;
    MSC_TRY(msc_reference__param_floats(scales, &n, call, "scales", "scales", MSC_MAX_DIMS));
    MSC_TRY(msc_reference__param_floats(roi, &n_roi, call, "roi", "roi", 2 * MSC_MAX_DIMS));
    if (n != 0 && n != n_dims) {
        return MSC_FAIL(MSC_E_INVALID, "joint %s: scales holds %d numbers, expected %d",
                        call->joint->name, n, n_dims);
    }
    if (r->transform == tf_crop_and_resize && n_roi != 2 * n_dims) {
        return MSC_FAIL(MSC_E_INVALID, "joint %s: roi holds %d numbers, expected %d",
                        call->joint->name, n_roi, 2 * n_dims);
    }
    for (int i = 0; i < n_dims; i++) {
        struct axis *a = &axes[i];
        *a = (struct axis){.in = r->x->dims[i], .out = r->out->dims[i], .end = 1.0f};
        a->scale = n > 0 ? scales[i] : (float)a->out / (float)a->in;
        a->is_scaled = n > 0;
        if (n_roi == 2 * n_dims) {
            a->begin = roi[i];
            a->end = roi[n_dims + i];
        }
        if (a->out > 0 && (a->in < 1 || !(a->scale > 0.0f))) {
            return MSC_FAIL(MSC_E_INVALID, "joint %s: axis %d of %lld cannot be scaled by %g",
                            call->joint->name, i, (long long)a->in, (double)a->scale);
        }
    }
    return MSC_OK;
}

static enum msc_status bad_name(const struct msc_reference_call *call, const char *key) {
    return MSC_FAIL(MSC_E_UNSUPPORTED, "joint %s: %s '%s'", call->joint->name, key,
                    msc_reference__get_text(call, key));
}

static enum msc_status read_modes(struct resize *r, const struct msc_reference_call *call) {
    const char *transform = msc_reference__get_text(call, "coordinate_transformation_mode");
    for (size_t i = 0; i < sizeof(transforms) / sizeof(transforms[0]); i++) {
        if (strcmp(transform, transforms[i].name) == 0) {
            r->transform = transforms[i].transform;
        }
    }
    if (!r->transform) {
        return bad_name(call, "coordinate_transformation_mode");
    }
    const char *method = msc_reference__get_text(call, "method");
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (strcmp(method, methods[i].name) == 0) {
            r->method = methods[i].method;
            r->n_taps = methods[i].n_taps;
        }
    }
    if (r->n_taps == 0) {
        return bad_name(call, "method");
    }
    const char *rounding = msc_reference__get_text(call, "rounding_method");
    for (size_t i = 0; i < sizeof(roundings) / sizeof(roundings[0]); i++) {
        if (strcmp(rounding, roundings[i].name) == 0) {
            r->round = roundings[i].round;
        }
    }
    if (!r->round && r->method == NEAREST) {
        return bad_name(call, "rounding_method");
    }
    MSC_TRY(msc_reference__get_float(&r->cubic_alpha, call, "cubic_alpha"));
    MSC_TRY(msc_reference__get_bool(&r->excludes_outside, call, "cubic_exclude"));
    return msc_reference__get_float(&r->extrapolation, call, "extrapolation_value");
}

enum msc_status msc_resize_find_taps(struct msc_resize_taps **out,
                                     const struct msc_resize_taps *by_axis[MSC_MAX_DIMS],
                                     float *extrapolation, const struct msc_reference_call *call) {
    struct resize r = {.x = &call->operands[0], .out = &call->outputs[0]};
    struct axis axes[MSC_MAX_DIMS];
    MSC_TRY(read_modes(&r, call));
    MSC_TRY(reference_resize_taps_read_axes(axes, &r, call));
    r.excludes_outside = r.excludes_outside && r.method == CUBIC;
    size_t n_taps = 0;
    for (int i = 0; i < r.out->n_dims; i++) {
        n_taps += (size_t)axes[i].out;
    }
    struct msc_resize_taps *taps = msc_alloc_zero(n_taps + 1, sizeof(*taps));
    if (!taps) {
        return MSC_FAIL(MSC_E_NOMEM, "joint %s: out of memory", call->joint->name);
    }
    struct msc_resize_taps *next = taps;
    for (int i = 0; i < r.out->n_dims; i++) {
        by_axis[i] = next;
        for (int64_t o = 0; o < axes[i].out; o++) {
            find_taps(next++, &r, &axes[i], o);
        }
    }
    *extrapolation = r.extrapolation;
    *out = taps;
    return MSC_OK;
}
