// Adds the products of windows and weights in registers, for 64-bit Arm. simd_indirect_loops.h
// includes this file in place of loops of its own.
//
// A tile is six windows times 16 channels: 24 of the 32 registers hold its sums. There are three
// kinds of products of bytes; a source chooses one before its first include:
//
//     MSC_NEON_I8MM      2 windows x 2 channels x 8 bytes per instruction, uint8 with int8
//     MSC_NEON_DOTPROD   4 channels x 4 bytes per instruction, int8 with int8
//     neither            8 products as int16, added in pairs: every processor
//
// The last two flip the highest bit of the input, which subtracts 128, and begin with 128 times the
// sum of the weights. The result is the same sum of uint8 with int8.
//
// The instructions are written as volatile assembly because their order matters: it leaves exactly
// two registers for weights. Compilers reorder intrinsics and then spill sums to memory.
//
//     weights    [vector of channels][sums, if the input is flipped][run][group][channel][bytes]
#ifndef MSC_KERNELS_CPU_SIMD_NEON_WINDOWS_H
#define MSC_KERNELS_CPU_SIMD_NEON_WINDOWS_H

#include "kernels/cpu/simd_indirect_ends.h"

// WEIGHT_BYTES: weights of a channel in a group. UNIT: multiple to which the depth of bytes is
// padded.
// HEADER: bytes of the sums.
enum { QUAD = 16 }; // bytes per register
#if defined(MSC_NEON_I8MM)
enum { WEIGHT_BYTES = 8, UNIT = 8, FLIPS = 0, HEADER = 0 };
#elif defined(MSC_NEON_DOTPROD)
enum { WEIGHT_BYTES = 4, UNIT = 4, FLIPS = 1, HEADER = VECTOR };
#else
enum { WEIGHT_BYTES = 2, UNIT = 4, FLIPS = 1, HEADER = VECTOR };
#endif

// ---- Instructions -----------------------------------------------------------------------------

// Keeps reads and writes of memory by other code before or after the loops in assembly.
#define NEON_FENCE() __asm__ volatile("" ::: "memory")

#define NEON_LOAD(register, to, from, at)                                                          \
    __asm__ volatile("ldr %" register "0, [%1, %2]" : "=w"(to) : "r"(from), "r"(at))

// Loads two registers of weights and moves the address behind them.
#define NEON_LOAD_WEIGHTS(a, b, from)                                                              \
    __asm__ volatile("ldp %q0, %q1, [%2], #32" : "=&w"(a), "=&w"(b), "+r"(from))

// Loads 16, 8 or 4 bytes; the other bytes of the register become 0.
VECTOR_INLINE uint8x16_t load_bytes_at(int bytes, const char *from, int64_t at) {
    uint8x16_t x;
    switch (bytes) {
    case 16:
        NEON_LOAD("q", x, from, at);
        break;
    case 8:
        NEON_LOAD("d", x, from, at);
        break;
    default:
        NEON_LOAD("s", x, from, at);
        break;
    }
    return x;
}

VECTOR_INLINE void flip_all(uint8x16_t x[], int n) {
    uint8x16_t flip;
    __asm__ volatile("movi %0.16b, #128" : "=w"(flip));
    UNROLL for (int p = 0; p < n; p++) {
        __asm__ volatile("eor %0.16b, %0.16b, %1.16b" : "+w"(x[p]) : "w"(flip));
    }
}

#define NEON_BY_LANE(instruction, from, lane)                                                      \
    case lane:                                                                                     \
        __asm__ volatile(instruction " %0.4s, %1." from "[" #lane "]"                              \
                         : "+w"(*sum)                                                              \
                         : "w"(weights), "w"(x));                                                  \
        break
#define NEON_BY_LANES(instruction, from)                                                           \
    switch (lane) {                                                                                \
        NEON_BY_LANE(instruction, from, 0);                                                        \
        NEON_BY_LANE(instruction, from, 1);                                                        \
        NEON_BY_LANE(instruction, from, 2);                                                        \
        NEON_BY_LANE(instruction, from, 3);                                                        \
    }

// Multiplies the weights of four channels by one group of a window: a lane of x.
VECTOR_INLINE void add_lane(enum operands operands, int32x4_t *sum, uint8x16_t weights,
                            uint8x16_t x, int lane) {
    if (operands == OF_FLOATS) {
        NEON_BY_LANES("fmla", "4s, %2.s")
        return;
    }
#ifdef MSC_NEON_DOTPROD
    NEON_BY_LANES("sdot", "16b, %2.4b")
#endif
}

