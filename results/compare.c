#include "results/compare.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"
#include "records/record_front.h"
#include "results/differences.h"
#include "results/history.h"
#include "results/report.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

// At most this many improvements are kept. If there are more, every other one is dropped.
#define MOST_STEPS 16384

struct subject {
    struct msc_record *record;
    cJSON *report;   // the record's part of the comparison
    cJSON *compared; // the configuration that is compared
    struct msc_history history;
};

struct comparison {
    const struct msc_compare_options *options;
    struct subject *subjects; // [n]
    size_t n;
    cJSON *object;
};

static enum msc_status push_value(cJSON *values, double value) {
    return msc_json_push(values, isnan(value) ? cJSON_CreateNull() : cJSON_CreateNumber(value));
}

// ---- One record -------------------------------------------------------------------------------

static enum msc_status make_report(cJSON **out, const struct subject *s, const cJSON *kept,
                                   const struct msc_log *log) {
    const struct msc_report_options o = {.record = s->record,
                                         .has_front = msc_record_goal(s->record)->n_objectives > 1};
    cJSON *report = NULL;
    MSC_TRY(msc_report_create(&report, &o));
    enum msc_status status = msc_report_add_beside(report, s->record, kept, log);
    if (status != MSC_OK) {
        cJSON_Delete(report);
        return status;
    }
    *out = report;
    return MSC_OK;
}

// Copies the record's configuration or, if it has none, the listed members of the record's header.
static enum msc_status find_compared(cJSON **out, const struct msc_record *record) {
    static const char *const members[] = {"env",  "agent",  "seed",       "parallel",
                                          "race", "budget", "objectives", "bounds"};
    const cJSON *header = msc_record_header(record);
    const cJSON *config = msc_json_get(header, "config");
    cJSON *compared = config ? cJSON_Duplicate(config, true) : cJSON_CreateObject();
    enum msc_status status = MSC_ALLOCATED(compared);
    for (size_t i = 0; !config && i < sizeof members / sizeof members[0]; i++) {
        const cJSON *member = msc_json_get(header, members[i]);
        if (member && status == MSC_OK) {
            status = msc_json_add(compared, members[i], cJSON_Duplicate(member, true));
        }
    }
    if (status != MSC_OK) {
        cJSON_Delete(compared);
        return status;
    }
    *out = compared;
    return MSC_OK;
}

static enum msc_status open_record(struct subject *s, const char *path, const struct msc_log *log,
                                   cJSON *records) {
    cJSON *kept = NULL;
    enum msc_status status = MSC_OK;
    MSC_TRY(msc_report_open_record(&s->record, &kept, path, 0, true, log));
    MSC_TRY_OUT(make_report(&s->report, s, kept, log));
    status = msc_json_push(records, s->report);
    if (status != MSC_OK) {
        s->report = NULL;
        goto out;
    }
    MSC_TRY_OUT(msc_history_read(&s->history, s->record, MOST_STEPS));
    status = find_compared(&s->compared, s->record);
out:
    cJSON_Delete(kept);
    return status;
}

// ---- Notes on comparability --------------------------------------------------------------------

static bool have_equal(const struct comparison *c,
                       const cJSON *(*find)(const struct subject *, const char *),
                       const char *key) {
    const cJSON *first = find(&c->subjects[0], key);
    bool have = true;
    for (size_t i = 1; i < c->n; i++) {
        const cJSON *item = find(&c->subjects[i], key);
        have = have && (first && item ? cJSON_Compare(first, item, true) : first == item);
    }
    return have;
}

static const cJSON *of_header(const struct subject *s, const char *key) {
    return msc_json_get(msc_record_header(s->record), key);
}

static const cJSON *of_env(const struct subject *s, const char *key) {
    return msc_json_get(of_header(s, "env"), key);
}

static const cJSON *of_params(const struct subject *s, const char *key) {
    return msc_json_get(of_env(s, "params"), key);
}

static const cJSON *of_hashes(const struct subject *s, const char *key) {
    return msc_json_get(of_header(s, "hashes"), key);
}

static const cJSON *of_objectives(const struct subject *s, const char *key) {
    return msc_json_get(cJSON_GetArrayItem(of_header(s, "objectives"), 0), key);
}

// Members that must be equal for losses to be comparable.
static const struct {
    const cJSON *(*find)(const struct subject *s, const char *key);
    const char *key, *what;
} rests[] = {
    {of_env, "type", "environment"}, {of_env, "graph", "network"}, {of_env, "weights", "weights"},
    {of_env, "dataset", "samples"},  {of_params, "loss", "loss"},
};

