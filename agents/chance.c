#include "agents/chance.h"

#include "agents/near_distance.h"
#include "agents/numbers.h"

#include <string.h>

// The beta prior of a cause: as if PRIOR_WEIGHT points with it had been seen, of which the share
// PRIOR_BREAK (a choice) or PRIOR_PAIR_BREAK (a pair) was broken by it.
#define PRIOR_WEIGHT 1.0
#define PRIOR_BREAK 0.1
#define PRIOR_PAIR_BREAK 0.02
// Pairs are causes in a space of at most this many tasks and choices.
#define MOST_PAIRED_TASKS 16
#define MOST_PAIRED_ENTRIES 128
// Steps of expectation maximisation.
#define STEPS 12
// Weight of q(x) among the outcomes, and how fast the weight of a point falls with its distance.
#define MODEL_WEIGHT 0.6
#define RATE 3.0

enum msc_status msc_chance_init(struct msc_chance *c, struct msc_arena *arena,
                                const struct msc_exact_bounds *bounds) {
    size_t n = bounds->n_entries;
    *c = (struct msc_chance){.bounds = bounds, .is_stale = true};
    c->points =
        msc_arena_array(arena, MSC_CHANCE_POINTS * bounds->space->n_tasks, sizeof *c->points);
    c->works = msc_arena_array(arena, MSC_CHANCE_POINTS, sizeof *c->works);
    c->breaks = msc_arena_array(arena, n, sizeof *c->breaks);
    c->blames = msc_arena_array(arena, n, sizeof *c->blames);
    c->counts = msc_arena_array(arena, n, sizeof *c->counts);
    c->distances = msc_arena_array(arena, n, sizeof *c->distances);
    MSC_TRY(MSC_ALLOCATED(c->points && c->works && c->breaks && c->blames && c->counts &&
                          c->distances));
    c->has_pairs = bounds->space->n_tasks <= MOST_PAIRED_TASKS && n <= MOST_PAIRED_ENTRIES;
    if (!c->has_pairs) {
        return MSC_OK;
    }
    c->pair_breaks = msc_arena_array(arena, n * n, sizeof *c->pair_breaks);
    c->pair_blames = msc_arena_array(arena, n * n, sizeof *c->pair_blames);
    c->pair_counts = msc_arena_array(arena, n * n, sizeof *c->pair_counts);
    return MSC_ALLOCATED(c->pair_breaks && c->pair_blames && c->pair_counts);
}

void msc_chance_tell(struct msc_chance *c, const uint32_t choices[], bool works) {
    size_t n_tasks = c->bounds->space->n_tasks, place = c->n_told++ % MSC_CHANCE_POINTS;
    memcpy(c->points + place * n_tasks, choices, n_tasks * sizeof *choices);
    c->works[place] = works;
    c->n_points = c->n_told < MSC_CHANCE_POINTS ? (size_t)c->n_told : MSC_CHANCE_POINTS;
    c->n_failed += !works;
    c->is_stale = true;
}

// ---- Causes that break points -----------------------------------------------------------------

static void set_entries(const struct msc_chance *c, const uint32_t choices[], size_t entries[]) {
    for (size_t t = 0; t < c->bounds->space->n_tasks; t++) {
        entries[t] = msc_exact_bounds_entry(c->bounds, t, choices[t]);
    }
}

static double chance_by_choices(const struct msc_chance *c, const uint32_t choices[]) {
    size_t n_tasks = c->bounds->space->n_tasks, entries[MOST_PAIRED_TASKS];
    double works = 1.0;
    for (size_t t = 0; t < n_tasks; t++) {
        works *= 1.0 - c->breaks[msc_exact_bounds_entry(c->bounds, t, choices[t])];
    }
    if (c->has_pairs) {
        set_entries(c, choices, entries);
    }
    for (size_t t = 0; c->has_pairs && t < n_tasks; t++) {
        for (size_t u = 0; u < t; u++) {
            works *= 1.0 - c->pair_breaks[entries[t] * c->bounds->n_entries + entries[u]];
        }
    }
    return works;
}

