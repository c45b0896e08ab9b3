// Resizing with an antialiasing filter. If an axis shrinks, the kernel is widened by the same
// factor. As in ONNX Runtime, the last axis is resampled first, and integers are rounded after each
// axis.
#include "graph/reference/reference_resize.h"

#include "base/alloc.h"
#include "graph/reference/reference_internal.h"

#include <math.h>
#include <string.h>

static double filter_weight(const struct msc_resize_filter *f, double x) {
    double d = fabs(x), a = f->alpha;
    if (!f->is_cubic) {
        return d < 1 ? 1 - d : 0;
    }
    if (d <= 1) {
        return ((a + 2) * d - (a + 3)) * d * d + 1;
    }
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

struct msc_resize_span msc_resize_filter_span(const struct msc_resize_filter *f, int axis,
                                              int64_t o) {
    const struct msc_resize_axis *a = &f->axes.axes[axis];
    float coordinate = msc_resize_coordinate(&f->axes, axis, o);
    double scale = (double)a->scale, centre = (double)coordinate;
    struct msc_resize_span s = {
        .length = a->in, .centre = centre, .stretch = scale < 1 ? scale : 1};
    if (msc_resize_is_outside(&f->axes, axis, coordinate)) {
        s.last = -1;
        return s;
    }
    if (a->in == a->out) {
        s.first = s.last = o;
        s.is_copy = true;
        return s;
    }
    double reach = (f->is_cubic ? 2 : 1) / s.stretch;
    s.first = (int64_t)floor(centre - reach) + 1;
    s.last = (int64_t)ceil(centre + reach) - 1;
    for (int64_t i = s.first; i <= s.last; i++) {
        bool counts = !f->excludes_outside || (i >= 0 && i < s.length);
        s.total += counts ? filter_weight(f, ((double)i - centre) * s.stretch) : 0;
    }
    return s;
}

double msc_resize_filter_weight(const struct msc_resize_filter *f, const struct msc_resize_span *s,
                                int64_t i) {
    bool is_beyond = i < 0 || i >= s->length;
    if (s->is_copy || (is_beyond && f->excludes_outside)) {
        return s->is_copy ? 1 : 0;
    }
    return filter_weight(f, ((double)i - s->centre) * s->stretch) / s->total;
}

enum msc_status msc_resize_filter_init(struct msc_resize_filter *f,
                                       const struct msc_reference_call *call) {
    const char *method = msc_reference__get_text(call, "method");
    float alpha;
    MSC_TRY(msc_resize_axes_init(&f->axes, call));
    MSC_TRY(msc_reference__get_float(&alpha, call, "cubic_alpha"));
    MSC_TRY(msc_reference__get_float(&f->extrapolation, call, "extrapolation_value"));
    MSC_TRY(msc_reference__get_bool(&f->excludes_outside, call, "cubic_exclude"));
    f->is_cubic = strcmp(method, "cubic") == 0;
    f->alpha = (double)alpha;
    f->rounds = msc_dtype_is_integer(call->operands[0].dtype);
    f->is_byte = call->operands[0].dtype == MSC_DTYPE_U8;
    return strcmp(method, "linear") == 0 || f->is_cubic
               ? MSC_OK
               : MSC_FAIL(MSC_E_UNSUPPORTED, "joint %s: antialias does not support method '%s'",
                          call->joint->name, method);
}

static double rounded(const struct msc_resize_filter *f, double sum) {
    return f->is_byte ? fmin(fmax(round(sum), 0), UINT8_MAX) : round(sum);
}

// Resamples one axis; input and output are [outer, length, inner].
static void reference_resize_filter_resample(double *out, const double *in, int64_t outer,
                                             int64_t inner, int axis,
                                             const struct msc_resize_filter *f) {
    int64_t from = f->axes.axes[axis].in, to = f->axes.axes[axis].out;
    for (int64_t o = 0; o < to; o++) {
        struct msc_resize_span s = msc_resize_filter_span(f, axis, o);
        for (int64_t k = 0; k < outer * inner; k++) {
            double sum = 0;
            for (int64_t i = s.first; i <= s.last; i++) {
                int64_t at = i < 0 ? 0 : i >= from ? from - 1 : i;
                double weight = msc_resize_filter_weight(f, &s, i);
                sum += at != i && f->excludes_outside
                           ? 0
                           : weight * in[(k / inner * from + at) * inner + k % inner];
            }
            out[(k / inner * to + o) * inner + k % inner] = f->rounds ? rounded(f, sum) : sum;
        }
    }
}

// True if element i of the output is outside the region along any axis.
static bool is_outside_region(const struct msc_resize_filter *f, const struct msc_view *out,
                              int64_t i) {
    bool is_outside = false;
    for (int d = out->n_dims - 1; f->axes.is_cropping && d >= 0; d--) {
        float coordinate = msc_resize_coordinate(&f->axes, d, i % out->dims[d]);
        is_outside = is_outside || msc_resize_is_outside(&f->axes, d, coordinate);
        i /= out->dims[d];
    }
    return is_outside;
}

enum msc_status msc_reference__resize_antialias(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0], *out = &call->outputs[0];
    struct msc_resize_filter f;
    MSC_TRY(msc_resize_filter_init(&f, call));
    int64_t dims[MSC_MAX_DIMS], most = msc_view_n_elements(x);
    memcpy(dims, x->dims, sizeof(dims));
    for (int d = 0, i = 0; d < x->n_dims; d++) {
        int64_t n = 1;
        for (i = 0; i < x->n_dims; i++) {
            n *= i >= d ? out->dims[i] : x->dims[i];
        }
        most = n > most ? n : most;
    }
    double *memory = msc_alloc_zero(2 * (size_t)most + 1, sizeof(double));
    MSC_TRY(MSC_ALLOCATED(memory));
    double *now = memory, *next = memory + most;
    for (int64_t i = 0; i < msc_view_n_elements(x); i++) {
        now[i] = msc_reference__get_double_at(x, i);
    }
    for (int d = x->n_dims - 1; d >= 0; d--) {
        if (out->dims[d] == x->dims[d]) {
            continue;
        }
        int64_t outer = msc_dims_product(d, dims);
        int64_t inner = msc_dims_product(x->n_dims - d - 1, dims + d + 1);
        reference_resize_filter_resample(next, now, outer, inner, d, &f);
        dims[d] = out->dims[d];
        double *swap = now;
        now = next;
        next = swap;
    }
    for (int64_t i = 0; i < msc_view_n_elements(out); i++) {
        bool is_cropped = is_outside_region(&f, out, i);
        msc_reference__set_double_at(out, i, is_cropped ? (double)f.extrapolation : now[i]);
    }
    msc_free(memory);
    return MSC_OK;
}
