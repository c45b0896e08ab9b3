// Resizes rows and columns in NHWC, in the order of the reference kernel: first along each input
// row, then across rows.
#include "base/alloc.h"
#include "base/platform.h"
#include "graph/reference/reference_resize.h"
#include "kernels/cpu/cpu.h"

#include <string.h>

struct kernel {
    int64_t batch, channels;
    int64_t in_rows, in_cols, out_rows, out_cols;
    struct msc_resize_taps *taps;
    const struct msc_resize_taps *by_axis[MSC_MAX_DIMS];
    int32_t *columns;    // [out_cols] first input column that each output column reads
    bool is_doubled;     // out_cols is 2 * in_cols, and column i is a copy of column i / 2
    int64_t slots;       // resized rows kept at a time: as many as an output row needs
    bool copies;         // every output element is a copy of an input element
    bool blends_columns; // every output column blends two input columns
};

// Finds the taps by calling the reference code with shapes only, without elements.
static enum msc_status cpu_resize_find_taps(struct msc_resize_taps **out,
                                            const struct msc_resize_taps *by_axis[MSC_MAX_DIMS],
                                            const struct msc_graph *g,
                                            const struct msc_joint *joint) {
    const struct msc_tensor *t[2] = {msc_lowering_operand(g, joint, 0),
                                     msc_lowering_output(g, joint)};
    struct msc_view views[2];
    float extrapolation;
    for (int i = 0; i < 2; i++) {
        views[i] = (struct msc_view){.dtype = t[i]->dtype, .n_dims = t[i]->n_dims};
        memcpy(views[i].dims, t[i]->dims, sizeof(views[i].dims));
    }
    struct msc_reference_call call = {.graph = g,
                                      .joint = joint,
                                      .n_operands = 1,
                                      .operands = &views[0],
                                      .n_outputs = 1,
                                      .outputs = &views[1]};
    return msc_resize_find_taps(out, by_axis, &extrapolation, &call);
}

static void cpu_resize_release(void *kernel) {
    struct kernel *k = kernel;
    if (k) {
        msc_free(k->taps);
        msc_free(k->columns);
        msc_free(k);
    }
}

static enum msc_status cpu_resize_prepare(void **out, struct msc_cpu_backend *b,
                                          const struct msc_plan *plan,
                                          const struct msc_step *step) {
    (void)b;
    const struct msc_joint *joint = step->joints[0].joint;
    const struct msc_tensor *x = msc_lowering_operand(plan->graph, joint, 0);
    const struct msc_tensor *y = msc_lowering_output(plan->graph, joint);
    struct kernel *k = msc_alloc_zero(1, sizeof(*k));
    MSC_TRY(MSC_ALLOCATED(k));
    enum msc_status status = cpu_resize_find_taps(&k->taps, k->by_axis, plan->graph, joint);
    if (status != MSC_OK) {
        cpu_resize_release(k);
        return status;
    }
    // In NCHW, each channel is an image of its own.
    bool is_last = plan->values[step->outputs[0]].layout == MSC_LAYOUT_NHWC;
    k->batch = is_last ? x->dims[0] : x->dims[0] * x->dims[1];
    k->channels = is_last ? x->dims[1] : 1;
    k->in_rows = x->dims[2];
    k->in_cols = x->dims[3];
    k->out_rows = y->dims[2];
    k->out_cols = y->dims[3];
    for (int64_t i = 0; i < k->out_rows; i++) {
        k->slots = k->by_axis[2][i].n > k->slots ? k->by_axis[2][i].n : k->slots;
    }
    k->copies = k->slots == 1;
    k->blends_columns = true;
    for (int64_t i = 0; i < k->out_cols; i++) {
        k->copies = k->copies && k->by_axis[3][i].n == 1;
        k->blends_columns = k->blends_columns && k->by_axis[3][i].n == 2;
    }
    k->columns = msc_alloc((size_t)k->out_cols * sizeof(k->columns[0]));
    if (!k->columns) {
        cpu_resize_release(k);
        return MSC_ALLOCATED(NULL);
    }
    k->is_doubled = k->out_cols == 2 * k->in_cols;
    for (int64_t i = 0; i < k->out_cols; i++) {
        k->columns[i] = (int32_t)k->by_axis[3][i].at[0];
        k->is_doubled = k->is_doubled && k->columns[i] == i / 2;
    }
    *out = k;
    return MSC_OK;
}

