#include "pipeline/news.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "model/program_id.h"
#include "search/estimate.h"
#include "results/report.h"
#include "results/report_drop.h"

#include <math.h>
#include <string.h>

static void news_tell(const struct msc_news *n, struct msc_str *line) {
    if (msc_str_status(line) == MSC_OK) {
        msc_log(n->session->setup->news, MSC_LOG_INFO, "%s: %s", n->session->entry->name,
                msc_str_text(line));
    }
    msc_str_finish(line);
}

void msc_news_begin(struct msc_news *n, const struct msc_session *s) {
    const struct msc_config_entry *e = s->entry;
    const cJSON *agent = msc_json_get(e->agent, "type");
    struct msc_str line = {0};
    msc_str_printf(&line, "%s, %s", msc_program_name(), msc_setup_numerics(s->setup));
    if (s->setup->config->model) {
        msc_str_printf(&line, ", model %s", s->setup->config->model);
    }
    msc_str_printf(&line, ", agent %s, rounds of %u",
                   cJSON_IsString(agent) ? agent->valuestring : "?", (unsigned)e->parallel);
    *n = (struct msc_news){
        .session = s,
        .board = {.folder = s->setup->options.tensorboard, .log = s->setup->log},
        .measured_s = NAN,
    };
    news_tell(n, &line);
    n->line_s = msc_clock_seconds();
}

// ---- During the search ------------------------------------------------------------------------

static void write_progress(struct msc_str *out, const struct msc_search_progress *progress,
                           double best) {
    msc_str_printf(out, "%zu trial%s", progress->n_budgeted,
                   progress->n_budgeted == 1 && !isfinite(progress->n_left) ? "" : "s");
    if (isfinite(progress->n_left)) {
        msc_str_printf(out, " of %s%.0f", progress->is_left_exact ? "" : "at most ",
                       (double)progress->n_budgeted + progress->n_left);
    }
    if (progress->best) {
        msc_str_printf(out, ", best %.5g (trial %lld)", best, (long long)progress->best->trial.id);
    }
    size_t n_front = msc_search_front_size(progress);
    if (n_front > 0) {
        msc_str_printf(out, ", front of %zu", n_front);
    }
    if (isfinite(progress->trials_per_s)) {
        msc_str_printf(out, ", %.3g/s", progress->trials_per_s);
    }
    msc_str_append(out, ", after ");
    msc_str_append_duration(out, progress->elapsed_s);
    if (isfinite(progress->left_s)) {
        msc_str_append(out, progress->is_left_exact ? ", left " : ", left at most ");
        msc_str_append_duration(out, progress->left_s);
    }
}

// True if a progress line is due; the caller must then write it.
static bool is_line_due(struct msc_news *n) {
    double now_s = msc_clock_seconds();
    bool is_due = n->session->setup->config->log_seconds > 0.0 &&
                  now_s - n->line_s >= n->session->setup->config->log_seconds;
    n->line_s = is_due ? now_s : n->line_s;
    return is_due;
}

void msc_news_progress(void *payload, const struct msc_search_progress *progress) {
    struct msc_news *n = payload;
    int metric = n->session->goal.objectives[0].metric;
    double best = progress->best ? progress->best->trial.outcome.metrics[metric] : NAN;
    if (is_line_due(n)) {
        struct msc_str line = {0};
        write_progress(&line, progress, best);
        news_tell(n, &line);
    }
    msc_board_show(&n->board, progress->record);
    if (n->session->setup->options.progress) {
        n->session->setup->options.progress(n->session->setup->options.payload, n->session->entry,
                                            progress, best);
    }
}

// Writes the metrics of objectives and bounds, each once.
static void news_write_goal(struct msc_str *out, const struct msc_news *n,
                            const struct msc_outcome *outcome) {
    const struct msc_space *space = msc_env_space(n->session->env);
    const struct msc_goal *goal = &n->session->goal;
    bool is_written[MSC_MAX_METRICS] = {false};
    for (size_t i = 0; i < goal->n_objectives + goal->n_bounds; i++) {
        int metric = i < goal->n_objectives ? goal->objectives[i].metric
                                            : goal->bounds[i - goal->n_objectives].metric;
        if (!is_written[metric]) {
            msc_str_printf(out, ", %s %.5g", space->metrics[metric].name, outcome->metrics[metric]);
        }
        is_written[metric] = true;
    }
}

