// Handles workers' answers: adds batches to trials and detects contradictions.
#include "base/shown.h"
#include "cluster/pool_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- One trial --------------------------------------------------------------------------------

struct one {
    struct msc_pool_job *job;
    size_t index;
};

static void finish_one(void *payload, size_t index) {
    const struct one *one = payload;
    const struct msc_evaluation *e = one->job->e;
    (void)index;
    if (e->finished) {
        e->finished(e->payload, one->index);
    }
}

static void close_trial(struct msc_pool_job *job, size_t i) {
    job->trials[i].is_done = true;
    job->n_open--;
}

// Computes a trial's outcome from its first `n_there` batches. `stop` NULL: the trial has no more
// batches.
static enum msc_status fold_trial(struct msc_pool *pool, size_t i, size_t n_there,
                                  const struct msc_pool_stop *stop) {
    struct msc_pool_job *job = pool->job;
    const struct msc_pool_trial *t = &job->trials[i];
    struct one one = {.job = job, .index = i};
    const struct msc_evaluation e = {.trials = &job->e->trials[i],
                                     .n = 1,
                                     .finished = finish_one,
                                     .payload = &one,
                                     .bounds = &job->e->bounds[i]};
    const struct msc_part_found found = {
        .n_batches = n_there,
        .cause = stop ? stop->cause : MSC_CAUSE_NONE,
        .reason = stop ? stop->reason : "",
        .time_us = t->time_us,
        .reuse_ratio = t->reuse_sum / (double)(job->end - job->first),
    };
    const struct msc_env_part part = {.first = job->first,
                                      .end = job->end,
                                      .terms = &job->terms[i],
                                      .kind = MSC_PART_FOLD,
                                      .found = &found};
    close_trial(job, i);
    return msc_env_fold(pool->options.env, &e, &part);
}

// True if the sum of the batches before this one exceeds the trial's bound.
static bool is_over(const struct msc_pool *pool, size_t i, size_t batch) {
    const struct msc_pool_job *job = pool->job;
    return msc_env_partial_loss(pool->options.env, job->terms[i], batch) > job->e->bounds[i];
}

// Has the rest of a trial measured without a bound. This is needed if a worker stopped at a bound
// that the sum of all batches does not exceed. That can happen because some losses are negative.
static enum msc_status ask_for_rest(struct msc_pool *pool, size_t i, size_t batch) {
    struct msc_pool_job *job = pool->job;
    struct msc_pool_shard shard = {.range = {batch, job->end - batch},
                                   .n_trials = 1,
                                   .is_unbounded = true,
                                   .holders[0].worker = MSC_POOL_NOBODY};
    job->trials[i].has_rest = true;
    while (job->order[shard.first_trial] != i) {
        shard.first_trial++;
    }
    job->stops[i * job->batches.n + batch] = NULL;
    return msc_pool__add_shard(pool, &shard);
}

// Ends a trial if the batches measured so far suffice.
static enum msc_status settle(struct msc_pool *pool, size_t i) {
    struct msc_pool_job *job = pool->job;
    const uint8_t *is_there = job->is_there + i * job->batches.n;
    size_t batch = job->first;
    while (batch < job->end && is_there[batch]) {
        batch++;
    }
    const struct msc_pool_stop *stop =
        batch < job->end ? job->stops[i * job->batches.n + batch] : NULL;
    if (job->trials[i].is_done || (batch < job->end && !stop)) {
        return MSC_OK;
    }
    if (stop && stop->cause == MSC_CAUSE_NONE && !is_over(pool, i, batch)) {
        return ask_for_rest(pool, i, batch);
    }
    return fold_trial(pool, i, batch - job->first, stop);
}

// ---- Answers ----------------------------------------------------------------------------------

static enum msc_status fail_answer(const struct msc_pool_worker *worker) {
    return MSC_FAIL(MSC_E_FORMAT, "worker %s: its answer does not match the request: %s",
                    worker->name, msc_status_message());
}

