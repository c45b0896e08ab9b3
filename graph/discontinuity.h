// Where results are discontinuous: behind joints that turn the smallest change of their inputs
// into a step (comparisons, rounding, the greatest of many: a column of ops.def), and where
// lengths are as the data say. Two computations that differ by a rounding may differ there by
// anything; what is to be compared lies before it.
//
//     struct msc_discontinuity *d;
//     MSC_TRY(msc_discontinuity_create(&d, model, bound));
//     if (msc_discontinuity_above(d, output) != MSC_NO_ID) {
//         msc_discontinuity_collect(d, output);   // d->found [n_found]: what to compare instead
//     }
//     msc_discontinuity_destroy(d);
#ifndef MSC_GRAPH_DISCONTINUITY_H
#define MSC_GRAPH_DISCONTINUITY_H

#include "graph/graph.h"

struct msc_discontinuity {
    const struct msc_graph *model; // the network whose tensors can be named
    const struct msc_graph *g;     // the same, or made of it for given shapes: ids are of this one
    size_t n_found;
    int32_t *found; // tensors, once each, in the order found
    // Of each tensor.
    bool *varies;    // does it depend on what inputs hold?
    int32_t *behind; // the nearest joint above it that makes steps, or MSC_NO_ID
    uint8_t *asked;  // how far it was followed
};

// Both graphs are borrowed. *out is owned by the caller.
enum msc_status msc_discontinuity_create(struct msc_discontinuity **out,
                                         const struct msc_graph *model, const struct msc_graph *g);
void msc_discontinuity_destroy(struct msc_discontinuity *d); // accepts NULL

// The nearest joint above a tensor that makes a step when what inputs hold changes a little;
// MSC_NO_ID when there is none. Arithmetic on lengths does not change.
int32_t msc_discontinuity_above(const struct msc_discontinuity *d, int32_t tensor);
// Adds to `found` what comes before a tensor, or itself: the last tensors on each way up to it that
// are float32, depend on inputs, lie behind no such joint, have a known number of elements where
// `g` was made for given shapes, and can be named. Of several parts of one such tensor it is that
// one.
void msc_discontinuity_collect(struct msc_discontinuity *d, int32_t tensor);
// As the network's file has it. Of tensors found never NULL.
const char *msc_discontinuity_name(const struct msc_discontinuity *d, int32_t tensor);

#endif
