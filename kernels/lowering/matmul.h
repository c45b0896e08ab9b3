// Matrix products of two activations or of an activation and a constant: decides whether the
// factors are multiplied as integers, and applies an edit to the constant factor.
#ifndef MSC_KERNELS_LOWERING_MATMUL_H
#define MSC_KERNELS_LOWERING_MATMUL_H

#include "graph/edit.h"
#include "graph/view.h"
#include "kernels/lowering/digits.h"

// True if factors with these quantisations (NULL: floats) are multiplied as integers. *out then
// describes how the first factor is split into digits (digits.h); otherwise *out has one digit.
// `depth` is the number of products per sum.
bool msc_matmul_is_integer(struct msc_digits *out, const struct msc_quant *a,
                           const struct msc_quant *b, int64_t depth);

// A constant factor under an edit, stored like an activation: as integers with one scale, or as
// fake-quantised floats. The structure contains pointers into itself, so it must not be moved.
struct msc_matmul_constant {
    struct msc_array *elements;
    struct msc_quant quant; // bits is 0 for floats
    float scale;
    int32_t zero_point;
};

// On success the caller calls msc_matmul_constant_finish.
enum msc_status msc_matmul_constant_init(struct msc_matmul_constant *out,
                                         const struct msc_view *constant,
                                         const struct msc_edit *edit);
void msc_matmul_constant_finish(struct msc_matmul_constant *c); // accepts a zeroed structure
// The quantisation of the integers; NULL for floats.
const struct msc_quant *msc_matmul_constant_quant(const struct msc_matmul_constant *c);

#endif
