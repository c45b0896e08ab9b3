// Sums, means, maxima and minima over any axes in either layout, and global pools.
#include "base/alloc.h"
#include "base/platform.h"
#include "kernels/cpu/cpu.h"

#include <math.h>
#include <string.h>

// Dims of the input in memory order; adjacent dims are joined if both are kept or both reduced.
// `out` has the stride of each dim in the output: 0 for reduced dims.
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

// The number of partial results per row: the number of lanes of the widest vector. The number is
// the same on every machine, so that sums are too.
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
MSC_INLINE void sum_lanes(float lanes[LANES], const float x[], int64_t n) {
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
    for (; i + LANES <= n; i += LANES) {
        for (int k = 0; k < LANES; k++) {
            lanes[k] += x[i + k];
        }
    }
    for (int k = 0; k < LANES && i + k < n; k++) {
        lanes[k] += x[i + k];
    }
    for (int k = 0; k < LANES; k++) {
        lanes[k] += more[0][k] + (more[1][k] + more[2][k]);
    }
}

MSC_INLINE float combine(enum msc_reduction_kind kind, float a, float b) {
    switch (kind) {
    case MSC_REDUCTION_SUM:
        return a + b;
    case MSC_REDUCTION_MAX:
        a = b > a ? b : a;
        return b != b ? b : a;
    default:
        a = b < a ? b : a;
        return b != b ? b : a;
    }
}

// Reduces a row of n elements to LANES partial maxima or minima.
MSC_INLINE void select_lanes(enum msc_reduction_kind kind, float *restrict lanes,
                             const float *restrict x, int64_t n) {
    if (n < LANES) {
        memcpy(lanes, x, (size_t)n * sizeof(lanes[0]));
        return;
    }
    float wide[4 * LANES];
    int64_t i = 0;
    for (int k = 0; k < 4 * LANES && n >= 4 * LANES; k++) {
        wide[k] = rows[kind].first;
    }
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
#pragma omp simd
        for (int k = 0; k < 4 * LANES; k++) {
            wide[k] = combine(kind, wide[k], x[i + k]);
        }
    }
    for (; i < n; i += LANES) {
        // The last vector may overlap the vector before it.
        const float *next = x + (i + LANES <= n ? i : n - LANES);
#pragma omp simd
        for (int k = 0; k < LANES; k++) {
            lanes[k] = combine(kind, lanes[k], next[k]);
        }
    }
    for (int k = 0; k < 4 * LANES && n >= 4 * LANES; k++) {
        lanes[k % LANES] = combine(kind, lanes[k % LANES], wide[k]);
    }
}

// Reduces n_rows rows of n elements; row i is combined with out[i * step]. The kind is a
// compile-time constant.
MSC_INLINE void reduce_each(enum msc_reduction_kind kind, float *out, int64_t step, const float x[],
                            int64_t n_rows, int64_t n) {
    for (int64_t r = 0; r < n_rows; r++) {
        const float *row = x + r * n;
        float lanes[LANES];
        for (int k = 0; k < LANES; k++) {
            lanes[k] = rows[kind].first;
        }
        if (kind == MSC_REDUCTION_SUM) {
            sum_lanes(lanes, row, n);
        } else {
            select_lanes(kind, lanes, row, n);
        }
        for (int half = LANES / 2; half > 0; half /= 2) {
#pragma omp simd
            for (int k = 0; k < half; k++) {
                lanes[k] = combine(kind, lanes[k], lanes[k + half]);
            }
        }
        out[r * step] = combine(kind, out[r * step], lanes[0]);
    }
}

MSC_SIMD static void reduce_rows(enum msc_reduction_kind kind, float *out, int64_t step,
                                 const float x[], int64_t n_rows, int64_t n) {
    switch (kind) {
    case MSC_REDUCTION_SUM:
        reduce_each(MSC_REDUCTION_SUM, out, step, x, n_rows, n);
        break;
    case MSC_REDUCTION_MAX:
        reduce_each(MSC_REDUCTION_MAX, out, step, x, n_rows, n);
        break;
    case MSC_REDUCTION_MIN:
        reduce_each(MSC_REDUCTION_MIN, out, step, x, n_rows, n);
        break;
    }
}

static enum msc_status cpu_reduce_run(void *kernel, struct msc_cpu_backend *b,
                                      const struct msc_call *call, int thread) {
    (void)b;
    (void)thread;
    const struct kernel *k = kernel;
    const float *x = call->inputs[0].data;
    float *out = call->outputs[0].data;
    int last = k->n_dims - 1;
    // If the last dim is reduced, all rows along the dim before it are reduced in one call.
    bool has_rows = k->out[last] == 0;
    int64_t n_rows = has_rows && last > 0 ? k->dims[last - 1] : 1;
    int outer = has_rows && last > 0 ? last - 1 : last;
    int64_t index[MSC_MAX_DIMS] = {0};
    int64_t to = 0;
    for (int64_t i = 0; i < k->n_out; i++) {
        out[i] = rows[k->kind].first;
    }
    for (int d = 0; d >= 0;) {
        if (has_rows) {
            reduce_rows(k->kind, out + to, outer < last ? k->out[outer] : 0, x, n_rows,
                        k->dims[last]);
        } else {
            rows[k->kind].run(out + to, x, k->dims[last]);
        }
        x += n_rows * k->dims[last];
        for (d = outer - 1; d >= 0; d--) {
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
