// Products of windows for AVX-512.
#include "kernels/cpu/simd_avx512.h"

#include "kernels/cpu/simd_indirect_loops.h"

const struct msc_simd_product msc_simd__avx512_bytes = {.isa = "avx512_vnni",
                                                        .weight_bytes = 1,
                                                        .packed_bytes = packed_bytes,
                                                        .pack = pack,
                                                        .pack_rows = pack_rows,
                                                        .scratch_bytes = scratch_bytes,
                                                        .multiply = multiply_bytes,
                                                        .multiply_epilogue =
                                                            multiply_bytes_epilogue};
const struct msc_simd_product msc_simd__avx512_floats = {.isa = "avx512_vnni",
                                                         .weight_bytes = sizeof(float),
                                                         .packed_bytes = packed_bytes,
                                                         .pack = pack,
                                                         .pack_rows = pack_rows,
                                                         .scratch_bytes = scratch_bytes,
                                                         .multiply = multiply_floats,
                                                         .multiply_epilogue =
                                                             multiply_floats_epilogue};
