// Products of windows for AVX2. Bytes use the loops of simd_avx2_lists.h.
#define MSC_VECTOR_AVX2
#define MSC_VECTOR_LISTS
#include "kernels/cpu/simd_tables.h"

#include "kernels/cpu/simd_indirect_loops.h"

const struct msc_simd_product msc_simd__avx2_bytes = {.isa = "avx2",
                                                      .weight_bytes = sizeof(int16_t),
                                                      .packed_bytes = lists_packed_bytes,
                                                      .pack = lists_pack,
                                                      .pack_rows = lists_pack_rows,
                                                      .scratch_bytes = lists_scratch_bytes,
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
