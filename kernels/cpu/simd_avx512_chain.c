// Runs chains of element-wise operations in registers.
#include "kernels/cpu/simd_avx512.h"

// A tile of TILE vectors passes through all instructions. Vectors that do not fill a tile follow
// one by one; the last of them may be partly masked.
enum { LANES = 16, TILE = 8, HALF = 4 };

// Stores n vectors as floats and bytes; n is 1 or a multiple of HALF.
AVX512 INLINE void store_tile(const struct msc_simd_run *run, const struct bytes *b,
                              const __m512 y[], int n, int64_t i, __mmask16 mask) {
    for (int k = 0; run->out && k < n; k++) {
        if (mask == 0xffff) {
            _mm512_storeu_ps(run->out + i + LANES * k, y[k]);
        } else {
            _mm512_mask_storeu_ps(run->out + i, mask, y[0]);
        }
    }
    if (!run->bytes) {
        return;
    }
    if (n == 1) {
        _mm512_mask_cvtepi32_storeu_epi8(run->bytes + i, mask, to_integers(y[0], b));
        return;
    }
    for (int k = 0; k < n; k += HALF) {
        _mm512_storeu_si512(run->bytes + i + LANES * k, to_bytes(y + k, b));
    }
}

// ---- Any chain --------------------------------------------------------------------------------

static struct msc_simd_finish finish_of(const struct msc_simd_instr *instr,
                                        const struct msc_simd_run *run) {
    const float *const *arrays = run->arrays.at;
    return (struct msc_simd_finish){
        .sums = (const int32_t *)(const void *)arrays[instr->operands[0]],
        .scales = arrays[instr->operands[1]],
        .bias = arrays[instr->operands[2]],
        .offsets = (const int32_t *)(const void *)arrays[instr->operands[3]],
        .low = instr->p[0],
        .high = instr->p[1]};
}

AVX512 INLINE void load_tile(__m512 y[], int n, const struct msc_simd_instr *instr,
                             const struct msc_simd_arrays *arrays, int64_t i, __mmask16 mask) {
    const float *array = arrays->at[instr->operands[0]];
    const struct msc_quant *quant = msc_simd_quant_of(arrays, instr);
    if (!quant) {
        for (int k = 0; k < n; k++) {
            y[k] = load_part(array, i + LANES * k, mask);
        }
        return;
    }
    const struct integers x = load_integers(array, quant);
    for (int k = 0; k < n; k++) {
        y[k] = integers_part(&x, i + LANES * k, mask);
    }
}

// Runs the first instruction.
AVX512 INLINE void begin_tile(__m512 y[], int n, const struct msc_simd_instr *instr,
                              const struct msc_simd_run *run, int64_t i, __mmask16 mask) {
    if (instr->op == MSC_SIMD_LOAD) {
        load_tile(y, n, instr, &run->arrays, i, mask);
        return;
    }
    const struct msc_simd_finish f = finish_of(instr, run);
    for (int k = 0; k < n; k++) {
        y[k] = finish_16(&f, i + LANES * k, mask);
    }
}

AVX512 INLINE void avx512_chain_run_tile(int n, const struct msc_simd_chain *chain,
                                         const struct msc_simd_run *run, const struct bytes *b,
                                         int64_t i, __mmask16 mask) {
    __m512 y[TILE], saved[TILE];
    begin_tile(y, n, &chain->instrs[0], run, i, mask);
    for (int k = 0; k < n; k++) {
        saved[k] = y[k];
    }
    const struct tile tile = {.per_row = n, .begin = i, .mask = mask};
    for (int32_t l = 1; l < chain->n_instrs; l++) {
        run_instr(y, saved, n, &chain->instrs[l], &run->arrays, &tile);
    }
    store_tile(run, b, y, n, i, mask);
}

// Runs the chain from element i on.
AVX512 static void run_tiles(const struct msc_simd_chain *chain, const struct msc_simd_run *run,
                             const struct bytes *b, int64_t i) {
    for (; i + TILE * LANES <= run->n; i += TILE * LANES) {
        avx512_chain_run_tile(TILE, chain, run, b, i, 0xffff);
    }
    for (; i < run->n; i += LANES) {
        int64_t left = run->n - i;
        avx512_chain_run_tile(1, chain, run, b, i,
                              left < LANES ? (__mmask16)((1u << left) - 1) : (__mmask16)0xffff);
    }
}

