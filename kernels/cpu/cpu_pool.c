// Max and average pooling over one to three spatial axes in NHWC. Taps are combined in the same
// order as in the reference kernel, so the results have the same bits.
#include "base/alloc.h"
#include "base/platform.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/window.h"

#include <math.h>
#include <string.h>

struct kernel {
    struct msc_pool pool;
    struct msc_cpu_window window;
    int64_t batch;
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
    msc_pool_describe(&k->pool, plan->graph, joint);
    k->batch = x->dims[0];
    k->window.channels = x->dims[1];
    memcpy(k->window.axes, k->pool.axes, sizeof(k->window.axes));
    *out = k;
    return MSC_OK;
}

// With at most this many channels and a column stride of 1, a whole output row is pooled at a time.
enum { MOST_BY_ROW = 63 };

// ---- Positions one by one ---------------------------------------------------------------------

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
    struct msc_cpu_taps taps;
};

// Pools all channels of the output positions x ... x + n - 1 of a row. If n > 1, all of their
// windows must have the same taps.
static void pool_positions(const struct kernel *k, struct images *of, void *out, int64_t x,
                           int64_t n) {
    const struct msc_pool_axis *cols = &k->window.axes[2];
    struct msc_cpu_taps *t = &of->taps;
    msc_cpu_window_set_position(t, &k->window, x);
    struct msc_simd_pool p = {.offsets = t->offsets,
                              .n_taps = t->n,
                              .channels = k->window.channels,
                              .n_windows = n,
                              .step = cols->stride * k->window.channels};
    if (of->is_bytes) {
        msc_simd_best()->largest(out, of->image, &p, of->flip);
    } else if (!k->pool.is_max) {
        int64_t first = x * cols->stride - cols->pad_begin;
        int64_t padded = t->padded * msc_cpu_window_count_padded(cols, first);
        msc_simd_best()->mean(out, of->image, &p, (float)(k->pool.counts_padding ? padded : t->n));
    } else if (t->n > 0) {
        msc_simd_best()->largest_float(out, of->image, &p);
    } else {
        cpu_pool_fill(out, n * p.channels, -INFINITY);
    }
}

// Pools a row. Neighbouring positions whose windows have the same taps, shifted by the stride, are
// pooled together.
static void pool_by_position(const struct kernel *k, struct images *of, void *out) {
    size_t position = (size_t)k->window.channels * (of->is_bytes ? 1 : sizeof(float));
    for (int64_t x = 0, n; x < k->window.axes[2].out; x += n) {
        n = msc_cpu_window_run(&k->window, x);
        pool_positions(k, of, (char *)out + (size_t)x * position, x, n);
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

static void divide_row(const struct kernel *k, float *out, const struct msc_cpu_taps *t) {
    const struct msc_pool_axis *cols = &k->window.axes[2];
    for (int64_t x = 0; x < cols->out; x++) {
        int64_t first = x * cols->stride - cols->pad_begin, begin, end;
        msc_cpu_window_range(&begin, &end, first, cols, cols->in);
        int64_t count = k->pool.counts_padding
                            ? t->padded * msc_cpu_window_count_padded(cols, first)
                            : t->n_lines * (end > begin ? end - begin : 0);
        for (int64_t c = 0; c < k->window.channels; c++) {
            out[x * k->window.channels + c] /= (float)count;
        }
    }
}

// Pools one output row with a column stride of 1. For each tap, the elements that neighbouring
// windows read are contiguous. Elements outside of the image are left out.
static void pool_row(const struct kernel *k, float *out, const float *image,
                     const struct msc_cpu_taps *t) {
    const struct msc_pool_axis *cols = &k->window.axes[2];
    int64_t channels = k->window.channels;
    cpu_pool_fill(out, cols->out * channels, k->pool.is_max ? -INFINITY : 0.0f);
    for (int64_t i = 0; i < t->n_lines; i++) {
        const float *row = image + t->starts[i];
        for (int64_t j = 0; j < cols->kernel; j++) {
            int64_t shift = j * cols->dilation - cols->pad_begin;
            int64_t x = shift < 0 ? -shift : 0;
            int64_t stop = cols->in - shift < cols->out ? cols->in - shift : cols->out;
            if (x < stop) {
                (k->pool.is_max ? cpu_pool_max_into : cpu_pool_add_into)(
                    out + x * channels, row + (x + shift) * channels, (stop - x) * channels);
            }
        }
    }
    if (!k->pool.is_max) {
        divide_row(k, out, t);
    }
}

// True for max pooling in which every window has a tap inside of the image. A window without taps
// gives -infinity, which is not an input element.
static bool cpu_pool_is_movement(const void *kernel) {
    const struct kernel *k = kernel;
    bool has_taps = k->pool.is_max;
    for (int i = 0; i < 3; i++) {
        const struct msc_pool_axis *a = &k->window.axes[i];
        for (int64_t o = 0; has_taps && o < a->out; o++) {
            int64_t begin, end;
            msc_cpu_window_range(&begin, &end, o * a->stride - a->pad_begin, a, a->in);
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
    const struct msc_pool_axis *a = k->window.axes;
    int64_t row = a[2].out * k->window.channels, n_rows = a[0].out * a[1].out;
    int64_t image = a[0].in * a[1].in * a[2].in * k->window.channels;
    size_t bytes = quant ? 1 : sizeof(float), used = 0;
    size_t row_bytes = call->outputs[0].data ? 0 : (size_t)row * sizeof(float);
    size_t taps_bytes = msc_cpu_window_bytes(&k->window);
    bool by_row = !quant && a[2].stride == 1 && k->window.channels <= MOST_BY_ROW;
    void *memory;
    MSC_TRY(msc_cpu_get_scratch(&memory, b, thread, msc_cpu_round_up(taps_bytes) + row_bytes));
    of.taps = msc_cpu_window_taps(&k->window, msc_cpu_take(memory, &used, taps_bytes));
    char *floats = msc_cpu_take(memory, &used, row_bytes);
    for (int64_t i = 0; i < k->batch * n_rows; i++) {
        int64_t at = i % n_rows;
        char *out =
            row_bytes > 0 ? floats : (char *)call->outputs[0].data + (size_t)(i * row) * bytes;
        msc_cpu_window_set_row(&of.taps, &k->window, at / a[1].out, at % a[1].out);
        if (by_row) {
            pool_row(k, (float *)(void *)out, of.image, &of.taps);
        } else {
            pool_by_position(k, &of, out);
        }
        msc_cpu_write_quantized(call->quantized, call->n_quantized, i * row, (float *)(void *)out,
                                row);
        if (at + 1 == n_rows) {
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
