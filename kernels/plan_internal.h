// What the files of the plan share. Nobody else includes this.
#ifndef MSC_KERNELS_PLAN_INTERNAL_H
#define MSC_KERNELS_PLAN_INTERNAL_H

#include "kernels/plan.h"

// Fills the hashes of all steps.
void msc_plan__hash_steps(struct msc_plan *plan);

#endif
