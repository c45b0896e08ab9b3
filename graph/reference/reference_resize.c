#include "graph/reference/reference_resize.h"

#include "base/alloc.h"
#include "graph/reference/reference_internal.h"

struct resize {
    const struct msc_view *x, *out;
    float extrapolation;
    int64_t strides[MSC_MAX_DIMS];
    const struct msc_resize_taps *taps[MSC_MAX_DIMS]; // [axis][output length]
};

// Interpolates over the axes from `axis` on: the weighted sum along `axis` of the results over the
// later axes. False outside a cropped region.
static bool interpolate(const struct resize *r, int axis, const int64_t at[], int64_t offset,
                        double *element) {
    if (axis == r->x->n_dims) {
        *element = msc_reference__get_double_at(r->x, offset);
        return true;
    }
    const struct msc_resize_taps *t = &r->taps[axis][at[axis]];
    if (t->n == 1) {
        return interpolate(r, axis + 1, at, offset + t->at[0] * r->strides[axis], element);
    }
    float sum = 0.0f;
    for (int i = 0; i < t->n; i++) {
        if (!interpolate(r, axis + 1, at, offset + t->at[i] * r->strides[axis], element)) {
            return false;
        }
        float part = t->weights[i] * (float)*element;
        sum = i == 0 ? part : sum + part;
    }
    *element = (double)sum;
    return t->n > 0;
}

static void reference_resize_run(const struct resize *r) {
    int64_t at[MSC_MAX_DIMS] = {0};
    int64_t n = msc_view_n_elements(r->out);
    for (int64_t i = 0; i < n; i++) {
        double value;
        if (!interpolate(r, 0, at, 0, &value)) {
            value = (double)r->extrapolation;
        }
        msc_reference__set_double_at(r->out, i, value);
        for (int axis = r->out->n_dims - 1; axis >= 0; axis--) {
            if (++at[axis] < r->out->dims[axis]) {
                break;
            }
            at[axis] = 0;
        }
    }
}

enum msc_status msc_reference__resize(const struct msc_reference_call *call) {
    struct resize r = {.x = &call->operands[0], .out = &call->outputs[0]};
    struct msc_resize_taps *taps;
    msc_reference__strides(r.strides, r.x->n_dims, r.x->dims);
    MSC_TRY(msc_resize_find_taps(&taps, r.taps, &r.extrapolation, call));
    reference_resize_run(&r);
    msc_free(taps);
    return MSC_OK;
}
