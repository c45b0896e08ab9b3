// Depthwise convolutions for 64-bit Arm, tap by tap. Sources choose a kind of products
// (simd_neon_windows.h) before they include this file.
#ifndef MSC_KERNELS_CPU_SIMD_NEON_TAPS_H
#define MSC_KERNELS_CPU_SIMD_NEON_TAPS_H

#include "kernels/cpu/simd_ops.h"

#if defined(MSC_NEON_DOTPROD) || defined(MSC_NEON_I8MM)

// The bytes of four taps are interleaved, so that one instruction multiplies and adds four taps of
// four elements. Weights are [vector of 16 elements][groups of taps][element][4] after the numbers
// that the sums of 16 elements begin with. Without products of uint8 with int8, these are 128 times
// the sums of the weights, because 128 is subtracted from each byte.
#ifdef MSC_NEON_I8MM
enum { TAPS_FLIP = 0, TAPS_OFFSET = 0 };
#else
enum { TAPS_FLIP = 0x80, TAPS_OFFSET = 128 };
#endif
enum { TAPS = MSC_SIMD_TAPS, TAPS_HEADER = LANES * sizeof(int32_t) };

static int64_t count_groups(int n_taps) {
    return (n_taps + TAPS - 1) / TAPS;
}

static int64_t taps_vector_bytes(int n_taps) {
    return TAPS_HEADER + count_groups(n_taps) * TAPS * LANES;
}

static void pack_taps(void *packed, const int8_t weights[], int64_t n_channels, int n_taps,
                      int64_t period) {
    char *to = packed;
    for (int64_t first = 0; first < period; first += LANES, to += taps_vector_bytes(n_taps)) {
        memset(to, 0, (size_t)taps_vector_bytes(n_taps));
        for (int64_t i = 0; i < LANES; i++) {
            const int8_t *from = weights + (first + i) % n_channels * n_taps;
            int32_t sum = 0;
            for (int tap = 0; tap < n_taps; tap++) {
                int64_t group = tap / TAPS;
                to[TAPS_HEADER + (group * LANES + i) * TAPS + tap % TAPS] = (char)from[tap];
                sum += TAPS_OFFSET * from[tap];
            }
            memcpy(to + i * (int64_t)sizeof(sum), &sum, sizeof(sum));
        }
    }
}

VECTOR_INLINE int32x4_t add_dots(int32x4_t sum, uint16x8_t x, const char *weights) {
    int8x16_t w = vreinterpretq_s8_u8(load_16(weights));
#ifdef MSC_NEON_I8MM
    return vusdotq_s32(sum, vreinterpretq_u8_u16(x), w);
#else
    return vdotq_s32(sum, vreinterpretq_s8_u16(x), w);
#endif
}

// The sums of up to 16 elements.
VECTOR_INLINE vint add_vector(const struct msc_simd_taps *t, int64_t at, int64_t n,
                              const char *weights) {
    vint sums = vi_load(weights);
    weights += TAPS_HEADER;
    for (int tap = 0; tap < t->n_taps; tap += TAPS, weights += TAPS * LANES) {
        uint8x16_t x[TAPS];
        UNROLL for (int i = 0; i < TAPS; i++) {
            x[i] = load_16_bytes(t->taps[tap + i] + at, n, t->flip ^ TAPS_FLIP);
        }
        uint16x8_t low01 = vreinterpretq_u16_u8(vzip1q_u8(x[0], x[1]));
        uint16x8_t low23 = vreinterpretq_u16_u8(vzip1q_u8(x[2], x[3]));
        uint16x8_t high01 = vreinterpretq_u16_u8(vzip2q_u8(x[0], x[1]));
        uint16x8_t high23 = vreinterpretq_u16_u8(vzip2q_u8(x[2], x[3]));
        sums.part[0] = add_dots(sums.part[0], vzip1q_u16(low01, low23), weights);
        sums.part[1] = add_dots(sums.part[1], vzip2q_u16(low01, low23), weights + LANES);
        sums.part[2] = add_dots(sums.part[2], vzip1q_u16(high01, high23), weights + 2 * LANES);
        sums.part[3] = add_dots(sums.part[3], vzip2q_u16(high01, high23), weights + 3 * LANES);
    }
    return sums;
}

