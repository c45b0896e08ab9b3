#include "agents/exact_moves.h"

#include <math.h>
#include <string.h>

// A value this close to a limit, relative to their magnitudes, is summed again exactly.
#define NEAR 1e-9

static bool stands_before(const struct msc_cost_term *term, uint32_t factor) {
    for (uint32_t j = 0; j < factor; j++) {
        if (term->factors[j].task == term->factors[factor].task) {
            return true;
        }
    }
    return false;
}

// Visits each task of each term once. Without `uses`, counts the uses of each task in `next`
// [n_tasks]. With `uses`, `next` is the index at which the task's next use is written.
static void list_uses(struct msc_exact_moves *moves, size_t next[], struct msc_term_use uses[]) {
    size_t product = 0;
    for (size_t i = 0; i < moves->bounds->n_items; i++) {
        const struct msc_cost *cost = moves->bounds->items[i].cost;
        for (size_t k = 0; k < cost->n_terms; k++, product++) {
            for (uint32_t j = 0; j < cost->terms[k].n_factors; j++) {
                if (stands_before(&cost->terms[k], j)) {
                    continue;
                }
                moves->has_products = moves->has_products || cost->terms[k].factors[j].task !=
                                                                 cost->terms[k].factors[0].task;
                size_t at = next[cost->terms[k].factors[j].task]++;
                if (uses) {
                    uses[at] = (struct msc_term_use){(uint32_t)i, (uint32_t)k, product};
                }
            }
        }
    }
}

enum msc_status msc_exact_moves_init(struct msc_exact_moves *moves, struct msc_arena *arena,
                                     const struct msc_exact_bounds *bounds) {
    size_t n_tasks = bounds->space->n_tasks, n_terms = 0, n_uses = 0;
    *moves = (struct msc_exact_moves){.bounds = bounds};
    for (size_t i = 0; i < bounds->n_items; i++) {
        n_terms += bounds->items[i].cost->n_terms;
    }
    moves->point = msc_arena_array(arena, n_tasks, sizeof *moves->point);
    moves->products = msc_arena_array(arena, n_terms + 1, sizeof *moves->products);
    moves->order = msc_arena_array(arena, n_tasks, sizeof *moves->order);
    moves->first_uses = msc_arena_array(arena, n_tasks + 1, sizeof *moves->first_uses);
    size_t *next = msc_arena_array(arena, n_tasks, sizeof *next);
    MSC_TRY(MSC_ALLOCATED(moves->point && moves->order && moves->products && moves->first_uses &&
                          next));
    list_uses(moves, next, NULL);
    for (size_t t = 0; t < n_tasks; t++) {
        moves->first_uses[t] = n_uses;
        n_uses += next[t];
        next[t] = moves->first_uses[t];
    }
    moves->first_uses[n_tasks] = n_uses;
    moves->uses = msc_arena_array(arena, n_uses + 1, sizeof *moves->uses);
    MSC_TRY(MSC_ALLOCATED(moves->uses));
    list_uses(moves, next, moves->uses);
    return MSC_OK;
}

// The term's product, in the order of msc_cost_value, with `task` at another choice.
static double term_product(const struct msc_cost_term *term, const uint32_t point[], size_t task,
                           uint32_t choice) {
    double product = term->scale;
    for (uint32_t j = 0; j < term->n_factors; j++) {
        const struct msc_cost_factor *factor = &term->factors[j];
        product *= factor->by_choice[factor->task == task ? choice : point[factor->task]];
    }
    return product;
}

void msc_exact_moves_start(struct msc_exact_moves *moves, const uint32_t choices[]) {
    size_t product = 0;
    memcpy(moves->point, choices, moves->bounds->space->n_tasks * sizeof *choices);
    for (size_t i = 0; i < moves->bounds->n_items; i++) {
        const struct msc_cost *cost = moves->bounds->items[i].cost;
        moves->values[i] = cost->constant;
        for (size_t k = 0; k < cost->n_terms; k++, product++) {
            moves->products[product] = term_product(&cost->terms[k], choices, SIZE_MAX, 0);
            moves->values[i] += moves->products[product];
        }
    }
}

static const struct msc_cost_term *term_of(const struct msc_exact_moves *moves,
                                           const struct msc_term_use *use) {
    return &moves->bounds->items[use->item].cost->terms[use->term];
}

