// Depthwise convolutions for AVX2.
#define MSC_VECTOR_AVX2
#define NAME(function) msc_simd__avx2_##function
#include "kernels/cpu/simd_avx2_depthwise.h"
