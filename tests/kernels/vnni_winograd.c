// The code of kernels/cpu/simd_avx2_winograd.c, with the products of vnni_of_avx512.c.
#define msc_simd__avx2_winograd test_avx2_winograd
#define msc_simd__avx2_vnni_winograd test_vnni_winograd
#define msc_simd__avx2_vnni_multiply_pairs test_vnni_multiply_pairs
#include "kernels/cpu/simd_avx2_winograd.c"
