// The plan of a sequence: the network bound to one chunk, then repeated for all chunks of a batch
// with its state carried from one to the next (graph/passes/unroll.h).
#ifndef MSC_KERNELS_ENGINE_SEQUENCE_H
#define MSC_KERNELS_ENGINE_SEQUENCE_H

#include "data/dataset.h"
#include "graph/passes/unroll.h"

// The inputs of the first chunk of a batch, for binding. The caller owns arrays [n_inputs], also on
// failure (then some may be NULL).
enum msc_status msc_sequence_first(struct msc_array *arrays[], const struct msc_dataset *dataset,
                                   size_t batch);

// Unrolls `bound`, made from `graph` by binding it to the first chunk; the `joints` of *out refer
// to `graph`. MSC_E_UNSUPPORTED: an input that gives parameters of joints (`is_parameter`
// [n_inputs]) differs between chunks. MSC_E_INVALID: no tensor feeds a state, or the tensor does
// not fit it.
enum msc_status msc_sequence_unroll(struct msc_unrolled *out, const struct msc_graph *graph,
                                    const struct msc_graph *bound,
                                    const struct msc_dataset *dataset, size_t batch,
                                    const bool is_parameter[], const int32_t wanted[],
                                    size_t n_wanted);

#endif
