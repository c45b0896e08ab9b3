// Tuning: measures every tile that a device can run, on products that are typical of networks.
#include "kernels/vulkan/vk_gemm.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/rng.h"
#include "kernels/vulkan/vulkan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Rows, columns and depth of products, ordered by work: convolutions of 8 images, including first
// and last layers, and a product that fills any device.
static const uint32_t shapes[][3] = {
    {8, 1000, 512},     {64, 64, 64},      {256, 256, 256},    {100352, 16, 32},
    {25088, 96, 24},    {6272, 32, 288},   {401408, 16, 27},   {392, 512, 512},
    {6272, 512, 128},   {100352, 32, 144}, {25088, 256, 64},   {25088, 64, 576},
    {6272, 128, 1152},  {1568, 256, 2304}, {392, 512, 4608},   {100352, 64, 576},
    {1024, 1024, 1024}, {401408, 64, 576}, {4096, 4096, 1024}, {4096, 4096, 4096},
};
#define N_SHAPES ((int)(sizeof(shapes) / sizeof(shapes[0])))

// The minimum duration of a measurement in seconds, and the number of measurements. The fastest
// measurement counts.
#define LEAST_SECONDS 0.01
#define N_MEASUREMENTS 3

// A shape to measure, and its buffers.
struct job {
    struct msc_vk_backend *b;
    struct msc_vk_shape shape;
    struct msc_vk_gemm *gemm;
    struct msc_vk_block *x, *w, *y, *tail;
};

static void finish_job(struct job *j) {
    msc_vk_gemm_destroy(j->gemm, j->b);
    msc_vk_free(j->b->vk, j->x);
    msc_vk_free(j->b->vk, j->w);
    msc_vk_free(j->b->vk, j->y);
    msc_vk_free(j->b->vk, j->tail);
}

// Makes a block of small floats or of arbitrary bytes.
static enum msc_status vk_tune_fill(struct msc_vk_block **out, struct job *j, uint64_t n) {
    size_t n_bytes = (size_t)n * (j->shape.is_integer ? 1 : sizeof(float));
    struct msc_rng rng;
    uint8_t *data = msc_alloc(n_bytes + sizeof(uint64_t));
    MSC_TRY(MSC_ALLOCATED(data));
    msc_rng_seed(&rng, n, 0);
    for (size_t i = 0; i < n_bytes; i += sizeof(uint64_t)) {
        uint64_t bits = msc_rng_u64(&rng);
        memcpy(data + i, &bits, sizeof(bits));
    }
    for (size_t i = 0; !j->shape.is_integer && i < n; i++) {
        float number = (float)data[4 * i] / 256.0f - 0.5f;
        memcpy(data + 4 * i, &number, sizeof(number));
    }
    enum msc_status status = msc_vk_upload_new(j->b->vk, out, data, n_bytes);
    msc_free(data);
    return status;
}

static enum msc_status init_job(struct job *j) {
    const struct msc_vk_shape *s = &j->shape;
    struct msc_vk_gemm_desc desc = {.n_z = 1,
                                    .n_rows = (int64_t)s->rows,
                                    .n_cols = (int64_t)s->cols,
                                    .depth = (int64_t)s->depth,
                                    .x_row = (int64_t)s->depth,
                                    .y_row = (int64_t)s->cols};
    struct msc_vk_gemm_weight w = msc_vk_gemm_weight_shape(&desc);
    desc.w_step = w.channels * w.row;
    MSC_TRY(msc_vk_gemm_create(&j->gemm, j->b, &desc));
    MSC_TRY(vk_tune_fill(&j->x, j, s->rows * s->depth));
    MSC_TRY(vk_tune_fill(&j->w, j, (uint64_t)desc.w_step));
    MSC_TRY(msc_vk_take(&j->tail, j->b, 1, 3 * s->cols * sizeof(float)));
    return msc_vk_take(&j->y, j->b, 1, s->rows * s->cols * sizeof(float));
}

static enum msc_status vk_tune_run(double *seconds, struct job *j, int times) {
    struct msc_vk_gemm_call call = {
        .x = j->x, .w = j->w, .y = j->y, .tail = j->tail, .bytes = {true, 0, 0, -1, 1.0f}};
    double begin = msc_clock_seconds();
    for (int i = 0; i < times; i++) {
        MSC_TRY(msc_vk_gemm_run(
            j->gemm, j->b, j->shape.is_integer ? MSC_VK_UNIT_INT : MSC_VK_UNIT_FLOATS, &call, 1));
    }
    MSC_TRY(msc_vk_flush(j->b->vk));
    *seconds = (msc_clock_seconds() - begin) / times;
    return MSC_OK;
}

// Measures the seconds of one product with the forced tile; *best is the fastest of several
// measurements.
static enum msc_status vk_tune_measure(double *best, struct job *j) {
    double seconds;
    MSC_TRY(vk_tune_run(&seconds, j, 1)); // also compiles the pipeline
    MSC_TRY(vk_tune_run(&seconds, j, 1));
    int times = seconds < LEAST_SECONDS ? (int)(LEAST_SECONDS / (seconds + 1e-6)) + 1 : 1;
    times = times < 200 ? times : 200;
    *best = seconds;
    for (int i = 0; i < N_MEASUREMENTS && seconds < 1.0; i++) {
        MSC_TRY(vk_tune_run(&seconds, j, times));
        *best = i == 0 || seconds < *best ? seconds : *best;
    }
    return MSC_OK;
}

