// Measures the latencies of several forms of one network on this program's kernels, in the same way
// as mscgym-runtime measures latencies in other runtimes (docs/runtime.md).
//
//     MSC_TRY(msc_model_load_first(model, "calibration.npz", 1));    // for each model
//     MSC_TRY(msc_model_latency(&latency, models, 2, 20));
//     msc_latency_finish(&latency);
#ifndef MSC_MODEL_LATENCY_H
#define MSC_MODEL_LATENCY_H

#include "model/model.h"
#include "tools/latency.h"

// Gives a model without a dataset one batch to run on: the first `batch` samples of a file (one
// sample if the model takes one at a time). `inputs` NULL: random values, -1 to 1 for floats, 0 to
// 127 for bytes, 0 or 1 for other integers; open dimensions have length 1.
enum msc_status msc_model_load_first(struct msc_model *model, const char *inputs, int64_t batch);

// Measures models that have one batch each. `latency` must be zeroed and is owned by the caller.
enum msc_status msc_model_latency(struct msc_latency *latency, struct msc_model *const models[],
                                  size_t n_models, size_t n_rounds);

#endif
