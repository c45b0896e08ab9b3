// Max and average pooling over one or two spatial axes with channels last. Taps are taken in the
// order of the reference kernel, so that the bits are its.
#include "base/alloc.h"
#include "base/platform.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/simd.h"

#include <math.h>
#include <string.h>

// One spatial axis.
struct axis {
    int64_t in, out, kernel, stride, dilation, pad_begin, pad_end;
};

struct kernel {
    bool is_max;
    bool counts_padding;
    int64_t batch, channels;
    struct axis axes[2]; // rows, columns
};

static bool read_axes(struct axis axes[2], const struct msc_joint *joint,
                      const struct msc_tensor *x, const struct msc_tensor *y) {
    int n = x->n_dims - 2;
    int64_t kernel[2], strides[2], dilation[2], padding[4];
    if (msc_joint_attr_list(joint, "pool_size", kernel, 2) != n ||
        msc_joint_attr_list(joint, "strides", strides, 2) != n ||
        msc_joint_attr_list(joint, "dilation", dilation, 2) != n ||
        msc_joint_attr_list(joint, "padding", padding, 4) != 2 * n) {
        return false;
    }
    axes[0] = (struct axis){1, 1, 1, 1, 1, 0, 0};
    for (int i = 0; i < n; i++) {
        struct axis *a = &axes[2 - n + i];
        *a = (struct axis){x->dims[2 + i], y->dims[2 + i], kernel[i],     strides[i],
                           dilation[i],    padding[i],     padding[n + i]};
        if (a->kernel < 1 || a->stride < 1 || a->dilation < 1 || a->pad_begin < 0 ||
            a->pad_end < 0 || a->in < 1) {
            return false;
        }
    }
    return true;
}

static bool accepts(const struct msc_graph *g, const struct msc_joint *joint) {
    const struct msc_tensor *x = msc_cpu_operand(g, joint, 0);
    const char *layout = msc_joint_attr(joint, "layout");
    struct axis axes[2];
    bool flag;
    return msc_cpu_is_f32(g, joint) && msc_cpu_is_computed(g, joint, 0) && layout &&
           (x->n_dims == 3 || x->n_dims == 4) &&
           strcmp(layout, x->n_dims == 3 ? "NCW" : "NCHW") == 0 &&
           msc_joint_attr_bool(joint, "count_include_pad", &flag) &&
           read_axes(axes, joint, x, msc_cpu_output(g, joint));
}

static void layouts(const struct msc_graph *g, const struct msc_step *step,
                    const enum msc_layout coming[], struct msc_step_layouts *out) {
    const struct msc_tensor *y = msc_cpu_output(g, step->joints[0].joint);
    msc_cpu_follow_layout(g, step, 0, MSC_LAYOUT_LAST, coming, out);
    out->outputs =
        msc_cpu_layouts_coincide(y->n_dims, y->dims) ? MSC_LAYOUT_PLAIN : MSC_LAYOUT_LAST;
}

static void release(void *kernel) {
    msc_free(kernel);
}

static enum msc_status prepare(void **out, struct msc_cpu_backend *b, const struct msc_plan *plan,
                               const struct msc_step *step) {
    (void)b;
    const struct msc_joint *joint = step->joints[0].joint;
    const struct msc_tensor *x = msc_cpu_operand(plan->graph, joint, 0);
    struct kernel *k = msc_alloc_zero(1, sizeof(*k));
    if (!k) {
        return MSC_FAIL(MSC_E_NOMEM, "joint %s: out of memory", joint->name);
    }
    k->is_max = joint->op == MSC_OP_MAX_POOL2D;
    k->batch = x->dims[0];
    k->channels = x->dims[1];
    msc_joint_attr_bool(joint, "count_include_pad", &k->counts_padding);
    read_axes(k->axes, joint, x, msc_cpu_output(plan->graph, joint));
    *out = k;
    return MSC_OK;
}

// The taps of a window that lie in [0, length) when the first is at `first`: [*begin, *end).
static void tap_range(int64_t *begin, int64_t *end, int64_t first, const struct axis *a,
                      int64_t length) {
    *begin = first < 0 ? (-first + a->dilation - 1) / a->dilation : 0;
    int64_t inside = first >= length ? 0 : (length - 1 - first) / a->dilation + 1;
    *end = inside < a->kernel ? inside : a->kernel;
}