static double gflops(const struct msc_vk_shape *s, double seconds) {
    return 2e-9 * (double)s->rows * (double)s->cols * (double)s->depth / seconds;
}

static enum msc_status tune_shape(struct msc_vulkan_tuned *out, struct job *j) {
    struct msc_vk *vk = j->b->vk;
    double best = 0.0, seconds;
    int best_tile = 0, by_rule = msc_vk_choose_by_rule(vk, &j->shape);
    *out = (struct msc_vulkan_tuned){.rows = j->shape.rows,
                                     .cols = j->shape.cols,
                                     .depth = j->shape.depth,
                                     .is_integer = j->shape.is_integer};
    for (int tile = 0; tile < msc_vk_n_tiles(vk); tile++) {
        if (!msc_vk_tile_is_possible(vk, tile, j->shape.is_integer) ||
            !msc_vk_tile_is_tried(vk, tile)) {
            continue;
        }
        vk->forced_tile = tile;
        MSC_TRY(vk_tune_measure(&seconds, j));
        if (best == 0.0 || seconds < best) {
            best = seconds;
            best_tile = tile;
        }
        if (tile == by_rule) {
            out->gflops_by_rule = gflops(&j->shape, seconds);
        }
    }
    out->gflops = gflops(&j->shape, best);
    msc_vk_tile_text(out->tile, msc_vk_tile(vk, best_tile));
    vk->tuned[vk->n_tuned++] = (struct msc_vk_tuned){j->shape, best_tile};
    return MSC_OK;
}

// Measures the tile that the rule chooses.
static enum msc_status measure_by_rule(double *seconds, struct job *j) {
    j->b->vk->forced_tile = msc_vk_choose_by_rule(j->b->vk, &j->shape);
    enum msc_status status = vk_tune_measure(seconds, j);
    j->b->vk->forced_tile = -1;
    return status;
}

// True if matrix units were fastest for any shape that `mscgym tune` measured.
static bool was_fastest(const struct msc_vk *vk) {
    bool was = false;
    for (int i = 0; i < vk->n_tuned; i++) {
        was = was || msc_vk_tile(vk, vk->tuned[i].tile)->is_matrix;
    }
    return was;
}

enum msc_status msc_vk_compare_matrix(struct msc_vk_backend *b) {
    struct job j = {.b = b, .shape = {1024, 1024, 1024, true}};
    double with = 0.0, without = 0.0;
    if (!b->vk->has_matrix || getenv("MSC_VULKAN_MATRIX")) {
        return MSC_OK;
    }
    if (b->vk->n_tuned > 0) {
        b->vk->has_matrix = was_fastest(b->vk);
        return MSC_OK;
    }
    enum msc_status status = init_job(&j);
    if (status == MSC_OK) {
        status = measure_by_rule(&with, &j);
    }
    b->vk->has_matrix = false;
    if (status == MSC_OK) {
        status = measure_by_rule(&without, &j);
    }
    finish_job(&j);
    b->vk->has_matrix = with < without;
    return status;
}

// Measures the tiles for as many shapes as can probably be measured in `seconds`.
static enum msc_status tune_all(struct msc_vk_backend *b, double seconds,
                                struct msc_vulkan_tuned rows[], int max, int *n) {
    double begin = msc_clock_seconds(), rate = 0.0; // operations per second, over all tiles
                                                    // together
    int n_units = msc_vk_prefers_int(b->vk) ? 2 : 1;
    for (int i = 0; i < N_SHAPES * n_units && *n < max && *n < MSC_VK_MAX_TUNED; i++) {
        const uint32_t *s = shapes[i / n_units];
        struct job j = {.b = b, .shape = {s[0], s[1], s[2], i % n_units == 1}};
        double work = (double)s[0] * s[1] * s[2], start = msc_clock_seconds();
        if (*n > 0 && start - begin + work / rate > seconds) {
            continue;
        }
        enum msc_status status = init_job(&j);
        if (status == MSC_OK) {
            status = tune_shape(&rows[*n], &j);
        }
        finish_job(&j);
        MSC_TRY(status);
        double now = work / (msc_clock_seconds() - start);
        rate = now > rate ? now : rate;
        ++*n;
    }
    return MSC_OK;
}

enum msc_status msc_vulkan_tune(struct msc_backend *base, double seconds,
                                struct msc_vulkan_tuned rows[], int max, int *n) {
    struct msc_vk_backend *b = msc_vk_from(base);
    *n = 0;
    if (!b->vk->cache_folder) {
        return MSC_FAIL(MSC_E_INVALID, "vulkan: tuning needs options.cache_folder to store tiles");
    }
    msc_vk_lock(b->vk);
    b->vk->n_tuned = 0;
    b->vk->has_matrix = b->vk->matrix.subgroup > 0;
    enum msc_status status = tune_all(b, seconds, rows, max, n);
    b->vk->forced_tile = -1;
    b->vk->has_matrix = was_fastest(b->vk);
    if (status == MSC_OK) {
        status = msc_vk_tuned_save(b->vk);
    }
    msc_vk_unlock(b->vk);
    return status;
}
