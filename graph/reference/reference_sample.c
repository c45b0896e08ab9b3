// Sampling between elements: grid sampling in 1 to 3 dimensions, RoiAlign, and MaxUnpool.
#include "graph/reference/reference_internal.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

// ---- GridSample -------------------------------------------------------------------------------

enum padding { PAD_ZEROS, PAD_BORDER, PAD_REFLECTION };
enum method { NEAREST, LINEAR, CUBIC };

struct grid {
    const struct msc_view *x, *grid, *out;
    int n_axes; // number of spatial axes
    enum method method;
    enum padding padding;
    bool align_corners;
    int64_t lengths[3], strides[3];
};

static double reflect(double x, double low, double high) {
    double range = high - low;
    if (range <= 0) {
        return low;
    }
    double d = fabs(x - low), turns = floor(d / range), rest = d - turns * range;
    x = fmod(turns, 2) == 0 ? low + rest : high - rest;
    return x >= low ? x : low; // NaN gives the first element; infinity also becomes NaN
}

// Converts a coordinate in [-1, 1] to a coordinate in elements.
static double to_coordinate(const struct grid *g, double x, int64_t length) {
    return g->align_corners ? (x + 1) / 2 * (double)(length - 1)
                            : ((x + 1) * (double)length - 1) / 2;
}

static double pad_coordinate(const struct grid *g, double x, int64_t length) {
    double low = g->align_corners ? 0 : -0.5;
    double high = g->align_corners ? (double)(length - 1) : (double)length - 0.5;
    if (g->padding == PAD_BORDER) { // NaN gives the first element, as in PyTorch
        return x > 0 ? fmin(x, (double)(length - 1)) : 0;
    }
    if (g->padding == PAD_REFLECTION && !(x >= low && x <= high)) {
        return reflect(x, low, high);
    }
    return x;
}

