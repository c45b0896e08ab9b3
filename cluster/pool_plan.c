// Splits trials into parts and assigns them to workers.
#include "cluster/pool_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// A worker's first ALL_CHECKED parts are all checked. After that the share falls with the number of
// its parts, down to LEAST_SHARE. A check measures one of a part's CHECKED_PIECES pieces again.
#define ALL_CHECKED 64.0
#define LEAST_SHARE 0.01
#define CHECKED_PIECES 8

// ---- Trials in order --------------------------------------------------------------------------

struct sorted {
    const uint32_t *choices;
    size_t index, n_tasks;
};

static int compare_choices(const void *a, const void *b) {
    const struct sorted *x = a, *y = b;
    for (size_t t = 0; t < x->n_tasks; t++) {
        if (x->choices[t] != y->choices[t]) {
            return x->choices[t] < y->choices[t] ? -1 : 1;
        }
    }
    return x->index < y->index ? -1 : 1;
}

static enum msc_status sort_trials(struct msc_pool_job *job, size_t n_tasks) {
    size_t n = job->e->n;
    struct sorted *sorted = msc_arena_array(&job->arena, n, sizeof *sorted);
    MSC_TRY(MSC_ALLOCATED(sorted));
    for (size_t i = 0; i < n; i++) {
        sorted[i] = (struct sorted){job->e->trials[i]->proposal.choices, i, n_tasks};
    }
    qsort(sorted, n, sizeof *sorted, compare_choices);
    for (size_t i = 0; i < n; i++) {
        job->order[i] = sorted[i].index;
    }
    return MSC_OK;
}

// The cost of a trial that follows the previous trial in `order`: the number of tasks from the
// first task whose choice differs, plus 1.
static size_t cost_of(const struct msc_pool_job *job, size_t place, size_t n_tasks) {
    const uint32_t *own = job->e->trials[job->order[place]]->proposal.choices;
    size_t t = 0;
    if (place > 0) {
        const uint32_t *before = job->e->trials[job->order[place - 1]]->proposal.choices;
        while (t < n_tasks && own[t] == before[t]) {
            t++;
        }
    }
    return n_tasks - t + 1;
}

// The index at which the k-th of n pieces of equal cost begins.
static size_t cut_at(const struct msc_pool_job *job, size_t n_tasks, size_t k, size_t n_pieces) {
    double total = 0, sum = 0;
    for (size_t i = 0; i < job->e->n; i++) {
        total += (double)cost_of(job, i, n_tasks);
    }
    for (size_t i = 0; i < job->e->n; i++) {
        if (sum >= total * (double)k / (double)n_pieces) {
            return i;
        }
        sum += (double)cost_of(job, i, n_tasks);
    }
    return job->e->n;
}

// ---- Shards -----------------------------------------------------------------------------------

enum msc_status msc_pool__add_shard(struct msc_pool *pool, const struct msc_pool_shard *shard) {
    struct msc_pool_job *job = pool->job;
    MSC_TRY(msc_grow(&job->shards, &job->capacity, job->n_shards + 1, sizeof *job->shards));
    struct msc_pool_shard *own = &job->shards[job->n_shards++];
    *own = *shard;
    own->id = pool->next_shard++;
    own->holders[1].worker = MSC_POOL_NOBODY;
    struct msc_pool_worker *worker = msc_pool__find_worker(pool, own->holders[0].worker);
    if (worker) {
        msc_pool__give(&own->holders[0], worker);
    }
    pool->has_news = true;
    return MSC_OK;
}

// The affinity of a worker to a piece of work: a hash of the two.
static uint64_t affinity(const struct msc_pool_worker *worker, size_t batch, size_t piece) {
    struct msc_hash h = msc_hash_bytes("msc_pool", 8);
    h = msc_hash_add_u64(h, (uint64_t)worker->number);
    h = msc_hash_add_u64(h, batch);
    return msc_hash_add_u64(h, piece).low;
}

