// Vectors of 16 lanes of float32 (vfloat) or int32 (vint), for one instruction set at a time. Loops
// written with these functions give the same bits for every instruction set.
//
//     #define MSC_VECTOR_AVX2 // before the first include; otherwise AVX-512 with VNNI on x86-64,
//                             // and Advanced SIMD (NEON) on 64-bit Arm
//     #include "kernels/cpu/simd_chain_loops.h"
//
// Each instruction set has a header that defines:
//
//     VECTOR_TARGET, VECTOR_INLINE   attributes of functions that use the instructions
//     VECTOR_TILE        vectors of channels in a tile of registers, 1 or 4
//     VECTOR_CHAIN       vectors that pass through a chain together, 4 or 8
//     vmask              the first n lanes: vmask_of(n); all lanes if n >= 16: vmask_is_full
//     vf_*, vi_*         arithmetic in each lane, rounded once; vf_max and vf_min return the second
//                        operand if an operand is NaN
//     *_load_part        loads the lanes of a mask; the others are `rest`, or zero
//     vf_multiply_add(a, b, c)              a * b + c, rounded once
//     vf_multiply_subtract_from(a, b, c)    c - a * b, rounded once
//     vi_of_floats       rounds to the nearest integer, half to even
//     vf_scale(x, n)     x * 2^n, rounded once; x from 1/2 to 4, integers n from -200 to 100
//     vf_largest         the largest lane; no lane may be NaN
//     vf_of_bits, vi_of_bits    the same bits as another type
//     vi_shift_right     by n bits; the sign is kept
//     vi_load_bytes      loads uint8, after XOR with `flip`
//     vshort, vs_*       32 lanes of int16; sums keep their lowest 16 bits
//     vs_load_bytes      loads the first n of 32 int8, after XOR with `flip`; other lanes hold
//                        any number
//     struct vlimits     how vi_store_bytes makes bytes of int32: adds the zero point and limits
//                        the sums to low ... high. uint8 are computed as int8 that are lower by
//                        `below`
//     vi_store_bytes     stores n vectors (1 to 4) as bytes, of which n_lanes are in use: more than
//                        16 * (n - 1), at most 16 * n
//     vi_store_lowest    stores the lowest 8 bits of each lane of a mask
//     vi_keep            makes the compiler keep a vector in registers
//     vi_add_products    adds products of groups of 4 bytes, uint8 with int8, to int32 lanes. AVX2
//                        has no such instruction and needs several; simd_avx2_lists.h is faster.
//                        NEON has loops of its own (simd_neon_windows.h) instead
//     vi_add_pairs       adds products of pairs of int16 to int32 lanes
#ifndef MSC_KERNELS_CPU_SIMD_VECTOR_H
#define MSC_KERNELS_CPU_SIMD_VECTOR_H

#if defined(__aarch64__)
#include "kernels/cpu/simd_vector_neon.h"
#elif defined(MSC_VECTOR_AVX2)
#include "kernels/cpu/simd_vector_avx2.h"
#else
#include "kernels/cpu/simd_vector_avx512.h"
#endif

#endif
