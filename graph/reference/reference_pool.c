#include "graph/reference/reference_internal.h"

#include "base/alloc.h"
#include "base/platform.h"

#include <math.h>
#include <string.h>

// Pools compute in double, except that sums and comparisons of float32 are in float32. All other
// types except 64-bit integers are exact in double.

struct pool {
    struct msc_window window;
    bool is_max;
    bool counts_padding;
    int64_t p; // order of the p-norm, or 0
    const struct msc_view *x, *out;
    const struct msc_view *indices; // positions of the maxima, or NULL
    bool is_column_major;           // the first spatial axis is innermost in `indices`
};

// The taps (positions of the kernel) [*begin, *end) that read the input, for a window that begins
// at `first` along an axis. `first` may be in the padding.
static void tap_range(int64_t *begin, int64_t *end, int64_t first, int64_t dilation, int64_t kernel,
                      int64_t length) {
    *begin = first < 0 ? (-first + dilation - 1) / dilation : 0;
    int64_t inside = (length - 1 - first) / dilation + 1;
    *end = first >= length ? 0 : inside < kernel ? inside : kernel;
}

// Number of taps along axis `a` that are on input or padding. With ceil_mode, a window may extend
// beyond both.
static int64_t padded_taps(const struct msc_window *w, int a, int64_t first) {
    int64_t begin, end;
    tap_range(&begin, &end, first + w->pad_begin[a], w->dilation[a], w->kernel[a],
              w->in[a] + w->pad_begin[a] + w->pad_end[a]);
    return end > begin ? end - begin : 0;
}

// The result of one window. `first` is the window's corner, `base` the channel's offset.
static double pool_window(const struct pool *p, const int64_t first[3], int64_t base,
                          int64_t best[3]) {
    const struct msc_window *w = &p->window;
    bool is_f32 = p->x->dtype == MSC_DTYPE_F32;
    double max = -INFINITY, sum = 0;
    int64_t begin[3], end[3], count = 1, padded = 1;
    for (int a = 0; a < 3; a++) {
        tap_range(&begin[a], &end[a], first[a], w->dilation[a], w->kernel[a], w->in[a]);
        count *= end[a] > begin[a] ? end[a] - begin[a] : 0;
        padded *= padded_taps(w, a, first[a]);
    }
    for (int64_t i = begin[0]; i < end[0]; i++) {
        for (int64_t j = begin[1]; j < end[1]; j++) {
            for (int64_t k = begin[2]; k < end[2]; k++) {
                double value = msc_reference__get_double_at(
                    p->x, base + (first[0] + i * w->dilation[0]) * w->in_strides[0] +
                              (first[1] + j * w->dilation[1]) * w->in_strides[1] +
                              (first[2] + k * w->dilation[2]) * w->in_strides[2]);
                if (value > max || value != value) {
                    max = value;
                    best[0] = first[0] + i * w->dilation[0];
                    best[1] = first[1] + j * w->dilation[1];
                    best[2] = first[2] + k * w->dilation[2];
                }
                value = p->p > 0 ? pow(fabs(value), (double)p->p) : value;
                // If the sum of two floats is computed in double and rounded to float, it equals
                // their float sum.
                sum = is_f32 ? (double)(float)(sum + value) : sum + value;
            }
        }
    }
    if (p->p > 0) {
        return pow(sum, 1 / (double)p->p);
    }
    int64_t divisor = p->counts_padding ? padded : count;
    double mean = is_f32 ? (double)((float)sum / (float)divisor) : sum / (double)divisor;
    return p->is_max ? max : mean;
}

// The index of an element within the whole input tensor.
static int64_t flat_index(const struct pool *p, int64_t base, const int64_t at[3]) {
    const struct msc_window *w = &p->window;
    int64_t index = 0;
    for (int i = 0; i < 3; i++) {
        int a = p->is_column_major ? 2 - i : i;
        index = index * w->in[a] + at[a];
    }
    return base + index;
}

static void pool_channel(const struct pool *p, int64_t in_base, int64_t out_base) {
    const struct msc_window *w = &p->window;
    int64_t at[3];
    for (at[0] = 0; at[0] < w->out[0]; at[0]++) {
        for (at[1] = 0; at[1] < w->out[1]; at[1]++) {
            for (at[2] = 0; at[2] < w->out[2]; at[2]++) {
                int64_t first[3], to = out_base;
                for (int a = 0; a < 3; a++) {
                    first[a] = at[a] * w->step[a] - w->pad_begin[a];
                    to += at[a] * w->out_strides[a];
                }
                int64_t best[3] = {0, 0, 0};
                msc_reference__set_double_at(p->out, to, pool_window(p, first, in_base, best));
                if (p->indices) {
                    msc_reference__set_i64_at(p->indices, to, flat_index(p, in_base, best));
                }
            }
        }
    }
}

// ---- Rows of float32 --------------------------------------------------------------------------

