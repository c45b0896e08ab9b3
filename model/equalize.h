// Rescales the channels of a model's activations (tools/equalizer.h).
#ifndef MSC_MODEL_EQUALIZE_H
#define MSC_MODEL_EQUALIZE_H

#include "model/model.h"
#include "tools/equalizer.h"

// Like msc_equalize, with the model's dataset, which must be loaded.
enum msc_status msc_model_equalize(struct msc_strategy **out, size_t *n_equalized,
                                   const struct msc_model *model,
                                   const struct msc_equalize_bits *bits);

#endif
