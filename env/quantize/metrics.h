// The metrics that the `quantize` environment computes from choices (struct msc_env_metric).
#ifndef MSC_ENV_QUANTIZE_METRICS_H
#define MSC_ENV_QUANTIZE_METRICS_H

#include "env/metrics.h"
#include "env/quantize/space.h"

extern const struct msc_env_metric msc_quantize_metrics[];
// The function `metric` of the environment's definition.
const struct msc_metric *msc_quantize_metric(size_t index);

// Argument of the `cost` functions of msc_quantize_metrics.
struct msc_quantize_costing {
    const struct msc_quantize_inputs *in;
    const struct msc_quantize_space *s;
};

// The task that decides the bits of the operand at a slot. If there is none, returns MSC_NO_ID and
// sets *bits to the number of bits.
int32_t msc_quantize_operand_task(double *bits, const struct msc_quantize_inputs *in,
                                  const struct msc_quantize_space *s, int32_t slot);

#endif