// Taps on input or padding; ceil_mode lets windows stick out beyond both.
static int64_t padded_taps(const struct axis *a, int64_t first) {
    int64_t begin, end;
    tap_range(&begin, &end, first + a->pad_begin, a, a->in + a->pad_begin + a->pad_end);
    return end > begin ? end - begin : 0;
}

// Channels that are pooled together, over all taps: as many as the widest vector holds. Without
// `omp simd` so short a loop is unrolled before it could become that vector.
enum { WIDTH = 16 };

MSC_SIMD static void max_taps(float *restrict out, const float *restrict x, const int64_t offsets[],
                              int64_t n, int64_t channels) {
    int64_t c = 0;
    for (; c + WIDTH <= channels; c += WIDTH) {
        float max[WIDTH];
        for (int i = 0; i < WIDTH; i++) {
            max[i] = -INFINITY;
        }
        for (int64_t k = 0; k < n; k++) {
            const float *from = x + offsets[k] + c;
#pragma omp simd
            for (int i = 0; i < WIDTH; i++) {
                float value = from[i];
                max[i] = ((value > max[i]) | (value != value)) ? value : max[i];
            }
        }
        for (int i = 0; i < WIDTH; i++) {
            out[c + i] = max[i];
        }
    }
    for (; c < channels; c++) {
        float max = -INFINITY;
        for (int64_t k = 0; k < n; k++) {
            float value = x[offsets[k] + c];
            max = value > max || value != value ? value : max;
        }
        out[c] = max;
    }
}

MSC_SIMD static void mean_taps(float *restrict out, const float *restrict x,
                               const int64_t offsets[], int64_t n, int64_t channels,
                               float divisor) {
    int64_t c = 0;
    for (; c + WIDTH <= channels; c += WIDTH) {
        float sum[WIDTH] = {0};
        for (int64_t k = 0; k < n; k++) {
            const float *from = x + offsets[k] + c;
#pragma omp simd
            for (int i = 0; i < WIDTH; i++) {
                sum[i] += from[i];
            }
        }
        for (int i = 0; i < WIDTH; i++) {
            out[c + i] = sum[i] / divisor;
        }
    }
    for (; c < channels; c++) {
        float sum = 0.0f;
        for (int64_t k = 0; k < n; k++) {
            sum += x[offsets[k] + c];
        }
        out[c] = sum / divisor;
    }
}

// ---- Positions one by one ---------------------------------------------------------------------

// Where the taps of a window begin in its image, in elements. Returns how many there are;
// `offsets` has room for all.
static int64_t find_taps(const struct kernel *k, int64_t y, int64_t x, int64_t offsets[]) {
    const struct axis *rows = &k->axes[0], *cols = &k->axes[1];
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

// All channels of one output position.
static void pool_position(const struct kernel *k, float *out, const float *image, int64_t y,
                          int64_t x, int64_t offsets[]) {
    const struct axis *rows = &k->axes[0], *cols = &k->axes[1];
    int64_t first_y = y * rows->stride - rows->pad_begin;
    int64_t first_x = x * cols->stride - cols->pad_begin;
    int64_t n = find_taps(k, y, x, offsets);
    if (k->is_max) {
        max_taps(out, image, offsets, n, k->channels);
        return;
    }
    int64_t count = k->counts_padding ? padded_taps(rows, first_y) * padded_taps(cols, first_x) : n;
    mean_taps(out, image, offsets, n, k->channels, (float)count);
}

// ---- Rows at a time ---------------------------------------------------------------------------

MSC_SIMD static void max_into(float *restrict out, const float *restrict x, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = x[i] > out[i] || x[i] != x[i] ? x[i] : out[i];
    }
}

MSC_SIMD static void add_into(float *restrict out, const float *restrict x, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        out[i] += x[i];
    }
}

MSC_SIMD static void fill(float out[], int64_t n, float value) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = value;
    }
}

static void divide_row(const struct kernel *k, float *out, int64_t first_y, int64_t n_y) {
    const struct axis *rows = &k->axes[0], *cols = &k->axes[1];
    for (int64_t x = 0; x < cols->out; x++) {
        int64_t first = x - cols->pad_begin, begin, end;
        tap_range(&begin, &end, first, cols, cols->in);
        int64_t count = k->counts_padding ? padded_taps(rows, first_y) * padded_taps(cols, first)
                                          : n_y * (end > begin ? end - begin : 0);
        for (int64_t c = 0; c < k->channels; c++) {
            out[x * k->channels + c] /= (float)count;
        }
    }
}

