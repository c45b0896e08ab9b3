#include "pipeline/stage_greedy.h"

#include "base/file.h"
#include "base/json.h"
#include "pipeline/base_strategy.h"
#include "pipeline/header_config.h"
#include "records/record_files.h"
#include "pipeline/session_report.h"
#include "pipeline/session_search.h"
#include "records/record_query.h"

// Makes the greedy agent with all its parameters, as the record's header needs them.
static enum msc_status make_agent(struct msc_config_entry *e, struct msc_config *c) {
    e->agent_said = cJSON_CreateObject();
    MSC_TRY(msc_json_add_text(e->agent_said, "type", "grid_search"));
    MSC_TRY(msc_json_add_text(e->agent_said, "mode", "greedy"));
    return msc_config_resolve_agent(c, e->name, e->agent_said, &e->agent);
}

// If the record exists, keeps its agent.
static enum msc_status keep_agent(struct msc_config_entry *e) {
    struct msc_record *record = NULL;
    if (!msc_file_exists(e->record)) {
        return MSC_OK;
    }
    enum msc_status status = msc_record_open(&record, e->record, MSC_RECORD_HEADER, NULL);
    if (status == MSC_OK) {
        const cJSON *header = msc_record_header(record);
        status = msc_header_config_keep_agent(e, msc_json_get(header, "config"));
        msc_record_close(record);
    }
    return status == MSC_E_NOT_FOUND ? MSC_OK : status;
}

static void compare_with_record(const struct msc_session *s, const struct msc_record *record,
                                const struct msc_trial *winner) {
    struct msc_record_line best;
    int metric = s->goal.objectives[0].metric;
    if (msc_record_best(&best, record) && best.trial.outcome.state == MSC_TRIAL_COMPLETE) {
        const double *metrics = best.trial.outcome.metrics;
        double gain = metrics[metric] - winner->outcome.metrics[metric];
        gain = s->goal.objectives[0].is_maximised ? gain : -gain;
        if (gain > 0) {
            msc_log(s->setup->log, MSC_LOG_WARNING,
                    "the greedy baseline search found a better plan: %s %.6g against %.6g",
                    msc_env_space(s->env)->metrics[metric].name, metrics[metric],
                    winner->outcome.metrics[metric]);
        }
    }
}

// Runs the search of the greedy entry. Adds its report to the report of the session's search.
static enum msc_status search_greedily(const struct msc_session *s, struct msc_news *news,
                                       struct msc_processor_result *result, cJSON *report,
                                       const struct msc_trial *winner) {
    struct msc_session_observers observers = {.news = news};
    struct msc_search_options o;
    struct msc_search_result found = {0};
    cJSON *config = NULL;
    cJSON *greedy = NULL;
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_header_config_make(&config, s->setup->config, s->entry));
    msc_session_search_options(&o, s, config, &observers);
    MSC_TRY_OUT(msc_search_run(&found, &o));
    MSC_TRY_OUT(msc_session_make_report(&greedy, s, news, &found));
    result->was_cancelled = found.end == MSC_SEARCH_END_CANCELLED;
    compare_with_record(s, found.record, winner);
    msc_news_end(news, greedy, &found);
    status = msc_json_add(report, "greedy", greedy);
out:
    msc_search_result_finish(&found);
    cJSON_Delete(config);
    return status;
}

enum msc_status msc_stage_greedy(const struct msc_session *s, const struct msc_news *news,
                                 struct msc_processor_result *result, cJSON *report,
                                 const struct msc_trial *winner) {
    struct msc_setup *setup = s->setup;
    struct msc_config_entry e = *s->entry;
    struct msc_session greedy = *s;
    struct msc_news own = *news;
    enum msc_status status = MSC_OK;
    e.record = msc_record_sibling(&setup->arena, s->entry->record, "greedy");
    e.agent = NULL;
    e.agent_said = NULL;
    e.baseline = MSC_CONFIG_BASELINE_UNIFORM;
    e.race = NULL; // the greedy search measures each trial in full
    greedy.entry = &e;
    greedy.record = NULL;
    greedy.race = (struct msc_race){0};
    own.session = &greedy;
    MSC_TRY_OUT(MSC_ALLOCATED(e.record));
    MSC_TRY_OUT(make_agent(&e, setup->config));
    MSC_TRY_OUT(keep_agent(&e));
    MSC_TRY_OUT(msc_base_strategy_copy(setup, &e, s->base, s->entry->record));
    msc_log(setup->log, MSC_LOG_INFO, "%s: runs the greedy baseline search, record %s", e.name,
            e.record);
    status = search_greedily(&greedy, &own, result, report, winner);
out:
    msc_news_close(&own);
    cJSON_Delete(e.agent);
    cJSON_Delete(e.agent_said);
    return status;
}
