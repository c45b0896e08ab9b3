// Latencies of several variants of a network, measured in turns: each round runs all of them, so
// that a disturbance of the machine affects all variants equally. Ratios are computed per round.
//
//     struct msc_latency latency = {0};
//     MSC_TRY(msc_latency_init(&latency, n_models, n_rounds));
//     ... latency.us[model * n_rounds + round] ...
//     MSC_TRY(msc_latency_quartiles(&time, &latency, 1));
//     MSC_TRY(msc_latency_ratios(&ratio, &latency, 1, 0));
//     msc_latency_finish(&latency);
#ifndef MSC_TOOLS_LATENCY_H
#define MSC_TOOLS_LATENCY_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

// Open structure.
struct msc_latency {
    size_t n_models;
    size_t n_rounds;
    double *us;    // [n_models, n_rounds]; the median of the runs in a round
    int64_t *runs; // [n_models] runs per round
};

// Quartiles of a list, with linear interpolation between values.
struct msc_quartiles {
    double lower, median, upper;
};

// In each round, a model is run repeatedly for about this time, but at most MSC_LATENCY_MAX_RUNS
// times.
#define MSC_LATENCY_TURN_US 10000.0
#define MSC_LATENCY_MAX_RUNS 1000

// Allocates `us` and `runs`, all zeros. The caller owns *latency (msc_latency_finish).
enum msc_status msc_latency_init(struct msc_latency *latency, size_t n_models, size_t n_rounds);
void msc_latency_finish(struct msc_latency *latency); // accepts zeros

// Quartiles of a model's latency over the rounds, in microseconds. There must be at least one
// round.
enum msc_status msc_latency_quartiles(struct msc_quartiles *out, const struct msc_latency *latency,
                                      size_t model);
// The least latency over the rounds: other load disturbs it least.
double msc_latency_least(const struct msc_latency *latency, size_t model);
// Quartiles, over the rounds, of the ratio of a model's latency to the latency of model `base` in
// the same round.
enum msc_status msc_latency_ratios(struct msc_quartiles *out, const struct msc_latency *latency,
                                   size_t model, size_t base);

// Sorts `values` [n], n > 0.
struct msc_quartiles msc_quartiles_of(double values[], size_t n);

#endif
