// The quantize environment, or that of "type", on the small network of tests/tools/quantize_case.h.
#ifndef MSC_TESTS_QUANTIZE_BENCH_H
#define MSC_TESTS_QUANTIZE_BENCH_H

#include "env/env.h"
#include "tests/tools/quantize_case.h"
#include "tools/strategy.h"

#define CHOICES                                                                                    \
    "\"choices\":[{\"bits\":8},{\"bits\":4},{\"bits\":3,\"observer\":\"mse\"},{\"float\":true}]"

struct bench {
    struct quantize_case c;
    struct msc_env_host host;
    struct msc_env *env;
    struct msc_goal goal;
    cJSON *config;
    struct msc_arena arena; // of outcomes
};

// Without an environment yet.
void prepare_bench(struct bench *b, int n_threads, int64_t batch);
// Of another graph of such inputs, for all sites of a target.
void prepare_bench_of(struct bench *b, struct msc_graph *g, const char *target);
// Makes the environment from the text of its configuration.
enum msc_status create(struct bench *b, const char *config);
void open_bench(struct bench *b, const char *config); // both, with one thread and batches of 4
void close_env(struct bench *b);
void close_bench(struct bench *b);

// A trial of these choices, and the outcome of one; they live until close_bench.
struct msc_trial *make_trial(struct bench *b, int64_t id, const uint32_t choices[]);
struct msc_outcome evaluate(struct bench *b, const uint32_t choices[]);
double metric(const struct bench *b, const struct msc_outcome *o, const char *name);
void assert_near(double found, double expected, double relative);
struct msc_strategy *strategy_of(struct bench *b, const uint32_t choices[]);

#endif
