// What preparing and running element-wise programs share. Nobody outside of cpu/ewise_*.c includes
// this.
//
// A block is some whole rows of the program's innermost dim or, where that is long, a piece of one
// row. So is the first and the last block of a call that begins or ends within a row.
#ifndef MSC_KERNELS_CPU_EWISE_INTERNAL_H
#define MSC_KERNELS_CPU_EWISE_INTERNAL_H

#include "base/alloc.h"
#include "kernels/cpu/ewise_loops.h"
#include "kernels/cpu/ewise_run.h"
#include "kernels/cpu/simd.h"

// Floats in a block: 4 KiB, so that all operands of an instruction and a few registers fit into a
// first-level cache.
#define MSC_CPU_EWISE_BLOCK 1024

enum msc_cpu_ewise_mode {
    MSC_CPU_EWISE_DIRECT,    // elements of a block lie one behind the other
    MSC_CPU_EWISE_BROADCAST, // expanded into a buffer, again whenever the block begins elsewhere
    MSC_CPU_EWISE_READY,     // `memory` is the block, whichever it is
};

struct msc_cpu_ewise_operand {
    enum msc_cpu_ewise_mode mode;
    int32_t buffer;      // of BROADCAST, and of every input: for the floats of integers
    const float *memory; // of a constant
};

// Blocks are aligned to cache lines, and their distances are no multiple of 4096 bytes: a load
// whose address agrees with an earlier store's in the lower 12 bits waits for it.
#define MSC_CPU_EWISE_LINE 64
#define MSC_CPU_EWISE_SKEW (3 * MSC_CPU_EWISE_LINE)

struct msc_cpu_ewise {
    struct msc_ewise *program; // owned
    struct msc_arena arena;
    int64_t block_rows;                     // 0: blocks are pieces of a row
    int64_t block_elements;                 // most that a block holds
    struct msc_cpu_ewise_operand *operands; // [program->n_operands]
    struct msc_ewise_instr *instrs;         // [program->n_instrs], of places (msc_ewise_place)
    int32_t n_buffers;
    struct msc_simd_chain chain; // the same program where it is one; else without instructions
};

// out[r][c] = in[r * row_stride + c * stride]
void msc_cpu_ewise__broadcast(float *out, const float *in, int64_t rows, int64_t row_stride,
                              int64_t cols, int64_t stride);
// Sets e->chain. No failure where the program is no chain.
enum msc_status msc_cpu_ewise__make_chain(struct msc_cpu_ewise *e);

#endif
