// The dynamic-shape remainder of a plan: what its steps do not compute. Joints whose shapes only
// running them tells, and those behind them, run by the reference kernels, joint by joint, for each
// (trial, batch); constants are there already. Edits of its slots are applied as fake quantisation.
//
// The evaluator puts it between its schedule and the caller's sink:
//
//     struct msc_remainder remainder = {
//         .evaluator = ev, .trials = trials, .sink = sink, .store = &store};
//     struct msc_sink own = msc_remainder_sink(&remainder);
#ifndef MSC_KERNELS_ENGINE_REMAINDER_H
#define MSC_KERNELS_ENGINE_REMAINDER_H

#include "kernels/engine/evaluator.h"
#include "graph/reference/reference.h"
#include "kernels/engine/remainder_store.h"

#ifdef __cplusplus
extern "C" {
#endif

struct msc_remainder {
    const struct msc_evaluator *evaluator;
    const struct msc_eval_trial *trials;
    const struct msc_sink *sink; // the caller's
    struct msc_remainder_store *store;
    const struct msc_reference_limits *limits;
};

// Does the sink get anything that is no live-out value of the plan?
bool msc_remainder_is_asked(const struct msc_plan *plan, const struct msc_sink *sink);
// A sink for live-out values, which completes them for the caller's. Borrows `remainder`.
struct msc_sink msc_remainder_sink(struct msc_remainder *remainder);

#ifdef __cplusplus
}
#endif

#endif
