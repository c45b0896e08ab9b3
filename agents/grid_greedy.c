// Grid search, mode greedy: from the most expensive plan, change by change.
//
// While the plan breaks a bound, a step tries cheaper choices of tasks, those first that were not
// tried and lower the violation most: a sixteenth of the tasks, so that a space of a thousand is
// within its bounds after as many trials. Of all that was tried, in steps before too, it takes those
// changes with the least (loss gained) / (violation removed) that remove an eighth of the violation
// that there was at first. Where no such change helps, a step tries all cheaper choices; where none
// does, the search ends. Where the most expensive plan cannot be measured, it begins with the best
// point told, or a random one. Once within the bounds, a step tries the neighbours of every task's choice
// in its order, more expensive and cheaper, that stay within the bounds, and takes the one of least
// loss, until none lowers it. The plans of a step are proposed over as many asks as they need; the
// step is decided at the ask after the last of them.
//
// What promises most by the steps before is tried first: the best of what was told so far bounds
// the rest. Where a step has nothing yet to bound its plans with, its first ask is for a few only.
//
// Before version 3 a step towards the bounds tried the next cheaper choice of every task, and took one.
#include "agents/grid_search.h"
#include "base/heap.h"

#include <float.h>
#include <math.h>
#include <string.h>

// Of so many plans one is asked for before a step has a bound.
#define PILOT_PART 16
// Of a step towards the bounds: what it removes of the violation at first, the tasks that it tries,
// and at least so many.
#define QUOTA 0.125
#define TRIED_PART 16
#define LEAST_TRIES 8
#define MOST_DRAWS 256

// Losses of choices are counted from those of the plan where it stands.
static void greedy_count_from_here(struct msc_grid *grid) {
    for (size_t t = 0; t < grid->exact.space->n_tasks; t++) {
        size_t entry = msc_exact_bounds_entry(&grid->exact, t, grid->greedy.choices[t]);
        grid->greedy.sums[entry] = 0.0;
    }
}

static enum msc_status greedy_init(struct msc_agent *agent, struct msc_grid *grid) {
    struct msc_grid_greedy *g = &grid->greedy;
    struct msc_arena *arena = msc_agent_arena(agent);
    size_t n_tasks = msc_agent_space(agent)->n_tasks;
    size_t n_entries = grid->exact.n_entries;
    g->choices = msc_arena_array(arena, n_tasks, sizeof *g->choices);
    g->candidates = msc_arena_array(arena, n_entries, sizeof *g->candidates);
    g->order = msc_arena_array(arena, n_entries, sizeof *g->order);
    g->losses = msc_arena_array(arena, n_entries, sizeof *g->losses);
    g->violations = msc_arena_array(arena, n_entries, sizeof *g->violations);
    g->gains = msc_arena_array(arena, n_entries, sizeof *g->gains);
    g->sums = msc_arena_array(arena, n_entries, sizeof *g->sums);
    g->bounds = msc_arena_array(arena, n_entries, sizeof *g->bounds);
    g->ids = msc_arena_array(arena, n_entries, sizeof *g->ids);
    if (!g->choices || !g->candidates || !g->order || !g->losses || !g->violations || !g->gains ||
        !g->sums || !g->bounds || !g->ids) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for %zu choices", n_entries);
    }
    memcpy(g->choices, grid->exact.most_expensive, n_tasks * sizeof *g->choices);
    for (size_t i = 0; i < n_entries; i++) {
        g->gains[i] = NAN;
        g->sums[i] = NAN;
        g->bounds[i] = INFINITY;
    }
    greedy_count_from_here(grid);
    g->id = -1;
    g->loss = NAN;
    g->violation = msc_exact_bounds_violation(&grid->exact, g->choices);
    g->is_hasty = msc_agent_version(agent) >= 3;
    g->quota = QUOTA * g->violation;
    g->n_tries = n_tasks / TRIED_PART > LEAST_TRIES ? n_tasks / TRIED_PART : LEAST_TRIES;
    g->best = msc_arena_array(arena, n_tasks, sizeof *g->best);
    g->best_loss = NAN;
    return g->best ? msc_exact_moves_init(&g->moves, arena, &grid->exact)
                   : MSC_FAIL(MSC_E_NOMEM, "out of memory for %zu tasks", n_tasks);
}