#undef NEON_BY_LANES
#undef NEON_BY_LANE

// ---- Lanes ------------------------------------------------------------------------------------

// Adds the products of the first `groups` groups of n windows. Returns the address of the weights
// that follow.
VECTOR_INLINE const char *add_lanes(enum operands operands, vint s[], int n, const uint8x16_t x[],
                                    int groups, const char *weights) {
    UNROLL for (int lane = 0; lane < groups; lane++) {
        UNROLL for (int i = 0; i < PARTS; i += 2) {
            uint8x16_t a, b;
            NEON_LOAD_WEIGHTS(a, b, weights);
            UNROLL for (int p = 0; p < n; p++) {
                add_lane(operands, &s[p].part[i], a, x[p], lane);
            }
            UNROLL for (int p = 0; p < n; p++) {
                add_lane(operands, &s[p].part[i + 1], b, x[p], lane);
            }
        }
    }
    return weights;
}

VECTOR_INLINE const char *add_some_lanes(enum operands operands, vint s[], int n,
                                         const char *const in[], int64_t at, int groups,
                                         const char *weights) {
    uint8x16_t x[MOST_WINDOWS];
    UNROLL for (int p = 0; p < n; p++) {
        x[p] = load_bytes_at(groups * GROUP, in[p], at);
    }
    if (operands == OF_BYTES) {
        flip_all(x, n);
    }
    return add_lanes(operands, s, n, x, groups, weights);
}

VECTOR_INLINE const char *add_run_by_lanes(enum operands operands, vint s[], int n,
                                           const char *const in[], int64_t depth,
                                           const char *weights) {
    int64_t k = 0;
    for (; k + QUAD <= depth; k += QUAD) {
        weights = add_some_lanes(operands, s, n, in, k, QUAD / GROUP, weights);
    }
    if (k + QUAD / 2 <= depth) {
        weights = add_some_lanes(operands, s, n, in, k, QUAD / 2 / GROUP, weights);
        k += QUAD / 2;
    }
    for (; k < depth; k += GROUP) {
        weights = add_some_lanes(operands, s, n, in, k, 1, weights);
    }
    return weights;
}

// ---- Pairs of bytes ---------------------------------------------------------------------------

// Multiplies two bytes of a window by those of eight channels, and adds each pair of products.
VECTOR_INLINE void add_pair(int32x4_t sums[2], uint8x16_t weights, uint8x16_t x) {
    int16x8_t low, high;
    __asm__ volatile("smull %0.8h, %1.8b, %2.8b" : "=w"(low) : "w"(weights), "w"(x));
    __asm__ volatile("smull2 %0.8h, %1.16b, %2.16b" : "=w"(high) : "w"(weights), "w"(x));
    __asm__ volatile("sadalp %0.4s, %1.8h" : "+w"(sums[0]) : "w"(low));
    __asm__ volatile("sadalp %0.4s, %1.8h" : "+w"(sums[1]) : "w"(high));
}

VECTOR_INLINE const char *add_run_by_pairs(vint s[], int n, const char *const in[], int64_t depth,
                                           const char *weights) {
    for (int64_t k = 0; k < depth; k += GROUP) {
        uint8x16_t a, b, c, d;
        NEON_LOAD_WEIGHTS(a, b, weights);
        NEON_LOAD_WEIGHTS(c, d, weights);
        UNROLL for (int p = 0; p < n; p++) {
            uint8x16_t x = load_bytes_at(GROUP, in[p], k), y;
            flip_all(&x, 1);
            __asm__ volatile("dup %0.8h, %1.h[0]" : "=w"(y) : "w"(x));
            add_pair(&s[p].part[0], a, y);
            add_pair(&s[p].part[2], b, y);
            __asm__ volatile("dup %0.8h, %1.h[1]" : "=w"(y) : "w"(x));
            add_pair(&s[p].part[0], c, y);
            add_pair(&s[p].part[2], d, y);
        }
    }
    return weights;
}

// ---- Matrices ---------------------------------------------------------------------------------

#ifdef MSC_NEON_I8MM

// Sums of pairs of windows. A register has the sums of two windows and two channels.
enum { PAIRS = MOST_WINDOWS / 2, COUPLES = LANES / 2 };

