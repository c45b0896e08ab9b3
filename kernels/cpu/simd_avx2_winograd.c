// Winograd's algorithm for AVX2, whose products of bytes are products of int16.
#define MSC_VECTOR_AVX2
#include "kernels/cpu/simd_tables.h"

#include "kernels/cpu/simd_winograd_loops.h"

const struct msc_simd_winograd msc_simd__avx2_winograd = {.packed_bytes = packed_bytes,
                                                          .pack = pack,
                                                          .scratch_bytes = scratch_bytes,
                                                          .multiply = multiply,
                                                          .multiply_epilogue = multiply_epilogue,
                                                          .bytes_per_pair = 1};
