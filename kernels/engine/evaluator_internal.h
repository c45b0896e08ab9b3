// What the files of the evaluator share. Nobody else includes this.
#ifndef MSC_KERNELS_ENGINE_EVALUATOR_INTERNAL_H
#define MSC_KERNELS_ENGINE_EVALUATOR_INTERNAL_H

#include "kernels/engine/cache.h"
#include "graph/reference/reference.h"
#include "kernels/engine/evaluator.h"
#include "kernels/engine/schedule_internal.h"
#include "kernels/engine/signatures.h"
#include "kernels/engine/remainder_store.h"

struct msc_evaluator {
    struct msc_evaluator_options options;
    const struct msc_graph *graph;
    const struct msc_dataset *dataset;
    struct msc_sites sites;
    struct msc_cache cache;
    struct msc_schedule schedule; // its arrays are kept from call to call
    struct msc_remainder_store remainder_store;
    struct msc_reference_limits limits; // for bodies, and for remainders
    int n_plans;
    struct msc_plan **plans; // [n_plans] one for each signature that batches have
    size_t plans_capacity, groups_capacity;
    struct msc_signatures signatures;
    int32_t *plan_of_batch, *columns; // [n_batches]
    bool is_tight;                    // memory did not do for several batches at a time
    double next_limit_s;              // when to look at what the process holds
};

// Fills plans, groups and signatures, and which of them each batch has.
enum msc_status msc_evaluator__create_plans(struct msc_evaluator *ev, const int32_t wanted[],
                                            size_t n_wanted);
void msc_evaluator__destroy_plans(struct msc_evaluator *ev); // also of a creation that failed

#endif
