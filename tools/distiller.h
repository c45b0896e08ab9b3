// The distiller: weights that make up for what a plan has done to their inputs.
//
// A row w of a joint's weights is multiplied by inputs x that are quantised, and moved by all that is
// quantised before them; in the float model by inputs f. The row that gives what w gave there is, by
// least squares over samples,
//
//     w* = argmin mean (w f - w* x)^2 + d |w* - w|^2 = (w F'X/n + d w) (X'X/n + d I)^-1
//
// with d = ridge times the mean of the diagonal of X'X/n: what the samples say little of stays as it
// was trained. Then w* is rounded with X'X/n for H (tools/rounding.h): scales by the error of outputs,
// GPTQ, coordinate descent. Where the joint's bias can take a shift, all of it is around the means,
// and the shift makes up for what the mean of the outputs is off by then. (Y. Li et al., "GPTAQ:
// Efficient Finetuning-Free Quantization for Asymmetric Calibration", arXiv 2504.02692, has the same
// target column by column.)
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
    const struct msc_tensor *weight; // with its elements
    const struct msc_slot *slot;     // a use of it
    const struct msc_quant *now;     // how the plan quantises it: bits, and what has a scale, stay
    const struct msc_moment *moment; // under the plan
    const struct msc_target *target; // NULL: none
    double ridge;                    // > 0
    bool has_shifts;                 // can the joint's bias take them (msc_bias_edits_take_shifts)?
    int n_threads;
};

// Can a weight be improved that a plan quantises so? Integers of 8 bits at most.
bool msc_distiller_takes(const struct msc_quant *quant);

// *out is the caller's (msc_quant_finish), sealed, with integers. MSC_E_INVALID: there is no such
// weight, as the moments are no numbers; MSC_E_NOMEM. What comes of it does not depend on threads.
enum msc_status msc_distiller_improve(struct msc_quant *out, const struct msc_distiller_job *job);

// How far the outputs are from the float model's where the weight is quantised as `now`, on the samples
// of the moment: the mean square, summed over rows, less what it is for any weights.
enum msc_status msc_distiller_error(double *out, const struct msc_distiller_job *job);

#endif
