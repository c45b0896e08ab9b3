// Finds results that are discontinuous: those downstream of joints that turn the smallest change
// of an input into a step (comparisons, rounding, argmax: a column of ops.def), and those whose
// lengths depend on data. Two computations that differ only by rounding may differ arbitrarily
// there, so tensors upstream of such joints are compared instead.
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
    const struct msc_graph *model; // the network, whose tensors can be named
    const struct msc_graph *g;     // `model`, or a copy made for given shapes; ids refer to `g`
    size_t n_found;
    int32_t *found; // tensors, once each, in the order found
    // For each tensor.
    bool *varies;    // true if it depends on the values of inputs
    int32_t *behind; // the nearest discontinuous joint upstream, or MSC_NO_ID
    uint8_t *asked;  // state of the search for tensors to compare
};

// Both graphs are borrowed. *out is owned by the caller.
enum msc_status msc_discontinuity_create(struct msc_discontinuity **out,
                                         const struct msc_graph *model, const struct msc_graph *g);
void msc_discontinuity_destroy(struct msc_discontinuity *d); // accepts NULL

// The nearest joint upstream of a tensor that makes a step when the values of inputs change
// slightly; MSC_NO_ID if there is none. Shape arithmetic does not depend on the values of inputs.
int32_t msc_discontinuity_above(const struct msc_discontinuity *d, int32_t tensor);
// Adds to `found` the tensors to compare in place of `tensor`, possibly `tensor` itself. On each
// path upstream, adds the nearest tensor that is float32, depends on inputs, has a name, has a
// known number of elements (if `g` was made for given shapes), and is not downstream of a
// discontinuous joint. If the tensor is a part of another such tensor, adds that whole tensor
// instead.
void msc_discontinuity_collect(struct msc_discontinuity *d, int32_t tensor);
// The tensor's name in the network's file. Never NULL for tensors found.
const char *msc_discontinuity_name(const struct msc_discontinuity *d, int32_t tensor);

#endif