// Computes the weights of the elements that a sample at coordinate x reads along one axis. Returns
// their number. The elements are consecutive, and the first has coordinate *first.
static int axis_taps(double weights[4], int64_t *first, enum method method, double x) {
    const double a = -0.75;
    double below = floor(x), t = x - below;
    if (method == NEAREST) {
        *first = (int64_t)rint(x);
        weights[0] = 1;
        return 1;
    }
    *first = (int64_t)below;
    if (method == LINEAR) {
        weights[0] = 1 - t;
        weights[1] = t;
        return 2;
    }
    *first -= 1;
    weights[0] = ((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a;
    weights[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
    weights[2] = ((a + 2) * (1 - t) - (a + 3)) * (1 - t) * (1 - t) + 1;
    weights[3] = ((a * (2 - t) - 5 * a) * (2 - t) + 8 * a) * (2 - t) - 4 * a;
    return 4;
}

// The elements that a point reads, and their weights. Offsets are relative to the channel, so that
// they are the same for all channels.
struct point {
    int n;
    double weights[64];
    int64_t offsets[64]; // -1: the element is outside the tensor and counts as 0
};

// The offset of an element in its channel; -1 if the element is outside the tensor and counts as 0.
static int64_t element_offset(const struct grid *g, const int64_t at[3]) {
    int64_t offset = 0;
    for (int a = 0; a < g->n_axes; a++) {
        int64_t i = at[a];
        if (i < 0 || i >= g->lengths[a]) {
            if (g->padding == PAD_ZEROS) {
                return -1;
            }
            i = (int64_t)pad_coordinate(g, (double)i, g->lengths[a]);
            i = i < 0 ? 0 : i >= g->lengths[a] ? g->lengths[a] - 1 : i;
        }
        offset += i * g->strides[a];
    }
    return offset;
}

static void point_init(struct point *p, const struct grid *g, const double x[3]) {
    double weights[3][4] = {{1}, {1}, {1}};
    int64_t first[3] = {0, 0, 0};
    int n[3] = {1, 1, 1};
    for (int a = 0; a < g->n_axes; a++) {
        n[a] = axis_taps(weights[a], &first[a], g->method, x[a]);
    }
    p->n = n[0] * n[1] * n[2];
    for (int i = 0; i < p->n; i++) {
        int k[3] = {i / (n[1] * n[2]), i / n[2] % n[1], i % n[2]};
        int64_t at[3] = {first[0] + k[0], first[1] + k[1], first[2] + k[2]};
        p->weights[i] = weights[0][k[0]] * weights[1][k[1]] * weights[2][k[2]];
        p->offsets[i] = element_offset(g, at);
    }
}

static double sample(const struct grid *g, int64_t base, const struct point *p) {
    const float *floats = g->x->dtype == MSC_DTYPE_F32 ? g->x->data : NULL;
    double sum = 0;
    for (int i = 0; i < p->n; i++) {
        int64_t at = p->offsets[i];
        double value = at < 0   ? 0
                       : floats ? (double)floats[base + at]
                                : msc_reference__get_double_at(g->x, base + at);
        sum += p->weights[i] * value;
    }
    return sum;
}

// Samples a point that reads four elements of float32, in all channels. `from` and `to` point into
// the first channel.
static void sample_four(float *to, int64_t to_step, const float *from, int64_t from_step,
                        int64_t channels, const struct point *p) {
    for (int64_t c = 0; c < channels; c++) {
        double sum = 0;
        for (int i = 0; i < 4; i++) {
            double value = p->offsets[i] < 0 ? 0 : (double)from[p->offsets[i]];
            sum += p->weights[i] * value;
        }
        *to = (float)sum;
        to += to_step;
        from += from_step;
    }
}

static enum msc_status reference_sample_grid_init(struct grid *g,
                                                  const struct msc_reference_call *call) {
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    const char *mode = msc_reference__get_text(call, "mode");
    const char *padding = msc_reference__get_text(call, "padding_mode");
    *g = (struct grid){.x = &call->operands[0], .grid = &call->operands[1]};
    g->out = &call->outputs[0];
    g->n_axes = g->x->n_dims - 2;
    // Names of modes: "bilinear" and "bicubic" before opset 20, "linear" and "cubic" since then.
    g->method = strstr(mode, "cubic") != NULL  ? CUBIC
                : strcmp(mode, "nearest") == 0 ? NEAREST
                                               : LINEAR;
    for (int i = 0; i < 3; i++) {
        g->padding = strcmp(padding, paddings[i]) == 0 ? (enum padding)i : g->padding;
    }
    if (g->n_axes < 1 || g->n_axes > 3) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "joint %s has %d spatial axes, expected 1 to 3",
                        call->joint->name, g->n_axes);
    }
    int64_t stride = 1;
    for (int a = g->n_axes - 1; a >= 0; a--) {
        g->lengths[a] = g->x->dims[a + 2];
        g->strides[a] = stride;
        stride *= g->lengths[a];
    }
    return msc_reference__get_bool(&g->align_corners, call, "align_corners");
}

enum msc_status msc_reference__grid_sample(const struct msc_reference_call *call) {
    struct grid g;
    MSC_TRY(reference_sample_grid_init(&g, call));
    int64_t channels = g.x->dims[1];
    int64_t points = msc_dims_product(g.n_axes, g.out->dims + 2);
    int64_t area = msc_dims_product(g.n_axes, g.x->dims + 2);
    for (int64_t i = 0; i < g.out->dims[0] * points; i++) {
        int64_t batch = i / points;
        double x[3] = {0, 0, 0};
        for (int a = 0; a < g.n_axes; a++) { // a point's coordinates begin with the last axis
            double value = msc_reference__get_double_at(g.grid, (i + 1) * g.n_axes - 1 - a);
            x[a] = to_coordinate(&g, value, g.lengths[a]);
            // For cubic sampling, the padding mode applies to each element that is read instead
            // (element_offset), as in PyTorch and ONNX Runtime.
            x[a] = g.method == CUBIC ? x[a] : pad_coordinate(&g, x[a], g.lengths[a]);
            x[a] = msc_reference__within_reach(x[a]);
        }
        struct point point;
        point_init(&point, &g, x);
        if (point.n == 4 && msc_reference__is_f32(call)) {
            sample_four((float *)g.out->data + batch * channels * points + i % points, points,
                        (const float *)g.x->data + batch * channels * area, area, channels, &point);
            continue;
        }
        for (int64_t c = 0; c < channels; c++) {
            msc_reference__set_double_at(g.out, (batch * channels + c) * points + i % points,
                                         sample(&g, (batch * channels + c) * area, &point));
        }
    }
    return MSC_OK;
}

// ---- RoiAlign ---------------------------------------------------------------------------------

struct roi {
    const struct msc_view *x;
    bool is_max;
    double scale, shift;
    int64_t sampling;
    double begin[2], bin[2]; // [height, width]
    double counts[2];        // samples per bin
};

// A bin along one axis: its begin, its length and its number of samples. Only the samples [first,
// end) may be on the image; all others are 0.
struct span {
    double edge, size, count;
    int64_t first, end;
    bool is_all;
};

// Without a sampling ratio, a bin has one sample per element that it covers. If a region would have
// more samples than this, almost none of them are on the image.
#define MOST_SAMPLES 0x1p22

// A bilinear sample: the offsets and weights of its four neighbours, the same for all channels.
struct neighbours {
    int64_t offsets[4];
    double weights[4];
};

// Finds the neighbours of a sample. If the sample is outside the image by at most one element, it
// is moved to the edge. False if the sample is farther outside or NaN; its value is then 0.
static bool roi_neighbours(struct neighbours *out, const struct roi *r, double y, double x) {
    int64_t height = r->x->dims[2], width = r->x->dims[3];
    if (!(y >= -1 && y <= (double)height && x >= -1 && x <= (double)width)) {
        return false;
    }
    double at[2] = {y < 0 ? 0 : y, x < 0 ? 0 : x}, t[2];
    int64_t low[2], high[2], lengths[2] = {height, width};
    for (int a = 0; a < 2; a++) {
        low[a] = (int64_t)at[a];
        if (low[a] >= lengths[a] - 1) {
            low[a] = high[a] = lengths[a] - 1;
            at[a] = (double)low[a];
        } else {
            high[a] = low[a] + 1;
        }
        t[a] = at[a] - (double)low[a];
    }
    for (int i = 0; i < 4; i++) {
        int64_t row = i / 2 ? high[0] : low[0], column = i % 2 ? high[1] : low[1];
        out->weights[i] = (i / 2 ? t[0] : 1 - t[0]) * (i % 2 ? t[1] : 1 - t[1]);
        out->offsets[i] = row * width + column;
    }
    return true;
}

static struct span roi_span(const struct roi *r, int a, int64_t bin) {
    struct span s = {.edge = r->begin[a] + (double)bin * r->bin[a],
                     .size = r->bin[a],
                     .count = r->counts[a],
                     .end = (int64_t)r->counts[a]};
    double step = s.size / s.count, length = (double)r->x->dims[2 + a];
    if (step > 0) { // step may be negative or NaN
        double first = floor((-1 - s.edge) / step - 0.5);
        double end = ceil((length - s.edge) / step - 0.5) + 1;
        s.first = (int64_t)fmax(0, fmin(first, s.count));
        s.end = (int64_t)fmax(0, fmin(end, s.count));
    }
    s.is_all = (double)(s.end - s.first) == s.count;
    return s;
}

static double roi_place(const struct span *s, int64_t i) {
    return s->edge + ((double)i + 0.5) * s->size / s->count;
}

// The samples of a region that are on the image, in the order of the bins. They are the same for
// all channels.
struct roi_samples {
    struct neighbours *all;
    int64_t n, capacity;
    int64_t *ends;    // [bins] end of the bin's samples in `all`
    bool *has_others; // [bins] some samples of the bin are off the image
};

static enum msc_status add_sample(struct roi_samples *s, const struct neighbours *sample) {
    if (s->n == s->capacity) {
        int64_t capacity = 2 * s->capacity + 256;
        struct neighbours *all = msc_realloc(s->all, (size_t)capacity, sizeof(all[0]));
        MSC_TRY(MSC_ALLOCATED(all));
        s->all = all;
        s->capacity = capacity;
    }
    s->all[s->n++] = *sample;
    return MSC_OK;
}

static enum msc_status list_bin(struct roi_samples *s, const struct roi *r, int64_t row,
                                int64_t column, int64_t bin) {
    struct span down = roi_span(r, 0, row), across = roi_span(r, 1, column);
    bool has_others = !down.is_all || !across.is_all;
    for (int64_t i = down.first; i < down.end; i++) {
        double y = roi_place(&down, i);
        for (int64_t k = across.first; k < across.end; k++) {
            struct neighbours n;
            if (roi_neighbours(&n, r, y, roi_place(&across, k))) {
                MSC_TRY(add_sample(s, &n));
            } else {
                has_others = true;
            }
        }
    }
    s->ends[bin] = s->n;
    s->has_others[bin] = has_others;
    return MSC_OK;
}

// False if a count is 0 or NaN.
static bool roi_has_samples(const struct roi *r) {
    return r->counts[0] > 0 && r->counts[1] > 0;
}

static enum msc_status list_samples(struct roi_samples *s, const struct roi *r, int64_t n_rows,
                                    int64_t n_columns) {
    s->n = 0;
    if (!roi_has_samples(r)) {
        memset(s->ends, 0, (size_t)(n_rows * n_columns) * sizeof(s->ends[0]));
        return MSC_OK;
    }
    for (int64_t row = 0; row < n_rows; row++) {
        for (int64_t column = 0; column < n_columns; column++) {
            MSC_TRY(list_bin(s, r, row, column, row * n_columns + column));
        }
    }
    return MSC_OK;
}

// In mode max, the result is the largest of the four weighted neighbours, as ONNX defines it.
static double roi_sample(const double plane[], const struct neighbours *n, bool is_max) {
    double sum = 0, max = -INFINITY;
    for (int i = 0; i < 4; i++) {
        double value = n->weights[i] * plane[n->offsets[i]];
        sum += value;
        max = value > max ? value : max;
    }
    return is_max ? max : sum;
}

// Pools a region of one channel, `plane`, into the bins that begin at element `at` of `out`.
static void pool_plane(const struct roi_samples *s, const struct roi *r, const double plane[],
                       const struct msc_view *out, int64_t at) {
    int64_t n_bins = out->dims[2] * out->dims[3], i = 0;
    bool has_samples = roi_has_samples(r);
    for (int64_t bin = 0; bin < n_bins; bin++) {
        double sum = 0, max = s->has_others[bin] ? 0 : -INFINITY;
        for (; i < s->ends[bin]; i++) {
            double value = roi_sample(plane, &s->all[i], r->is_max);
            sum += value;
            max = value > max ? value : max;
        }
        double mean = has_samples ? sum / (r->counts[0] * r->counts[1]) : 0;
        msc_reference__set_double_at(out, at + bin, has_samples && r->is_max ? max : mean);
    }
}

static void place_roi(struct roi *r, const struct msc_view *rois, int64_t i,
                      const struct msc_view *out) {
    for (int a = 0; a < 2; a++) { // stored as x1, y1, x2, y2
        double begin = msc_reference__get_double_at(rois, 4 * i + 1 - a) * r->scale - r->shift;
        double end = msc_reference__get_double_at(rois, 4 * i + 3 - a) * r->scale - r->shift;
        double length = end - begin;
        if (r->shift == 0) {
            length = length < 1 ? 1 : length;
        }
        r->begin[a] = begin;
        r->bin[a] = length / (double)out->dims[2 + a];
        double elements = ceil(r->bin[a]); // NaN remains NaN
        elements = elements > MOST_SAMPLES ? MOST_SAMPLES : elements;
        r->counts[a] = r->sampling > 0 ? (double)r->sampling : elements;
    }
}

// Pools all regions of one image.
static enum msc_status pool_image(struct roi_samples *s, struct roi *r, double *planes,
                                  const struct msc_reference_call *call, int64_t image) {
    const struct msc_view *out = &call->outputs[0];
    int64_t channels = out->dims[1], area = r->x->dims[2] * r->x->dims[3];
    for (int64_t i = 0; i < channels * area; i++) {
        planes[i] = msc_reference__get_double_at(r->x, image * channels * area + i);
    }
    for (int64_t i = 0; i < out->dims[0]; i++) {
        if (msc_reference__get_i64_at(&call->operands[2], i) != image) {
            continue;
        }
        place_roi(r, &call->operands[1], i, out);
        MSC_TRY(list_samples(s, r, out->dims[2], out->dims[3]));
        for (int64_t c = 0; c < channels; c++) {
            pool_plane(s, r, planes + c * area, out,
                       (i * channels + c) * out->dims[2] * out->dims[3]);
        }
    }
    return MSC_OK;
}

static enum msc_status check_batches(const struct msc_reference_call *call) {
    for (int64_t i = 0; i < call->outputs[0].dims[0]; i++) {
        int64_t batch = msc_reference__get_i64_at(&call->operands[2], i);
        if (batch < 0 || batch >= call->operands[0].dims[0]) {
            return MSC_FAIL(MSC_E_INVALID,
                            "joint %s: region %lld has batch index %lld, which is out of range for "
                            "%lld batches",
                            call->joint->name, (long long)i, (long long)batch,
                            (long long)call->operands[0].dims[0]);
        }
    }
    return MSC_OK;
}

static enum msc_status pool_regions(struct roi *r, const struct msc_reference_call *call) {
    const struct msc_view *out = &call->outputs[0];
    size_t n_bins = (size_t)(out->dims[2] * out->dims[3]) + 1;
    size_t n = (size_t)msc_dims_product(3, r->x->dims + 1) + 1;
    double *planes = msc_alloc_zero(n, sizeof(planes[0]));
    struct roi_samples s = {.ends = msc_alloc_zero(n_bins, sizeof(s.ends[0])),
                            .has_others = msc_alloc_zero(n_bins, sizeof(s.has_others[0]))};
    enum msc_status status = MSC_ALLOCATED(planes && s.ends && s.has_others);
    for (int64_t image = 0; status == MSC_OK && image < r->x->dims[0]; image++) {
        status = pool_image(&s, r, planes, call, image);
    }
    msc_free(planes);
    msc_free(s.all);
    msc_free(s.ends);
    msc_free(s.has_others);
    return status;
}

enum msc_status msc_reference__roi_align(const struct msc_reference_call *call) {
    struct roi r = {.x = &call->operands[0]};
    float scale;
    MSC_TRY(msc_reference__get_float(&scale, call, "spatial_scale"));
    MSC_TRY(msc_reference__get_i64(&r.sampling, call, "sampling_ratio"));
    r.is_max = strcmp(msc_reference__get_text(call, "mode"), "max") == 0;
    r.scale = (double)scale;
    bool is_half =
        strcmp(msc_reference__get_text(call, "coordinate_transformation_mode"), "half_pixel") == 0;
    r.shift = is_half ? 0.5 : 0;
    MSC_TRY(check_batches(call));
    return pool_regions(&r, call);
}

// ---- MaxUnpool --------------------------------------------------------------------------------

// Writes every element to the position that its index gives; all other elements are zero.
enum msc_status msc_reference__max_unpool(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0], *out = &call->outputs[0];
    int64_t n = msc_view_n_elements(x), most = msc_view_n_elements(out);
    // Indices refer to the output shape that follows from windows and strides. If the actual output
    // is larger, an element keeps its row and column.
    int64_t kernel[3], strides[3], pads[6], inferred[MSC_MAX_DIMS];
    int spatial = out->n_dims - 2;
    int found = msc_joint_attr_list(call->joint, "kernel_shape", kernel, 3);
    found += msc_joint_attr_list(call->joint, "strides", strides, 3);
    found += msc_joint_attr_list(call->joint, "pads", pads, 6);
    if (spatial < 1 || spatial > 3 || found != 4 * spatial) {
        return MSC_FAIL(MSC_E_INVALID,
                        "joint %s: kernel_shape, strides and pads have %d numbers, which do not "
                        "fit the spatial axes",
                        call->joint->name, found);
    }
    bool is_same = true;
    for (int d = 0; d < out->n_dims; d++) {
        int a = d - 2;
        inferred[d] = d < 2
                          ? x->dims[d]
                          : (x->dims[d] - 1) * strides[a] + kernel[a] - pads[a] - pads[spatial + a];
        is_same = is_same && inferred[d] == out->dims[d];
        if (inferred[d] < 1 && n > 0) {
            return MSC_FAIL(
                MSC_E_INVALID,
                "joint %s: windows over axis %d cover %lld elements, expected 1 or more",
                call->joint->name, d, (long long)inferred[d]);
        }
    }
    if (most > 0) {
        memset(out->data, 0, msc_view_n_bytes(out));
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t at = msc_reference__get_i64_at(&call->operands[1], i);
        if (!is_same) {
            int64_t rest = at, stride = 1;
            at = 0;
            for (int d = out->n_dims - 1; d >= 0; d--) {
                at += rest % inferred[d] * stride;
                rest /= inferred[d];
                stride *= out->dims[d];
            }
        }
        if (at < 0 || at >= most) {
            return MSC_FAIL(MSC_E_INVALID, "joint %s: index %lld is out of range for %lld elements",
                            call->joint->name, (long long)at, (long long)most);
        }
        msc_reference__set_double_at(out, at, msc_reference__get_double_at(x, i));
    }
    return MSC_OK;
}
