// Biases for targets that add them to integer sums: where a joint computes over integers, its bias
// is rounded to int32 of the step that the sums have, s_x * s_w[c] (ONNX's QLinearConv; "Integer
// Quantization for Deep Learning Inference", arXiv 2004.09602, section 3.3).
//
//     MSC_TRY(msc_bias_roundings_create(&b, graph, sites));
//     MSC_TRY(msc_bias_roundings_fill(b, edits)); // the slots of biases, by what the others have
#ifndef MSC_TOOLS_BIAS_ROUNDING_H
#define MSC_TOOLS_BIAS_ROUNDING_H

#include "graph/edit.h"

struct msc_bias_roundings;

// Both are borrowed until destroy. Without a target that rounds biases in the sites' scheme
// it has nothing to do. *out
// is owned by the caller.
enum msc_status msc_bias_roundings_create(struct msc_bias_roundings **out,
                                          const struct msc_graph *g, const struct msc_sites *sites);
void msc_bias_roundings_destroy(struct msc_bias_roundings *b); // accepts NULL

// Fills the biases' slots in edits [sites->n_slots] whose joint's activation and weight are edits
// to integers of a byte; the others stay as they are. What is filled in lives as long as `b`, and
// is made once for each pair of edits, which are told apart by address: edits must stay where they
// are. Not for several threads at once.
enum msc_status msc_bias_roundings_fill(struct msc_bias_roundings *b,
                                        const struct msc_edit *edits[]);

#endif
