// Planning: from a bound graph to the steps that a backend runs (kernels/plan.h).
//
//     struct msc_plan *plan;
//     MSC_TRY(msc_plan_create(&plan, graph, backend, wanted, n_wanted));
//     msc_plan_destroy(plan);
#ifndef MSC_KERNELS_ENGINE_PLANNER_H
#define MSC_KERNELS_ENGINE_PLANNER_H

#include "kernels/backend.h"

// What a plan's graph was made from by binding: edits are for the slots of `sites`. A slot is found
// again by its joint and operand. It may be gone (everything its joint reads was computed at once),
// and what was an activation may be a constant by now.
struct msc_plan_origin {
    const struct msc_graph *graph;
    const struct msc_sites *sites;
    // [n_joints of the plan's graph] joints of `graph`, or MSC_NO_ID; NULL: those of the same names.
    const int32_t *joints;
    const int32_t *parts; // [n_joints] which chunk of a sequence each is of; NULL: there is one
};

// Takes ownership of `graph` (also on failure), whose inputs are bound. `wanted` are tensor ids
// that sinks will read, made available in plain layout. *out is owned by the caller.
enum msc_status msc_plan_create(struct msc_plan **out, struct msc_graph *graph,
                                struct msc_backend *backend, const int32_t wanted[],
                                size_t n_wanted);
// The same for a graph that was bound; `origin` is borrowed for the call.
enum msc_status msc_plan_create_bound(struct msc_plan **out, struct msc_graph *graph,
                                      struct msc_backend *backend, const int32_t wanted[],
                                      size_t n_wanted, const struct msc_plan_origin *origin);
// The same without steps: graph, sites, slots and parts, which is all that costs are counted on.
enum msc_status msc_plan_create_outline(struct msc_plan **out, struct msc_graph *graph,
                                        const struct msc_plan_origin *origin);
void msc_plan_destroy(struct msc_plan *plan); // accepts NULL

// The slot that edits of an operand are for, or MSC_NO_ID.
int32_t msc_plan_find_slot(const struct msc_plan *plan, int32_t joint, int32_t operand);

#endif
