// The stage `distill`: improves the weights of the best plan after a search, one by one in
// topological order (tools/distiller.h). Each weight is fitted on a part of the calibration
// samples, with the plan as improved so far. The other samples are held back. The improved weight
// is kept if it brings the outputs of its own joint closer to the float model's on the held-back
// samples. If the final plan does not have a lower distill loss, the stage starts again and keeps a
// weight only if it lowers that loss.
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
    double held_back; // fraction of the calibration samples, 0 < held_back < 1
    size_t n_ridges;  // ridges to try for each weight
    double ridges[MSC_QUANTIZE_MOST_RIDGES];
    bool fits_ranges; // tools/distiller.h
    // The most rows of inputs that a weight is fitted to, in all and per column, and the most
    // columns of a weight that is improved. 0: the usual rows; no limit per column or on columns.
    int64_t most_rows, most_columns;
    double most_of_column;
    // If that does not lower the loss, does not start again and gives no plan.
    bool only_outputs;
    // Optional: called before each weight.
    void (*progress)(void *payload, size_t done, size_t n);
    void *payload;
};

// The result for one weight.
struct msc_quantize_distilled_weight {
    const char *site; // borrowed from the environment
    double ridge;     // 0: not improved
};

struct msc_quantize_distilled {
    struct msc_strategy *strategy;                 // the improved plan; NULL: there is none
    int64_t n_held_back;                           // number of held-back samples
    double loss_before, loss_after;                // distill loss on the held-back samples
    const char *by;                                // how weights were judged: "outputs" or "loss"
    size_t n_weights;                              // weights that could be improved
    struct msc_quantize_distilled_weight *weights; // [n_weights], in topological order
    size_t n_improved;
    double metrics[MSC_MAX_METRICS]; // of the improved plan, by index of the space's metrics
    struct cJSON *validation;        // metrics on the validation samples; NULL: there are none
};

// Measures the metrics of a plan that was derived from these choices. Its exact costs are taken
// from the choices. MSC_E_STATE: the plan does not fit the model.
enum msc_status msc_quantize_measure_plan(double metrics[MSC_MAX_METRICS], struct msc_env *env,
                                          const uint32_t choices[],
                                          const struct msc_strategy *plan);

// Runs the stage. Equal environment, choices and options give equal bits. *out is owned by the
// caller. MSC_E_UNSUPPORTED: the environment is not `quantize`, or there are too few samples to
// hold any back. MSC_E_CANCELLED.
enum msc_status msc_quantize_distill(struct msc_quantize_distilled *out, struct msc_env *env,
                                     const uint32_t choices[],
                                     const struct msc_quantize_distill_options *options);
void msc_quantize_distilled_finish(struct msc_quantize_distilled *d); // accepts a zeroed struct

#endif
