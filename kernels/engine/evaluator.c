#include "kernels/engine/evaluator_internal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/machine.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

// ---- Creation ---------------------------------------------------------------------------------

static enum msc_status create_schedule(struct msc_evaluator *ev) {
    const struct msc_schedule_options options = {.backend = ev->options.backend,
                                                 .n_threads = ev->options.n_threads,
                                                 .dataset = ev->dataset,
                                                 .n_plans = ev->n_plans,
                                                 .plans = ev->plans,
                                                 .plan_of_batch = ev->plan_of_batch,
                                                 .cache = &ev->cache,
                                                 .remainder_store = &ev->remainder_store,
                                                 .limits = &ev->limits,
                                                 .cancel = ev->options.cancel,
                                                 .timer = ev->options.timer};
    return msc_schedule_create(&ev->schedule, &options);
}

static uint64_t weights_bytes(const struct msc_graph *g) {
    uint64_t n_bytes = 0;
    for (int32_t i = 0; i < msc_graph_n_tensors(g); i++) {
        const struct msc_array *data = msc_graph_tensor(g, i)->data;
        n_bytes += data ? msc_array_n_bytes(data) : 0;
    }
    return n_bytes;
}

static enum msc_status evaluator_init(struct msc_evaluator *ev, const int32_t wanted[],
                                      size_t n_wanted) {
    if (msc_dataset_n_batches(ev->dataset) == 0) {
        return MSC_FAIL(MSC_E_INVALID, "the dataset has no samples");
    }
    if (ev->options.n_threads < 1 ||
        ev->options.n_threads > ev->options.backend->options.n_threads) {
        return MSC_FAIL(MSC_E_INVALID,
                        "evaluator: %d threads were requested, but the backend has only %d",
                        ev->options.n_threads, ev->options.backend->options.n_threads);
    }
    const struct msc_site_scheme scheme = {.target = ev->options.target};
    MSC_TRY(msc_sites_find(&ev->sites, ev->graph, &scheme));
    MSC_TRY(msc_cache_init(&ev->cache, ev->options.backend, ev->options.memory_bytes));
    ev->limits.cancel = ev->options.cancel;
    ev->limits.memory_bytes = ev->options.host_bytes;
    if (ev->limits.memory_bytes == 0) {
        ev->limits.memory_bytes = msc_machine_limit_bytes();
    }
    ev->is_large = weights_bytes(ev->graph) > ev->options.memory_bytes / 2;
    MSC_TRY(msc_evaluator__create_plans(ev, wanted, n_wanted));
    return create_schedule(ev);
}

enum msc_status msc_evaluator_create(struct msc_evaluator **out, const struct msc_graph *graph,
                                     const struct msc_dataset *dataset, const int32_t wanted[],
                                     size_t n_wanted, const struct msc_evaluator_options *options) {
    struct msc_evaluator *ev = msc_alloc_zero(1, sizeof(*ev));
    MSC_TRY(MSC_ALLOCATED(ev));
    ev->options = *options;
    ev->graph = graph;
    ev->dataset = dataset;
    msc_remainder_store_init(&ev->remainder_store);
    enum msc_status status = evaluator_init(ev, wanted, n_wanted);
    if (status != MSC_OK) {
        msc_evaluator_destroy(ev);
        return status;
    }
    *out = ev;
    return MSC_OK;
}

void msc_evaluator_destroy(struct msc_evaluator *ev) {
    if (!ev) {
        return;
    }
    msc_schedule_destroy(ev->schedule);
    msc_cache_finish(&ev->cache);
    msc_remainder_store_finish(&ev->remainder_store);
    msc_evaluator__destroy_plans(ev);
    msc_sites_finish(&ev->sites);
    msc_free(ev);
}

// ---- Running ----------------------------------------------------------------------------------

static uint64_t less(uint64_t a, uint64_t b) {
    return a > b ? a - b : 0;
}

// Bytes of the backend's memory that are in use but not held by the cache: the backend's own memory
// and, if the backend uses host memory, the other memory of the process.
static uint64_t other_bytes(const struct msc_evaluator *ev,
                            const struct msc_backend_memory *memory) {
    uint64_t held = ev->cache.pool.held_bytes;
    if (ev->options.backend->def->memory_is_host) {
        return less(msc_machine_resident_bytes(), held);
    }
    uint64_t host = memory->is_host ? less(msc_machine_resident_bytes(), memory->touched_bytes) : 0;
    return host + less(memory->used_bytes, held) + memory->besides_bytes;
}

// The backend's memory that remainders may take, in bytes: every thread may run one at the same
// time.
static uint64_t remainder_bytes(const struct msc_evaluator *ev,
                                const struct msc_backend_memory *memory) {
    return memory->is_host ? ev->remainder_store.most_bytes * (uint64_t)ev->options.n_threads : 0;
}

