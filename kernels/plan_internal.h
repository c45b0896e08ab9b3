// What the files of the plan share. Nobody else includes this.
#ifndef MSC_KERNELS_PLAN_INTERNAL_H
#define MSC_KERNELS_PLAN_INTERNAL_H

#include "base/alloc.h"
#include "kernels/plan.h"

// Fills what slots of the graph edits are for; NULL: it is the graph that they were found in.
enum msc_status msc_plan__match_slots(struct msc_plan *plan, const struct msc_plan_origin *origin,
                                      struct msc_arena *arena);
// Fills what is not read by steps, once the tail is known.
enum msc_status msc_plan__find_rest_slots(struct msc_plan *plan,
                                          const struct msc_plan_origin *origin,
                                          struct msc_arena *arena);
// Fills the hashes of all steps.
void msc_plan__hash_steps(struct msc_plan *plan);

#endif
