// Max and average pooling over one or two spatial axes with channels last. Taps are taken in the
// order of the reference kernel, so that the bits are its.
#include "base/alloc.h"
#include "base/platform.h"
#include "kernels/cpu/cpu.h"

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

MSC_SIMD static void fill(float out[], int64_t n, float value) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = value;
    }
}

MSC_SIMD static void take_max(float *restrict out, const float *restrict x, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = x[i] > out[i] || x[i] != x[i] ? x[i] : out[i];
    }
}

MSC_SIMD static void add(float *restrict out, const float *restrict x, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        out[i] += x[i];
    }
}

MSC_SIMD static void divide(float out[], int64_t n, float divisor) {
    for (int64_t i = 0; i < n; i++) {
        out[i] /= divisor;
    }
}

// All channels of one output position.
static void pool_position(const struct kernel *k, float *out, const float *image, int64_t y,
                          int64_t x) {
    const struct axis *rows = &k->axes[0], *cols = &k->axes[1];
    int64_t first_y = y * rows->stride - rows->pad_begin;
    int64_t first_x = x * cols->stride - cols->pad_begin;
    int64_t y_begin, y_end, x_begin, x_end;
    tap_range(&y_begin, &y_end, first_y, rows, rows->in);
    tap_range(&x_begin, &x_end, first_x, cols, cols->in);
    fill(out, k->channels, k->is_max ? -INFINITY : 0.0f);
    for (int64_t i = y_begin; i < y_end; i++) {
        for (int64_t j = x_begin; j < x_end; j++) {
            int64_t at = (first_y + i * rows->dilation) * cols->in + first_x + j * cols->dilation;
            if (k->is_max) {
                take_max(out, image + at * k->channels, k->channels);
            } else {
                add(out, image + at * k->channels, k->channels);
            }
        }
    }
    if (!k->is_max) {
        int64_t n_y = y_end > y_begin ? y_end - y_begin : 0;
        int64_t n_x = x_end > x_begin ? x_end - x_begin : 0;
        int64_t count =
            k->counts_padding ? padded_taps(rows, first_y) * padded_taps(cols, first_x) : n_y * n_x;
        divide(out, k->channels, (float)count);
    }
}

static enum msc_status run(void *kernel, struct msc_cpu_backend *b, const struct msc_call *call,
                           int thread) {
    (void)b;
    (void)thread;
    const struct kernel *k = kernel;
    const float *image = call->inputs[0].data;
    float *out = call->outputs[0].data;
    for (int64_t n = 0; n < k->batch; n++) {
        for (int64_t y = 0; y < k->axes[0].out; y++) {
            for (int64_t x = 0; x < k->axes[1].out; x++) {
                pool_position(k, out, image, y, x);
                out += k->channels;
            }
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
};
