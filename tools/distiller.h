// The distiller: computes weights that compensate for the changes that a plan makes to the inputs
// of these weights.
//
// Under a plan, a row w of a joint's weights is multiplied by inputs x, which are quantised and
// changed by all earlier quantisation. In the float model, w is multiplied by inputs f. The row
// that best reproduces the float outputs is, by least squares over samples,
//
//     w* = argmin mean (w f - w* x)^2 + d |w* - w|^2 = (w F'X/n + d w) (X'X/n + d I)^-1
//
// with d = ridge times the mean of the diagonal of X'X/n, so that weights with little data keep
// their trained values. Then w* is rounded with H = X'X/n (tools/rounding.h): scales are fitted to
// the output error, and GPTQ and coordinate descent choose the integers. If the joint's bias can
// take a shift, moments are centred and the shift corrects the remaining error of the mean output.
// (Y. Li et al., "GPTAQ: Efficient Finetuning-Free Quantization for Asymmetric Calibration", arXiv
// 2504.02692, solves the same target column by column.)
//
//     MSC_TRY(msc_moments_measure(&moment, &n_done, &slot, 1, ev, &under_the_plan));
//     MSC_TRY(msc_distiller_improve(&quant, &(struct msc_distiller_job){ ... }));
//     ... struct msc_edit edit = msc_edit_quantize(quant); ...
//     msc_quant_finish(&quant);
#ifndef MSC_TOOLS_DISTILLER_H
#define MSC_TOOLS_DISTILLER_H

#include "graph/site.h"
#include "tools/second_moment.h"

struct msc_distiller_job {
    const struct msc_tensor *weight; // must have elements
    const struct msc_slot *slot;     // a use of the weight
    const struct msc_quant *now; // quantisation in the plan; the result keeps its bits and layout
    const struct msc_moment *moment; // of the weight's inputs under the plan
    const struct msc_target *target; // NULL: none
    double ridge;                    // > 0
    bool has_shifts; // can the joint's bias take shifts (msc_bias_edits_take_shifts)?
    int n_threads;
};

// Can the distiller improve a weight with this quantisation? It takes integers of at most 8 bits.
bool msc_distiller_takes(const struct msc_quant *quant);

// *out is owned by the caller (msc_quant_finish), sealed, with integers. MSC_E_INVALID: the
// moments are not finite, so there is no solution; MSC_E_NOMEM. The result does not depend on the
// number of threads.
enum msc_status msc_distiller_improve(struct msc_quant *out, const struct msc_distiller_job *job);

// The output error of the weight quantised as `now`, relative to the float model, on the samples of
// the moment. It is the mean square, summed over rows, minus a constant that does not depend on the
// quantised weights.
enum msc_status msc_distiller_error(double *out, const struct msc_distiller_job *job);

#endif
