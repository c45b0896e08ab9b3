// Convolutions and matrix products on integers that models quantise themselves: QLinearConv,
// QLinearMatMul, ConvInteger, MatMulInteger (MSC_FAMILY_INTEGER).
#ifndef MSC_KERNELS_LOWERING_INTEGER_H
#define MSC_KERNELS_LOWERING_INTEGER_H

#include "kernels/lowering/gemm.h"

// The operand index of each role in an operator; 0: the operator has no such operand.
struct msc_integer_places {
    bool is_conv;
    int weight, bias;
    int x_scale, x_zero, w_scale, w_zero, y_scale, y_zero;
};

const struct msc_integer_places *msc_integer_places_of(enum msc_op op); // NULL for other operators
bool msc_integer_describe(struct msc_gemm_spec *out, const struct msc_graph *g,
                          const struct msc_joint *joint, const struct msc_integer_places *p);
// The elements of the operand at an index; NULL if it is computed or absent.
const struct msc_array *msc_integer_constant(const struct msc_graph *g,
                                             const struct msc_joint *joint, int place);
// Element i of an array, or the only element of an array that has one; 0 for NULL.
int64_t msc_integer_number(const struct msc_array *a, int64_t i);
// x_scale * w_scale[channel] / y_scale, with the operations in the order of the reference kernels.
float msc_integer_scale(const struct msc_graph *g, const struct msc_joint *joint,
                        const struct msc_integer_places *p, int64_t channel);

#endif
