// Max and average pooling over one or two spatial axes in NHWC. Taps are combined in the same order
// as in the reference kernel, so the results have the same bits.
#include "base/alloc.h"
#include "base/platform.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/simd.h"
#include "kernels/lowering/pool.h"

#include <math.h>

struct kernel {
    struct msc_pool pool;
    int64_t batch, channels;
};

static void cpu_pool_release(void *kernel) {
    msc_free(kernel);
}

static enum msc_status cpu_pool_prepare(void **out, struct msc_cpu_backend *b,
                                        const struct msc_plan *plan, const struct msc_step *step) {
    (void)b;
    const struct msc_joint *joint = step->joints[0].joint;
    const struct msc_tensor *x = msc_lowering_operand(plan->graph, joint, 0);
    struct kernel *k = msc_alloc_zero(1, sizeof(*k));
    MSC_TRY(MSC_ALLOCATED(k));
    k->batch = x->dims[0];
    k->channels = x->dims[1];
    msc_pool_describe(&k->pool, plan->graph, joint);
    *out = k;
    return MSC_OK;
}

// The taps [*begin, *end) of a window that are in [0, length), if the first tap is at `first`.
static void tap_range(int64_t *begin, int64_t *end, int64_t first, const struct msc_pool_axis *a,
                      int64_t length) {
    *begin = first < 0 ? (-first + a->dilation - 1) / a->dilation : 0;
    int64_t inside = first >= length ? 0 : (length - 1 - first) / a->dilation + 1;
    *end = inside < a->kernel ? inside : a->kernel;
}

// The number of a window's taps that are on the input or its padding. With ceil_mode, windows may
// extend beyond the padding.
static int64_t padded_taps(const struct msc_pool_axis *a, int64_t first) {
    int64_t begin, end;
    tap_range(&begin, &end, first + a->pad_begin, a, a->in + a->pad_begin + a->pad_end);
    return end > begin ? end - begin : 0;
}

// With at most this many channels and a column stride of 1, a whole output row is pooled at a time.
enum { MOST_BY_ROW = 63 };

// ---- Positions one by one ---------------------------------------------------------------------

// Finds the offsets, in elements, of a window's taps in its image. Returns the number of taps;
// `offsets` has room for all of them.
static int64_t cpu_pool_find_taps(const struct kernel *k, int64_t y, int64_t x, int64_t offsets[]) {
    const struct msc_pool_axis *rows = &k->pool.axes[0], *cols = &k->pool.axes[1];
    int64_t first_y = y * rows->stride - rows->pad_begin;
    int64_t first_x = x * cols->stride - cols->pad_begin;
    int64_t y_begin, y_end, x_begin, x_end, n = 0;
    tap_range(&y_begin, &y_end, first_y, rows, rows->in);
    tap_range(&x_begin, &x_end, first_x, cols, cols->in);
    for (int64_t i = y_begin; i < y_end; i++) {
        for (int64_t j = x_begin; j < x_end; j++) {
            int64_t at = (first_y + i * rows->dilation) * cols->in + first_x + j * cols->dilation;
            offsets[n++] = at * k->channels;
        }
    }
    return n;
}

MSC_SIMD static void cpu_pool_fill(float out[], int64_t n, float value) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = value;
    }
}

// The image to pool: floats, or bytes. `flip` is 0x80 for int8 (simd.h).
struct images {
    const void *image;
    bool is_bytes;
    uint8_t flip;
    int64_t *offsets; // room for all taps
};

// Pools all channels of the output positions x ... x + n - 1 of row y. If n > 1, all of their
// windows must have the same taps.
static void pool_positions(const struct kernel *k, const struct images *of, void *out, int64_t y,
                           int64_t x, int64_t n) {
    const struct msc_pool_axis *rows = &k->pool.axes[0], *cols = &k->pool.axes[1];
    int64_t first_y = y * rows->stride - rows->pad_begin;
    int64_t first_x = x * cols->stride - cols->pad_begin;
    struct msc_simd_pool p = {.offsets = of->offsets,
                              .n_taps = cpu_pool_find_taps(k, y, x, of->offsets),
                              .channels = k->channels,
                              .n_windows = n,
                              .step = cols->stride * k->channels};
    if (of->is_bytes) {
        msc_simd_best()->largest(out, of->image, &p, of->flip);
    } else if (!k->pool.is_max) {
        int64_t count = k->pool.counts_padding
                            ? padded_taps(rows, first_y) * padded_taps(cols, first_x)
                            : p.n_taps;
        msc_simd_best()->mean(out, of->image, &p, (float)count);
    } else if (p.n_taps > 0) {
        msc_simd_best()->largest_float(out, of->image, &p);
    } else {
        cpu_pool_fill(out, n * k->channels, -INFINITY);
    }
}

// Pools row y. Positions at both ends, whose windows extend beyond the image, are pooled one by
// one. All other positions are pooled together: their windows have the same taps, shifted by the
// stride.
static void pool_by_position(const struct kernel *k, const struct images *of, void *out,
                             int64_t y) {
    const struct msc_pool_axis *cols = &k->pool.axes[1];
    int64_t reach = cols->in - 1 - (cols->kernel - 1) * cols->dilation + cols->pad_begin;
    int64_t begin = (cols->pad_begin + cols->stride - 1) / cols->stride;
    int64_t end = reach < 0 ? 0 : reach / cols->stride + 1;
    size_t position = (size_t)k->channels * (of->is_bytes ? 1 : sizeof(float));
    end = end < cols->out ? end : cols->out;
    for (int64_t x = 0; x < cols->out;) {
        int64_t n = x >= begin && x < end ? end - x : 1;
        pool_positions(k, of, (char *)out + (size_t)x * position, y, x, n);
        x += n;
    }
}

