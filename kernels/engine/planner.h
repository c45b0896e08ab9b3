// Planning: makes the steps that a backend runs (kernels/plan.h) from a bound graph.
//
//     struct msc_plan *plan;
//     MSC_TRY(msc_plan_create(&plan, graph, backend, wanted, n_wanted));
//     msc_plan_destroy(plan);
#ifndef MSC_KERNELS_ENGINE_PLANNER_H
#define MSC_KERNELS_ENGINE_PLANNER_H

#include "kernels/backend.h"

// The graph before binding, from which a plan's graph was made. Edits refer to its slots, `sites`.
// A slot is matched by its joint and operand. Binding may remove a slot (if its joint was folded to
// a constant) or turn the activation that a slot reads into a constant.
struct msc_plan_origin {
    const struct msc_graph *graph;
    const struct msc_sites *sites;
    // [n_joints of the plan's graph] the corresponding joint of `graph`, or MSC_NO_ID. NULL: joints
    // are matched by name.
    const int32_t *joints;
    const int32_t *parts; // [n_joints] each joint's chunk of the sequence; NULL: one chunk
};

// Takes ownership of `graph` (also on failure). The inputs of `graph` must be bound. `wanted` are
// ids of the tensors that sinks read; the plan provides them in NCHW. *out is owned by the caller.
enum msc_status msc_plan_create(struct msc_plan **out, struct msc_graph *graph,
                                struct msc_backend *backend, const int32_t wanted[],
                                size_t n_wanted);
// Like msc_plan_create, but for a graph made by binding; `origin` is borrowed for the call.
enum msc_status msc_plan_create_bound(struct msc_plan **out, struct msc_graph *graph,
                                      struct msc_backend *backend, const int32_t wanted[],
                                      size_t n_wanted, const struct msc_plan_origin *origin);
// Like msc_plan_create_bound, but without steps: only graph, sites, slots and parts are set, which
// is enough to count costs.
enum msc_status msc_plan_create_outline(struct msc_plan **out, struct msc_graph *graph,
                                        const struct msc_plan_origin *origin);
void msc_plan_destroy(struct msc_plan *plan); // accepts NULL

// The slot through which edits reach an operand, or MSC_NO_ID.
int32_t msc_plan_find_slot(const struct msc_plan *plan, int32_t joint, int32_t operand);

#endif
