// Normalisation over groups of channels or over single channels, in either layout.
#include "base/alloc.h"
#include "base/platform.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/moments.h"

#include <math.h>
#include <string.h>

// Computes y = (x - mean) * factor + offset. `mean` is rounded to float32; `offset` corrects for
// the rounding.
struct kernel {
    int64_t n_images, n_groups, channels; // groups and channels per image
    int64_t n_positions;
    bool is_last;   // channels are innermost in memory; otherwise positions are
    int64_t n_wide; // positions that are processed together, as one position with n_wide times the
                    // channels
    float epsilon;
    const float *gamma, *beta; // borrowed from the graph
    bool is_by_channel;        // gamma and beta are by channel; otherwise by group
};

// PIECE elements are computed at a time, to stay in a first-level cache. If positions have few
// channels, n_wide positions are joined to one row, so that the number of columns (channels *
// n_wide) is a multiple of BLOCK between MIN_COLUMNS and MAX_COLUMNS.
enum { PIECE = 4096, BLOCK = 64, MIN_COLUMNS = 512, MAX_COLUMNS = 2048 };

static void cpu_group_norm_release(void *kernel) {
    msc_free(kernel);
}

// The number of positions to join so that their channels fill whole blocks of columns.
static int64_t choose_wide(int64_t channels, int64_t n_positions) {
    int64_t n = 1;
    while (n * channels % BLOCK != 0 || n * channels < MIN_COLUMNS) {
        n *= 2;
        if (n * channels > MAX_COLUMNS || n > n_positions) {
            return 1;
        }
    }
    return n;
}

static enum msc_status cpu_group_norm_prepare(void **out, struct msc_cpu_backend *b,
                                              const struct msc_plan *plan,
                                              const struct msc_step *step) {
    (void)b;
    const struct msc_joint *joint = step->joints[0].joint;
    const struct msc_value *x = &plan->values[step->inputs[step->joints[0].operands[0].index]];
    const struct msc_array *gamma = msc_lowering_constant(plan->graph, joint, 1);
    const struct msc_array *beta = msc_lowering_constant(plan->graph, joint, 2);
    struct kernel *k = msc_alloc_zero(1, sizeof(*k));
    MSC_TRY(MSC_ALLOCATED(k));
    *k = (struct kernel){
        .n_images = x->dims[0],
        .n_groups = x->dims[1],
        .channels = x->dims[1],
        .n_positions = msc_dims_product(x->n_dims - 2, x->dims + 2),
        .gamma = msc_array_data(gamma),
        .beta = msc_array_data(beta),
        .is_by_channel = msc_array_n_elements(gamma) == x->dims[1],
    };
    if (joint->op == MSC_OP_GROUP_NORM) {
        msc_joint_attr_i64(joint, "num_groups", &k->n_groups);
    }
    msc_joint_attr_float(joint, "epsilon", &k->epsilon);
    k->is_last = x->layout == MSC_LAYOUT_NHWC && k->channels > 1 && k->n_positions > 1;
    k->n_wide = choose_wide(k->channels, k->n_positions);
    *out = k;
    return MSC_OK;
}

// ---- Means and factors ------------------------------------------------------------------------

// Memory for one image: the factors of each channel, repeated for each joined position, and the
// moments from which the factors are computed.
struct work {
    float *mean, *factor, *offset;     // [channels * n_wide]
    double *means, *squares;           // [channels * n_wide]
    double *rest_means, *rest_squares; // [channels] of the last n_positions % n_wide positions
    float *piece;                      // [PIECE] or [channels * n_wide], the larger; holds results
                                       // if only quantised variants are written
};

static enum msc_status get_work(struct work *w, const struct kernel *k, struct msc_cpu_backend *b,
                                int thread) {
    size_t n = (size_t)(k->channels * k->n_wide);
    size_t floats = msc_cpu_round_up(n * sizeof(float));
    size_t doubles = msc_cpu_round_up(n * sizeof(double));
    void *memory;
    MSC_TRY(
        msc_cpu_get_scratch(&memory, b, thread, 4 * floats + 4 * doubles + PIECE * sizeof(float)));
    char *at = memory;
    w->mean = (float *)(void *)at;
    w->factor = (float *)(void *)(at + floats);
    w->offset = (float *)(void *)(at + 2 * floats);
    at += 3 * floats;
    w->means = (double *)(void *)at;
    w->squares = (double *)(void *)(at + doubles);
    w->rest_means = (double *)(void *)(at + 2 * doubles);
    w->rest_squares = (double *)(void *)(at + 3 * doubles);
    w->piece = (float *)(void *)(at + 4 * doubles);
    return MSC_OK;
}

static void set_group(struct work *w, const struct kernel *k, int64_t group,
                      const struct msc_moments *m) {
    int64_t n = k->channels / k->n_groups;
    double factor = 1.0 / sqrt(msc_moments_variance(m) + (double)k->epsilon);
    for (int64_t c = group * n; c < (group + 1) * n; c++) {
        int64_t i = k->is_by_channel ? c : group;
        double scale = factor * (double)k->gamma[i];
        w->mean[c] = (float)m->mean;
        w->factor[c] = (float)scale;
        w->offset[c] = (float)((double)k->beta[i] + ((double)w->mean[c] - m->mean) * scale);
    }
}

