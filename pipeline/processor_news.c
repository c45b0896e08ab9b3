// What a search tells of itself where nobody watches a progress line: enough to know the next
// morning, from the log alone, what ran, how far it came, what was best when, and why it ended.
#include "pipeline/processor_internal.h"

#include "base/clock.h"
#include "base/str.h"
#include "search/estimate.h"
#include "search/report.h"

#include <math.h>
#include <string.h>

static void news_tell(const struct msc_processor *p, struct msc_str *line) {
    if (msc_str_status(line) == MSC_OK) {
        msc_log(p->news, MSC_LOG_INFO, "%s: %s", msc_processor__entry(p)->name, msc_str_text(line));
    }
    msc_str_finish(line);
}

void msc_processor__tell_begin(struct msc_processor *p) {
    const struct msc_config_entry *e = msc_processor__entry(p);
    const cJSON *agent = cJSON_GetObjectItemCaseSensitive(e->agent, "type");
    struct msc_str line = {0};
    msc_str_printf(&line, "%s, %s", msc_program_name(), msc_processor_numerics(p));
    if (p->config->model) {
        msc_str_printf(&line, ", model %s", p->config->model);
    }
    msc_str_printf(&line, ", agent %s, rounds of %u",
                   cJSON_IsString(agent) ? agent->valuestring : "?", (unsigned)e->parallel);
    news_tell(p, &line);
    p->news_s = msc_clock_seconds();
    p->measured_s = NAN;
}

// ---- On the way -------------------------------------------------------------------------------

static void write_progress(struct msc_str *out, const struct msc_search_progress *progress,
                           double best) {
    msc_str_printf(out, "%zu trials", progress->n_budgeted);
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

// Is it time for another line? Then it is told now.
static bool is_line_due(struct msc_processor *p) {
    double now_s = msc_clock_seconds();
    bool is_due = p->config->log_seconds > 0.0 && now_s - p->news_s >= p->config->log_seconds;
    p->news_s = is_due ? now_s : p->news_s;
    return is_due;
}

void msc_processor__tell_progress(void *payload, const struct msc_search_progress *progress) {
    struct msc_processor *p = payload;
    int metric = p->goal.objectives[0].metric;
    double best = progress->best ? progress->best->trial.outcome.metrics[metric] : NAN;
    if (is_line_due(p)) {
        struct msc_str line = {0};
        write_progress(&line, progress, best);
        news_tell(p, &line);
    }
    msc_processor__show_tensorboard(p, progress->record);
    if (p->options.progress) {
        p->options.progress(p->options.payload, msc_processor__entry(p), progress, best);
    }
}

// Objectives and what is bounded, each once.
static void news_write_goal(struct msc_str *out, const struct msc_processor *p,
                            const struct msc_outcome *outcome) {
    const struct msc_space *space = msc_env_space(p->env);
    const struct msc_goal *goal = &p->goal;
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

void msc_processor__tell_best(const struct msc_processor *p, const struct msc_trial *trial) {
    const struct msc_outcome *outcome = &trial->outcome;
    const struct msc_space *space = msc_env_space(p->env);
    struct msc_str line = {0};
    msc_str_printf(&line, "best is trial %lld", (long long)trial->id);
    if (trial->id < (int64_t)space->n_baselines) {
        const char *label = space->baselines[trial->id].label;
        msc_str_printf(&line, " (%s%s)", msc_baseline_kind(label), label);
    }
    news_write_goal(&line, p, outcome);
    if (outcome->state != MSC_TRIAL_COMPLETE) {
        msc_str_printf(&line, "; it misses the bounds by %.3g in all", outcome->violation);
    }
    news_tell(p, &line);
}

void msc_processor__tell_measuring(void *payload, const char *what) {
    struct msc_processor *p = payload;
    double left_s = isnan(p->measured_s) ? NAN : fmax(p->measured_s - msc_clock_seconds(), 0.0);
    if (is_line_due(p)) {
        struct msc_str line = {0};
        msc_str_printf(&line, "measuring %s", what);
        if (!isnan(left_s)) {
            msc_str_append(&line, ", left about ");
            msc_str_append_duration(&line, left_s);
        }
        news_tell(p, &line);
    }
    if (p->options.measuring) {
        p->options.measuring(p->options.payload, msc_processor__entry(p), what, left_s);
    }
}

// ---- The end ----------------------------------------------------------------------------------

static const cJSON *news_get(const cJSON *object, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

// Every number of an object that `said` does not have: ", accuracy 1".
static void news_write_numbers(struct msc_str *out, const cJSON *object, const char *before,
                               const cJSON *said) {
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, object) {
        if (cJSON_IsNumber(item) && !news_get(said, item->string)) {
            msc_str_printf(out, ", %s%s %.5g", before, msc_report_label(item->string),
                           item->valuedouble);
        }
    }
}

static void tell_winner(const struct msc_processor *p, const cJSON *winner) {
    struct msc_str line = {0};
    const cJSON *metrics = news_get(winner, "metrics");
    const cJSON *reevaluated = news_get(winner, "examined");
    if (!cJSON_IsObject(winner)) {
        msc_str_append(&line, "no trial has a result yet");
    } else {
        bool is_feasible = strcmp(news_get(winner, "state")->valuestring, "complete") == 0;
        msc_str_append(&line,
                       is_feasible ? "the winner" : "no trial meets every bound; the nearest");
        msc_str_printf(&line, " is trial %.0f%s", news_get(winner, "id")->valuedouble,
                       news_get(winner, "distilled") ? " with better weights" : "");
        news_write_numbers(&line, metrics, "", NULL);
        news_write_numbers(&line, reevaluated, "", metrics);
        news_write_numbers(&line, news_get(reevaluated, "validation"), "validation.", NULL);
    }
    news_tell(p, &line);
}

static void tell_files(const struct msc_processor *p, const cJSON *report) {
    struct msc_str line = {0};
    const cJSON *item = NULL;
    msc_str_printf(&line, "record %s", msc_processor__entry(p)->record);
    cJSON_ArrayForEach(item, news_get(report, "files")) {
        if (cJSON_IsString(item)) {
            msc_str_printf(&line, ", %s %s", item->string, item->valuestring);
        }
    }
    news_tell(p, &line);
}

void msc_processor__tell_end(struct msc_processor *p, const struct cJSON *report,
                             const struct msc_search_result *found) {
    struct msc_str line = {0};
    msc_str_printf(&line, "ended: %s; %zu trials in ", msc_search_end_text(found->end),
                   msc_record_n_trials(found->record));
    msc_str_append_duration(&line, found->elapsed_s);
    news_tell(p, &line);
    const cJSON *delivered = news_get(report, "delivered");
    tell_winner(p, delivered ? delivered : news_get(report, "winner"));
    tell_files(p, report);
    msc_processor__end_tensorboard(p, found->record, report);
}
