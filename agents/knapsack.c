#include "agents/knapsack.h"

#include "base/heap.h"

#include <math.h>
#include <string.h>

#define NODE_LIMIT 5000000
// The unit of work is a node. If work is counted by time, the terms of bounded costs count as well:
// a term that is checked for a partial plan counts as NODES_OF_TERM nodes, and TERMS_OF_NODE terms
// of a complete plan count as one node.
#define NODES_OF_TERM 2
#define TERMS_OF_NODE 8
// From this many tasks on, work is always counted by time.
#define MANY_TASKS 1000
// Sums taken in different orders differ by rounding.
#define SLACK 1e-12

enum msc_status msc_knapsack_init(struct msc_knapsack *ks, struct msc_arena *arena,
                                  struct msc_exact_bounds *bounds) {
    memset(ks, 0, sizeof *ks);
    size_t n_tasks = bounds->space->n_tasks;
    size_t n_entries = bounds->n_entries;
    ks->bounds = bounds;
    ks->weight_rows = msc_arena_array(arena, MSC_KNAPSACK_RESOURCES * n_entries, sizeof(double));
    ks->least_rows = msc_arena_array(arena, MSC_KNAPSACK_RESOURCES * (n_tasks + 1), sizeof(double));
    ks->losses = msc_arena_array(arena, n_entries, sizeof *ks->losses);
    ks->reduced = msc_arena_array(arena, n_entries, sizeof *ks->reduced);
    ks->rest = msc_arena_array(arena, n_tasks + 1, sizeof *ks->rest);
    ks->children = msc_arena_array(arena, n_entries, sizeof *ks->children);
    ks->tasks = msc_arena_array(arena, n_tasks, sizeof *ks->tasks);
    ks->depths = msc_arena_array(arena, n_tasks, sizeof *ks->depths);
    ks->next = msc_arena_array(arena, n_tasks, sizeof *ks->next);
    ks->spent =
        msc_arena_array(arena, (n_tasks + 1) * (1 + MSC_KNAPSACK_RESOURCES), sizeof *ks->spent);
    ks->point = msc_arena_array(arena, n_tasks, sizeof *ks->point);
    MSC_TRY(MSC_ALLOCATED(ks->weight_rows && ks->least_rows && ks->losses && ks->reduced &&
                          ks->rest && ks->children && ks->tasks && ks->depths && ks->next &&
                          ks->spent && ks->point));
    if (n_tasks >= MANY_TASKS) {
        msc_knapsack_count_time(ks);
    }
    return msc_exact_moves_init(&ks->moves, arena, bounds);
}

void msc_knapsack_count_time(struct msc_knapsack *ks) {
    uint64_t n_terms = 0;
    for (size_t i = 0; i < ks->bounds->n_items; i++) {
        n_terms += ks->bounds->items[i].cost->n_terms;
    }
    ks->bounds_work = NODES_OF_TERM * n_terms;
    size_t n_tasks = ks->bounds->space->n_tasks;
    ks->plan_work = (n_terms + (n_tasks >= MANY_TASKS ? n_tasks : 0)) / TERMS_OF_NODE;
}

// Orders a task's choices by reduced loss; among equals the most expensive comes first.
static void knapsack_order_choices(struct msc_knapsack *ks, size_t t) {
    uint32_t *children = ks->children + ks->bounds->offsets[t];
    const double *row = ks->reduced + ks->bounds->offsets[t];
    for (uint32_t i = 0; i < msc_knapsack__n_choices(ks, t); i++) {
        uint32_t choice = ks->bounds->space->tasks[t].most_expensive_first[i];
        uint32_t j = i;
        for (; j > 0 && row[children[j - 1]] > row[choice]; j--) {
            children[j] = children[j - 1];
        }
        children[j] = choice;
    }
}

// `context` is gaps [n_tasks]: the greatest gap comes first.
static bool is_task_before(const void *context, const void *a, const void *b) {
    const double *gaps = context;
    uint32_t s = *(const uint32_t *)a, t = *(const uint32_t *)b;
    return gaps[s] > gaps[t] || (!(gaps[s] < gaps[t]) && s < t);
}

// Tasks whose second best choice is much worse than the best come first, because branches with
// their other choices are soon cut off.
static void knapsack_order_tasks(struct msc_knapsack *ks) {
    size_t n_tasks = ks->bounds->space->n_tasks;
    double *gaps = ks->spent; // scratch: `spent` is not in use yet
    uint32_t spare;
    const struct msc_heap heap = {.elements = ks->tasks,
                                  .element_bytes = sizeof ks->tasks[0],
                                  .spare = &spare,
                                  .is_before = is_task_before,
                                  .context = gaps};
    for (size_t t = 0; t < n_tasks; t++) {
        knapsack_order_choices(ks, t);
        const uint32_t *children = ks->children + ks->bounds->offsets[t];
        const double *row = ks->reduced + ks->bounds->offsets[t];
        gaps[t] =
            msc_knapsack__n_choices(ks, t) > 1 ? row[children[1]] - row[children[0]] : INFINITY;
        ks->tasks[t] = (uint32_t)t;
    }
    msc_heap_sort(&heap, n_tasks);
    for (size_t d = 0; d < n_tasks; d++) {
        ks->depths[ks->tasks[d]] = (uint32_t)d;
    }
}

