// The bounds as resources that add up over tasks, and the multipliers of the dual problem.
#include "agents/knapsack.h"

#include <math.h>
#include <string.h>

#define DUAL_PASSES 8
#define BISECTIONS 60

// A loss that no sensible plan has takes the place of unusable ones.
void msc_assembler__set_losses(struct msc_assembler *a, const double losses[]) {
    double least = INFINITY;
    double greatest = -INFINITY;
    for (size_t i = 0; i < a->limits->n_entries; i++) {
        if (isfinite(losses[i])) {
            least = fmin(least, losses[i]);
            greatest = fmax(greatest, losses[i]);
        }
    }
    double span = greatest >= least ? greatest - least : 0.0;
    double unusable = (greatest >= least ? greatest : 0.0) +
                      (1.0 + span) * 4.0 * (double)a->limits->space->n_tasks;
    for (size_t i = 0; i < a->limits->n_entries; i++) {
        a->losses[i] = isfinite(losses[i]) ? losses[i] : unusable;
    }
}

static struct msc_resource *new_resource(struct msc_assembler *a, bool is_measured) {
    struct msc_resource *r = &a->resources[a->n_resources];
    size_t n_entries = a->limits->n_entries;
    r->weights = a->weight_rows + a->n_resources * n_entries;
    r->least = a->least_rows + a->n_resources * (a->limits->space->n_tasks + 1);
    r->multiplier = 0.0;
    r->is_measured = is_measured;
    memset(r->weights, 0, n_entries * sizeof *r->weights);
    a->n_resources++;
    return r;
}

// Scales weights and limit so that multipliers of all resources are of one magnitude.
static void finish_resource(struct msc_assembler *a, struct msc_resource *r, double limit) {
    double scale = 0.0;
    for (size_t t = 0; t < a->limits->space->n_tasks; t++) {
        const double *row = r->weights + a->limits->offsets[t];
        double span = 0.0;
        for (uint32_t c = 1; c < msc_assembler__n_choices(a, t); c++) {
            span = fmax(span, fabs(row[c] - row[0]));
        }
        scale += span;
    }
    r->limit = limit;
    if (scale > 0.0) {
        for (size_t i = 0; i < a->limits->n_entries; i++) {
            r->weights[i] /= scale;
        }
        r->limit /= scale;
    }
}

// Splits `sign` times a term by task. With several factors, none negative, the product is at least
// its tangent at the smallest factors; only a positive multiple may be so replaced.
static bool add_term(struct msc_assembler *a, struct msc_resource *r, double *constant,
                     const struct msc_cost_term *term, const double low[], double sign) {
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
        double *row = r->weights + a->limits->offsets[task];
        for (uint32_t c = 0; c < msc_assembler__n_choices(a, task); c++) {
            row[c] += slope * (term->factors[j].by_choice[c] - low[j]);
        }
    }
    return true;
}

// sign * cost <= sign * bound, as a resource; left out when the cost does not allow it.
static void add_cost(struct msc_assembler *a, const struct msc_limit *limit, double sign) {
    double bound = sign > 0.0 ? limit->max : limit->min;
    if (isinf(bound)) {
        return;
    }
    struct msc_resource *r = new_resource(a, false);
    double constant = sign * limit->cost->constant;
    const double *low = limit->factor_low;
    for (size_t i = 0; i < limit->cost->n_terms; i++) {
        a->has_products = a->has_products || limit->cost->terms[i].n_factors > 1;
        if (!add_term(a, r, &constant, &limit->cost->terms[i], low, sign)) {
            a->n_resources--;
            return;
        }
        low += limit->cost->terms[i].n_factors;
    }
    finish_resource(a, r, sign * bound - constant);
}

static void add_measured(struct msc_assembler *a, const double metrics[], double dearest,
                         double bound, double sign) {
    if (isinf(bound) || !isfinite(dearest)) {
        return;
    }
    struct msc_resource *r = new_resource(a, true);
    for (size_t i = 0; i < a->limits->n_entries; i++) {
        r->weights[i] = isfinite(metrics[i]) ? sign * (metrics[i] - dearest) : 0.0;
    }
    finish_resource(a, r, sign * (bound - dearest));
}

void msc_assembler__set_resources(struct msc_assembler *a, const struct msc_isolated *isolated) {
    const struct msc_goal *goal = a->limits->goal;
    a->n_resources = 0;
    a->has_products = false;
    for (size_t i = 0; i < a->limits->n_limits; i++) {
        add_cost(a, &a->limits->limits[i], 1.0);
        add_cost(a, &a->limits->limits[i], -1.0);
    }
    for (size_t i = 0; i < goal->n_bounds; i++) {
        if (isolated->metrics[i]) {
            add_measured(a, isolated->metrics[i], isolated->dearest[i], goal->bounds[i].max, 1.0);
            add_measured(a, isolated->metrics[i], isolated->dearest[i], goal->bounds[i].min, -1.0);
        }
    }
}

static void set_reduced(struct msc_assembler *a) {
    memcpy(a->reduced, a->losses, a->limits->n_entries * sizeof *a->reduced);
    for (size_t k = 0; k < a->n_resources; k++) {
        const struct msc_resource *r = &a->resources[k];
        for (size_t i = 0; r->multiplier > 0.0 && i < a->limits->n_entries; i++) {
            a->reduced[i] += r->multiplier * r->weights[i];
        }
    }
}

uint32_t msc_assembler__least_choice(const struct msc_assembler *a, const double values[],
                                     size_t t) {
    const struct msc_task *task = &a->limits->space->tasks[t];
    const double *row = values + a->limits->offsets[t];
    uint32_t best = task->dearest_first[0];
    for (uint32_t i = 1; i < task->n_choices; i++) {
        uint32_t c = task->dearest_first[i];
        best = row[c] < row[best] ? c : best;
    }
    return best;
}

// What the choices of least reduced loss take of a resource.
static double taken(const struct msc_assembler *a, const struct msc_resource *r) {
    double sum = 0.0;
    for (size_t t = 0; t < a->limits->space->n_tasks; t++) {
        sum += r->weights[msc_limits_entry(a->limits, t,
                                           msc_assembler__least_choice(a, a->reduced, t))];
    }
    return sum;
}

static bool is_overspent(struct msc_assembler *a, struct msc_resource *r, double multiplier) {
    r->multiplier = multiplier;
    set_reduced(a);
    return taken(a, r) > r->limit;
}

// The dual function is concave in each multiplier, with slope taken - limit: its maximum is where
// the slope changes sign. The upper end is kept, where the plan of least reduced loss is within the
// limit.
static void ascend(struct msc_assembler *a, struct msc_resource *r) {
    if (!is_overspent(a, r, 0.0)) {
        return;
    }
    double low = 0.0;
    double high = 1e-6;
    int n_doublings = 0;
    while (is_overspent(a, r, high) && n_doublings++ < 2 * BISECTIONS) {
        low = high;
        high *= 2.0;
    }
    for (int i = 0; i < BISECTIONS; i++) {
        double middle = 0.5 * (low + high);
        if (is_overspent(a, r, middle)) {
            low = middle;
        } else {
            high = middle;
        }
    }
    r->multiplier = high;
    set_reduced(a);
}

void msc_assembler__set_multipliers(struct msc_assembler *a) {
    set_reduced(a);
    int n_passes = a->n_resources > 1 ? DUAL_PASSES : 1;
    for (int pass = 0; pass < n_passes; pass++) {
        for (size_t k = 0; k < a->n_resources; k++) {
            ascend(a, &a->resources[k]);
        }
    }
}
