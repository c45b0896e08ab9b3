// Products of windows for 64-bit Arm: packs the weights of bytes, and names the functions of a
// product. Sources choose a kind of products (simd_neon_windows.h) before they include this file.
#ifndef MSC_KERNELS_CPU_SIMD_NEON_PRODUCTS_H
#define MSC_KERNELS_CPU_SIMD_NEON_PRODUCTS_H

#include "kernels/cpu/simd_neon.h"

#include "kernels/cpu/simd_indirect_loops.h"

static size_t bytes_packed_bytes(int64_t channels, int64_t n_runs, int64_t depth) {
    return (size_t)(count_vectors(channels) * vector_bytes(OF_BYTES, n_runs, depth));
}

// Packs one run of up to 16 channels. The weights of a channel begin `step` bytes after those of
// the previous channel.
static void pack_run(char *to, const int8_t *from, int64_t channels, int64_t step, int64_t depth) {
    for (int64_t k = 0; k < depth; k += WEIGHT_BYTES, to += LANES * WEIGHT_BYTES) {
        int64_t n = depth - k < WEIGHT_BYTES ? depth - k : WEIGHT_BYTES;
        for (int64_t c = 0; c < channels; c++) {
            memcpy(to + c * WEIGHT_BYTES, from + c * step + k, (size_t)n);
        }
    }
}

// Stores 128 times the sums of weights. Sums that do not fit int32 wrap around, like the sums of
// products.
static void store_sums_of(char *to, const int32_t sums[], int64_t n) {
    for (int64_t i = 0; FLIPS && i < n; i++) {
        uint32_t sum = (uint32_t)sums[i] * 128u;
        memcpy(to + i * (int64_t)sizeof(sum), &sum, sizeof(sum));
    }
}

static int32_t sum_of(const int8_t weights[], int64_t n) {
    int32_t sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += weights[i];
    }
    return sum;
}

static void bytes_pack(void *packed, const void *weights, int64_t channels, int64_t n_runs,
                       int64_t depth) {
    int64_t size = n_runs * depth; // weights of a channel
    int64_t run_bytes = vector_bytes(OF_BYTES, 1, depth) - HEADER;
    char *to = packed;
    memset(packed, 0, bytes_packed_bytes(channels, n_runs, depth));
    for (int64_t c = 0; c < channels; c += LANES) {
        const int8_t *from = (const int8_t *)weights + c * size;
        int64_t n = channels - c < LANES ? channels - c : LANES;
        int32_t sums[LANES];
        for (int64_t i = 0; i < n; i++) {
            sums[i] = sum_of(from + i * size, size);
        }
        store_sums_of(to, sums, n);
        to += HEADER;
        for (int64_t run = 0; run < n_runs; run++, to += run_bytes) {
            pack_run(to, from + run * depth, n, size, depth);
        }
    }
}

// Packs one run from [n_rows][channels]; the result is the same as that of bytes_pack.
static void bytes_pack_rows(void *packed, const void *rows, int64_t channels, int64_t n_rows,
                            int64_t element) {
    char *to = packed;
    (void)element;
    memset(packed, 0, bytes_packed_bytes(channels, 1, n_rows));
    for (int64_t c = 0; c < channels; c += LANES, to += vector_bytes(OF_BYTES, 1, n_rows)) {
        int64_t n = channels - c < LANES ? channels - c : LANES;
        int32_t sums[LANES] = {0};
        for (int64_t row = 0; row < n_rows; row++) {
            const int8_t *from = (const int8_t *)rows + row * channels + c;
            char *at = to + HEADER + row / WEIGHT_BYTES * LANES * WEIGHT_BYTES + row % WEIGHT_BYTES;
            for (int64_t i = 0; i < n; i++) {
                at[i * WEIGHT_BYTES] = (char)from[i];
                sums[i] += from[i];
            }
        }
        store_sums_of(to, sums, n);
    }
}

#define NEON_BYTES_PRODUCT(name)                                                                   \
    {                                                                                              \
        .isa = name, .weight_bytes = 1, .packed_bytes = bytes_packed_bytes, .pack = bytes_pack,    \
        .pack_rows = bytes_pack_rows, .scratch_bytes = scratch_bytes, .multiply = multiply_bytes,  \
        .multiply_epilogue = multiply_bytes_epilogue                                               \
    }

#endif
