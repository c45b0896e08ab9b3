// Near points of the agent `auto`: candidates around the best points and anywhere, chosen by a
// Gaussian process that needs no base (agents/near_model.h) and by the chance that a point can be
// measured (agents/chance.h).
#include "agents/auto.h"
#include "agents/numbers.h"

#include <math.h>
#include <string.h>

// Candidates: around each of TOP best points, all changes of one task, but at most SINGLES of them
// at random, and SEVERAL changes of two or three tasks; CROSSED points, each task of which has the
// choice of either of two of the PARENTS best points; and ANYWHERE random points.
#define TOP 4
#define SINGLES 48
#define SEVERAL 16
#define PARENTS 12
#define CROSSED 40
#define ANYWHERE (MSC_AUTO_NEAR - TOP * (SINGLES + SEVERAL) - CROSSED)
// With fewer measured points, a point is the likeliest of DRAWS random points to be measurable.
#define LEAST_POINTS 4
#define DRAWS 24
// Share of near points among the proposals if the base cannot be measured, and if it can but at
// least MANY_FAILED points failed and less than FEW_MEASURED of all points were measured.
#define NEAR_CHANCE 0.9
#define NEAR_CHANCE_WITH_BASE 0.4
#define MANY_FAILED 4
#define FEW_MEASURED 0.9
// The same share in a space of few tasks, with or without a base, after the last STUCK points were
// no better than the best one.
#define NEAR_CHANCE_STUCK 0.5
#define STUCK 30
// Standard deviations that the lower confidence bound subtracts, from values and from ranks.
#define SPREADS 2.0
#define SPREADS_RANKED 3.0

enum { ROW = MSC_NEAR_POINTS + MSC_AUTO_NEAR_PENDING };

enum msc_status msc_auto_near_init(struct msc_auto *a, struct msc_arena *arena) {
    struct msc_auto_near *near = &a->near;
    size_t n_tasks = a->sampler.bounds.space->n_tasks;
    MSC_TRY(msc_chance_init(&a->chance, arena, &a->sampler.bounds));
    MSC_TRY(msc_near_model_init(&near->model, arena, &a->sampler.bounds));
    near->points = msc_arena_array(arena, MSC_AUTO_NEAR * n_tasks, sizeof *near->points);
    near->solved = msc_arena_array(arena, MSC_AUTO_NEAR * ROW, sizeof *near->solved);
    near->means = msc_arena_array(arena, MSC_AUTO_NEAR, sizeof *near->means);
    near->lefts = msc_arena_array(arena, MSC_AUTO_NEAR, sizeof *near->lefts);
    near->chances = msc_arena_array(arena, MSC_AUTO_NEAR, sizeof *near->chances);
    near->made_at = UINT64_MAX;
    return MSC_ALLOCATED(near->points && near->solved && near->means && near->lefts &&
                         near->chances);
}

// ---- Candidates -------------------------------------------------------------------------------

static uint32_t *candidate(const struct msc_auto *a, size_t i) {
    return a->near.points + i * a->sampler.bounds.space->n_tasks;
}

// Keeps the next candidate if it is unseen and, perhaps after a repair, meets the exact bounds.
static void keep(struct msc_auto *a) {
    uint32_t *choices = candidate(a, a->near.n);
    if (!msc_exact_bounds_hold(&a->sampler.bounds, choices)) {
        msc_exact_moves_repair(&a->sampler.moves, a->sampler.rng, choices);
    }
    a->near.n += msc_auto_is_unseen(a, choices);
}

static void draw_anywhere(struct msc_auto *a, uint32_t choices[]) {
    const struct msc_space *space = a->sampler.bounds.space;
    for (size_t t = 0; t < space->n_tasks; t++) {
        choices[t] = (uint32_t)msc_rng_below(a->sampler.rng, space->tasks[t].n_choices);
    }
}

// Another choice of the task: in half of the cases the next one in the order of cost.
static uint32_t other_choice(struct msc_auto *a, size_t t, uint32_t choice) {
    const struct msc_exact_bounds *bounds = &a->sampler.bounds;
    const struct msc_task *task = &bounds->space->tasks[t];
    if (task->n_choices < 2) {
        return choice;
    }
    if (msc_rng_below(a->sampler.rng, 2) == 0) {
        uint32_t other = (uint32_t)msc_rng_below(a->sampler.rng, task->n_choices - 1);
        return other + (other >= choice);
    }
    uint32_t place = bounds->positions[msc_exact_bounds_entry(bounds, t, choice)];
    bool goes_on = msc_rng_below(a->sampler.rng, 2) == 0;
    bool is_next = place == 0 || (goes_on && place + 1 < task->n_choices);
    return task->most_expensive_first[is_next ? place + 1 : place - 1];
}

static size_t count_singles(const struct msc_auto *a) {
    return a->sampler.bounds.n_entries - a->sampler.bounds.space->n_tasks;
}