// Chooses the worker for a piece of work: the highest affinity among workers with fewer than `most`
// pieces.
static int32_t choose_worker(struct msc_pool *pool, size_t loads[], size_t most, size_t batch,
                             size_t piece) {
    size_t best = SIZE_MAX;
    uint64_t best_affinity = 0;
    for (size_t w = 0; w < pool->n_workers; w++) {
        const struct msc_pool_worker *worker = &pool->workers[w];
        uint64_t own = affinity(worker, batch, piece);
        if (worker->state == MSC_POOL_READY && loads[w] < most &&
            (best == SIZE_MAX || own > best_affinity)) {
            best = w;
            best_affinity = own;
        }
    }
    if (best == SIZE_MAX) {
        return MSC_POOL_NOBODY;
    }
    loads[best]++;
    return pool->workers[best].number;
}

static enum msc_status plan_by_trials(struct msc_pool *pool, size_t loads[], size_t n_tasks) {
    struct msc_pool_job *job = pool->job;
    size_t n_ready = msc_pool__n_ready(pool);
    size_t n_pieces = n_ready < job->e->n ? n_ready : job->e->n;
    for (size_t k = 0; k < n_pieces; k++) {
        struct msc_pool_shard shard = {.range = {job->first, job->end - job->first}};
        shard.first_trial = cut_at(job, n_tasks, k, n_pieces);
        shard.n_trials = cut_at(job, n_tasks, k + 1, n_pieces) - shard.first_trial;
        if (shard.n_trials > 0) {
            shard.holders[0].worker = choose_worker(pool, loads, 1, 0, k);
            MSC_TRY(msc_pool__add_shard(pool, &shard));
        }
    }
    return MSC_OK;
}

// Adds a batch, or a piece of its trials. Extends the previous part if that part has the same
// trials and worker and ends just before this batch.
static enum msc_status add_batch(struct msc_pool *pool, const struct msc_pool_shard *shard) {
    struct msc_pool_job *job = pool->job;
    struct msc_pool_shard *last = job->n_shards > 0 ? &job->shards[job->n_shards - 1] : NULL;
    if (last && last->holders[0].worker == shard->holders[0].worker &&
        last->first_trial == shard->first_trial && last->n_trials == shard->n_trials &&
        last->range.first + last->range.n == shard->range.first) {
        last->range.n++;
        return MSC_OK;
    }
    return msc_pool__add_shard(pool, shard);
}

static enum msc_status plan_by_batches(struct msc_pool *pool, size_t loads[], size_t n_tasks) {
    struct msc_pool_job *job = pool->job;
    size_t n_batches = job->end - job->first, n_ready = msc_pool__n_ready(pool);
    size_t n_pieces = n_ready > n_batches ? n_ready / n_batches : 1;
    size_t n_more = n_ready > n_batches ? n_ready % n_batches : 0;
    size_t most = (n_batches + n_ready - 1) / n_ready;
    for (size_t b = 0; b < n_batches; b++) {
        size_t n_own = n_pieces + (b < n_more);
        n_own = n_own < job->e->n ? n_own : job->e->n;
        for (size_t k = 0; k < n_own; k++) {
            struct msc_pool_shard shard = {.range = {job->first + b, 1}};
            shard.first_trial = cut_at(job, n_tasks, k, n_own);
            shard.n_trials = cut_at(job, n_tasks, k + 1, n_own) - shard.first_trial;
            if (shard.n_trials > 0) {
                shard.holders[0].worker = choose_worker(pool, loads, most, job->first + b, k);
                MSC_TRY(add_batch(pool, &shard));
            }
        }
    }
    return MSC_OK;
}

double msc_pool__check_share(uint64_t n_parts) {
    double share = ALL_CHECKED / (double)n_parts;
    return share > 1.0 ? 1.0 : share < LEAST_SHARE ? LEAST_SHARE : share;
}

// Chooses the checker of a shard, also by affinity, so that every worker checks others and is
// checked.
static struct msc_pool_worker *choose_checker(struct msc_pool *pool,
                                              const struct msc_pool_shard *shard) {
    struct msc_pool_worker *best = NULL;
    uint64_t best_affinity = 0;
    for (size_t w = 0; w < pool->n_workers; w++) {
        struct msc_pool_worker *worker = &pool->workers[w];
        uint64_t own = affinity(worker, shard->id, SIZE_MAX);
        if (worker->state == MSC_POOL_READY && worker->number != shard->holders[0].worker &&
            (!best || own > best_affinity)) {
            best = worker;
            best_affinity = own;
        }
    }
    return best;
}

