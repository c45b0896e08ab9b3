#include "agents/auto_front.h"

#include "agents/auto.h"

#include <math.h>
#include <string.h>

// Limits lie up to this fraction of an objective's range outside of the range.
#define MARGIN 0.1

// ---- Init -------------------------------------------------------------------------------------

static void add_limit(struct msc_auto_front *f, const struct msc_space *space,
                      struct msc_front_objective *objective, int metric) {
    bool is_exact;
    objective->item = f->goal.n_bounds; // corrected when bounds on measured metrics are left out
    f->goal.bounds[f->goal.n_bounds++] =
        (struct msc_bound){.metric = metric,
                           .min = -INFINITY,
                           .max = msc_cost_max(space, objective->cost, &is_exact, NULL)};
}

// The goal keeps only bounds on exact costs, so that its bounds are the items of `bounds`.
static void keep_exact_bounds(struct msc_goal *goal, const struct msc_space *space) {
    size_t n = 0;
    for (size_t i = 0; i < goal->n_bounds; i++) {
        if (space->metrics[goal->bounds[i].metric].is_exact) {
            goal->bounds[n++] = goal->bounds[i];
        }
    }
    goal->n_bounds = n;
}

enum msc_status msc_auto_front_init(struct msc_auto *a, struct msc_agent *agent) {
    struct msc_auto_front *f = &a->front;
    const struct msc_space *space = msc_agent_space(agent);
    const struct msc_goal *goal = msc_agent_goal(agent);
    struct msc_arena *arena = msc_agent_arena(agent);
    size_t n_measured = 0;
    if (goal->n_objectives < 2 || goal->n_bounds + goal->n_objectives > MSC_MAX_BOUNDS) {
        return MSC_OK;
    }
    f->goal = *goal;
    f->n_objectives = goal->n_objectives;
    keep_exact_bounds(&f->goal, space);
    for (size_t i = 0; i < goal->n_objectives; i++) {
        const struct msc_objective *from = &goal->objectives[i];
        struct msc_front_objective *to = &f->objectives[i];
        to->sign = from->is_maximised ? -1.0 : 1.0;
        to->cost = msc_space_find_cost(space, space->metrics[from->metric].name);
        if (to->cost) {
            add_limit(f, space, to, from->metric);
        } else {
            to->part = n_measured++;
        }
    }
    f->is_used = n_measured > 0;
    if (!f->is_used) {
        return MSC_OK;
    }
    MSC_TRY(msc_exact_bounds_init(&f->bounds, arena, space, &f->goal));
    f->points = msc_arena_array(arena, MSC_FRONT_POINTS * space->n_tasks, sizeof *f->points);
    f->values = msc_arena_array(arena, MSC_FRONT_POINTS * MSC_MAX_OBJECTIVES, sizeof *f->values);
    return MSC_ALLOCATED(f->points && f->values);
}

// ---- Front ------------------------------------------------------------------------------------

static double *values_of(const struct msc_auto_front *f, size_t point) {
    return f->values + point * MSC_MAX_OBJECTIVES;
}

static const uint32_t *point_of(const struct msc_auto_front *f, size_t point) {
    return f->points + point * f->bounds.space->n_tasks;
}

static bool covers(const double a[], const double b[], size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (a[i] > b[i]) {
            return false;
        }
    }
    return true;
}

bool msc_auto_front_improves(const struct msc_auto_front *f, const double values[]) {
    for (size_t i = 0; i < f->n_points; i++) {
        if (covers(values_of(f, i), values, f->n_objectives)) {
            return false;
        }
    }
    return true;
}

static void put_point(struct msc_auto_front *f, size_t place, const uint32_t choices[],
                      const double values[]) {
    size_t n_tasks = f->bounds.space->n_tasks;
    memmove(f->points + place * n_tasks, choices, n_tasks * sizeof *choices);
    memmove(values_of(f, place), values, f->n_objectives * sizeof *values);
}

void msc_auto_front_add(struct msc_auto_front *f, const uint32_t choices[], const double values[]) {
    size_t n = 0;
    for (size_t i = 0; i < f->n_objectives; i++) {
        if (!isfinite(values[i])) {
            return;
        }
    }
    if (!msc_auto_front_improves(f, values)) {
        return;
    }
    for (size_t i = 0; i < f->n_points; i++) {
        if (!covers(values, values_of(f, i), f->n_objectives)) {
            put_point(f, n++, point_of(f, i), values_of(f, i));
        }
    }
    // If there is no room, the new point replaces one of its neighbours in the order of arrival.
    put_point(f, n < MSC_FRONT_POINTS ? n : n - 1, choices, values);
    f->n_points = n < MSC_FRONT_POINTS ? n + 1 : n;
}

// ---- Boxes ------------------------------------------------------------------------------------

