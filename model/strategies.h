// Strategy files in use: where they are read, and made fit for a model's weights.
#ifndef MSC_MODEL_STRATEGIES_H
#define MSC_MODEL_STRATEGIES_H

#include "model/model.h"
#include "tools/strategy.h"

MSC_PUBLIC_BEGIN

struct msc_recalibration {
    double loss_before, loss_after; // distill loss (mse) over the model's dataset
};
// Keeps the choices of a strategy and computes its scales anew from the model and its dataset, which
// is loaded.
enum msc_status msc_strategy_refit(struct msc_recalibration *out, struct msc_strategy *strategy,
                                   struct msc_model *model);

// What a strategy does to a model on some samples.
struct msc_strategy_measured {
    double loss;                     // distill loss (mse) against the model as it is
    double accuracy, float_accuracy; // NaN: the samples have no labels
};
// Of the tensors of these names; n_tensors 0: of the outputs. The samples are of the model's inputs.
enum msc_status msc_strategy_measure(struct msc_strategy_measured *out,
                                     const struct msc_strategy *strategy,
                                     const struct msc_model *model,
                                     const struct msc_dataset *samples, const char *const tensors[],
                                     size_t n_tensors);

MSC_PUBLIC_END

#endif
