// Convolutions and linear layers by the machine's own products of bytes (simd.h): a window is some
// rows of its input, each of which lies in one piece.
#include "base/alloc.h"
#include "kernels/cpu/weighted.h"

// ---- Geometry ---------------------------------------------------------------------------------

struct shape {
    int64_t n_runs, depth;
    int64_t per_position, positions; // elements of a position, positions of a run
};

// Rows and columns are the last two axes, as far as there are any.
static struct shape shape_of(const struct msc_dense_desc *d) {
    int n = d->kind == MSC_DENSE_LINEAR ? 0 : d->n_spatial;
    struct shape s = {.n_runs = n > 1 ? d->kernel[n - 2] : 1,
                      .per_position = d->in_channels,
                      .positions = n > 0 ? d->kernel[n - 1] : 1};
    s.depth = s.per_position * s.positions;
    return s;
}

static const struct msc_dense_desc *chunk_desc(const struct msc_weighted *k) {
    return &k->chunks[MSC_WEIGHTED_WINDOWS].desc;
}

bool msc_weighted_has_windows(const struct msc_weighted *k) {
    const struct msc_dense_desc *d = chunk_desc(k);
    struct shape s = shape_of(d);
    bool is_conv = d->kind == MSC_DENSE_CONV;
    int last = d->n_spatial - 1;
    if (!msc_simd_best()->multiply || k->backend->base.options.kernel_threads > 1 ||
        (!is_conv && d->kind != MSC_DENSE_LINEAR) || d->groups != 1 ||
        (is_conv && (d->n_spatial > 2 || (d->kernel[last] > 1 && d->dilation[last] > 1)))) {
        return false;
    }
    // Few channels would be filled up to many.
    return msc_simd_windows_bytes(d->out_channels, s.n_runs, s.depth) <=
           msc_array_n_bytes(k->weight);
}

bool msc_weighted_windows_read_beyond(const struct msc_weighted *k) {
    return shape_of(chunk_desc(k)).depth % MSC_SIMD_GROUP != 0;
}

// ---- Weights ----------------------------------------------------------------------------------

// Channel by channel as windows lie in memory.
static void order_weights(int8_t *out, const int8_t in[], const struct msc_dense_desc *d) {
    struct shape s = shape_of(d);
    int64_t area = s.n_runs * s.positions;
    int64_t channel = d->is_input_first ? 1 : s.per_position * area;
    int64_t position = d->is_input_first ? d->out_channels : area;
    for (int64_t c = 0; c < d->out_channels; c++) {
        for (int64_t a = 0; a < area; a++) {
            for (int64_t i = 0; i < s.per_position; i++) {
                *out++ = in[c * channel + i * position + a];
            }
        }
    }
}

enum msc_status msc_weighted_pack_windows(void **out, const struct msc_weighted *k,
                                          const int8_t weights[]) {
    const struct msc_dense_desc *d = chunk_desc(k);
    struct shape s = shape_of(d);
    int8_t *ordered = msc_alloc_aligned((size_t)msc_array_n_elements(k->weight));
    void *packed = msc_alloc_aligned(msc_simd_windows_bytes(d->out_channels, s.n_runs, s.depth));
    if (!ordered || !packed) {
        msc_free_aligned(ordered);
        msc_free_aligned(packed);
        return MSC_FAIL(MSC_E_NOMEM, "joint %s: out of memory", k->name);
    }
    order_weights(ordered, weights, d);
    msc_simd_best()->pack_windows(packed, ordered, d->out_channels, s.n_runs, s.depth);
    msc_free_aligned(ordered);
    *out = packed;
    return MSC_OK;
}

// ---- Running ----------------------------------------------------------------------------------

static int64_t count_windows(const struct msc_weighted *k) {
    const struct msc_weighted_chunks *c = &k->chunks[MSC_WEIGHTED_WINDOWS];
    return c->out / c->desc.out_channels;
}

size_t msc_weighted_windows_scratch(const struct msc_weighted *k) {
    return msc_cpu_round_up((size_t)count_windows(k) * sizeof(int64_t));
}

struct msc_simd_windows msc_weighted_windows(const struct msc_weighted *k, const void *packed,
                                             void *memory) {
    const struct msc_dense_desc *d = chunk_desc(k);
    int n = d->kind == MSC_DENSE_LINEAR ? 0 : d->n_spatial;
    struct shape s = shape_of(d);
    int64_t out_rows = n > 1 ? d->out[n - 2] : 1, out_cols = n > 0 ? d->out[n - 1] : 1;
    int64_t in_rows = n > 1 ? d->in[n - 2] : 1, in_cols = n > 0 ? d->in[n - 1] : 1;
    int64_t row_step = n > 1 ? d->strides[n - 2] : 1, col_step = n > 0 ? d->strides[n - 1] : 1;
    int64_t *at = memory;
    for (int64_t image = 0; image < d->batch; image++) {
        for (int64_t y = 0; y < out_rows; y++) {
            int64_t row = (image * in_rows + y * row_step) * in_cols;
            for (int64_t x = 0; x < out_cols; x++) {
                *at++ = (row + x * col_step) * s.per_position;
            }
        }
    }
    return (struct msc_simd_windows){.at = memory,
                                     .n = count_windows(k),
                                     .n_runs = s.n_runs,
                                     .run_step = (n > 1 ? d->dilation[n - 2] : 1) * in_cols *
                                                 s.per_position,
                                     .depth = s.depth,
                                     .weights = packed,
                                     .channels = d->out_channels};
}