static bool has_graph(const struct comparison *c) {
    bool has = true;
    for (size_t i = 0; i < c->n; i++) {
        has = has && of_env(&c->subjects[i], "graph");
    }
    return has;
}

static enum msc_status add_notes(const struct comparison *c) {
    cJSON *notes = cJSON_CreateArray();
    struct msc_str what = {0};
    enum msc_status status = msc_json_add(c->object, "notes", notes);
    for (size_t i = 0; i < sizeof rests / sizeof rests[0]; i++) {
        if (!have_equal(c, rests[i].find, rests[i].key)) {
            msc_str_item(&what, rests[i].what);
        }
    }
    // Environments without a graph are compared only by their hash.
    if (what.length == 0 && !has_graph(c) && !have_equal(c, of_hashes, "env")) {
        msc_str_item(&what, "environment");
    }
    if (status == MSC_OK && what.length > 0) {
        msc_str_append(&what, " differ: values of different records are not comparable");
        status = msc_str_status(&what);
    }
    if (status == MSC_OK && what.length > 0) {
        status = msc_json_push(notes, cJSON_CreateString(what.data));
    }
    if (status == MSC_OK && !have_equal(c, of_objectives, "metric")) {
        static const char text[] = "objectives differ: the best values are of different metrics";
        status = msc_json_push(notes, cJSON_CreateString(text));
    } else if (status == MSC_OK && !have_equal(c, of_header, "objectives")) {
        static const char text[] = "objectives differ: the fronts are not merged";
        status = msc_json_push(notes, cJSON_CreateString(text));
    }
    msc_str_finish(&what);
    return status;
}

// ---- Best so far ------------------------------------------------------------------------------

static enum msc_status add_row(cJSON *list, cJSON **values, const char *key, double at) {
    cJSON *row = cJSON_CreateObject();
    *values = NULL;
    MSC_TRY(msc_json_push(list, row));
    MSC_TRY(isnan(at) ? MSC_OK : msc_json_add_number(row, key, at));
    MSC_TRY(msc_json_add(row, "values", cJSON_CreateArray()));
    *values = msc_json_get(row, "values");
    return MSC_OK;
}

static double best_in_end(const struct msc_history *h) {
    return h->n_last > 0 ? h->last[0].value : NAN;
}

static enum msc_status add_end(cJSON *list, const struct comparison *c) {
    cJSON *values = NULL;
    MSC_TRY(add_row(list, &values, "", NAN));
    for (size_t i = 0; i < c->n; i++) {
        MSC_TRY(push_value(values, best_in_end(&c->subjects[i].history)));
    }
    return MSC_OK;
}

static enum msc_status add_best_over_trials(const struct comparison *c) {
    cJSON *list = cJSON_CreateArray(), *values = NULL;
    size_t n_marks = 0;
    MSC_TRY(msc_json_add(c->object, "best_over_trials", list));
    for (size_t i = 0; i < c->n; i++) {
        const struct msc_history *h = &c->subjects[i].history;
        n_marks = h->n_marks > n_marks ? h->n_marks : n_marks;
    }
    for (size_t m = 0; m < n_marks; m++) {
        MSC_TRY(add_row(list, &values, "trials", (double)msc_history_mark(m)));
        for (size_t i = 0; i < c->n; i++) {
            const struct msc_history *h = &c->subjects[i].history;
            MSC_TRY(push_value(values, m < h->n_marks ? h->marks[m] : NAN));
        }
    }
    return add_end(list, c);
}

// Compares at times that every search has reached.
static enum msc_status add_best_over_time(const struct comparison *c) {
    static const double parts[] = {0.01, 0.03, 0.1, 0.3, 1.0};
    cJSON *list = cJSON_CreateArray(), *values = NULL;
    double least_s = INFINITY;
    MSC_TRY(msc_json_add(c->object, "best_over_time", list));
    for (size_t i = 0; i < c->n; i++) {
        least_s = fmin(least_s, c->subjects[i].history.elapsed_s);
    }
    for (size_t p = 0; least_s > 0.0 && p < sizeof parts / sizeof parts[0]; p++) {
        MSC_TRY(add_row(list, &values, "seconds", parts[p] * least_s));
        for (size_t i = 0; i < c->n; i++) {
            MSC_TRY(push_value(values, msc_history_at(&c->subjects[i].history, MSC_HISTORY_SECONDS,
                                                      parts[p] * least_s)));
        }
    }
    return add_end(list, c);
}

// ---- Fronts -----------------------------------------------------------------------------------

