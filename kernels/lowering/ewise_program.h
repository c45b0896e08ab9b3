// What compiling and running element-wise programs share. Nobody outside ewise*.c
// includes this, but for kernels/vulkan/vk_ewise.c, which turns programs into shaders.
//
// The index space of a program is the output's, in the order of memory, with dims joined wherever
// every operand allows it. A block is some whole rows of the innermost dim or, where that is long,
// a piece of one row.
#ifndef MSC_KERNELS_LOWERING_EWISE_PROGRAM_H
#define MSC_KERNELS_LOWERING_EWISE_PROGRAM_H

#include "base/alloc.h"
#include "kernels/lowering/ewise.h"
#include "kernels/cpu/ewise_loops.h"

// Floats in a block: 4 KiB, so that all operands of an instruction and a few registers fit into a
// first-level cache.
#define MSC_EWISE_BLOCK 1024

enum msc_ewise_source {
    MSC_EWISE_FROM_INPUT,
    MSC_EWISE_FROM_MEMORY, // a constant
    MSC_EWISE_FROM_ANCHOR,
    MSC_EWISE_FROM_SCALES,
    MSC_EWISE_FROM_OFFSETS,
};

enum msc_ewise_mode {
    MSC_EWISE_DIRECT,    // elements of a block lie one behind the other
    MSC_EWISE_BROADCAST, // spread into a buffer, again whenever the block begins elsewhere
    MSC_EWISE_READY,     // `memory` is the block, whichever it is
};

struct msc_ewise_operand {
    enum msc_ewise_source source;
    enum msc_ewise_mode mode;
    int32_t input;
    const float *memory;
    int64_t strides[MSC_MAX_DIMS]; // of each dim of the program, in elements
    int32_t buffer;                // of SPREAD
};

// Places of blocks: operands first, then registers, then the output.
struct msc_ewise_instr {
    enum msc_ewise_op op;
    int32_t out, a, b, c, d; // places; -1 where there is none
    float p[2];
};

// Blocks are aligned to cache lines, and their distances are no multiple of 4096 bytes: a load
// whose address agrees with an earlier store's in the lower 12 bits waits for it.
#define MSC_EWISE_LINE 64
#define MSC_EWISE_SKEW (3 * MSC_EWISE_LINE)

struct msc_ewise {
    struct msc_arena arena;
    int n_dims; // at least 1
    int64_t dims[MSC_MAX_DIMS];
    int64_t block_rows;
    int64_t block_elements; // most that a block holds
    int32_t n_operands;
    struct msc_ewise_operand *operands;
    int32_t n_instrs;
    struct msc_ewise_instr *instrs;
    int32_t n_registers;
    int32_t n_buffers;
    struct msc_simd_chain chain; // the same program where it is one; else without links
};

// out[r][c] = in[r * row_stride + c * stride], 4-byte elements.
void msc_ewise__spread(float *out, const float *in, int64_t rows, int64_t row_stride, int64_t cols,
                       int64_t stride);

#endif
