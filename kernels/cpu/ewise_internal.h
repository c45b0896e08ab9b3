// Internal header of cpu/ewise_*.c, the files that prepare and run element-wise programs.
//
// A row is the program's innermost dim. A block is several whole rows or, if rows are long, part of
// one row. If a call begins or ends within a row, its first or last block is also part of a row.
#ifndef MSC_KERNELS_CPU_EWISE_INTERNAL_H
#define MSC_KERNELS_CPU_EWISE_INTERNAL_H

#include "base/alloc.h"
#include "kernels/cpu/ewise_loops.h"
#include "kernels/cpu/ewise_run.h"
#include "kernels/cpu/simd.h"

// Floats in a block: 4 KiB, so that all operands of an instruction and a few registers fit a
// first-level cache.
#define MSC_CPU_EWISE_BLOCK 1024

// How a block of an operand is read.
enum msc_cpu_ewise_mode {
    MSC_CPU_EWISE_DIRECT,    // in place: the elements are contiguous
    MSC_CPU_EWISE_BROADCAST, // from a buffer, which is refilled if the block has other elements
    MSC_CPU_EWISE_READY,     // `memory` holds the block's elements, which are the same for all
                             // blocks
    MSC_CPU_EWISE_NUMBER, // one element in a whole row, and each block is within a row: the chain
                          // takes it as a number
};

struct msc_cpu_ewise_operand {
    enum msc_cpu_ewise_mode mode;
    int32_t buffer;      // index of the buffer for BROADCAST, or for dequantised integers
    const float *memory; // elements of a constant
};

// Blocks are aligned to cache lines, and their distances are not multiples of 4096 bytes: a load
// whose address has the same lower 12 bits as an earlier store waits for that store.
#define MSC_CPU_EWISE_LINE 64
#define MSC_CPU_EWISE_SKEW (3 * MSC_CPU_EWISE_LINE)

struct msc_cpu_ewise {
    struct msc_ewise *program; // owned
    struct msc_arena arena;
    int64_t block_rows;                     // rows per block; 0: a block is part of a row
    int64_t block_elements;                 // most elements in a block
    struct msc_cpu_ewise_operand *operands; // [program->n_operands]
    struct msc_ewise_instr *instrs;         // [program->n_instrs], operands converted by
                                            // msc_ewise_place
    int32_t n_buffers;
    struct msc_simd_chain chain; // the program as a chain; without instructions if it is not
                                 // a chain
    int32_t n_numbers;           // instructions of the chain that read a NUMBER
};

// True if each block is within a row.
static inline bool msc_cpu_ewise_is_within_row(const struct msc_cpu_ewise *e) {
    return e->program->n_dims > 1 && e->block_rows <= 1;
}

// out[r][c] = in[r * row_stride + c * stride]
void msc_cpu_ewise__broadcast(float *out, const float *in, int64_t rows, int64_t row_stride,
                              int64_t cols, int64_t stride);
// Sets e->chain. Returns MSC_OK also if the program is not a chain.
enum msc_status msc_cpu_ewise__make_chain(struct msc_cpu_ewise *e);
// Sets the mode NUMBER of operands that a chain can take as numbers.
void msc_cpu_ewise__find_numbers(struct msc_cpu_ewise *e);
// Copies the chain's instructions to `instrs`. Those that read a NUMBER get the operation for
// numbers, and the number at places[operand].
void msc_cpu_ewise__set_numbers(struct msc_simd_instr instrs[], const struct msc_cpu_ewise *e,
                                const float *const places[]);

#endif
