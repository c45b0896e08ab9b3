#include "base/clock.h"
#include "cluster/pool_internal.h"

#include <string.h>
#include <unistd.h>

#define POLL_S 0.1
// Once one worker is ready, the first evaluation waits this long for workers that are starting.
#define GATHER_S 20.0

static enum msc_status pool_measure(void *payload, const struct msc_evaluation *e,
                                    const struct msc_env_part *part);

enum msc_status msc_pool_open(struct msc_pool **out, const struct msc_pool_options *options) {
    struct msc_hash identity;
    struct msc_pool *pool = msc_alloc_zero(1, sizeof *pool);
    if (!pool) {
        msc_bridge_close(options->bridge);
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    pool->options = *options;
    pool->secret = msc_clock_ns() ^ (uint64_t)getpid() << 40;
    pool->elsewhere = (struct msc_env_elsewhere){.measure = pool_measure, .payload = pool};
    enum msc_status status = msc_env_identity(&identity, options->env);
    if (status == MSC_OK) {
        msc_hash_format(pool->identity, identity);
    }
    if (status == MSC_OK && !options->is_foreign) {
        status = msc_node_canary(pool->canary, options->env);
    }
    if (status != MSC_OK) {
        msc_pool_close(pool);
        return status;
    }
    *out = pool;
    return MSC_OK;
}

void msc_pool_close(struct msc_pool *pool) {
    if (!pool) {
        return;
    }
    if (pool->figures.n_joined > 0) {
        msc_log(pool->options.log, MSC_LOG_INFO, "workers: %zu joined, %zu lost, %zu refused",
                pool->figures.n_joined, pool->figures.n_lost, pool->figures.n_refused);
    }
    msc_bridge_close(pool->options.bridge);
    msc_free(pool->workers);
    msc_free(pool->deaths);
    msc_str_finish(&pool->message);
    msc_free(pool);
}

const struct msc_env_elsewhere *msc_pool_elsewhere(struct msc_pool *pool) {
    return &pool->elsewhere;
}

size_t msc_pool_take_deaths(struct msc_pool *pool, struct msc_pool_death deaths[],
                            size_t capacity) {
    size_t n = pool->n_deaths < capacity ? pool->n_deaths : capacity;
    if (n > 0) {
        memcpy(deaths, pool->deaths, n * sizeof *deaths);
    }
    pool->n_deaths = 0;
    return n;
}

struct msc_pool_figures msc_pool_figures(const struct msc_pool *pool) {
    struct msc_pool_figures figures = pool->figures;
    figures.n_up = msc_pool__n_ready(pool);
    return figures;
}

// ---- One evaluation ---------------------------------------------------------------------------

// Checks for a request to stop. Measurements in flight are finished first, unless the stop is
// immediate.
static enum msc_status check_stop(const struct msc_pool *pool, bool is_measuring) {
    return msc_cancel_reached(pool->options.cancel, is_measuring ? 2 : 1)
               ? MSC_FAIL(MSC_E_CANCELLED, "stopped on request")
               : MSC_OK;
}

static enum msc_status make_terms(struct msc_pool_job *job) {
    const struct msc_env_part *part = job->part;
    for (size_t i = 0; i < job->e->n; i++) {
        job->terms[i] = part && part->terms
                            ? part->terms[i]
                            : msc_arena_array(&job->arena, job->batches.n_terms, sizeof(double));
        MSC_TRY(MSC_ALLOCATED(job->terms[i]));
    }
    return MSC_OK;
}

enum msc_status msc_pool__open_job(struct msc_pool_job *job, const struct msc_env *env,
                                   const struct msc_evaluation *e,
                                   const struct msc_env_part *part) {
    size_t n = e->n;
    *job =
        (struct msc_pool_job){.e = e, .part = part, .batches = msc_env_batches(env), .n_open = n};
    if (job->batches.n_sums > 0) {
        job->first = part ? part->first : 0;
        job->end = part ? part->end : job->batches.n;
    } else if (part) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "this record has sums by sample, not by batch, so its race can only "
                        "continue on one machine: resume it without --cluster");
    }
    job->order = msc_arena_array(&job->arena, n, sizeof *job->order);
    job->trials = msc_arena_array(&job->arena, n, sizeof *job->trials);
    job->terms = msc_arena_array(&job->arena, n, sizeof *job->terms);
    job->is_there = msc_arena_array(&job->arena, n * job->batches.n + 1, 1);
    job->by = msc_arena_array(&job->arena, n * job->batches.n + 1, sizeof *job->by);
    job->stops = msc_arena_array(&job->arena, n * job->batches.n + 1, sizeof *job->stops);
    MSC_TRY(MSC_ALLOCATED(job->order && job->trials && job->terms && job->is_there && job->by &&
                          job->stops));
    return job->end > 0 ? make_terms(job) : MSC_OK;
}

static size_t n_asked(const struct msc_pool *pool) {
    return pool->n_workers - msc_pool__n_ready(pool);
}

// Waits for workers: before the first evaluation for all workers that are starting, later for one.
static enum msc_status gather(struct msc_pool *pool) {
    MSC_TRY(msc_pool__pump(pool, 0.0)); // handles lines that arrived since the last evaluation
    double nobody_s = pool->now_s;      // last time without a ready worker
    for (;;) {
        size_t n_ready = msc_pool__n_ready(pool);
        nobody_s = n_ready > 0 ? nobody_s : pool->now_s;
        if (n_ready > 0 &&
            (pool->is_begun || n_asked(pool) == 0 || pool->now_s - nobody_s > GATHER_S)) {
            pool->is_begun = true;
            msc_pool__say_who_joined(pool);
            return MSC_OK;
        }
        MSC_TRY(check_stop(pool, false));
        MSC_TRY(msc_pool__pump(pool, POLL_S));
    }
}

// True if all trials have their results and no assigned check is unanswered.
static bool is_over(const struct msc_pool *pool) {
    const struct msc_pool_job *job = pool->job;
    for (size_t i = 0; job->n_open == 0 && i < job->n_shards; i++) {
        const struct msc_pool_shard *shard = &job->shards[i];
        if (shard->is_check && !shard->is_done && shard->holders[0].worker != MSC_POOL_NOBODY) {
            return false;
        }
    }
    return job->n_open == 0;
}

static enum msc_status run_job(struct msc_pool *pool) {
    MSC_TRY(gather(pool));
    MSC_TRY(msc_pool__plan(pool));
    while (!is_over(pool)) {
        MSC_TRY(check_stop(pool, msc_pool__n_ready(pool) > 0));
        MSC_TRY(msc_pool__send(pool));
        MSC_TRY(msc_pool__pump(pool, POLL_S));
    }
    return MSC_OK;
}

static enum msc_status pool_measure(void *payload, const struct msc_evaluation *e,
                                    const struct msc_env_part *part) {
    struct msc_pool *pool = payload;
    struct msc_pool_job job;
    pool->n_deaths = 0;
    enum msc_status status = msc_pool__open_job(&job, pool->options.env, e, part);
    pool->job = &job;
    if (status == MSC_OK) {
        status = run_job(pool);
    }
    pool->job = NULL;
    msc_free(job.shards);
    msc_arena_finish(&job.arena);
    return status;
}