// Adds to the sum of each cause of a point `factor`, times the cause's probability if `by_breaks`.
static void add_point(const struct msc_chance *c, const uint32_t choices[], double factor,
                      bool by_breaks, double sums[], double pair_sums[]) {
    size_t n_tasks = c->bounds->space->n_tasks, n = c->bounds->n_entries;
    size_t entries[MOST_PAIRED_TASKS];
    for (size_t t = 0; t < n_tasks; t++) {
        size_t e = msc_exact_bounds_entry(c->bounds, t, choices[t]);
        sums[e] += by_breaks ? factor * c->breaks[e] : factor;
    }
    if (c->has_pairs) {
        set_entries(c, choices, entries);
    }
    for (size_t t = 0; c->has_pairs && t < n_tasks; t++) {
        for (size_t u = 0; u < t; u++) {
            size_t at = entries[t] * n + entries[u];
            pair_sums[at] += by_breaks ? factor * c->pair_breaks[at] : factor;
        }
    }
}

static void set_breaks(double breaks[], const double blames[], const double counts[], size_t n,
                       double prior) {
    for (size_t i = 0; i < n; i++) {
        breaks[i] = (PRIOR_WEIGHT * prior + blames[i]) / (PRIOR_WEIGHT + counts[i]);
    }
}

// One step: a failed point blames each of its causes by the probability that this cause broke it.
static void step(struct msc_chance *c) {
    size_t n = c->bounds->n_entries;
    memset(c->blames, 0, n * sizeof *c->blames);
    if (c->has_pairs) {
        memset(c->pair_blames, 0, n * n * sizeof *c->pair_blames);
    }
    for (size_t i = 0; i < c->n_points; i++) {
        const uint32_t *x = c->points + i * c->bounds->space->n_tasks;
        if (!c->works[i]) {
            add_point(c, x, 1.0 / (1.0 - chance_by_choices(c, x)), true, c->blames, c->pair_blames);
        }
    }
    set_breaks(c->breaks, c->blames, c->counts, n, PRIOR_BREAK);
    if (c->has_pairs) {
        set_breaks(c->pair_breaks, c->pair_blames, c->pair_counts, n * n, PRIOR_PAIR_BREAK);
    }
}

static void fit(struct msc_chance *c) {
    size_t n_tasks = c->bounds->space->n_tasks, n = c->bounds->n_entries;
    memset(c->counts, 0, n * sizeof *c->counts);
    for (size_t e = 0; e < n; e++) {
        c->breaks[e] = PRIOR_BREAK;
    }
    for (size_t e = 0; c->has_pairs && e < n * n; e++) {
        c->pair_breaks[e] = PRIOR_PAIR_BREAK;
        c->pair_counts[e] = 0.0;
    }
    for (size_t i = 0; i < c->n_points; i++) {
        add_point(c, c->points + i * n_tasks, 1.0, false, c->counts, c->pair_counts);
    }
    for (int i = 0; i < STEPS; i++) {
        step(c);
    }
    c->is_stale = false;
}

double msc_chance_of_break(struct msc_chance *c, size_t entry) {
    if (c->is_stale) {
        fit(c);
    }
    return c->breaks[entry];
}

// ---- Points near others -----------------------------------------------------------------------

double msc_chance_of(struct msc_chance *c, const uint32_t choices[]) {
    size_t n_tasks = c->bounds->space->n_tasks;
    if (c->is_stale) {
        fit(c);
    }
    double working = MODEL_WEIGHT * chance_by_choices(c, choices), all = MODEL_WEIGHT;
    double weights[MSC_CHANCE_POINTS];
    msc_near_distances(c->bounds, choices, NULL, c->distances);
    for (size_t i = 0; i < c->n_points; i++) {
        weights[i] = -RATE * msc_near_sum(c->bounds, c->distances, c->points + i * n_tasks);
    }
    msc_agent_exp_each(weights, c->n_points);
    for (size_t i = 0; i < c->n_points; i++) {
        all += weights[i];
        working += c->works[i] ? weights[i] : 0.0;
    }
    return working / all;
}

double msc_chance_share(const struct msc_chance *c) {
    size_t n = 0;
    for (size_t i = 0; i < c->n_points; i++) {
        n += c->works[i];
    }
    return c->n_points > 0 ? (double)n / (double)c->n_points : 1.0;
}
