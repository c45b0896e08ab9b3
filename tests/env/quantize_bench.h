// Fixture: the quantize environment, or the one named by "type", on the small network of
// tests/tools/quantize_case.h.
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
    struct msc_arena arena; // memory of the outcomes
};

// Prepares the network and samples, but makes no environment yet.
void prepare_bench(struct bench *b, int n_threads, int64_t batch);
// Like prepare_bench, but with another graph, whose inputs have the same shape, and with all sites
// that `target` quantises.
void prepare_bench_of(struct bench *b, struct msc_graph *g, const char *target);
// Makes the environment from the text of its configuration.
enum msc_status create(struct bench *b, const char *config);
// Calls prepare_bench and `create`, with one thread and batches of 4.
void open_bench(struct bench *b, const char *config);
void close_env(struct bench *b);
void close_bench(struct bench *b);

// A trial with these choices, and the outcome of such a trial; both live until close_bench.
struct msc_trial *make_trial(struct bench *b, int64_t id, const uint32_t choices[]);
struct msc_outcome evaluate(struct bench *b, const uint32_t choices[]);
double metric(const struct bench *b, const struct msc_outcome *o, const char *name);
void assert_near(double found, double expected, double relative);
struct msc_strategy *strategy_of(struct bench *b, const uint32_t choices[]);

#endif