// The range of an objective from which limits are drawn.
static void range_of(const struct msc_auto_front *f, size_t objective, double *low, double *high) {
    const struct msc_front_objective *o = &f->objectives[objective];
    *low = INFINITY;
    *high = -INFINITY;
    for (size_t i = 0; i < f->n_points; i++) {
        *low = fmin(*low, values_of(f, i)[objective]);
        *high = fmax(*high, values_of(f, i)[objective]);
    }
    double margin = MARGIN * (*high - *low);
    *low -= margin;
    *high += margin;
    if (o->cost) {
        const struct msc_space *space = f->bounds.space;
        bool is_exact;
        double least = o->sign > 0.0 ? msc_cost_min(space, o->cost, &is_exact, NULL)
                                     : -msc_cost_max(space, o->cost, &is_exact, NULL);
        *low = fmax(*low, least);
    }
}

static bool is_within(const struct msc_auto_front *f, const double values[]) {
    for (size_t i = 0; i < f->n_objectives; i++) {
        if (i != f->box.minimised && values[i] > f->box.limits[i]) {
            return false;
        }
    }
    return true;
}

// Draws a box. False if the front is empty.
static bool draw_box(struct msc_auto *a) {
    struct msc_auto_front *f = &a->front;
    struct msc_rng *rng = a->sampler.rng;
    struct msc_front_box *box = &f->box;
    size_t n_measured = 0;
    if (f->n_points == 0) {
        return false;
    }
    for (size_t i = 0; i < f->n_objectives; i++) {
        n_measured += !f->objectives[i].cost;
    }
    size_t part = (size_t)msc_rng_below(rng, n_measured);
    bool is_at_point = msc_rng_below(rng, 2) == 0;
    const double *at = values_of(f, (size_t)msc_rng_below(rng, f->n_points));
    for (size_t i = 0; i < f->n_objectives; i++) {
        double low, high;
        range_of(f, i, &low, &high);
        box->limits[i] = is_at_point ? at[i] : low + (high - low) * msc_rng_double(rng);
        if (!f->objectives[i].cost && f->objectives[i].part == part) {
            box->minimised = i;
            box->limits[i] = high;
        }
    }
    box->best = SIZE_MAX;
    for (size_t i = 0; i < f->n_points; i++) {
        double value = values_of(f, i)[box->minimised];
        if (is_within(f, values_of(f, i)) && value < box->limits[box->minimised]) {
            box->limits[box->minimised] = value;
            box->best = i;
        }
    }
    return true;
}

// Makes the search for plans minimise the box's objective within its limits.
static void use_box(struct msc_auto *a) {
    struct msc_auto_front *f = &a->front;
    size_t n = 0;
    for (size_t i = 0; i < f->n_objectives; i++) {
        const struct msc_front_objective *o = &f->objectives[i];
        if (o->cost) {
            struct msc_exact_bound *bound = &f->bounds.items[o->item];
            bound->max = o->sign > 0.0 ? f->box.limits[i] : INFINITY;
            bound->min = o->sign > 0.0 ? -INFINITY : -f->box.limits[i];
        } else if (i == f->box.minimised) {
            a->search.model = &a->parts[o->part].model;
        } else {
            a->search.limits[n++] = (struct msc_plan_limit){
                .model = &a->parts[o->part].model, .min = -INFINITY, .max = f->box.limits[i]};
        }
    }
    for (size_t i = 0; i < a->n_parts; i++) {
        if (a->parts[i].objective < 0) {
            a->search.limits[n++] = (struct msc_plan_limit){
                .model = &a->parts[i].model, .min = -INFINITY, .max = a->parts[i].max};
        }
    }
}

static bool draw_and_use_box(struct msc_auto *a) {
    if (!draw_box(a)) {
        return false;
    }
    use_box(a);
    return true;
}

// Whether the point was not proposed yet and meets the exact bounds and the box's limits; those on
// measured metrics by the models' draws.
static bool is_unseen_within(const void *context, const uint32_t choices[]) {
    const struct msc_auto *a = context;
    if (!msc_exact_bounds_hold(&a->front.bounds, choices) ||
        msc_sampler_has(&a->sampler, choices)) {
        return false;
    }
    for (size_t i = 0; i < a->search.n_limits; i++) {
        const struct msc_plan_limit *limit = &a->search.limits[i];
        if (msc_pair_model_value(limit->model, choices) > limit->max) {
            return false;
        }
    }
    return true;
}

// ---- Plans ------------------------------------------------------------------------------------

static void draw_models(struct msc_auto *a, double temperature) {
    for (size_t i = 0; i < a->n_parts; i++) {
        msc_pair_model_draw(&a->parts[i].model, a->sampler.rng, temperature);
    }
}

enum { FROM_BEST, FROM_RELAXED, FROM_FRONT, FROM_ANYWHERE, STARTS };

// Searches within the box from one of the starts. True if the search ends within the box; a->start
// is then that point, and *value its value.
static bool search_from(struct msc_auto *a, size_t which, double *value) {
    struct msc_auto_front *f = &a->front;
    const struct msc_space *space = f->bounds.space;
    size_t at = which == FROM_FRONT || f->box.best == SIZE_MAX
                    ? (size_t)msc_rng_below(a->sampler.rng, f->n_points)
                    : f->box.best;
    double violation;
    memcpy(a->start, point_of(f, at), space->n_tasks * sizeof *a->start);
    for (size_t t = 0; which == FROM_ANYWHERE && t < space->n_tasks; t++) {
        a->start[t] = (uint32_t)msc_rng_below(a->sampler.rng, space->tasks[t].n_choices);
    }
    if (which == FROM_RELAXED) {
        msc_plan_search_relax(&a->search, a->start);
    }
    *value = msc_plan_search_run(&a->search, a->start, 4 * space->n_tasks + 50, &violation);
    return !(violation > 0.0);
}

