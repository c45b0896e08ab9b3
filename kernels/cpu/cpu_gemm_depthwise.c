// Depthwise convolutions on integers, in NHWC. Windows of the usual sizes are summed column by
// column, if the machine has instructions for that. All other windows are summed tap by tap over
// runs of contiguous elements. With a stride of 1, a run covers neighbouring positions of a row;
// with larger strides, each position is a run of its own. Taps outside of the image read zero
// points, so that all sums of a channel have the same offset.
#include "base/alloc.h"
#include "kernels/cpu/cpu_gemm.h"

#include <string.h>

bool msc_cpu_gemm_is_depthwise(const struct msc_gemm_desc *d) {
    return d->kind == MSC_GEMM_CONV && d->groups == d->in_channels &&
           d->groups == d->out_channels && d->n_spatial <= 2;
}

// ---- Geometry ---------------------------------------------------------------------------------

struct axis {
    int64_t in, out, kernel, stride, dilation, pad;
};

// The axis of the rows (`which` is 0) or of the columns (1). A single spatial axis counts as
// columns.
static struct axis axis_of(const struct msc_cpu_gemm *k, int which) {
    const struct msc_gemm_desc *d = &k->desc;
    int i = d->n_spatial - 2 + which;
    if (i < 0) {
        return (struct axis){1, 1, 1, 1, 1, 0};
    }
    return (struct axis){d->in[i],      d->out[i],      d->kernel[i],
                         d->strides[i], d->dilation[i], d->pad_begin[i]};
}

static int count_taps(const struct msc_cpu_gemm *k) {
    return (int)(axis_of(k, 0).kernel * axis_of(k, 1).kernel);
}

static bool goes_by_columns(const struct msc_cpu_gemm *k) {
    struct axis cols = axis_of(k, 1);
    return msc_simd_best()->add_columns && axis_of(k, 0).kernel <= MSC_SIMD_TAPS &&
           cols.kernel == MSC_SIMD_COLUMNS && cols.dilation == 1;
}

