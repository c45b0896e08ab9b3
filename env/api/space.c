#include "env/api/space.h"

#include "base/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int msc_space_find_metric(const struct msc_space *space, const char *name) {
    for (size_t i = 0; i < space->n_metrics; i++) {
        if (strcmp(space->metrics[i].name, name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

const struct msc_cost *msc_space_find_cost(const struct msc_space *space, const char *metric) {
    for (size_t i = 0; i < space->n_costs; i++) {
        if (strcmp(space->costs[i].metric, metric) == 0) {
            return &space->costs[i];
        }
    }
    return NULL;
}

double msc_cost_value(const struct msc_cost *cost, const uint32_t choices[]) {
    double sum = cost->constant;
    for (size_t i = 0; i < cost->n_terms; i++) {
        const struct msc_cost_term *term = &cost->terms[i];
        double product = term->scale;
        for (uint32_t j = 0; j < term->n_factors; j++) {
            const struct msc_cost_factor *factor = &term->factors[j];
            product *= factor->by_choice[choices[factor->task]];
        }
        sum += product;
    }
    return sum;
}

// Multiplies the interval [*low, *high] by [factor_low, factor_high]. If all numbers have the same
// sign, each end is a single product. Its factors are multiplied in the order of msc_cost_value, so
// both functions give the same bits.
static void interval_multiply(double *low, double *high, double factor_low, double factor_high) {
    double a = *low * factor_low;
    double b = *low * factor_high;
    double c = *high * factor_low;
    double d = *high * factor_high;
    *low = fmin(fmin(a, b), fmin(c, d));
    *high = fmax(fmax(a, b), fmax(c, d));
}

static void factor_range(const struct msc_space *space, const struct msc_cost_factor *factor,
                         double *low, double *high) {
    *low = factor->by_choice[0];
    *high = factor->by_choice[0];
    uint32_t n_choices = space->tasks[factor->task].n_choices;
    for (uint32_t c = 1; c < n_choices; c++) {
        *low = fmin(*low, factor->by_choice[c]);
        *high = fmax(*high, factor->by_choice[c]);
    }
}

void msc_cost_range(const struct msc_space *space, const struct msc_cost *cost,
                    const uint32_t choices[], size_t n_fixed, double *low, double *high) {
    *low = cost->constant;
    *high = cost->constant;
    for (size_t i = 0; i < cost->n_terms; i++) {
        const struct msc_cost_term *term = &cost->terms[i];
        double term_low = term->scale;
        double term_high = term->scale;
        for (uint32_t j = 0; j < term->n_factors; j++) {
            const struct msc_cost_factor *factor = &term->factors[j];
            double factor_low;
            double factor_high;
            if (factor->task < n_fixed) {
                factor_low = factor->by_choice[choices[factor->task]];
                factor_high = factor_low;
            } else {
                factor_range(space, factor, &factor_low, &factor_high);
            }
            interval_multiply(&term_low, &term_high, factor_low, factor_high);
        }
        *low += term_low;
        *high += term_high;
    }
}

// Returns +1 if the term is extreme at the greatest values of its factors, -1 if at the least, and
// 0 if at neither because the signs are mixed.
static int wanted_end(const struct msc_space *space, const struct msc_cost_term *term,
                      bool want_max) {
    int direction = (term->scale >= 0.0) == want_max ? 1 : -1;
    if (term->n_factors <= 1) {
        return direction;
    }
    for (uint32_t j = 0; j < term->n_factors; j++) {
        double low;
        double high;
        factor_range(space, &term->factors[j], &low, &high);
        if (low < 0.0) {
            return 0;
        }
    }
    return direction;
}

static bool term_accepts(const struct msc_space *space, const struct msc_cost_term *term,
                         uint32_t task, uint32_t choice, bool want_max) {
    int direction = wanted_end(space, term, want_max);
    for (uint32_t j = 0; j < term->n_factors; j++) {
        if (term->factors[j].task != task) {
            continue;
        }
        double low;
        double high;
        factor_range(space, &term->factors[j], &low, &high);
        double value = term->factors[j].by_choice[choice];
        if (direction == 0 ? low != high : value != (direction > 0 ? high : low)) {
            return false;
        }
    }
    return true;
}

// The terms of each task; a term that contains a task twice is listed twice.
struct uses {
    // [n_tasks], end of a task's range in `terms`; the next task's range begins there
    size_t *ends;
    size_t *terms; // indices of terms, grouped by task, in the cost's order
};

static void finish_uses(struct uses *uses) {
    msc_free(uses->ends);
    msc_free(uses->terms);
}

// Returns false if there is not enough memory. The caller finishes `uses` in either case.
static bool list_uses(struct uses *uses, const struct msc_space *space,
                      const struct msc_cost *cost) {
    size_t n = 0;
    *uses = (struct uses){.ends = msc_alloc_zero(space->n_tasks + 1, sizeof *uses->ends)};
    for (size_t i = 0; uses->ends && i < cost->n_terms; i++) {
        for (uint32_t j = 0; j < cost->terms[i].n_factors; j++, n++) {
            uses->ends[cost->terms[i].factors[j].task + 1]++;
        }
    }
    uses->terms = msc_alloc_zero(n + 1, sizeof *uses->terms);
    if (!uses->ends || !uses->terms) {
        return false;
    }
    for (size_t t = 0; t < space->n_tasks; t++) {
        uses->ends[t + 1] += uses->ends[t]; // the start of the next task's range
    }
    for (size_t i = 0; i < cost->n_terms; i++) {
        for (uint32_t j = 0; j < cost->terms[i].n_factors; j++) {
            uses->terms[uses->ends[cost->terms[i].factors[j].task]++] = i;
        }
    }
    return true;
}

// The first choice at which all terms that contain the task are extreme, or -1.
static int64_t extreme_choice(const struct msc_space *space, const struct msc_cost *cost,
                              const struct uses *uses, uint32_t task, bool want_max) {
    for (uint32_t c = 0; c < space->tasks[task].n_choices; c++) {
        bool fits = true;
        for (size_t u = task > 0 ? uses->ends[task - 1] : 0; u < uses->ends[task] && fits; u++) {
            fits = term_accepts(space, &cost->terms[uses->terms[u]], task, c, want_max);
        }
        if (fits) {
            return c;
        }
    }
    return -1;
}

// If there is not enough memory, the result is an outer bound.
static double cost_extreme(const struct msc_space *space, const struct msc_cost *cost,
                           bool *is_exact, uint32_t choices[], bool want_max) {
    struct uses uses;
    *is_exact = list_uses(&uses, space, cost);
    for (size_t t = 0; t < space->n_tasks && *is_exact; t++) {
        int64_t choice = extreme_choice(space, cost, &uses, (uint32_t)t, want_max);
        if (choice < 0) {
            *is_exact = false;
        } else if (choices) {
            choices[t] = (uint32_t)choice;
        }
    }
    finish_uses(&uses);
    double low;
    double high;
    msc_cost_range(space, cost, NULL, 0, &low, &high);
    return want_max ? high : low;
}

double msc_cost_min(const struct msc_space *space, const struct msc_cost *cost, bool *is_exact,
                    uint32_t choices[]) {
    return cost_extreme(space, cost, is_exact, choices, false);
}

double msc_cost_max(const struct msc_space *space, const struct msc_cost *cost, bool *is_exact,
                    uint32_t choices[]) {
    return cost_extreme(space, cost, is_exact, choices, true);
}

const char *msc_baseline_kind(const char *label) {
    return strncmp(label, "the ", strlen("the ")) == 0 ? "" : "uniform ";
}

double msc_space_n_points(const struct msc_space *space) {
    double n = 1.0;
    for (size_t t = 0; t < space->n_tasks; t++) {
        n *= (double)space->tasks[t].n_choices;
        if (n > 9007199254740992.0) { // 2^53
            return INFINITY;
        }
    }
    return n;
}

static int compare_pairs(const void *a, const void *b) {
    const uint32_t *x = a, *y = b;
    size_t at = x[0] == y[0];
    return (x[at] > y[at]) - (x[at] < y[at]);
}

size_t msc_space_sort_neighbours(uint32_t pairs[][2], size_t n) {
    size_t n_kept = 0;
    if (n == 0) {
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t low = pairs[i][0] < pairs[i][1] ? pairs[i][0] : pairs[i][1];
        pairs[i][1] += pairs[i][0] - low;
        pairs[i][0] = low;
    }
    qsort(pairs, n, sizeof pairs[0], compare_pairs);
    for (size_t i = 0; i < n; i++) {
        bool is_new = n_kept == 0 || compare_pairs(pairs[i], pairs[n_kept - 1]) != 0;
        if (is_new && pairs[i][0] != pairs[i][1]) {
            memmove(pairs[n_kept++], pairs[i], sizeof pairs[0]);
        }
    }
    return n_kept;
}

static struct msc_hash hash_double(struct msc_hash h, double value) {
    return msc_hash_add_bytes(h, &value, sizeof value);
}

static struct msc_hash hash_task(struct msc_hash h, const struct msc_space *space, size_t t) {
    const struct msc_task *task = &space->tasks[t];
    h = msc_hash_add_text(h, task->name);
    h = msc_hash_add_u64(h, task->n_choices);
    for (uint32_t c = 0; c < task->n_choices; c++) {
        h = msc_hash_add_text(h, task->labels[c]);
        h = msc_hash_add_u64(h, task->most_expensive_first[c]);
    }
    for (size_t f = 0; f < space->n_features; f++) {
        h = hash_double(h, task->features[f]);
    }
    return h;
}

static struct msc_hash hash_cost(struct msc_hash h, const struct msc_space *space,
                                 const struct msc_cost *cost) {
    h = msc_hash_add_text(h, cost->metric);
    h = hash_double(h, cost->constant);
    h = msc_hash_add_u64(h, cost->n_terms);
    for (size_t i = 0; i < cost->n_terms; i++) {
        const struct msc_cost_term *term = &cost->terms[i];
        h = hash_double(h, term->scale);
        h = msc_hash_add_u64(h, term->n_factors);
        for (uint32_t j = 0; j < term->n_factors; j++) {
            uint32_t task = term->factors[j].task;
            h = msc_hash_add_u64(h, task);
            h = msc_hash_add_bytes(h, term->factors[j].by_choice,
                                   space->tasks[task].n_choices * sizeof(double));
        }
    }
    return h;
}

struct msc_hash msc_space_hash(const struct msc_space *space) {
    struct msc_hash h = msc_hash_bytes("msc_space", 9);
    h = msc_hash_add_u64(h, space->n_tasks);
    h = msc_hash_add_u64(h, space->n_features);
    for (size_t f = 0; f < space->n_features; f++) {
        h = msc_hash_add_text(h, space->feature_names[f]);
    }
    for (size_t t = 0; t < space->n_tasks; t++) {
        h = hash_task(h, space, t);
    }
    h = msc_hash_add_u64(h, space->n_metrics);
    for (size_t i = 0; i < space->n_metrics; i++) {
        const struct msc_metric *metric = &space->metrics[i];
        h = msc_hash_add_text(h, metric->name);
        h = msc_hash_add_u64(h, (uint64_t)metric->is_measured * 4 +
                                    (uint64_t)metric->is_maximised * 2 + metric->is_exact);
    }
    h = msc_hash_add_u64(h, space->n_costs);
    for (size_t i = 0; i < space->n_costs; i++) {
        h = hash_cost(h, space, &space->costs[i]);
    }
    h = msc_hash_add_u64(h, space->n_baselines);
    for (size_t i = 0; i < space->n_baselines; i++) {
        h = msc_hash_add_text(h, space->baselines[i].label);
        h = msc_hash_add_bytes(h, space->baselines[i].choices, space->n_tasks * sizeof(uint32_t));
    }
    return h;
}
