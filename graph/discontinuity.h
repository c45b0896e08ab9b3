// Finds discontinuous results. A result is discontinuous if its length depends on data, or if it is
// downstream of a joint that turns the smallest change of an input into a step (comparisons,
// rounding, argmax: see the column `discontinuity` of ops.def). Two computations that differ only
// by rounding errors may give very different values of such a result. So tensors upstream of it are
// compared instead.
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
    const struct msc_graph *model; // the network as loaded; names of tensors come from it
    // `model`, or a copy of it bound to given shapes; all ids are ids of `g`
    const struct msc_graph *g;
    size_t n_found;
    int32_t *found; // ids of the tensors found, each once, in the order found
    // The following arrays are [n_tensors].
    bool *varies;    // true if the tensor depends on the values of inputs
    int32_t *behind; // a discontinuous joint upstream of the tensor, or MSC_NO_ID
    uint8_t *asked;  // whether msc_discontinuity_collect still has to visit the tensor
};

// Both graphs are borrowed. *out is owned by the caller.
enum msc_status msc_discontinuity_create(struct msc_discontinuity **out,
                                         const struct msc_graph *model, const struct msc_graph *g);
void msc_discontinuity_destroy(struct msc_discontinuity *d); // accepts NULL

// A discontinuous joint upstream of the tensor; MSC_NO_ID if there is none. A joint that reads only
// shapes does not depend on the values of inputs, so nothing upstream of it counts.
int32_t msc_discontinuity_above(const struct msc_discontinuity *d, int32_t tensor);
// Adds to `found` the tensors to compare in place of `tensor`, possibly `tensor` itself. On each
// path upstream, adds the nearest suitable tensor. A tensor is suitable if it is float32, depends
// on inputs, has a name, has a known number of elements (if `g` was bound to given shapes), and is
// not downstream of a discontinuous joint. If it is a part of a larger suitable tensor, adds the
// larger tensor instead.
void msc_discontinuity_collect(struct msc_discontinuity *d, int32_t tensor);
// The tensor's name in the network's file; NULL if it has none. Tensors in `found` have one.
const char *msc_discontinuity_name(const struct msc_discontinuity *d, int32_t tensor);

#endif
