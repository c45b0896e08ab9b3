// For machines without loops of their own.
#include "kernels/cpu/simd_indirect.h"

const struct msc_simd *msc_simd_best(void) {
    return &msc_simd_plain;
}

const struct msc_simd_product *msc_simd_product(enum msc_simd_operands operands) {
    (void)operands;
    return NULL;
}
