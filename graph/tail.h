// A tail (epilogue): joints after a joint that computes in integer arithmetic. The target fuses
// them into this joint. Clip bounds become bounds of the requantised integers, a factor changes the
// integers' scale, and a summand becomes part of the bias. The tensors inside a tail are not
// quantised.
//
//     conv ─ * 0.9 ─ + 0.5 ─ relu ─ QDQ pair      y = clip(0.9 x + 0.5, 0, inf)
#ifndef MSC_GRAPH_TAIL_H
#define MSC_GRAPH_TAIL_H

#include "graph/affine.h"
#include "graph/target.h"

// y = clip(factor * x + shift, low, high), where x is the output of `maker`.
struct msc_tail {
    const struct msc_joint *maker;
    double factor, shift; // the factor is positive
    double low, high;
    bool has_known_limits; // false if a clip bound is computed at run time
};

// The amount that the shift adds to the bias of `maker`, in the units of that bias.
static inline float msc_tail_bias(const struct msc_tail *tail) {
    return (float)(tail->shift / tail->factor);
}

enum { MSC_TAIL_MOST_JOINTS = 8 };

// Finds the tail whose output is the tensor; false if there is none.
bool msc_graph__find_tail(struct msc_tail *out, const struct msc_graph *g,
                          const struct msc_target *target, int32_t tensor);
// Follows the tail that begins at `tensor` as far as possible, and returns the output of the tail's
// last joint. Returns `tensor` itself if there is no tail.
int32_t msc_graph__end_of_tail(const struct msc_graph *g, const struct msc_target *target,
                               int32_t tensor);

#endif