// `other`: the number of the worker that measured the trial first.
static enum msc_status fail_difference(struct msc_pool *pool, const struct msc_pool_worker *worker,
                                       int32_t other, int64_t trial) {
    const struct msc_pool_worker *first = msc_pool__find_worker(pool, other);
    int64_t since = first && first->since < worker->since ? first->since : worker->since;
    return MSC_FAIL(
        MSC_E_STATE,
        "workers %s and %s computed trial %lld differently: one of these machines cannot be "
        "trusted; their results since trial %lld may be wrong, check them with mscgym verify",
        first ? first->name : "(lost)", worker->name, (long long)trial, (long long)since);
}

// True if one worker stopped a trial early and another did not. A stop for lack of memory or a
// device does not count.
static bool is_contradiction(const struct msc_pool_job *job, size_t i,
                             const struct msc_pool_stop *stop) {
    return stop && stop->cause != MSC_CAUSE_ENVIRONMENT && !job->trials[i].has_rest;
}

static enum msc_status note_stop(int32_t *other, struct msc_pool_job *job, size_t i, size_t batch,
                                 int32_t worker, const struct msc_node_outcome *o) {
    size_t at = i * job->batches.n + batch;
    struct msc_pool_stop *stop = msc_arena_array(&job->arena, 1, sizeof *stop);
    MSC_TRY(MSC_ALLOCATED(stop));
    stop->cause = o->state == MSC_TRIAL_FAILED ? o->cause : MSC_CAUSE_NONE;
    stop->by = worker;
    msc_shown_copy(stop->reason, sizeof stop->reason, o->reason);
    if (job->is_there[at] && is_contradiction(job, i, stop)) {
        *other = job->by[at];
    }
    job->stops[at] = stop;
    return MSC_OK;
}

// Stores a trial's batches. If a batch differs from a result that is already there, sets *other to
// the worker that measured that result.
static enum msc_status take_batches(int32_t *other, struct msc_pool_job *job, size_t i,
                                    const struct msc_pool_shard *shard, int32_t worker,
                                    const struct msc_node_outcome *o) {
    size_t n_sums = job->batches.n_sums, nb = job->batches.n;
    struct msc_pool_trial *t = &job->trials[i];
    if (o->n_batches > shard->range.n) {
        return MSC_FAIL(MSC_E_FORMAT, "outcome: %zu batches, expected at most %zu", o->n_batches,
                        shard->range.n);
    }
    double *values = msc_arena_array(&job->arena, o->n_batches * n_sums + 1, sizeof *values);
    MSC_TRY(MSC_ALLOCATED(values));
    if (!msc_node_read_doubles(values, o->n_batches * n_sums, o->values)) {
        return MSC_FAIL(MSC_E_FORMAT, "outcome: values have the wrong length or format");
    }
    for (size_t k = 0; k < o->n_batches; k++) {
        size_t batch = shard->range.first + k;
        for (size_t sum = 0; sum < n_sums; sum++) {
            double *term = &job->terms[i][sum * nb + batch];
            const double *value = &values[k * n_sums + sum];
            if (job->is_there[i * nb + batch] && memcmp(term, value, sizeof *term) != 0) {
                *other = job->by[i * nb + batch];
            }
            *term = *value;
        }
        if (is_contradiction(job, i, job->stops[i * nb + batch])) {
            *other = job->stops[i * nb + batch]->by;
        }
        t->reuse_sum += job->is_there[i * nb + batch] ? 0 : o->reuse_ratio;
        job->is_there[i * nb + batch] = 1;
        job->by[i * nb + batch] = worker;
    }
    bool is_copy = shard->is_done || shard->is_check;
    t->time_us += is_copy ? 0 : o->time_us; // a copy's time does not count
    return o->n_batches < shard->range.n
               ? note_stop(other, job, i, shard->range.first + o->n_batches, worker, o)
               : MSC_OK;
}

// Compares metrics, except those measured outside the program.
static bool is_same(const struct msc_space *space, const double a[], const double b[]) {
    for (size_t i = 0; i < space->n_metrics; i++) {
        if (!space->metrics[i].is_measured && memcmp(&a[i], &b[i], sizeof a[i]) != 0) {
            return false;
        }
    }
    return true;
}

