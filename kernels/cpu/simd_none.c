// Replaces the AVX-512 files in builds for processors other than x86.
#include "kernels/cpu/simd_indirect.h"

const struct msc_simd *msc_simd_best(void) {
    return &msc_simd_plain;
}

const struct msc_simd_product *msc_simd_product(enum msc_simd_operands operands) {
    (void)operands;
    return NULL;
}
