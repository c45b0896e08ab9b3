// A schedule: the work of a job as a graph of nodes, and the threads that walk it.
//
// A node is an expression (kernels/engine/numbering.h) on one batch (packed weights: on all), or
// it feeds the sink what one (trial, batch) gave: live-out values together, slot values one by one.
// Nodes are made backwards from what the sink wants, so what only leads to cached results is never
// touched. Threads take ready nodes last in, first out, which follows a batch down the network
// while its data is in cache and frees it soonest.
//
// Weights are packed when a step waits for them alone: otherwise steps that have their inputs would
// hold them until the weights' turn comes.
//
// Of what only one among many trials wants nothing is kept: the next call will hardly ask for it.
//
// A job goes through its batches in windows of some batches, no more than keep all threads busy:
// only what a window finds in the cache is held for it, and trials that turn out to be over take no
// part in the next.
//
// Where the backend can, a step's output is quantised while the step runs: the nodes of its
// quantisations are fused into it. When nobody else reads the output it is not stored, unless the
// trials are few.
//
// Where a backend runs several calls of a step at less cost than one by one (max_calls), it is the
// other way about: the earliest step with ready nodes is next, with all of them, and sinks come
// last, so that the host waits for the device once in a window. One thread at a time hands over
// steps, which takes the host less than it takes the device to run them: what it makes ready goes
// with what was ready already.
//
//     struct msc_schedule *schedule;
//     MSC_TRY(msc_schedule_create(&schedule, &options));
//     const struct msc_job job = {
//         .trials = trials, .n_trials = 2, .sink = &sink, .window = choose};
//     MSC_TRY(msc_schedule_run(schedule, &job));
//     msc_schedule_destroy(schedule);
#ifndef MSC_KERNELS_ENGINE_SCHEDULE_H
#define MSC_KERNELS_ENGINE_SCHEDULE_H

#include "graph/reference/reference.h"
#include "kernels/engine/cache.h"
#include "kernels/engine/evaluator.h"
#include "kernels/engine/remainder_store.h"

struct msc_schedule;

// All is borrowed until the schedule is destroyed.
struct msc_schedule_options {
    struct msc_backend *backend;
    int n_threads;
    const struct msc_dataset *dataset;
    int n_plans;
    struct msc_plan *const *plans; // [n_plans]
    const int32_t *plan_of_batch;  // [batches of the dataset]
    struct msc_cache *cache;
    struct msc_remainder_store *remainder_store;
    const struct msc_reference_limits *limits; // for bodies, and for remainders
    const struct msc_cancel *cancel;           // may be NULL
    const struct msc_step_timer *timer;        // may be NULL
};

// What one call computes. All is borrowed for it.
struct msc_job {
    struct msc_eval_trial *trials; // [n_trials] their results are filled in
    size_t n_trials;
    size_t first_trial;            // what the sink knows the first by; the others follow
    size_t first_batch, end_batch; // it goes through these alone
    const struct msc_sink *sink;
    unsigned flags;       // MSC_EVAL_…
    bool is_last_attempt; // `end` is called for trials out of memory, too; else they come once more
    // Asked before each window: how many batches it takes at most, 1 at least. It may change how
    // much the cache holds.
    size_t (*window)(void *payload, size_t n_trials);
    void *payload;
};

// Finds groups of batches by their plans. *out is owned by the caller.
enum msc_status msc_schedule_create(struct msc_schedule **out,
                                    const struct msc_schedule_options *options);
void msc_schedule_destroy(struct msc_schedule *s); // accepts NULL

// Evaluates the trials over the job's batches. MSC_OK also when trials failed one by one: their status
// tells. MSC_E_CANCELLED when stopped and MSC_E_LOST when the device was lost: `end` was called for
// those that were over; MSC_E_NOMEM where there was none to plan a window with: no `end` was called.
// Memory of the schedule's own is kept from call to call.
enum msc_status msc_schedule_run(struct msc_schedule *s, const struct msc_job *job);

// As in msc_evaluator_stats.
struct msc_schedule_stats {
    uint64_t steps_run, steps_reused;
    double macs_run, macs_asked;
};
struct msc_schedule_stats msc_schedule_stats(const struct msc_schedule *s);

#endif
