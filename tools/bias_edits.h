// Biases that follow the choices of a trial: what is done to the weight, and to the activation, that
// a joint multiplies decides what becomes of its bias.
//
// - Where the weight comes with shifts (msc_quant), these are added to it.
// - Where the target adds biases to integer sums, and the joint computes over integers, it is rounded
//   to int32 of the step that the sums have, s_x * s_w[c] (ONNX's QLinearConv; "Integer Quantization
//   for Deep Learning Inference", arXiv 2004.09602, section 3.3). What the target adds to the bias in
//   place of joints behind (graph/tail.h) is rounded with it.
//
//     MSC_TRY(msc_bias_edits_create(&b, graph, sites));
//     MSC_TRY(msc_bias_edits_fill(b, edits)); // the slots of biases, by what the others have
#ifndef MSC_TOOLS_BIAS_EDITS_H
#define MSC_TOOLS_BIAS_EDITS_H

#include "graph/edit.h"

struct msc_bias_edits;

// Both are borrowed until destroy. *out is owned by the caller.
enum msc_status msc_bias_edits_create(struct msc_bias_edits **out, const struct msc_graph *g,
                                      const struct msc_sites *sites);
void msc_bias_edits_destroy(struct msc_bias_edits *b); // accepts NULL

// Fills the biases' slots in edits [sites->n_slots]; those that nothing is done to stay as they
// are. A bias whose slot has other elements already (MSC_EDIT_REPLACE) is taken to hold these. What is filled in lives as long as `b`, and is made once for each combination of edits of activation,
// weight and bias, which are told apart by address: edits must stay where they are. Not for several
// threads at once. MSC_E_STATE: shifts do not fit a bias.
enum msc_status msc_bias_edits_fill(struct msc_bias_edits *b, const struct msc_edit *edits[]);

// Can a weight's shifts be added for every joint that reads it: has each a constant bias with an
// element for each of `n` output channels?
bool msc_bias_edits_take_shifts(const struct msc_graph *g, const struct msc_sites *sites,
                                int32_t site, int64_t n);

#endif
