#include "kernels/engine/evaluator_internal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/machine.h"
#include "kernels/engine/remainder.h"

#include <stdio.h>
#include <string.h>

// ---- Creation ---------------------------------------------------------------------------------

static enum msc_status init(struct msc_evaluator *ev, const int32_t wanted[], size_t n_wanted) {
    struct msc_schedule *s = &ev->schedule;
    if (msc_dataset_n_batches(ev->dataset) == 0) {
        return MSC_FAIL(MSC_E_INVALID, "the dataset has no samples");
    }
    if (ev->options.n_threads < 1 ||
        ev->options.n_threads > ev->options.backend->options.n_threads) {
        return MSC_FAIL(MSC_E_INVALID, "%d threads to evaluate with, the backend has %d",
                        ev->options.n_threads, ev->options.backend->options.n_threads);
    }
    MSC_TRY(msc_sites_find(&ev->sites, ev->graph, false));
    MSC_TRY(msc_cache_init(&ev->cache, ev->options.backend, ev->options.memory_bytes));
    s->backend = ev->options.backend;
    s->dataset = ev->dataset;
    s->cache = &ev->cache;
    s->cancel = ev->options.cancel;
    ev->limits.cancel = ev->options.cancel;
    ev->limits.memory_bytes = ev->options.host_bytes;
    if (ev->limits.memory_bytes == 0) {
        ev->limits.memory_bytes = msc_machine_limit_bytes();
    }
    s->limits = &ev->limits;
    s->n_threads = ev->options.n_threads;
    return msc_evaluator__create_plans(ev, wanted, n_wanted);
}

enum msc_status msc_evaluator_create(struct msc_evaluator **out, const struct msc_graph *graph,
                                     const struct msc_dataset *dataset, const int32_t wanted[],
                                     size_t n_wanted, const struct msc_evaluator_options *options) {
    struct msc_evaluator *ev = msc_alloc_zero(1, sizeof(*ev));
    if (!ev) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for an evaluator");
    }
    ev->options = *options;
    ev->graph = graph;
    ev->dataset = dataset;
    pthread_mutex_init(&ev->schedule.lock, NULL);
    pthread_mutex_init(&ev->schedule.end_lock, NULL);
    pthread_cond_init(&ev->schedule.wake, NULL);
    msc_remainder_store_init(&ev->remainder_store);
    enum msc_status status = init(ev, wanted, n_wanted);
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
    struct msc_schedule *s = &ev->schedule;
    msc_cache_finish(&ev->cache);
    msc_remainder_store_finish(&ev->remainder_store);
    msc_evaluator__destroy_plans(ev);
    msc_free(s->nodes);
    msc_free(s->edges);
    msc_free(s->ready);
    msc_free(s->roots);
    msc_free(s->stack);
    msc_free(s->failures);
    msc_free(s->progress);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->end_lock);
    pthread_cond_destroy(&s->wake);
    msc_sites_finish(&ev->sites);
    msc_free(ev);
}

// ---- Running ----------------------------------------------------------------------------------

// What the targets need of the plan: backwards over its steps.
static enum msc_status count_asked(const struct msc_schedule *s, struct msc_group *g) {
    const struct msc_plan *plan = g->numbering.plan;
    bool *is_needed = msc_alloc_zero((size_t)plan->n_values + 1, sizeof(bool));
    if (!is_needed) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for an evaluation");
    }
    for (int32_t i = 0; i < s->n_targets; i++) {
        int32_t value = msc_schedule_target(s, plan, i);
        is_needed[value == MSC_NO_ID ? plan->n_values : value] = true;
    }
    g->n_steps_asked = 0;
    g->macs_asked = 0;
    for (int32_t i = plan->n_steps - 1; i >= 0; i--) {
        const struct msc_step *step = &plan->steps[i];
        bool is_asked = false;
        for (int32_t k = 0; k < step->n_outputs; k++) {
            is_asked = is_asked || is_needed[step->outputs[k]];
        }
        for (int32_t k = 0; is_asked && k < step->n_inputs; k++) {
            is_needed[step->inputs[k]] = true;
        }
        g->n_steps_asked += is_asked && step->kind != MSC_STEP_ALIAS;
        g->macs_asked += is_asked ? step->macs : 0;
    }
    msc_free(is_needed);
    return MSC_OK;
}

// The value numbers of every trial under one plan, and which of them the sink reads.
static enum msc_status number_trials(struct msc_schedule *s, struct msc_group *g) {
    const struct msc_plan *plan = g->numbering.plan;
    msc_numbering_clear(&g->numbering);
    MSC_TRY(count_asked(s, g));
    MSC_TRY(msc_grow(&g->targets, &g->targets_capacity, s->n_trials * (size_t)s->n_targets + 1,
                     sizeof(g->targets[0])));
    for (size_t t = 0; t < s->n_trials; t++) {
        struct msc_value_number *targets = &g->targets[t * (size_t)s->n_targets];
        MSC_TRY(
            msc_numbering_add_trial(&g->numbering, s->trials[t].edits, s->trials[t].noise_seed));
        for (int32_t i = 0; i < s->n_targets; i++) {
            int32_t value = msc_schedule_target(s, plan, i);
            targets[i] = value == MSC_NO_ID ? (struct msc_value_number){MSC_NO_ID, 0}
                                            : g->numbering.values[value];
        }
    }
    return MSC_OK;
}