static void add_single(struct msc_auto *a, const uint32_t from[], size_t task, uint32_t choice) {
    memcpy(candidate(a, a->near.n), from, a->sampler.bounds.space->n_tasks * sizeof *from);
    candidate(a, a->near.n)[task] = choice;
    keep(a);
}

static void add_singles(struct msc_auto *a, const uint32_t from[]) {
    const struct msc_space *space = a->sampler.bounds.space;
    if (count_singles(a) > SINGLES) {
        for (int i = 0; i < SINGLES; i++) {
            size_t t = (size_t)msc_rng_below(a->sampler.rng, space->n_tasks);
            add_single(a, from, t, other_choice(a, t, from[t]));
        }
        return;
    }
    for (size_t t = 0; t < space->n_tasks; t++) {
        for (uint32_t c = 0; c < space->tasks[t].n_choices; c++) {
            if (c != from[t]) {
                add_single(a, from, t, c);
            }
        }
    }
}

static void add_several(struct msc_auto *a, const uint32_t from[]) {
    size_t n_tasks = a->sampler.bounds.space->n_tasks;
    for (int i = 0; i < SEVERAL; i++) {
        uint32_t *choices = candidate(a, a->near.n);
        memcpy(choices, from, n_tasks * sizeof *from);
        for (uint64_t k = 0, n = 2 + msc_rng_below(a->sampler.rng, 2); k < n; k++) {
            size_t t = (size_t)msc_rng_below(a->sampler.rng, n_tasks);
            choices[t] = other_choice(a, t, choices[t]);
        }
        keep(a);
    }
}

// The point of the model with the `rank`-th least value.
static const uint32_t *best_point(const struct msc_near_model *m, size_t rank) {
    for (size_t i = 0; i < m->n_points; i++) {
        size_t n_before = 0;
        for (size_t k = 0; k < m->n_points; k++) {
            n_before += m->values[k] < m->values[i] || (m->values[k] == m->values[i] && k < i);
        }
        if (n_before == rank) {
            return m->points + i * m->bounds->space->n_tasks;
        }
    }
    return NULL;
}

// The point around which candidates are made: with several objectives, any point of the front.
static const uint32_t *start_point(struct msc_auto *a, size_t rank) {
    const struct msc_auto_front *f = &a->front;
    return f->is_used && f->n_points > 0
               ? f->points + msc_rng_below(a->sampler.rng, f->n_points) * f->bounds.space->n_tasks
               : best_point(&a->near.model, rank);
}

static void add_crossed(struct msc_auto *a) {
    size_t n = a->near.model.n_points;
    for (int i = 0; i < CROSSED; i++) {
        const uint32_t *parents[2];
        for (int k = 0; k < 2; k++) {
            parents[k] =
                start_point(a, (size_t)msc_rng_below(a->sampler.rng, n < PARENTS ? n : PARENTS));
        }
        for (size_t t = 0; t < a->sampler.bounds.space->n_tasks; t++) {
            candidate(a, a->near.n)[t] = parents[msc_rng_below(a->sampler.rng, 2)][t];
        }
        keep(a);
    }
}

static double least_value(const struct msc_near_model *m) {
    double least = INFINITY;
    for (size_t i = 0; i < m->n_points; i++) {
        least = fmin(least, m->targets[i]);
    }
    return least;
}

static void gather(struct msc_auto *a) {
    struct msc_auto_near *near = &a->near;
    near->n = near->n_pending = 0;
    near->made_at = a->n_told;
    // Limits of a front are values. Ranks were not tried where the base works.
    near->model.is_ranked = a->base_fails && !a->front.is_used;
    near->is_ready = near->model.n_points >= LEAST_POINTS && msc_near_model_fit(&near->model);
    if (!near->is_ready) {
        return;
    }
    for (size_t rank = 0; rank < TOP; rank++) {
        const uint32_t *from = start_point(a, rank);
        add_singles(a, from);
        add_several(a, from);
    }
    add_crossed(a);
    for (int i = 0; i < ANYWHERE; i++) {
        draw_anywhere(a, candidate(a, near->n));
        keep(a);
    }
    for (size_t i = 0; i < near->n; i++) {
        msc_near_model_predict(&near->model, candidate(a, i), near->solved + i * ROW,
                               &near->means[i], &near->lefts[i]);
        near->chances[i] = msc_chance_of(&a->chance, candidate(a, i));
    }
}

// ---- Choice -----------------------------------------------------------------------------------

// How promising a candidate is: the expected improvement, or how far the lower confidence bound is
// below the best value; times the squared chance of being measured.
static double promise(const struct msc_auto *a, size_t i, double best) {
    const struct msc_auto_near *near = &a->near;
    double unit = sqrt(near->model.variance), spread = unit * sqrt(near->lefts[i]);
    double below = best - near->means[i], chance = near->chances[i] * near->chances[i];
    if (near->n_chosen % 2 == 0) {
        return spread > 0.0 ? chance * spread * msc_agent_gain(below / spread) : 0.0;
    }
    double spreads = near->model.is_ranked ? SPREADS_RANKED : SPREADS;
    return chance * msc_agent_exp((below + spreads * spread) / unit);
}

