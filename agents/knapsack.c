#include "agents/knapsack.h"

#include <math.h>
#include <string.h>

#define NODE_LIMIT 5000000
// Sums taken in different orders differ by rounding.
#define SLACK 1e-12

enum msc_status msc_assembler_init(struct msc_assembler *a, struct msc_arena *arena,
                                   struct msc_limits *limits) {
    memset(a, 0, sizeof *a);
    size_t n_tasks = limits->space->n_tasks;
    size_t n_entries = limits->n_entries;
    a->limits = limits;
    a->weight_rows = msc_arena_array(arena, MSC_ASSEMBLE_RESOURCES * n_entries, sizeof(double));
    a->least_rows = msc_arena_array(arena, MSC_ASSEMBLE_RESOURCES * (n_tasks + 1), sizeof(double));
    a->losses = msc_arena_array(arena, n_entries, sizeof *a->losses);
    a->reduced = msc_arena_array(arena, n_entries, sizeof *a->reduced);
    a->rest = msc_arena_array(arena, n_tasks + 1, sizeof *a->rest);
    a->children = msc_arena_array(arena, n_entries, sizeof *a->children);
    a->tasks = msc_arena_array(arena, n_tasks, sizeof *a->tasks);
    a->depths = msc_arena_array(arena, n_tasks, sizeof *a->depths);
    a->next = msc_arena_array(arena, n_tasks, sizeof *a->next);
    a->spent =
        msc_arena_array(arena, (n_tasks + 1) * (1 + MSC_ASSEMBLE_RESOURCES), sizeof *a->spent);
    a->point = msc_arena_array(arena, n_tasks, sizeof *a->point);
    if (!a->weight_rows || !a->least_rows || !a->losses || !a->reduced || !a->rest ||
        !a->children || !a->tasks || !a->depths || !a->next || !a->spent || !a->point) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory assembling %zu tasks", n_tasks);
    }
    return MSC_OK;
}

static double point_loss(const struct msc_assembler *a, const uint32_t choices[]) {
    double sum = 0.0;
    for (size_t t = 0; t < a->limits->space->n_tasks; t++) {
        sum += a->losses[msc_limits_entry(a->limits, t, choices[t])];
    }
    return sum;
}

// How far a point is outside the bounds; 0 within. Measured bounds count by their resources.
static double violation_of(const struct msc_assembler *a, const uint32_t choices[]) {
    double sum = msc_limits_violation(a->limits, choices);
    for (size_t k = 0; k < a->n_resources; k++) {
        const struct msc_resource *r = &a->resources[k];
        double spent = 0.0;
        for (size_t t = 0; r->is_measured && t < a->limits->space->n_tasks; t++) {
            spent += r->weights[msc_limits_entry(a->limits, t, choices[t])];
        }
        sum += r->is_measured && spent > r->limit ? spent - r->limit : 0.0;
    }
    return sum;
}

static void keep_if_better(struct msc_assembler *a, const uint32_t point[], uint32_t choices[]) {
    double loss = point_loss(a, point);
    if (loss < a->best_loss) {
        a->best_loss = loss;
        memcpy(choices, point, a->limits->space->n_tasks * sizeof *choices);
    }
}