MSC_SIMD static void scale(float *restrict out, const float *restrict x, int64_t n, float weight) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = weight * x[i];
    }
}

MSC_SIMD static void add_scaled(float *restrict out, const float *restrict x, int64_t n,
                                float weight) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = out[i] + weight * x[i];
    }
}

enum { LINE = 16, AHEAD = 6 }; // floats per cache line, columns prefetched ahead

// Does scale() of row a and add_scaled() of row b in one pass.
MSC_SIMD static void blend(float *restrict out, const float *restrict a, const float *restrict b,
                           int64_t n, const float weights[]) {
    float wa = weights[0], wb = weights[1];
    for (int64_t i = 0; i < n; i++) {
        out[i] = wa * a[i] + wb * b[i];
    }
}

// Like blend, for n output columns, each from two input columns. The next columns are prefetched,
// because single columns are too short for the processor to do so.
MSC_SIMD static void blend_columns(float *restrict out, const float *restrict row, int64_t channels,
                                   const struct msc_resize_taps *taps, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const float *a = row + taps[i].at[0] * channels, *b = row + taps[i].at[1] * channels;
        float wa = taps[i].weights[0], wb = taps[i].weights[1];
        for (int64_t c = 0; c < channels; c += LINE) {
            __builtin_prefetch(b + AHEAD * channels + c);
        }
        for (int64_t c = 0; c < channels; c++) {
            out[c] = wa * a[c] + wb * b[c];
        }
        out += channels;
    }
}

// Resizes one input row along its columns.
static void resize_row(const struct kernel *k, float out[], const float row[]) {
    const struct msc_resize_taps *taps = k->by_axis[3];
    if (k->blends_columns) {
        blend_columns(out, row, k->channels, taps, k->out_cols);
        return;
    }
    for (int64_t i = 0; i < k->out_cols; i++) {
        const struct msc_resize_taps *t = &taps[i];
        float *to = out + i * k->channels;
        if (t->n == 1) {
            memcpy(to, row + t->at[0] * k->channels, (size_t)k->channels * sizeof(float));
            continue;
        }
        scale(to, row + t->at[0] * k->channels, k->channels, t->weights[0]);
        for (int n = 1; n < t->n; n++) {
            add_scaled(to, row + t->at[n] * k->channels, k->channels, t->weights[n]);
        }
    }
}

// Input rows that are resized along their columns. They are kept as long as later output rows may
// need them.
struct kept {
    float *rows[4];
    int64_t of[4]; // index of each kept input row, or -1
};

static const float *resized_row(const struct kernel *k, struct kept *kept, const float image[],
                                const struct msc_resize_taps *needed, int64_t row) {
    int64_t free_slot = 0;
    for (int64_t s = 0; s < k->slots; s++) {
        if (kept->of[s] == row) {
            return kept->rows[s];
        }
        bool is_needed = false;
        for (int n = 0; n < needed->n; n++) {
            is_needed = is_needed || needed->at[n] == kept->of[s];
        }
        free_slot = is_needed ? free_slot : s;
    }
    resize_row(k, kept->rows[free_slot], image + row * k->in_cols * k->channels);
    kept->of[free_slot] = row;
    return kept->rows[free_slot];
}

// Computes output row y of an image.
static void make_row(const struct kernel *k, float out[], const float image[], struct kept *kept,
                     int64_t y) {
    const struct msc_resize_taps *t = &k->by_axis[2][y];
    int64_t n = k->out_cols * k->channels;
    const float *rows[4] = {NULL};
    for (int tap = 0; tap < t->n; tap++) {
        rows[tap] = resized_row(k, kept, image, t, t->at[tap]);
    }
    if (t->n == 1) {
        memcpy(out, rows[0], (size_t)n * sizeof(float));
        return;
    }
    blend(out, rows[0], rows[1], n, t->weights);
    for (int tap = 2; tap < t->n; tap++) {
        add_scaled(out, rows[tap], n, t->weights[tap]);
    }
}

