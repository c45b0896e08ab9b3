// What the files of msc_quick_quantize share.
#ifndef MSC_PIPELINE_QUICK_INTERNAL_H
#define MSC_PIPELINE_QUICK_INTERNAL_H

#include "pipeline/processor_internal.h"
#include "pipeline/quick.h"

// The choices that plans are made of, in the order of the environment.
enum msc_quick_choice {
    MSC_QUICK_NEAREST,
    MSC_QUICK_DESCENT,
    MSC_QUICK_AFFINE,
    MSC_QUICK_MINMAX,
    MSC_QUICK_PERCENTILE,
    MSC_QUICK_FLOAT,
};

struct msc_quick_plan {
    enum msc_quick_choice weights, activations;
    size_t n_float; // tasks that are left alone
    struct msc_trial trial;
    double loss;  // on the samples held back; +inf: not known
    cJSON *found; // owned: {"validation"}, then what the runtime makes of it; or NULL
};

struct msc_quick {
    struct msc_arena arena;
    const struct msc_quick_options *options;
    struct msc_processor *p;
    struct msc_quick_plan *plans; // [n] in the arena
    size_t n;
};

enum msc_status msc_quick__no_memory(void);
// MSC_E_CANCELLED once somebody has asked to stop.
enum msc_status msc_quick__check_stop(const struct msc_quick *q);

// Ranges from the least to the greatest value, rounded to nearest, and nothing float.
static inline bool msc_quick__is_plain(const struct msc_quick_plan *plan) {
    return plan->weights == MSC_QUICK_NEAREST && plan->activations == MSC_QUICK_MINMAX &&
           plan->n_float == 0;
}

// quick_plans.c: fills `plans`, the best first.
enum msc_status msc_quick__find_plans(struct msc_quick *q);

#endif
