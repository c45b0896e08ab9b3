// Writes the bounds as resources, which are sums over tasks, and finds the multipliers of the dual
// problem.
#include "agents/knapsack.h"

#include <math.h>
#include <string.h>

#define DUAL_PASSES 8
#define BISECTIONS 60

// Unusable choices get a loss greater than that of any plan of usable choices.
void msc_knapsack__set_losses(struct msc_knapsack *ks, const double losses[]) {
    double least = INFINITY;
    double greatest = -INFINITY;
    for (size_t i = 0; i < ks->bounds->n_entries; i++) {
        if (isfinite(losses[i])) {
            least = fmin(least, losses[i]);
            greatest = fmax(greatest, losses[i]);
        }
    }
    double span = greatest >= least ? greatest - least : 0.0;
    double unusable = (greatest >= least ? greatest : 0.0) +
                      (1.0 + span) * 4.0 * (double)ks->bounds->space->n_tasks;
    for (size_t i = 0; i < ks->bounds->n_entries; i++) {
        ks->losses[i] = isfinite(losses[i]) ? losses[i] : unusable;
    }
}

static struct msc_resource *new_resource(struct msc_knapsack *ks, bool is_measured) {
    struct msc_resource *r = &ks->resources[ks->n_resources];
    size_t n_entries = ks->bounds->n_entries;
    r->weights = ks->weight_rows + ks->n_resources * n_entries;
    r->least = ks->least_rows + ks->n_resources * (ks->bounds->space->n_tasks + 1);
    r->multiplier = 0.0;
    r->is_measured = is_measured;
    memset(r->weights, 0, n_entries * sizeof *r->weights);
    ks->n_resources++;
    return r;
}

// Scales weights and capacity so that the multipliers of all resources have the same magnitude.
static void finish_resource(struct msc_knapsack *ks, struct msc_resource *r, double capacity) {
    double scale = 0.0;
    for (size_t t = 0; t < ks->bounds->space->n_tasks; t++) {
        const double *row = r->weights + ks->bounds->offsets[t];
        double span = 0.0;
        for (uint32_t c = 1; c < msc_knapsack__n_choices(ks, t); c++) {
            span = fmax(span, fabs(row[c] - row[0]));
        }
        scale += span;
    }
    r->capacity = capacity;
    if (scale > 0.0) {
        for (size_t i = 0; i < ks->bounds->n_entries; i++) {
            r->weights[i] /= scale;
        }
        r->capacity /= scale;
    }
}

// Adds `sign` times a term to the resource, split by task. A product of several non-negative
// factors is at least its tangent at the smallest factors, so the tangent replaces the product.
// False if a factor or the scale is negative, because the tangent is then not a lower bound.
static bool add_term_to_resource(struct msc_knapsack *ks, struct msc_resource *r, double *constant,
                                 const struct msc_cost_term *term, const double low[],
                                 double sign) {
    double scale = sign * term->scale;
    double base = scale;
    for (uint32_t j = 0; j < term->n_factors; j++) {
        if (term->n_factors > 1 && (low[j] < 0.0 || scale < 0.0)) {
            return false;
        }
        base *= low[j];
    }
    *constant += base;
    for (uint32_t j = 0; j < term->n_factors; j++) {
        double slope = scale;
        for (uint32_t k = 0; k < term->n_factors; k++) {
            slope *= k == j ? 1.0 : low[k];
        }
        uint32_t task = term->factors[j].task;
        double *row = r->weights + ks->bounds->offsets[task];
        for (uint32_t c = 0; c < msc_knapsack__n_choices(ks, task); c++) {
            row[c] += slope * (term->factors[j].by_choice[c] - low[j]);
        }
    }
    return true;
}

// Adds sign * cost <= sign * bound as a resource, unless the cost cannot be split by task.
static void add_cost_resource(struct msc_knapsack *ks, const struct msc_exact_bound *bound,
                              double sign) {
    double most = sign > 0.0 ? bound->max : bound->min;
    if (isinf(most)) {
        return;
    }
    struct msc_resource *r = new_resource(ks, false);
    double constant = sign * bound->cost->constant;
    const double *low = bound->factor_low;
    for (size_t i = 0; i < bound->cost->n_terms; i++) {
        ks->has_products = ks->has_products || bound->cost->terms[i].n_factors > 1;
        if (!add_term_to_resource(ks, r, &constant, &bound->cost->terms[i], low, sign)) {
            ks->n_resources--;
            return;
        }
        low += bound->cost->terms[i].n_factors;
    }
    finish_resource(ks, r, sign * most - constant);
}