// Memory that the process holds beside the cache.
static uint64_t other_bytes(const struct msc_evaluator *ev) {
    uint64_t held = ev->cache.pool.held_bytes;
    uint64_t resident = ev->options.backend->def->memory_is_host ? msc_machine_resident_bytes() : 0;
    return resident > held ? resident - held : 0;
}

// What remainders take of that memory: every thread may run one.
static uint64_t remainder_bytes(const struct msc_evaluator *ev) {
    bool counts = ev->options.backend->def->memory_is_host;
    return counts ? ev->remainder_store.most_bytes * (uint64_t)ev->options.n_threads : 0;
}

// A sixteenth is left for what the process comes to hold meanwhile. Asking takes longer than a
// small network does, so it is not done for every batch.
static void set_limit(struct msc_evaluator *ev) {
    double now_s = msc_clock_seconds();
    if (now_s < ev->next_limit_s) {
        return;
    }
    ev->next_limit_s = now_s + 0.01;
    uint64_t all = ev->options.memory_bytes - ev->options.memory_bytes / 16;
    uint64_t other = other_bytes(ev) + remainder_bytes(ev);
    ev->remainder_store.limit_bytes = ev->options.memory_bytes / 16;
    ev->cache.pool.limit_bytes = all > other ? all - other : 0;
}

// The batches that n trials go through together. Some thirty independent pieces of work for each
// thread leave none idle for long at the end, and a step should have all the calls it can be run
// with; more would only hold more memory.
static int32_t choose_window(const struct msc_evaluator *ev, size_t n) {
    size_t enough = 32 * (size_t)ev->options.n_threads;
    size_t calls = (size_t)ev->options.backend->def->max_calls;
    enough = enough < calls ? calls : enough;
    return ev->is_tight ? 1 : (int32_t)((enough + n - 1) / n);
}

// The most live-out values of any plan.
static int32_t most_live_out(const struct msc_evaluator *ev) {
    int32_t most = 0;
    for (int i = 0; i < ev->n_plans; i++) {
        most = ev->plans[i]->n_live_out > most ? ev->plans[i]->n_live_out : most;
    }
    return most;
}

// The most slots of any plan's graph.
static int32_t most_slots(const struct msc_evaluator *ev) {
    int32_t most = 0;
    for (int i = 0; i < ev->n_plans; i++) {
        int32_t n = ev->plans[i]->sites.n_slots;
        most = n > most ? n : most;
    }
    return most;
}

static bool needs_remainder(const struct msc_evaluator *ev, const struct msc_sink *sink) {
    for (int i = 0; i < ev->n_plans; i++) {
        if (msc_remainder_is_asked(ev->plans[i], sink)) {
            return true;
        }
    }
    return false;
}

static void begin_trials(const struct msc_sink *sink, size_t n) {
    for (size_t t = 0; sink->begin && t < n; t++) {
        sink->begin(sink->payload, t);
    }
}

static enum msc_status run_together(struct msc_evaluator *ev, struct msc_eval_trial trials[],
                                    size_t n, const struct msc_sink *sink, unsigned flags,
                                    bool is_last_attempt) {
    struct msc_schedule *s = &ev->schedule;
    struct msc_remainder remainder = {.evaluator = ev,
                                      .trials = trials,
                                      .sink = sink,
                                      .store = &ev->remainder_store,
                                      .limits = &ev->limits};
    const struct msc_sink with_remainder = msc_remainder_sink(&remainder);
    begin_trials(sink, n);
    s->is_last_attempt = is_last_attempt;
    s->is_fresh = (flags & MSC_EVAL_FRESH) != 0;
    s->trials = trials;
    s->n_trials = n;
    s->sink = needs_remainder(ev, sink) ? &with_remainder : sink;
    s->n_wanted = most_live_out(ev);
    s->n_targets = s->n_wanted + (sink->slot ? most_slots(ev) : 0);
    for (int i = 0; i < s->n_groups; i++) {
        MSC_TRY(number_trials(s, &s->groups[i]));
    }
    MSC_TRY(msc_schedule_begin(s));
    int32_t n_batches = (int32_t)msc_dataset_n_batches(ev->dataset);
    for (int32_t b = 0; b < n_batches; b = s->end_batch) {
        int32_t end = b + choose_window(ev, n);
        s->first_batch = b;
        s->end_batch = end < n_batches ? end : n_batches;
        set_limit(ev);
        MSC_TRY(msc_schedule_build(s));
        MSC_TRY(msc_schedule_run(s));
        ev->is_tight = ev->is_tight || ev->cache.pool.was_short;
    }
    msc_schedule_end(s);
    msc_cache_pass(&ev->cache, n);
    return MSC_OK;
}

// Passes the one trial of a retry on under its own number.
struct retry {
    const struct msc_sink *sink;
    size_t trial;
};

