// What the files of the plan share. Nobody else includes this.
#ifndef MSC_KERNELS_ENGINE_PLANNER_INTERNAL_H
#define MSC_KERNELS_ENGINE_PLANNER_INTERNAL_H

#include "base/alloc.h"
#include "kernels/engine/planner.h"

// What planning keeps by the side until the plan is done.
struct msc_planner {
    struct msc_plan *plan;
    const struct msc_graph *graph;
    struct msc_backend *backend;
    struct msc_arena *arena;  // the plan's
    struct msc_arena scratch; // until planning ends
    const struct msc_plan_origin *origin;
    bool *is_kept;          // [n_tensors] read by slots or sinks
    bool *is_planned;       // [n_joints] in a step already, or in the remainder
    bool *in_remainder;     // [n_joints]; the plan's
    int32_t (*value_of)[2]; // [n_tensors][layout] value id or MSC_NO_ID
    int32_t **members;      // [n_joints] joints of the step that this joint ends
    int32_t *n_members;     // [n_joints]
    size_t values_capacity, steps_capacity;
};

// Which joints are no step's: lengths of theirs depend on what joints compute, or they have no
// elements.
void msc_planner__find_remainder(struct msc_planner *p);
// Fills `members` for all others.
enum msc_status msc_planner__group_joints(struct msc_planner *p);

// Values of the graph's inputs.
enum msc_status msc_planner__add_inputs(struct msc_planner *p);
// The step of a group of n joints, behind the reorders that it needs.
enum msc_status msc_planner__add_group(struct msc_planner *p, const int32_t members[], int n);
// Plain values of what sinks want, and of what the remainder reads. All steps are there.
enum msc_status msc_planner__find_live_out(struct msc_planner *p, const int32_t wanted[], size_t n);

// Fills what slots of the graph edits are for; NULL: it is the graph that they were found in.
enum msc_status msc_planner__match_slots(struct msc_plan *plan,
                                         const struct msc_plan_origin *origin,
                                         struct msc_arena *arena);
// Fills what is not read by steps, once the remainder is known.
enum msc_status msc_planner__find_remainder_slots(struct msc_plan *plan,
                                                  const struct msc_plan_origin *origin,
                                                  struct msc_arena *arena);
// Fills the hashes of all steps.
void msc_planner__hash_steps(struct msc_plan *plan);

#endif
