// The plan of a sequence: the network bound to one chunk, then repeated for all chunks of a batch
// with its state carried from one to the next (graph/passes/unroll.h).
#ifndef MSC_KERNELS_ENGINE_SEQUENCE_H
#define MSC_KERNELS_ENGINE_SEQUENCE_H

#include "data/dataset.h"
#include "graph/passes/unroll.h"

// Inputs of the first chunk of a batch, for binding; arrays [n_inputs] are owned by the caller, also
// on failure (NULL: not made).
enum msc_status msc_sequence_first(struct msc_array *arrays[], const struct msc_dataset *dataset,
                                   size_t batch);

// Unrolls `bound`, which was made of `graph` for that chunk; `joints` of *out are those of `graph`.
// MSC_E_UNSUPPORTED: chunks differ in what parameters of joints come from (`is_parameter`
// [n_inputs]). MSC_E_INVALID: a state is fed by nothing, or by what does not fit.
enum msc_status msc_sequence_unroll(struct msc_unrolled *out, const struct msc_graph *graph,
                                    const struct msc_graph *bound,
                                    const struct msc_dataset *dataset, size_t batch,
                                    const bool is_parameter[], const int32_t wanted[],
                                    size_t n_wanted);

#endif
