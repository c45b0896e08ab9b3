// The tail of a plan: what steps do not hand over to the sink. Joints whose lengths only running
// them tells, and those behind them, run by the reference kernels, joint by joint, for each (trial,
// batch); constants are there already. Edits of slots in the tail are applied as fake quantisation.
//
// The evaluator puts it between its schedule and the caller's sink:
//
//     struct msc_tail tail = {.evaluator = ev, .trials = trials, .sink = sink, .store = &store};
//     struct msc_sink own = msc_tail_sink(&tail);
#ifndef MSC_KERNELS_ENGINE_TAIL_H
#define MSC_KERNELS_ENGINE_TAIL_H

#include "kernels/engine/evaluator.h"
#include "graph/reference/reference.h"
#include "kernels/engine/tail_store.h"

#ifdef __cplusplus
extern "C" {
#endif

struct msc_tail {
    const struct msc_evaluator *evaluator;
    const struct msc_eval_trial *trials;
    const struct msc_sink *sink; // the caller's
    struct msc_tail_store *store;
    const struct msc_reference_limits *limits;
};

// Does the sink get anything that the plan does not hand over?
bool msc_tail_is_asked(const struct msc_plan *plan, const struct msc_sink *sink);
// A sink for what plans hand over, which completes it for the caller's. Borrows `tail`.
struct msc_sink msc_tail_sink(struct msc_tail *tail);

#ifdef __cplusplus
}
#endif

#endif