// Index of the first point whose first objective is at least `first`. The front is sorted by the
// first objective.
static size_t find_place(const struct msc_record_front *front, double first) {
    size_t low = 0, high = front->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (front->outcomes[middle].objectives[0] < first) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// True if the front has a point with the same objectives.
static bool is_on_front(const struct msc_record_front *front, const struct msc_outcome *outcome) {
    size_t bytes = front->n_objectives * sizeof outcome->objectives[0];
    for (size_t i = find_place(front, outcome->objectives[0]);
         i < front->n && front->outcomes[i].objectives[0] == outcome->objectives[0]; i++) {
        if (memcmp(front->outcomes[i].objectives, outcome->objectives, bytes) == 0) {
            return true;
        }
    }
    return false;
}

static enum msc_status mark_points(const struct comparison *c,
                                   const struct msc_record_front *front) {
    for (size_t i = 0; i < c->n; i++) {
        const struct subject *s = &c->subjects[i];
        cJSON *row = NULL;
        cJSON_ArrayForEach(row, msc_json_get(s->report, "front")) {
            const struct msc_record_line line =
                msc_record_trial(s->record, (size_t)msc_json_get(row, "id")->valuedouble);
            MSC_TRY(
                msc_json_add_bool(row, "on_joint_front", is_on_front(front, &line.trial.outcome)));
        }
    }
    return MSC_OK;
}

static enum msc_status add_front(const struct comparison *c) {
    struct msc_record_front front = {.n_objectives =
                                         msc_record_goal(c->subjects[0].record)->n_objectives};
    enum msc_status status = MSC_OK;
    if (front.n_objectives < 2 || !have_equal(c, of_header, "objectives")) {
        return MSC_OK;
    }
    for (size_t i = 0; i < c->n; i++) {
        const struct subject *s = &c->subjects[i];
        const cJSON *row = NULL;
        cJSON_ArrayForEach(row, msc_json_get(s->report, "front")) {
            const struct msc_record_line line =
                msc_record_trial(s->record, (size_t)msc_json_get(row, "id")->valuedouble);
            MSC_TRY_OUT(msc_record_front_offer(&front, &line));
        }
    }
    MSC_TRY_OUT(msc_record_front_settle(&front));
    MSC_TRY_OUT(msc_json_add_number(c->object, "joint_front", (double)front.n));
    status = mark_points(c, &front);
out:
    msc_record_front_finish(&front);
    return status;
}

// ---- The comparison ----------------------------------------------------------------------------

static enum msc_status add_differences(const struct comparison *c) {
    struct msc_arena arena = {0};
    const cJSON **of = msc_arena_array(&arena, c->n, sizeof *of);
    cJSON *found = NULL;
    enum msc_status status = MSC_ALLOCATED(of);
    for (size_t i = 0; i < c->n && status == MSC_OK; i++) {
        of[i] = c->subjects[i].compared;
    }
    MSC_TRY_OUT(status);
    MSC_TRY_OUT(msc_differences_of_configs(&found, of, c->n, SIZE_MAX));
    MSC_TRY_OUT(msc_json_add(c->object, "differences", found));
    for (size_t i = 0; i < c->n; i++) {
        of[i] = msc_json_get(msc_json_get(c->subjects[i].report, "winner"), "choices");
    }
    MSC_TRY_OUT(msc_differences_of_plans(&found, of, c->n));
    status = msc_json_add(c->object, "winners", found);
out:
    msc_arena_finish(&arena);
    return status;
}

static enum msc_status fill_comparison(struct comparison *c) {
    cJSON *records = cJSON_CreateArray();
    MSC_TRY(msc_json_add(c->object, "records", records));
    for (size_t i = 0; i < c->n; i++) {
        MSC_TRY(open_record(&c->subjects[i], c->options->paths[i], c->options->log, records));
    }
    MSC_TRY(add_notes(c));
    MSC_TRY(add_best_over_trials(c));
    MSC_TRY(add_best_over_time(c));
    MSC_TRY(add_front(c));
    return add_differences(c);
}

enum msc_status msc_compare_create(struct cJSON **out, const struct msc_compare_options *options) {
    struct comparison c = {
        .options = options,
        .n = options->n,
        .subjects = msc_alloc_zero(options->n, sizeof *c.subjects),
        .object = cJSON_CreateObject(),
    };
    enum msc_status status =
        c.subjects && c.object ? fill_comparison(&c) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    for (size_t i = 0; c.subjects && i < c.n; i++) {
        msc_history_finish(&c.subjects[i].history);
        cJSON_Delete(c.subjects[i].compared);
        msc_record_close(c.subjects[i].record);
    }
    msc_free(c.subjects);
    if (status != MSC_OK) {
        cJSON_Delete(c.object);
        return status;
    }
    *out = c.object;
    return MSC_OK;
}
