#include "agents/chance.h"

#include "agents/near_distance.h"
#include "agents/numbers.h"

#include <string.h>

// The beta prior of b[e]: as if PRIOR_WEIGHT points with the choice had been seen, of which the
// share PRIOR_BREAK was broken by it.
#define PRIOR_WEIGHT 1.0
#define PRIOR_BREAK 0.1
// Steps of expectation maximisation.
#define STEPS 12
// Weight of q(x) among the outcomes, and how fast the weight of a point falls with its distance.
#define MODEL_WEIGHT 0.6
#define RATE 2.0

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
    return MSC_ALLOCATED(c->points && c->works && c->breaks && c->blames && c->counts);
}

void msc_chance_tell(struct msc_chance *c, const uint32_t choices[], bool works) {
    size_t n_tasks = c->bounds->space->n_tasks, place = c->n_told++ % MSC_CHANCE_POINTS;
    memcpy(c->points + place * n_tasks, choices, n_tasks * sizeof *choices);
    c->works[place] = works;
    c->n_points = c->n_told < MSC_CHANCE_POINTS ? (size_t)c->n_told : MSC_CHANCE_POINTS;
    c->n_failed += !works;
    c->is_stale = true;
}

// ---- Choices that break points ----------------------------------------------------------------

static double chance_by_choices(const struct msc_chance *c, const uint32_t choices[]) {
    double works = 1.0;
    for (size_t t = 0; t < c->bounds->space->n_tasks; t++) {
        works *= 1.0 - c->breaks[msc_exact_bounds_entry(c->bounds, t, choices[t])];
    }
    return works;
}

// One step: a failed point blames each of its choices by the probability that this choice broke it.
static void step(struct msc_chance *c) {
    size_t n_tasks = c->bounds->space->n_tasks;
    memset(c->blames, 0, c->bounds->n_entries * sizeof *c->blames);
    for (size_t i = 0; i < c->n_points; i++) {
        const uint32_t *x = c->points + i * n_tasks;
        double fails = c->works[i] ? 1.0 : 1.0 - chance_by_choices(c, x);
        for (size_t t = 0; t < n_tasks && !c->works[i]; t++) {
            size_t e = msc_exact_bounds_entry(c->bounds, t, x[t]);
            c->blames[e] += c->breaks[e] / fails;
        }
    }
    for (size_t e = 0; e < c->bounds->n_entries; e++) {
        c->breaks[e] = (PRIOR_WEIGHT * PRIOR_BREAK + c->blames[e]) / (PRIOR_WEIGHT + c->counts[e]);
    }
}

static void fit(struct msc_chance *c) {
    size_t n_tasks = c->bounds->space->n_tasks;
    memset(c->counts, 0, c->bounds->n_entries * sizeof *c->counts);
    for (size_t i = 0; i < c->n_points * n_tasks; i++) {
        c->counts[msc_exact_bounds_entry(c->bounds, i % n_tasks, c->points[i])] += 1.0;
    }
    for (size_t e = 0; e < c->bounds->n_entries; e++) {
        c->breaks[e] = PRIOR_BREAK;
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
    for (size_t i = 0; i < c->n_points; i++) {
        const uint32_t *x = c->points + i * n_tasks;
        double distance = 0.0;
        for (size_t t = 0; t < n_tasks; t++) {
            distance += msc_near_distance(c->bounds, t, x[t], choices[t]);
        }
        double weight = msc_agent_exp(-RATE * distance);
        all += weight;
        working += c->works[i] ? weight : 0.0;
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