// Copies a row of positions. Faster if `position`, the bytes of a position, is a constant.
MSC_INLINE void copy_row(const struct kernel *k, char *to, const char *row, size_t position) {
    for (int64_t x = 0; x < k->out_cols; x++) {
        memcpy(to + (size_t)x * position, row + (size_t)k->columns[x] * position, position);
    }
}

// out = {x[0], x[0], x[1], x[1], ...}, the most common resize.
MSC_SIMD static void double_row(uint64_t *restrict out, const uint32_t *restrict x, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = (uint64_t)x[i] << 32 | x[i];
    }
}

// Resizes an image in which every output element is a copy of an input element of any size.
static void copy_image(const struct kernel *k, char *out, const char *image, size_t bytes) {
    size_t position = (size_t)k->channels * bytes, row = position * (size_t)k->out_cols;
    for (int64_t y = 0; y < k->out_rows; y++) {
        char *to = out + (size_t)y * row;
        int64_t from = k->by_axis[2][y].at[0];
        if (y > 0 && k->by_axis[2][y - 1].at[0] == from) {
            memcpy(to, to - row, row);
            continue;
        }
        const char *in = image + (size_t)(from * k->in_cols) * position;
        if (position == sizeof(float) && k->is_doubled && (uintptr_t)to % sizeof(uint64_t) == 0) {
            double_row((uint64_t *)(void *)to, (const uint32_t *)(const void *)in, k->in_cols);
        } else if (position == sizeof(float)) {
            copy_row(k, to, in, sizeof(float));
        } else {
            copy_row(k, to, in, position);
        }
    }
}

static void copy_images(const struct kernel *k, const struct msc_call *call) {
    size_t bytes = msc_dtype_bytes(call->outputs[0].dtype);
    size_t in = (size_t)(k->in_rows * k->in_cols * k->channels) * bytes;
    size_t out = (size_t)(k->out_rows * k->out_cols * k->channels) * bytes;
    for (int64_t n = 0; n < k->batch; n++) {
        copy_image(k, (char *)call->outputs[0].data + (size_t)n * out,
                   (const char *)call->inputs[0].data + (size_t)n * in, bytes);
    }
}

static bool cpu_resize_is_movement(const void *kernel) {
    const struct kernel *k = kernel;
    return k->copies;
}

static enum msc_status cpu_resize_run(void *kernel, struct msc_cpu_backend *b,
                                      const struct msc_call *call, int thread) {
    const struct kernel *k = kernel;
    if (k->copies) {
        copy_images(k, call);
        return MSC_OK;
    }
    const float *image = call->inputs[0].data;
    int64_t n = k->out_cols * k->channels;
    size_t row_bytes = msc_cpu_round_up((size_t)n * sizeof(float));
    void *memory; // one output row (if only quantised variants are written), then the kept rows
    struct kept kept;
    MSC_TRY(msc_cpu_get_scratch(&memory, b, thread, row_bytes * (size_t)(k->slots + 1)));
    for (int64_t s = 0; s < k->slots; s++) {
        kept.rows[s] = (float *)(void *)((char *)memory + (size_t)(s + 1) * row_bytes);
    }
    for (int64_t i = 0; i < k->batch * k->out_rows; i++) {
        int64_t y = i % k->out_rows;
        float *out = call->outputs[0].data ? (float *)call->outputs[0].data + i * n : memory;
        for (int64_t s = 0; y == 0 && s < k->slots; s++) {
            kept.of[s] = -1;
        }
        make_row(k, out, image + i / k->out_rows * k->in_rows * k->in_cols * k->channels, &kept, y);
        msc_cpu_write_quantized(call->quantized, call->n_quantized, i * n, out, n);
    }
    return MSC_OK;
}

const struct msc_cpu_family msc_cpu_resize = {
    .prepare = cpu_resize_prepare,
    .release = cpu_resize_release,
    .run = cpu_resize_run,
    .quantizes = true, // not used if the kernel copies
    .is_movement = cpu_resize_is_movement,
    .copies = true,
};
