// The space of the `quantize` environment: tasks from sites, exact costs (env/quantize/metrics.c),
// and uniform plans as baselines.
#ifndef MSC_ENV_QUANTIZE_SPACE_H
#define MSC_ENV_QUANTIZE_SPACE_H

#include "env/api/env.h"
#include "kernels/plan.h"
#include "tools/quantizer.h"

struct msc_arena;
struct msc_quantize_latency;
struct msc_metrics;
struct msc_whole_cost;

enum { MSC_QUANTIZE_FLOAT_BITS = 32 }; // bits of a float

// Inputs for building a space; all borrowed.
struct msc_quantize_inputs {
    const struct msc_env_host *host;
    const struct msc_quantizer *quantizer;
    const struct msc_plan *plan; // an outline (msc_evaluator_outline) with bound shapes
    double n_samples;            // samples that the plan computes at once
    // [n_slots], edits of slots without a task (NULL: float).
    const struct msc_edit *const *fixed;
    const struct msc_metrics *metrics;
    const struct msc_quantize_latency *latency; // NULL unless a metric asks for it
    const struct msc_whole_cost *whole;         // cost of the whole model; NULL: the graph is whole
};

struct msc_quantize_space {
    struct msc_space space;
    int32_t *task_of_site; // [n_sites], or MSC_NO_ID
    int32_t *site_of_slot; // [n_slots], or MSC_NO_ID
    // [n_tasks][n_choices of the task], the quantizer's choices of a task. Choices that quantise
    // the task's kind of sites (weights, activations) in the same way are listed once.
    const uint32_t **choices_of_task;
    // [n_tasks][kind][n_choices of the task], bits of each choice by enum msc_site_kind.
    const double *(*bits_of_task)[2];
    double **choice_features; // [n_tasks], the writable features of the space's choices
    double macs;              // multiply-accumulates for one sample
    // The float model's values, by index in the space's metrics; NaN: must be measured.
    double references[MSC_MAX_METRICS];
};

// Everything is allocated in the arena.
enum msc_status msc_quantize_space_build(struct msc_quantize_space *out,
                                         const struct msc_quantize_inputs *in,
                                         struct msc_arena *arena);

// Adds the features of choices, after the costs: "bits", "group_size", "size_bytes", "weight_error"
// and "distill_loss" (env/quantize/features.c). The weight error is the sum of squares of rounding
// errors relative to the sum of squares of the task's weights. The loss is NaN until
// msc_quantize_set_alone. `tasks` are the space's tasks.
enum msc_status msc_quantize_add_choice_features(struct msc_quantize_space *s,
                                                 struct msc_task tasks[],
                                                 const struct msc_quantize_inputs *in,
                                                 struct msc_arena *arena);
// Adds the space's neighbours, from the model's graph (env/quantize/neighbours.c).
enum msc_status msc_quantize_add_neighbours(struct msc_quantize_space *s,
                                            const struct msc_quantize_inputs *in,
                                            struct msc_arena *arena);
double msc_quantize_weight_error(const struct msc_quantize_space *s, size_t task, size_t choice);
// Sets the feature "distill_loss" of all choices, task by task; an infinite one counts
// as worse than all others.
void msc_quantize_set_alone(struct msc_quantize_space *s, const double losses[]);

// The task that decides a slot, or MSC_NO_ID.
static inline int32_t msc_quantize_task_of_slot(const struct msc_quantize_space *s, int32_t slot) {
    int32_t site = s->site_of_slot[slot];
    return site == MSC_NO_ID ? MSC_NO_ID : s->task_of_site[site];
}
// The slot of the plan's graph that corresponds to a slot of the model. Its site must be included.
const struct msc_slot *msc_quantize_bound_slot(const struct msc_plan *plan, int32_t slot);
// The bits per element of a choice as stored by the target; without a target, the choice's own
// bits.
double msc_quantize_bits(const struct msc_quantizer *q, size_t choice, bool is_weight);

#endif
