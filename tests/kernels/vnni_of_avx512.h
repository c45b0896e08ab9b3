// The loops for AVX-VNNI on machines that have only AVX-512 with VNNI.
#ifndef MSC_TESTS_KERNELS_VNNI_OF_AVX512_H
#define MSC_TESTS_KERNELS_VNNI_OF_AVX512_H

#include "kernels/cpu/simd_indirect.h"

// NULL: this machine cannot run them.
const struct msc_simd *vnni_of_avx512(void);

#endif