#define NEON_ZIP(part, to, a, b)                                                                   \
    __asm__ volatile("zip" part " %0.2d, %1.2d, %2.2d" : "=&w"(to) : "w"(a), "w"(b))

// Multiplies 8 bytes of each window.
VECTOR_INLINE const char *add_matrices(int32x4_t sums[PAIRS][COUPLES], int pairs,
                                       const uint8x16_t x[], const char *weights) {
    UNROLL for (int c = 0; c < COUPLES; c += 2) {
        uint8x16_t a, b;
        NEON_LOAD_WEIGHTS(a, b, weights);
        UNROLL for (int p = 0; p < pairs; p++) {
            __asm__ volatile("usmmla %0.4s, %1.16b, %2.16b" : "+w"(sums[p][c]) : "w"(x[p]), "w"(a));
        }
        UNROLL for (int p = 0; p < pairs; p++) {
            __asm__ volatile("usmmla %0.4s, %1.16b, %2.16b"
                             : "+w"(sums[p][c + 1])
                             : "w"(x[p]), "w"(b));
        }
    }
    return weights;
}

// Multiplies 16, 8 or 4 bytes of each window, from `at` on.
VECTOR_INLINE const char *add_some_matrices(int32x4_t sums[PAIRS][COUPLES], int n, int bytes,
                                            const char *const in[], int64_t at,
                                            const char *weights) {
    const int pairs = (n + 1) / 2;
    uint8x16_t low[PAIRS], high[PAIRS];
    UNROLL for (int p = 0; p < pairs; p++) {
        uint8x16_t first = load_bytes_at(bytes, in[2 * p], at), second = first;
        if (2 * p + 1 < n) {
            second = load_bytes_at(bytes, in[2 * p + 1], at);
        }
        NEON_ZIP("1", low[p], first, second);
        if (bytes == QUAD) {
            NEON_ZIP("2", high[p], first, second);
        }
    }
    weights = add_matrices(sums, pairs, low, weights);
    return bytes == QUAD ? add_matrices(sums, pairs, high, weights) : weights;
}

VECTOR_INLINE const char *add_run_by_matrices(int32x4_t sums[PAIRS][COUPLES], int n,
                                              const char *const in[], int64_t depth,
                                              const char *weights) {
    int64_t k = 0;
    for (; k + QUAD <= depth; k += QUAD) {
        weights = add_some_matrices(sums, n, QUAD, in, k, weights);
    }
    if (depth - k > WEIGHT_BYTES) {
        weights = add_some_matrices(sums, n, WEIGHT_BYTES, in, k, weights);
        k += WEIGHT_BYTES;
    }
    // The last group of a run may read only GROUP - 1 bytes after the run.
    if (depth - k > GROUP) {
        weights = add_some_matrices(sums, n, WEIGHT_BYTES, in, k, weights);
    } else if (depth > k) {
        weights = add_some_matrices(sums, n, GROUP, in, k, weights);
    }
    return weights;
}

// Exchanges the middle elements of two windows and four channels: sums by window become sums by
// couple of channels, or the other way round.
VECTOR_INLINE void exchange(int32x4_t *a, int32x4_t *b) {
    int64x2_t first = vreinterpretq_s64_s32(*a), second = vreinterpretq_s64_s32(*b);
    *a = vreinterpretq_s32_s64(vzip1q_s64(first, second));
    *b = vreinterpretq_s32_s64(vzip2q_s64(first, second));
}

VECTOR_INLINE void pair_sums(int32x4_t sums[PAIRS][COUPLES], const vint s[], int n) {
    UNROLL for (int i = 0; i < (n + 1) / 2 * PARTS; i++) {
        int p = i / PARTS * 2, part = i % PARTS;
        int32x4_t *to = &sums[p / 2][2 * part];
        to[0] = s[p].part[part];
        to[1] = s[p + 1 < n ? p + 1 : p].part[part];
        exchange(&to[0], &to[1]);
    }
}

VECTOR_INLINE void part_sums(vint s[], int n, int32x4_t sums[PAIRS][COUPLES]) {
    UNROLL for (int i = 0; i < (n + 1) / 2 * PARTS; i++) {
        int p = i / PARTS * 2, part = i % PARTS;
        int32x4_t first = sums[p / 2][2 * part], second = sums[p / 2][2 * part + 1];
        exchange(&first, &second);
        s[p].part[part] = first;
        if (p + 1 < n) {
            s[p + 1].part[part] = second;
        }
    }
}