// One step of the greedy plan: the change with the least loss gained for the violation removed.
static bool remove_violation(const struct msc_assembler *a, uint32_t point[], double *violation) {
    double best_ratio = INFINITY;
    double best_violation = *violation;
    size_t best_task = 0;
    uint32_t best_choice = 0;
    for (size_t t = 0; t < a->limits->space->n_tasks; t++) {
        uint32_t before = point[t];
        const double *row = a->losses + a->limits->offsets[t];
        for (uint32_t c = 0; c < msc_assembler__n_choices(a, t); c++) {
            point[t] = c;
            double left = c == before ? *violation : violation_of(a, point);
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
static void lower_loss(const struct msc_assembler *a, uint32_t point[]) {
    bool has_changed = true;
    while (has_changed) {
        has_changed = false;
        for (size_t t = 0; t < a->limits->space->n_tasks; t++) {
            const double *row = a->losses + a->limits->offsets[t];
            for (uint32_t c = 0; c < msc_assembler__n_choices(a, t); c++) {
                uint32_t before = point[t];
                point[t] = row[c] < row[before] ? c : before;
                if (point[t] != before && violation_of(a, point) > 0.0) {
                    point[t] = before;
                }
                has_changed = has_changed || point[t] != before;
            }
        }
    }
}

// A plan to begin with, from where `values` are least.
static bool start_from(struct msc_assembler *a, const double values[], uint32_t choices[]) {
    for (size_t t = 0; t < a->limits->space->n_tasks; t++) {
        a->point[t] = msc_assembler__least_choice(a, values, t);
    }
    double violation = violation_of(a, a->point);
    while (violation > 0.0) {
        if (!remove_violation(a, a->point, &violation)) {
            return false;
        }
    }
    lower_loss(a, a->point);
    keep_if_better(a, a->point, choices);
    return true;
}

// Tasks whose second best choice is far behind come first: their other choices are soon refuted.
static void order_tasks(struct msc_assembler *a) {
    size_t n_tasks = a->limits->space->n_tasks;
    double *gaps = a->spent; // not yet in use
    for (size_t t = 0; t < n_tasks; t++) {
        uint32_t *children = a->children + a->limits->offsets[t];
        const double *row = a->reduced + a->limits->offsets[t];
        for (uint32_t i = 0; i < msc_assembler__n_choices(a, t); i++) {
            uint32_t choice = a->limits->space->tasks[t].dearest_first[i];
            uint32_t j = i;
            for (; j > 0 && row[children[j - 1]] > row[choice]; j--) {
                children[j] = children[j - 1];
            }
            children[j] = choice;
        }
        gaps[t] =
            msc_assembler__n_choices(a, t) > 1 ? row[children[1]] - row[children[0]] : INFINITY;
        size_t d = t;
        for (; d > 0 && gaps[a->tasks[d - 1]] < gaps[t]; d--) {
            a->tasks[d] = a->tasks[d - 1];
        }
        a->tasks[d] = (uint32_t)t;
    }
    for (size_t d = 0; d < n_tasks; d++) {
        a->depths[a->tasks[d]] = (uint32_t)d;
    }
}

static void sum_rest(struct msc_assembler *a) {
    size_t n_tasks = a->limits->space->n_tasks;
    a->rest[n_tasks] = 0.0;
    for (size_t d = n_tasks; d-- > 0;) {
        size_t offset = a->limits->offsets[a->tasks[d]];
        a->rest[d] = a->rest[d + 1] + a->reduced[offset + a->children[offset]];
    }
    for (size_t k = 0; k < a->n_resources; k++) {
        struct msc_resource *r = &a->resources[k];
        r->least[n_tasks] = 0.0;
        for (size_t d = n_tasks; d-- > 0;) {
            const double *row = r->weights + a->limits->offsets[a->tasks[d]];
            double least = row[0];
            for (uint32_t c = 1; c < msc_assembler__n_choices(a, a->tasks[d]); c++) {
                least = fmin(least, row[c]);
            }
            r->least[d] = r->least[d + 1] + least;
        }
    }
}

// Adds the choice to what depth d spent. False when some resource cannot suffice any more.
static bool spend(struct msc_assembler *a, size_t d, size_t entry) {
    const double *before = a->spent + d * (1 + MSC_ASSEMBLE_RESOURCES);
    double *after = a->spent + (d + 1) * (1 + MSC_ASSEMBLE_RESOURCES);
    after[0] = before[0] + a->reduced[entry];
    for (size_t k = 0; k < a->n_resources; k++) {
        const struct msc_resource *r = &a->resources[k];
        after[1 + k] = before[1 + k] + r->weights[entry];
        if (after[1 + k] + r->least[d + 1] > r->limit + SLACK * (1.0 + fabs(r->limit))) {
            return false;
        }
    }
    return true;
}

// Tries the next child at depth d. Returns the depth to go on at; SIZE_MAX when all is done.
static size_t visit(struct msc_assembler *a, size_t d, double offset, uint32_t choices[]) {
    size_t n_tasks = a->limits->space->n_tasks;
    size_t t = a->tasks[d];
    size_t first = a->limits->offsets[t];
    const double *spent = a->spent + d * (1 + MSC_ASSEMBLE_RESOURCES);
    if (a->next[d] == msc_assembler__n_choices(a, t)) {
        return d > 0 ? d - 1 : SIZE_MAX;
    }
    uint32_t choice = a->children[first + a->next[d]++];
    a->n_nodes++;
    double bound = spent[0] + a->reduced[first + choice] + a->rest[d + 1] - offset;
    if (bound >= a->best_loss - SLACK * (fabs(a->best_loss) + fabs(offset))) {
        return d > 0 ? d - 1 : SIZE_MAX; // the children after it are no better
    }
    a->point[t] = choice;
    if (!spend(a, d, first + choice)) {
        return d;
    }
    if (d + 1 < n_tasks) {
        if (a->has_products && !msc_limits_may_hold(a->limits, a->point, a->depths, d + 1)) {
            return d;
        }
        a->next[d + 1] = 0;
        return d + 1;
    }
    if (violation_of(a, a->point) == 0.0) {
        keep_if_better(a, a->point, choices);
    }
    return d;
}

// True when the whole tree was seen.
static bool search_tree(struct msc_assembler *a, uint32_t choices[]) {
    double offset = 0.0;
    for (size_t k = 0; k < a->n_resources; k++) {
        offset += a->resources[k].multiplier * a->resources[k].limit;
    }
    order_tasks(a);
    sum_rest(a);
    memset(a->spent, 0, (1 + MSC_ASSEMBLE_RESOURCES) * sizeof *a->spent);
    a->next[0] = 0;
    size_t d = 0;
    while (d != SIZE_MAX && a->n_nodes < NODE_LIMIT) {
        d = visit(a, d, offset, choices);
    }
    return d == SIZE_MAX;
}

bool msc_assembler_solve(struct msc_assembler *a, const struct msc_isolated *isolated,
                         uint32_t choices[], bool *is_proved) {
    size_t n_tasks = a->limits->space->n_tasks;
    msc_assembler__set_losses(a, isolated->losses);
    msc_assembler__set_resources(a, isolated);
    msc_assembler__set_multipliers(a);
    a->best_loss = INFINITY;
    a->n_nodes = 0;
    if (!start_from(a, a->reduced, choices)) {
        start_from(a, a->losses, choices);
    }
    if (isinf(a->best_loss) && a->limits->anchor && violation_of(a, a->limits->anchor) == 0.0) {
        memcpy(a->point, a->limits->anchor, n_tasks * sizeof *a->point);
        lower_loss(a, a->point);
        keep_if_better(a, a->point, choices);
    }
    if (isinf(a->best_loss)) {
        memcpy(choices, a->limits->anchor ? a->limits->anchor : a->point,
               n_tasks * sizeof *choices);
    }
    bool is_whole = search_tree(a, choices);
    if (is_proved) {
        *is_proved = is_whole;
    }
    return !isinf(a->best_loss);
}