// The weights of element `at` of a period.
static const char *element_weights(const struct msc_simd_taps *t, int64_t at) {
    return (const char *)t->weights + at / LANES * taps_vector_bytes(t->n_taps);
}

#else

// Bytes and weights are multiplied as int16. Weights are [block][tap][element] as int16.
enum { BLOCK = MSC_SIMD_BLOCK };

static void pack_taps(void *packed, const int8_t weights[], int64_t n_channels, int n_taps,
                      int64_t period) {
    int16_t *to = packed;
    for (int64_t block = 0; block < period; block += BLOCK) {
        for (int tap = 0; tap < n_taps; tap++) {
            for (int64_t i = 0; i < BLOCK; i++) {
                *to++ = weights[(block + i) % n_channels * n_taps + tap];
            }
        }
    }
}

// The sums of up to 16 elements. `weights` are those of the first tap.
VECTOR_INLINE vint add_vector(const struct msc_simd_taps *t, int64_t at, int64_t n,
                              const int16_t *weights) {
    vint sums = vi_set(0);
    for (int tap = 0; tap < t->n_taps; tap++, weights += BLOCK) {
        uint8x16_t x = load_16_bytes(t->taps[tap] + at, n, t->flip);
        int16x8_t low = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(x)));
        int16x8_t high = vreinterpretq_s16_u16(vmovl_high_u8(x));
        int16x8_t w0 = vld1q_s16(weights), w1 = vld1q_s16(weights + 8);
        sums.part[0] = vmlal_s16(sums.part[0], vget_low_s16(low), vget_low_s16(w0));
        sums.part[1] = vmlal_high_s16(sums.part[1], low, w0);
        sums.part[2] = vmlal_s16(sums.part[2], vget_low_s16(high), vget_low_s16(w1));
        sums.part[3] = vmlal_high_s16(sums.part[3], high, w1);
    }
    return sums;
}

// The weights of element `at` of a period, for the first tap.
static const int16_t *element_weights(const struct msc_simd_taps *t, int64_t at) {
    return (const int16_t *)t->weights + at / BLOCK * BLOCK * t->n_taps + at % BLOCK;
}

#endif

// Adds up and stores up to 16 elements: element i of the run that begins at `first`, which is
// element `at` of the period.
VECTOR_INLINE void sum_vector(int32_t *out, const struct msc_simd_taps *t, int64_t first, int64_t i,
                              int64_t at, int64_t n) {
    vi_store_part(out + i, vmask_of(n), add_vector(t, first + i, n, element_weights(t, at)));
}

VECTOR_INLINE void quantize_vector(uint8_t *out, const struct msc_simd_taps *t, int64_t first,
                                   int64_t i, int64_t at, int64_t n,
                                   const struct msc_simd_finish *f, const struct bytes *b) {
    vint s = add_vector(t, first + i, n, element_weights(t, at));
    vfloat y = finish_sums(s, f, at, vmask_of(n));
    store_bytes_of(out + i, &y, 1, n, b);
}

static void add_taps(int32_t sums[], const struct msc_simd_taps *t) {
    const struct msc_simd_taps own = *t;
    for (int64_t run = 0; run < own.n_runs; run++, sums += own.n) {
        int64_t i = 0, at = 0, first = run * own.step;
        for (; i + LANES <= own.n; i += LANES) {
            sum_vector(sums, &own, first, i, at, LANES);
            at = at + LANES < own.period ? at + LANES : 0;
        }
        if (i < own.n) {
            sum_vector(sums, &own, first, i, at, own.n - i);
        }
    }
}

static void add_taps_quantize(uint8_t out[], const struct msc_simd_taps *t,
                              const struct msc_simd_finish *f, const struct msc_simd_bytes *q) {
    const struct msc_simd_taps own = *t;
    const struct msc_simd_finish finish_own = *f;
    const struct bytes b = load_bytes(q);
    for (int64_t run = 0; run < own.n_runs; run++, out += own.n) {
        int64_t i = 0, at = 0, first = run * own.step;
        for (; i + LANES <= own.n; i += LANES) {
            quantize_vector(out, &own, first, i, at, LANES, &finish_own, &b);
            at = at + LANES < own.period ? at + LANES : 0;
        }
        if (i < own.n) {
            quantize_vector(out, &own, first, i, at, own.n - i, &finish_own, &b);
        }
    }
}

#endif