// Restricts a check to a random piece of its part's trials.
static void choose_piece(struct msc_pool_shard *check, uint64_t chance) {
    size_t n_piece = (check->n_trials + CHECKED_PIECES - 1) / CHECKED_PIECES;
    size_t n_pieces = (check->n_trials + n_piece - 1) / n_piece;
    size_t skipped = (size_t)(chance % n_pieces) * n_piece;
    size_t n_left = check->n_trials - skipped;
    check->first_trial += skipped;
    check->n_trials = n_piece < n_left ? n_piece : n_left;
}

// Chooses random parts to be checked. Workers do not know which parts are checked.
static enum msc_status choose_checks(struct msc_pool *pool) {
    struct msc_pool_job *job = pool->job;
    size_t n = job->n_shards;
    for (size_t i = 0; i < n; i++) {
        struct msc_pool_shard check = job->shards[i];
        struct msc_pool_worker *worker = msc_pool__find_worker(pool, check.holders[0].worker);
        struct msc_pool_worker *checker = choose_checker(pool, &check);
        struct msc_hash chance = msc_hash_add_u64(msc_hash_bytes("check", 5), pool->secret);
        chance = msc_hash_add_u64(chance, check.id);
        if (!worker || !checker ||
            (double)(chance.low >> 11) * 0x1p-53 >= msc_pool__check_share(++worker->n_parts)) {
            continue;
        }
        check.is_check = check.is_waiting = true;
        check.of = i;
        check.checked = worker->number;
        check.checker = checker->number;
        check.holders[0].worker = MSC_POOL_NOBODY;
        choose_piece(&check, chance.high);
        MSC_TRY(msc_pool__add_shard(pool, &check));
    }
    return MSC_OK;
}

enum msc_status msc_pool__plan(struct msc_pool *pool) {
    struct msc_pool_job *job = pool->job;
    size_t n_tasks = msc_env_space(pool->options.env)->n_tasks;
    size_t *loads = msc_arena_array(&job->arena, pool->n_workers + 1, sizeof *loads);
    MSC_TRY(MSC_ALLOCATED(loads));
    MSC_TRY(sort_trials(job, n_tasks));
    // Races have few batches, so only their trials are split. A trial that runs alone must not
    // crash more than one worker.
    bool is_by_trials = job->end == 0 || job->part || job->e->n == 1;
    MSC_TRY(is_by_trials ? plan_by_trials(pool, loads, n_tasks)
                         : plan_by_batches(pool, loads, n_tasks));
    return job->e->n > 1 ? choose_checks(pool) : MSC_OK;
}

// ---- The worthwhile number of workers
// ------------------------------------------------------------

#define SPLIT_LOSS 1.18
#define LEAST_EFFICIENCY 0.7
#define MOST_WORKERS 100000

static double round_of(const struct msc_pool_costs *costs, double round_s, size_t n_trials,
                       size_t n_batches, size_t n) {
    double lost = n <= n_batches ? 1.0 : SPLIT_LOSS;
    return lost * round_s / (double)n + costs->trial_s * (double)n_trials +
           costs->worker_s * (double)n + costs->message_s;
}

size_t msc_pool_worth(double *worth_s, const struct msc_pool_costs *costs, double round_s,
                      double left_s, size_t n_trials, size_t n_batches) {
    size_t most = (n_batches > 0 ? n_batches : 1) * n_trials;
    size_t n = 1;
    most = most < MOST_WORKERS ? most : MOST_WORKERS;
    most = costs->most > 0 && costs->most < most ? costs->most : most;
    while (n < most) {
        double next_s = round_of(costs, round_s, n_trials, n_batches, n + 1);
        if (round_s / ((double)(n + 1) * next_s) < LEAST_EFFICIENCY) {
            break;
        }
        n++;
    }
    *worth_s = round_of(costs, round_s, n_trials, n_batches, n > 1 ? n : 2);
    bool is_sooner = isinf(left_s) || costs->start_s + left_s * *worth_s / round_s < left_s;
    return n > 1 && is_sooner ? n : 0;
}
