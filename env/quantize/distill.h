// The stage `distill`: after a search, the winner's weights are improved one after the other, from
// the model's inputs on (tools/distiller.h). Each is fitted on some of the calibration samples, under
// the plan as it is by then, and stays if on the others, which are held back, it brings the outputs of its
// own joint nearer to the float model's. Where that does not lower the distill loss of the plan in the
// end, all begins anew, and a weight stays if it lowers that loss.
//
//     struct msc_quantize_distilled d;
//     MSC_TRY(msc_quantize_distill(&d, env, choices, &options));
//     ... d.strategy ...
//     msc_quantize_distilled_finish(&d);
#ifndef MSC_ENV_QUANTIZE_DISTILL_H
#define MSC_ENV_QUANTIZE_DISTILL_H

#include "env/env.h"

#define MSC_QUANTIZE_MOST_RIDGES 8

struct msc_strategy;

struct msc_quantize_distill_options {
    double held_back; // share of the calibration samples, 0 < held_back < 1
    size_t n_ridges;  // to be tried for each weight
    double ridges[MSC_QUANTIZE_MOST_RIDGES];
    // Optional: before each weight.
    void (*progress)(void *payload, size_t done, size_t n);
    void *payload;
};

// What came of one weight.
struct msc_quantize_distilled_weight {
    const char *site; // borrowed from the environment
    double ridge;     // 0: it stays what it was
};

struct msc_quantize_distilled {
    struct msc_strategy *strategy;  // of the improved plan
    int64_t n_held_back;            // samples
    double loss_before, loss_after; // on these
    const char *by;                 // what weights were judged by: "outputs" or "loss"
    size_t n_weights;               // that there were to improve, in their order
    struct msc_quantize_distilled_weight *weights;
    size_t n_improved;
    double metrics[MSC_MAX_METRICS]; // of the improved plan, by the space's metrics
    struct cJSON *validation;        // metrics on the validation samples; NULL: there are none
};

// What a plan is worth that came of these choices, by the space's metrics: exact costs are those of the
// choices. MSC_E_STATE: the plan does not fit the model.
enum msc_status msc_quantize_measure_plan(double metrics[MSC_MAX_METRICS], struct msc_env *env,
                                          const uint32_t choices[],
                                          const struct msc_strategy *plan);

// The same environment, choices and options give the same bits. MSC_E_UNSUPPORTED: another
// environment, or too few samples to hold any back; MSC_E_CANCELLED. *out is the caller's.
enum msc_status msc_quantize_distill(struct msc_quantize_distilled *out, struct msc_env *env,
                                     const uint32_t choices[],
                                     const struct msc_quantize_distill_options *options);
void msc_quantize_distilled_finish(struct msc_quantize_distilled *d); // accepts a zeroed one

#endif
