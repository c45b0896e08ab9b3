// The coordinator's side of a search on several machines: splits measurements among workers and
// combines their answers. The agent, the record, exact costs and bounds remain in this process,
// which also decides whether trials are feasible or failed. Sums are added in the same order as on
// one machine, so the record is the same as on one machine.
//
//     MSC_TRY(msc_pool_open(&pool, &options));       // the pool now owns options.bridge
//     msc_env_set_elsewhere(env, msc_pool_elsewhere(pool));
//     MSC_TRY(msc_env_evaluate(env, &goal, &evaluation));
//     n = msc_pool_take_deaths(pool, deaths, MSC_POOL_MAX_DEATHS);
//     msc_pool_close(pool);
//
// If the environment has batches (msc_env_batches), work is split by batches first: trials share
// work only within a batch, so nothing is computed twice. A batch stays with its worker while that
// worker lives (rendezvous hashing: Thaler and Ravishankar, 1998). Trials are split as well if
// there are more workers than batches, and in races: they are sorted by choices, so that neighbours
// share work, and cut into pieces of equal cost.
//
// Workers come and go. The parts of a lost worker are sent to another. A part that takes three
// times as long as expected is also sent to a second worker, and the first answer counts. Random
// parts are measured twice, more of them for a new worker. If the results of two workers differ in
// any bit, the search stops. A trial is reported (msc_pool_take_deaths) only after a crash that the
// worker's parent saw, or after its third worker was lost. The caller then runs the trial alone.
#ifndef MSC_CLUSTER_POOL_H
#define MSC_CLUSTER_POOL_H

#include "env/env.h"
#include "cluster/bridge.h"
#include "supervise/supervise.h"

struct msc_pool;

struct msc_pool_options {
    struct msc_env *env;       // borrowed
    struct msc_bridge *bridge; // owned by the pool, also on failure
    const char *init; // members of the init request after method and protocol: "\"threads\":2"
    const char *program, *build; // version and build of this program; those of all workers must be
                                 // equal
    const char *numerics;        // numerics id required of all workers
    // This process does not compute under `numerics`, so the first worker gives the reference
    // results for a known trial.
    bool is_foreign;
    const struct msc_log *log;
    const struct msc_cancel *cancel;
    // Optional: names the files that workers read (msc_bridge_file). Called once, when the files
    // exist.
    enum msc_status (*name_files)(void *payload, struct msc_bridge *bridge);
    double (*now_s)(void *payload); // elapsed time; NULL: msc_clock_seconds
    void *payload;
};

// The first evaluation starts the workers. *out is owned by the caller.
enum msc_status msc_pool_open(struct msc_pool **out, const struct msc_pool_options *options);
void msc_pool_close(struct msc_pool *pool); // accepts NULL

const struct msc_env_elsewhere *msc_pool_elsewhere(struct msc_pool *pool);

// A trial of the last evaluation that was in flight when a worker died. Its outcome is FAILED with
// cause environment, without details.
struct msc_pool_death {
    int64_t id;
    bool was_alone;
    enum msc_worker_death death; // MSC_WORKER_DEATH_NONE: unknown cause
    int signal_number;
};
// Copies at most `capacity` deaths, returns their number, and clears the list.
size_t msc_pool_take_deaths(struct msc_pool *pool, struct msc_pool_death deaths[], size_t capacity);

// Numbers to show to the user.
struct msc_pool_figures {
    size_t n_up;      // workers that measure now
    size_t n_joined;  // workers that were ever ready
    size_t n_lost;    // workers lost so far
    size_t n_refused; // workers with other results, or that could not compute
    size_t n_retried; // parts that were sent again
};
struct msc_pool_figures msc_pool_figures(const struct msc_pool *pool);

// The costs of a round in addition to the measurements.
struct msc_pool_costs {
    double trial_s, worker_s; // the coordinator's time per trial and per worker
    double message_s;         // time to carry requests and answers
    double start_s;           // time until workers are ready; needed once
    size_t most;              // maximum number of workers; 0: no maximum
};
// The largest number of workers, each as fast as this machine, such that they measure for at least
// 70 % of the time. A round that takes `round_s` on one machine takes T(N) = d * round_s / N + h(N)
// on N workers. h is the sum of `costs`. d is the factor by which the work grows because split
// trials share less (d = 1 while N <= n_batches). Returns 0 if two workers would not be worthwhile,
// or if the rest of the search (`left_s`, +inf: no known end) would end no sooner. *worth_s is the
// time of a round with this number of workers, or with two workers if the result is 0.
// docs/cluster.md has the measurements.
size_t msc_pool_worth(double *worth_s, const struct msc_pool_costs *costs, double round_s,
                      double left_s, size_t n_trials, size_t n_batches);

#endif
