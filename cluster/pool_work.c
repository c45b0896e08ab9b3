// Tracks the workers of a pool: who is ready, who is lost, and what becomes of their parts.
#include "cluster/pool_internal.h"

#include "base/clock.h"
#include "base/shown.h"

#include <stdio.h>
#include <string.h>

#define GONE_S 20.0 // a worker without a line for this long is dropped
// A worker is also dropped if it has not answered for MUTE_S while no trial was in flight, or if it
// is not ready after UNREADY_S.
#define MUTE_S 60.0
#define UNREADY_S 3600.0
#define MAX_LOST 3 // losses of a part before its trials run one by one
#define SAY_EVERY_S 60.0
#define MOST_NAMES 8 // most worker names in one line
#define LOOK_EVERY_S 1.0
#define LONGEST_GAP_S 2.0 // between two events; normally they are polled ten times a second

// ---- Changes of workers ------------------------------------------------------------------------

// Removes a worker from a part; the holder of a copy replaces it. Returns true if this loses an
// answer that the worker was to send.
static bool leave_part(struct msc_pool_shard *shard, int32_t number) {
    static const struct msc_pool_holder nobody = {.worker = MSC_POOL_NOBODY};
    struct msc_pool_holder *own = msc_pool__find_holder(shard, number);
    bool is_lost = own == &shard->holders[0] && own->is_sent && !shard->is_done;
    if (own == &shard->holders[0]) {
        shard->holders[0] = shard->holders[1];
    }
    if (own) {
        shard->holders[1] = nobody;
    }
    return is_lost;
}

// Makes a worker's parts available to others. `is_blamed`: may the parts have caused the worker's
// loss?
static enum msc_status take_parts_back(struct msc_pool *pool, int32_t number, bool is_blamed) {
    struct msc_pool_job *job = pool->job;
    pool->has_news = true;
    for (size_t i = 0; job && i < job->n_shards; i++) {
        struct msc_pool_shard *shard = &job->shards[i];
        if (!leave_part(shard, number)) {
            continue;
        }
        if (shard->is_check) { // a lost check is dropped: others will follow
            shard->is_done = true;
            continue;
        }
        bool is_alone = job->e->n == 1, has_copy = shard->holders[0].worker != MSC_POOL_NOBODY;
        shard->n_lost += is_blamed;
        pool->figures.n_retried += !has_copy;
        // A trial that ran alone is not sent again: the caller decides what to do.
        if (is_blamed && !has_copy && (is_alone || shard->n_lost >= MAX_LOST)) {
            MSC_TRY(msc_pool__give_up(pool, i, is_alone, MSC_WORKER_DEATH_NONE, 0));
        }
    }
    return MSC_OK;
}

static void forget_worker(struct msc_pool *pool, struct msc_pool_worker *worker) {
    *worker = pool->workers[--pool->n_workers];
}

// Notes that a worker failed to start. Others may fail for the same reason, so each reason is
// logged once.
static void note_absence(struct msc_pool *pool, const char *why) {
    if (strcmp(pool->absence, why) != 0) {
        snprintf(pool->absence, sizeof pool->absence, "%s", why);
        msc_log(pool->options.log, MSC_LOG_WARNING, "a worker failed to start: %s", pool->absence);
    }
}

static enum msc_status lose_worker(struct msc_pool *pool, int32_t number, const char *why) {
    struct msc_pool_worker *worker = msc_pool__find_worker(pool, number);
    if (!worker) {
        note_absence(pool, why);
        return MSC_OK;
    }
    pool->figures.n_lost++;
    char name[sizeof worker->name];
    snprintf(name, sizeof name, "%s", worker->name);
    forget_worker(pool, worker);
    msc_log(pool->options.log, MSC_LOG_WARNING, "worker %s is lost: %s; %zu left", name, why,
            msc_pool__n_ready(pool));
    return take_parts_back(pool, number, true);
}

// Ends a worker for a reason that the bridge does not know.
static enum msc_status drop_worker(struct msc_pool *pool, int32_t number, const char *why) {
    const struct msc_pool_worker *worker = msc_pool__find_worker(pool, number);
    snprintf(pool->loss, sizeof pool->loss, "worker %s is lost: %s", worker ? worker->name : "",
             why);
    msc_bridge_drop(pool->options.bridge, number, false);
    return lose_worker(pool, number, why);
}

// Drops a worker whose results differ from those of this machine, or that cannot compute.
static enum msc_status refuse_worker(struct msc_pool *pool, int32_t number, const char *why) {
    struct msc_pool_worker *worker = msc_pool__find_worker(pool, number);
    char count[64] = "";
    if (++pool->figures.n_refused > 1) {
        snprintf(count, sizeof count, ", as were %zu before it", pool->figures.n_refused - 1);
    }
    snprintf(pool->refusal, sizeof pool->refusal, "worker %s is refused%s: %s", worker->name, count,
             why);
    msc_log(pool->options.log, MSC_LOG_WARNING, "%s", pool->refusal);
    msc_bridge_drop(pool->options.bridge, number, true);
    forget_worker(pool, worker);
    return take_parts_back(pool, number, false);
}

