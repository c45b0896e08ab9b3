#include "pipeline/publisher.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "env/trial_runs.h"
#include "model/export.h"
#include "records/record_files.h"
#include "records/record_query.h"
#include "tools/strategy.h"

#include <stdio.h>
#include <string.h>

#define SECONDS_BETWEEN_MODELS 30.0

// True if a later search has begun: a search of any section if `by_any`, otherwise one with the
// same strategy file. Outputs that both searches would write then belong to the later search.
static enum msc_status is_continued(bool *out, const struct msc_config *c,
                                    const struct msc_config_entry *e, bool by_any) {
    *out = false;
    for (const struct msc_config_entry *later = e + 1; later < c->entries + c->n_entries && !*out;
         later++) {
        if (later->strategy_file &&
            (by_any || strcmp(later->strategy_file, e->strategy_file) == 0)) {
            MSC_TRY(msc_record_has_header(out, later->record));
        }
    }
    return MSC_OK;
}

enum msc_status msc_publisher_model_path(const char **out, const struct msc_setup *setup,
                                         const struct msc_config_entry *e) {
    bool is_passed = false;
    MSC_TRY(is_continued(&is_passed, setup->config, e, true));
    *out = is_passed ? NULL : setup->model_output;
    return MSC_OK;
}

enum msc_status msc_publisher_begin(struct msc_publisher *p, const struct msc_session *s) {
    const struct msc_config_entry *e = s->entry;
    bool has_edits = e->strategy_file && msc_env_has_edits(s->env);
    bool is_passed = false;
    *p = (struct msc_publisher){
        .session = s,
        .may_publish = has_edits && s->setup->model && e->is_delivered,
        .best_id = -1,
        .model_written_s = msc_clock_seconds(),
    };
    if (p->may_publish) {
        MSC_TRY(is_continued(&is_passed, s->setup->config, e, false));
        MSC_TRY(msc_publisher_model_path(&p->model_path, s->setup, e));
        // A search that removes channels has a target only to measure its winner.
        const char *target = strcmp(e->section, "prune") == 0 ? NULL : e->target;
        MSC_TRY(p->model_path ? msc_export_check(s->setup->model->graph, p->model_path, target)
                              : MSC_OK);
    }
    p->may_publish = p->may_publish && !is_passed;
    return MSC_OK;
}

void msc_publisher_finish(struct msc_publisher *p) {
    cJSON_Delete(p->best_edits);
    *p = (struct msc_publisher){0};
}

// For a section that lists no searches: adds a hash of record and plan, which shows later whether
// the strategy file was edited.
static enum msc_status add_plain(cJSON *edits, const struct msc_publisher *p) {
    char text[MSC_HASH_TEXT_BYTES];
    struct msc_strategy *strategy = NULL;
    struct msc_record *record = NULL;
    struct msc_hash identity;
    enum msc_status status = MSC_OK;
    cJSON_DeleteItemFromObjectCaseSensitive(edits, "plain");
    MSC_TRY_OUT(msc_strategy_from_json(&strategy, edits, "edits"));
    MSC_TRY_OUT(msc_record_open(&record, p->session->entry->record, MSC_RECORD_HEADER, NULL));
    MSC_TRY_OUT(msc_record_identity(&identity, record));
    msc_hash_format(text, msc_strategy_plain_hash(strategy, identity));
    status = msc_json_add_text(edits, "plain", text);
out:
    msc_record_close(record);
    msc_strategy_destroy(strategy);
    return status;
}

static enum msc_status write_strategy(const struct msc_publisher *p) {
    struct msc_str text = {0};
    enum msc_status status = MSC_OK;
    if (p->session->entry->is_plain) {
        MSC_TRY(add_plain(p->best_edits, p));
    }
    msc_json_write_pretty(&text, p->best_edits);
    status = msc_str_status(&text);
    if (status == MSC_OK) {
        status = msc_file_write(p->session->entry->strategy_file, text.data, text.length);
    }
    msc_str_finish(&text);
    return status;
}

static enum msc_status publish_write_model(struct msc_publisher *p,
                                           const struct msc_record *record) {
    struct msc_strategy *strategy = NULL;
    MSC_TRY(msc_strategy_from_json(&strategy, p->best_edits, "edits"));
    enum msc_status status = msc_export_model(p->session->setup->model->graph, strategy,
                                              p->model_path, record, p->best_id);
    msc_strategy_destroy(strategy);
    return status;
}

// True if the write succeeded. While the search runs, a failed write is only a warning.
static bool is_written(const struct msc_publisher *p, const char *what, enum msc_status status) {
    if (status != MSC_OK) {
        msc_log(
            p->session->setup->log, MSC_LOG_WARNING,
            "cannot write the %s, which is tried again after the next best trial and at the end: "
            "%s",
            what, msc_status_message());
    }
    return status == MSC_OK;
}

enum msc_status msc_publisher_take_best(void *payload, const struct msc_trial *trial) {
    struct msc_publisher *p = payload;
    cJSON *edits = NULL;
    // A trial that breaks a bound is not a result.
    if (!p->may_publish || trial->outcome.state != MSC_TRIAL_COMPLETE) {
        return MSC_OK;
    }
    MSC_TRY(msc_env_edits(p->session->env, trial->proposal.choices, &edits));
    cJSON_Delete(p->best_edits);
    p->best_edits = edits;
    p->best_id = trial->id;
    p->is_strategy_due = !is_written(p, "strategy file", write_strategy(p));
    p->is_model_due = true;
    if (p->model_path && msc_clock_seconds() - p->model_written_s >= SECONDS_BETWEEN_MODELS) {
        p->is_model_due = !is_written(p, "model", publish_write_model(p, NULL));
        p->model_written_s = msc_clock_seconds();
    }
    return MSC_OK;
}

void msc_publisher_take_plan(struct msc_publisher *p, struct cJSON *plan) {
    cJSON_Delete(p->best_edits);
    p->best_edits = plan;
    p->is_strategy_due = true;
    p->is_model_due = true;
}

// True if the write succeeded. Otherwise stores the failure in the result, if it is the first one.
static bool is_delivered(struct msc_processor_result *result, enum msc_status status) {
    if (status != MSC_OK && result->export_status == MSC_OK) {
        result->export_status = status;
        snprintf(result->export_message, sizeof result->export_message, "%s", msc_status_message());
    }
    return status == MSC_OK;
}

void msc_publisher_write(struct msc_publisher *p, const struct msc_record *record,
                         struct msc_processor_result *result) {
    if (p->is_strategy_due) {
        p->is_strategy_due = !is_delivered(result, write_strategy(p));
    }
    struct msc_trial_runs *runs = msc_trial_runs_of(p->session->env);
    if (p->best_edits && p->model_path) { // written again, so that the metadata identify the record
        if (runs) {
            msc_trial_runs_drop_caches(runs); // the model needs memory
        }
        p->is_model_due = !is_delivered(result, publish_write_model(p, record));
    }
}

enum msc_status msc_publisher_add_files(cJSON *report, const struct msc_publisher *p) {
    cJSON *files = cJSON_CreateObject();
    cJSON_DeleteItemFromObjectCaseSensitive(report, "files");
    MSC_TRY(msc_json_add(report, "files", files));
    if (!p->is_strategy_due) {
        MSC_TRY(msc_json_add_text(files, "strategy", p->session->entry->strategy_file));
    }
    return p->is_model_due || !p->model_path ? MSC_OK
                                             : msc_json_add_text(files, "model", p->model_path);
}