static enum msc_status take_whole(int32_t *other, struct msc_pool *pool, size_t i, int32_t worker,
                                  const struct msc_node_outcome *o) {
    struct msc_pool_job *job = pool->job;
    struct msc_outcome *outcome = &job->e->trials[i]->outcome;
    const struct msc_space *space = msc_env_space(pool->options.env);
    size_t n = space->n_metrics;
    double *values = msc_arena_array(&job->arena, n + 1, sizeof *values);
    MSC_TRY(MSC_ALLOCATED(values));
    if (!msc_node_read_doubles(values, n, o->values)) {
        return MSC_FAIL(MSC_E_FORMAT, "outcome: values have the wrong length or format");
    }
    struct msc_pool_trial *t = &job->trials[i];
    if (t->is_done) {
        bool is_one = o->state == MSC_TRIAL_COMPLETE, is_other = t->state == MSC_TRIAL_COMPLETE;
        bool is_own_fault = o->cause == MSC_CAUSE_ENVIRONMENT || t->cause == MSC_CAUSE_ENVIRONMENT;
        bool differs = is_one && is_other ? !is_same(space, t->metrics, values)
                                          : is_one != is_other && !is_own_fault;
        *other = differs ? t->by : *other;
        return MSC_OK;
    }
    t->by = worker;
    t->state = o->state;
    t->cause = o->cause;
    t->metrics = values;
    memcpy(outcome->metrics, values, n * sizeof *values);
    outcome->state = o->state;
    outcome->cause = o->cause;
    msc_shown_copy(outcome->reason, MSC_REASON_BYTES, o->reason);
    outcome->time_us = o->time_us;
    outcome->reuse_ratio = o->reuse_ratio;
    struct one one = {.job = job, .index = i};
    close_trial(job, i);
    finish_one(&one, 0);
    return MSC_OK;
}

static enum msc_status take_outcome(struct msc_pool *pool, const struct msc_pool_worker *worker,
                                    const struct msc_pool_shard *shard, size_t i,
                                    const cJSON *object) {
    struct msc_pool_job *job = pool->job;
    struct msc_node_outcome o;
    int64_t id;
    int32_t other = MSC_POOL_NOBODY;
    MSC_TRY(msc_node_read_outcome(&o, &id, object));
    if (id != job->e->trials[i]->id) {
        return MSC_FAIL(MSC_E_FORMAT, "outcome: trial %lld, expected %lld", (long long)id,
                        (long long)job->e->trials[i]->id);
    }
    MSC_TRY(job->end > 0 ? take_batches(&other, job, i, shard, worker->number, &o)
                         : take_whole(&other, pool, i, worker->number, &o));
    return other == MSC_POOL_NOBODY ? MSC_OK : fail_difference(pool, worker, other, id);
}

static struct msc_pool_shard *find_shard(struct msc_pool *pool, int64_t id) {
    struct msc_pool_job *job = pool->job;
    for (size_t i = 0; job && i < job->n_shards; i++) {
        if (job->shards[i].id == (uint64_t)id) {
            return &job->shards[i];
        }
    }
    return NULL;
}

static enum msc_status take_outcomes(struct msc_pool *pool, const struct msc_pool_worker *worker,
                                     const struct msc_pool_shard *shard, const cJSON *list) {
    struct msc_pool_job *job = pool->job;
    const cJSON *object = list->child;
    if ((size_t)cJSON_GetArraySize(list) != shard->n_trials) {
        return MSC_FAIL(MSC_E_FORMAT, "%d outcomes, expected one for each of %zu trials",
                        cJSON_GetArraySize(list), shard->n_trials);
    }
    for (size_t k = 0; k < shard->n_trials; k++, object = object->next) {
        MSC_TRY(take_outcome(pool, worker, shard, job->order[shard->first_trial + k], object));
    }
    return MSC_OK;
}

static enum msc_status settle_shard(struct msc_pool *pool, size_t first, size_t n) {
    struct msc_pool_job *job = pool->job;
    for (size_t k = first; job->end > 0 && k < first + n; k++) {
        MSC_TRY(settle(pool, job->order[k]));
    }
    return MSC_OK;
}