// `where` is the bridge's name for the worker, used until its hello; "": unknown.
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
    return msc_pool__send_init(pool, worker);
}

// ---- Workers' lines ----------------------------------------------------------------------------

static const char *text_of(const cJSON *object, const char *key) {
    const cJSON *item = msc_json_get(object, key);
    return cJSON_IsString(item) ? item->valuestring : "";
}

// Names a worker by its host, process and Slurm job.
static void name_worker(struct msc_pool_worker *worker, const cJSON *hello) {
    const cJSON *pid = msc_json_get(hello, "pid");
    struct msc_str host = {0}, job = {0};
    msc_shown_append(&host, text_of(hello, "host"));
    msc_shown_append(&job, text_of(hello, "job"));
    snprintf(worker->name, sizeof worker->name, "%.80s %.0f%s%.32s", msc_str_text(&host),
             cJSON_IsNumber(pid) ? pid->valuedouble : 0.0, job.length > 0 ? " of job " : "",
             msc_str_text(&job));
    msc_str_finish(&host);
    msc_str_finish(&job);
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
        {"env", pool->identity, "its model, samples or parameters differ from this search's"},
        {"canary", pool->canary, "its result for a known trial differs"},
    };
    name_worker(worker, hello);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *said = text_of(hello, rows[i].key);
        if (rows[i].own[0] && strcmp(said, rows[i].own) != 0) {
            char why[800];
            // Ids are written in full, so that the user can search for them.
            snprintf(why, sizeof why, "%s (%s \"%.320s\", %s \"%.320s\")", rows[i].what,
                     rows[i].key, said, o->is_foreign ? "wanted" : "here", rows[i].own);
            return refuse_worker(pool, worker->number, why);
        }
    }
    if (!pool->canary[0]) {
        snprintf(pool->canary, sizeof pool->canary, "%s", text_of(hello, "canary"));
    }
    msc_bridge_ready(pool->options.bridge, worker->number);
    worker->state = MSC_POOL_READY;
    worker->since = pool->job && !worker->has_joined ? pool->job->e->trials[0]->id : worker->since;
    worker->is_new = !worker->has_joined;
    worker->has_joined = true;
    pool->figures.n_joined += worker->is_new;
    pool->loss[0] = '\0';
    worker->answered_s = pool->now_s;
    pool->has_news = true;
    return MSC_OK;
}

static enum msc_worker_death death_of(const char *how) {
    return strcmp(how, "killed") == 0  ? MSC_WORKER_DEATH_KILLED
           : strcmp(how, "limit") == 0 ? MSC_WORKER_DEATH_LIMIT
           : strcmp(how, "quiet") == 0 ? MSC_WORKER_DEATH_QUIET
                                       : MSC_WORKER_DEATH_CRASH;
}

// Called after a worker's process died and was replaced. Gives up the part in flight, and sends the
// worker's other parts again.
static enum msc_status take_crash(struct msc_pool *pool, struct msc_pool_worker *worker,
                                  const cJSON *answer, const cJSON *part) {
    struct msc_pool_job *job = pool->job;
    const char *how = text_of(answer, "how");
    const cJSON *number = msc_json_get(answer, "signal");
    int signal_number = cJSON_IsNumber(number) ? number->valueint : 0;
    char what[64];
    snprintf(what, sizeof what, "died (%.32s)", how);
    msc_log(pool->options.log, MSC_LOG_WARNING, "worker %s: its process %s", worker->name,
            strcmp(how, "lost") == 0 ? "has lost its device; another process opens it again"
                                     : what);
    for (size_t i = 0; job && i < job->n_shards; i++) {
        struct msc_pool_shard *shard = &job->shards[i];
        bool is_own = msc_pool__find_holder(shard, worker->number) != NULL;
        if (!shard->is_done && is_own && part->valuedouble == (double)shard->id) {
            MSC_TRY(msc_pool__give_up(pool, i, shard->n_trials == 1, death_of(how), signal_number));
        }
    }
    MSC_TRY(take_parts_back(pool, worker->number, false));
    return msc_pool__send_init(pool, worker);
}

static enum msc_status take_error(struct msc_pool *pool, struct msc_pool_worker *worker,
                                  const char *text) {
    struct msc_str shown = {0};
    char why[400];
    msc_shown_append(&shown, text);
    snprintf(why, sizeof why, "it reported: %s", msc_str_text(&shown));
    msc_str_finish(&shown);
    return worker->state == MSC_POOL_READY ? drop_worker(pool, worker->number, why)
                                           : refuse_worker(pool, worker->number, why);
}