// Does a step try a part of what there is, and take several changes?
static bool takes_several(const struct msc_grid_greedy *g) {
    return g->is_hasty && g->violation > 0.0 && !g->is_wide;
}

static size_t greedy_entry_of(const struct msc_grid *grid,
                              const struct msc_grid_candidate *candidate) {
    return msc_exact_bounds_entry(&grid->exact, candidate->task, candidate->choice);
}

static double greedy_loss_before(const struct msc_grid_greedy *g) {
    return isnan(g->loss) ? 0.0 : g->loss;
}

// `violation` is that of the exact costs.
static void add_candidate(struct msc_grid *grid, size_t task, uint32_t choice, double violation) {
    struct msc_grid_greedy *g = &grid->greedy;
    struct msc_grid_candidate *candidate = &g->candidates[g->n_candidates++];
    *candidate = (struct msc_grid_candidate){.task = (uint32_t)task, .choice = choice};
    size_t entry = greedy_entry_of(grid, candidate);
    g->losses[entry] = NAN;
    g->violations[entry] = INFINITY;
    g->bounds[entry] = INFINITY;
    candidate->removed = g->violation > 0.0 ? g->violation - violation : 0.0;
    candidate->is_known = !isnan(g->gains[entry]);
    candidate->expected = g->gains[entry];
    if (g->violation > 0.0) {
        candidate->expected /= candidate->removed > 0.0 ? candidate->removed : NAN;
    }
    if (isnan(candidate->expected)) {
        candidate->expected = INFINITY;
    }
}

// The task's choices that lower the violation: the next one, or all after it. Where a step takes
// several, the next one by which half of what it tries would be enough.
static void add_cheaper(struct msc_grid *grid, size_t t) {
    struct msc_grid_greedy *g = &grid->greedy;
    const struct msc_task *task = &grid->exact.space->tasks[t];
    uint32_t before = g->choices[t];
    double violation = msc_exact_bounds_violation(&grid->exact, g->choices);
    double least = takes_several(g) ? 2.0 * g->quota / (double)g->n_tries : 0.0;
    uint32_t position = grid->exact.positions[msc_exact_bounds_entry(&grid->exact, t, before)];
    for (uint32_t i = position + 1; i < task->n_choices; i++) {
        g->choices[t] = task->most_expensive_first[i];
        double after = msc_exact_bounds_violation(&grid->exact, g->choices);
        bool is_enough = violation - after >= least || i + 1 == task->n_choices;
        // A bound on a measured metric says nothing beforehand: any choice may help.
        if (violation == 0.0 || (after < violation && is_enough)) {
            add_candidate(grid, t, task->most_expensive_first[i], after);
            if (!g->is_wide) {
                break;
            }
        }
    }
    g->choices[t] = before;
}

static void add_feasible(struct msc_grid *grid, size_t t) {
    struct msc_grid_greedy *g = &grid->greedy;
    const struct msc_task *task = &grid->exact.space->tasks[t];
    uint32_t before = g->choices[t];
    uint32_t position = grid->exact.positions[msc_exact_bounds_entry(&grid->exact, t, before)];
    for (uint32_t i = 0; i < task->n_choices; i++) {
        bool is_near = i + 1 == position || i == position + 1;
        if (i == position || (!is_near && grid->changes == MSC_GRID_NEIGHBOURS)) {
            continue;
        }
        g->choices[t] = task->most_expensive_first[i];
        if (msc_exact_bounds_hold(&grid->exact, g->choices)) {
            add_candidate(grid, t, task->most_expensive_first[i], 0.0);
        }
    }
    g->choices[t] = before;
}

static bool is_expected_before(const void *context, const void *left, const void *right) {
    const struct msc_grid_greedy *g = context;
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    double first = g->candidates[a].expected;
    double second = g->candidates[b].expected;
    return first < second || (first == second && a < b);
}

