// The best trial so far on disk: strategy file at once, model now and then.
#include "pipeline/processor_internal.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "graph/onnx/onnx.h"
#include "records/record_query.h"
#include "tools/bias_edits.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SECONDS_BETWEEN_MODELS 30.0

// Has a search behind the entry, of any section or of those with its strategy file, gone on from it? Then
// what both write is the later one's.
static enum msc_status is_continued(bool *out, const struct msc_processor *p, bool by_any) {
    const char *own = msc_processor__entry(p)->strategy_file;
    *out = false;
    for (size_t i = p->index + 1; i < p->config->n_entries && !*out; i++) {
        const struct msc_config_entry *later = &p->config->entries[i];
        if (later->strategy_file && (by_any || strcmp(later->strategy_file, own) == 0)) {
            MSC_TRY(msc_processor__has_record(out, later->record));
        }
    }
    return MSC_OK;
}

enum msc_status msc_processor__find_model_path(const char **out, const struct msc_processor *p) {
    bool is_passed = false;
    MSC_TRY(is_continued(&is_passed, p, true));
    *out = is_passed ? NULL : p->model_output;
    return MSC_OK;
}

enum msc_status msc_processor__start_publishing(struct msc_processor *p) {
    bool has_edits = msc_processor__entry(p)->strategy_file && msc_env_has_edits(p->env);
    bool is_passed = false;
    p->may_publish = has_edits && p->model && msc_processor__entry(p)->is_delivered;
    p->best_id = -1;
    p->model_written_s = msc_clock_seconds();
    p->model_path = NULL;
    if (p->may_publish) {
        MSC_TRY(is_continued(&is_passed, p, false));
        MSC_TRY(msc_processor__find_model_path(&p->model_path, p));
    }
    p->may_publish = p->may_publish && !is_passed;
    return MSC_OK;
}

void msc_processor__end_publishing(struct msc_processor *p) {
    cJSON_Delete(p->best_edits);
    p->best_edits = NULL;
    p->is_strategy_due = false;
    p->is_model_due = false;
    p->may_publish = false;
    p->model_path = NULL;
}

// Which record the plan is of that no search has chosen.
static enum msc_status add_plain(cJSON *edits, const struct msc_processor *p) {
    char text[MSC_HASH_TEXT_BYTES];
    struct msc_strategy *strategy = NULL;
    struct msc_record *record = NULL;
    struct msc_hash identity;
    enum msc_status status = MSC_OK;
    cJSON_DeleteItemFromObjectCaseSensitive(edits, "plain");
    MSC_TRY_OUT(msc_strategy_from_json(&strategy, edits, "edits"));
    MSC_TRY_OUT(msc_record_open(&record, msc_processor__entry(p)->record, MSC_RECORD_HEADER, NULL));
    MSC_TRY_OUT(msc_record_identity(&identity, record));
    msc_hash_format(text, msc_strategy_plain_hash(strategy, identity));
    status = msc_json_add_text(edits, "plain", text);
out:
    msc_record_close(record);
    msc_strategy_destroy(strategy);
    return status;
}

static enum msc_status write_strategy(const struct msc_processor *p) {
    struct msc_str text = {0};
    enum msc_status status = MSC_OK;
    if (msc_processor__entry(p)->is_plain) {
        MSC_TRY(add_plain(p->best_edits, p));
    }
    msc_json_write_pretty(&text, p->best_edits);
    status = msc_str_status(&text);
    if (status == MSC_OK) {
        status = msc_file_write(msc_processor__entry(p)->strategy_file, text.data, text.length);
    }
    msc_str_finish(&text);
    return status;
}

static enum msc_status publish_write_model(struct msc_processor *p,
                                           const struct msc_record *record) {
    struct msc_strategy *strategy = NULL;
    MSC_TRY(msc_strategy_from_json(&strategy, p->best_edits, "edits"));
    enum msc_status status =
        msc_export_model(p->model->graph, strategy, p->model_path, record, p->best_id);
    msc_strategy_destroy(strategy);
    return status;
}

// The search goes on whatever becomes of a file.
static bool is_written(const struct msc_processor *p, const char *what, enum msc_status status) {
    if (status != MSC_OK) {
        msc_log(p->log, MSC_LOG_WARNING,
                "the %s could not be written; with the next best trial and at the end it is tried "
                "again: %s",
                what, msc_status_message());
    }
    return status == MSC_OK;
}

enum msc_status msc_processor__take_best(void *payload, const struct msc_trial *trial) {
    struct msc_processor *p = payload;
    cJSON *edits = NULL;
    // What breaks a bound is no result.
    if (!p->may_publish || trial->outcome.state != MSC_TRIAL_COMPLETE) {
        return MSC_OK;
    }
    MSC_TRY(msc_env_edits(p->env, trial->proposal.choices, &edits));
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

void msc_processor__take_plan(struct msc_processor *p, struct cJSON *plan) {
    cJSON_Delete(p->best_edits);
    p->best_edits = plan;
    p->is_strategy_due = true;
    p->is_model_due = true;
}

// Whether it was written; the first failure is told.
static bool is_delivered(struct msc_processor_result *result, enum msc_status status) {
    if (status != MSC_OK && result->export_status == MSC_OK) {
        result->export_status = status;
        snprintf(result->export_message, sizeof result->export_message, "%s", msc_status_message());
    }
    return status == MSC_OK;
}

void msc_processor__publish(struct msc_processor *p, const struct msc_record *record,
                            struct msc_processor_result *result) {
    if (p->is_strategy_due) {
        p->is_strategy_due = !is_delivered(result, write_strategy(p));
    }
    if (p->best_edits && p->model_path) { // now with the record's name
        p->is_model_due = !is_delivered(result, publish_write_model(p, record));
    }
}
