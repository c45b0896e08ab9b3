// Loops for 64-bit Arm processors with dot products of bytes (FEAT_DotProd): Cortex-A55, A75 and
// later. Only this file is compiled for these instructions.
#define MSC_NEON_DOTPROD
#define MSC_VECTOR_BYTES_ONLY
#include "kernels/cpu/simd_neon_products.h"

#include "kernels/cpu/simd_neon_taps.h"

static const struct msc_simd_product bytes = NEON_BYTES_PRODUCT("neon_dotprod");

const struct msc_simd msc_simd__neon_dotprod = {
    NEON_COMMON,          .isa = "neon_dotprod",
    .bytes = &bytes,      .pack_taps = pack_taps,
    .add_taps = add_taps, .add_taps_quantize = add_taps_quantize,
};
