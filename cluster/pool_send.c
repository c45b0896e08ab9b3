// Sends requests to workers.
#include "cluster/pool_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SILENT_S 10.0 // a worker without a beat for this long has its parts copied to another
#define LATE_RATIO 3.0
#define LATE_LEAST_S 1.0
#define COPY_EVERY_S 0.1

// ---- Messages ---------------------------------------------------------------------------------

static enum msc_status name_files(struct msc_pool *pool) {
    const struct msc_pool_options *o = &pool->options;
    bool is_due = o->name_files && !pool->has_named_files;
    pool->has_named_files = true;
    return is_due ? o->name_files(o->payload, o->bridge) : MSC_OK;
}

enum msc_status msc_pool__send_init(struct msc_pool *pool, struct msc_pool_worker *worker) {
    struct msc_str *m = &pool->message;
    MSC_TRY(name_files(pool));
    msc_str_clear(m);
    msc_str_printf(m, "{\"method\":\"init\",\"protocol\":%d%s%s}\n", MSC_NODE_PROTOCOL,
                   pool->options.init[0] ? "," : "", pool->options.init);
    MSC_TRY(msc_str_status(m));
    worker->state = MSC_POOL_ASKED;
    worker->answered_s = pool->now_s;
    worker->n_open = 0;
    return msc_bridge_send(pool->options.bridge, worker->number, m->data, m->length);
}

// A part that is assigned but not sent.
struct due {
    struct msc_pool_shard *shard;
    struct msc_pool_holder *holder;
};

// Sends n parts for the same worker, with the same trials, in one message.
static enum msc_status send_parts(struct msc_pool *pool, const struct due due[], size_t n) {
    struct msc_pool_job *job = pool->job;
    const struct msc_pool_shard *first = due[0].shard;
    struct msc_arena arena = {0};
    struct msc_trial **trials = msc_arena_array(&arena, first->n_trials, sizeof *trials);
    double *bounds = msc_arena_array(&arena, first->n_trials, sizeof *bounds);
    uint64_t *ids = msc_arena_array(&arena, n, sizeof *ids);
    struct msc_node_range *ranges = msc_arena_array(&arena, n, sizeof *ranges);
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(MSC_ALLOCATED(trials && bounds && ids && ranges));
    for (size_t k = 0; k < first->n_trials; k++) {
        size_t i = job->order[first->first_trial + k];
        trials[k] = job->e->trials[i];
        bounds[k] = first->is_unbounded ? INFINITY : job->e->bounds[i];
    }
    for (size_t k = 0; k < n; k++) {
        ids[k] = due[k].shard->id;
        ranges[k] = due[k].shard->range;
        due[k].holder->is_sent = true;
        due[k].holder->sent_s = pool->now_s;
    }
    msc_str_clear(&pool->message);
    msc_node_write_evaluate(&pool->message, msc_env_space(pool->options.env), ids, ranges, n,
                            trials, bounds, first->n_trials);
    MSC_TRY_OUT(msc_str_status(&pool->message));
    status = msc_bridge_send(pool->options.bridge, due[0].holder->worker, pool->message.data,
                             pool->message.length);
out:
    msc_arena_finish(&arena);
    return status;
}

// ---- Parts ------------------------------------------------------------------------------------

void msc_pool__give(struct msc_pool_holder *holder, struct msc_pool_worker *worker) {
    *holder = (struct msc_pool_holder){.worker = worker->number};
    worker->n_open++;
}

// The worker with the fewest parts, among those that do not have this part.
static struct msc_pool_worker *least_busy(struct msc_pool *pool, struct msc_pool_shard *shard) {
    struct msc_pool_worker *best = NULL;
    for (size_t i = 0; i < pool->n_workers; i++) {
        struct msc_pool_worker *worker = &pool->workers[i];
        bool is_own = shard->is_check && worker->number == shard->checked;
        if (worker->state == MSC_POOL_READY && (!best || worker->n_open < best->n_open) &&
            !is_own && !msc_pool__find_holder(shard, worker->number)) {
            best = worker;
        }
    }
    return best;
}

static void give_away(struct msc_pool *pool) {
    struct msc_pool_job *job = pool->job;
    for (size_t i = 0; i < job->n_shards; i++) {
        struct msc_pool_shard *shard = &job->shards[i];
        if (!shard->is_done && !shard->is_waiting && shard->holders[0].worker == MSC_POOL_NOBODY) {
            struct msc_pool_worker *worker = least_busy(pool, shard);
            if (worker) {
                msc_pool__give(&shard->holders[0], worker);
            }
        }
    }
}

static int compare_due(const void *a, const void *b) {
    const struct due *x = a, *y = b;
    if (x->holder->worker != y->holder->worker) {
        return x->holder->worker < y->holder->worker ? -1 : 1;
    }
    return x->holder < y->holder ? -1 : 1;
}