// Taps and output positions along the last axis.
struct columns {
    // [kernel] tap k reads the input for the output positions [begin[k], end[k])
    int64_t *begin, *end;
    // [out] for each output position: `count` taps read input or padding, `on_input` read input
    int64_t *count, *on_input;
    float *greatest; // [in] memory for the maxima of input rows
};

// out[i] = the greater of out[i] and x[i * step], or their sum.
MSC_INLINE void take_tap(float *restrict out, const float *restrict x, int64_t step, int64_t n,
                         bool is_max) {
    if (is_max) {
        for (int64_t i = 0; i < n; i++) {
            float value = x[i * step];
            float greater = value > out[i] ? value : out[i];
            out[i] = value != value ? value : greater;
        }
    } else {
        for (int64_t i = 0; i < n; i++) {
            out[i] += x[i * step];
        }
    }
}

// The taps of an output position along one of the first two axes.
struct taps {
    int64_t begin, end, first;
    int64_t count, padded; // `count` taps read input, `padded` read input or padding
};

// Adds the input row to the output row, or takes maxima, for all taps along the last axis.
MSC_INLINE void take_columns(const struct pool *p, float *restrict out, const float *row,
                             const struct columns *c) {
    const struct msc_window *w = &p->window;
    for (int64_t k = 0; k < w->kernel[2]; k++) {
        int64_t n = c->end[k] - c->begin[k];
        int64_t from = c->begin[k] * w->step[2] - w->pad_begin[2] + k * w->dilation[2];
        if (w->step[2] == 2) { // the most common step, passed as a constant for the compiler
            take_tap(out + c->begin[k], row + from, 2, n, p->is_max);
        } else {
            take_tap(out + c->begin[k], row + from, w->step[2], n, p->is_max);
        }
    }
}

// Computes the output row at one position of the first two axes. A sum adds its taps in the same
// order as pool_window. For a maximum the order does not matter, so the maximum of all input rows
// is computed first.
MSC_SIMD static void pool_row(const struct pool *p, float *restrict out, const float *x,
                              const struct taps *down, const struct taps *across,
                              const struct columns *c) {
    const struct msc_window *w = &p->window;
    int64_t count = down->count * across->count, padded = down->padded * across->padded;
    for (int64_t i = 0; i < w->in[2] && p->is_max; i++) {
        c->greatest[i] = -INFINITY;
    }
    for (int64_t i = 0; i < w->out[2]; i++) {
        out[i] = p->is_max ? -INFINITY : 0.0f;
    }
    for (int64_t i = down->begin; i < down->end; i++) {
        for (int64_t j = across->begin; j < across->end; j++) {
            const float *row = x + (down->first + i * w->dilation[0]) * w->in_strides[0] +
                               (across->first + j * w->dilation[1]) * w->in_strides[1];
            if (p->is_max) {
                take_tap(c->greatest, row, 1, w->in[2], true);
            } else {
                take_columns(p, out, row, c);
            }
        }
    }
    if (p->is_max) {
        take_columns(p, out, c->greatest, c);
        return;
    }
    for (int64_t i = 0; i < w->out[2]; i++) {
        out[i] /= (float)(p->counts_padding ? padded * c->count[i] : count * c->on_input[i]);
    }
}

static void columns_init(struct columns *c, const struct msc_window *w, int64_t *memory) {
    c->begin = memory;
    c->end = c->begin + w->kernel[2];
    c->count = c->end + w->kernel[2];
    c->on_input = c->count + w->out[2];
    c->greatest = (float *)(void *)(c->on_input + w->out[2]);
    for (int64_t k = 0; k < w->kernel[2]; k++) {
        int64_t shift = k * w->dilation[2] - w->pad_begin[2], step = w->step[2];
        int64_t below = shift < 0 ? (-shift + step - 1) / step : 0;
        int64_t inside = shift < w->in[2] ? (w->in[2] - 1 - shift) / step + 1 : 0;
        c->begin[k] = below;
        c->end[k] = inside < w->out[2] ? inside : w->out[2];
    }
    for (int64_t i = 0; i < w->out[2]; i++) {
        int64_t first = i * w->step[2] - w->pad_begin[2], begin, end;
        tap_range(&begin, &end, first, w->dilation[2], w->kernel[2], w->in[2]);
        c->on_input[i] = end > begin ? end - begin : 0;
        c->count[i] = padded_taps(w, 2, first);
    }
}

static void taps_init(struct taps taps[], const struct msc_window *w, int a) {
    for (int64_t i = 0; i < w->out[a]; i++) {
        struct taps *t = &taps[i];
        t->first = i * w->step[a] - w->pad_begin[a];
        tap_range(&t->begin, &t->end, t->first, w->dilation[a], w->kernel[a], w->in[a]);
        t->count = t->end > t->begin ? t->end - t->begin : 0;
        t->padded = padded_taps(w, a, t->first);
    }
}

