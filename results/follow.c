#include "results/follow.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "records/record_front.h"
#include "records/record_scan.h"
#include "search/pace.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#define MOST_STEPS 1024
#define MOST_PARTS 512

struct msc_follow {
    char *path;
    const struct msc_log *log;
    struct msc_record_scan *scan;
    struct msc_history history;
    struct msc_record_counts counts;
    struct msc_record_front front;
    struct msc_rate rate;
    size_t n_since;                       // lines since the search time last changed
    double elapsed_s;                     // search time at the last line
    double best_metrics[MSC_MAX_METRICS]; // of the latest improvement
};

// ---- Reading ----------------------------------------------------------------------------------

static void forget_read(struct msc_follow *f) {
    msc_history_finish(&f->history);
    msc_record_front_finish(&f->front);
    f->counts = (struct msc_record_counts){0};
    f->rate = (struct msc_rate){0};
    f->n_since = 0;
    f->elapsed_s = 0.0;
}

// Takes ownership of a scan and reads its lines, beginning with the first.
static enum msc_status begin_scan(struct msc_follow *f, struct msc_record_scan *scan) {
    const struct msc_goal *goal = msc_record_goal(msc_record_scan_record(scan));
    forget_read(f);
    msc_record_scan_close(f->scan);
    f->scan = scan;
    f->front.n_objectives = goal->n_objectives;
    return msc_history_init(&f->history, goal, MOST_STEPS);
}

enum msc_status msc_follow_open(struct msc_follow **out, const char *path,
                                const struct msc_log *log) {
    struct msc_follow *f = msc_alloc_zero(1, sizeof *f);
    struct msc_record_scan *scan = NULL;
    if (f) {
        f->path = msc_strdup(path);
        f->log = log;
    }
    enum msc_status status = f && f->path ? msc_record_scan_open(&scan, path, log)
                                          : MSC_FAIL(MSC_E_NOMEM, "%s: out of memory", path);
    if (status == MSC_OK) {
        status = begin_scan(f, scan);
    }
    if (status != MSC_OK) {
        msc_follow_close(f);
        return status;
    }
    *out = f;
    return MSC_OK;
}

static enum msc_status note_line(struct msc_follow *f, const struct msc_record_line *line) {
    if (msc_history_add(&f->history, line)) {
        memcpy(f->best_metrics, line->trial.outcome.metrics, sizeof f->best_metrics);
    }
    msc_record_count_line(&f->counts, line);
    f->n_since++;
    if (line->elapsed_s > f->elapsed_s) {
        msc_rate_note(&f->rate, f->n_since, line->elapsed_s - f->elapsed_s);
        f->elapsed_s = line->elapsed_s;
        f->n_since = 0;
    }
    return f->front.n_objectives > 1 ? msc_record_front_offer(&f->front, line) : MSC_OK;
}

static enum msc_status read_on(struct msc_follow *f) {
    const struct msc_record_line *line = NULL;
    do {
        MSC_TRY(msc_record_scan_next(&line, f->scan));
        MSC_TRY(line ? note_line(f, line) : MSC_OK);
    } while (line);
    return MSC_OK;
}

enum msc_status msc_follow_read(struct msc_follow *follow) {
    struct msc_record_scan *scan = NULL;
    enum msc_status status = read_on(follow);
    bool is_other =
        status == MSC_E_STATE || (status == MSC_OK && !msc_record_scan_is_named(follow->scan));
    if (!is_other) {
        return status;
    }
    status = msc_record_scan_open(&scan, follow->path, follow->log);
    if (status == MSC_E_NOT_FOUND) {
        return MSC_OK; // the file is missing, perhaps for a moment: keep what was read
    }
    MSC_TRY(status);
    MSC_TRY(begin_scan(follow, scan));
    return read_on(follow);
}

// ---- State ------------------------------------------------------------------------------------

// The unused part of a budget; NaN: this budget is not limited.
static double left_of(double budget, double used) {
    return isnan(budget) ? NAN : fmax(0.0, budget - used);
}