// With several objectives: the mean expected improvement over the boxes (agents/auto_front.h), of
// the objective as the model sees it. All other objectives are exact.
static double promise_of_front(const struct msc_auto *a, size_t i) {
    const struct msc_auto_front *f = &a->front;
    const struct msc_near_model *m = &a->near.model;
    double spread = sqrt(m->variance * a->near.lefts[i]), sum = 0.0, values[MSC_MAX_OBJECTIVES];
    for (size_t k = 0; k < f->n_objectives; k++) {
        const struct msc_front_objective *o = &f->objectives[k];
        values[k] = o->cost ? o->sign * msc_cost_value(o->cost, candidate(a, i)) : 0.0;
    }
    for (size_t b = 0; spread > 0.0 && b < MSC_FRONT_BOXES; b++) {
        if (msc_auto_front_holds(f, &f->boxes[b], values)) {
            double limit = msc_near_model_scale(m, f->boxes[b].limits[f->minimised]);
            sum += spread * msc_agent_gain((limit - a->near.means[i]) / spread);
        }
    }
    return sum * a->near.chances[i] * a->near.chances[i];
}

// Makes the variances of the other candidates count this one as observed.
static void believe(struct msc_auto *a, size_t chosen) {
    struct msc_auto_near *near = &a->near;
    const double *row = near->solved + chosen * ROW;
    size_t n = near->model.n_points + near->n_pending;
    double root = sqrt(near->lefts[chosen] + near->model.noise);
    if (near->n_pending == MSC_AUTO_NEAR_PENDING || !(root > 0.0)) {
        return;
    }
    for (size_t i = 0; i < near->n; i++) {
        double *other = near->solved + i * ROW;
        double sum =
            msc_near_model_correlation(&near->model, candidate(a, i), candidate(a, chosen));
        for (size_t k = 0; k < n; k++) {
            sum -= other[k] * row[k];
        }
        if (i != chosen) {
            other[n] = sum / root;
            near->lefts[i] = fmax(near->lefts[i] - other[n] * other[n], 0.0);
        }
    }
    near->n_pending++;
}

// The unseen random point that is likeliest to be measured.
static bool draw_likely(struct msc_auto *a, struct msc_proposal *out) {
    size_t n_bytes = a->sampler.bounds.space->n_tasks * sizeof *out->choices;
    double best = 0.0;
    for (int i = 0; i < DRAWS; i++) {
        a->near.n = 0;
        draw_anywhere(a, candidate(a, 0));
        keep(a);
        double chance = a->near.n > 0 ? msc_chance_of(&a->chance, candidate(a, 0)) : 0.0;
        if (chance > best) {
            best = chance;
            memcpy(out->choices, candidate(a, 0), n_bytes);
        }
    }
    return best > 0.0 && msc_sampler_note(&a->sampler, out->choices);
}

// While the search is stuck, the models that it follows miss something, so it changes to others.
bool msc_auto_wants_near(struct msc_auto *a) {
    bool is_frequent =
        a->chance.n_failed >= MANY_FAILED && msc_chance_share(&a->chance) < FEW_MEASURED;
    bool is_stuck = !a->is_adaptive && a->has_objective_part &&
                    (a->base_fails || a->n_probes_left == 0) &&
                    a->n_told >= a->n_told_at_least + STUCK;
    double share = is_stuck        ? NEAR_CHANCE_STUCK
                   : a->base_fails ? NEAR_CHANCE
                                   : NEAR_CHANCE_WITH_BASE;
    return (a->has_objective_part || a->front.is_used) && a->n_parts == 1 &&
           (a->base_fails || is_frequent || is_stuck) && msc_rng_double(a->sampler.rng) < share;
}

bool msc_auto_near(struct msc_auto *a, struct msc_proposal *out) {
    struct msc_auto_near *near = &a->near;
    size_t chosen = SIZE_MAX;
    double most = 0.0;
    if (near->made_at != a->n_told) {
        gather(a);
    }
    if (!near->is_ready || (a->front.is_used && !msc_auto_front_draw(&a->front, a->sampler.rng))) {
        return draw_likely(a, out);
    }
    double best = least_value(&near->model);
    for (size_t i = 0; i < near->n; i++) {
        double here = a->front.is_used ? promise_of_front(a, i) : promise(a, i, best);
        if (here > most && msc_auto_is_unseen(a, candidate(a, i))) {
            most = here;
            chosen = i;
        }
    }
    if (chosen == SIZE_MAX) {
        return false;
    }
    memcpy(out->choices, candidate(a, chosen),
           a->sampler.bounds.space->n_tasks * sizeof *out->choices);
    believe(a, chosen);
    near->n_chosen++;
    return msc_sampler_note(&a->sampler, out->choices);
}
