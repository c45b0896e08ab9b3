// Sums, means, maxima and minima over any axes in either layout, and global pools.
#include "base/alloc.h"
#include "base/platform.h"
#include "kernels/cpu/cpu.h"

#include <math.h>

// Dims of the input in memory order; adjacent dims are joined if both are kept or both reduced.
// `out` strides are 0 for reduced dims.
struct kernel {
    enum msc_reduction_kind kind;
    int n_dims; // at least 1
    int64_t dims[MSC_MAX_DIMS];
    int64_t out[MSC_MAX_DIMS];
    int64_t n_out;
    float divisor; // 1 except for means
};

// ---- Preparing --------------------------------------------------------------------------------

static void cpu_reduce_release(void *kernel) {
    msc_free(kernel);
}

static void cpu_reduce_add_dim(struct kernel *k, int64_t length, int64_t out) {
    int last = k->n_dims - 1;
    if (length == 1) {
        return;
    }
    if (last >= 0 && k->out[last] == out * length) {
        k->dims[last] *= length;
        k->out[last] = out;
        return;
    }
    k->dims[k->n_dims] = length;
    k->out[k->n_dims] = out;
    k->n_dims++;
}

static enum msc_status cpu_reduce_prepare(void **out, struct msc_cpu_backend *b,
                                          const struct msc_plan *plan,
                                          const struct msc_step *step) {
    (void)b;
    const struct msc_joint *joint = step->joints[0].joint;
    const struct msc_value *x = &plan->values[step->inputs[step->joints[0].operands[0].index]];
    const struct msc_value *y = &plan->values[step->outputs[0]];
    struct msc_reduction r;
    int to[MSC_MAX_DIMS], at[MSC_MAX_DIMS], axes[MSC_MAX_DIMS];
    int64_t strides[MSC_MAX_DIMS], count = 1;
    struct kernel *k = msc_alloc_zero(1, sizeof(*k));
    MSC_TRY(MSC_ALLOCATED(k));
    msc_lowering_describe_reduction(&r, joint, x->n_dims);
    msc_lowering_map_axes(to, x->n_dims, r.is_reduced, y->n_dims);
    msc_lowering_strides(strides, y->n_dims, y->dims, y->layout);
    msc_lowering_positions(at, x->n_dims, x->layout);
    for (int i = 0; i < x->n_dims; i++) {
        axes[at[i]] = i;
        count *= r.is_reduced[i] ? x->dims[i] : 1;
    }
    for (int i = 0; i < x->n_dims; i++) {
        cpu_reduce_add_dim(k, x->dims[axes[i]], to[axes[i]] < 0 ? 0 : strides[to[axes[i]]]);
    }
    if (k->n_dims == 0) {
        k->n_dims = 1;
        k->dims[0] = 1;
    }
    k->kind = r.kind;
    k->n_out = msc_dims_product(y->n_dims, y->dims);
    k->divisor = r.is_mean ? (float)count : 1.0f;
    *out = k;
    return MSC_OK;
}

// ---- Running ----------------------------------------------------------------------------------

// The number of partial results per row: the number of lanes of the widest vector. It is the same
// on every machine.
enum { LANES = 16 };

MSC_SIMD static void cpu_reduce_add_row(float *restrict out, const float *restrict x, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        out[i] += x[i];
    }
}

MSC_SIMD static void max_row(float *restrict out, const float *restrict x, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = x[i] > out[i] || x[i] != x[i] ? x[i] : out[i];
    }
}

MSC_SIMD static void min_row(float *restrict out, const float *restrict x, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = x[i] < out[i] || x[i] != x[i] ? x[i] : out[i];
    }
}

typedef void (*row_fn)(float *restrict out, const float *restrict x, int64_t n);

static const struct {
    row_fn run;
    float first;
} rows[] = {
    [MSC_REDUCTION_SUM] = {cpu_reduce_add_row, 0.0f},
    [MSC_REDUCTION_MAX] = {max_row, -INFINITY},
    [MSC_REDUCTION_MIN] = {min_row, INFINITY},
};

// Sums whole vectors in four independent accumulators.
MSC_SIMD static void sum_lanes(float lanes[LANES], const float x[], int64_t n) {
    float more[3][LANES] = {{0}};
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        for (int k = 0; k < LANES; k++) {
            lanes[k] += x[i + k];
            more[0][k] += x[i + LANES + k];
            more[1][k] += x[i + 2 * LANES + k];
            more[2][k] += x[i + 3 * LANES + k];
        }
    }
    for (; i < n; i += LANES) {
        for (int k = 0; k < LANES && i + k < n; k++) {
            lanes[k] += x[i + k];
        }
    }
    for (int k = 0; k < LANES; k++) {
        lanes[k] += more[0][k] + (more[1][k] + more[2][k]);
    }
}

// Reduces a row and combines the result with *out.
static void reduce_row(enum msc_reduction_kind kind, float *out, const float x[], int64_t n) {
    float lanes[LANES];
    for (int k = 0; k < LANES; k++) {
        lanes[k] = rows[kind].first;
    }
    if (kind == MSC_REDUCTION_SUM) {
        sum_lanes(lanes, x, n);
    } else {
        for (int64_t i = 0; i < n; i += LANES) {
            rows[kind].run(lanes, x + i, n - i < LANES ? n - i : LANES);
        }
    }
    for (int half = LANES / 2; half > 0; half /= 2) {
        rows[kind].run(lanes, lanes + half, half);
    }
    rows[kind].run(out, lanes, 1);
}

static enum msc_status cpu_reduce_run(void *kernel, struct msc_cpu_backend *b,
                                      const struct msc_call *call, int thread) {
    (void)b;
    (void)thread;
    const struct kernel *k = kernel;
    const float *x = call->inputs[0].data;
    float *out = call->outputs[0].data;
    int last = k->n_dims - 1;
    int64_t index[MSC_MAX_DIMS] = {0};
    int64_t to = 0;
    for (int64_t i = 0; i < k->n_out; i++) {
        out[i] = rows[k->kind].first;
    }
    for (int d = 0; d >= 0;) {
        if (k->out[last] == 0) {
            reduce_row(k->kind, out + to, x, k->dims[last]);
        } else {
            rows[k->kind].run(out + to, x, k->dims[last]);
        }
        x += k->dims[last];
        for (d = last - 1; d >= 0; d--) {
            to += k->out[d];
            if (++index[d] < k->dims[d]) {
                break;
            }
            to -= k->out[d] * k->dims[d];
            index[d] = 0;
        }
    }
    for (int64_t i = 0; k->divisor != 1.0f && i < k->n_out; i++) {
        out[i] /= k->divisor;
    }
    return MSC_OK;
}

const struct msc_cpu_family msc_cpu_reduce = {
    .prepare = cpu_reduce_prepare,
    .release = cpu_reduce_release,
    .run = cpu_reduce_run,
};
