// The space of the quantize environment: tasks from sites, exact costs (the rows of
// env/quantize/metrics.c that have them), uniform baselines.
#ifndef MSC_ENV_QUANTIZE_SPACE_H
#define MSC_ENV_QUANTIZE_SPACE_H

#include "env/api/env.h"
#include "kernels/plan.h"
#include "tools/quantizer.h"

struct msc_arena;
struct msc_quantize_latency;
struct msc_metrics;
struct msc_whole_cost;

enum { MSC_QUANTIZE_FLOAT_BITS = 32 }; // of what stays float

// What a space is made from; all borrowed.
struct msc_quantize_inputs {
    const struct msc_env_host *host;
    const struct msc_quantizer *quantizer;
    const struct msc_plan *plan; // the outline: it has the bound shapes
    double n_samples;            // that it computes at once: a joint's costs are for as many
    // [n_slots] The edits of slots that are no task (NULL: float).
    const struct msc_edit *const *fixed;
    const struct msc_metrics *metrics;
    const struct msc_quantize_latency *latency; // where a metric asks for it
    const struct msc_whole_cost *whole;         // of more than the plan has; NULL: of no more
};

struct msc_quantize_space {
    struct msc_space space;
    int32_t *task_of_site; // [n_sites] or MSC_NO_ID
    int32_t *site_of_slot; // [n_slots] MSC_NO_ID: of no site
    // [n_tasks][n_choices of the task] the quantizer's choices that a task has: all of them, or
    // where no weight is decided those that differ for activations, too; and the bits of each, as
    // weights and as activations (enum msc_site_kind).
    const uint32_t **choices_of_task;
    const double *(*bits_of_task)[2];
    double macs; // multiply-accumulates for one sample
    // Of the float model, by index in the space's metrics; NaN: it is to be measured.
    double references[MSC_MAX_METRICS];
};

// Everything lives in the arena.
enum msc_status msc_quantize_space_build(struct msc_quantize_space *out,
                                         const struct msc_quantize_inputs *in,
                                         struct msc_arena *arena);

// Adds what is known of each choice, once costs are there: "bits", "group_size", "size_bytes" and
// "weight_error", of the weights of a task the sum of squares of what rounding adds to them by that of
// the weights themselves (env/quantize/features.c). `tasks` are the space's own.
enum msc_status msc_quantize_add_choice_features(struct msc_quantize_space *s,
                                                 struct msc_task tasks[],
                                                 const struct msc_quantize_inputs *in,
                                                 struct msc_arena *arena);

// The task that decides a slot, or MSC_NO_ID.
static inline int32_t msc_quantize_task_of_slot(const struct msc_quantize_space *s, int32_t slot) {
    int32_t site = s->site_of_slot[slot];
    return site == MSC_NO_ID ? MSC_NO_ID : s->task_of_site[site];
}
// Where a slot of a site that is included is in the plan's graph.
const struct msc_slot *msc_quantize_bound_slot(const struct msc_plan *plan, int32_t slot);
// The bits that a choice takes: as it says, or as its target stores it.
double msc_quantize_bits(const struct msc_quantizer *q, size_t choice, bool is_weight);

#endif
