// Winograd's algorithm for AVX-512 with VNNI.
#include "kernels/cpu/simd_tables.h"

#include "kernels/cpu/simd_winograd_loops.h"

const struct msc_simd_winograd msc_simd__avx512_winograd = {.packed_bytes = packed_bytes,
                                                            .pack = pack,
                                                            .scratch_bytes = scratch_bytes,
                                                            .multiply = multiply,
                                                            .multiply_epilogue = multiply_epilogue,
                                                            .bytes_per_pair = 2};
