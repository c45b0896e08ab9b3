// Products of windows for every 64-bit Arm processor.
#include "kernels/cpu/simd_neon_products.h"

const struct msc_simd_product msc_simd__neon_bytes = NEON_BYTES_PRODUCT("neon");
const struct msc_simd_product msc_simd__neon_floats = {.isa = "neon",
                                                       .weight_bytes = sizeof(float),
                                                       .packed_bytes = packed_bytes,
                                                       .pack = pack,
                                                       .pack_rows = pack_rows,
                                                       .scratch_bytes = scratch_bytes,
                                                       .multiply = multiply_floats,
                                                       .multiply_epilogue =
                                                           multiply_floats_epilogue};