static bool is_same_message(const struct due *x, const struct due *y) {
    const struct msc_pool_shard *a = x->shard, *b = y->shard;
    return x->holder->worker == y->holder->worker && a->first_trial == b->first_trial &&
           a->n_trials == b->n_trials && a->is_unbounded == b->is_unbounded;
}

static size_t list_due(struct due out[], struct msc_pool_job *job) {
    size_t n = 0;
    for (size_t i = 0; i < job->n_shards; i++) {
        struct msc_pool_shard *shard = &job->shards[i];
        for (size_t k = 0; k < 2 && !shard->is_done; k++) {
            struct msc_pool_holder *holder = &shard->holders[k];
            if (holder->worker != MSC_POOL_NOBODY && !holder->is_sent) {
                out[n++] = (struct due){shard, holder};
            }
        }
    }
    qsort(out, n, sizeof *out, compare_due);
    return n;
}

static enum msc_status send_due(struct msc_pool *pool) {
    struct msc_pool_job *job = pool->job;
    struct due *due = msc_alloc_zero(2 * job->n_shards + 1, sizeof *due);
    MSC_TRY(MSC_ALLOCATED(due));
    enum msc_status status = MSC_OK;
    size_t n = list_due(due, job), n_own;
    for (size_t first = 0; status == MSC_OK && first < n; first += n_own) {
        n_own = 1;
        while (first + n_own < n && is_same_message(&due[first], &due[first + n_own])) {
            n_own++;
        }
        status = send_parts(pool, due + first, n_own);
    }
    msc_free(due);
    return status;
}

// ---- Copies -----------------------------------------------------------------------------------

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

// Median time of one trial on one batch; NaN: unknown.
static double median_unit(const struct msc_pool *pool) {
    double sorted[sizeof pool->unit_s / sizeof pool->unit_s[0]];
    size_t most = sizeof sorted / sizeof sorted[0];
    size_t n = pool->n_units < most ? pool->n_units : most;
    memcpy(sorted, pool->unit_s, n * sizeof sorted[0]);
    qsort(sorted, n, sizeof sorted[0], compare_doubles);
    return n > 0 ? sorted[n / 2] : NAN;
}

static double units_of(const struct msc_pool_shard *shard) {
    return (double)(shard->n_trials * (shard->range.n > 0 ? shard->range.n : 1));
}

// Seconds since the worker could start on this part: since the part was sent, or since the worker's
// last answer if that is later.
static double waited_s(const struct msc_pool *pool, const struct msc_pool_worker *worker,
                       const struct msc_pool_holder *holder) {
    double begin_s = worker->answered_s > holder->sent_s ? worker->answered_s : holder->sent_s;
    return pool->now_s - begin_s;
}

void msc_pool__note_time(struct msc_pool *pool, const struct msc_pool_worker *worker,
                         const struct msc_pool_shard *shard, const struct msc_pool_holder *holder) {
    size_t n = sizeof pool->unit_s / sizeof pool->unit_s[0];
    pool->unit_s[pool->n_units++ % n] = waited_s(pool, worker, holder) / units_of(shard);
}

// Is the part late? `unit_s` is the median time of one trial on one batch; if it is unknown, only a
// part of a silent worker is late.
static bool is_late(struct msc_pool *pool, const struct msc_pool_shard *shard, double unit_s) {
    const struct msc_pool_holder *holder = &shard->holders[0];
    const struct msc_pool_worker *worker = msc_pool__find_worker(pool, holder->worker);
    double most_s = LATE_RATIO * unit_s * units_of(shard) + LATE_LEAST_S;
    return worker && holder->is_sent &&
           (pool->now_s - worker->heard_s > SILENT_S || waited_s(pool, worker, holder) > most_s);
}

// Assigns copies of late parts to idle workers.
static enum msc_status copy_late(struct msc_pool *pool) {
    struct msc_pool_job *job = pool->job;
    double unit_s = median_unit(pool);
    for (size_t i = 0; i < job->n_shards; i++) {
        struct msc_pool_shard *shard = &job->shards[i];
        struct msc_pool_holder *copy = &shard->holders[1];
        if (shard->is_done || copy->worker != MSC_POOL_NOBODY || !is_late(pool, shard, unit_s)) {
            continue;
        }
        struct msc_pool_worker *idle = least_busy(pool, shard);
        if (idle && idle->n_open == 0) {
            const struct due due = {shard, copy};
            msc_pool__give(copy, idle);
            pool->figures.n_retried++;
            MSC_TRY(send_parts(pool, &due, 1));
        }
    }
    return MSC_OK;
}

enum msc_status msc_pool__send(struct msc_pool *pool) {
    if (pool->has_news) {
        give_away(pool);
        MSC_TRY(send_due(pool));
        pool->has_news = false;
    }
    if (pool->now_s - pool->copied_s < COPY_EVERY_S) {
        return MSC_OK;
    }
    pool->copied_s = pool->now_s;
    return copy_late(pool);
}