// What was not tried, most violation removed first; then what was, by what it would be rated.
static bool is_tried_before(const void *context, const void *left, const void *right) {
    const struct msc_grid_greedy *g = context;
    const struct msc_grid_candidate *a = &g->candidates[*(const uint32_t *)left];
    const struct msc_grid_candidate *b = &g->candidates[*(const uint32_t *)right];
    if (a->is_known || b->is_known) {
        return a->is_known == b->is_known ? is_expected_before(context, left, right) : b->is_known;
    }
    return a->removed > b->removed || (a->removed == b->removed && a < b);
}

static void sort_candidates(struct msc_grid_greedy *g) {
    uint32_t spare;
    const struct msc_heap heap = {.elements = g->order,
                                  .element_bytes = sizeof *g->order,
                                  .spare = &spare,
                                  .is_before =
                                      takes_several(g) ? is_tried_before : is_expected_before,
                                  .context = g};
    for (size_t i = 0; i < g->n_candidates; i++) {
        g->order[i] = (uint32_t)i;
    }
    msc_heap_sort(&heap, g->n_candidates);
}

static void greedy_begin_step(struct msc_grid *grid, bool is_wide) {
    struct msc_grid_greedy *g = &grid->greedy;
    g->n_candidates = 0;
    g->n_asked = 0;
    g->is_wide = is_wide;
    for (size_t t = 0; t < grid->exact.space->n_tasks; t++) {
        if (g->violation > 0.0) {
            add_cheaper(grid, t);
        } else {
            add_feasible(grid, t);
        }
    }
    if (g->n_candidates == 0) {
        g->is_done = g->violation == 0.0 || is_wide;
        if (!g->is_done) {
            greedy_begin_step(grid, true);
        }
        return;
    }
    sort_candidates(g);
    g->n_asked_of = g->n_candidates;
    if (takes_several(g)) {
        g->n_asked_of = 0;
        while (g->n_asked_of < g->n_tries && g->n_asked_of < g->n_candidates &&
               !g->candidates[g->order[g->n_asked_of]].is_known) {
            g->n_asked_of++;
        }
    }
}

// How much a candidate is to be preferred: the smaller the better, +inf when it is of no use.
static double greedy_rate(const struct msc_grid_greedy *g, size_t entry) {
    double loss = g->losses[entry];
    if (isnan(loss)) {
        return INFINITY;
    }
    if (g->violation > 0.0) {
        double removed = g->violation - g->violations[entry];
        return removed > 0.0 ? (loss - greedy_loss_before(g)) / removed : INFINITY;
    }
    bool is_lower = isnan(g->loss) || loss < g->loss;
    return is_lower && g->violations[entry] == 0.0 ? loss : INFINITY;
}

// The best rating of the step so far, and whose it is: the first one's of equals.
static double greedy_find_best(const struct msc_grid *grid, size_t *chosen) {
    const struct msc_grid_greedy *g = &grid->greedy;
    double best = INFINITY;
    for (size_t i = 0; i < g->n_candidates; i++) {
        double rating = greedy_rate(g, greedy_entry_of(grid, &g->candidates[i]));
        if (rating < best) {
            best = rating;
            *chosen = i;
        }
    }
    return best;
}

// Takes a change: the task's gains were measured from its choice before, and are forgotten but for
// that of changing it back.
static void greedy_take(struct msc_grid *grid, const struct msc_grid_candidate *candidate) {
    struct msc_grid_greedy *g = &grid->greedy;
    size_t entry = greedy_entry_of(grid, candidate);
    size_t back =
        msc_exact_bounds_entry(&grid->exact, candidate->task, g->choices[candidate->task]);
    double gain = g->gains[entry];
    for (uint32_t c = 0; c < grid->exact.space->tasks[candidate->task].n_choices; c++) {
        g->gains[msc_exact_bounds_entry(&grid->exact, candidate->task, c)] = NAN;
    }
    g->gains[back] = -gain;
    g->choices[candidate->task] = candidate->choice;
    g->id = g->ids[entry];
    g->loss = g->losses[entry];
    g->violation = g->violations[entry];
}

