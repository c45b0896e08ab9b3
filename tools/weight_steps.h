// Widens the steps (scales) of weights so that biases fit. A bias is rounded to int32 with a step
// of the activation's scale times the weight's scale (tools/bias_edits.h). If the weight is tiny,
// the bias and the constant that a joint's tail adds to it (graph/tail.h) would overflow. Scales
// are therefore widened until bias and constant together take at most 2^30 steps, which leaves as
// much room for the products. The weight hardly loses precision: its rounding error is at most half
// a step. Multiplied by the whole range of an 8-bit activation, this error is 2^-23 of the bias for
// each product of a sum.
//
//     MSC_TRY(msc_weight_steps_widen(&wider, quant, &beside));
//     if (wider.n > 0) { ... msc_quant_finish(&wider); }
#ifndef MSC_TOOLS_WEIGHT_STEPS_H
#define MSC_TOOLS_WEIGHT_STEPS_H

#include "graph/quant.h"
#include "graph/site.h"

// The weight, and the scales of the activations that it is multiplied by.
struct msc_weight_steps {
    const struct msc_graph *graph;
    const struct msc_sites *sites;
    int32_t site; // site of the weight
    // The smallest scale of the activation that a joint multiplies by the weight; 0: the activation
    // is not an integer.
    double (*scale_of)(const void *payload, int32_t joint);
    const void *payload;
    const struct msc_array *bias; // float32, replaces each joint's bias; NULL: the model's biases
};

// *out is all zero if the steps of `quant` are wide enough, the target rounds no biases, `quant` is
// not of integers, or `quant` has scales for groups of elements. Otherwise *out is owned by the
// caller (msc_quant_finish), sealed; rounded integers are converted to the wider steps. Shifts
// count as part of the bias. MSC_E_NOMEM.
enum msc_status msc_weight_steps_widen(struct msc_quant *out, const struct msc_quant *quant,
                                       const struct msc_weight_steps *beside);

#endif
