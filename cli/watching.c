#include "cli/watching.h"

#include "base/shown.h"
#include "cli/chart.h"
#include "cli/table.h"
#include "results/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define USUAL_COLUMNS 80
#define LEAST_COLUMNS 40
#define MOST_COLUMNS 512
#define CHART_ROWS 6

static const char *metric_name(const struct msc_follow *follow) {
    const struct msc_record *record = msc_follow_record(follow);
    return msc_record_space(record)->metrics[msc_record_goal(record)->objectives[0].metric].name;
}

static void write_running(struct msc_str *out, const struct msc_follow_state *s) {
    static const char *const texts[] = {"not running", "running", "running or not: unknown here"};
    msc_str_append(out, texts[s->is_running]);
    for (size_t i = 0; i < s->n_workers; i++) {
        msc_str_printf(out, "%s process %ld", i == 0 ? ":" : ",", s->workers[i].process);
        if (s->workers[i].n_threads > 0) {
            msc_str_printf(out, ", %zu threads", s->workers[i].n_threads);
        }
    }
    if (s->since_s >= 2.0) {
        msc_str_append(out, "; last written ");
        msc_str_append_duration(out, floor(s->since_s));
        msc_str_append(out, " ago");
    }
    msc_str_char(out, '\n');
}

static void write_counts(struct msc_str *out, const struct msc_follow_state *s) {
    const struct msc_record_counts *c = &s->counts;
    msc_str_printf(out, "trials: %zu", c->n_budgeted);
    if (isfinite(s->max_trials)) {
        msc_str_printf(out, " of %.0f", s->max_trials);
    }
    msc_str_printf(out, " and %zu baselines", c->n_baselines);
    static const enum msc_trial_state told[] = {MSC_TRIAL_INFEASIBLE, MSC_TRIAL_PRUNED,
                                                MSC_TRIAL_FAILED};
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++) {
        if (c->n_by_state[told[i]] > 0) {
            msc_str_printf(out, ", %zu %s", c->n_by_state[told[i]], msc_trial_state_name(told[i]));
        }
    }
    if (c->n_repeats > 0) {
        msc_str_printf(out, ", %zu repeats", c->n_repeats);
    }
    msc_str_append(out, "\ntime: ");
    msc_str_append_duration(out, c->elapsed_s);
    if (isfinite(s->max_s)) {
        msc_str_append(out, " of ");
        msc_str_append_duration(out, s->max_s);
    }
    if (isfinite(s->trials_per_s)) {
        msc_str_printf(out, ", %.3g trials/s", s->trials_per_s);
    }
    if (isfinite(s->left_s)) {
        msc_str_append(out, ", left ");
        msc_str_append_duration(out, s->left_s);
    }
    msc_str_char(out, '\n');
}

static void write_objective(struct msc_str *out, const struct msc_follow *follow, double value) {
    enum { DIGITS = 6 }; // shows small improvements
    msc_unit_digits(out, metric_name(follow), value, DIGITS);
}

static void write_best(struct msc_str *out, const struct msc_follow *follow,
                       const struct msc_follow_state *s) {
    msc_str_append(out, "best: ");
    if (s->best_id < 0) {
        msc_str_append(out, "no trial meets every bound yet\n");
        return;
    }
    msc_cli_write_short(out, metric_name(follow), MSC_CLI_NAME_COLUMNS);
    msc_str_char(out, ' ');
    write_objective(out, follow, s->best);
    msc_str_printf(out, " (trial %lld)", (long long)s->best_id);
    if (isfinite(s->target)) {
        msc_str_append(out, ", target ");
        write_objective(out, follow, s->target);
    }
    if (s->n_front > 0) {
        msc_str_printf(out, "; a front of %zu", s->n_front);
    }
    msc_str_char(out, '\n');
}

// Whether people look at this metric of the best trial: it is bounded, a further objective, or one
// of the metrics that a model is chosen by.
static bool is_watched(const struct msc_goal *goal, const struct msc_space *space, int metric) {
    static const char *const usual[] = {"accuracy", "size_bytes", "latency_us", "file_bytes"};
    for (size_t i = 0; i < goal->n_objectives; i++) {
        if (goal->objectives[i].metric == metric) {
            return i > 0;
        }
    }
    for (size_t i = 0; i < goal->n_bounds; i++) {
        if (goal->bounds[i].metric == metric) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) {
        if (strcmp(space->metrics[metric].name, usual[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void write_watched(struct msc_str *out, const struct msc_follow *follow,
                          const struct msc_follow_state *s) {
    const struct msc_record *record = msc_follow_record(follow);
    const struct msc_space *space = msc_record_space(record);
    bool is_first = true;
    for (size_t i = 0; i < space->n_metrics && s->best_id >= 0; i++) {
        double value = s->best_metrics[i];
        if (!isfinite(value) || !is_watched(msc_record_goal(record), space, (int)i)) {
            continue;
        }
        msc_str_append(out, is_first ? "  with " : ", ");
        msc_cli_write_short(out, space->metrics[i].name, MSC_CLI_NAME_COLUMNS);
        msc_str_char(out, ' ');
        msc_unit_value(out, space->metrics[i].name, value);
        is_first = false;
    }
    msc_str_append(out, is_first ? "" : "\n");
}

static void write_improvements(struct msc_str *out, const struct msc_history *h) {
    msc_str_printf(out, "improvements: %zu\n", h->n_improvements);
    for (size_t i = 0; i < h->n_last; i++) {
        msc_str_printf(out, "  trial %-10lld %-12.6g after ", (long long)h->last[i].trial,
                       h->last[i].value);
        msc_str_append_duration(out, h->last[i].elapsed_s);
        msc_str_char(out, '\n');
    }
}

enum msc_status msc_cli_write_watch(struct msc_str *out, struct msc_follow *follow,
                                    size_t n_columns) {
    struct msc_follow_state s;
    double sampled[MOST_COLUMNS];
    size_t columns = n_columns > 0 ? n_columns : USUAL_COLUMNS;
    columns = columns > LEAST_COLUMNS ? columns : LEAST_COLUMNS;
    size_t n = columns - MSC_CHART_LABEL_COLUMNS;
    n = n < MOST_COLUMNS ? n : MOST_COLUMNS;
    const struct msc_history *history = msc_follow_history(follow);
    MSC_TRY(msc_follow_now(&s, follow));
    msc_cli_write_short(out, msc_record_path(msc_follow_record(follow)), columns);
    msc_str_char(out, '\n');
    write_running(out, &s);
    write_counts(out, &s);
    write_best(out, follow, &s);
    write_watched(out, follow, &s);
    if (history->n_last > 0) {
        msc_str_append(out, "best over trials:\n");
        msc_history_sample(sampled, n, history, MSC_HISTORY_TRIALS);
        msc_chart_rows(out, sampled, n, CHART_ROWS, msc_cli_is_utf8());
        write_improvements(out, history);
    }
    return msc_str_status(out);
}