static void find_in_rows(struct work *w, const struct kernel *k, const float x[]) {
    int64_t n = k->channels / k->n_groups * k->n_positions;
    for (int64_t g = 0; g < k->n_groups; g++) {
        struct msc_moments m = {0};
        msc_moments_add_row(&m, x + g * n, n);
        set_group(w, k, g, &m);
    }
}

static void find_in_columns(struct work *w, const struct kernel *k, const float x[]) {
    int64_t n = k->channels / k->n_groups, width = k->channels * k->n_wide;
    int64_t n_rows = k->n_positions / k->n_wide, n_rest = k->n_positions % k->n_wide;
    struct msc_moments_columns all = {0, w->means, w->squares};
    struct msc_moments_columns rest = {0, w->rest_means, w->rest_squares};
    memset(w->means, 0, (size_t)width * sizeof(double));
    memset(w->squares, 0, (size_t)width * sizeof(double));
    memset(w->rest_means, 0, (size_t)k->channels * sizeof(double));
    memset(w->rest_squares, 0, (size_t)k->channels * sizeof(double));
    msc_moments_add_rows(&all, x, n_rows, width);
    msc_moments_add_rows(&rest, x + n_rows * width, n_rest, k->channels);
    for (int64_t g = 0; g < k->n_groups; g++) {
        struct msc_moments m = msc_moments_of_columns(&all, g * n, n, k->channels, k->n_wide);
        struct msc_moments more = msc_moments_of_columns(&rest, g * n, n, 0, 1);
        msc_moments_join(&m, &more);
        set_group(w, k, g, &m);
    }
}

// ---- Results ----------------------------------------------------------------------------------

MSC_SIMD static void cpu_group_norm_scale_row(float *restrict out, const float *restrict x,
                                              int64_t n, float mean, float factor, float offset) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = (x[i] - mean) * factor + offset;
    }
}

MSC_SIMD static void scale_each(float *restrict out, const float *restrict x, int64_t n,
                                const float *restrict mean, const float *restrict factor,
                                const float *restrict offset) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = (x[i] - mean[i]) * factor[i] + offset[i];
    }
}

// Writes an image piece by piece. `out` is the image's first element, or NULL if only quantised
// variants are written.
static void cpu_group_norm_write_rows(const struct work *w, const struct kernel *k,
                                      const struct msc_call *call, int64_t first, const float x[],
                                      float *out) {
    int64_t n = k->channels * k->n_positions;
    for (int64_t i = 0; i < n; i += PIECE) {
        float *to = out ? out + i : w->piece;
        int64_t end = n - i < PIECE ? n : i + PIECE, next;
        for (int64_t at = i; at < end; at = next) {
            int64_t c = at / k->n_positions;
            next = (c + 1) * k->n_positions < end ? (c + 1) * k->n_positions : end;
            cpu_group_norm_scale_row(to + (at - i), x + at, next - at, w->mean[c], w->factor[c],
                                     w->offset[c]);
        }
        msc_cpu_write_quantized(call->quantized, call->n_quantized, first + i, to, end - i);
    }
}

static void write_columns(const struct work *w, const struct kernel *k, const struct msc_call *call,
                          int64_t first, const float x[], float *out) {
    int64_t n = k->channels * k->n_positions, width = k->channels * k->n_wide;
    for (int64_t t = 1; t < k->n_wide; t++) {
        int64_t to = t * k->channels;
        memcpy(w->mean + to, w->mean, (size_t)k->channels * sizeof(float));
        memcpy(w->factor + to, w->factor, (size_t)k->channels * sizeof(float));
        memcpy(w->offset + to, w->offset, (size_t)k->channels * sizeof(float));
    }
    for (int64_t i = 0; i < n; i += width) {
        int64_t length = n - i < width ? n - i : width;
        float *to = out ? out + i : w->piece;
        scale_each(to, x + i, length, w->mean, w->factor, w->offset);
        msc_cpu_write_quantized(call->quantized, call->n_quantized, first + i, to, length);
    }
}

static enum msc_status cpu_group_norm_run(void *kernel, struct msc_cpu_backend *b,
                                          const struct msc_call *call, int thread) {
    const struct kernel *k = kernel;
    const float *x = call->inputs[0].data;
    float *out = call->outputs[0].data;
    int64_t n = k->channels * k->n_positions;
    struct work w;
    MSC_TRY(get_work(&w, k, b, thread));
    for (int64_t at = 0; at < k->n_images * n; at += n) {
        if (k->is_last) {
            find_in_columns(&w, k, x + at);
        } else {
            find_in_rows(&w, k, x + at);
        }
        if (k->is_last || k->n_positions == 1) {
            write_columns(&w, k, call, at, x + at, out ? out + at : NULL);
        } else {
            cpu_group_norm_write_rows(&w, k, call, at, x + at, out ? out + at : NULL);
        }
    }
    return MSC_OK;
}

const struct msc_cpu_family msc_cpu_group_norm = {
    .prepare = cpu_group_norm_prepare,
    .release = cpu_group_norm_release,
    .run = cpu_group_norm_run,
    .quantizes = true,
};
