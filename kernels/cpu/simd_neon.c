// Loops for every 64-bit Arm processor (NEON). The tables of other levels use most of them too.
#include "kernels/cpu/simd_neon.h"

#include "kernels/cpu/simd_chain_loops.h"
#include "kernels/cpu/simd_neon_taps.h"
#include "kernels/cpu/simd_pool_loops.h"
#include "kernels/cpu/simd_softmax_loops.h"

// ---- Pooling of bytes -------------------------------------------------------------------------

// The largest taps of 16 channels or, in the last vector of a window, of n channels.
static void largest_vector(uint8_t *out, const uint8_t *x, const struct msc_simd_pool *p, int64_t n,
                           uint8_t flip) {
    uint8x16_t most = vdupq_n_u8(0);
    for (int64_t t = 0; t < p->n_taps; t++) {
        most = vmaxq_u8(most, load_16_bytes(x + p->offsets[t], n, flip));
    }
    store_16_bytes(out, veorq_u8(most, vdupq_n_u8(flip)), n);
}

void msc_simd__neon_largest(uint8_t out[], const uint8_t x[], const struct msc_simd_pool *p,
                            uint8_t flip) {
    const struct msc_simd_pool own = *p;
    for (int64_t w = 0; w < own.n_windows; w++) {
        for (int64_t i = 0; i < own.channels; i += LANES) {
            largest_vector(out + i, x + i, &own, own.channels - i, flip);
        }
        out += own.channels;
        x += own.step;
    }
}

// ---- Table ------------------------------------------------------------------------------------

void msc_simd__neon_quantize(uint8_t out[], const float x[], int64_t n,
                             const struct msc_simd_bytes *q) {
    quantize(out, x, n, q);
}

void msc_simd__neon_finish(float out[], const struct msc_simd_finish *f, int64_t n) {
    finish(out, f, n);
}

void msc_simd__neon_largest_float(float out[], const float x[], const struct msc_simd_pool *p) {
    largest_float(out, x, p);
}

void msc_simd__neon_mean(float out[], const float x[], const struct msc_simd_pool *p,
                         float divisor) {
    mean(out, x, p, divisor);
}

void msc_simd__neon_softmax(float out[], const float x[], int64_t n) {
    softmax(out, x, n);
}

void msc_simd__neon_log_softmax(float out[], const float x[], int64_t n) {
    log_softmax(out, x, n);
}

void msc_simd__neon_run_chain(const struct msc_simd_chain *chain, const struct msc_simd_run *run) {
    run_chain(chain, run);
}

const struct msc_simd msc_simd__neon = {
    NEON_COMMON,
    .isa = "neon",
    .bytes = &msc_simd__neon_bytes,
    .pack_taps = pack_taps,
    .add_taps = add_taps,
    .add_taps_quantize = add_taps_quantize,
};
