// Workers: who is there, what they are sent, and what happens to them.
#include "search/pool_internal.h"

#include "base/clock.h"
#include "base/shown.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SILENT_S 10.0 // without a beat: somebody else does the same
#define GONE_S 20.0   // it is given up
#define LATE_RATIO 3.0
#define LATE_LEAST_S 1.0
// A worker that lives and does not answer is given up, too: after so many times what a part should take
// and a minute more, or after so long where that is not known; and where it does not come to be one.
#define MUTE_RATIO 20.0
#define MUTE_LEAST_S 60.0
#define MUTE_UNKNOWN_S 3600.0
#define MAX_LOST 3 // times that a part is sent again before its trials run one by one
#define SAY_EVERY_S 60.0
#define LOOK_EVERY_S 1.0
#define LONGEST_GAP_S 2.0 // between two events, which are looked for ten times a second

struct msc_pool_worker *msc_pool__find_worker(struct msc_pool *pool, int32_t number) {
    for (size_t i = 0; i < pool->n_workers; i++) {
        if (pool->workers[i].number == number) {
            return &pool->workers[i];
        }
    }
    return NULL;
}

size_t msc_pool__n_ready(const struct msc_pool *pool) {
    size_t n = 0;
    for (size_t i = 0; i < pool->n_workers; i++) {
        n += pool->workers[i].state == MSC_POOL_READY;
    }
    return n;
}

// ---- Sending ----------------------------------------------------------------------------------

static enum msc_status name_files(struct msc_pool *pool) {
    const struct msc_pool_options *o = &pool->options;
    bool is_due = o->name_files && !pool->has_named_files;
    pool->has_named_files = true;
    return is_due ? o->name_files(o->payload, o->bridge) : MSC_OK;
}