void msc_exact_moves_change(struct msc_exact_moves *moves, size_t task, uint32_t choice) {
    for (size_t u = moves->first_uses[task]; u < moves->first_uses[task + 1]; u++) {
        const struct msc_term_use *use = &moves->uses[u];
        double product = term_product(term_of(moves, use), moves->point, task, choice);
        moves->values[use->item] += product - moves->products[use->product];
        moves->products[use->product] = product;
    }
    moves->point[task] = choice;
}

void msc_exact_moves_deltas(const struct msc_exact_moves *moves, size_t task, uint32_t choice,
                            double out[]) {
    for (size_t i = 0; i < moves->bounds->n_items; i++) {
        out[i] = 0.0;
    }
    for (size_t u = moves->first_uses[task]; u < moves->first_uses[task + 1]; u++) {
        const struct msc_term_use *use = &moves->uses[u];
        out[use->item] += term_product(term_of(moves, use), moves->point, task, choice) -
                          moves->products[use->product];
    }
}

double msc_exact_moves_violation(const struct msc_exact_moves *moves, const double deltas[]) {
    double sum = 0.0;
    for (size_t i = 0; i < moves->bounds->n_items; i++) {
        const struct msc_exact_bound *bound = &moves->bounds->items[i];
        double value = moves->values[i] + deltas[i];
        sum += isinf(bound->max) ? 0.0 : msc_exact_moves_overshoot(value - bound->max, bound->max);
        sum += isinf(bound->min) ? 0.0 : msc_exact_moves_overshoot(bound->min - value, bound->min);
    }
    return sum;
}

bool msc_exact_moves_hold(const struct msc_exact_moves *moves) {
    bool is_near = false;
    for (size_t i = 0; i < moves->bounds->n_items; i++) {
        const struct msc_exact_bound *bound = &moves->bounds->items[i];
        double value = moves->values[i];
        double above = isinf(bound->max) ? -INFINITY : value - bound->max;
        double below = isinf(bound->min) ? -INFINITY : bound->min - value;
        double near = NEAR * (fabs(value) + fabs(isinf(bound->max) ? bound->min : bound->max));
        if (above > near || below > near) {
            return false;
        }
        is_near = is_near || above > -near || below > -near;
    }
    return !is_near || msc_exact_bounds_hold(moves->bounds, moves->point);
}

// ---- Repair -----------------------------------------------------------------------------------

// The task's next cheaper choice that lowers the violation, or -1.
static int64_t next_cheaper(const struct msc_exact_moves *moves, size_t task) {
    const double none[MSC_MAX_BOUNDS] = {0};
    const struct msc_exact_bounds *bounds = moves->bounds;
    const struct msc_task *described = &bounds->space->tasks[task];
    double violation = msc_exact_moves_violation(moves, none), deltas[MSC_MAX_BOUNDS];
    uint32_t place = bounds->positions[msc_exact_bounds_entry(bounds, task, moves->point[task])];
    for (uint32_t i = place + 1; i < described->n_choices; i++) {
        msc_exact_moves_deltas(moves, task, described->most_expensive_first[i], deltas);
        if (msc_exact_moves_violation(moves, deltas) < violation) {
            return described->most_expensive_first[i];
        }
    }
    return -1;
}

static bool repair_step(struct msc_exact_moves *moves, size_t task, int64_t choice) {
    msc_exact_moves_change(moves, task, (uint32_t)choice);
    return msc_exact_moves_hold(moves);
}

static bool moves_repair_point(struct msc_exact_moves *moves, struct msc_rng *rng) {
    size_t n_tasks = moves->bounds->space->n_tasks;
    for (size_t t = 0; t < n_tasks; t++) {
        moves->order[t] = (uint32_t)t;
    }
    for (bool has_changed = true; has_changed;) {
        has_changed = false;
        msc_rng_shuffle(rng, moves->order, n_tasks);
        for (size_t i = 0; i < n_tasks; i++) {
            int64_t choice = next_cheaper(moves, moves->order[i]);
            if (choice >= 0 && repair_step(moves, moves->order[i], choice)) {
                return true;
            }
            has_changed = has_changed || choice >= 0;
        }
    }
    for (size_t i = 0; moves->bounds->anchor && i < n_tasks; i++) {
        if (repair_step(moves, moves->order[i], moves->bounds->anchor[moves->order[i]])) {
            return true;
        }
    }
    return false;
}

bool msc_exact_moves_repair(struct msc_exact_moves *moves, struct msc_rng *rng,
                            uint32_t choices[]) {
    msc_exact_moves_start(moves, choices);
    bool holds = msc_exact_moves_hold(moves) || moves_repair_point(moves, rng);
    memcpy(choices, moves->point, moves->bounds->space->n_tasks * sizeof *choices);
    return holds;
}
