// Tells whether two computations of one output are close in every element.
//
// Floats a and b are close if |a - b| <= atol + rtol * |b|. A larger difference is allowed if
// rounding can explain it, since the terms of a sum may cancel. Let M be the output's greatest
// finite magnitude. Rounding may explain rtol / 100 * M, or ten times the change of the output when
// the inputs change by their rounding, up to 1000 * (atol + rtol * M).
//
// Integers and booleans often result from comparing floats (classes, indices), so one element in a
// hundred may differ. In arrays of fewer than a hundred elements, none may differ.
//
// Internal to model/.
#ifndef MSC_MODEL_ALLCLOSE_H
#define MSC_MODEL_ALLCLOSE_H

#include "data/array.h"

struct msc_closeness {
    double atol, rtol; // atol < 0: only equal values are close
    // Change of the output's floats when the inputs change by a unit in the last place; 0: unknown.
    double moved;
};

// Both arrays have the same number of elements. *worst is raised to the greatest finite difference
// of floats. If the result is false, *place is the first element that is not close.
bool msc_outputs_allclose(int64_t *place, double *worst, const struct msc_array *found,
                          const struct msc_array *truth, const struct msc_closeness *limits);
// Moves each element of `truth` by `sign` times the greatest difference that counts as close. *out
// is float32, owned by the caller.
enum msc_status msc_outputs_move(struct msc_array **out, const struct msc_array *truth,
                                 const struct msc_closeness *limits, double sign);
// Greatest finite difference of floats; 0 for other types.
double msc_outputs_distance(const struct msc_array *a, const struct msc_array *b);

#endif
