// Plans of the agent `auto`: the best point within the bounds under the model, found by local
// searches from several starts.
#include "agents/auto.h"

#include <math.h>
#include <string.h>

// The number of random starts of searches for a plan: one for each POINTS_PER_START observed
// points, but at most MOST_STARTS.
#define POINTS_PER_START 8
#define MOST_STARTS 12
// A draw that promises a value further below the best observed one than this share of the spread of
// the best points is replaced by a cooler one, at most MOST_DRAWS times. Each is cooler by COOLER.
#define MOST_BELOW 0.5
#define MOST_DRAWS 6
#define COOLER 0.5

bool msc_auto_needs_probes(const struct msc_auto *a) {
    bool is_given = a->n_parts > 0;
    for (size_t i = 0; i < a->n_parts; i++) {
        const struct msc_auto_part *part = &a->parts[i];
        is_given = is_given && part->prior.given && !isnan(part->sensitivity.base_loss);
    }
    return !is_given;
}

bool msc_auto_is_opening(const struct msc_auto *a) {
    const struct msc_exact_bounds *bounds = &a->sampler.bounds;
    const struct msc_sensitivity *s = &a->parts[0].sensitivity;
    for (size_t i = 0; i < s->n_bounded && msc_auto_needs_probes(a); i++) {
        const struct msc_task *task = &bounds->space->tasks[s->order[i]];
        uint32_t cheapest = task->most_expensive_first[task->n_choices - 1];
        if (!s->was_asked[msc_exact_bounds_entry(bounds, s->order[i], cheapest)]) {
            return true;
        }
    }
    return false;
}

bool msc_auto_looks_additive(const struct msc_auto *a) {
    bool is_additive = msc_pair_model_is_additive(&a->parts[0].model);
    for (size_t i = 1; i < a->n_parts && a->parts[i].objective >= 0; i++) {
        is_additive = is_additive && msc_pair_model_is_additive(&a->parts[i].model);
    }
    return is_additive;
}

// ---- Plans ------------------------------------------------------------------------------------

bool msc_auto_is_unseen(const void *context, const uint32_t choices[]) {
    const struct msc_auto *a = context;
    return !msc_sampler_has(&a->sampler, choices) &&
           msc_exact_bounds_hold(&a->sampler.bounds, choices);
}

static void start_anywhere(struct msc_auto *a) {
    const struct msc_space *space = a->sampler.bounds.space;
    for (size_t t = 0; t < space->n_tasks; t++) {
        a->start[t] = (uint32_t)msc_rng_below(a->sampler.rng, space->tasks[t].n_choices);
    }
}

// Sets a->start to one of the starts that msc_auto_search_from lists.
static bool start_plan(struct msc_auto *a, size_t which) {
    size_t n_bytes = a->sampler.bounds.space->n_tasks * sizeof *a->start;
    size_t n = a->members.n_members;
    if (which > 3) {
        start_anywhere(a);
        return true;
    }
    if (which >= 2) {
        memcpy(a->start, which == 2 && a->has_plan ? a->assembled : a->plan, n_bytes);
        return true;
    }
    size_t member = which == 0 || n == 0 ? 0 : (size_t)msc_rng_below(a->sampler.rng, n);
    if (n > 0) {
        memcpy(a->start, msc_population_point(&a->members, member), n_bytes);
    }
    return n > 0;
}

bool msc_auto_search_from(struct msc_auto *a, size_t which, double *value) {
    double violation;
    if (!start_plan(a, which)) {
        return false;
    }
    if (which == 3) {
        msc_plan_search_relax(&a->search, a->start);
    }
    size_t n_steps = 4 * a->sampler.bounds.space->n_tasks + 50;
    *value = msc_plan_search_run(&a->search, a->start, n_steps, &violation);
    return !(violation > 0.0);
}

// The number of local searches for a plan that may change all tasks.
static size_t starts_anywhere(const struct msc_auto *a) {
    size_t n = a->parts[0].model.n_points / POINTS_PER_START;
    bool is_large = a->sampler.bounds.n_entries > MSC_AUTO_MANY_ENTRIES;
    return msc_auto_is_opening(a) || msc_auto_looks_additive(a) || is_large
               ? 4
               : 4 + (n < MOST_STARTS ? n : MOST_STARTS);
}

// In a space of many choices only some starts are worth a search.
static bool is_too_much(const struct msc_auto *a, size_t which) {
    bool is_large = a->sampler.bounds.n_entries > MSC_AUTO_MANY_ENTRIES;
    return is_large && which % 3 != 0 && !(which == 2 && a->is_assembled);
}

// The least value that the model may promise under a draw in a space of many tasks that gives the
// isolated losses. There, draws far from all observed points promise values that no point has.
static double least_promise(const struct msc_auto *a) {
    double least = INFINITY, most = -INFINITY;
    for (size_t i = 0; i < a->members.n_members; i++) {
        const struct msc_outcome *o = msc_population_outcome(&a->members, i);
        if (o->state == MSC_TRIAL_COMPLETE) {
            least = fmin(least, o->objectives[0]);
            most = fmax(most, o->objectives[0]);
        }
    }
    bool is_limited =
        a->is_adaptive && a->has_objective_part && !msc_auto_needs_probes(a) && least < most;
    return is_limited ? least - MOST_BELOW * (most - least) : -INFINITY;
}

// Finds the best plan under a draw. *promised is its value, or that of a better plan that was
// proposed before; INFINITY: there is none.
static bool draw_plan(struct msc_auto *a, double temperature, double *promised,
                      struct msc_proposal *out) {
    const struct msc_exact_bounds *bounds = &a->sampler.bounds;
    size_t n_bytes = bounds->space->n_tasks * sizeof *out->choices;
    double best = INFINITY, best_seen = INFINITY;
    for (size_t i = 0; i < a->n_parts; i++) {
        msc_pair_model_draw(&a->parts[i].model, a->sampler.rng, temperature);
    }
    bool is_anywhere = msc_auto_is_opening(a) || msc_auto_looks_additive(a) ||
                       a->radius >= (double)bounds->space->n_tasks;
    a->search.max_changed = is_anywhere ? SIZE_MAX : (size_t)a->radius;
    size_t n_starts = is_anywhere ? starts_anywhere(a) : 2;
    for (size_t which = 0; which < n_starts; which++) {
        double value;
        if ((is_anywhere && is_too_much(a, which)) || !msc_auto_search_from(a, which, &value)) {
            continue;
        }
        if (value < best_seen) {
            best_seen = value;
            memcpy(a->found, a->start, n_bytes);
        }
        if (value < best && msc_auto_is_unseen(a, a->start)) {
            best = value;
            memcpy(out->choices, a->start, n_bytes);
        }
    }
    if (temperature == 0.0 && !isinf(best_seen)) {
        memcpy(a->plan, a->found, n_bytes);
    }
    if (isinf(best) && !isinf(best_seen) &&
        msc_plan_search_neighbour(&a->search, a->found, msc_auto_is_unseen, a)) {
        best = best_seen;
        memcpy(out->choices, a->found, n_bytes);
    }
    *promised = fmin(best, best_seen);
    return !isinf(best);
}

bool msc_auto_plan(struct msc_auto *a, double temperature, struct msc_proposal *out) {
    double promised, least = temperature > 0.0 ? least_promise(a) : -INFINITY;
    bool is_found = draw_plan(a, temperature, &promised, out);
    for (int i = 1; i < MOST_DRAWS && promised < least; i++) {
        temperature *= COOLER;
        is_found = draw_plan(a, temperature, &promised, out);
    }
    return is_found && msc_sampler_note(&a->sampler, out->choices);
}
