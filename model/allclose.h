// Are two computations of one output close to each other everywhere?
//
// Floats a and b are close when |a - b| <= atol + rtol * |b|, or when their difference may be what
// rounding makes of sums whose terms cancel: at most rtol / 100 of the output's greatest finite
// magnitude M, or ten times what the inputs' own rounding makes of the output, which is at most
// 1000 (atol + rtol * M). Integers and booleans often come of comparing floats (classes, indices): of each
// hundred one may differ, so of fewer none.
//
// Nobody outside pipeline/ includes this.
#ifndef MSC_MODEL_ALLCLOSE_H
#define MSC_MODEL_ALLCLOSE_H

#include "data/array.h"

struct msc_closeness {
    double atol, rtol; // atol < 0: what is not equal is not close
    // How far floats of the output move where the inputs do by a unit in the last place; 0: not known.
    double moved;
};

// Both have as many elements. *worst becomes the greatest finite difference of floats if that is
// more; false: *place is the first element that should be nearer.
bool msc_outputs_allclose(int64_t *place, double *worst, const struct msc_array *found,
                          const struct msc_array *truth, const struct msc_closeness *limits);
// Floats of `truth`, each moved by as much as another one may differ from it and be close, times `sign`;
// *out is float32, owned by the caller.
enum msc_status msc_outputs_move(struct msc_array **out, const struct msc_array *truth,
                                 const struct msc_closeness *limits, double sign);
// The greatest finite difference of floats; 0 for others.
double msc_outputs_distance(const struct msc_array *a, const struct msc_array *b);

#endif