// Time left until the first limit. In a resumed search, the time before the process began is not
// search time.
static double seconds_left(const struct msc_follow_state *s, double run_s) {
    double by_trials = left_of(s->max_trials, (double)s->counts.n_budgeted) / s->trials_per_s;
    double by_time = left_of(s->max_s, s->counts.elapsed_s + fmin(s->since_s, run_s));
    // fmin ignores unknown values (NaN); an infinite time counts as unknown.
    double left_s = fmin(isfinite(by_trials) ? by_trials : NAN, by_time);
    return s->is_running == MSC_RECORD_WRITTEN_NO ? NAN : left_s;
}

static double since_written(const char *path) {
    struct stat file;
    return stat(path, &file) == 0 ? fmax(0.0, msc_clock_wall_seconds() - (double)file.st_mtime)
                                  : NAN;
}

enum msc_status msc_follow_now(struct msc_follow_state *out, struct msc_follow *follow) {
    const cJSON *header = msc_record_header(msc_record_scan_record(follow->scan));
    const cJSON *budget = msc_json_get(header, "budget");
    const struct msc_history *history = &follow->history;
    struct msc_record_writer writer;
    MSC_TRY(msc_record_front_settle(&follow->front));
    msc_record_find_writer(&writer, follow->path);
    *out = (struct msc_follow_state){
        .is_running = writer.is_written,
        .workers = {{.process = writer.process, .n_threads = writer.n_threads}},
        .n_workers = writer.process > 0,
        .counts = follow->counts,
        .max_trials = msc_json_number_of(budget, "trials"),
        .max_s = msc_json_number_of(budget, "time"),
        .target = msc_json_number_of(budget, "target"),
        .trials_per_s = 1.0 / msc_rate_seconds(&follow->rate),
        .since_s = since_written(follow->path),
        .n_front = follow->front.n_objectives > 1 ? follow->front.n : 0,
        .best_id = history->n_last > 0 ? history->last[0].trial : -1,
        .best = history->n_last > 0 ? history->last[0].value : NAN,
    };
    memcpy(out->best_metrics, follow->best_metrics, sizeof out->best_metrics);
    out->left_s = seconds_left(out, writer.run_s);
    return MSC_OK;
}

const struct msc_history *msc_follow_history(const struct msc_follow *follow) {
    return &follow->history;
}

const struct msc_record *msc_follow_record(const struct msc_follow *follow) {
    return msc_record_scan_record(follow->scan);
}

void msc_follow_close(struct msc_follow *follow) {
    if (follow) {
        forget_read(follow);
        msc_record_scan_close(follow->scan);
        msc_free(follow->path);
        msc_free(follow);
    }
}

// ---- JSON -------------------------------------------------------------------------------------

static enum msc_status add_known(cJSON *object, const char *key, double value) {
    return isfinite(value) ? msc_json_add_number(object, key, value) : MSC_OK;
}

static enum msc_status add_workers(cJSON *object, const struct msc_follow_state *s) {
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(object, "workers", list));
    for (size_t i = 0; i < s->n_workers; i++) {
        cJSON *worker = cJSON_CreateObject();
        MSC_TRY(msc_json_push(list, worker));
        MSC_TRY(msc_json_add_number(worker, "process", (double)s->workers[i].process));
        MSC_TRY(msc_json_add_number(worker, "threads", (double)s->workers[i].n_threads));
    }
    return MSC_OK;
}

