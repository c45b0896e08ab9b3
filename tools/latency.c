#include "tools/latency.h"

#include "base/alloc.h"

#include <stdlib.h>

enum msc_status msc_latency_init(struct msc_latency *latency, size_t n_models, size_t n_rounds) {
    *latency = (struct msc_latency){.n_models = n_models, .n_rounds = n_rounds};
    double *block = msc_alloc_zero(n_models, n_rounds * sizeof *block);
    int64_t *runs = msc_alloc_zero(n_models, sizeof *runs);
    if (!block || !runs) {
        msc_free(block);
        msc_free(runs);
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    latency->us = block;
    latency->runs = runs;
    return MSC_OK;
}

void msc_latency_finish(struct msc_latency *latency) {
    msc_free(latency->us);
    msc_free(latency->runs);
    *latency = (struct msc_latency){0};
}

static int compare_latencies(const void *left, const void *right) {
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

static double value_at(const double sorted[], size_t n, double fraction) {
    double place = fraction * (double)(n - 1);
    size_t below = (size_t)place;
    size_t above = below + 1 < n ? below + 1 : below;
    return sorted[below] + (place - (double)below) * (sorted[above] - sorted[below]);
}

struct msc_quartiles msc_quartiles_of(double values[], size_t n) {
    qsort(values, n, sizeof values[0], compare_latencies);
    return (struct msc_quartiles){.lower = value_at(values, n, 0.25),
                                  .median = value_at(values, n, 0.5),
                                  .upper = value_at(values, n, 0.75)};
}

// Quartiles of a model's rounds, each divided by the same round of `base` unless `base` is NULL.
static enum msc_status rounds_quartiles(struct msc_quartiles *out, const struct msc_latency *l,
                                        size_t model, const double base[]) {
    double *values = msc_alloc_zero(l->n_rounds, sizeof *values);
    MSC_TRY(MSC_ALLOCATED(values));
    for (size_t i = 0; i < l->n_rounds; i++) {
        values[i] = l->us[model * l->n_rounds + i] / (base ? base[i] : 1.0);
    }
    *out = msc_quartiles_of(values, l->n_rounds);
    msc_free(values);
    return MSC_OK;
}

enum msc_status msc_latency_quartiles(struct msc_quartiles *out, const struct msc_latency *latency,
                                      size_t model) {
    return rounds_quartiles(out, latency, model, NULL);
}

enum msc_status msc_latency_ratios(struct msc_quartiles *out, const struct msc_latency *latency,
                                   size_t model, size_t base) {
    return rounds_quartiles(out, latency, model, latency->us + base * latency->n_rounds);
}

double msc_latency_least(const struct msc_latency *latency, size_t model) {
    const double *us = &latency->us[model * latency->n_rounds];
    double least = us[0];
    for (size_t i = 1; i < latency->n_rounds; i++) {
        least = us[i] < least ? us[i] : least;
    }
    return least;
}