// ---- Short chains -----------------------------------------------------------------------------

// Computes whole tiles of a chain of one operation, on an array and possibly another array or a
// number. The functions that use TILES return the number of elements computed.
#define TILES(expression)                                                                          \
    for (; i + HALF * LANES <= run->n; i += HALF * LANES) {                                        \
        __m512 y[HALF];                                                                            \
        for (int k = 0; k < HALF; k++) {                                                           \
            __m512 a = _mm512_loadu_ps(x + i + LANES * k);                                         \
            y[k] = (expression);                                                                   \
        }                                                                                          \
        store_tile(run, b, y, HALF, i, 0xffff);                                                    \
    }                                                                                              \
    return i

AVX512 INLINE int64_t run_one(const struct msc_simd_instr *instr, const struct msc_simd_run *run,
                              const struct bytes *b, const float *x) {
    const float *other = run->arrays.at[instr->operands[0]];
    __m512 p = _mm512_set1_ps(instr->p[0]), p1 = _mm512_set1_ps(instr->p[1]);
    int64_t i = 0;
#define OTHER _mm512_loadu_ps(other + i + LANES * k)
    switch (instr->op) {
    case MSC_SIMD_ADD:
        TILES(_mm512_add_ps(a, OTHER));
    case MSC_SIMD_SUBTRACT:
        TILES(_mm512_sub_ps(a, OTHER));
    case MSC_SIMD_MULTIPLY:
        TILES(_mm512_mul_ps(a, OTHER));
    case MSC_SIMD_ADD_NUMBER:
        TILES(_mm512_add_ps(a, p));
    case MSC_SIMD_SUBTRACT_NUMBER:
        TILES(_mm512_sub_ps(a, p));
    case MSC_SIMD_MULTIPLY_NUMBER:
        TILES(_mm512_mul_ps(a, p));
    case MSC_SIMD_RELU:
        TILES(relu(a));
    case MSC_SIMD_CLIP:
        TILES(clip(a, p, p1));
    case MSC_SIMD_HARD_SWISH:
        TILES(hard_swish(a));
    default:
        return 0;
    }
}

// Runs whole tiles of a short chain that writes either floats or bytes. Each case gets a loop of
// its own, so that no loop has to test what it writes.
AVX512 static int64_t run_short(const struct msc_simd_instr *instr, const struct msc_simd_run *run,
                                const struct bytes *b, const float *x) {
    struct msc_simd_run own = *run;
    if (!run->bytes) {
        own.bytes = NULL;
        return run_one(instr, &own, b, x);
    }
    if (!run->out) {
        own.out = NULL;
        return run_one(instr, &own, b, x);
    }
    return 0;
}

// The most frequent chain: scales sums and writes them only as bytes.
AVX512 static int64_t finish_bytes(uint8_t out[], const struct msc_simd_finish *f, int64_t n,
                                   const struct bytes *b) {
    int64_t i = 0;
    for (; i + HALF * LANES <= n; i += HALF * LANES) {
        __m512 y[HALF];
        for (int k = 0; k < HALF; k++) {
            y[k] = finish_16(f, i + LANES * k, 0xffff);
        }
        _mm512_storeu_si512(out + i, to_bytes(y, b));
    }
    return i;
}

AVX512 void msc_simd__run_chain(const struct msc_simd_chain *chain,
                                const struct msc_simd_run *run) {
    static const struct msc_simd_bytes none = {.scale = 1.0f};
    const struct msc_simd_instr *instrs = chain->instrs;
    struct bytes b = load_bytes(run->bytes ? run->q : &none);
    int64_t made = 0;
    if (chain->n_instrs == 1 && instrs[0].op == MSC_SIMD_FINISH && !run->out) {
        struct msc_simd_finish f = finish_of(&instrs[0], run);
        made = finish_bytes(run->bytes, &f, run->n, &b);
    } else if (chain->n_instrs == 2 && instrs[0].op == MSC_SIMD_LOAD && !run->arrays.quants) {
        made = run_short(&instrs[1], run, &b, run->arrays.at[instrs[0].operands[0]]);
    }
    run_tiles(chain, run, &b, made);
}
