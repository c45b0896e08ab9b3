// Matrix products of two activations, one of which may be constant: whether their factors are
// multiplied as integers, and the constant one under an edit.
#ifndef MSC_KERNELS_LOWERING_MATMUL_H
#define MSC_KERNELS_LOWERING_MATMUL_H

#include "graph/edit.h"
#include "graph/view.h"
#include "kernels/lowering/digits.h"

// Are factors that come so, NULL for floats, multiplied as integers? `out` is then how the first is
// cut, otherwise one digit. `depth` is how many products a sum has.
bool msc_matmul_is_integer(struct msc_digits *out, const struct msc_quant *a,
                           const struct msc_quant *b, int64_t depth);

// A constant factor under an edit, as an activation would come: integers of one scale, or
// fake-quantised floats. It points into itself, so that it stays where it was made.
struct msc_matmul_constant {
    struct msc_array *elements;
    struct msc_quant quant; // bits is 0 for floats
    float scale;
    int32_t zero_point;
};

// Finished by the caller, unless it fails.
enum msc_status msc_matmul_constant_init(struct msc_matmul_constant *out,
                                         const struct msc_view *constant,
                                         const struct msc_edit *edit);
void msc_matmul_constant_finish(struct msc_matmul_constant *c); // accepts zeroed
// NULL for floats.
const struct msc_quant *msc_matmul_constant_quant(const struct msc_matmul_constant *c);

#endif
