// The greedy plans that branch and bound starts from.
#include "agents/knapsack.h"

#include <math.h>
#include <string.h>

// A sum this close to a limit is computed again.
#define NEAR 1e-9
// A ratio counts as smaller than another only if the difference exceeds rounding.
#define ROUNDING 1e-12

static size_t knapsack_entry(const struct msc_knapsack *ks, size_t task, uint32_t choice) {
    return msc_exact_bounds_entry(ks->bounds, task, choice);
}

static double knapsack_taken(const struct msc_knapsack *ks, const struct msc_resource *r,
                             const uint32_t choices[]) {
    double sum = 0.0;
    for (size_t t = 0; t < ks->bounds->space->n_tasks; t++) {
        sum += r->weights[knapsack_entry(ks, t, choices[t])];
    }
    return sum;
}

double msc_knapsack__violation(const struct msc_knapsack *ks, const uint32_t choices[]) {
    double sum = msc_exact_bounds_violation(ks->bounds, choices);
    for (size_t k = 0; k < ks->n_resources; k++) {
        const struct msc_resource *r = &ks->resources[k];
        double taken = r->is_measured ? knapsack_taken(ks, r, choices) : 0.0;
        sum += r->is_measured && taken > r->capacity ? taken - r->capacity : 0.0;
    }
    return sum;
}

void msc_knapsack__keep_if_better(struct msc_knapsack *ks, const uint32_t point[],
                                  uint32_t choices[]) {
    double loss = 0.0;
    for (size_t t = 0; t < ks->bounds->space->n_tasks; t++) {
        loss += ks->losses[knapsack_entry(ks, t, point[t])];
    }
    if (loss < ks->best_loss) {
        ks->best_loss = loss;
        memcpy(choices, point, ks->bounds->space->n_tasks * sizeof *choices);
    }
}

// ---- Changes ----------------------------------------------------------------------------------

static void knapsack_stand_at(struct msc_knapsack *ks, const uint32_t choices[]) {
    msc_exact_moves_start(&ks->moves, choices);
    for (size_t k = 0; k < ks->n_resources; k++) {
        const struct msc_resource *r = &ks->resources[k];
        ks->taken[k] = r->is_measured ? knapsack_taken(ks, r, choices) : 0.0;
    }
}

// The use of a measured resource if the task had another choice.
static double taken_after(const struct msc_knapsack *ks, size_t k, size_t task, uint32_t choice) {
    const double *row = ks->resources[k].weights + ks->bounds->offsets[task];
    return ks->taken[k] + (row[choice] - row[ks->moves.point[task]]);
}

static void knapsack_change(struct msc_knapsack *ks, size_t task, uint32_t choice) {
    for (size_t k = 0; k < ks->n_resources; k++) {
        if (ks->resources[k].is_measured) {
            ks->taken[k] = taken_after(ks, k, task, choice);
        }
    }
    msc_exact_moves_change(&ks->moves, task, choice);
}

static double violation_after(const struct msc_knapsack *ks, size_t task, uint32_t choice) {
    double deltas[MSC_MAX_BOUNDS];
    msc_exact_moves_deltas(&ks->moves, task, choice, deltas);
    double sum = msc_exact_moves_violation(&ks->moves, deltas);
    for (size_t k = 0; k < ks->n_resources; k++) {
        const struct msc_resource *r = &ks->resources[k];
        sum += r->is_measured ? fmax(taken_after(ks, k, task, choice) - r->capacity, 0.0) : 0.0;
    }
    return sum;
}

// Whether the point is within the capacities of measured resources. Near a limit, the sum is
// computed again.
static bool is_within_measured(const struct msc_knapsack *ks) {
    for (size_t k = 0; k < ks->n_resources; k++) {
        const struct msc_resource *r = &ks->resources[k];
        double near = NEAR * (1.0 + fabs(r->capacity));
        double above = r->is_measured ? ks->taken[k] - r->capacity : -INFINITY;
        if (above > near ||
            (above > -near && knapsack_taken(ks, r, ks->moves.point) > r->capacity)) {
            return false;
        }
    }
    return true;
}

// Changes the task, unless the changed point is outside the bounds.
static bool change_within(struct msc_knapsack *ks, size_t task, uint32_t choice) {
    uint32_t before = ks->moves.point[task];
    knapsack_change(ks, task, choice);
    bool is_within = msc_exact_moves_hold(&ks->moves) && is_within_measured(ks);
    if (!is_within) {
        knapsack_change(ks, task, before);
    }
    return is_within;
}

// ---- Plans ------------------------------------------------------------------------------------

// Makes the change of least (loss gained) / (violation removed); the first among equals.
static bool remove_violation(struct msc_knapsack *ks) {
    // The violation is summed in the same way as after a change, so that a change without effect
    // leaves it equal.
    double violation = violation_after(ks, 0, ks->moves.point[0]);
    double best_ratio = INFINITY;
    size_t best_task = 0;
    uint32_t best_choice = 0;
    for (size_t t = 0; t < ks->bounds->space->n_tasks; t++) {
        uint32_t before = ks->moves.point[t];
        const double *row = ks->losses + ks->bounds->offsets[t];
        for (uint32_t c = 0; c < msc_knapsack__n_choices(ks, t); c++) {
            double left = violation_after(ks, t, c);
            double ratio = (row[c] - row[before]) / (violation - left);
            double least_gain = isinf(best_ratio) ? 0.0 : ROUNDING * fabs(best_ratio);
            if (left < violation && ratio < best_ratio - least_gain) {
                best_ratio = ratio;
                best_task = t;
                best_choice = c;
            }
        }
    }
    if (isinf(best_ratio)) {
        return false;
    }
    knapsack_change(ks, best_task, best_choice);
    return true;
}

// Makes single changes that lower the loss within the bounds until none is left.
static void lower_loss(struct msc_knapsack *ks) {
    bool has_changed = true;
    while (has_changed) {
        has_changed = false;
        for (size_t t = 0; t < ks->bounds->space->n_tasks; t++) {
            const double *row = ks->losses + ks->bounds->offsets[t];
            for (uint32_t c = 0; c < msc_knapsack__n_choices(ks, t); c++) {
                bool is_lower = row[c] < row[ks->moves.point[t]];
                has_changed = (is_lower && change_within(ks, t, c)) || has_changed;
            }
        }
    }
}

void msc_knapsack__start_at(struct msc_knapsack *ks, const uint32_t point[], uint32_t choices[]) {
    knapsack_stand_at(ks, point);
    lower_loss(ks);
    msc_knapsack__keep_if_better(ks, ks->moves.point, choices);
}

bool msc_knapsack__start_from(struct msc_knapsack *ks, const double values[], uint32_t choices[]) {
    for (size_t t = 0; t < ks->bounds->space->n_tasks; t++) {
        ks->point[t] = msc_knapsack__least_choice(ks, values, t);
    }
    knapsack_stand_at(ks, ks->point);
    while (msc_knapsack__violation(ks, ks->moves.point) > 0.0) {
        if (!remove_violation(ks)) {
            return false;
        }
    }
    lower_loss(ks);
    msc_knapsack__keep_if_better(ks, ks->moves.point, choices);
    return true;
}
