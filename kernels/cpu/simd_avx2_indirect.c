// Products of windows for AVX2.
//
// Bytes are multiplied as int16. A pair of elements is what a group of four bytes is elsewhere, and
// the weights are packed as int16. Windows are copied as int16 into scratch memory, several at a
// time, before they are multiplied.
#define MSC_VECTOR_AVX2
#include "kernels/cpu/simd_tables.h"

#include "kernels/cpu/simd_indirect_loops.h"

enum { PAIR = 2 };

// ---- Bytes ------------------------------------------------------------------------------------

static int64_t run_bytes(int64_t depth) {
    return round_up(depth, PAIR) * (int64_t)sizeof(int16_t);
}

static int64_t window_bytes(int64_t n_runs, int64_t depth) {
    return n_runs * run_bytes(depth);
}

static size_t pairs_packed_bytes(int64_t channels, int64_t n_runs, int64_t depth) {
    return packed_bytes(channels, 1, window_bytes(n_runs, depth));
}

// The place of an element of the weights, which are [vector][pair][channel][PAIR]. `k` is the
// position among the elements of a window, in which each run has an even number of elements.
static int16_t *weight_at(void *packed, int64_t n_pairs, int64_t channel, int64_t k) {
    int64_t pair = channel / LANES * n_pairs + k / PAIR;
    return (int16_t *)packed + (pair * LANES + channel % LANES) * PAIR + k % PAIR;
}

static void pairs_pack(void *packed, const void *weights, int64_t channels, int64_t n_runs,
                       int64_t depth) {
    const int8_t *from = weights;
    int64_t even = round_up(depth, PAIR), n_pairs = n_runs * even / PAIR;
    memset(packed, 0, pairs_packed_bytes(channels, n_runs, depth));
    for (int64_t c = 0; c < channels; c++) {
        for (int64_t run = 0; run < n_runs; run++) {
            for (int64_t k = 0; k < depth; k++) {
                *weight_at(packed, n_pairs, c, run * even + k) = *from++;
            }
        }
    }
}

static void pairs_pack_rows(void *packed, const void *rows, int64_t channels, int64_t n_rows,
                            int64_t element) {
    const int8_t *from = rows;
    int64_t n_pairs = round_up(n_rows, PAIR) / PAIR;
    (void)element;
    memset(packed, 0, pairs_packed_bytes(channels, 1, n_rows));
    for (int64_t row = 0; row < n_rows; row++) {
        for (int64_t c = 0; c < channels; c++) {
            *weight_at(packed, n_pairs, c, row) = *from++;
        }
    }
}

// The number of windows that are copied at a time. The copies fit the first-level cache, unless 12
// of them are larger.
static int64_t windows_per_copy(int64_t n_bytes) {
    const int64_t most = 24 * 1024;
    int64_t n = most / n_bytes / MOST_WINDOWS * MOST_WINDOWS;
    return n < 2 * MOST_WINDOWS ? 2 * MOST_WINDOWS : n > 96 ? 96 : n;
}

// Scratch memory has the offsets of the copies, then the copies.
static int64_t offsets_bytes(int64_t n_windows) {
    return round_up(n_windows * (int64_t)sizeof(int64_t), VECTOR);
}

static size_t pairs_scratch_bytes(int64_t n_runs, int64_t depth) {
    int64_t n_bytes = window_bytes(n_runs, depth), n = windows_per_copy(n_bytes);
    return (size_t)(offsets_bytes(n) + round_up(n * n_bytes + VECTOR, VECTOR));
}

// Copies n bytes as int16. Reads whole groups, and may write up to 4 bytes after the copy.
VECTOR_TARGET static void widen(char *to, const char *from, int64_t n) {
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(from + i));
        _mm256_storeu_si256((__m256i *)(void *)(to + 2 * i), _mm256_cvtepu8_epi16(bytes));
    }
    for (; i < n; i += GROUP) {
        int32_t group;
        memcpy(&group, from + i, sizeof(group));
        __m128i words = _mm_cvtepu8_epi16(_mm_cvtsi32_si128(group));
        _mm_storel_epi64((__m128i *)(void *)(to + 2 * i), words);
    }
}

static void multiply_pairs(void *sums, const struct msc_simd_indirect *w,
                           const struct msc_simd_epilogue *epilogue) {
    int64_t n_bytes = window_bytes(w->n_runs, w->depth), most = windows_per_copy(n_bytes);
    int64_t *at = w->scratch;
    char *copies = (char *)w->scratch + offsets_bytes(most);
    struct msc_simd_indirect part = *w;
    part.in = copies;
    part.at = at;
    part.n_runs = 1;
    part.runs = (const int64_t[]){0};
    part.depth = n_bytes;
    for (int64_t i = 0; i < most; i++) {
        at[i] = i * n_bytes;
    }
    for (int64_t first = 0; first < w->n; first += part.n) {
        part.n = w->n - first < most ? w->n - first : most;
        for (int64_t i = 0; i < part.n; i++) {
            for (int64_t run = 0; run < w->n_runs; run++) {
                widen(copies + at[i] + run * run_bytes(w->depth),
                      (const char *)w->in + w->at[first + i] + w->runs[run], w->depth);
            }
        }
        if (epilogue) {
            struct msc_simd_epilogue own = *epilogue;
            own.begin += first * w->channels;
            multiply(OF_BYTES, NULL, &part, &own);
        } else {
            multiply(OF_BYTES, (int32_t *)sums + first * w->channels, &part, NULL);
        }
    }
}

static void multiply_bytes(void *sums, const struct msc_simd_indirect *w) {
    multiply_pairs(sums, w, NULL);
}

static void multiply_bytes_epilogue(const struct msc_simd_indirect *w,
                                    const struct msc_simd_epilogue *epilogue) {
    multiply_pairs(NULL, w, epilogue);
}

const struct msc_simd_product msc_simd__avx2_bytes = {.isa = "avx2",
                                                      .weight_bytes = sizeof(int16_t),
                                                      .packed_bytes = pairs_packed_bytes,
                                                      .pack = pairs_pack,
                                                      .pack_rows = pairs_pack_rows,
                                                      .scratch_bytes = pairs_scratch_bytes,
                                                      .multiply = multiply_bytes,
                                                      .multiply_epilogue = multiply_bytes_epilogue};
const struct msc_simd_product msc_simd__avx2_floats = {.isa = "avx2",
                                                       .weight_bytes = sizeof(float),
                                                       .packed_bytes = packed_bytes,
                                                       .pack = pack,
                                                       .pack_rows = pack_rows,
                                                       .scratch_bytes = scratch_bytes,
                                                       .multiply = multiply_floats,
                                                       .multiply_epilogue =
                                                           multiply_floats_epilogue};