static enum msc_status add_counts(cJSON *object, const struct msc_follow_state *s) {
    const struct msc_record_counts *c = &s->counts;
    MSC_TRY(msc_json_add_number(object, "trials", (double)c->n_trials));
    MSC_TRY(msc_json_add_number(object, "budgeted", (double)c->n_budgeted));
    for (int i = 0; i < MSC_TRIAL_STATE_COUNT; i++) {
        MSC_TRY(msc_json_add_number(object, msc_trial_state_name((enum msc_trial_state)i),
                                    (double)c->n_by_state[i]));
    }
    MSC_TRY(msc_json_add_number(object, "repeats", (double)c->n_repeats));
    MSC_TRY(msc_json_add_number(object, "elapsed_s", c->elapsed_s));
    MSC_TRY(msc_json_add_number(object, "reuse", c->reuse_ratio));
    MSC_TRY(add_known(object, "max_trials", s->max_trials));
    MSC_TRY(add_known(object, "max_s", s->max_s));
    MSC_TRY(add_known(object, "target", s->target));
    MSC_TRY(add_known(object, "trials_per_s", s->trials_per_s));
    MSC_TRY(add_known(object, "left_s", s->left_s));
    return s->n_front > 0 ? msc_json_add_number(object, "front", (double)s->n_front) : MSC_OK;
}

static enum msc_status add_improvements(cJSON *object, const struct msc_history *h) {
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(object, "improvements", list));
    for (size_t i = 0; i < h->n_last; i++) {
        cJSON *step = cJSON_CreateObject();
        MSC_TRY(msc_json_push(list, step));
        MSC_TRY(msc_json_add_number(step, "trial", (double)h->last[i].trial));
        MSC_TRY(msc_json_add_number(step, "elapsed_s", h->last[i].elapsed_s));
        MSC_TRY(msc_json_add_number(step, "value", h->last[i].value));
    }
    return MSC_OK;
}

static enum msc_status add_best_metrics(cJSON *object, const struct msc_follow_state *s,
                                        const struct msc_space *space) {
    cJSON *metrics = cJSON_CreateObject();
    MSC_TRY(msc_json_add(object, "best_metrics", metrics));
    for (size_t i = 0; i < space->n_metrics && s->best_id >= 0; i++) {
        MSC_TRY(add_known(metrics, space->metrics[i].name, s->best_metrics[i]));
    }
    return MSC_OK;
}

static enum msc_status add_best(cJSON *object, const struct msc_history *h, size_t n_parts) {
    double sampled[MOST_PARTS];
    size_t n = n_parts < MOST_PARTS ? n_parts : MOST_PARTS;
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(object, "best_over_trials", list));
    msc_history_sample(sampled, n, h, MSC_HISTORY_TRIALS);
    for (size_t i = 0; i < n; i++) {
        MSC_TRY(msc_json_push(list, isnan(sampled[i]) ? cJSON_CreateNull()
                                                      : cJSON_CreateNumber(sampled[i])));
    }
    return MSC_OK;
}

static enum msc_status describe_state(cJSON *object, struct msc_follow *f, size_t n_parts) {
    struct msc_follow_state s;
    const struct msc_record *record = msc_record_scan_record(f->scan);
    int metric = msc_record_goal(record)->objectives[0].metric;
    MSC_TRY(msc_follow_now(&s, f));
    MSC_TRY(msc_json_add_text(object, "record", f->path));
    MSC_TRY(msc_json_add(object, "running",
                         s.is_running == MSC_RECORD_WRITTEN_UNKNOWN
                             ? cJSON_CreateNull()
                             : cJSON_CreateBool(s.is_running == MSC_RECORD_WRITTEN_YES)));
    MSC_TRY(add_workers(object, &s));
    MSC_TRY(add_counts(object, &s));
    MSC_TRY(msc_json_add_text(object, "objective", msc_record_space(record)->metrics[metric].name));
    MSC_TRY(add_best_metrics(object, &s, msc_record_space(record)));
    MSC_TRY(add_improvements(object, &f->history));
    return add_best(object, &f->history, n_parts);
}

enum msc_status msc_follow_describe(struct cJSON **out, struct msc_follow *follow, size_t n_parts) {
    cJSON *object = cJSON_CreateObject();
    enum msc_status status =
        object ? describe_state(object, follow, n_parts) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    if (status != MSC_OK) {
        cJSON_Delete(object);
        return status;
    }
    *out = object;
    return MSC_OK;
}
