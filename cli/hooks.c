#include "cli/hooks.h"

#include "base/alloc.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/process.h"
#include "base/program.h"
#include "base/str.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#define MOST_VALUES 16
// At its end, a search waits this long for running --on-improve programs.
#define PATIENCE_S 5.0

// The environment variables of a program: NAME=VALUE.
struct values {
    struct msc_arena arena;
    const char *list[MOST_VALUES + 1];
    size_t n;
    bool failed; // out of memory
};

struct msc_hooks {
    const char **on_improve, **on_end; // NULL: none
    const struct msc_log *log;
    struct msc_arena arena;
    struct msc_cancel cut; // ends the --on-improve programs
    // Used only by the thread that searches.
    struct msc_str record; // path of the search's record
    int64_t told_id;       // the last best trial reported
    // Shared with the thread that runs the programs, under the lock.
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool has_thread;
    struct values *waiting; // the newest improvement that has not been reported; or NULL
    bool is_running;
    bool is_closing;
};

// ---- Values -----------------------------------------------------------------------------------

static void add_value(struct values *v, const char *name, const char *text) {
    const char *entry = msc_arena_printf(&v->arena, "%s=%s", name, text);
    v->failed = v->failed || !entry || v->n == MOST_VALUES;
    if (!v->failed) {
        v->list[v->n++] = entry;
    }
}

static void add_number_value(struct values *v, const char *name, double value) {
    struct msc_str text = {0};
    if (isfinite(value)) {
        msc_str_double(&text, value);
        v->failed = v->failed || text.failed;
        add_value(v, name, msc_str_text(&text));
    }
    msc_str_finish(&text);
}

static void drop_values(struct values *v) {
    if (v) {
        msc_arena_finish(&v->arena);
        msc_free(v);
    }
}

static struct values *
describe_improvement(const char *entry, const struct msc_search_progress *progress, double best) {
    const struct msc_space *space = msc_record_space(progress->record);
    const struct msc_outcome *outcome = &progress->best->trial.outcome;
    int metric = msc_record_goal(progress->record)->objectives[0].metric;
    int loss = msc_space_find_metric(space, "distill_loss");
    struct values *v = msc_alloc_zero(1, sizeof *v);
    if (!v) {
        return NULL;
    }
    add_value(v, "MSCGYM_EVENT", "improve");
    add_value(v, "MSCGYM_RECORD", msc_record_path(progress->record));
    add_value(v, "MSCGYM_SEARCH", entry);
    add_number_value(v, "MSCGYM_TRIAL", (double)progress->best->trial.id);
    add_value(v, "MSCGYM_OBJECTIVE", space->metrics[metric].name);
    add_number_value(v, "MSCGYM_VALUE", best);
    add_number_value(v, "MSCGYM_LOSS", loss >= 0 ? outcome->metrics[loss] : NAN);
    add_number_value(v, "MSCGYM_TRIALS", (double)progress->n_trials);
    add_number_value(v, "MSCGYM_ELAPSED_S", progress->elapsed_s);
    return v;
}

// ---- The thread -------------------------------------------------------------------------------

static enum msc_status run_hook(const char *const argv[], const struct values *v,
                                const struct msc_cancel *cancel) {
    enum msc_status status = v && !v->failed
                                 ? msc_process_call(argv, v->list, MSC_HOOK_SECONDS, cancel, 2)
                                 : MSC_FAIL(MSC_E_NOMEM, "%s: out of memory", argv[0]);
    return status == MSC_E_CANCELLED ? MSC_OK : status;
}

