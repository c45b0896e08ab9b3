// Adapts strategies to a model's weights, and measures their loss and accuracy.
#ifndef MSC_MODEL_STRATEGIES_H
#define MSC_MODEL_STRATEGIES_H

#include "model/model.h"
#include "tools/strategy.h"

MSC_PUBLIC_BEGIN

struct msc_recalibration {
    // Distill loss (mse) over the model's dataset. loss_before is NaN if the old scales do not fit
    // the shapes of the new weights, as those of a pruned network.
    double loss_before, loss_after;
};
// Keeps the choices of a strategy and recomputes its scales from the model and its dataset, which
// must be loaded.
enum msc_status msc_strategy_refit(struct msc_recalibration *out, struct msc_strategy *strategy,
                                   struct msc_model *model);

// The effect of a strategy on a model, over some samples.
struct msc_strategy_measured {
    double loss;                     // distill loss (mse) against the unmodified model
    double accuracy, float_accuracy; // NaN: the samples have no labels
};
// Compares the tensors of these names; n_tensors 0: the outputs. `samples` are inputs of the model.
enum msc_status msc_strategy_measure(struct msc_strategy_measured *out,
                                     const struct msc_strategy *strategy,
                                     const struct msc_model *model,
                                     const struct msc_dataset *samples, const char *const tensors[],
                                     size_t n_tensors);

MSC_PUBLIC_END

#endif