// Assigns the waiting checks of a shard that worker `by` answered. `by` NULL: the shard was given
// up, so its checks are dropped.
static void release_checks(struct msc_pool *pool, const struct msc_pool_shard *shard,
                           const struct msc_pool_worker *by) {
    struct msc_pool_job *job = pool->job;
    size_t of = (size_t)(shard - job->shards);
    for (size_t i = 0; i < job->n_shards; i++) {
        struct msc_pool_shard *check = &job->shards[i];
        if (!check->is_check || !check->is_waiting || check->of != of) {
            continue;
        }
        struct msc_pool_worker *checker = msc_pool__find_worker(pool, check->checker);
        check->is_waiting = false;
        check->is_done = !by || by->number == check->checker;
        check->checked = by ? by->number : check->checked;
        if (!check->is_done && checker && checker->state == MSC_POOL_READY) {
            msc_pool__give(&check->holders[0], checker);
        }
        pool->has_news = true;
    }
}

enum msc_status msc_pool__take_answer(struct msc_pool *pool, struct msc_pool_worker *worker,
                                      const cJSON *answer) {
    int64_t id;
    const cJSON *list;
    enum msc_status status = msc_json_get_i64(&id, answer, "id", "answer");
    if (status == MSC_OK) {
        status = msc_json_get_array(&list, answer, "outcomes", "answer");
    }
    if (status != MSC_OK) {
        return fail_answer(worker);
    }
    struct msc_pool_shard *shard = find_shard(pool, id);
    struct msc_pool_holder *holder = shard ? msc_pool__find_holder(shard, worker->number) : NULL;
    worker->n_open -= worker->n_open > 0;
    if (!holder) {
        worker->answered_s = pool->now_s;
        return MSC_OK; // the evaluation is over, or the part is now another worker's
    }
    status = take_outcomes(pool, worker, shard, list);
    if (status == MSC_E_FORMAT) {
        return fail_answer(worker);
    }
    MSC_TRY(status);
    if (!shard->is_done) {
        msc_pool__note_time(pool, worker, shard, holder);
        release_checks(pool, shard, worker);
    }
    shard->is_done = true;
    holder->worker = MSC_POOL_NOBODY;
    worker->answered_s = pool->now_s;
    return settle_shard(pool, shard->first_trial, shard->n_trials);
}

// ---- Deaths -----------------------------------------------------------------------------------

static enum msc_status note_death(struct msc_pool *pool, const struct msc_pool_death *death) {
    for (size_t i = 0; i < pool->n_deaths; i++) {
        if (pool->deaths[i].id == death->id) {
            return MSC_OK;
        }
    }
    MSC_TRY(
        msc_grow(&pool->deaths, &pool->deaths_capacity, pool->n_deaths + 1, sizeof *pool->deaths));
    pool->deaths[pool->n_deaths++] = *death;
    return MSC_OK;
}

enum msc_status msc_pool__give_up(struct msc_pool *pool, size_t index, bool was_alone,
                                  enum msc_worker_death death, int signal_number) {
    struct msc_pool_job *job = pool->job;
    struct msc_pool_shard *shard = &job->shards[index];
    shard->is_done = true;
    release_checks(pool, shard, NULL);
    for (size_t k = 0; k < shard->n_trials; k++) {
        size_t i = job->order[shard->first_trial + k];
        struct one one = {.job = job, .index = i};
        struct msc_trial *trial = job->e->trials[i];
        const struct msc_pool_death own = {.id = trial->id,
                                           .was_alone = was_alone,
                                           .death = death,
                                           .signal_number = signal_number};
        if (job->trials[i].is_done) {
            continue;
        }
        MSC_TRY(note_death(pool, &own));
        msc_outcome_fail(&trial->outcome, MSC_CAUSE_ENVIRONMENT,
                         "a worker died while it evaluated this trial");
        close_trial(job, i);
        finish_one(&one, 0);
    }
    return MSC_OK;
}
