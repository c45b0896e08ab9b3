#include "pipeline/after.h"

#include "base/json.h"
#include "pipeline/session_report.h"
#include "pipeline/session_runtime.h"
#include "pipeline/stage_distill.h"
#include "pipeline/stage_greedy.h"
#include "pipeline/stage_profile.h"
#include "pipeline/stage_rerank.h"
#include "pipeline/stage_runtime.h"
#include "records/record_query.h"

struct after {
    struct msc_session *session;
    struct msc_publisher *publisher;
    struct msc_news *news;
    struct msc_processor_result *result;
    struct msc_search_result *found;
    cJSON *report;              // borrowed from `result`
    struct msc_trial winner;    // best trial of the search
    struct msc_trial delivered; // the winner, or the trial that rerank puts first
};

static bool is_cancelled(const struct after *a) {
    return a->found->end == MSC_SEARCH_END_CANCELLED;
}

static bool is_always(const struct after *a) {
    (void)a;
    return true;
}

// If a stage is cancelled, the search counts as cancelled.
static enum msc_status settle(struct after *a, enum msc_status status) {
    if (status == MSC_E_CANCELLED) {
        a->found->end = MSC_SEARCH_END_CANCELLED;
        return MSC_OK;
    }
    return status;
}

static enum msc_status write_files(struct after *a) {
    msc_publisher_write(a->publisher, a->found->record, a->result);
    return msc_publisher_add_files(a->report, a->publisher);
}

static enum msc_status deliver(struct after *a, const struct msc_trial *trial) {
    if (a->publisher->best_id != trial->id) {
        MSC_TRY(msc_publisher_take_best(a->publisher, trial));
    }
    return a->publisher->may_publish ? write_files(a) : MSC_OK;
}

// ---- The winner -------------------------------------------------------------------------------

static enum msc_status run_winner(struct after *a) {
    return deliver(a, &a->winner);
}

// Delivers the trial that rerank puts first, if it is not the winner. The next entries start from
// this trial.
static enum msc_status run_delivered(struct after *a) {
    if (a->delivered.id != a->winner.id) {
        MSC_TRY(deliver(a, &a->delivered));
    }
    return msc_setup_keep(a->session->setup, a->session->env, a->delivered.proposal.choices);
}

// ---- Measurements after the search ------------------------------------------------------------

static enum msc_status keep_measured(struct after *a, enum msc_status status) {
    if (status != MSC_OK) {
        return settle(a, status);
    }
    return msc_session_keep_report(a->session, a->found->record, a->report);
}

static bool is_rerank_wanted(const struct after *a) {
    return !is_cancelled(a) && a->session->entry->rerank && a->session->setup->model &&
           msc_env_has_edits(a->session->env);
}

static enum msc_status run_rerank(struct after *a) {
    return keep_measured(
        a, msc_stage_rerank(a->session, a->news, a->report, a->found->record, &a->delivered));
}

static bool is_runtime_wanted(const struct after *a) {
    return !is_cancelled(a) && !is_rerank_wanted(a) && msc_session_has_runtime(a->session);
}

static enum msc_status run_runtime(struct after *a) {
    return keep_measured(
        a, msc_stage_runtime(a->session, a->news, a->report, a->found->record, &a->delivered));
}

// ---- Better weights ---------------------------------------------------------------------------

static bool is_distill_wanted(const struct after *a) {
    return !is_cancelled(a) && a->session->entry->distill && a->session->setup->model;
}

// Improves the weights of the delivered plan. The next entries start from the improved plan.
static enum msc_status run_distill(struct after *a) {
    cJSON *plan = NULL;
    enum msc_status status =
        msc_stage_distill(&plan, a->session, a->news, a->report, a->found->record, &a->delivered);
    if (status != MSC_OK || !plan) {
        return settle(a, status);
    }
    status = msc_setup_keep_plan(a->session->setup, plan);
    if (status != MSC_OK || !a->publisher->may_publish) {
        cJSON_Delete(plan);
        return status;
    }
    msc_publisher_take_plan(a->publisher, plan);
    return write_files(a);
}

// ---- The end, and comparisons -----------------------------------------------------------------

static enum msc_status run_end(struct after *a) {
    msc_stage_runtime_check(a->session, a->report, a->result);
    a->result->was_cancelled = is_cancelled(a);
    msc_news_end(a->news, a->report, a->found);
    return MSC_OK;
}

static bool is_greedy_wanted(const struct after *a) {
    return !is_cancelled(a) && a->session->entry->baseline == MSC_CONFIG_BASELINE_GREEDY;
}

static enum msc_status run_greedy(struct after *a) {
    return msc_stage_greedy(a->session, a->news, a->result, a->report, &a->winner);
}

static bool is_profile_wanted(const struct after *a) {
    const struct msc_setup *setup = a->session->setup;
    return !is_cancelled(a) && setup->config->profile_repeat > 0 && setup->model;
}

static enum msc_status run_profile(struct after *a) {
    const struct msc_setup *setup = a->session->setup;
    return msc_stage_profile(setup, a->report,
                             msc_env_has_edits(a->session->env) ? setup->found : NULL);
}

// ---- The table --------------------------------------------------------------------------------

// To add a stage, write stage_<name>.c and add a row here: when it is wanted, and how it runs.
static const struct {
    const char *name;
    bool (*is_wanted)(const struct after *a);
    enum msc_status (*run)(struct after *a);
} steps[] = {
    {"winner", is_always, run_winner},           {"rerank", is_rerank_wanted, run_rerank},
    {"runtime", is_runtime_wanted, run_runtime}, {"delivered", is_always, run_delivered},
    {"distill", is_distill_wanted, run_distill}, {"end", is_always, run_end},
    {"greedy", is_greedy_wanted, run_greedy},    {"profile", is_profile_wanted, run_profile},
};

static enum msc_status run_steps(struct after *a) {
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        MSC_TRY(steps[i].is_wanted(a) ? steps[i].run(a) : MSC_OK);
    }
    return MSC_OK;
}

enum msc_status msc_after_search(struct msc_session *s, struct msc_publisher *publisher,
                                 struct msc_news *news, struct msc_processor_result *result,
                                 struct msc_search_result *found) {
    struct msc_record_line line;
    cJSON *report = NULL;
    MSC_TRY(msc_session_make_report(&report, s, news, found));
    bool has_best = msc_record_best(&line, found->record);
    MSC_TRY(msc_json_push(result->reports, report));
    MSC_TRY(msc_json_add_text(report, "entry", s->entry->name));
    result->was_cancelled = found->end == MSC_SEARCH_END_CANCELLED;
    bool is_complete = has_best && line.trial.outcome.state == MSC_TRIAL_COMPLETE;
    if (!s->entry->is_delivered || !is_complete) {
        if (s->entry->is_delivered) {
            // Counts as feasible if it was cancelled: it may still find a winner when it continues.
            result->is_feasible = result->was_cancelled;
        }
        msc_news_end(news, report, found);
        return MSC_OK;
    }
    struct after a = {
        .session = s,
        .publisher = publisher,
        .news = news,
        .result = result,
        .found = found,
        .report = report,
        .winner = line.trial,
        .delivered = line.trial,
    };
    return run_steps(&a);
}
