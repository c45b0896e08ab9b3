// Internal header of lowering/ewise*.c: turns joints into the instructions of a program.
#ifndef MSC_KERNELS_LOWERING_EWISE_BUILD_H
#define MSC_KERNELS_LOWERING_EWISE_BUILD_H

#include "kernels/lowering/ewise.h"

struct msc_ewise_builder {
    struct msc_ewise *e;
    const struct msc_plan *plan;
    const struct msc_step *step;
    const struct msc_value *out;
    int64_t dims[MSC_MAX_DIMS]; // dims of the output, in memory order
    int32_t first;              // first joint to compile
    int32_t *results;           // [n_joints] reference to each joint's output
    int32_t max_operands, max_instrs;
};

// The strides of an operand along the output's dims in memory order; 0 if it is broadcast.
void msc_ewise__strides(const struct msc_ewise_builder *b, int64_t strides[MSC_MAX_DIMS],
                        int n_dims, const int64_t dims[], enum msc_layout layout);
// Adds an operand unless the program already has an equal operand; returns a reference to it.
int32_t msc_ewise__add_operand(struct msc_ewise_builder *b,
                               const struct msc_ewise_operand *operand);
// A reference to operand `position` of a joint.
enum msc_status msc_ewise__operand(struct msc_ewise_builder *b, const struct msc_step_joint *j,
                                   int position, int32_t *ref);
// Adds an operand for constant elements in NCHW that broadcast to the output. The elements are
// borrowed, or copied into the program.
enum msc_status msc_ewise__add_constant(struct msc_ewise_builder *b, const float *elements,
                                        int n_dims, const int64_t dims[], int32_t *ref);
// Adds an instruction and returns a reference to its result.
int32_t msc_ewise__add_instr(struct msc_ewise_builder *b, const struct msc_ewise_instr *instr);
// Like msc_ewise__add_instr, for an instruction of one or two operands; `y` is -1 for one operand.
int32_t msc_ewise__emit(struct msc_ewise_builder *b, enum msc_ewise_op op, int32_t x, int32_t y,
                        float p0, float p1);
// Adds the instructions of a joint: at most n_operands + 3 instructions and n_operands + 1
// operands.
enum msc_status msc_ewise__emit_joint(struct msc_ewise_builder *b, const struct msc_step_joint *j,
                                      int32_t *result);

#endif