bool msc_auto_front_plan(struct msc_auto *a, double temperature, struct msc_proposal *out) {
    const struct msc_space *space = a->sampler.bounds.space;
    size_t n_bytes = space->n_tasks * sizeof *out->choices;
    double best = INFINITY, best_seen = INFINITY;
    if (!draw_and_use_box(a)) {
        return false;
    }
    draw_models(a, temperature);
    bool is_anywhere =
        msc_auto_is_opening(a) || msc_auto_looks_additive(a) || a->radius >= (double)space->n_tasks;
    a->search.max_changed = is_anywhere ? SIZE_MAX : (size_t)a->radius;
    size_t n_starts = a->sampler.bounds.n_entries > MSC_AUTO_MANY_ENTRIES ? FROM_FRONT : STARTS;
    for (size_t which = 0; which < n_starts; which++) {
        double value;
        if (!search_from(a, which, &value)) {
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
        msc_plan_search_neighbour(&a->search, a->found, is_unseen_within, a)) {
        best = best_seen;
        memcpy(out->choices, a->found, n_bytes);
    }
    return !isinf(best) && msc_sampler_note(&a->sampler, out->choices);
}

// ---- Hopes ------------------------------------------------------------------------------------

// Draws of the model in which candidates are searched, each in SEARCHES boxes.
#define DRAWS 6
#define SEARCHES (MSC_AUTO_HOPES / DRAWS)
#define LEAST_TEMPERATURE 0.8
#define TEMPERATURE_STEP 0.3

static void keep_candidate(struct msc_auto *a) {
    size_t n_tasks = a->sampler.bounds.space->n_tasks;
    if (msc_auto_is_unseen(a, a->start)) {
        memcpy(a->hopes + a->n_hopes++ * n_tasks, a->start, n_tasks * sizeof *a->hopes);
    }
}

// Collects the unseen points at which searches in draws of the models end.
static void gather(struct msc_auto *a) {
    a->n_hopes = 0;
    for (int i = 0; i < DRAWS; i++) {
        double temperature = i == 0 ? 0.0 : LEAST_TEMPERATURE + TEMPERATURE_STEP * (i - 1);
        draw_models(a, temperature * a->hope_width);
        for (int k = 0; k < SEARCHES; k++) {
            double value;
            draw_and_use_box(a);
            if (search_from(a, k % STARTS, &value)) {
                keep_candidate(a);
            }
        }
    }
    a->hoped_at = a->n_fitted;
}

static struct msc_hope next_hope(struct msc_auto *a) {
    const struct msc_front_box *box = &a->front.box;
    return (struct msc_hope){
        .model = &a->parts[a->front.objectives[box->minimised].part].model,
        .way = a->n_hoped++ % 2 == 1 ? MSC_HOPE_IMPROVEMENT : MSC_HOPE_BOUND,
        .width = a->hope_width,
        .best_loss = box->limits[box->minimised],
    };
}

static void try_candidate(const struct msc_auto *a, const struct msc_hope *hope,
                          const uint32_t choices[], uint32_t best[], double *least) {
    if (is_unseen_within(a, choices)) {
        double value = msc_hope_value(hope, choices, *least);
        if (value < *least) {
            *least = value;
            memcpy(best, choices, a->sampler.bounds.space->n_tasks * sizeof *choices);
        }
    }
}

bool msc_auto_front_hope(struct msc_auto *a, struct msc_proposal *out) {
    size_t n_tasks = a->sampler.bounds.space->n_tasks;
    double best = INFINITY, value;
    if (a->front.n_points == 0) {
        return false;
    }
    a->search.max_changed = SIZE_MAX;
    if (a->hoped_at != a->n_fitted) {
        gather(a);
    }
    draw_models(a, 0.0);
    draw_and_use_box(a);
    const struct msc_hope hope = next_hope(a);
    for (size_t i = 0; i < a->n_hopes; i++) {
        try_candidate(a, &hope, a->hopes + i * n_tasks, out->choices, &best);
    }
    for (size_t which = 0; which < FROM_FRONT; which++) {
        if (search_from(a, which, &value)) {
            try_candidate(a, &hope, a->start, out->choices, &best);
        }
    }
    if (isinf(best)) {
        return false;
    }
    msc_hope_descend(&hope, out->choices, best, is_unseen_within, a);
    for (size_t i = 0; i < a->n_parts; i++) {
        msc_pair_model_believe(&a->parts[i].model, out->choices);
    }
    return msc_sampler_note(&a->sampler, out->choices);
}

// ---- Parts ------------------------------------------------------------------------------------

void msc_auto_front_connect(struct msc_auto *a) {
    a->search.model = &a->parts[0].model;
    a->has_hopes = a->sampler.bounds.n_entries <= MSC_AUTO_MANY_ENTRIES;
}
