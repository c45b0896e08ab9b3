// Shared by the files of the planner. No other file includes it.
#ifndef MSC_KERNELS_ENGINE_PLANNER_INTERNAL_H
#define MSC_KERNELS_ENGINE_PLANNER_INTERNAL_H

#include "base/alloc.h"
#include "kernels/engine/planner.h"

// State of planning; exists until the plan is done.
struct msc_planner {
    struct msc_plan *plan;
    const struct msc_graph *graph;
    struct msc_backend *backend;
    struct msc_arena *arena;  // memory of the plan
    struct msc_arena scratch; // freed when planning ends
    const struct msc_plan_origin *origin;
    bool *is_kept;          // [n_tensors] a slot or sink reads the tensor, so it is stored
    bool *is_planned;       // [n_joints] already in a step or in the remainder
    bool *in_remainder;     // [n_joints] memory owned by the plan
    int32_t (*value_of)[2]; // [n_tensors][layout] value id or MSC_NO_ID
    int32_t **members;      // [n_joints] joints of the step that ends with this joint
    int32_t *n_members;     // [n_joints] lengths of `members`
    size_t values_capacity, steps_capacity;
};

// Finds the joints of the remainder: joints whose dims depend on computed data, or whose tensors
// have no elements.
void msc_planner__find_remainder(struct msc_planner *p);
// Fills `members` for all joints outside the remainder.
enum msc_status msc_planner__group_joints(struct msc_planner *p);

// Adds the values of the graph's inputs.
enum msc_status msc_planner__add_inputs(struct msc_planner *p);
// Adds the step of a group of n joints, after the reorders that it needs.
enum msc_status msc_planner__add_group(struct msc_planner *p, const int32_t members[], int n);
// Finds the NCHW values that sinks or the remainder read. All steps must exist.
enum msc_status msc_planner__find_live_out(struct msc_planner *p, const int32_t wanted[], size_t n);

// Finds for each slot of the bound graph its slot in `origin`. If `origin` is NULL, the graphs are
// the same.
enum msc_status msc_planner__match_slots(struct msc_plan *plan,
                                         const struct msc_plan_origin *origin,
                                         struct msc_arena *arena);
// Finds the slots that no step reads. The remainder must be known.
enum msc_status msc_planner__find_remainder_slots(struct msc_plan *plan,
                                                  const struct msc_plan_origin *origin,
                                                  struct msc_arena *arena);
// Finds the values and weights that the model quantises itself. All steps must exist.
enum msc_status msc_planner__find_pairs(struct msc_planner *p);
// Computes the hashes of all steps.
void msc_planner__hash_steps(struct msc_plan *plan);

#endif
