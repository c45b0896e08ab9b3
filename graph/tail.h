// Tails: joints behind one that computes over integers which a target makes one with it. Limits are
// those of the integers behind, a factor changes nothing but their scale, and what is added is part of
// the bias. Nothing is quantised between.
//
//     conv ─ * 0.9 ─ + 0.5 ─ relu ─ pair          y = clip(0.9 x + 0.5, 0, inf)
#ifndef MSC_GRAPH_TAIL_H
#define MSC_GRAPH_TAIL_H

#include "graph/target.h"

// y = clip(factor * x + shift, low, high) of what `maker` gives.
struct msc_tail {
    const struct msc_joint *maker;
    double factor, shift; // the factor is positive
    double low, high;
    bool has_known_limits; // none of them is computed
};

// The shift as part of the bias of `maker`, in the units of that.
static inline float msc_tail_bias(const struct msc_tail *tail) {
    return (float)(tail->shift / tail->factor);
}

enum { MSC_TAIL_MOST_JOINTS = 8 };

// The tail that ends in the tensor; false where there is none.
bool msc_graph__find_tail(struct msc_tail *out, const struct msc_graph *g,
                          const struct msc_target *target, int32_t tensor);
// The end of what may be a tail of the joint that makes a tensor: that itself where it has none.
int32_t msc_graph__end_of_tail(const struct msc_graph *g, const struct msc_target *target,
                               int32_t tensor);
// Is it a float activation that one joint alone reads?
bool msc_graph__is_between(const struct msc_graph *g, int32_t tensor);

// A sum or product of an activation with one number for all elements.
struct msc_affine {
    int32_t activation; // the tensor
    double factor, shift;
};
bool msc_graph__read_affine(struct msc_affine *out, const struct msc_graph *g,
                            const struct msc_joint *j);
// The operand whose elements a joint moves, limits or computes with a number; MSC_NO_ID: it has none.
int32_t msc_graph__passed_on(const struct msc_graph *g, const struct msc_joint *j);

#endif
