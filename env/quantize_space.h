// The space of the quantize environment: tasks from sites, exact costs, uniform baselines.
//
//   size_bytes     for each weight ceil(n * bits / 8), 4 bytes a scale and 4 a zero point that is
//                  not always 0; float16 and bfloat16 two bytes an element; weights that stay
//                  float count their elements' own size
//   bit_ops        for one sample: sum over joints of MACs * bits(activation) * bits(weight), float
//                  counting 32
//   macs           multiply-accumulates for one sample, which quantising does not change
//   *_ratio        against the float model
//   file_bytes     of the exported model without metadata; measured, and only where the goal
//                  names it
#ifndef MSC_ENV_QUANTIZE_SPACE_H
#define MSC_ENV_QUANTIZE_SPACE_H

#include "env/api/space.h"
#include "kernels/plan.h"
#include "tools/quantizer.h"

#ifdef __cplusplus
extern "C" {
#endif

struct msc_arena;

struct msc_quantize_space {
    struct msc_space space;
    int32_t *task_of_site; // [n_sites] or MSC_NO_ID
    int32_t *site_of_slot; // [n_slots]
    // [n_tasks][n_choices of the task] the quantizer's choices that a task has: all of them, or
    // where no weight is decided those that differ for activations, too.
    const uint32_t **choices_of_task;
    double float_size_bytes, macs, float_bit_ops;
};

// Metrics beside the loss that trials are measured by.
enum {
    MSC_QUANTIZE_MEASURES_ACCURACY = 1 << 0,
    MSC_QUANTIZE_MEASURES_FILE = 1 << 1, // file_bytes, of the exported model
};

// `fixed` [n_slots] are the edits of slots that are no task (NULL: float). `plan` gives bound
// shapes for batches of `n_batch` samples; `measured` is of MSC_QUANTIZE_MEASURES_*. Everything
// lives in the arena.
enum msc_status msc_quantize_space_build(struct msc_quantize_space *out,
                                         const struct msc_quantizer *q, const struct msc_plan *plan,
                                         const struct msc_quant *const fixed[], int64_t n_batch,
                                         unsigned measured, struct msc_arena *arena);

// Indices of the metrics that are measured.
enum {
    MSC_QUANTIZE_LOSS = 0,
    MSC_QUANTIZE_ACCURACY = 1, // only with labels
};

#ifdef __cplusplus
}
#endif

#endif
