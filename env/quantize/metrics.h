// The metrics that the quantize environment computes from choices (struct msc_env_metric).
#ifndef MSC_ENV_QUANTIZE_METRICS_H
#define MSC_ENV_QUANTIZE_METRICS_H

#include "env/metrics.h"
#include "env/quantize/space.h"

extern const struct msc_env_metric msc_quantize_metrics[];
// The environment's `metric`.
const struct msc_metric *msc_quantize_metric(size_t index);

// What functions of `cost` are given.
struct msc_quantize_costing {
    const struct msc_quantize_inputs *in;
    const struct msc_quantize_space *s;
};

// The task that decides the bits of what an operand reads by a slot, or MSC_NO_ID: then they are *bits.
int32_t msc_quantize_operand_task(double *bits, const struct msc_quantize_inputs *in,
                                  const struct msc_quantize_space *s, int32_t slot);

#endif