// Sets the limit of the cache. A sixteenth of the memory is left free for allocations of this
// process, or of others on the device, until the next call. Querying the memory takes longer than
// running a small network, so it is not repeated for every batch.
static void set_limit(struct msc_evaluator *ev) {
    double now_s = msc_clock_seconds();
    if (now_s < ev->next_limit_s) {
        return;
    }
    ev->next_limit_s = now_s + 0.01;
    const struct msc_backend_memory memory = msc_backend_get_memory(ev->options.backend);
    uint64_t all = ev->options.memory_bytes - ev->options.memory_bytes / 16;
    uint64_t limit = less(all, other_bytes(ev, &memory) + remainder_bytes(ev, &memory));
    if (memory.room_bytes != UINT64_MAX) {
        uint64_t most = ev->cache.pool.held_bytes + memory.room_bytes;
        most = less(most - most / 16, memory.besides_bytes);
        limit = most < limit ? most : limit;
    }
    ev->remainder_store.limit_bytes = ev->options.memory_bytes / 16;
    ev->cache.pool.limit_bytes = limit;
}

// Makes the next set_limit query the memory again; until then, nothing is cached.
static void set_limit_to_nothing(struct msc_evaluator *ev) {
    ev->remainder_store.limit_bytes = 0;
    ev->cache.pool.limit_bytes = 0;
    ev->next_limit_s = 0;
}

// One run: its batches and the size of its windows.
struct windows {
    struct msc_evaluator *ev;
    size_t first_batch, end_batch;
    bool keeps_nothing; // a window is one batch, and unused memory is freed
};

static struct windows all_windows(struct msc_evaluator *ev) {
    return (struct windows){.ev = ev, .end_batch = msc_dataset_n_batches(ev->dataset)};
}

// Chooses the number of batches of a window: about 32 independent nodes per thread, so that no
// thread is idle for long at the end, and enough for max_calls calls of each step. More batches
// would only hold more memory. If memory was short, a window is one batch.
static size_t open_window(void *payload, size_t n_trials) {
    const struct windows *windows = payload;
    struct msc_evaluator *ev = windows->ev;
    size_t enough = 32 * (size_t)ev->options.n_threads;
    size_t calls = (size_t)ev->options.backend->def->max_calls;
    enough = enough < calls ? calls : enough;
    if (windows->keeps_nothing) {
        set_limit_to_nothing(ev);
        return 1;
    }
    set_limit(ev);
    return ev->cache.pool.was_short || ev->is_large ? 1 : (enough + n_trials - 1) / n_trials;
}

static enum msc_status run_job(struct msc_evaluator *ev, const struct msc_job *job) {
    MSC_TRY(msc_schedule_run(ev->schedule, job));
    msc_cache_pass(&ev->cache, job->flags & MSC_EVAL_KEEP ? MSC_CACHE_LIFE / 8 : job->n_trials);
    return MSC_OK;
}

// Retries one trial on its own with an empty cache. A second failure is final.
static enum msc_status run_alone(struct msc_evaluator *ev, struct msc_job job, size_t trial) {
    job.trials += trial;
    job.first_trial += trial;
    job.n_trials = 1;
    job.is_last_attempt = true;
    msc_evaluator_drop_cache(ev);
    enum msc_status status = run_job(ev, &job);
    if (status != MSC_E_NOMEM) {
        return status;
    }
    job.trials->status = status;
    snprintf(job.trials->message, sizeof(job.trials->message), "%s", msc_status_message());
    if (job.sink->end) {
        job.sink->end(job.sink->payload, job.first_trial);
    }
    return MSC_OK;
}

static enum msc_status check_edits(const struct msc_evaluator *ev,
                                   const struct msc_edit *const edits[]) {
    for (int32_t i = 0; edits && i < ev->sites.n_slots; i++) {
        MSC_TRY(msc_edit_check(edits[i], ev->graph, &ev->sites.slots[i]));
    }
    return MSC_OK;
}

// Runs a job, then retries each trial that ran out of memory. A retried trial runs on its own and
// with an empty cache, so it can use the memory that other trials and the cache took.
static enum msc_status run_group(struct msc_evaluator *ev, const struct msc_job *job) {
    enum msc_status status = run_job(ev, job);
    if (status != MSC_OK && status != MSC_E_NOMEM) {
        return status;
    }
    for (size_t t = 0; t < job->n_trials; t++) {
        // If there was not enough memory to plan a window, no trial has ended: all are retried.
        if (status == MSC_E_NOMEM || job->trials[t].status == MSC_E_NOMEM) {
            MSC_TRY(run_alone(ev, *job, t));
        }
    }
    return MSC_OK;
}

// Runs the trials together or, if the weights do not fit in memory, one by one: packed weights stay
// in memory until the last trial that shares them has used them.
static enum msc_status run_trials(struct windows *windows, struct msc_eval_trial trials[], size_t n,
                                  const struct msc_sink *sink, unsigned flags) {
    struct msc_evaluator *ev = windows->ev;
    size_t n_together = ev->is_large ? 1 : n;
    for (size_t first = 0; first < n; first += n_together) {
        const struct msc_job job = {.trials = trials + first,
                                    .first_trial = first,
                                    .n_trials = n_together,
                                    .first_batch = windows->first_batch,
                                    .end_batch = windows->end_batch,
                                    .sink = sink,
                                    .flags = flags,
                                    .window = open_window,
                                    .payload = windows};
        MSC_TRY(run_group(ev, &job));
    }
    return MSC_OK;
}

