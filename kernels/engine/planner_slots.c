// Matches each slot of a plan's graph with the slot that edits refer to: the slot of the same
// operand of the same joint in the graph before binding.
#include "kernels/engine/planner.h"
#include "kernels/engine/planner_internal.h"

#include <string.h>

static int32_t find_origin(const struct msc_plan *plan, const struct msc_plan_origin *origin,
                           const struct msc_slot *slot) {
    if (slot->joint == MSC_NO_ID) {
        return msc_sites_find_slot(origin->sites, MSC_NO_ID, slot->operand);
    }
    int32_t joint =
        origin->joints != NULL
            ? origin->joints[slot->joint]
            : msc_graph_find_joint(origin->graph, msc_graph_joint(plan->graph, slot->joint)->name);
    return joint == MSC_NO_ID ? MSC_NO_ID
                              : msc_sites_find_slot(origin->sites, joint, slot->operand);
}

// Sets the chunk of each joint. Constants shared by chunks belong to the first chunk.
static enum msc_status set_parts(struct msc_plan *plan, const struct msc_plan_origin *origin,
                                 struct msc_arena *arena) {
    size_t n = (size_t)msc_graph_n_joints(plan->graph);
    int32_t *parts = msc_arena_array(arena, n + 1, sizeof(parts[0]));
    MSC_TRY(MSC_ALLOCATED(parts));
    plan->n_parts = 1;
    for (size_t i = 0; origin != NULL && origin->parts != NULL && i < n; i++) {
        parts[i] = origin->parts[i];
        plan->n_parts = parts[i] + 1 > plan->n_parts ? parts[i] + 1 : plan->n_parts;
    }
    plan->parts = parts;
    return MSC_OK;
}

enum msc_status msc_planner__match_slots(struct msc_plan *plan,
                                         const struct msc_plan_origin *origin,
                                         struct msc_arena *arena) {
    const struct msc_sites *sites = &plan->sites;
    plan->n_slots = origin != NULL ? origin->sites->n_slots : sites->n_slots;
    int32_t *ids = msc_arena_array(arena, (size_t)sites->n_slots + 1, sizeof(ids[0]));
    int32_t *bound = msc_arena_array(arena, (size_t)plan->n_slots + 1, sizeof(bound[0]));
    MSC_TRY(MSC_ALLOCATED(ids && bound));
    memset(bound, 0xff, (size_t)plan->n_slots * sizeof(bound[0]));
    for (int32_t i = 0; i < sites->n_slots; i++) {
        ids[i] = origin != NULL ? find_origin(plan, origin, &sites->slots[i]) : i;
        if (ids[i] != MSC_NO_ID && bound[ids[i]] == MSC_NO_ID) {
            bound[ids[i]] = i;
        }
    }
    plan->slot_ids = ids;
    plan->bound_slots = bound;
    return set_parts(plan, origin, arena);
}

// Finds slots that were activations before binding and that no step reads: the remainder reads
// them, or their values are now constant.
enum msc_status msc_planner__find_remainder_slots(struct msc_plan *plan,
                                                  const struct msc_plan_origin *origin,
                                                  struct msc_arena *arena) {
    const struct msc_sites *before = origin != NULL ? origin->sites : &plan->sites;
    plan->is_remainder_slot = msc_arena_array(arena, (size_t)plan->sites.n_slots + 1, sizeof(bool));
    MSC_TRY(MSC_ALLOCATED(plan->is_remainder_slot));
    for (int32_t i = 0; i < plan->sites.n_slots; i++) {
        const struct msc_slot *slot = &plan->sites.slots[i];
        int32_t id = plan->slot_ids[i];
        if (slot->joint == MSC_NO_ID) {
            continue; // the slot is an output of the graph
        }
        bool is_late = slot->kind == MSC_SITE_WEIGHT || plan->in_remainder[slot->joint];
        plan->is_remainder_slot[i] =
            is_late && id != MSC_NO_ID && before->slots[id].kind == MSC_SITE_ACTIVATION;
        plan->has_remainder_slots = plan->has_remainder_slots || plan->is_remainder_slot[i];
        plan->remainder_reads_slots =
            plan->remainder_reads_slots || plan->in_remainder[slot->joint];
    }
    return MSC_OK;
}

int32_t msc_plan_find_slot(const struct msc_plan *plan, int32_t joint, int32_t operand) {
    int32_t bound = msc_sites_find_slot(&plan->sites, joint, operand);
    return bound == MSC_NO_ID ? MSC_NO_ID : plan->slot_ids[bound];
}