// Where it stands is another plan, whose loss is what its changes gained each alone until it is told.
static void greedy_change(struct msc_grid *grid, const struct msc_grid_candidate *candidate) {
    struct msc_grid_greedy *g = &grid->greedy;
    size_t entry = greedy_entry_of(grid, candidate);
    g->losses[entry] = greedy_loss_before(g) + g->gains[entry];
    g->violations[entry] = g->violation - candidate->removed;
    greedy_take(grid, candidate);
    g->id = -1;
    g->is_asked = false;
}

// Takes what was tried, by its rating, until as much of the violation is removed as a step should.
// False where nothing helps.
static bool greedy_take_several(struct msc_grid *grid) {
    struct msc_grid_greedy *g = &grid->greedy;
    double before = g->violation;
    for (size_t i = 0; i < g->n_candidates; i++) {
        struct msc_grid_candidate *candidate = &g->candidates[i];
        size_t entry = greedy_entry_of(grid, candidate);
        double gain = g->gains[entry];
        if (isfinite(g->violations[entry])) {
            candidate->removed = g->violation - g->violations[entry];
        }
        bool is_useful = candidate->removed > 0.0 && isfinite(gain);
        candidate->is_known = is_useful;
        candidate->expected = is_useful ? gain / candidate->removed : INFINITY;
    }
    sort_candidates(g);
    size_t first = 0;
    while (first < g->n_candidates && !g->candidates[g->order[first]].is_known) {
        first++;
    }
    size_t end = first;
    double enough = fmax(0.0, before - g->quota);
    while (end < g->n_candidates && g->violation > enough) {
        const struct msc_grid_candidate *candidate = &g->candidates[g->order[end++]];
        bool is_told = end == first + 1 && g->violation - candidate->removed <= enough &&
                       !isnan(g->losses[greedy_entry_of(grid, candidate)]);
        if (is_told) {
            greedy_take(grid, candidate);
        } else {
            greedy_change(grid, candidate);
        }
    }
    g->n_candidates = g->n_asked = g->n_asked_of = 0;
    if (!g->is_asked) {
        g->violation = msc_exact_bounds_violation(&grid->exact, g->choices);
    }
    return end > first;
}

// Takes the best candidate of a step whose outcomes are all told, and begins the next step.
static void greedy_decide(struct msc_grid *grid) {
    struct msc_grid_greedy *g = &grid->greedy;
    if (takes_several(g)) {
        if (!greedy_take_several(grid)) {
            greedy_begin_step(grid, true);
        }
        return;
    }
    size_t chosen = 0;
    double best = greedy_find_best(grid, &chosen);
    if (isinf(best) && (g->violation == 0.0 || g->is_wide)) {
        g->is_done = true;
        return;
    }
    if (isinf(best)) {
        greedy_begin_step(grid, true);
        return;
    }
    greedy_take(grid, &g->candidates[chosen]);
    greedy_begin_step(grid, false);
}

// A loss from which on the rating, computed as rate() does, is above `rating`. It rises with the
// loss, so rounding is made up for by going up until it is.
static double loss_rated_above(double before, double removed, double rating) {
    double loss = before + rating * removed;
    double step = fmax(DBL_EPSILON * (fabs(before) + fabs(rating * removed)), DBL_MIN);
    while ((loss - before) / removed <= rating) {
        loss += step;
        step *= 2.0;
    }
    return loss;
}

// The loss above which the candidate cannot be chosen, now that the best rating is `best`.
static double greedy_useless_loss(const struct msc_grid *grid,
                                  const struct msc_grid_candidate *candidate, double best) {
    const struct msc_grid_greedy *g = &grid->greedy;
    if (g->violation == 0.0) {
        return isnan(g->loss) ? best : fmin(best, g->loss);
    }
    if (isinf(best)) {
        return INFINITY;
    }
    if (!(candidate->removed > 0.0)) {
        return -INFINITY;
    }
    // With bounds on measured metrics less may be removed, which makes a fall in loss rate better.
    bool is_known = grid->exact.n_items == grid->exact.goal->n_bounds;
    return best < 0.0 && !is_known
               ? greedy_loss_before(g)
               : loss_rated_above(greedy_loss_before(g), candidate->removed, best);
}

