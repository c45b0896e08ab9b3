// Compares two computations of a network that quantises tensors itself (QuantizeLinear,
// DynamicQuantizeLinear, QLinearConv, QLinearMatMul). The outputs of these joints are tensors on a
// grid: their integers are called codes.
//
// Two correct computations may add in different orders. If a float is near the middle between two
// codes, the two computations may round the float to different codes, and everything computed from
// the code changes by a step. A range found at run time may also change. The computations are
// therefore compared from grid to grid: the reference kernels compute each section from the codes
// that the other computation found at the start of the section. At the end of the section, each
// code must be the quantised value of some number close to the reference's (model/allclose.h):
//
//     quantise(x - d) <= code <= quantise(x + d),   d = atol + rtol * |x|
//
// QLinearConv and QLinearMatMul have no float before the code. Of their n elements, up to
// 1 + n / 100 may differ by a step.
//
//     MSC_TRY(msc_grids_create(&grids, discontinuity));
//     if (msc_grids_above(grids, output)) {
//         ... found[i]: grids->tensors[i] of the other computation [grids->n] ...
//         MSC_TRY(msc_grids_run(truth, grids, &run));   // the outputs, computed from `found`
//     }
//     msc_grids_destroy(grids);
//
// Internal to model/.
#ifndef MSC_MODEL_GRIDS_H
#define MSC_MODEL_GRIDS_H

#include "graph/discontinuity.h"
#include "graph/reference/reference.h"
#include "model/allclose.h"

struct msc_grids {
    const struct msc_discontinuity *d; // borrowed, with its graphs
    size_t n;
    int32_t *tensors; // [n] the tensors on a grid that can be named, in the order of joints
    int32_t *places;  // for each tensor: its index in `tensors`, or MSC_NO_ID
    bool *above; // for each tensor: true if it is on a grid, or computed from a tensor on a grid
};

// *out is owned by the caller.
enum msc_status msc_grids_create(struct msc_grids **out, const struct msc_discontinuity *d);
void msc_grids_destroy(struct msc_grids *grids); // accepts NULL

static inline bool msc_grids_above(const struct msc_grids *grids, int32_t tensor) {
    return grids->above[tensor];
}

// One comparison. The caller owns what the pointers refer to.
struct msc_grids_run {
    const struct msc_array *const *inputs; // inputs of the graph
    const struct msc_array *const *found;  // [grids->n] from the other computation
    const char *numerics;                  // names the other computation in messages
    struct msc_closeness limits;
    const struct msc_reference_limits *reference; // may be NULL
    const int32_t *wanted;                        // [n_wanted] tensors
    size_t n_wanted;
    // Counts: elements on grids, elements that differ by a step, and ranges found at run time that
    // differ.
    int64_t n_elements, n_steps, n_ranges;
};
// Computes the wanted tensors by the reference kernels, from the codes found on grids: out[i]
// [n_wanted] are owned by the caller. MSC_E_STATE names an element on a grid that is not close
// enough.
enum msc_status msc_grids_run(struct msc_array *out[], const struct msc_grids *grids,
                              struct msc_grids_run *run);

#endif
