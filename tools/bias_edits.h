// Edits of biases that follow from the choices of a trial: the edits of a joint's weight and
// activation determine the edit of its bias.
//
// - If the weight has shifts (msc_quant), they are added to the bias.
// - If the target adds biases to integer sums and the joint computes in integers, the bias is
//   rounded to int32 with the step of the sums, s_x * s_w[c] (ONNX's QLinearConv; "Integer
//   Quantization for Deep Learning Inference", arXiv 2004.09602, section 3.3). If the target folds
//   the joints that follow (the tail, graph/tail.h) into the bias, the tail's constants are added
//   before rounding.
//
//     MSC_TRY(msc_bias_edits_create(&b, graph, sites));
//     MSC_TRY(msc_bias_edits_fill(b, edits)); // the slots of biases, from the edits of other slots
#ifndef MSC_TOOLS_BIAS_EDITS_H
#define MSC_TOOLS_BIAS_EDITS_H

#include "graph/edit.h"

struct msc_bias_edits;

// `g` and `sites` are borrowed until destroy. *out is owned by the caller.
enum msc_status msc_bias_edits_create(struct msc_bias_edits **out, const struct msc_graph *g,
                                      const struct msc_sites *sites);
void msc_bias_edits_destroy(struct msc_bias_edits *b); // accepts NULL

// Fills the slots of biases in edits [sites->n_slots]; if a bias needs no edit, its slot is
// unchanged. If the edit in a slot already replaces the elements (MSC_EDIT_REPLACE), the new edit
// starts from the replaced elements. New edits live as long as `b`. They are made once for each
// combination of edits of activation, weight and bias, compared by address, so edits must not move.
// Not thread-safe. MSC_E_STATE: shifts do not fit a bias.
enum msc_status msc_bias_edits_fill(struct msc_bias_edits *b, const struct msc_edit *edits[]);

// Can a weight's shifts be added in every joint that reads the weight? Each of these joints needs a
// constant bias with n elements, one per output channel.
bool msc_bias_edits_take_shifts(const struct msc_graph *g, const struct msc_sites *sites,
                                int32_t site, int64_t n);

#endif
