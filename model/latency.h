// Latencies of several forms of one network on the kernels of this program, measured as
// mscgym-runtime measures those of other runtimes (docs/runtime.md).
//
//     MSC_TRY(msc_model_load_first(model, "calibration.npz", 1));    // for each of them
//     MSC_TRY(msc_model_latency(&latency, models, 2, 20));
//     msc_latency_finish(&latency);
#ifndef MSC_MODEL_LATENCY_H
#define MSC_MODEL_LATENCY_H

#include "model/model.h"
#include "tools/latency.h"

// Gives a model, which has no dataset yet, one batch to run on: the first `batch` samples of a file
// (one, where the model takes one at a time), or for NULL random ones: floats of -1 to 1, bytes of
// 0 to 127, other integers 0 or 1; lengths that nothing says are 1.
enum msc_status msc_model_load_first(struct msc_model *model, const char *inputs, int64_t batch);

// Of models that have one batch each. `latency` must be zero and is owned by the caller.
enum msc_status msc_model_latency(struct msc_latency *latency, struct msc_model *const models[],
                                  size_t n_models, size_t n_rounds);

#endif
