// Loops for every instruction set over contiguous elements: quantising, the epilogue of sums, and
// chains of element-wise operations in registers. Each instruction set includes them once.
#ifndef MSC_KERNELS_CPU_SIMD_CHAIN_LOOPS_H
#define MSC_KERNELS_CPU_SIMD_CHAIN_LOOPS_H

#include "kernels/cpu/simd_ops.h"

// ---- Quantising -------------------------------------------------------------------------------

VECTOR_TARGET static void quantize(uint8_t out[], const float x[], int64_t n,
                                   const struct msc_simd_bytes *q) {
    if (!q->is_corrected) {
        msc_simd_plain.quantize(out, x, n, q);
        return;
    }
    struct bytes b = load_bytes(q);
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        vfloat y[4];
        for (int k = 0; k < 4; k++) {
            y[k] = vf_load(x + i + LANES * k);
        }
        store_bytes_of(out + i, y, 4, 4 * LANES, &b);
    }
    for (; i < n; i += LANES) {
        vmask mask = vmask_of(n - i);
        vfloat y = vf_load_part(vf_set(0.0f), mask, x + i);
        vi_store_lowest(out + i, mask, to_integers(y, &b));
    }
}

// ---- Sums -------------------------------------------------------------------------------------

VECTOR_TARGET static void finish(float out[], const struct msc_simd_finish *f, int64_t n) {
    const struct msc_simd_finish own = *f;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vf_store(out + i, finish_16(&own, i, vmask_of(LANES)));
    }
    if (i < n) {
        vf_store_part(out + i, vmask_of(n - i), finish_16(&own, i, vmask_of(n - i)));
    }
}

// ---- Chains -----------------------------------------------------------------------------------

// A tile of TILE vectors passes through all instructions. Vectors that do not fill a tile follow
// one by one; the last of them may be partly masked.
enum { TILE = VECTOR_CHAIN, HALF = 4 };

// Stores n vectors as floats and bytes; n is 1 or a multiple of HALF.
VECTOR_INLINE void store_tile(const struct msc_simd_run *run, const struct bytes *b,
                              const vfloat y[], int n, int64_t i, vmask mask) {
    for (int k = 0; run->out && k < n; k++) {
        store_part(run->out + i + LANES * k, y[k], mask);
    }
    if (!run->bytes) {
        return;
    }
    if (n == 1) {
        vi_store_lowest(run->bytes + i, mask, to_integers(y[0], b));
        return;
    }
    for (int k = 0; k < n; k += HALF) {
        store_bytes_of(run->bytes + i + LANES * k, y + k, HALF, HALF * LANES, b);
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

VECTOR_INLINE void load_tile(vfloat y[], int n, const struct msc_simd_instr *instr,
                             const struct msc_simd_arrays *arrays, int64_t i, vmask mask) {
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
VECTOR_INLINE void begin_tile(vfloat y[], int n, const struct msc_simd_instr *instr,
                              const struct msc_simd_run *run, int64_t i, vmask mask) {
    if (instr->op == MSC_SIMD_LOAD) {
        load_tile(y, n, instr, &run->arrays, i, mask);
        return;
    }
    const struct msc_simd_finish f = finish_of(instr, run);
    for (int k = 0; k < n; k++) {
        y[k] = finish_16(&f, i + LANES * k, mask);
    }
}

VECTOR_INLINE void run_tile(int n, const struct msc_simd_chain *chain,
                            const struct msc_simd_run *run, const struct bytes *b, int64_t i,
                            vmask mask) {
    vfloat y[TILE], saved[TILE];
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
VECTOR_TARGET static void run_tiles(const struct msc_simd_chain *chain,
                                    const struct msc_simd_run *run, const struct bytes *b,
                                    int64_t i) {
    for (; i + TILE * LANES <= run->n; i += TILE * LANES) {
        run_tile(TILE, chain, run, b, i, vmask_of(LANES));
    }
    for (; i < run->n; i += LANES) {
        int64_t left = run->n - i;
        run_tile(1, chain, run, b, i, vmask_of(left));
    }
}

// ---- Short chains -----------------------------------------------------------------------------

// Computes whole tiles of a chain of one operation, on an array and possibly another array or a
// number. The functions that use TILES return the number of elements computed.
#define TILES(expression)                                                                          \
    for (; i + HALF * LANES <= run->n; i += HALF * LANES) {                                        \
        vfloat y[HALF];                                                                            \
        for (int k = 0; k < HALF; k++) {                                                           \
            vfloat a = vf_load(x + i + LANES * k);                                                 \
            y[k] = (expression);                                                                   \
        }                                                                                          \
        store_tile(run, b, y, HALF, i, vmask_of(LANES));                                           \
    }                                                                                              \
    return i

VECTOR_INLINE int64_t run_one(const struct msc_simd_instr *instr, const struct msc_simd_run *run,
                              const struct bytes *b, const float *x) {
    const float *other = run->arrays.at[instr->operands[0]];
    vfloat p = vf_set(instr->p[0]), p1 = vf_set(instr->p[1]);
    int64_t i = 0;
#define OTHER vf_load(other + i + LANES * k)
    switch (instr->op) {
    case MSC_SIMD_ADD:
        TILES(vf_add(a, OTHER));
    case MSC_SIMD_SUBTRACT:
        TILES(vf_subtract(a, OTHER));
    case MSC_SIMD_MULTIPLY:
        TILES(vf_multiply(a, OTHER));
    case MSC_SIMD_ADD_NUMBER:
        TILES(vf_add(a, p));
    case MSC_SIMD_SUBTRACT_NUMBER:
        TILES(vf_subtract(a, p));
    case MSC_SIMD_MULTIPLY_NUMBER:
        TILES(vf_multiply(a, p));
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
VECTOR_TARGET static int64_t run_short(const struct msc_simd_instr *instr,
                                       const struct msc_simd_run *run, const struct bytes *b,
                                       const float *x) {
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
VECTOR_TARGET static int64_t finish_bytes(uint8_t out[], const struct msc_simd_finish *f, int64_t n,
                                          const struct bytes *b) {
    int64_t i = 0;
    for (; i + HALF * LANES <= n; i += HALF * LANES) {
        vfloat y[HALF];
        for (int k = 0; k < HALF; k++) {
            y[k] = finish_16(f, i + LANES * k, vmask_of(LANES));
        }
        store_bytes_of(out + i, y, HALF, HALF * LANES, b);
    }
    return i;
}

VECTOR_TARGET static void run_chain(const struct msc_simd_chain *chain,
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

#endif