static enum msc_status take_message(struct msc_pool *pool, struct msc_pool_worker *worker,
                                    const cJSON *message) {
    const cJSON *hello = msc_json_get(message, "hello");
    const cJSON *error = msc_json_get(message, "error");
    const cJSON *crashed = msc_json_get(message, "crashed");
    if (cJSON_IsObject(hello)) {
        return take_hello(pool, worker, hello);
    }
    if (cJSON_IsString(error)) {
        return take_error(pool, worker, error->valuestring);
    }
    if (cJSON_IsNumber(crashed)) {
        return take_crash(pool, worker, message, crashed);
    }
    if (msc_json_get(message, "beat")) {
        bool is_busy = cJSON_IsTrue(msc_json_get(message, "busy"));
        worker->busy_s = is_busy ? pool->now_s : worker->busy_s;
        return MSC_OK;
    }
    enum msc_status status = worker->state == MSC_POOL_READY
                                 ? msc_pool__take_answer(pool, worker, message)
                                 : MSC_OK; // the answer is to a request from before init
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
        return drop_worker(pool, event->worker, "it sent a line that is not JSON");
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

// Logs the workers that have joined since the last call.
void msc_pool__say_who_joined(struct msc_pool *pool) {
    struct msc_str names = {0};
    size_t n = 0;
    for (size_t i = 0; i < pool->n_workers; i++) {
        struct msc_pool_worker *worker = &pool->workers[i];
        if (worker->is_new && worker->state == MSC_POOL_READY) {
            if (n < MOST_NAMES) {
                msc_str_printf(&names, "%s%s", n > 0 ? ", " : "", worker->name);
            }
            worker->is_new = false;
            n++;
        }
    }
    if (n > MOST_NAMES) {
        msc_str_printf(&names, " and %zu more", n - MOST_NAMES);
    }
    if (n > 0) {
        size_t n_ready = msc_pool__n_ready(pool), n_coming = pool->n_workers - n_ready;
        size_t n_lost = pool->figures.n_lost;
        msc_str_printf(&names, "): %zu measure%s", n_ready, n_ready == 1 ? "s" : "");
        if (n_coming > 0) {
            msc_str_printf(&names, ", %zu starting", n_coming);
        }
        if (n_lost > 0) {
            msc_str_printf(&names, ", %zu lost so far", n_lost);
        }
        msc_log(pool->options.log, MSC_LOG_INFO, "%zu worker%s joined (%s", n,
                n == 1 ? " has" : "s have", msc_str_text(&names));
    }
    msc_str_finish(&names);
}

static void say_that_nobody_is_there(struct msc_pool *pool) {
    pool->said_s = msc_pool__n_ready(pool) > 0 ? pool->now_s : pool->said_s;
    if (pool->now_s - pool->said_s > SAY_EVERY_S) {
        msc_log(pool->options.log, MSC_LOG_WARNING, "no worker is ready, %zu are starting; waiting",
                pool->n_workers);
        pool->said_s = pool->now_s;
    }
}

// True if a worker is alive but does not answer. During a long trial it counts as busy: if the
// trial takes too long, the worker's own parent ends it.
static bool is_mute(const struct msc_pool *pool, const struct msc_pool_worker *worker) {
    const struct msc_pool_job *job = pool->job;
    double idle_s = worker->busy_s > worker->answered_s ? worker->busy_s : worker->answered_s;
    if (worker->state == MSC_POOL_ASKED) {
        return pool->now_s - worker->answered_s > UNREADY_S;
    }
    for (size_t i = 0; pool->now_s - idle_s > MUTE_S && i < job->n_shards; i++) {
        const struct msc_pool_holder *own = msc_pool__find_holder(&job->shards[i], worker->number);
        if (own && own->is_sent && pool->now_s - own->sent_s > MUTE_S) {
            return true;
        }
    }
    return false;
}

// Drops at most one worker per call: ending it may take seconds, and the other workers' lines must
// be read in between.
static enum msc_status look_after_workers(struct msc_pool *pool) {
    if (pool->now_s - pool->looked_s < LOOK_EVERY_S) {
        return MSC_OK;
    }
    say_that_nobody_is_there(pool);
    for (size_t i = 0; i < pool->n_workers; i++) {
        const struct msc_pool_worker *worker = &pool->workers[i];
        if (pool->now_s - worker->heard_s > GONE_S) {
            return drop_worker(pool, worker->number, "it sent nothing for 20 s");
        }
        if (is_mute(pool, worker)) {
            return drop_worker(pool, worker->number, "it does not answer");
        }
    }
    pool->looked_s = pool->now_s;
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
    case MSC_BRIDGE_NOTE:
        msc_log(pool->options.log, MSC_LOG_INFO, "%s", event->text);
        return MSC_OK;
    case MSC_BRIDGE_NOTHING:
        break;
    }
    return MSC_OK;
}

enum msc_status msc_pool__pump(struct msc_pool *pool, double timeout_s) {
    struct msc_bridge_event event;
    do {
        enum msc_status status = msc_bridge_next(pool->options.bridge, &event, timeout_s);
        const char *why = pool->refusal[0] ? pool->refusal : pool->loss;
        if (status == MSC_E_STATE && why[0]) {
            return MSC_FAIL(MSC_E_STATE, "%s; %s", msc_status_message(), why);
        }
        MSC_TRY(status);
        look_at_clock(pool);
        MSC_TRY(take_event(pool, &event));
        timeout_s = 0.0;
    } while (event.kind != MSC_BRIDGE_NOTHING);
    if (pool->is_begun) {
        msc_pool__say_who_joined(pool);
    }
    return look_after_workers(pool);
}