void msc_news_best(const struct msc_news *n, const struct msc_trial *trial) {
    const struct msc_outcome *outcome = &trial->outcome;
    const struct msc_space *space = msc_env_space(n->session->env);
    struct msc_str line = {0};
    msc_str_printf(&line, "best is trial %lld", (long long)trial->id);
    if (trial->id < (int64_t)space->n_baselines) {
        const char *label = space->baselines[trial->id].label;
        msc_str_printf(&line, " (%s%s)", msc_baseline_kind(label), label);
    }
    news_write_goal(&line, n, outcome);
    if (outcome->state != MSC_TRIAL_COMPLETE) {
        msc_str_printf(&line, "; it violates the bounds by %.3g in total", outcome->violation);
    }
    news_tell(n, &line);
}

void msc_news_measuring(void *payload, const char *what) {
    struct msc_news *n = payload;
    double left_s = isnan(n->measured_s) ? NAN : fmax(n->measured_s - msc_clock_seconds(), 0.0);
    if (is_line_due(n)) {
        struct msc_str line = {0};
        msc_str_printf(&line, "measuring %s", what);
        if (!isnan(left_s)) {
            msc_str_append(&line, ", left about ");
            msc_str_append_duration(&line, left_s);
        }
        news_tell(n, &line);
    }
    if (n->session->setup->options.measuring) {
        n->session->setup->options.measuring(n->session->setup->options.payload, n->session->entry,
                                             what, left_s);
    }
}

// ---- The end ----------------------------------------------------------------------------------

// Writes each number of `object`, in the form ", accuracy 1", unless `said` has a member of the
// same name.
static void news_write_numbers(struct msc_str *out, const cJSON *object, const char *before,
                               const cJSON *said) {
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, object) {
        if (cJSON_IsNumber(item) && !msc_json_get(said, item->string)) {
            msc_str_printf(out, ", %s%s %.5g", before, msc_report_label(item->string),
                           item->valuedouble);
        }
    }
}

static void tell_winner(const struct msc_news *n, const cJSON *report) {
    const cJSON *delivered = msc_json_get(report, "delivered");
    const cJSON *winner = delivered ? delivered : msc_json_get(report, "winner");
    struct msc_str line = {0};
    const cJSON *metrics = msc_json_get(winner, "metrics");
    const cJSON *reevaluated = msc_json_get(winner, "examined");
    if (!cJSON_IsObject(winner)) {
        msc_str_append(&line, msc_report__has_held_out(report)
                                  ? "no trial meets every bound on the validation samples"
                                  : "no trial has a result yet");
    } else {
        bool is_feasible = strcmp(msc_json_get(winner, "state")->valuestring, "complete") == 0;
        msc_str_append(&line,
                       is_feasible ? "the winner" : "no trial meets every bound; the nearest");
        msc_str_printf(&line, " is trial %.0f%s", msc_json_get(winner, "id")->valuedouble,
                       msc_json_get(winner, "distilled") ? " with better weights" : "");
        news_write_numbers(&line, metrics, "", NULL);
        news_write_numbers(&line, reevaluated, "", metrics);
        news_write_numbers(&line, msc_json_get(reevaluated, "validation"), "validation.", NULL);
    }
    news_tell(n, &line);
}

static void tell_files(const struct msc_news *n, const cJSON *report) {
    struct msc_str line = {0};
    const cJSON *item = NULL;
    msc_str_printf(&line, "record %s", n->session->entry->record);
    cJSON_ArrayForEach(item, msc_json_get(report, "files")) {
        if (cJSON_IsString(item)) {
            msc_str_printf(&line, ", %s %s", item->string, item->valuestring);
        }
    }
    news_tell(n, &line);
}

void msc_news_end(struct msc_news *n, const struct cJSON *report,
                  const struct msc_search_result *found) {
    struct msc_str line = {0};
    size_t n_trials = msc_record_n_trials(found->record);
    msc_str_printf(&line, "ended: %s; %zu trial%s in ", msc_search_end_text(found->end), n_trials,
                   n_trials == 1 ? "" : "s");
    msc_str_append_duration(&line, found->elapsed_s);
    news_tell(n, &line);
    tell_winner(n, report);
    tell_files(n, report);
    msc_board_end(&n->board, found->record, report);
}

void msc_news_close(struct msc_news *n) {
    msc_board_close(&n->board);
}