// One output row when windows are one column apart: every tap is a run of the input row, as long as
// there are columns for which it lies inside.
static void pool_row(const struct kernel *k, float *out, const float *image, int64_t y) {
    const struct axis *rows = &k->axes[0], *cols = &k->axes[1];
    int64_t first_y = y * rows->stride - rows->pad_begin, begin, end;
    tap_range(&begin, &end, first_y, rows, rows->in);
    fill(out, cols->out * k->channels, k->is_max ? -INFINITY : 0.0f);
    for (int64_t i = begin; i < end; i++) {
        const float *row = image + (first_y + i * rows->dilation) * cols->in * k->channels;
        for (int64_t j = 0; j < cols->kernel; j++) {
            int64_t shift = j * cols->dilation - cols->pad_begin;
            int64_t x = shift < 0 ? -shift : 0;
            int64_t stop = cols->in - shift < cols->out ? cols->in - shift : cols->out;
            if (x < stop) {
                (k->is_max ? max_into : add_into)(out + x * k->channels,
                                                  row + (x + shift) * k->channels,
                                                  (stop - x) * k->channels);
            }
        }
    }
    if (!k->is_max) {
        divide_row(k, out, first_y, end > begin ? end - begin : 0);
    }
}

// The order of integers is that of the numbers they stand for.
static void run_bytes(const struct kernel *k, const struct msc_call *call, int64_t offsets[]) {
    const uint8_t *image = call->inputs[0].data;
    uint8_t *out = call->outputs[0].data;
    uint8_t flip = call->inputs[0].quant->low < 0 ? 0x80 : 0;
    for (int64_t n = 0; n < k->batch; n++) {
        for (int64_t y = 0; y < k->axes[0].out; y++) {
            for (int64_t x = 0; x < k->axes[1].out; x++) {
                int64_t n_taps = find_taps(k, y, x, offsets);
                msc_simd_best()->largest(out, image, offsets, n_taps, k->channels, flip);
                out += k->channels;
            }
        }
        image += k->axes[0].in * k->axes[1].in * k->channels;
    }
}

// Every window has a tap, so that no output is the least float there is.
static bool moves(const void *kernel) {
    const struct kernel *k = kernel;
    bool has_taps = k->is_max;
    for (int i = 0; i < 2; i++) {
        for (int64_t o = 0; has_taps && o < k->axes[i].out; o++) {
            int64_t begin, end;
            const struct axis *a = &k->axes[i];
            tap_range(&begin, &end, o * a->stride - a->pad_begin, a, a->in);
            has_taps = end > begin;
        }
    }
    return has_taps;
}

static enum msc_status run(void *kernel, struct msc_cpu_backend *b, const struct msc_call *call,
                           int thread) {
    const struct kernel *k = kernel;
    const float *image = call->inputs[0].data;
    float *out = call->outputs[0].data;
    bool by_row = k->axes[1].stride == 1 && k->channels < 4 * WIDTH;
    int64_t n_taps = k->axes[0].kernel * k->axes[1].kernel;
    void *offsets;
    MSC_TRY(msc_cpu_get_scratch(&offsets, b, thread, (size_t)n_taps * sizeof(int64_t)));
    if (call->outputs[0].quant) {
        run_bytes(k, call, offsets);
        return MSC_OK;
    }
    for (int64_t n = 0; n < k->batch; n++) {
        for (int64_t y = 0; y < k->axes[0].out; y++) {
            if (by_row) {
                pool_row(k, out, image, y);
            }
            for (int64_t x = 0; !by_row && x < k->axes[1].out; x++) {
                pool_position(k, out + x * k->channels, image, y, x, offsets);
            }
            out += k->axes[1].out * k->channels;
        }
        image += k->axes[0].in * k->axes[1].in * k->channels;
    }
    return MSC_OK;
}

const struct msc_cpu_family msc_cpu_pool = {
    .name = "pooling",
    .accepts = accepts,
    .layouts = layouts,
    .prepare = prepare,
    .release = release,
    .run = run,
    .moves = moves,
};
