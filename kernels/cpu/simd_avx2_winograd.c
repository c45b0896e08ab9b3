// Winograd's algorithm for AVX2, without or with AVX-VNNI. Only the products differ.
#define MSC_VECTOR_AVX2
#include "kernels/cpu/simd_tables.h"

#include "kernels/cpu/simd_winograd_loops.h"

// A product of bytes takes two instructions or more, and a product of int16 two.
const struct msc_simd_winograd msc_simd__avx2_winograd = {.packed_bytes = packed_bytes,
                                                          .pack = pack,
                                                          .scratch_bytes = scratch_bytes,
                                                          .multiply = multiply,
                                                          .multiply_epilogue = multiply_epilogue,
                                                          .bytes_per_pair = 1};

// ---- AVX-VNNI ---------------------------------------------------------------------------------

static const block_function vnni_products[MOST_VECTORS] = {msc_simd__avx2_vnni_multiply_pairs};

static void vnni_multiply(int32_t sums[], const struct msc_simd_image_windows *w) {
    multiply_with(vnni_products, sums, w);
}

static void vnni_multiply_epilogue(const struct msc_simd_image_windows *w,
                                   const struct msc_simd_epilogue *epilogue) {
    multiply_epilogue_with(vnni_products, w, epilogue);
}

const struct msc_simd_winograd msc_simd__avx2_vnni_winograd = {.packed_bytes = packed_bytes,
                                                               .pack = pack,
                                                               .scratch_bytes = scratch_bytes,
                                                               .multiply = vnni_multiply,
                                                               .multiply_epilogue =
                                                                   vnni_multiply_epilogue,
                                                               .bytes_per_pair = 2};