static void retry_begin(void *payload, size_t trial) {
    const struct retry *r = payload;
    (void)trial;
    if (r->sink->begin) {
        r->sink->begin(r->sink->payload, r->trial);
    }
}

static enum msc_status retry_batch(void *payload, size_t trial, size_t batch,
                                   const struct msc_view values[]) {
    const struct retry *r = payload;
    (void)trial;
    return r->sink->batch ? r->sink->batch(r->sink->payload, r->trial, batch, values) : MSC_OK;
}

static enum msc_status retry_slot(void *payload, size_t trial, size_t batch, int32_t part,
                                  int32_t slot, const struct msc_view *value) {
    const struct retry *r = payload;
    (void)trial;
    return r->sink->slot(r->sink->payload, r->trial, batch, part, slot, value);
}

static void retry_end(void *payload, size_t trial) {
    const struct retry *r = payload;
    (void)trial;
    if (r->sink->end) {
        r->sink->end(r->sink->payload, r->trial);
    }
}

static bool retry_is_over(void *payload, size_t trial) {
    const struct retry *r = payload;
    (void)trial;
    return r->sink->is_over && r->sink->is_over(r->sink->payload, r->trial);
}

// One trial alone, with nothing in the cache. Its second failure is the last.
static enum msc_status run_alone(struct msc_evaluator *ev, struct msc_eval_trial *trial,
                                 size_t index, const struct msc_sink *sink, unsigned flags) {
    struct retry r = {sink, index};
    struct msc_sink alone = {.begin = retry_begin,
                             .batch = retry_batch,
                             .end = retry_end,
                             .is_over = retry_is_over,
                             .payload = &r};
    alone.slot = sink->slot ? retry_slot : NULL;
    msc_evaluator_drop_cache(ev);
    enum msc_status status = run_together(ev, trial, 1, &alone, flags, true);
    if (status != MSC_E_NOMEM) {
        return status;
    }
    trial->status = status;
    snprintf(trial->message, sizeof(trial->message), "%s", msc_status_message());
    retry_end(&r, 0);
    return MSC_OK;
}

enum msc_status msc_evaluator_run(struct msc_evaluator *ev, struct msc_eval_trial trials[],
                                  size_t n, const struct msc_sink *sink, unsigned flags) {
    if (n == 0) {
        return MSC_OK;
    }
    enum msc_status status = run_together(ev, trials, n, sink, flags, false);
    if (status != MSC_OK && status != MSC_E_NOMEM) {
        return status;
    }
    for (size_t t = 0; t < n; t++) {
        // Where there was no memory to plan a window, none has ended.
        if (status == MSC_E_NOMEM || trials[t].status == MSC_E_NOMEM) {
            MSC_TRY(run_alone(ev, &trials[t], t, sink, flags));
        }
    }
    return MSC_OK;
}

const struct msc_sites *msc_evaluator_sites(const struct msc_evaluator *ev) {
    return &ev->sites;
}

const struct msc_plan *msc_evaluator_plan(const struct msc_evaluator *ev, size_t batch) {
    return ev->plans[ev->plan_of_batch[batch]];
}

const struct msc_dataset *msc_evaluator_dataset(const struct msc_evaluator *ev) {
    return ev->dataset;
}

void msc_evaluator_get_stats(const struct msc_evaluator *ev, struct msc_evaluator_stats *out) {
    const struct msc_schedule *s = &ev->schedule;
    *out = (struct msc_evaluator_stats){.steps_run = s->steps_run,
                                        .steps_reused = s->steps_reused,
                                        .bytes_held = ev->cache.pool.held_bytes,
                                        .bytes_peak = ev->cache.pool.peak_bytes,
                                        .remainder_weights_made = ev->remainder_store.n_made,
                                        .macs_run = s->macs_run,
                                        .macs_asked = s->macs_asked};
}

// The first failure of the trials as a status.
static enum msc_status status_of(const struct msc_eval_trial trials[], size_t n) {
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
    uint64_t memory_bytes = ev->options.memory_bytes;
    bool is_tight = ev->is_tight;
    struct msc_eval_trial *trials = msc_alloc_zero(n, sizeof(trials[0]));
    if (!trials) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for an evaluation");
    }
    for (size_t t = 0; t < n; t++) {
        trials[t] = (struct msc_eval_trial){.edits = edits, .noise_seed = t + 1};
    }
    msc_evaluator_drop_cache(ev);
    ev->cache.pinned_peak = 0;
    ev->options.memory_bytes = 0;
    ev->next_limit_s = 0;
    ev->is_tight = true;
    enum msc_status status = msc_evaluator_run(ev, trials, n, &none, 0);
    ev->options.memory_bytes = memory_bytes;
    ev->next_limit_s = 0;
    ev->is_tight = is_tight;
    status = status == MSC_OK ? status_of(trials, n) : status;
    *out = other_bytes(ev) + ev->cache.pinned_peak + remainder_bytes(ev);
    msc_free(trials);
    return status;
}

void msc_evaluator_drop_cache(struct msc_evaluator *ev) {
    msc_cache_drop(&ev->cache);
    msc_remainder_store_drop(&ev->remainder_store);
}
