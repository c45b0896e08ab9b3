// A tail: the joints that a target fuses into the joint before them, which computes in integer
// arithmetic. Clip bounds become those of the requantised integers, a factor only changes their
// scale, and a summand becomes part of the bias. Nothing is quantised in between.
//
//     conv ─ * 0.9 ─ + 0.5 ─ relu ─ pair          y = clip(0.9 x + 0.5, 0, inf)
#ifndef MSC_GRAPH_TAIL_H
#define MSC_GRAPH_TAIL_H

#include "graph/affine.h"
#include "graph/target.h"

// y = clip(factor * x + shift, low, high), where x is the output of `maker`.
struct msc_tail {
    const struct msc_joint *maker;
    double factor, shift; // the factor is positive
    double low, high;
    bool has_known_limits; // false if a bound is computed at run time
};

// The shift as part of the bias of `maker`, in the units of that bias.
static inline float msc_tail_bias(const struct msc_tail *tail) {
    return (float)(tail->shift / tail->factor);
}

enum { MSC_TAIL_MOST_JOINTS = 8 };

// Finds the tail that ends in the tensor; false if there is none.
bool msc_graph__find_tail(struct msc_tail *out, const struct msc_graph *g,
                          const struct msc_target *target, int32_t tensor);
// The last tensor of the possible tail of the joint that produces `tensor`; `tensor` itself if
// there is no tail.
int32_t msc_graph__end_of_tail(const struct msc_graph *g, const struct msc_target *target,
                               int32_t tensor);

#endif
