// The dynamic-shape remainder of a plan: the joints that the plan's steps do not compute, because
// their shapes, or shapes of joints that they depend on, are known only at run time. These joints
// run one by one for each (trial, batch): the heavy ones with the kernels of the backend `cpu`
// (kernels/engine/joint_runner.h), all others with the reference kernels. Constants are already
// computed. Edits of the joints' slots are applied as fake quantisation.
//
//     const struct msc_remainder remainder = {.plan = plan, .dataset = dataset, .batch = 3,
//                                             .edits = edits, .sink = &sink, .store = &store};
//     MSC_TRY(msc_remainder_run(&remainder, live_out));
#ifndef MSC_KERNELS_ENGINE_REMAINDER_H
#define MSC_KERNELS_ENGINE_REMAINDER_H

#include "graph/reference/reference.h"
#include "kernels/engine/evaluator.h"
#include "kernels/engine/remainder_store.h"

// One trial on one batch. All pointers are borrowed for the call.
struct msc_remainder {
    const struct msc_plan *plan;
    const struct msc_dataset *dataset; // gives the inputs of the plan's graph
    size_t batch;
    const struct msc_edit *const *edits; // as in msc_eval_trial
    uint64_t noise_seed;
    const struct msc_sink *sink;
    size_t trial; // the sink's index of the trial
    struct msc_remainder_store *store;
    const struct msc_reference_limits *limits;
};

// True if the sink reads any value that the remainder makes.
bool msc_remainder_is_asked(const struct msc_plan *plan, const struct msc_sink *sink);
// Runs the remainder on `live_out` [plan->n_live_out], which are in host memory. Gives the sink the
// values of the remainder's slots one by one, then the batch's wanted tensors. May be called from
// any thread.
enum msc_status msc_remainder_run(const struct msc_remainder *remainder,
                                  const struct msc_view live_out[]);

#endif
