#include "graph/reference/reference_resize.h"

#include "base/alloc.h"
#include "graph/reference/reference_internal.h"

#include <math.h>
#include <string.h>

// Coordinates within this distance of the middle between two elements count as ties. Otherwise, the
// rounding error of the scale would decide. The value was found by measuring ONNX Runtime 1.32.
static const float tie_reach = 1e-6f;

static float tied(float x) {
    float middle = floorf(x) + 0.5f;
    return fabsf(x - middle) < tie_reach ? middle : x;
}

static float round_prefer_floor(float x) {
    return ceilf(tied(x) - 0.5f);
}

static float round_prefer_ceil(float x) {
    return floorf(tied(x) + 0.5f);
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

// Attributes of the joint.
struct resize {
    struct msc_resize_axes axes;
    float (*round)(float);
    enum method method;
    int n_taps;
    bool excludes_outside;
    float cubic_alpha;
    float extrapolation;
};

// Keys' cubic kernel with parameter A, for a fraction t in [0, 1).
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

static void find_taps(struct msc_resize_taps *t, const struct resize *r, int axis, int64_t o) {
    const struct msc_resize_axis *a = &r->axes.axes[axis];
    float x = msc_resize_coordinate(&r->axes, axis, o);
    *t = (struct msc_resize_taps){.n = r->n_taps, .weights = {1.0f}};
    if (msc_resize_is_outside(&r->axes, axis, x)) {
        t->n = 0;
        return;
    }
    if (a->is_kept) {
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

static enum msc_status read_modes(struct resize *r, const struct msc_reference_call *call) {
    const char *method = msc_reference__get_text(call, "method");
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (strcmp(method, methods[i].name) == 0) {
            r->method = methods[i].method;
            r->n_taps = methods[i].n_taps;
        }
    }
    if (r->n_taps == 0) {
        return msc_reference__fail_text(call, "method");
    }
    const char *rounding = msc_reference__get_text(call, "rounding_method");
    for (size_t i = 0; i < sizeof(roundings) / sizeof(roundings[0]); i++) {
        if (strcmp(rounding, roundings[i].name) == 0) {
            r->round = roundings[i].round;
        }
    }
    if (!r->round && r->method == NEAREST) {
        return msc_reference__fail_text(call, "rounding_method");
    }
    MSC_TRY(msc_reference__get_float(&r->cubic_alpha, call, "cubic_alpha"));
    MSC_TRY(msc_reference__get_bool(&r->excludes_outside, call, "cubic_exclude"));
    return msc_reference__get_float(&r->extrapolation, call, "extrapolation_value");
}

enum msc_status msc_resize_find_taps(struct msc_resize_taps **out,
                                     const struct msc_resize_taps *by_axis[MSC_MAX_DIMS],
                                     float *extrapolation, const struct msc_reference_call *call) {
    struct resize r = {.round = NULL};
    int n_dims = call->outputs[0].n_dims;
    MSC_TRY(msc_resize_axes_init(&r.axes, call));
    MSC_TRY(read_modes(&r, call));
    r.excludes_outside = r.excludes_outside && r.method == CUBIC;
    size_t n_taps = 0;
    for (int i = 0; i < n_dims; i++) {
        n_taps += (size_t)r.axes.axes[i].out;
    }
    struct msc_resize_taps *taps = msc_alloc_zero(n_taps + 1, sizeof(*taps));
    MSC_TRY(MSC_ALLOCATED(taps));
    struct msc_resize_taps *next = taps;
    for (int i = 0; i < n_dims; i++) {
        by_axis[i] = next;
        for (int64_t o = 0; o < r.axes.axes[i].out; o++) {
            find_taps(next++, &r, i, o);
        }
    }
    *extrapolation = r.extrapolation;
    *out = taps;
    return MSC_OK;
}