// How many of `max` proposals to make now.
static size_t greedy_ask_size(const struct msc_grid *grid, size_t max) {
    const struct msc_grid_greedy *g = &grid->greedy;
    bool has_bound = g->violation == 0.0 || g->n_asked > 0;
    if (has_bound || takes_several(g) || !grid->takes_bounds || isinf(grid->best_loss)) {
        return max;
    }
    size_t n = g->n_candidates < max ? g->n_candidates : max;
    return n > PILOT_PART ? n / PILOT_PART : 1;
}

static void greedy_propose(struct msc_grid *grid, struct msc_proposal *proposal, double best) {
    struct msc_grid_greedy *g = &grid->greedy;
    size_t n_tasks = grid->exact.space->n_tasks;
    const struct msc_grid_candidate *candidate = &g->candidates[g->order[g->n_asked++]];
    memcpy(proposal->choices, g->choices, n_tasks * sizeof *g->choices);
    proposal->choices[candidate->task] = candidate->choice;
    proposal->parent = g->id;
    proposal->probe = true;
    if (!takes_several(g)) {
        double violation = msc_exact_bounds_violation(&grid->exact, proposal->choices);
        proposal->bound =
            msc_grid_bound(grid, greedy_useless_loss(grid, candidate, best), violation);
    }
    g->bounds[greedy_entry_of(grid, candidate)] = proposal->bound;
}

// Another point to begin with: the best one told, else a random one.
static void greedy_begin_again(struct msc_agent *agent, struct msc_grid *grid) {
    struct msc_grid_greedy *g = &grid->greedy;
    const struct msc_space *space = msc_agent_space(agent);
    g->is_lost = false;
    if (!isnan(g->best_loss)) {
        memcpy(g->choices, g->best, space->n_tasks * sizeof *g->choices);
        g->loss = g->best_loss;
        g->violation = g->best_violation;
        greedy_count_from_here(grid);
        return;
    }
    for (size_t t = 0; t < space->n_tasks; t++) {
        g->choices[t] = (uint32_t)msc_rng_below(msc_agent_rng(agent), space->tasks[t].n_choices);
    }
    (void)msc_exact_moves_repair(&g->moves, msc_agent_rng(agent), g->choices);
    g->violation = msc_exact_bounds_violation(&grid->exact, g->choices);
    greedy_count_from_here(grid);
    g->is_asked = false;
    g->is_done = ++g->n_draws > MOST_DRAWS;
}

// Choices that were passed over lie between those that were measured, by their place in the order.
static void greedy_fill_sums(struct msc_grid *grid) {
    double *sums = grid->greedy.sums;
    for (size_t t = 0; t < grid->exact.space->n_tasks; t++) {
        const struct msc_task *task = &grid->exact.space->tasks[t];
        size_t first = SIZE_MAX; // the last place that is known
        for (uint32_t i = 0; i < task->n_choices; i++) {
            double here =
                sums[msc_exact_bounds_entry(&grid->exact, t, task->most_expensive_first[i])];
            if (isnan(here)) {
                continue;
            }
            for (size_t k = first == SIZE_MAX ? i : first + 1; k < i; k++) {
                double before = sums[msc_exact_bounds_entry(&grid->exact, t,
                                                            task->most_expensive_first[first])];
                sums[msc_exact_bounds_entry(&grid->exact, t, task->most_expensive_first[k])] =
                    before + (here - before) * (double)(k - first) / (double)(i - first);
            }
            first = i;
        }
    }
}

// Goes on until there is something to ask for: the plan where it stands, or a step's candidates.
static void greedy_go_on(struct msc_agent *agent, struct msc_grid *grid) {
    struct msc_grid_greedy *g = &grid->greedy;
    if (g->is_lost) {
        greedy_begin_again(agent, grid);
    }
    bool was_done = g->is_done;
    while (g->is_asked && !g->is_done && g->n_asked == g->n_asked_of) {
        if (g->n_candidates == 0) {
            greedy_begin_step(grid, false);
        } else {
            greedy_decide(grid);
        }
    }
    if (g->is_done && !was_done) {
        greedy_fill_sums(grid);
    }
}

