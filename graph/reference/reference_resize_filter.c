// Resizing with a filter: where an axis gets shorter, the kernel is stretched by as much.
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
                                              int64_t from, int64_t o) {
    double scale = f->scales[axis], stretch = scale < 1 ? scale : 1;
    double centre = ((double)o + 0.5) / scale - 0.5, reach = (f->is_cubic ? 2 : 1) / stretch;
    struct msc_resize_span s = {.length = from,
                                .first = (int64_t)floor(centre - reach) + 1,
                                .last = (int64_t)ceil(centre + reach) - 1,
                                .centre = centre,
                                .stretch = stretch};
    for (int64_t i = s.first; i <= s.last; i++) {
        bool counts = !f->excludes_outside || (i >= 0 && i < from);
        s.total += counts ? filter_weight(f, ((double)i - centre) * stretch) : 0;
    }
    return s;
}

double msc_resize_filter_weight(const struct msc_resize_filter *f, const struct msc_resize_span *s,
                                int64_t i) {
    bool is_outside = i < 0 || i >= s->length;
    return is_outside && f->excludes_outside
               ? 0
               : filter_weight(f, ((double)i - s->centre) * s->stretch) / s->total;
}

enum msc_status msc_resize_filter_init(struct msc_resize_filter *f,
                                       const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0], *out = &call->outputs[0];
    float alpha, scales[MSC_MAX_DIMS];
    int n_scales;
    const char *transform = msc_reference__get_text(call, "coordinate_transformation_mode");
    const char *method = msc_reference__get_text(call, "method");
    MSC_TRY(msc_reference__get_float(&alpha, call, "cubic_alpha"));
    MSC_TRY(msc_reference__get_bool(&f->excludes_outside, call, "cubic_exclude"));
    f->is_cubic = strcmp(method, "cubic") == 0;
    f->alpha = (double)alpha;
    if ((strcmp(method, "linear") != 0 && !f->is_cubic) || strcmp(transform, "half_pixel") != 0) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "joint %s: method '%s' at '%s', filtered",
                        call->joint->name, method, transform);
    }
    MSC_TRY(msc_reference__param_floats(scales, &n_scales, call, "scales", "scales", MSC_MAX_DIMS));
    for (int d = 0; d < x->n_dims; d++) {
        f->scales[d] =
            n_scales == x->n_dims ? (double)scales[d] : (double)out->dims[d] / (double)x->dims[d];
    }
    return MSC_OK;
}

// One axis resampled from `from` to `to`, [outer, length, inner] each.
static void reference_resize_filter_resample(double *out, const double *in, int64_t outer,
                                             int64_t inner, int64_t to, int64_t from, int axis,
                                             const struct msc_resize_filter *f) {
    for (int64_t o = 0; o < to; o++) {
        struct msc_resize_span s = msc_resize_filter_span(f, axis, from, o);
        for (int64_t k = 0; k < outer * inner; k++) {
            double sum = 0;
            for (int64_t i = s.first; i <= s.last; i++) {
                int64_t at = i < 0 ? 0 : i >= from ? from - 1 : i;
                double weight = msc_resize_filter_weight(f, &s, i);
                sum += at != i && f->excludes_outside
                           ? 0
                           : weight * in[(k / inner * from + at) * inner + k % inner];
            }
            out[(k / inner * to + o) * inner + k % inner] = sum;
        }
    }
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
            n *= i <= d ? out->dims[i] : x->dims[i];
        }
        most = n > most ? n : most;
    }
    double *memory = msc_alloc_zero(2 * (size_t)most + 1, sizeof(double));
    if (!memory) {
        return MSC_FAIL(MSC_E_NOMEM, "joint %s: out of memory", call->joint->name);
    }
    double *now = memory, *next = memory + most;
    for (int64_t i = 0; i < msc_view_n_elements(x); i++) {
        now[i] = msc_reference__get_double_at(x, i);
    }
    for (int d = 0; d < x->n_dims; d++) {
        if (out->dims[d] == x->dims[d] && f.scales[d] == 1) {
            continue;
        }
        int64_t outer = msc_dims_product(d, dims);
        int64_t inner = msc_dims_product(x->n_dims - d - 1, dims + d + 1);
        reference_resize_filter_resample(next, now, outer, inner, out->dims[d], x->dims[d], d, &f);
        dims[d] = out->dims[d];
        double *swap = now;
        now = next;
        next = swap;
    }
    for (int64_t i = 0; i < msc_view_n_elements(out); i++) {
        msc_reference__set_double_at(out, i, now[i]);
    }
    msc_free(memory);
    return MSC_OK;
}