static enum msc_status check_and_run(struct windows *windows, struct msc_eval_trial trials[],
                                     size_t n, const struct msc_sink *sink, unsigned flags) {
    for (size_t t = 0; t < n; t++) {
        MSC_TRY(check_edits(windows->ev, trials[t].edits));
    }
    return n > 0 ? run_trials(windows, trials, n, sink, flags) : MSC_OK;
}

enum msc_status msc_evaluator_run(struct msc_evaluator *ev, struct msc_eval_trial trials[],
                                  size_t n, const struct msc_sink *sink, unsigned flags) {
    struct windows windows = all_windows(ev);
    return check_and_run(&windows, trials, n, sink, flags);
}

enum msc_status msc_evaluator_run_batches(struct msc_evaluator *ev, struct msc_eval_trial trials[],
                                          size_t n, size_t first, size_t end,
                                          const struct msc_sink *sink) {
    struct windows windows = {.ev = ev, .first_batch = first, .end_batch = end};
    assert(first < end && end <= msc_dataset_n_batches(ev->dataset));
    return check_and_run(&windows, trials, n, sink, 0);
}

const struct msc_sites *msc_evaluator_sites(const struct msc_evaluator *ev) {
    return &ev->sites;
}

const struct msc_plan *msc_evaluator_plan(const struct msc_evaluator *ev, size_t batch) {
    return ev->plans[ev->plan_of_batch[batch]];
}

int msc_evaluator_n_threads(const struct msc_evaluator *ev) {
    return ev->options.n_threads;
}

const struct msc_cancel *msc_evaluator_cancel(const struct msc_evaluator *ev) {
    return ev->options.cancel;
}

const struct msc_dataset *msc_evaluator_dataset(const struct msc_evaluator *ev) {
    return ev->dataset;
}

void msc_evaluator_get_stats(const struct msc_evaluator *ev, struct msc_evaluator_stats *out) {
    struct msc_schedule_stats stats = msc_schedule_stats(ev->schedule);
    *out = (struct msc_evaluator_stats){.steps_run = stats.steps_run,
                                        .steps_reused = stats.steps_reused,
                                        .bytes_held = ev->cache.pool.held_bytes,
                                        .bytes_peak = ev->cache.pool.peak_bytes,
                                        .remainder_weights_made = ev->remainder_store.n_made,
                                        .macs_run = stats.macs_run,
                                        .macs_asked = stats.macs_asked};
}

// Returns the first failure among the trials.
static enum msc_status first_failure_of(const struct msc_eval_trial trials[], size_t n) {
    for (size_t t = 0; t < n; t++) {
        if (trials[t].status != MSC_OK) {
            return msc_status_restore(trials[t].status, trials[t].message);
        }
    }
    return MSC_OK;
}

static enum msc_status ignore_batch(void *payload, size_t trial, size_t batch,
                                    const struct msc_view values[]) {
    (void)payload;
    (void)trial;
    (void)batch;
    (void)values;
    return MSC_OK;
}

enum msc_status msc_evaluator_measure_memory(struct msc_evaluator *ev,
                                             const struct msc_edit *const edits[], uint64_t *out) {
    static const struct msc_sink none = {.batch = ignore_batch};
    size_t n = (size_t)ev->options.n_threads;
    struct windows windows = all_windows(ev);
    bool was_short = ev->cache.pool.was_short;
    windows.keeps_nothing = true;
    MSC_TRY(check_edits(ev, edits));
    struct msc_eval_trial *trials = msc_alloc_zero(n, sizeof(trials[0]));
    MSC_TRY(MSC_ALLOCATED(trials));
    for (size_t t = 0; t < n; t++) {
        trials[t] = (struct msc_eval_trial){.edits = edits, .noise_seed = t + 1};
    }
    msc_evaluator_drop_cache(ev);
    ev->cache.pinned_peak = 0;
    enum msc_status status = run_trials(&windows, trials, n, &none, 0);
    ev->cache.pool.was_short = was_short; // setting the limit to 0 has changed was_short
    status = status == MSC_OK ? first_failure_of(trials, n) : status;
    const struct msc_backend_memory memory = msc_backend_get_memory(ev->options.backend);
    *out = other_bytes(ev, &memory) + ev->cache.pinned_peak + remainder_bytes(ev, &memory);
    msc_free(trials);
    return status;
}

void msc_evaluator_drop_cache(struct msc_evaluator *ev) {
    msc_cache_drop(&ev->cache);
    msc_remainder_store_drop(&ev->remainder_store);
    msc_machine_give_back_memory();
}
