// Functions shared by the search for plans (plan_search.c) and its relaxation (plan_relax.c).
#ifndef MSC_AGENTS_PLAN_SEARCH_INTERNAL_H
#define MSC_AGENTS_PLAN_SEARCH_INTERNAL_H

#include "agents/plan_search.h"

static inline size_t msc_plan__entry(const struct msc_plan_search *s, size_t task,
                                     uint32_t choice) {
    return msc_exact_bounds_entry(s->moves.bounds, task, choice);
}

// Makes `choices` the current point, with its fields, deltas and loads.
void msc_plan__start_at(struct msc_plan_search *s, const uint32_t choices[]);

#endif