static void *run_improvements(void *payload) {
    struct msc_hooks *hooks = payload;
    pthread_mutex_lock(&hooks->lock);
    for (;;) {
        while (!hooks->waiting && !hooks->is_closing) {
            pthread_cond_wait(&hooks->moved, &hooks->lock);
        }
        struct values *v = hooks->waiting;
        if (!v) {
            break;
        }
        hooks->waiting = NULL;
        hooks->is_running = true;
        pthread_mutex_unlock(&hooks->lock);
        if (run_hook(hooks->on_improve, v, &hooks->cut) != MSC_OK) {
            msc_log(hooks->log, MSC_LOG_WARNING, "--on-improve: %s; the search continues",
                    msc_status_message());
        }
        drop_values(v);
        pthread_mutex_lock(&hooks->lock);
        hooks->is_running = false;
        pthread_cond_broadcast(&hooks->moved);
    }
    pthread_mutex_unlock(&hooks->lock);
    return NULL;
}

// The thread blocks all signals, so that the searching thread gets them.
static enum msc_status start_thread(struct msc_hooks *hooks) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    hooks->has_thread = pthread_create(&hooks->thread, NULL, run_improvements, hooks) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return hooks->has_thread ? MSC_OK
                             : MSC_FAIL(MSC_E_NOMEM, "--on-improve: cannot start a thread");
}

// Waits at most `patience_s` until all improvements are reported, then cancels the rest.
static void end_improvements(struct msc_hooks *hooks, double patience_s) {
    double deadline_s = msc_clock_seconds() + patience_s;
    const struct timespec deadline = {
        .tv_sec = (time_t)deadline_s,
        .tv_nsec = (long)((deadline_s - floor(deadline_s)) * 1e9),
    };
    if (!hooks->has_thread) {
        return;
    }
    pthread_mutex_lock(&hooks->lock);
    while ((hooks->waiting || hooks->is_running) &&
           pthread_cond_timedwait(&hooks->moved, &hooks->lock, &deadline) == 0) {}
    struct values *old = hooks->waiting;
    hooks->waiting = NULL;
    hooks->is_closing = true;
    msc_cancel_raise(&hooks->cut, 2);
    pthread_cond_broadcast(&hooks->moved);
    pthread_mutex_unlock(&hooks->lock);
    drop_values(old);
    pthread_join(hooks->thread, NULL);
    hooks->has_thread = false;
}

// ---- Interface --------------------------------------------------------------------------------

// Reads the path of a program, or a JSON list of words.
static enum msc_status read_command(const char ***out, const char *text, const char *option,
                                    struct msc_arena *arena) {
    cJSON *list = NULL;
    *out = NULL;
    if (!text) {
        return MSC_OK;
    }
    if (text[0] == '[') {
        if (msc_json_parse(&list, text, strlen(text), option) != MSC_OK) {
            return MSC_FAIL(MSC_E_INVALID, "%s", msc_status_message());
        }
    } else {
        list = cJSON_CreateArray();
        MSC_TRY(msc_json_push(list, cJSON_CreateString(text)));
    }
    enum msc_status status = msc_program_read_words(
        out, list, option, "a program, or a list such as [\"python3\", \"tell.py\"]", arena);
    cJSON_Delete(list);
    return status;
}

// Timed waits use the monotonic clock, because nobody can set that clock.
static void init_condition(pthread_cond_t *condition) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

enum msc_status msc_hooks_open(struct msc_hooks **out, const char *on_improve, const char *on_end,
                               const struct msc_log *log) {
    *out = NULL;
    if (!on_improve && !on_end) {
        return MSC_OK;
    }
    struct msc_hooks *hooks = msc_alloc_zero(1, sizeof *hooks);
    MSC_TRY(MSC_ALLOCATED(hooks));
    hooks->log = log;
    pthread_mutex_init(&hooks->lock, NULL);
    init_condition(&hooks->moved);
    enum msc_status status =
        read_command(&hooks->on_improve, on_improve, "--on-improve", &hooks->arena);
    if (status == MSC_OK) {
        status = read_command(&hooks->on_end, on_end, "--on-end", &hooks->arena);
    }
    if (status == MSC_OK && hooks->on_improve) {
        status = start_thread(hooks);
    }
    if (status != MSC_OK) {
        msc_hooks_close(hooks);
        return status;
    }
    *out = hooks;
    return MSC_OK;
}

