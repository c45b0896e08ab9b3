// Machines for which nothing is written.
#include "kernels/cpu/simd.h"

const struct msc_simd *msc_simd_best(void) {
    return &msc_simd_plain;
}
