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

// In mode max, the result is the largest of the four weighted neighbours, as ONNX defines it.
static double roi_sample(const struct roi *r, int64_t base, const struct neighbours *n) {
    const float *floats = r->x->dtype == MSC_DTYPE_F32 ? r->x->data : NULL;
    double sum = 0, max = -INFINITY;
    for (int i = 0; i < 4; i++) {
        int64_t at = base + n->offsets[i];
        double value =
            n->weights[i] * (floats ? (double)floats[at] : msc_reference__get_double_at(r->x, at));
        sum += value;
        max = value > max ? value : max;
    }
    return r->is_max ? max : sum;
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

// The sums and maxima of one bin in all channels.
struct bins {
    double *sums, *maxima; // [channels]
    int64_t channels, area;
};

static void roi_bin(const struct bins *bins, const struct roi *r, int64_t base, int64_t row,
                    int64_t column) {
    struct span down = roi_span(r, 0, row), across = roi_span(r, 1, column);
    double first = down.is_all && across.is_all ? -INFINITY : 0;
    for (int64_t c = 0; c < bins->channels; c++) {
        bins->sums[c] = 0;
        bins->maxima[c] = first;
    }
    for (int64_t i = down.first; i < down.end; i++) {
        double y = roi_place(&down, i);
        for (int64_t k = across.first; k < across.end; k++) {
            struct neighbours n = {{0}, {0}};
            bool is_near = roi_neighbours(&n, r, y, roi_place(&across, k));
            for (int64_t c = 0; c < bins->channels; c++) {
                double value = is_near ? roi_sample(r, base + c * bins->area, &n) : 0;
                bins->sums[c] += value;
                bins->maxima[c] = value > bins->maxima[c] ? value : bins->maxima[c];
            }
        }
    }
}

// Pools region `region` of the outputs.
static void roi_region(const struct bins *bins, const struct roi *r, int64_t base,
                       const struct msc_view *out, int64_t region) {
    int64_t n_bins = out->dims[2] * out->dims[3];
    bool has_samples = r->counts[0] > 0 && r->counts[1] > 0;
    for (int64_t i = 0; i < n_bins; i++) {
        if (has_samples) {
            roi_bin(bins, r, base, i / out->dims[3], i % out->dims[3]);
        }
        for (int64_t c = 0; c < bins->channels; c++) {
            double mean = has_samples ? bins->sums[c] / (r->counts[0] * r->counts[1]) : 0;
            double value = has_samples && r->is_max ? bins->maxima[c] : mean;
            msc_reference__set_double_at(out, (region * bins->channels + c) * n_bins + i, value);
        }
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

enum msc_status msc_reference__roi_align(const struct msc_reference_call *call) {
    const struct msc_view *rois = &call->operands[1], *out = &call->outputs[0];
    struct roi r = {.x = &call->operands[0]};
    float scale;
    MSC_TRY(msc_reference__get_float(&scale, call, "spatial_scale"));
    MSC_TRY(msc_reference__get_i64(&r.sampling, call, "sampling_ratio"));
    r.is_max = strcmp(msc_reference__get_text(call, "mode"), "max") == 0;
    r.scale = (double)scale;
    bool is_half =
        strcmp(msc_reference__get_text(call, "coordinate_transformation_mode"), "half_pixel") == 0;
    r.shift = is_half ? 0.5 : 0;
    struct bins bins = {.channels = out->dims[1], .area = r.x->dims[2] * r.x->dims[3]};
    enum msc_status status = MSC_OK;
    bins.sums = msc_alloc_zero(2 * (size_t)bins.channels + 1, sizeof(bins.sums[0]));
    MSC_TRY(MSC_ALLOCATED(bins.sums));
    bins.maxima = bins.sums + bins.channels;
    for (int64_t i = 0; status == MSC_OK && i < out->dims[0]; i++) {
        place_roi(&r, rois, i, out);
        int64_t batch = msc_reference__get_i64_at(&call->operands[2], i);
        if (batch < 0 || batch >= r.x->dims[0]) {
            status = MSC_FAIL(
                MSC_E_INVALID,
                "joint %s: region %lld has batch index %lld, which is out of range for "
                "%lld batches",
                call->joint->name, (long long)i, (long long)batch, (long long)r.x->dims[0]);
        } else {
            roi_region(&bins, &r, batch * bins.channels * bins.area, out, i);
        }
    }
    msc_free(bins.sums);
    return status;
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
