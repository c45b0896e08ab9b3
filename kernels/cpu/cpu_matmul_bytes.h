// Products of two matrices of integers of at most 8 bits, by the product of bytes of
// simd_indirect.h. The results have the bits that cpu_matmul.c computes in float32.
//
// The product of bytes multiplies uint8 with int8. So the first matrix is read as a' = a + 128 if
// its integers are signed, and the second as b' = b - 128 if its integers are unsigned. With the
// zero points za' and zb' of a' and b', a sum over `depth` elements is
//
//     sum (a' - za') (b' - zb') = sum a' b' - zb' sum a' - za' sum b' + depth za' zb'
//
// Only the result has to fit int32: terms are added modulo 2^32.
#ifndef MSC_KERNELS_CPU_CPU_MATMUL_BYTES_H
#define MSC_KERNELS_CPU_CPU_MATMUL_BYTES_H

#include "graph/quant.h"
#include "kernels/cpu/simd_indirect.h"

// Shape of one product: [rows][depth] times [depth][columns].
struct msc_matmul_bytes {
    const struct msc_simd_product *product;
    int64_t rows, depth, columns;
    const struct msc_quant *quants[2]; // of the two matrices; integers with one scale
};

// True if `product` (NULL: none) is the fastest way to multiply matrices of this shape whose
// elements are integers of these quantisations.
bool msc_matmul_bytes_accepts(const struct msc_matmul_bytes *m);
size_t msc_matmul_bytes_scratch(const struct msc_matmul_bytes *m);
// Writes the sums, as floats. `a` and `b` are the matrices' elements. `packs`: b differs from the
// one of the previous call with the same scratch. The scratch is aligned to 64 bytes.
void msc_matmul_bytes_run(float out[], const struct msc_matmul_bytes *m, const uint8_t a[],
                          const uint8_t b[], bool packs, void *scratch);

#endif
