// Convolutions and matrix products between integers that models quantise themselves: QLinearConv,
// QLinearMatMul, ConvInteger, MatMulInteger, as MSC_FAMILY_INTEGER takes them.
#ifndef MSC_KERNELS_LOWERING_INTEGER_H
#define MSC_KERNELS_LOWERING_INTEGER_H

#include "kernels/lowering/gemm.h"

// Where the operands of an operator stand; 0: it has none.
struct msc_integer_places {
    bool is_conv;
    int weight, bias;
    int x_scale, x_zero, w_scale, w_zero, y_scale, y_zero;
};

const struct msc_integer_places *msc_integer_places_of(enum msc_op op); // NULL: another operator
bool msc_integer_describe(struct msc_gemm_spec *out, const struct msc_graph *g,
                          const struct msc_joint *joint, const struct msc_integer_places *p);
// The elements of the operand at a place; NULL when it is computed or absent.
const struct msc_array *msc_integer_constant(const struct msc_graph *g,
                                             const struct msc_joint *joint, int place);
// Element i of a list, or of one for all; 0 for NULL.
int64_t msc_integer_number(const struct msc_array *a, int64_t i);
// x_scale * w_scale[channel] / y_scale, in the reference kernels' order.
float msc_integer_scale(const struct msc_graph *g, const struct msc_joint *joint,
                        const struct msc_integer_places *p, int64_t channel);

#endif
