// Element-wise programs: a chain of element-wise joints, compiled once to instructions. A backend
// interprets the instructions block by block or makes a shader of them.
//
// A program is a whole step (a chain of element-wise joints) or the epilogue of another step. An
// epilogue begins with the result of the step's first joint, the anchor. If this result is integer
// sums, the epilogue first computes y = t * (float)sum, y += b (kernels/backend.h).
//
//     struct msc_ewise *e;
//     MSC_TRY(msc_ewise_create(&e, plan, step, &options));
//     for (int32_t i = 0; e && i < e->n_instrs; i++) { ... e->instrs[i] ... }
//     msc_ewise_destroy(e);
#ifndef MSC_KERNELS_LOWERING_EWISE_H
#define MSC_KERNELS_LOWERING_EWISE_H

#include "base/alloc.h"
#include "kernels/backend.h"

enum msc_ewise_op {
#define EWISE(code, name, operands, expression) MSC_EWISE_##name = (code),
#define EWISE_LOOP(code, name, operands, loop, expression) MSC_EWISE_##name = (code),
#define EWISE_SUMS(code, name, operands, loop) MSC_EWISE_##name = (code),
#include "kernels/lowering/ewise.def"
    MSC_EWISE_OP_COUNT
};

enum msc_ewise_start {
    MSC_EWISE_CHAIN,   // all joints of the step
    MSC_EWISE_FLOAT,   // joints after the anchor's float32 result
    MSC_EWISE_SUM_F32, // joints after integer sums held as float32
    MSC_EWISE_SUM_I32, // joints after int32 sums; subtracts an offset per channel first
};

struct msc_ewise_options {
    enum msc_ewise_start start;
    int32_t first;        // first joint to compile; the output of the joint before it is the
                          // anchor's result
    int channel_axis;     // output axis of the channels; innermost, except for axes of length 1
    bool is_scalar_scale; // one scale instead of one per channel
    float low, high;      // clip bounds of the scaled sums, applied after the bias
    // [channels] Used if a call gives no bias; borrowed; may be NULL.
    const float *bias;
};

enum msc_ewise_source {
    MSC_EWISE_FROM_INPUT,
    MSC_EWISE_FROM_MEMORY, // a constant
    MSC_EWISE_FROM_BIAS,   // the call's bias; the options' bias if the call has none
    MSC_EWISE_FROM_ANCHOR,
    MSC_EWISE_FROM_SCALES,
    MSC_EWISE_FROM_OFFSETS,
};

struct msc_ewise_operand {
    enum msc_ewise_source source;
    int32_t input;                 // index of the step input
    const float *memory;           // borrowed from the graph, or owned by the program
    int64_t strides[MSC_MAX_DIMS]; // stride in elements per dim of the program; 0: broadcast
};

// An operand of an instruction is a reference: i for operand i of the program, MSC_EWISE_VALUE + i
// for the result of the earlier instruction i, -1 if absent.
#define MSC_EWISE_VALUE (1 << 20)
#define MSC_EWISE_MAX_X 4
struct msc_ewise_instr {
    enum msc_ewise_op op;
    int32_t out; // MSC_EWISE_VALUE + the instruction's own index
    int32_t x[MSC_EWISE_MAX_X];
    float p[2];
};

// A program runs over the output's dims in memory order. Neighbouring dims are merged if the
// strides of every operand allow it.
struct msc_ewise {
    struct msc_arena arena;
    int n_dims; // dims after merging, at least 1
    int64_t dims[MSC_MAX_DIMS];
    int32_t n_operands;
    struct msc_ewise_operand *operands;
    int32_t n_instrs;
    struct msc_ewise_instr *instrs;
    // The register that holds an instruction's result until its last use. The last instruction
    // writes the output, which is register n_registers.
    int32_t *registers; // [n_instrs]
    int32_t n_registers;
};

// True if this joint can be part of a program. All its tensors must be float32, and its operands
// must broadcast to the shape of its output.
bool msc_ewise_accepts(const struct msc_graph *g, const struct msc_joint *joint);

// Compiles a program. *out is owned by the caller; NULL if there is nothing to compute.
enum msc_status msc_ewise_create(struct msc_ewise **out, const struct msc_plan *plan,
                                 const struct msc_step *step,
                                 const struct msc_ewise_options *options);
void msc_ewise_destroy(struct msc_ewise *e); // accepts NULL

// The index under which a runner stores the values of a reference: operands first, then registers,
// then the output; -1 for an absent operand.
static inline int32_t msc_ewise_place(const struct msc_ewise *e, int32_t ref) {
    return ref < MSC_EWISE_VALUE ? ref : e->n_operands + e->registers[ref - MSC_EWISE_VALUE];
}
// True if the operand is constant along the first n dims (strides 0).
bool msc_ewise_is_constant(const struct msc_ewise_operand *o, int n);
// True if the operand's elements are in the same memory order as the output's.
bool msc_ewise_lies_as_output(const struct msc_ewise *e, const struct msc_ewise_operand *o);
// The number of operands of an instruction.
int msc_ewise_n_operands(enum msc_ewise_op op);

#endif