#endif

// ---- Windows ----------------------------------------------------------------------------------

static inline bool is_flipped(enum operands operands) {
    return operands == OF_BYTES && FLIPS;
}

// The bytes of a vector of channels in packed weights.
static int64_t vector_bytes(enum operands operands, int64_t n_runs, int64_t depth) {
    int64_t unit = operands == OF_BYTES ? UNIT : GROUP;
    return (is_flipped(operands) ? HEADER : 0) +
           n_runs * ((depth + unit - 1) / unit * unit) * LANES;
}

// What sums begin with.
VECTOR_INLINE vint first_sums(enum operands operands, const struct block *b) {
    return is_flipped(operands) ? vi_load(b->weights) : vi_set(0);
}

VECTOR_INLINE void set_inputs(const char *x[], int n, const struct msc_simd_indirect *w, int64_t at,
                              int64_t run) {
    UNROLL for (int p = 0; p < n; p++) {
        x[p] = (const char *)w->in + w->at[at + p] + w->runs[run];
    }
}

VECTOR_INLINE void add_windows_by_lanes(enum operands operands, vint s[], int n,
                                        const struct block *b, int64_t at) {
    const char *x[MOST_WINDOWS], *weights = b->weights + (is_flipped(operands) ? HEADER : 0);
    for (int64_t run = 0; run < b->w->n_runs; run++) {
        set_inputs(x, n, b->w, at, run);
        weights = add_run_by_lanes(operands, s, n, x, b->w->depth, weights);
    }
}

VECTOR_INLINE void add_windows_of_bytes(vint s[], int n, const struct block *b, int64_t at) {
#if defined(MSC_NEON_I8MM)
    const char *x[MOST_WINDOWS], *weights = b->weights + HEADER;
    int32x4_t sums[PAIRS][COUPLES];
    pair_sums(sums, s, n);
    for (int64_t run = 0; run < b->w->n_runs; run++) {
        set_inputs(x, n, b->w, at, run);
        weights = add_run_by_matrices(sums, n, x, b->w->depth, weights);
    }
    part_sums(s, n, sums);
#elif defined(MSC_NEON_DOTPROD)
    add_windows_by_lanes(OF_BYTES, s, n, b, at);
#else
    const char *x[MOST_WINDOWS], *weights = b->weights + HEADER;
    for (int64_t run = 0; run < b->w->n_runs; run++) {
        set_inputs(x, n, b->w, at, run);
        weights = add_run_by_pairs(s, n, x, b->w->depth, weights);
    }
#endif
}

// Adds the products of n windows with the only vector of channels of a block.
VECTOR_INLINE void add_windows(enum operands operands, vint s[], int n, int vectors,
                               const struct block *b, int64_t at) {
    (void)vectors;
    NEON_FENCE();
    if (operands == OF_BYTES) {
        add_windows_of_bytes(s, n, b, at);
    } else {
        add_windows_by_lanes(OF_FLOATS, s, n, b, at);
    }
    NEON_FENCE();
}

// Quantises the sums of n windows. They are stored first, because they and the constants do not fit
// the registers together.
VECTOR_INLINE void quantize_windows(enum operands operands, const vint s[], int n,
                                    const struct block *b, int64_t at) {
    const vfloat bias = vf_load(b->bias);
    const vfloat scale = operands == OF_BYTES ? vf_load(b->scales) : vf_set(1.0f);
    const int64_t n_lanes = b->n_lanes, step = b->out_step;
    struct bytes q = b->q;
    q.scale = vf_of_equal(q.scale);
    q.reciprocal = vf_of_equal(q.reciprocal);
    vint sums[MOST_WINDOWS];
    UNROLL for (int p = 0; p < n; p++) {
        sums[p] = s[p];
    }
    __asm__ volatile("" ::"r"(sums) : "memory");
    uint8_t *out = (uint8_t *)b->out + at * step;
    for (int p = 0; p < n; p++, out += step) {
        vfloat y =
            operands == OF_BYTES ? vf_multiply(scale, vf_of_ints(sums[p])) : vf_of_bits(sums[p]);
        vint x = vi_of_numbers(divided(vf_add(y, bias), &q));
        vi_store_bytes(out, &x, 1, n_lanes, &q.limits);
    }
}

#undef NEON_ZIP
#undef NEON_LOAD
#undef NEON_LOAD_WEIGHTS
#undef NEON_FENCE

#endif
