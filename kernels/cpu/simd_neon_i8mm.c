// Loops for 64-bit Arm processors with products of matrices of bytes (FEAT_I8MM): Neoverse V1 and
// N2, Cortex-A510, A710 and later. Only this file is compiled for these instructions.
#define MSC_NEON_I8MM
#define MSC_VECTOR_BYTES_ONLY
#include "kernels/cpu/simd_neon_products.h"

#include "kernels/cpu/simd_neon_taps.h"

static const struct msc_simd_product bytes = NEON_BYTES_PRODUCT("neon_i8mm");

const struct msc_simd msc_simd__neon_i8mm = {
    NEON_COMMON,          .isa = "neon_i8mm",
    .bytes = &bytes,      .pack_taps = pack_taps,
    .add_taps = add_taps, .add_taps_quantize = add_taps_quantize,
};