static void knapsack_sum_rest(struct msc_knapsack *ks) {
    size_t n_tasks = ks->bounds->space->n_tasks;
    ks->rest[n_tasks] = 0.0;
    for (size_t d = n_tasks; d-- > 0;) {
        size_t offset = ks->bounds->offsets[ks->tasks[d]];
        ks->rest[d] = ks->rest[d + 1] + ks->reduced[offset + ks->children[offset]];
    }
    for (size_t k = 0; k < ks->n_resources; k++) {
        struct msc_resource *r = &ks->resources[k];
        r->least[n_tasks] = 0.0;
        for (size_t d = n_tasks; d-- > 0;) {
            const double *row = r->weights + ks->bounds->offsets[ks->tasks[d]];
            double least = row[0];
            for (uint32_t c = 1; c < msc_knapsack__n_choices(ks, ks->tasks[d]); c++) {
                least = fmin(least, row[c]);
            }
            r->least[d] = r->least[d + 1] + least;
        }
    }
}

// Computes the sums after the choice at depth d. False if the rest of some resource is less than
// the remaining tasks need.
static bool knapsack_spend(struct msc_knapsack *ks, size_t d, size_t entry) {
    const double *before = ks->spent + d * (1 + MSC_KNAPSACK_RESOURCES);
    double *after = ks->spent + (d + 1) * (1 + MSC_KNAPSACK_RESOURCES);
    after[0] = before[0] + ks->reduced[entry];
    for (size_t k = 0; k < ks->n_resources; k++) {
        const struct msc_resource *r = &ks->resources[k];
        after[1 + k] = before[1 + k] + r->weights[entry];
        if (after[1 + k] + r->least[d + 1] > r->capacity + SLACK * (1.0 + fabs(r->capacity))) {
            return false;
        }
    }
    return true;
}

// Whether the complete plan of `spent` may have a lower loss than the best plan. Rounding may also
// let a worse plan pass.
static bool may_be_better(const struct msc_knapsack *ks) {
    const double *spent = ks->spent + ks->bounds->space->n_tasks * (1 + MSC_KNAPSACK_RESOURCES);
    double loss = spent[0], size = fabs(spent[0]);
    for (size_t k = 0; k < ks->n_resources; k++) {
        double part = ks->resources[k].multiplier * spent[1 + k];
        loss -= part;
        size += fabs(part);
    }
    return loss <= ks->best_loss + SLACK * size;
}

// Tries the next child at depth d. Returns the depth to continue at; SIZE_MAX at the end of the
// tree.
static size_t knapsack_visit(struct msc_knapsack *ks, size_t d, double offset, uint32_t choices[]) {
    size_t n_tasks = ks->bounds->space->n_tasks;
    size_t t = ks->tasks[d];
    size_t first = ks->bounds->offsets[t];
    const double *spent = ks->spent + d * (1 + MSC_KNAPSACK_RESOURCES);
    if (ks->next[d] == msc_knapsack__n_choices(ks, t)) {
        return d > 0 ? d - 1 : SIZE_MAX;
    }
    uint32_t choice = ks->children[first + ks->next[d]++];
    ks->work++;
    double bound = spent[0] + ks->reduced[first + choice] + ks->rest[d + 1] - offset;
    if (bound >= ks->best_loss - SLACK * (fabs(ks->best_loss) + fabs(offset))) {
        return d > 0 ? d - 1 : SIZE_MAX; // later children are not better
    }
    ks->point[t] = choice;
    if (!knapsack_spend(ks, d, first + choice)) {
        return d;
    }
    if (d + 1 < n_tasks) {
        ks->work += ks->has_products ? ks->bounds_work : 0;
        if (ks->has_products &&
            !msc_exact_bounds_may_hold(ks->bounds, ks->point, ks->depths, d + 1)) {
            return d;
        }
        ks->next[d + 1] = 0;
        return d + 1;
    }
    ks->work += ks->plan_work;
    if (may_be_better(ks) && msc_knapsack__violation(ks, ks->point) == 0.0) {
        msc_knapsack__keep_if_better(ks, ks->point, choices);
    }
    return d;
}

// True if the whole tree was searched.
static bool knapsack_search_tree(struct msc_knapsack *ks, uint32_t choices[]) {
    double offset = 0.0;
    for (size_t k = 0; k < ks->n_resources; k++) {
        offset += ks->resources[k].multiplier * ks->resources[k].capacity;
    }
    knapsack_order_tasks(ks);
    knapsack_sum_rest(ks);
    memset(ks->spent, 0, (1 + MSC_KNAPSACK_RESOURCES) * sizeof *ks->spent);
    ks->next[0] = 0;
    size_t d = 0;
    while (d != SIZE_MAX && ks->work < NODE_LIMIT) {
        d = knapsack_visit(ks, d, offset, choices);
    }
    return d == SIZE_MAX;
}

bool msc_knapsack_solve(struct msc_knapsack *ks, const struct msc_isolated *isolated,
                        uint32_t choices[], bool *is_proved) {
    size_t n_tasks = ks->bounds->space->n_tasks;
    msc_knapsack__set_losses(ks, isolated->losses);
    msc_knapsack__set_resources(ks, isolated);
    msc_knapsack__set_multipliers(ks);
    ks->best_loss = INFINITY;
    ks->work = 0;
    if (!msc_knapsack__start_from(ks, ks->reduced, choices)) {
        msc_knapsack__start_from(ks, ks->losses, choices);
    }
    if (isinf(ks->best_loss) && ks->bounds->anchor &&
        msc_knapsack__violation(ks, ks->bounds->anchor) == 0.0) {
        msc_knapsack__start_at(ks, ks->bounds->anchor, choices);
    }
    if (isinf(ks->best_loss)) {
        memcpy(choices, ks->bounds->anchor ? ks->bounds->anchor : ks->moves.point,
               n_tasks * sizeof *choices);
    }
    bool is_whole = knapsack_search_tree(ks, choices);
    if (is_proved) {
        *is_proved = is_whole;
    }
    return !isinf(ks->best_loss);
}