static void add_measured_resource(struct msc_knapsack *ks, const double metrics[],
                                  double most_expensive, double bound, double sign) {
    if (isinf(bound) || !isfinite(most_expensive)) {
        return;
    }
    struct msc_resource *r = new_resource(ks, true);
    for (size_t i = 0; i < ks->bounds->n_entries; i++) {
        r->weights[i] = isfinite(metrics[i]) ? sign * (metrics[i] - most_expensive) : 0.0;
    }
    finish_resource(ks, r, sign * (bound - most_expensive));
}

void msc_knapsack__set_resources(struct msc_knapsack *ks, const struct msc_isolated *isolated) {
    const struct msc_goal *goal = ks->bounds->goal;
    ks->n_resources = 0;
    ks->has_products = false;
    for (size_t i = 0; i < ks->bounds->n_items; i++) {
        add_cost_resource(ks, &ks->bounds->items[i], 1.0);
        add_cost_resource(ks, &ks->bounds->items[i], -1.0);
    }
    for (size_t i = 0; i < goal->n_bounds; i++) {
        if (isolated->metrics[i]) {
            add_measured_resource(ks, isolated->metrics[i], isolated->most_expensive[i],
                                  goal->bounds[i].max, 1.0);
            add_measured_resource(ks, isolated->metrics[i], isolated->most_expensive[i],
                                  goal->bounds[i].min, -1.0);
        }
    }
}

static void set_reduced(struct msc_knapsack *ks) {
    memcpy(ks->reduced, ks->losses, ks->bounds->n_entries * sizeof *ks->reduced);
    for (size_t k = 0; k < ks->n_resources; k++) {
        const struct msc_resource *r = &ks->resources[k];
        for (size_t i = 0; r->multiplier > 0.0 && i < ks->bounds->n_entries; i++) {
            ks->reduced[i] += r->multiplier * r->weights[i];
        }
    }
}

uint32_t msc_knapsack__least_choice(const struct msc_knapsack *ks, const double values[],
                                    size_t t) {
    const struct msc_task *task = &ks->bounds->space->tasks[t];
    const double *row = values + ks->bounds->offsets[t];
    uint32_t best = task->most_expensive_first[0];
    for (uint32_t i = 1; i < task->n_choices; i++) {
        uint32_t c = task->most_expensive_first[i];
        best = row[c] < row[best] ? c : best;
    }
    return best;
}

// Use of a resource by the choices of least reduced loss.
static double dual_taken(const struct msc_knapsack *ks, const struct msc_resource *r) {
    double sum = 0.0;
    for (size_t t = 0; t < ks->bounds->space->n_tasks; t++) {
        sum += r->weights[msc_exact_bounds_entry(ks->bounds, t,
                                                 msc_knapsack__least_choice(ks, ks->reduced, t))];
    }
    return sum;
}

static bool dual_is_overspent(struct msc_knapsack *ks, struct msc_resource *r, double multiplier) {
    r->multiplier = multiplier;
    set_reduced(ks);
    return dual_taken(ks, r) > r->capacity;
}

// Maximises the dual function in one multiplier. The function is concave. Its slope is the use of
// the resource minus its capacity, so the slope changes sign at the maximum. The result is the
// upper end of the final interval, at which the plan of least reduced loss is within the capacity.
static void dual_ascend(struct msc_knapsack *ks, struct msc_resource *r) {
    if (!dual_is_overspent(ks, r, 0.0)) {
        return;
    }
    double low = 0.0;
    double high = 1e-6;
    int n_doublings = 0;
    while (dual_is_overspent(ks, r, high) && n_doublings++ < 2 * BISECTIONS) {
        low = high;
        high *= 2.0;
    }
    for (int i = 0; i < BISECTIONS; i++) {
        double middle = 0.5 * (low + high);
        if (dual_is_overspent(ks, r, middle)) {
            low = middle;
        } else {
            high = middle;
        }
    }
    r->multiplier = high;
    set_reduced(ks);
}

void msc_knapsack__set_multipliers(struct msc_knapsack *ks) {
    set_reduced(ks);
    int n_passes = ks->n_resources > 1 ? DUAL_PASSES : 1;
    for (int pass = 0; pass < n_passes; pass++) {
        for (size_t k = 0; k < ks->n_resources; k++) {
            dual_ascend(ks, &ks->resources[k]);
        }
    }
}
