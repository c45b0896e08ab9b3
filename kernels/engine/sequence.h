// The graph of a sequence: the network is bound to one chunk, then repeated for all chunks of a
// batch. The network's state is carried from each chunk to the next (graph/passes/unroll.h).
#ifndef MSC_KERNELS_ENGINE_SEQUENCE_H
#define MSC_KERNELS_ENGINE_SEQUENCE_H

#include "data/dataset.h"
#include "graph/passes/unroll.h"

// Gets the inputs of the first chunk of a batch, for binding. The caller owns arrays [n_inputs]
// even on failure; then some may be NULL.
enum msc_status msc_sequence_first(struct msc_array *arrays[], const struct msc_dataset *dataset,
                                   size_t batch);

// Unrolls `bound`, which was made from `graph` by binding it to the first chunk. The `joints` of
// *out are ids of `graph`. MSC_E_UNSUPPORTED: an input that gives parameters of joints
// (`is_parameter` [n_inputs]) differs between chunks. MSC_E_INVALID: the tensor that feeds a state
// does not exist or does not fit the state.
enum msc_status msc_sequence_unroll(struct msc_unrolled *out, const struct msc_graph *graph,
                                    const struct msc_graph *bound,
                                    const struct msc_dataset *dataset, size_t batch,
                                    const bool is_parameter[], const int32_t wanted[],
                                    size_t n_wanted);

#endif