// ---- Rows at a time ---------------------------------------------------------------------------

MSC_SIMD static void cpu_pool_max_into(float *restrict out, const float *restrict x, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = x[i] > out[i] || x[i] != x[i] ? x[i] : out[i];
    }
}

MSC_SIMD static void cpu_pool_add_into(float *restrict out, const float *restrict x, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        out[i] += x[i];
    }
}

static void divide_row(const struct kernel *k, float *out, int64_t first_y, int64_t n_y) {
    const struct msc_pool_axis *rows = &k->pool.axes[0], *cols = &k->pool.axes[1];
    for (int64_t x = 0; x < cols->out; x++) {
        int64_t first = x - cols->pad_begin, begin, end;
        tap_range(&begin, &end, first, cols, cols->in);
        int64_t count = k->pool.counts_padding
                            ? padded_taps(rows, first_y) * padded_taps(cols, first)
                            : n_y * (end > begin ? end - begin : 0);
        for (int64_t c = 0; c < k->channels; c++) {
            out[x * k->channels + c] /= (float)count;
        }
    }
}

// Pools one output row with a column stride of 1. For each tap, the elements that neighbouring
// windows read are contiguous. Elements outside of the image are left out.
static void pool_row(const struct kernel *k, float *out, const float *image, int64_t y) {
    const struct msc_pool_axis *rows = &k->pool.axes[0], *cols = &k->pool.axes[1];
    int64_t first_y = y * rows->stride - rows->pad_begin, begin, end;
    tap_range(&begin, &end, first_y, rows, rows->in);
    cpu_pool_fill(out, cols->out * k->channels, k->pool.is_max ? -INFINITY : 0.0f);
    for (int64_t i = begin; i < end; i++) {
        const float *row = image + (first_y + i * rows->dilation) * cols->in * k->channels;
        for (int64_t j = 0; j < cols->kernel; j++) {
            int64_t shift = j * cols->dilation - cols->pad_begin;
            int64_t x = shift < 0 ? -shift : 0;
            int64_t stop = cols->in - shift < cols->out ? cols->in - shift : cols->out;
            if (x < stop) {
                (k->pool.is_max ? cpu_pool_max_into : cpu_pool_add_into)(
                    out + x * k->channels, row + (x + shift) * k->channels,
                    (stop - x) * k->channels);
            }
        }
    }
    if (!k->pool.is_max) {
        divide_row(k, out, first_y, end > begin ? end - begin : 0);
    }
}

// True for max pooling in which every window has a tap inside of the image. A window without taps
// gives -infinity, which is not an input element.
static bool cpu_pool_is_movement(const void *kernel) {
    const struct kernel *k = kernel;
    bool has_taps = k->pool.is_max;
    for (int i = 0; i < 2; i++) {
        for (int64_t o = 0; has_taps && o < k->pool.axes[i].out; o++) {
            int64_t begin, end;
            const struct msc_pool_axis *a = &k->pool.axes[i];
            tap_range(&begin, &end, o * a->stride - a->pad_begin, a, a->in);
            has_taps = end > begin;
        }
    }
    return has_taps;
}

static enum msc_status cpu_pool_run(void *kernel, struct msc_cpu_backend *b,
                                    const struct msc_call *call, int thread) {
    const struct kernel *k = kernel;
    const struct msc_quant *quant = call->outputs[0].quant;
    // Integers have the same order as the values that they represent, so their maximum represents
    // the maximum of the values.
    struct images of = {.image = call->inputs[0].data,
                        .is_bytes = quant != NULL,
                        .flip = quant && quant->low < 0 ? 0x80 : 0};
    size_t bytes = quant ? 1 : sizeof(float);
    int64_t row = k->pool.axes[1].out * k->channels;
    int64_t image = k->pool.axes[0].in * k->pool.axes[1].in * k->channels;
    size_t offset_bytes =
        (size_t)(k->pool.axes[0].kernel * k->pool.axes[1].kernel) * sizeof(int64_t);
    size_t row_bytes = call->outputs[0].data ? 0 : (size_t)row * sizeof(float);
    bool by_row = !quant && k->pool.axes[1].stride == 1 && k->channels <= MOST_BY_ROW;
    void *memory;
    MSC_TRY(msc_cpu_get_scratch(&memory, b, thread, msc_cpu_round_up(offset_bytes) + row_bytes));
    of.offsets = memory;
    for (int64_t i = 0; i < k->batch * k->pool.axes[0].out; i++) {
        int64_t y = i % k->pool.axes[0].out;
        char *out = row_bytes > 0 ? (char *)memory + msc_cpu_round_up(offset_bytes)
                                  : (char *)call->outputs[0].data + (size_t)(i * row) * bytes;
        if (by_row) {
            pool_row(k, (float *)(void *)out, of.image, y);
        } else {
            pool_by_position(k, &of, out, y);
        }
        msc_cpu_write_quantized(call->quantized, call->n_quantized, i * row, (float *)(void *)out,
                                row);
        if (y + 1 == k->pool.axes[0].out) {
            of.image = (const char *)of.image + (size_t)image * bytes;
        }
    }
    return MSC_OK;
}

const struct msc_cpu_family msc_cpu_pool = {
    .prepare = cpu_pool_prepare,
    .release = cpu_pool_release,
    .run = cpu_pool_run,
    .quantizes = true,
    .is_movement = cpu_pool_is_movement,
};
