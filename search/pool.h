// The coordinator's side of a search on several machines: splits what is to be measured among workers,
// and puts together what they answer. Agent, record, exact costs, bounds and judging stay where they
// are; so does the order in which sums are added up: the record is the one that a single machine writes.
//
//     MSC_TRY(msc_pool_open(&pool, &options));       // options.bridge is the pool's from now on
//     msc_env_set_elsewhere(env, msc_pool_elsewhere(pool));
//     MSC_TRY(msc_env_evaluate(env, &goal, &evaluation));
//     n = msc_pool_take_deaths(pool, deaths, MSC_POOL_MAX_DEATHS);
//     msc_pool_close(pool);
//
// Environments with batches (msc_env_batches) are split by these first: work that trials share is of one
// batch, so nothing is computed twice. A batch stays with its worker as long as that lives (rendezvous
// hashing: Thaler and Ravishankar, 1998). Where there are more workers than batches, and in races, trials
// are split, too: in the order of their choices, so that neighbours share work, cut where it is equal.
//
// Workers come and go. What a lost one had is sent to another, what takes three times as long as it
// should is sent to a second one, and the first answer counts. Pieces of parts are measured twice
// on purpose, of a worker that is new of each: where two workers differ in a bit, the search stops. Only a crash that a worker's own
// parent saw, or a third loss, is told of a trial (msc_pool_take_deaths); who asked has it run alone next.
#ifndef MSC_SEARCH_POOL_H
#define MSC_SEARCH_POOL_H

#include "env/env.h"
#include "search/bridge.h"
#include "search/supervise.h"

struct msc_pool;

struct msc_pool_options {
    struct msc_env *env;       // borrowed
    struct msc_bridge *bridge; // owned by the pool, also on failure
    const char *init; // members of the request init, after method and protocol: "\"threads\":2"
    const char *program, *build; // of this program, which must be that of all workers
    const char *numerics;        // of all workers
    // Nothing that is measured here is as under these: what a trial that is known comes to is what the first
    // worker says.
    bool is_foreign;
    const struct msc_log *log;
    const struct msc_cancel *cancel;
    // Optional: names the files that workers read (msc_bridge_file). Called once, when they are there.
    enum msc_status (*name_files)(void *payload, struct msc_bridge *bridge);
    double (*now_s)(void *payload); // seconds that pass; NULL: msc_clock_seconds
    void *payload;
};

// Workers are started by the first evaluation. *out is owned by the caller.
enum msc_status msc_pool_open(struct msc_pool **out, const struct msc_pool_options *options);
void msc_pool_close(struct msc_pool *pool); // accepts NULL

const struct msc_env_elsewhere *msc_pool_elsewhere(struct msc_pool *pool);

// A trial that was in flight where a worker died, in the last evaluation: its outcome is FAILED, cause
// environment, and says no more.
struct msc_pool_death {
    int64_t id;
    bool was_alone;
    enum msc_worker_death death; // MSC_WORKER_DEATH_NONE: nobody saw how
    int signal_number;
};
// Copies at most `capacity` and forgets all. Returns how many.
size_t msc_pool_take_deaths(struct msc_pool *pool, struct msc_pool_death deaths[], size_t capacity);

// For people.
struct msc_pool_figures {
    size_t n_up;      // workers that measure
    size_t n_joined;  // that ever did
    size_t n_lost;    // that were, so far
    size_t n_refused; // that computed something else, or could not
    size_t n_retried; // parts that were sent again
};
struct msc_pool_figures msc_pool_figures(const struct msc_pool *pool);

// What a round costs beside what workers measure.
struct msc_pool_costs {
    double trial_s, worker_s; // of the coordinator, for each trial, and for each worker
    double message_s;         // to carry what is asked there, and the answers back
    double start_s;           // until workers are ready, once
    size_t most;              // workers; 0: any number
};
// How many workers are worth having, each as fast as this machine: as many as measure for 70 % of their time and
// more, by a model of a round that takes `round_s` on one: T(N) = d * round_s / N + h(N), h being these costs, d
// what sharing of work is lost by splitting trials (nothing as long as there are as many batches). 0: none, two
// would not, or what is left (`left_s`, +inf: no end is known) would be there no sooner. *worth_s: such a round;
// where there are none, that of two. The figures are in docs/cluster.md.
size_t msc_pool_worth(double *worth_s, const struct msc_pool_costs *costs, double round_s,
                      double left_s, size_t n_trials, size_t n_batches);

#endif
