// Shared by the files of the evaluator. No other file includes it.
#ifndef MSC_KERNELS_ENGINE_EVALUATOR_INTERNAL_H
#define MSC_KERNELS_ENGINE_EVALUATOR_INTERNAL_H

#include "kernels/engine/schedule.h"
#include "kernels/engine/signatures.h"

struct msc_evaluator {
    struct msc_evaluator_options options;
    const struct msc_graph *graph;
    const struct msc_dataset *dataset;
    struct msc_sites sites;
    struct msc_cache cache;
    struct msc_remainder_store remainder_store;
    struct msc_reference_limits limits; // for joints that run subgraphs and for remainders
    bool is_large; // the weights take more than half of the memory: trials run one by one
    int n_plans;
    struct msc_plan **plans; // [n_plans] one per signature
    size_t plans_capacity;
    struct msc_plan *outline; // NULL until it is requested
    double outline_samples;
    struct msc_signatures signatures;
    int32_t *plan_of_batch; // [n_batches] index of a plan
    struct msc_schedule *schedule;
    double next_limit_s; // time from which set_limit queries the memory again
};

// Makes the plans and signatures, and finds the plan of each batch.
enum msc_status msc_evaluator__create_plans(struct msc_evaluator *ev, const int32_t wanted[],
                                            size_t n_wanted);
void msc_evaluator__destroy_plans(struct msc_evaluator *ev); // may follow a failed creation

#endif
