// Steps of weights wide enough for the biases beside them. A bias is rounded to int32 in steps of the
// activation times those of the weight (tools/bias_edits.h), and beside a weight of next to nothing it
// would not fit: neither would what a joint's tail adds to it (graph/tail.h). So steps are at least such
// that both come to 2^30 of them, which leaves as much for the products. What the weight loses is
// nothing beside the bias: half a step of it, times the whole range of the activation, is 2^-23 of the
// bias for each element.
//
//     MSC_TRY(msc_weight_steps_widen(&wider, quant, &beside));
//     if (wider.n > 0) { ... msc_quant_finish(&wider); }
#ifndef MSC_TOOLS_WEIGHT_STEPS_H
#define MSC_TOOLS_WEIGHT_STEPS_H

#include "graph/quant.h"
#include "graph/site.h"

// What is beside a weight.
struct msc_weight_steps {
    const struct msc_graph *graph;
    const struct msc_sites *sites;
    int32_t site; // of the weight
    // The least scale of what a joint that reads the weight multiplies it by; 0: that is no integer.
    double (*scale_of)(const void *payload, int32_t joint);
    const void *payload;
    const struct msc_array *bias; // float32, in place of that of each joint; NULL: that
};

// *out is all zero where the steps of `quant` are wide enough, or the target adds no integers, or the
// quantisation has none. Else it is the caller's (msc_quant_finish), sealed: its integers, where they are
// chosen, are the nearest ones of the wider steps. Shifts count as part of the bias. MSC_E_NOMEM.
enum msc_status msc_weight_steps_widen(struct msc_quant *out, const struct msc_quant *quant,
                                       const struct msc_weight_steps *beside);

#endif
