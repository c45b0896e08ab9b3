#include "agents/knapsack.h"

#include <math.h>
#include <string.h>

#define NODE_LIMIT 5000000
// Where nodes count by their time: a term takes that of so many when its bound is asked whether it may
// hold, and so many terms of a complete plan take that of one.
#define NODES_OF_TERM 2
#define TERMS_OF_NODE 8
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
    if (!ks->weight_rows || !ks->least_rows || !ks->losses || !ks->reduced || !ks->rest ||
        !ks->children || !ks->tasks || !ks->depths || !ks->next || !ks->spent || !ks->point) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for the knapsack of %zu tasks", n_tasks);
    }
    return MSC_OK;
}

void msc_knapsack_count_time(struct msc_knapsack *ks) {
    uint64_t n_terms = 0;
    for (size_t i = 0; i < ks->bounds->n_items; i++) {
        n_terms += ks->bounds->items[i].cost->n_terms;
    }
    ks->bounds_work = NODES_OF_TERM * n_terms;
    ks->plan_work = n_terms / TERMS_OF_NODE;
}

static double knapsack_point_loss(const struct msc_knapsack *ks, const uint32_t choices[]) {
    double sum = 0.0;
    for (size_t t = 0; t < ks->bounds->space->n_tasks; t++) {
        sum += ks->losses[msc_exact_bounds_entry(ks->bounds, t, choices[t])];
    }
    return sum;
}

// How far a point is outside the bounds; 0 within. Measured bounds count by their resources.
static double knapsack_violation(const struct msc_knapsack *ks, const uint32_t choices[]) {
    double sum = msc_exact_bounds_violation(ks->bounds, choices);
    for (size_t k = 0; k < ks->n_resources; k++) {
        const struct msc_resource *r = &ks->resources[k];
        double spent = 0.0;
        for (size_t t = 0; r->is_measured && t < ks->bounds->space->n_tasks; t++) {
            spent += r->weights[msc_exact_bounds_entry(ks->bounds, t, choices[t])];
        }
        sum += r->is_measured && spent > r->capacity ? spent - r->capacity : 0.0;
    }
    return sum;
}

static void knapsack_keep_if_better(struct msc_knapsack *ks, const uint32_t point[],
                                    uint32_t choices[]) {
    double loss = knapsack_point_loss(ks, point);
    if (loss < ks->best_loss) {
        ks->best_loss = loss;
        memcpy(choices, point, ks->bounds->space->n_tasks * sizeof *choices);
    }
}

// One step of the greedy plan: the change with the least loss gained for the violation removed.
static bool knapsack_remove_violation(const struct msc_knapsack *ks, uint32_t point[],
                                      double *violation) {
    double best_ratio = INFINITY;
    double best_violation = *violation;
    size_t best_task = 0;
    uint32_t best_choice = 0;
    for (size_t t = 0; t < ks->bounds->space->n_tasks; t++) {
        uint32_t before = point[t];
        const double *row = ks->losses + ks->bounds->offsets[t];
        for (uint32_t c = 0; c < msc_knapsack__n_choices(ks, t); c++) {
            point[t] = c;
            double left = c == before ? *violation : knapsack_violation(ks, point);
            double ratio = (row[c] - row[before]) / (*violation - left);
            if (left < *violation && ratio < best_ratio) {
                best_ratio = ratio;
                best_violation = left;
                best_task = t;
                best_choice = c;
            }
        }
        point[t] = before;
    }
    if (isinf(best_ratio)) {
        return false;
    }
    point[best_task] = best_choice;
    *violation = best_violation;
    return true;
}

// Takes single changes that lower the loss within the bounds until none is left.
static void knapsack_lower_loss(const struct msc_knapsack *ks, uint32_t point[]) {
    bool has_changed = true;
    while (has_changed) {
        has_changed = false;
        for (size_t t = 0; t < ks->bounds->space->n_tasks; t++) {
            const double *row = ks->losses + ks->bounds->offsets[t];
            for (uint32_t c = 0; c < msc_knapsack__n_choices(ks, t); c++) {
                uint32_t before = point[t];
                point[t] = row[c] < row[before] ? c : before;
                if (point[t] != before && knapsack_violation(ks, point) > 0.0) {
                    point[t] = before;
                }
                has_changed = has_changed || point[t] != before;
            }
        }
    }
}

// A plan to begin with, from where `values` are least.
static bool knapsack_start_from(struct msc_knapsack *ks, const double values[],
                                uint32_t choices[]) {
    for (size_t t = 0; t < ks->bounds->space->n_tasks; t++) {
        ks->point[t] = msc_knapsack__least_choice(ks, values, t);
    }
    double violation = knapsack_violation(ks, ks->point);
    while (violation > 0.0) {
        if (!knapsack_remove_violation(ks, ks->point, &violation)) {
            return false;
        }
    }
    knapsack_lower_loss(ks, ks->point);
    knapsack_keep_if_better(ks, ks->point, choices);
    return true;
}

// Tasks whose second best choice is far behind come first: their other choices are soon refuted.
static void knapsack_order_tasks(struct msc_knapsack *ks) {
    size_t n_tasks = ks->bounds->space->n_tasks;
    double *gaps = ks->spent; // not yet in use
    for (size_t t = 0; t < n_tasks; t++) {
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
        gaps[t] =
            msc_knapsack__n_choices(ks, t) > 1 ? row[children[1]] - row[children[0]] : INFINITY;
        size_t d = t;
        for (; d > 0 && gaps[ks->tasks[d - 1]] < gaps[t]; d--) {
            ks->tasks[d] = ks->tasks[d - 1];
        }
        ks->tasks[d] = (uint32_t)t;
    }
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

// Adds the choice to what depth d spent. False when some resource cannot suffice any more.
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

// Tries the next child at depth d. Returns the depth to go on at; SIZE_MAX when all is done.
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
        return d > 0 ? d - 1 : SIZE_MAX; // the children after it are no better
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
    if (knapsack_violation(ks, ks->point) == 0.0) {
        knapsack_keep_if_better(ks, ks->point, choices);
    }
    return d;
}

// True when the whole tree was seen.
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
    if (!knapsack_start_from(ks, ks->reduced, choices)) {
        knapsack_start_from(ks, ks->losses, choices);
    }
    if (isinf(ks->best_loss) && ks->bounds->anchor &&
        knapsack_violation(ks, ks->bounds->anchor) == 0.0) {
        memcpy(ks->point, ks->bounds->anchor, n_tasks * sizeof *ks->point);
        knapsack_lower_loss(ks, ks->point);
        knapsack_keep_if_better(ks, ks->point, choices);
    }
    if (isinf(ks->best_loss)) {
        memcpy(choices, ks->bounds->anchor ? ks->bounds->anchor : ks->point,
               n_tasks * sizeof *choices);
    }
    bool is_whole = knapsack_search_tree(ks, choices);
    if (is_proved) {
        *is_proved = is_whole;
    }
    return !isinf(ks->best_loss);
}
