// Element-wise programs: a chain of element-wise joints, compiled once to instructions. A backend
// runs them block by block, or makes a shader of them.
//
// A program is a whole step (element-wise joints alone) or the epilogue of one: it then begins with
// the anchor's result. Behind integer sums it begins with y = t * (float)sum, y += b
// (kernels/backend.h).
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
    MSC_EWISE_FLOAT,   // joints behind the anchor's float32 result
    MSC_EWISE_SUM_F32, // the same behind integer sums held as float32
    MSC_EWISE_SUM_I32, // ... or as int32, less an offset for each channel
};

struct msc_ewise_options {
    enum msc_ewise_start start;
    int32_t first;        // first joint to compile; its predecessor's output is the anchor's
    int channel_axis;     // of the output; no longer axis lies behind it in memory
    bool is_scalar_scale; // one scale instead of one for each channel
    float low, high;      // limits of scaled sums, behind the bias
    // Added after the scale, where a call has no other; [channels], borrowed; may be NULL.
    const float *bias;
};

enum msc_ewise_source {
    MSC_EWISE_FROM_INPUT,
    MSC_EWISE_FROM_MEMORY, // a constant
    MSC_EWISE_FROM_BIAS,   // the call's, or a constant
    MSC_EWISE_FROM_ANCHOR,
    MSC_EWISE_FROM_SCALES,
    MSC_EWISE_FROM_OFFSETS,
};

struct msc_ewise_operand {
    enum msc_ewise_source source;
    int32_t input;                 // of the step
    const float *memory;           // borrowed from the graph, or the program's
    int64_t strides[MSC_MAX_DIMS]; // of each dim of the program, in elements; 0: broadcast
};

// Operands of an instruction are references: the index of the program's operand or, from
// MSC_EWISE_VALUE on, the result of an instruction before. -1 where there is none.
#define MSC_EWISE_VALUE (1 << 20)
#define MSC_EWISE_MAX_X 4
struct msc_ewise_instr {
    enum msc_ewise_op op;
    int32_t out; // MSC_EWISE_VALUE + its own index
    int32_t x[MSC_EWISE_MAX_X];
    float p[2];
};

// The index space of a program is the output's, in the order of memory, with dims joined wherever
// every operand allows it.
struct msc_ewise {
    struct msc_arena arena;
    int n_dims; // at least 1
    int64_t dims[MSC_MAX_DIMS];
    int32_t n_operands;
    struct msc_ewise_operand *operands;
    int32_t n_instrs;
    struct msc_ewise_instr *instrs;
    // The register that holds an instruction's result until it was read for the last time; that of
    // the last one, which is the output, is n_registers.
    int32_t *registers; // [n_instrs]
    int32_t n_registers;
};

// Can this joint be an instruction of a program? It is float32 throughout and its operands
// broadcast to the shape of its output.
bool msc_ewise_accepts(const struct msc_graph *g, const struct msc_joint *joint);

// *out is owned by the caller; NULL when there is nothing to do.
enum msc_status msc_ewise_create(struct msc_ewise **out, const struct msc_plan *plan,
                                 const struct msc_step *step,
                                 const struct msc_ewise_options *options);
void msc_ewise_destroy(struct msc_ewise *e); // accepts NULL

// Where a reference is found: operands first, then registers, then the output; -1 for -1.
static inline int32_t msc_ewise_place(const struct msc_ewise *e, int32_t ref) {
    return ref < MSC_EWISE_VALUE ? ref : e->n_operands + e->registers[ref - MSC_EWISE_VALUE];
}
// Are the first n strides 0?
bool msc_ewise_is_constant(const struct msc_ewise_operand *o, int n);
// Does it lie in memory as the output does?
bool msc_ewise_lies_as_output(const struct msc_ewise *e, const struct msc_ewise_operand *o);
// Operands that an instruction has.
int msc_ewise_n_operands(enum msc_ewise_op op);

#endif
