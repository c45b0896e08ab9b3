// The code of kernels/cpu/simd_avx2_vnni.c, compiled with the instructions of AVX-512 that do the
// same as those of AVX-VNNI. Many machines have only the former.
#define MSC_VNNI_OF_AVX512
#define msc_simd__avx2_vnni_bytes test_vnni_bytes
#define msc_simd__avx2_vnni_winograd test_vnni_winograd
#define msc_simd__avx2_vnni_multiply_pairs test_vnni_multiply_pairs
#define msc_simd__avx2_vnni_pack_taps test_vnni_pack_taps
#define msc_simd__avx2_vnni_add_taps test_vnni_add_taps
#define msc_simd__avx2_vnni_add_taps_quantize test_vnni_add_taps_quantize
#define msc_simd__avx2_vnni_add_columns test_vnni_add_columns
#define msc_simd__avx2_vnni_add_columns_quantize test_vnni_add_columns_quantize
#include "kernels/cpu/simd_avx2_vnni.c"

#include "tests/kernels/vnni_of_avx512.h"

const struct msc_simd *vnni_of_avx512(void) {
    static struct msc_simd table;
    if (!__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512vnni")) {
        return NULL;
    }
    table = msc_simd__avx2;
    table.isa = "avx2_vnni, with AVX-512";
    table.bytes = &test_vnni_bytes;
    table.winograd = &test_vnni_winograd;
    table.pack_taps = test_vnni_pack_taps;
    table.add_taps = test_vnni_add_taps;
    table.add_taps_quantize = test_vnni_add_taps_quantize;
    table.add_columns = test_vnni_add_columns;
    table.add_columns_quantize = test_vnni_add_columns_quantize;
    return &table;
}
