// Tensors on a grid: what a network quantises itself (QuantizeLinear, DynamicQuantizeLinear,
// QLinearConv, QLinearMatMul). Where a float lies between two steps, two correct computations that
// add in different orders may take one each, and all that is computed from it moves: by a step, and
// of a range that is found as the network runs by as much as its end moves. So two computations of
// such a network are compared from grid to grid. The reference kernels compute each stretch from what
// the other computation has at its beginning, and the other one's codes at its end have to be codes
// of numbers that are close to the reference's, as floats are close (model/allclose.h):
//
//     quantise(x - d) <= code <= quantise(x + d),   d = atol + rtol * |x|
//
// Of QLinearConv and QLinearMatMul, which have no float before the code, at most one element of a
// hundred, and one, may be a step apart.
//
//     MSC_TRY(msc_grids_create(&grids, discontinuity));
//     if (msc_grids_above(grids, output)) {
//         ... found[i]: grids->tensors[i] as the other computation has it [grids->n] ...
//         MSC_TRY(msc_grids_run(truth, grids, &run));   // the outputs, from these
//     }
//     msc_grids_destroy(grids);
//
// Nobody outside pipeline/ includes this.
#ifndef MSC_MODEL_GRIDS_H
#define MSC_MODEL_GRIDS_H

#include "graph/discontinuity.h"
#include "graph/reference/reference.h"
#include "model/allclose.h"

struct msc_grids {
    const struct msc_discontinuity *d; // borrowed, with its graphs
    size_t n;
    int32_t *tensors; // [n] on a grid, in the order of joints; all can be named
    int32_t *places;  // of each tensor: in `tensors`, or MSC_NO_ID
    bool *above;      // of each tensor: is it on a grid, or computed from one that is?
};

// *out is owned by the caller.
enum msc_status msc_grids_create(struct msc_grids **out, const struct msc_discontinuity *d);
void msc_grids_destroy(struct msc_grids *grids); // accepts NULL

static inline bool msc_grids_above(const struct msc_grids *grids, int32_t tensor) {
    return grids->above[tensor];
}

// One comparison; all is borrowed but what is counted.
struct msc_grids_run {
    const struct msc_array *const *inputs; // of the graph
    const struct msc_array *const *found;  // [grids->n] of the other computation
    const char *numerics;                  // names that computation in messages
    struct msc_closeness limits;
    const struct msc_reference_limits *reference; // may be NULL
    const int32_t *wanted;                        // [n_wanted] tensors
    size_t n_wanted;
    // Counted: elements on grids, those that are a step apart, and ranges that are found as the network
    // runs and differ.
    int64_t n_elements, n_steps, n_ranges;
};
// out[i] [n_wanted] are owned by the caller: by the reference kernels, from what was found on grids.
// MSC_E_STATE names the element of a grid that should be nearer.
enum msc_status msc_grids_run(struct msc_array *out[], const struct msc_grids *grids,
                              struct msc_grids_run *run);

#endif
