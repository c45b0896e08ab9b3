// A schedule: the work of a job as a graph of nodes, and the threads that run the nodes.
//
// A node is an expression (kernels/engine/numbering.h) on one batch (packed weights: on all
// batches), or a call of the sink for one (trial, batch): with all live-out values, or with one
// slot value. Nodes are made backwards from the values that the sink wants, so the inputs of a
// cached result need no nodes. Threads take ready nodes last in, first out. So a batch passes
// through the network while its data is in the processor's cache, and its memory is freed early.
//
// A step's weights are packed only when the step waits for nothing else. They are then packed at
// once, because the inputs of the step occupy memory until it runs.
//
// If there are many trials, a result that only one of them uses is not kept: later calls are
// unlikely to need it.
//
// A job processes its batches in windows, each just large enough to keep all threads busy. Nodes
// pin cached results only for the current window. Trials that have ended skip later windows.
//
// If the backend can, it quantises a step's output while the step runs: the nodes of these
// quantisations are fused into the step. If nothing else reads the float32 output, it is not
// stored, unless there are few trials.
//
// On some backends, several calls of a step cost less together than one by one (max_calls). Then
// the order differs: the earliest step that has ready nodes runs next, for all its ready nodes
// together. Calls of the sink come last, so that the host waits for the device once per window.
// Only one thread at a time submits steps, because the host submits them faster than the device
// runs them. Meanwhile more nodes of the next step may become ready.
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

// All pointers are borrowed until the schedule is destroyed.
struct msc_schedule_options {
    struct msc_backend *backend;
    int n_threads;
    const struct msc_dataset *dataset;
    int n_plans;
    struct msc_plan *const *plans; // [n_plans]
    const int32_t *plan_of_batch;  // [batches of the dataset] index of a plan
    struct msc_cache *cache;
    struct msc_remainder_store *remainder_store;
    const struct msc_reference_limits *limits; // for joints that run subgraphs and for remainders
    const struct msc_cancel *cancel;           // may be NULL
    const struct msc_step_timer *timer;        // may be NULL
};

// The input of one call. All pointers are borrowed for the call.
struct msc_job {
    struct msc_eval_trial *trials; // [n_trials]; the call fills in their results
    size_t n_trials;
    size_t first_trial;            // the sink's index of the first trial; the others follow
    size_t first_batch, end_batch; // batches first_batch … end_batch - 1
    const struct msc_sink *sink;
    unsigned flags;       // MSC_EVAL_…
    bool is_last_attempt; // true: a trial that runs out of memory has failed; false: it is retried
                          // later
    // Called before each window: returns the maximum number of batches in it, at least 1. May
    // change the limit of the cache.
    size_t (*window)(void *payload, size_t n_trials);
    void *payload;
};

// *out is owned by the caller.
enum msc_status msc_schedule_create(struct msc_schedule **out,
                                    const struct msc_schedule_options *options);
void msc_schedule_destroy(struct msc_schedule *s); // accepts NULL

// Evaluates the trials over the job's batches. Returns MSC_OK even if single trials failed: each
// trial has its own status. After MSC_E_CANCELLED (the call was stopped) or MSC_E_LOST (the device
// was lost), `end` was called only for finished trials. MSC_E_NOMEM: not enough memory to plan a
// window; `end` was not called. The schedule keeps its own memory from call to call.
enum msc_status msc_schedule_run(struct msc_schedule *s, const struct msc_job *job);

// See msc_evaluator_stats.
struct msc_schedule_stats {
    uint64_t steps_run, steps_reused;
    double macs_run, macs_asked;
};
struct msc_schedule_stats msc_schedule_stats(const struct msc_schedule *s);

#endif
