// Depthwise convolutions for AVX2.
#include "kernels/cpu/simd_avx2_depthwise.h"