static enum msc_status greedy_ask(struct msc_agent *agent, struct msc_grid *grid,
                                  struct msc_proposal out[], size_t max, size_t *n) {
    struct msc_grid_greedy *g = &grid->greedy;
    if (max == 0 || g->is_over) {
        return MSC_OK;
    }
    greedy_go_on(agent, grid);
    if (g->is_done) {
        g->is_over = !grid->goes_around || !msc_grid_go_around(grid, g->sums, out, max, n);
        return MSC_OK;
    }
    if (!g->is_asked) {
        memcpy(out[0].choices, g->choices, msc_agent_space(agent)->n_tasks * sizeof *g->choices);
        out[0].probe = true;
        g->is_asked = true;
        g->n_asked = g->n_asked_of = 0;
        *n = 1;
        return MSC_OK;
    }
    size_t chosen = 0;
    double best = greedy_find_best(grid, &chosen);
    size_t end = greedy_ask_size(grid, max);
    while (*n < end && g->n_asked < g->n_asked_of) {
        greedy_propose(grid, &out[(*n)++], best);
    }
    return MSC_OK;
}

// Keeps the point nearest to the bounds, of these the best.
static void greedy_keep_best(struct msc_grid_greedy *g, const struct msc_trial *trial,
                             size_t n_tasks) {
    double loss = msc_grid_loss(&trial->outcome);
    double violation = trial->outcome.violation;
    bool is_better = isnan(g->best_loss) || violation < g->best_violation ||
                     (violation == g->best_violation && loss < g->best_loss);
    if (!isnan(loss) && is_better) {
        memcpy(g->best, trial->proposal.choices, n_tasks * sizeof *g->best);
        g->best_loss = loss;
        g->best_violation = violation;
    }
}

static void greedy_tell_plan(struct msc_grid_greedy *g, const struct msc_trial *trial) {
    const struct msc_outcome *outcome = &trial->outcome;
    double loss = msc_grid_loss(outcome);
    g->id = trial->id;
    g->is_lost = g->is_hasty && g->is_asked && isnan(loss) && isnan(g->loss);
    g->loss = g->is_hasty && isnan(loss) ? g->loss : loss;
    g->violation = isfinite(outcome->violation) ? outcome->violation : g->violation;
    g->quota = fmax(g->quota, QUOTA * g->violation);
}

static void greedy_tell(struct msc_agent *agent, struct msc_grid *grid,
                        const struct msc_trial *trial) {
    struct msc_grid_greedy *g = &grid->greedy;
    const uint32_t *choices = trial->proposal.choices;
    const struct msc_outcome *outcome = &trial->outcome;
    size_t n_tasks = msc_agent_space(agent)->n_tasks;
    size_t changed = msc_grid_difference(n_tasks, g->choices, choices);
    greedy_keep_best(g, trial, n_tasks);
    if (changed == n_tasks && outcome->state != MSC_TRIAL_PRUNED) {
        greedy_tell_plan(g, trial);
    } else if (changed < n_tasks && !g->is_done) {
        size_t entry = msc_exact_bounds_entry(&grid->exact, changed, choices[changed]);
        g->ids[entry] = trial->id;
        g->losses[entry] = msc_grid_loss(outcome);
        g->violations[entry] = outcome->violation;
        if (g->is_hasty && outcome->state == MSC_TRIAL_FAILED) {
            g->gains[entry] = INFINITY;
        }
        // Beyond its bound a loss is not made use of: a trial that is stopped does not tell it.
        if (g->losses[entry] <= g->bounds[entry]) {
            size_t here = msc_exact_bounds_entry(&grid->exact, changed, g->choices[changed]);
            g->gains[entry] = g->losses[entry] - greedy_loss_before(g);
            g->sums[entry] = g->sums[here] + g->gains[entry];
        }
    }
}

static bool greedy_done(const struct msc_grid *grid) {
    return grid->greedy.is_done && (!grid->goes_around || grid->greedy.is_over);
}

// How many steps will help is what the search finds out.
static struct msc_agent_left greedy_left(const struct msc_grid *grid) {
    (void)grid;
    return (struct msc_agent_left)MSC_AGENT_LEFT_UNKNOWN;
}

const struct msc_grid_mode msc_grid_mode_greedy = {
    .init = greedy_init,
    .ask = greedy_ask,
    .tell = greedy_tell,
    .done = greedy_done,
    .left = greedy_left,
};