static enum msc_status send_init(struct msc_pool *pool, struct msc_pool_worker *worker) {
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

// Parts [n] of the same trials, in one message.
static enum msc_status send_parts(struct msc_pool *pool, struct msc_pool_worker *worker,
                                  struct msc_pool_shard *const shards[], size_t n) {
    struct msc_pool_job *job = pool->job;
    struct msc_arena arena = {0};
    size_t n_trials = shards[0]->n_trials;
    struct msc_trial **trials = msc_arena_array(&arena, n_trials, sizeof *trials);
    double *bounds = msc_arena_array(&arena, n_trials, sizeof *bounds);
    uint64_t *ids = msc_arena_array(&arena, n, sizeof *ids);
    struct msc_node_range *ranges = msc_arena_array(&arena, n, sizeof *ranges);
    enum msc_status status = MSC_OK;
    if (!trials || !bounds || !ids || !ranges) {
        status = MSC_FAIL(MSC_E_NOMEM, "out of memory for a message");
        goto out;
    }
    for (size_t k = 0; k < n_trials; k++) {
        size_t i = job->order[shards[0]->first_trial + k];
        trials[k] = job->e->trials[i];
        bounds[k] = shards[0]->is_unbounded ? INFINITY : job->e->bounds[i];
    }
    for (size_t k = 0; k < n; k++) {
        ids[k] = shards[k]->id;
        ranges[k] = shards[k]->range;
        shards[k]->sent_s = pool->now_s;
        worker->n_open++;
    }
    msc_str_clear(&pool->message);
    msc_node_write_evaluate(&pool->message, msc_env_space(pool->options.env), ids, ranges, n,
                            trials, bounds, n_trials);
    MSC_TRY_OUT(msc_str_status(&pool->message));
    status = msc_bridge_send(pool->options.bridge, worker->number, pool->message.data,
                             pool->message.length);
out:
    msc_arena_finish(&arena);
    return status;
}

static bool is_same_trials(const struct msc_pool_shard *a, const struct msc_pool_shard *b) {
    return a->first_trial == b->first_trial && a->n_trials == b->n_trials &&
           a->is_unbounded == b->is_unbounded;
}

// All that the worker is to have and was not sent yet.
static enum msc_status send_to(struct msc_pool *pool, struct msc_pool_worker *worker,
                               struct msc_pool_shard *group[]) {
    struct msc_pool_job *job = pool->job;
    size_t n = 0;
    for (size_t i = 0; i < job->n_shards; i++) {
        struct msc_pool_shard *shard = &job->shards[i];
        bool is_due = shard->sent_s == 0 && !shard->is_done && shard->worker == worker->number;
        if (!is_due) {
            continue;
        }
        if (n > 0 && !is_same_trials(group[0], shard)) {
            MSC_TRY(send_parts(pool, worker, group, n));
            n = 0;
        }
        group[n++] = shard;
    }
    return n > 0 ? send_parts(pool, worker, group, n) : MSC_OK;
}

static struct msc_pool_worker *least_busy(struct msc_pool *pool,
                                          const struct msc_pool_shard *shard) {
    struct msc_pool_worker *best = NULL;
    for (size_t i = 0; i < pool->n_workers; i++) {
        struct msc_pool_worker *worker = &pool->workers[i];
        if (worker->state == MSC_POOL_READY && worker->number != shard->worker &&
            worker->number != shard->second && (!best || worker->n_open < best->n_open)) {
            best = worker;
        }
    }
    return best;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

// What a trial takes on a batch; NaN: not known yet.
static double median_unit(const struct msc_pool *pool) {
    double sorted[sizeof pool->unit_s / sizeof pool->unit_s[0]];
    size_t most = sizeof sorted / sizeof sorted[0];
    size_t n = pool->n_units < most ? pool->n_units : most;
    memcpy(sorted, pool->unit_s, n * sizeof sorted[0]);
    qsort(sorted, n, sizeof sorted[0], compare_doubles);
    return n > 0 ? sorted[n / 2] : NAN;
}

// How long the worker has had nothing else to do than this part, or those before it.
static double waited_s(const struct msc_pool *pool, const struct msc_pool_worker *worker,
                       const struct msc_pool_shard *shard) {
    double begin_s = worker->answered_s > shard->sent_s ? worker->answered_s : shard->sent_s;
    return pool->now_s - begin_s;
}

// NaN: not known.
static double expected_s(const struct msc_pool_shard *shard, double unit_s) {
    return unit_s * (double)(shard->n_trials * (shard->range.n > 0 ? shard->range.n : 1));
}

static bool is_late(const struct msc_pool *pool, const struct msc_pool_worker *worker,
                    const struct msc_pool_shard *shard, double unit_s) {
    return pool->now_s - worker->heard_s > SILENT_S ||
           waited_s(pool, worker, shard) >
               LATE_RATIO * expected_s(shard, unit_s) + LATE_LEAST_S; // false for NaN
}

static enum msc_status send_copy(struct msc_pool *pool, struct msc_pool_shard *shard,
                                 struct msc_pool_worker *worker) {
    double sent_s = shard->sent_s;
    shard->second = worker->number;
    MSC_TRY(send_parts(pool, worker, &shard, 1));
    shard->sent_s = sent_s;
    pool->figures.n_retried++;
    return MSC_OK;
}

// A copy of what is late, for who has nothing to do.
static enum msc_status copy_late(struct msc_pool *pool) {
    struct msc_pool_job *job = pool->job;
    double unit_s = median_unit(pool);
    for (size_t i = 0; i < job->n_shards; i++) {
        struct msc_pool_shard *shard = &job->shards[i];
        const struct msc_pool_worker *worker = msc_pool__find_worker(pool, shard->worker);
        if (shard->is_done || !worker || shard->sent_s == 0 || shard->second != MSC_POOL_NOBODY ||
            !is_late(pool, worker, shard, unit_s)) {
            continue;
        }
        struct msc_pool_worker *idle = least_busy(pool, shard);
        if (idle && idle->n_open == 0) {
            MSC_TRY(send_copy(pool, shard, idle));
        }
    }
    return MSC_OK;
}

// Copies that were planned, for comparison.
static enum msc_status send_checks(struct msc_pool *pool) {
    struct msc_pool_job *job = pool->job;
    for (size_t i = 0; i < job->n_shards; i++) {
        struct msc_pool_shard *shard = &job->shards[i];
        struct msc_pool_worker *worker = msc_pool__find_worker(pool, shard->second);
        if (shard->sent_s == 0 && worker && !shard->is_done) {
            MSC_TRY(send_parts(pool, worker, &shard, 1));
            shard->sent_s = 0;
        }
    }
    return MSC_OK;
}

enum msc_status msc_pool__send(struct msc_pool *pool) {
    struct msc_pool_job *job = pool->job;
    MSC_TRY(send_checks(pool));
    for (size_t i = 0; i < job->n_shards; i++) {
        struct msc_pool_shard *shard = &job->shards[i];
        if (!shard->is_done && shard->worker == MSC_POOL_NOBODY) {
            struct msc_pool_worker *worker = least_busy(pool, shard);
            shard->sent_s = 0;
            shard->worker = worker ? worker->number : MSC_POOL_NOBODY;
        }
    }
    struct msc_pool_shard **group = msc_alloc_zero(job->n_shards + 1, sizeof *group);
    enum msc_status status =
        group ? MSC_OK : MSC_FAIL(MSC_E_NOMEM, "out of memory for %zu parts", job->n_shards);
    for (size_t i = 0; status == MSC_OK && i < pool->n_workers; i++) {
        if (pool->workers[i].state == MSC_POOL_READY) {
            status = send_to(pool, &pool->workers[i], group);
        }
    }
    msc_free(group);
    return status == MSC_OK ? copy_late(pool) : status;
}

// ---- What happens to workers ------------------------------------------------------------------

// Its parts are somebody else's. `is_blamed`: it was lost with them.
static enum msc_status take_parts_back(struct msc_pool *pool, int32_t number, bool is_blamed) {
    struct msc_pool_job *job = pool->job;
    for (size_t i = 0; job && i < job->n_shards; i++) {
        struct msc_pool_shard *shard = &job->shards[i];
        if (shard->second == number) {
            shard->second = MSC_POOL_NOBODY;
        }
        if (shard->worker != number) {
            continue;
        }
        shard->worker = shard->is_done ? MSC_POOL_NOBODY : shard->second;
        shard->second = MSC_POOL_NOBODY;
        if (shard->is_done || shard->sent_s == 0) {
            continue;
        }
        shard->n_lost += is_blamed;
        pool->figures.n_retried += shard->worker == MSC_POOL_NOBODY;
        // One that runs alone is not sent again: who asked decides.
        if (is_blamed && shard->worker == MSC_POOL_NOBODY &&
            (job->e->n == 1 || shard->n_lost >= MAX_LOST)) {
            MSC_TRY(msc_pool__give_up(pool, i, job->e->n == 1, MSC_WORKER_DEATH_NONE, 0));
        }
    }
    return MSC_OK;
}

static enum msc_status lose_worker(struct msc_pool *pool, int32_t number, const char *why) {
    struct msc_pool_worker *worker = msc_pool__find_worker(pool, number);
    if (!worker) {
        return MSC_OK;
    }
    pool->figures.n_lost++;
    msc_log(pool->options.log, MSC_LOG_WARNING, "worker %s is lost: %s", worker->name, why);
    *worker = pool->workers[--pool->n_workers];
    return take_parts_back(pool, number, true);
}

static enum msc_status drop_worker(struct msc_pool *pool, int32_t number, const char *why) {
    msc_bridge_drop(pool->options.bridge, number, false);
    return lose_worker(pool, number, why);
}

// It does not compute what we do, or cannot.
static enum msc_status refuse_worker(struct msc_pool *pool, int32_t number, const char *why) {
    const struct msc_pool_worker *worker = msc_pool__find_worker(pool, number);
    char count[64] = "";
    if (++pool->figures.n_refused > 1) {
        snprintf(count, sizeof count, ", as were %zu before it", pool->figures.n_refused - 1);
    }
    snprintf(pool->refusal, sizeof pool->refusal, "worker %s is refused%s: %s", worker->name, count,
             why);
    msc_log(pool->options.log, MSC_LOG_WARNING, "%s", pool->refusal);
    msc_bridge_drop(pool->options.bridge, number, true);
    pool->workers[worker - pool->workers] = pool->workers[pool->n_workers - 1];
    pool->n_workers--;
    return take_parts_back(pool, number, false);
}

// `where` as the bridge says, until the worker has told more; "": it does not know.
static enum msc_status add_worker(struct msc_pool *pool, int32_t number, const char *where) {
    struct msc_str shown = {0};
    MSC_TRY(msc_grow(&pool->workers, &pool->workers_capacity, pool->n_workers + 1,
                     sizeof *pool->workers));
    struct msc_pool_worker *worker = &pool->workers[pool->n_workers++];
    *worker = (struct msc_pool_worker){.number = number, .heard_s = pool->now_s};
    msc_shown_append(&shown, where);
    if (shown.length > 0) {
        snprintf(worker->name, sizeof worker->name, "%s", msc_str_text(&shown));
    } else {
        snprintf(worker->name, sizeof worker->name, "%d", (int)number);
    }
    msc_str_finish(&shown);
    return send_init(pool, worker);
}

// ---- What they say ----------------------------------------------------------------------------

static const char *text_of(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsString(item) ? item->valuestring : "";
}

static enum msc_status take_hello(struct msc_pool *pool, struct msc_pool_worker *worker,
                                  const cJSON *hello) {
    const struct msc_pool_options *o = &pool->options;
    const struct {
        const char *key, *own, *what;
    } rows[] = {
        {"program", o->program, "it is another version"},
        {"build", o->build, "it is another build of this version"},
        {"numerics", o->numerics, "its results would differ in the last bits"},
        {"env", pool->identity, "its model, samples or parameters are not those of this search"},
        {"canary", pool->canary, "it computes a trial that is known differently"},
    };
    const cJSON *pid = cJSON_GetObjectItemCaseSensitive(hello, "pid");
    struct msc_str host = {0};
    msc_shown_append(&host, text_of(hello, "host"));
    snprintf(worker->name, sizeof worker->name, "%.100s %.0f", msc_str_text(&host),
             cJSON_IsNumber(pid) ? pid->valuedouble : 0.0);
    msc_str_finish(&host);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *said = text_of(hello, rows[i].key);
        if (rows[i].own[0] && strcmp(said, rows[i].own) != 0) {
            char why[800];
            // An id whole, so that it can be asked for.
            snprintf(why, sizeof why, "%s (%s \"%.320s\", %s \"%.320s\")", rows[i].what,
                     rows[i].key, said, o->is_foreign ? "wanted" : "here", rows[i].own);
            return refuse_worker(pool, worker->number, why);
        }
    }
    if (!pool->canary[0]) {
        snprintf(pool->canary, sizeof pool->canary, "%s", text_of(hello, "canary"));
    }
    worker->state = MSC_POOL_READY;
    worker->answered_s = pool->now_s;
    return MSC_OK;
}

static enum msc_worker_death death_of(const char *how) {
    return strcmp(how, "killed") == 0  ? MSC_WORKER_DEATH_KILLED
           : strcmp(how, "limit") == 0 ? MSC_WORKER_DEATH_LIMIT
           : strcmp(how, "quiet") == 0 ? MSC_WORKER_DEATH_QUIET
                                       : MSC_WORKER_DEATH_CRASH;
}

// Its child has died, and there is a new one that knows nothing. The part that was in flight is given up;
// its other parts are sent anew.
static enum msc_status take_crash(struct msc_pool *pool, struct msc_pool_worker *worker,
                                  const cJSON *answer, const cJSON *part) {
    struct msc_pool_job *job = pool->job;
    const char *how = text_of(answer, "how");
    const cJSON *number = cJSON_GetObjectItemCaseSensitive(answer, "signal");
    int signal_number = cJSON_IsNumber(number) ? number->valueint : 0;
    msc_log(pool->options.log, MSC_LOG_WARNING, "worker %s: its process died (%s)", worker->name,
            how);
    for (size_t i = 0; job && i < job->n_shards; i++) {
        const struct msc_pool_shard *shard = &job->shards[i];
        bool is_own = shard->worker == worker->number || shard->second == worker->number;
        if (!shard->is_done && is_own && part->valuedouble == (double)shard->id) {
            MSC_TRY(msc_pool__give_up(pool, i, shard->n_trials == 1, death_of(how), signal_number));
        }
    }
    MSC_TRY(take_parts_back(pool, worker->number, false));
    return send_init(pool, worker);
}

static enum msc_status take_error(struct msc_pool *pool, struct msc_pool_worker *worker,
                                  const char *text) {
    struct msc_str shown = {0};
    char why[400];
    msc_shown_append(&shown, text);
    snprintf(why, sizeof why, "it says: %s", msc_str_text(&shown));
    msc_str_finish(&shown);
    return worker->state == MSC_POOL_READY ? drop_worker(pool, worker->number, why)
                                           : refuse_worker(pool, worker->number, why);
}

static enum msc_status take_message(struct msc_pool *pool, struct msc_pool_worker *worker,
                                    const cJSON *message) {
    const cJSON *hello = cJSON_GetObjectItemCaseSensitive(message, "hello");
    const cJSON *error = cJSON_GetObjectItemCaseSensitive(message, "error");
    const cJSON *crashed = cJSON_GetObjectItemCaseSensitive(message, "crashed");
    if (cJSON_IsObject(hello)) {
        return take_hello(pool, worker, hello);
    }
    if (cJSON_IsString(error)) {
        return take_error(pool, worker, error->valuestring);
    }
    if (cJSON_IsNumber(crashed)) {
        return take_crash(pool, worker, message, crashed);
    }
    if (cJSON_GetObjectItemCaseSensitive(message, "beat")) {
        return MSC_OK;
    }
    enum msc_status status = worker->state == MSC_POOL_READY
                                 ? msc_pool__take_answer(pool, worker, message)
                                 : MSC_OK; // to what was asked of one before
    if (status == MSC_E_FORMAT) {
        char why[256];
        snprintf(why, sizeof why, "%s", msc_status_message());
        return drop_worker(pool, worker->number, why);
    }
    return status;
}

static enum msc_status take_line(struct msc_pool *pool, const struct msc_bridge_event *event) {
    struct msc_pool_worker *worker = msc_pool__find_worker(pool, event->worker);
    cJSON *message = NULL;
    if (!worker || event->length == 0) {
        return MSC_OK;
    }
    worker->heard_s = pool->now_s;
    if (msc_json_parse(&message, event->text, event->length, "message") != MSC_OK ||
        !cJSON_IsObject(message)) {
        cJSON_Delete(message);
        return drop_worker(pool, event->worker, "it says what is no JSON");
    }
    enum msc_status status = take_message(pool, worker, message);
    cJSON_Delete(message);
    return status;
}

// ---- Time -------------------------------------------------------------------------------------

static void look_at_clock(struct msc_pool *pool) {
    const struct msc_pool_options *o = &pool->options;
    double clock_s = o->now_s ? o->now_s(o->payload) : msc_clock_seconds();
    double gap_s = clock_s - pool->clock_s;
    pool->now_s += gap_s < LONGEST_GAP_S ? gap_s : LONGEST_GAP_S;
    pool->clock_s = clock_s;
}

static void say_that_nobody_is_there(struct msc_pool *pool) {
    pool->said_s = msc_pool__n_ready(pool) > 0 ? pool->now_s : pool->said_s;
    if (pool->now_s - pool->said_s > SAY_EVERY_S) {
        msc_log(pool->options.log, MSC_LOG_WARNING,
                "no worker is ready, %zu are on their way; waiting", pool->n_workers);
        pool->said_s = pool->now_s;
    }
}

// Does it live, and do nothing of what it was asked?
static bool is_mute(const struct msc_pool *pool, const struct msc_pool_worker *worker) {
    const struct msc_pool_job *job = pool->job;
    double unit_s = median_unit(pool);
    if (worker->state == MSC_POOL_ASKED) {
        return pool->now_s - worker->answered_s > MUTE_UNKNOWN_S;
    }
    for (size_t i = 0; i < job->n_shards; i++) {
        const struct msc_pool_shard *shard = &job->shards[i];
        double most_s = MUTE_RATIO * expected_s(shard, unit_s) + MUTE_LEAST_S;
        bool is_own = shard->worker == worker->number || shard->second == worker->number;
        if (is_own && shard->sent_s > 0 &&
            waited_s(pool, worker, shard) > (isnan(most_s) ? MUTE_UNKNOWN_S : most_s)) {
            return true;
        }
    }
    return false;
}

static enum msc_status look_after_workers(struct msc_pool *pool) {
    if (pool->now_s - pool->looked_s < LOOK_EVERY_S) {
        return MSC_OK;
    }
    pool->looked_s = pool->now_s;
    say_that_nobody_is_there(pool);
    for (size_t i = pool->n_workers; i-- > 0;) {
        const struct msc_pool_worker *worker = &pool->workers[i];
        if (pool->now_s - worker->heard_s > GONE_S) {
            MSC_TRY(drop_worker(pool, worker->number, "nothing was heard of it for 20 s"));
        } else if (is_mute(pool, worker)) {
            MSC_TRY(drop_worker(pool, worker->number, "it does not answer"));
        }
    }
    return MSC_OK;
}

static enum msc_status take_event(struct msc_pool *pool, const struct msc_bridge_event *event) {
    switch (event->kind) {
    case MSC_BRIDGE_UP:
        return add_worker(pool, event->worker, event->text ? event->text : "");
    case MSC_BRIDGE_DOWN:
        return lose_worker(pool, event->worker, event->text);
    case MSC_BRIDGE_LINE:
        return take_line(pool, event);
    case MSC_BRIDGE_NOTHING:
        break;
    }
    return MSC_OK;
}

enum msc_status msc_pool__pump(struct msc_pool *pool, double timeout_s) {
    struct msc_bridge_event event;
    do {
        enum msc_status status = msc_bridge_next(pool->options.bridge, &event, timeout_s);
        if (status == MSC_E_STATE && pool->refusal[0]) {
            return MSC_FAIL(MSC_E_STATE, "no worker is left: %s", pool->refusal);
        }
        MSC_TRY(status);
        look_at_clock(pool);
        MSC_TRY(take_event(pool, &event));
        timeout_s = 0.0;
    } while (event.kind != MSC_BRIDGE_NOTHING);
    return look_after_workers(pool);
}
