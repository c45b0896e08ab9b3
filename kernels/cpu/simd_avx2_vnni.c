// Products of bytes and of int16 and depthwise convolutions for AVX2 with AVX-VNNI. All other loops
// are those of AVX2.
#define MSC_VECTOR_AVX2
#define MSC_VECTOR_AVX2_VNNI
#define MSC_VECTOR_BYTES_ONLY
#define NAME(function) msc_simd__avx2_vnni_##function
#include "kernels/cpu/simd_avx2_depthwise.h"
#include "kernels/cpu/simd_indirect_loops.h"

const struct msc_simd_product msc_simd__avx2_vnni_bytes = {.isa = "avx2_vnni",
                                                           .weight_bytes = 1,
                                                           .packed_bytes = packed_bytes,
                                                           .pack = pack,
                                                           .pack_rows = pack_rows,
                                                           .scratch_bytes = scratch_bytes,
                                                           .multiply = multiply_bytes,
                                                           .multiply_epilogue =
                                                               multiply_bytes_epilogue};

VECTOR_TARGET void msc_simd__avx2_vnni_multiply_pairs(const struct block *b) {
    run_block(OF_PAIRS, SUMS, 1, b);
}
