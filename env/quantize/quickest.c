// Searches for the plan whose latency by the table is least, without runs.
//
// A single joint in floats or integers costs conversions around it, so a change saves time only if
// it covers a stretch of the network. Tasks are in the network's order. The search starts from the
// best uniform plan. It gives a stretch of tasks the choices of another uniform plan if this lowers
// the latency, and ends when no such change does.
#include "env/quantize/latency.h"

#include "base/alloc.h"

#include <string.h>

enum {
    MOST_TASKS = 32, // greatest length of a stretch
    MOST_PASSES = 16,
};

struct descent {
    const struct msc_space *space;
    const struct msc_cost *cost;
    size_t *first_term; // [n_tasks + 1], start of each task's range in `terms`
    uint32_t *terms;    // by task: the terms that have the task as a factor
    bool *is_counted;   // [n_terms], scratch
    uint32_t *point;    // [n_tasks], the plan so far
    uint32_t *before;   // [n_tasks], choices that a stretch replaces
};

static bool descent_allocate(struct descent *d, struct msc_arena *arena) {
    size_t n_tasks = d->space->n_tasks;
    size_t n_factors = 0;
    d->first_term = msc_arena_array(arena, n_tasks + 2, sizeof(d->first_term[0]));
    for (size_t i = 0; d->first_term && i < d->cost->n_terms; i++) {
        for (uint32_t k = 0; k < d->cost->terms[i].n_factors; k++) {
            d->first_term[d->cost->terms[i].factors[k].task + 2]++;
            n_factors++;
        }
    }
    d->terms = msc_arena_array(arena, n_factors + 1, sizeof(d->terms[0]));
    d->is_counted = msc_arena_array(arena, d->cost->n_terms + 1, sizeof(bool));
    d->point = msc_arena_array(arena, n_tasks + 1, sizeof(d->point[0]));
    d->before = msc_arena_array(arena, n_tasks + 1, sizeof(d->before[0]));
    return d->first_term && d->terms && d->is_counted && d->point && d->before;
}

// Lists terms by task. While `terms` is filled, first_term[t + 1] is the index of task t's next
// term.
static void list_terms(struct descent *d) {
    for (size_t t = 2; t <= d->space->n_tasks + 1; t++) {
        d->first_term[t] += d->first_term[t - 1];
    }
    for (size_t i = 0; i < d->cost->n_terms; i++) {
        for (uint32_t k = 0; k < d->cost->terms[i].n_factors; k++) {
            d->terms[d->first_term[d->cost->terms[i].factors[k].task + 1]++] = (uint32_t)i;
        }
    }
}

// Sums all terms that depend on a task of [first, end), each once.
static double sum_of_terms(struct descent *d, size_t first, size_t end) {
    double sum = 0;
    for (size_t i = d->first_term[first]; i < d->first_term[end]; i++) {
        const struct msc_cost_term *term = &d->cost->terms[d->terms[i]];
        double product = d->is_counted[d->terms[i]] ? 0 : term->scale;
        d->is_counted[d->terms[i]] = true;
        for (uint32_t k = 0; k < term->n_factors && product != 0; k++) {
            product *= term->factors[k].by_choice[d->point[term->factors[k].task]];
        }
        sum += product;
    }
    for (size_t i = d->first_term[first]; i < d->first_term[end]; i++) {
        d->is_counted[d->terms[i]] = false;
    }
    return sum;
}

// Takes a stretch of another plan if that lowers the latency by more than the rounding error.
static bool take_stretch(struct descent *d, const uint32_t from[], size_t first, size_t end) {
    size_t n_bytes = (end - first) * sizeof(from[0]);
    if (memcmp(d->point + first, from + first, n_bytes) == 0) {
        return false;
    }
    double here = sum_of_terms(d, first, end);
    memcpy(d->before, d->point + first, n_bytes);
    memcpy(d->point + first, from + first, n_bytes);
    if (sum_of_terms(d, first, end) < here - 1e-9 * d->cost->constant) {
        return true;
    }
    memcpy(d->point + first, d->before, n_bytes);
    return false;
}

static bool take_stretches(struct descent *d) {
    size_t n = d->space->n_tasks;
    bool is_better = false;
    for (size_t first = 0; first < n; first++) {
        for (size_t end = first + 1; end <= n && end <= first + MOST_TASKS; end++) {
            for (size_t b = 0; b < d->space->n_baselines; b++) {
                is_better =
                    take_stretch(d, d->space->baselines[b].choices, first, end) || is_better;
            }
        }
    }
    return is_better;
}

enum msc_status msc_quantize_find_quickest(const uint32_t **out, const struct msc_space *space,
                                           const struct msc_cost *cost, struct msc_arena *arena) {
    struct descent d = {.space = space, .cost = cost};
    size_t best = 0;
    MSC_TRY(MSC_ALLOCATED(descent_allocate(&d, arena)));
    list_terms(&d);
    for (size_t b = 1; b < space->n_baselines; b++) {
        double least = msc_cost_value(cost, space->baselines[best].choices);
        best = msc_cost_value(cost, space->baselines[b].choices) < least ? b : best;
    }
    memcpy(d.point, space->baselines[best].choices, space->n_tasks * sizeof(d.point[0]));
    bool is_better = false;
    for (int i = 0; i < MOST_PASSES && take_stretches(&d); i++) {
        is_better = true;
    }
    *out = is_better ? d.point : NULL;
    return MSC_OK;
}
