#include "kernels/engine/planner.h"

#include "kernels/engine/planner_internal.h"

#include <string.h>

static enum msc_status find_slots(struct msc_planner *p) {
    MSC_TRY(msc_sites_find(&p->plan->sites, p->graph,
                           p->origin != NULL ? &p->origin->sites->scheme : NULL));
    return msc_planner__match_slots(p->plan, p->origin, p->arena);
}

static enum msc_status planner_init(struct msc_planner *p, const int32_t wanted[],
                                    size_t n_wanted) {
    size_t n_tensors = (size_t)msc_graph_n_tensors(p->graph);
    size_t n_joints = (size_t)msc_graph_n_joints(p->graph);
    MSC_TRY(find_slots(p));
    size_t n_slots = (size_t)p->plan->sites.n_slots;
    p->is_kept = msc_arena_array(&p->scratch, n_tensors + 1, sizeof(bool));
    p->is_planned = msc_arena_array(&p->scratch, n_joints + 1, sizeof(bool));
    p->value_of = msc_arena_array(&p->scratch, n_tensors + 1, sizeof(p->value_of[0]));
    p->members = msc_arena_array(&p->scratch, n_joints + 1, sizeof(p->members[0]));
    p->n_members = msc_arena_array(&p->scratch, n_joints + 1, sizeof(int32_t));
    p->plan->slot_values = msc_arena_array(p->arena, n_slots + 1, sizeof(int32_t));
    p->in_remainder = msc_arena_array(p->arena, n_joints + 1, sizeof(bool));
    p->plan->in_remainder = p->in_remainder;
    MSC_TRY(MSC_ALLOCATED(p->is_kept && p->is_planned && p->in_remainder && p->value_of &&
                          p->members && p->n_members && p->plan->slot_values));
    memset(p->value_of, 0xff, n_tensors * sizeof(p->value_of[0]));
    memset(p->plan->slot_values, 0xff, n_slots * sizeof(int32_t));
    for (size_t i = 0; i < n_wanted; i++) {
        p->is_kept[wanted[i]] = true;
    }
    for (size_t i = 0; i < n_slots; i++) {
        int32_t tensor = p->plan->sites.slots[i].tensor;
        p->is_kept[tensor] = p->is_kept[tensor] || p->plan->slot_ids[i] != MSC_NO_ID;
    }
    return MSC_OK;
}

static enum msc_status check_inputs(const struct msc_graph *g) {
    for (int32_t i = 0; i < msc_graph_n_inputs(g); i++) {
        if (msc_tensor_n_elements(msc_graph_tensor(g, msc_graph_input(g, i))) < 0) {
            return MSC_FAIL(MSC_E_INVALID, "graph %s has symbolic dims: bind them before planning",
                            msc_graph_name(g));
        }
    }
    return MSC_OK;
}

static enum msc_status make_plan(struct msc_planner *p, const int32_t wanted[], size_t n_wanted) {
    MSC_TRY(planner_init(p, wanted, n_wanted));
    MSC_TRY(check_inputs(p->graph));
    msc_planner__find_remainder(p);
    MSC_TRY(msc_planner__group_joints(p));
    MSC_TRY(msc_planner__add_inputs(p));
    for (int32_t i = 0; i < msc_graph_n_joints(p->graph); i++) {
        if (p->n_members[i] > 0) {
            MSC_TRY(msc_planner__add_group(p, p->members[i], p->n_members[i]));
        }
    }
    MSC_TRY(msc_planner__find_live_out(p, wanted, n_wanted));
    MSC_TRY(msc_planner__find_pairs(p));
    msc_planner__hash_steps(p->plan);
    for (int32_t i = 0; i < p->plan->n_steps; i++) {
        if (p->plan->steps[i].kind != MSC_STEP_ALIAS) {
            MSC_TRY(p->backend->def->prepare(p->backend, p->plan, &p->plan->steps[i]));
        }
    }
    return MSC_OK;
}

enum msc_status msc_plan_create(struct msc_plan **out, struct msc_graph *graph,
                                struct msc_backend *backend, const int32_t wanted[],
                                size_t n_wanted) {
    return msc_plan_create_bound(out, graph, backend, wanted, n_wanted, NULL);
}

// Makes an empty plan that owns the graph.
static enum msc_status planner_begin(struct msc_planner *p) {
    p->plan = msc_alloc_zero(1, sizeof(*p->plan));
    p->arena = msc_alloc_zero(1, sizeof(*p->arena));
    if (!p->plan || !p->arena) {
        msc_free(p->plan);
        msc_free(p->arena);
        msc_graph_destroy((struct msc_graph *)p->graph);
        return MSC_FAIL(MSC_E_NOMEM, "out of memory while planning");
    }
    p->plan->graph = p->graph;
    p->plan->backend = p->backend;
    p->plan->storage = p->arena;
    return MSC_OK;
}

static enum msc_status planner_end(struct msc_plan **out, struct msc_planner *p,
                                   enum msc_status status) {
    msc_arena_finish(&p->scratch);
    if (status != MSC_OK) {
        msc_plan_destroy(p->plan);
        return status;
    }
    *out = p->plan;
    return MSC_OK;
}

enum msc_status msc_plan_create_bound(struct msc_plan **out, struct msc_graph *graph,
                                      struct msc_backend *backend, const int32_t wanted[],
                                      size_t n_wanted, const struct msc_plan_origin *origin) {
    struct msc_planner p = {.graph = graph, .backend = backend, .origin = origin};
    MSC_TRY(planner_begin(&p));
    return planner_end(out, &p, make_plan(&p, wanted, n_wanted));
}

enum msc_status msc_plan_create_outline(struct msc_plan **out, struct msc_graph *graph,
                                        const struct msc_plan_origin *origin) {
    struct msc_planner p = {.graph = graph, .origin = origin};
    MSC_TRY(planner_begin(&p));
    return planner_end(out, &p, find_slots(&p));
}

void msc_plan_destroy(struct msc_plan *plan) {
    if (!plan) {
        return;
    }
    for (int32_t i = 0; i < plan->n_steps; i++) {
        if (plan->steps[i].kernel) {
            plan->backend->def->release(plan->backend, &plan->steps[i]);
        }
    }
    msc_sites_finish(&plan->sites);
    msc_free(plan->values);
    msc_free(plan->steps);
    msc_graph_destroy((struct msc_graph *)plan->graph);
    msc_arena_finish(plan->storage);
    msc_free(plan->storage);
    msc_free(plan);
}