static int64_t greatest_divisor(int64_t a, int64_t b) {
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

// The number of elements after which the packed weights repeat: the least common multiple of
// k->channels and MSC_SIMD_BLOCK or, if each position is a run of its own, k->channels.
static int64_t period_of(const struct msc_cpu_gemm *k) {
    const int64_t most = 4096; // more would not fit the cache
    int64_t repeats = MSC_SIMD_BLOCK / greatest_divisor(k->channels, MSC_SIMD_BLOCK);
    bool is_run = axis_of(k, 1).stride == 1 && k->channels * repeats <= most && !goes_by_columns(k);
    return is_run ? k->channels * repeats : k->channels;
}

static bool runs_along_rows(const struct msc_cpu_gemm *k) {
    return axis_of(k, 1).stride == 1 && period_of(k) % MSC_SIMD_BLOCK == 0;
}

// ---- Preparing --------------------------------------------------------------------------------

// Packs the weights column by column. Each column is padded to MSC_SIMD_TAPS rows.
static enum msc_status pack_columns(void **out, const struct msc_cpu_gemm *k,
                                    const int8_t weights[]) {
    enum { TAPS = MSC_SIMD_COLUMNS * MSC_SIMD_TAPS };
    int64_t n_rows = axis_of(k, 0).kernel;
    int8_t *ordered = msc_alloc_zero((size_t)k->channels, TAPS);
    *out = msc_alloc_aligned(msc_simd_taps_bytes(TAPS, k->channels));
    if (!ordered || !*out) {
        msc_free(ordered);
        msc_free_aligned(*out);
        *out = NULL;
        return MSC_FAIL(MSC_E_NOMEM, "joint %s: out of memory", k->name);
    }
    for (int64_t i = 0; i < k->channels * n_rows; i++) {
        for (int64_t column = 0; column < MSC_SIMD_COLUMNS; column++) {
            ordered[i / n_rows * TAPS + column * MSC_SIMD_TAPS + i % n_rows] =
                weights[i * MSC_SIMD_COLUMNS + column];
        }
    }
    msc_simd_best()->pack_taps(*out, ordered, k->channels, TAPS, k->channels);
    msc_free(ordered);
    return MSC_OK;
}

enum msc_status msc_cpu_gemm_pack_depthwise(void **out, const struct msc_cpu_gemm *k,
                                            const int8_t weights[]) {
    if (goes_by_columns(k)) {
        return pack_columns(out, k, weights);
    }
    int64_t period = period_of(k);
    *out = msc_alloc_aligned(msc_simd_taps_bytes(count_taps(k), period));
    MSC_TRY(MSC_ALLOCATED(*out));
    msc_simd_best()->pack_taps(*out, weights, k->channels, count_taps(k), period);
    return MSC_OK;
}

static int64_t rows_of_chunk(const struct msc_cpu_gemm *k) {
    return axis_of(k, 0).out / k->chunks[MSC_CPU_GEMM_DEPTHWISE].bands;
}

static size_t taps_bytes(const struct msc_cpu_gemm *k) {
    int64_t n = goes_by_columns(k) ? rows_of_chunk(k) * MSC_SIMD_TAPS : count_taps(k);
    return msc_cpu_round_up((size_t)(n + MSC_SIMD_TAPS) * sizeof(uint8_t *));
}

static size_t blank_bytes(const struct msc_cpu_gemm *k) {
    return msc_cpu_round_up((size_t)(axis_of(k, 1).in * k->channels));
}

static size_t repeated_bytes(const struct msc_cpu_gemm *k) {
    return msc_cpu_round_up((size_t)period_of(k) * sizeof(float));
}

size_t msc_cpu_gemm_depthwise_scratch(const struct msc_cpu_gemm *k) {
    return taps_bytes(k) + blank_bytes(k) + 3 * repeated_bytes(k);
}

static const void *cpu_gemm_depthwise_repeat(char *memory, const void *from,
                                             const struct msc_cpu_gemm *k) {
    size_t n_bytes = (size_t)k->channels * sizeof(float);
    for (size_t at = 0; at < (size_t)period_of(k) * sizeof(float); at += n_bytes) {
        memcpy(memory + at, from, n_bytes);
    }
    return memory;
}

// Fills a row with zero points.
static void fill_blank(uint8_t blank[], const struct msc_cpu_gemm *k, const struct msc_quant *q) {
    size_t n = (size_t)k->channels, n_bytes = blank_bytes(k);
    for (size_t c = 0; c < n; c++) {
        blank[c] = (uint8_t)q->zero_points[q->n > 1 ? c : 0];
    }
    for (size_t at = n; at < n_bytes; at += n) {
        memcpy(blank + at, blank, n_bytes - at < n ? n_bytes - at : n);
    }
}

void msc_cpu_gemm_depthwise_begin(struct msc_cpu_gemm_depthwise *d, const struct msc_quant *q,
                                  const struct msc_simd_finish *finish, void *memory) {
    const struct msc_cpu_gemm *k = d->k;
    char *at = memory;
    d->taps = memory;
    at += taps_bytes(k);
    d->blank = (uint8_t *)at;
    fill_blank(d->blank, k, q);
    at += blank_bytes(k);
    if (finish) {
        d->finish = *finish;
        d->finish.offsets = cpu_gemm_depthwise_repeat(at, finish->offsets, k);
        d->finish.scales = cpu_gemm_depthwise_repeat(at + repeated_bytes(k), finish->scales, k);
        d->finish.bias = cpu_gemm_depthwise_repeat(at + 2 * repeated_bytes(k), finish->bias, k);
    }
}

// ---- Running ----------------------------------------------------------------------------------

// The address that the next elements of a chunk are written to; either `sums` or `bytes` is NULL.
struct target {
    int32_t *sums;
    uint8_t *bytes;
    const struct msc_simd_bytes *q;
};

// Computes n positions of output row y from column x on. If n > 1, no window extends beyond the
// left or right side of the image.
static void run_positions(const struct msc_cpu_gemm_depthwise *d, struct target *to, int64_t image,
                          int64_t y, int64_t x, int64_t n) {
    struct axis rows = axis_of(d->k, 0), cols = axis_of(d->k, 1);
    int64_t channels = d->k->channels;
    int n_taps = 0;
    for (int64_t i = 0; i < rows.kernel; i++) {
        int64_t in_y = y * rows.stride - rows.pad + i * rows.dilation;
        const uint8_t *row = d->in + (image * rows.in + in_y) * cols.in * channels;
        for (int64_t j = 0; j < cols.kernel; j++) {
            int64_t in_x = x * cols.stride - cols.pad + j * cols.dilation;
            bool is_inside = in_y >= 0 && in_y < rows.in && in_x >= 0 && in_x < cols.in;
            d->taps[n_taps++] = is_inside ? row + in_x * channels : d->blank;
        }
    }
    for (int i = n_taps; i % MSC_SIMD_TAPS != 0; i++) {
        d->taps[i] = d->blank;
    }
    bool is_run = runs_along_rows(d->k);
    struct msc_simd_taps t = {.taps = d->taps,
                              .n_taps = n_taps,
                              .flip = d->flip,
                              .weights = d->weights,
                              .period = period_of(d->k),
                              .n = is_run ? n * channels : channels,
                              .n_runs = is_run ? 1 : n,
                              .step = cols.stride * channels};
    if (to->sums) {
        msc_simd_best()->add_taps(to->sums, &t);
        to->sums += n * channels;
    } else {
        msc_simd_best()->add_taps_quantize(to->bytes, &t, &d->finish, to->q);
        to->bytes += n * channels;
    }
}

// Computes output rows y ... y + n - 1.
static void cpu_gemm_depthwise_run_columns(const struct msc_cpu_gemm_depthwise *d,
                                           struct target *to, int64_t image, int64_t y, int64_t n) {
    struct axis rows = axis_of(d->k, 0), cols = axis_of(d->k, 1);
    int64_t channels = d->k->channels, pitch = cols.in * channels;
    int64_t n_new = rows.stride < rows.kernel ? rows.stride : rows.kernel;
    const uint8_t *image_in = d->in + image * rows.in * pitch;
    for (int64_t i = 0; i < n * MSC_SIMD_TAPS; i++) {
        int64_t tap = i % MSC_SIMD_TAPS;
        int64_t in_y = (y + i / MSC_SIMD_TAPS) * rows.stride - rows.pad + tap * rows.dilation;
        bool is_inside = tap < rows.kernel && in_y >= 0 && in_y < rows.in;
        d->taps[i] = is_inside ? image_in + in_y * pitch : d->blank;
    }
    struct msc_simd_columns c = {.rows = d->taps,
                                 .n_rows = n,
                                 .n = cols.out,
                                 .n_used = rows.kernel,
                                 .n_shared = rows.kernel - n_new,
                                 .n_in = cols.in,
                                 .first = -cols.pad,
                                 .stride = cols.stride,
                                 .blank = d->blank,
                                 .flip = d->flip,
                                 .weights = d->weights,
                                 .channels = channels};
    if (to->sums) {
        msc_simd_best()->add_columns(to->sums, &c);
    } else {
        msc_simd_best()->add_columns_quantize(to->bytes, &c, &d->finish, to->q);
    }
}

// Computes output row y. Positions whose windows extend beyond the left or right side of the image
// run one by one.
static void cpu_gemm_depthwise_run_row(const struct msc_cpu_gemm_depthwise *d, struct target *to,
                                       int64_t image, int64_t y) {
    struct axis cols = axis_of(d->k, 1);
    int64_t last = cols.in - 1 + cols.pad - (cols.kernel - 1) * cols.dilation;
    int64_t begin = (cols.pad + cols.stride - 1) / cols.stride;
    int64_t end = last < 0 ? 0 : last / cols.stride + 1;
    begin = begin < cols.out ? begin : cols.out;
    end = end < cols.out ? end : cols.out;
    for (int64_t x = 0; x < begin; x++) {
        run_positions(d, to, image, y, x, 1);
    }
    if (end > begin) {
        run_positions(d, to, image, y, begin, end - begin);
    }
    for (int64_t x = end > begin ? end : begin; x < cols.out; x++) {
        run_positions(d, to, image, y, x, 1);
    }
}

static void run_chunk(const struct msc_cpu_gemm_depthwise *d, int64_t chunk, struct target *to) {
    const struct msc_cpu_gemm_chunks *c = &d->k->chunks[MSC_CPU_GEMM_DEPTHWISE];
    int64_t n = rows_of_chunk(d->k), begin = chunk % c->bands * n;
    if (goes_by_columns(d->k)) {
        cpu_gemm_depthwise_run_columns(d, to, chunk / c->bands, begin, n);
        return;
    }
    for (int64_t y = begin; y < begin + n; y++) {
        cpu_gemm_depthwise_run_row(d, to, chunk / c->bands, y);
    }
}

void msc_cpu_gemm_depthwise_sums(const struct msc_cpu_gemm_depthwise *d, int64_t chunk,
                                 int32_t sums[]) {
    run_chunk(d, chunk, &(struct target){.sums = sums});
}

void msc_cpu_gemm_depthwise_quantize(const struct msc_cpu_gemm_depthwise *d, int64_t chunk,
                                     uint8_t out[], const struct msc_simd_bytes *q) {
    run_chunk(d, chunk, &(struct target){.bytes = out, .q = q});
}