void msc_hooks_progress(struct msc_hooks *hooks, const char *entry,
                        const struct msc_search_progress *progress, double best) {
    if (!hooks || !hooks->on_improve || !progress->best ||
        progress->best->trial.outcome.state != MSC_TRIAL_COMPLETE) {
        return;
    }
    int64_t id = progress->best->trial.id;
    const char *path = msc_record_path(progress->record);
    bool is_known = strcmp(msc_str_text(&hooks->record), path) == 0 && id == hooks->told_id;
    msc_str_clear(&hooks->record);
    msc_str_append(&hooks->record, path);
    hooks->told_id = id;
    if (is_known || (size_t)id + progress->n_new < progress->n_trials) {
        return;
    }
    struct values *v = describe_improvement(entry, progress, best);
    pthread_mutex_lock(&hooks->lock);
    struct values *old = hooks->waiting;
    hooks->waiting = v;
    pthread_cond_broadcast(&hooks->moved);
    pthread_mutex_unlock(&hooks->lock);
    drop_values(old);
}

static void describe_end(struct values *v, const cJSON *report) {
    static const struct {
        const char *name, *key;
    } texts[] = {{"MSCGYM_RECORD", "record"}, {"MSCGYM_SEARCH", "entry"}, {"MSCGYM_END", "end"}};
    const cJSON *delivered = msc_json_get(report, "delivered");
    const cJSON *winner = delivered ? delivered : msc_json_get(report, "winner");
    const cJSON *objective = cJSON_GetArrayItem(msc_json_get(report, "objectives"), 0);
    const cJSON *metric = msc_json_get(objective, "metric");
    const cJSON *counts = msc_json_get(report, "counts");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const cJSON *text = msc_json_get(report, texts[i].key);
        if (cJSON_IsString(text)) {
            add_value(v, texts[i].name, text->valuestring);
        }
    }
    add_number_value(v, "MSCGYM_TRIAL", msc_json_number_of(winner, "id"));
    if (cJSON_IsString(metric)) {
        const cJSON *metrics = msc_json_get(winner, "metrics");
        add_value(v, "MSCGYM_OBJECTIVE", metric->valuestring);
        add_number_value(v, "MSCGYM_VALUE", msc_json_number_of(metrics, metric->valuestring));
        add_number_value(v, "MSCGYM_LOSS", msc_json_number_of(metrics, "distill_loss"));
    }
    add_number_value(v, "MSCGYM_TRIALS", msc_json_number_of(counts, "trials"));
    add_number_value(v, "MSCGYM_ELAPSED_S", msc_json_number_of(counts, "elapsed_s"));
}

void msc_hooks_end(struct msc_hooks *hooks, const struct cJSON *report, const char *failure) {
    if (!hooks) {
        return;
    }
    end_improvements(hooks, PATIENCE_S);
    if (!hooks->on_end) {
        return;
    }
    struct values *v = msc_alloc_zero(1, sizeof *v);
    if (v) {
        add_value(v, "MSCGYM_EVENT", "end");
    }
    if (v && report) {
        describe_end(v, report);
    } else if (v) {
        add_value(v, "MSCGYM_END", "failed");
        add_value(v, "MSCGYM_MESSAGE", failure);
    }
    if (run_hook(hooks->on_end, v, NULL) != MSC_OK) {
        msc_log(hooks->log, MSC_LOG_WARNING, "--on-end: %s", msc_status_message());
    }
    drop_values(v);
}

void msc_hooks_close(struct msc_hooks *hooks) {
    if (!hooks) {
        return;
    }
    end_improvements(hooks, 0.0);
    pthread_cond_destroy(&hooks->moved);
    pthread_mutex_destroy(&hooks->lock);
    msc_str_finish(&hooks->record);
    msc_arena_finish(&hooks->arena);
    msc_free(hooks);
}