// Pools of float32 whose rows are contiguous.
static enum msc_status pool_floats(const struct pool *p) {
    const struct msc_window *w = &p->window;
    struct columns columns;
    size_t n_taps = (size_t)(w->out[0] + w->out[1]);
    size_t n_columns = (size_t)(2 * (w->kernel[2] + w->out[2]) + w->in[2]);
    struct taps *taps = msc_alloc_zero(n_taps + n_columns + 1, sizeof(taps[0]));
    MSC_TRY(MSC_ALLOCATED(taps));
    taps_init(taps, w, 0);
    taps_init(taps + w->out[0], w, 1);
    columns_init(&columns, w, (int64_t *)(taps + n_taps));
    for (int64_t i = 0; i < w->n_batches * w->in_channels; i++) {
        int64_t b = i / w->in_channels, c = i % w->in_channels;
        const float *x =
            (const float *)p->x->data + b * w->in_batch_stride + c * w->in_channel_stride;
        float *out = (float *)p->out->data + b * w->out_batch_stride + c * w->out_channel_stride;
        for (int64_t o = 0; o < w->out[0] * w->out[1]; o++) {
            int64_t y = o / w->out[1], z = o % w->out[1];
            pool_row(p, out + y * w->out_strides[0] + z * w->out_strides[1], x, &taps[y],
                     &taps[w->out[0] + z], &columns);
        }
    }
    msc_free(taps);
    return MSC_OK;
}

static bool is_max_pool(enum msc_op op) {
    return op == MSC_OP_MAX_POOL1D || op == MSC_OP_MAX_POOL2D || op == MSC_OP_MAX_POOL3D ||
           op == MSC_OP_MAX_POOL_INDICES;
}

enum msc_status msc_reference__pool(const struct msc_reference_call *call) {
    struct pool p = {
        .is_max = is_max_pool(call->joint->op),
        .x = &call->operands[0],
        .out = &call->outputs[0],
    };
    int64_t kernel[3];
    int n;
    MSC_TRY(msc_reference__param_ints(kernel, &n, call, "pool_size", "pool_size", 3));
    MSC_TRY(msc_reference__get_bool(&p.counts_padding, call, "count_include_pad"));
    if (call->joint->op == MSC_OP_MAX_POOL_INDICES) {
        MSC_TRY(msc_reference__get_bool(&p.is_column_major, call, "storage_order"));
        p.indices = call->n_outputs > 1 ? &call->outputs[1] : NULL;
    }
    if (call->joint->op == MSC_OP_LP_POOL) {
        MSC_TRY(msc_reference__get_i64(&p.p, call, "p"));
    }
    MSC_TRY(msc_reference__window_init(&p.window, call, msc_reference__get_text(call, "layout"),
                                       kernel, n));
    const struct msc_window *w = &p.window;
    if (p.x->dtype == MSC_DTYPE_F32 && p.p == 0 && !p.indices && w->in_strides[2] == 1 &&
        w->out_strides[2] == 1) {
        return pool_floats(&p);
    }
    for (int64_t b = 0; b < w->n_batches; b++) {
        for (int64_t c = 0; c < w->in_channels; c++) {
            pool_channel(&p, b * w->in_batch_stride + c * w->in_channel_stride,
                         b * w->out_batch_stride + c * w->out_channel_stride);
        }
    }
    return MSC_OK;
}

// Mean or maximum over all spatial axes, added in memory order; channels may be first or last.
enum msc_status msc_reference__global_pool(const struct msc_reference_call *call) {
    if (!msc_reference__is_f32(call)) {
        return msc_reference__through_f32(call, msc_reference__global_pool);
    }
    const struct msc_view *x = &call->operands[0];
    const char *layout = msc_reference__get_text(call, "layout");
    bool is_max = call->joint->op == MSC_OP_GLOBAL_MAX_POOL;
    bool is_last = x->n_dims > 2 && strchr(layout, 'C') == layout + x->n_dims - 1;
    if (x->n_dims < 2 || layout[0] != 'N' || (layout[1] != 'C' && !is_last)) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "joint %s: layout '%s' is not supported",
                        call->joint->name, layout);
    }
    int64_t channels = x->dims[is_last ? x->n_dims - 1 : 1];
    int64_t n = msc_dims_product(x->n_dims - 2, x->dims + (is_last ? 1 : 2));
    int64_t step = is_last ? channels : 1;
    float *to = call->outputs[0].data;
    for (int64_t i = 0; i < x->dims[0] * channels; i++) {
        const float *from =
            (const float *)x->data + (is_last ? i / channels * n * channels + i % channels : i * n);
        float max = -INFINITY, sum = 0.0f;
        for (int64_t k = 0; k < n; k++) {
            float value = from[k * step];
            max = value > max || value != value ? value : max;
            sum += value;
        }
        to[i] = is_max ? max : sum / (float)n;
    }
    return MSC_OK;
}
