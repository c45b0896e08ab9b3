// All stages in turn.
#include "pipeline/processor_internal.h"

#include "base/alloc.h"
#include "base/file.h"
#include "records/record.h"
#include "search/supervise.h"
#include "search/worker_page.h"

#include <stdatomic.h>
#include <string.h>

// A worker that was started again after a crash has the same command line, but what its predecessor
// set aside is done: that is noted, or some record was begun.
static bool is_set_aside(const struct msc_processor *p) {
    const struct msc_worker *worker = p->options.worker;
    return worker && worker->page &&
           (atomic_load(&worker->page->n_aside_bytes) != 0 ||
            (atomic_load(&worker->page->record_low) | atomic_load(&worker->page->record_high)) !=
                0);
}

static enum msc_status set_aside(struct msc_processor *p, const char *path) {
    char *aside = NULL;
    MSC_TRY(msc_record_set_aside(&aside, path, p->log));
    if (aside) {
        msc_worker_note_aside(p->options.worker, path, path, aside);
    }
    msc_free(aside);
    return MSC_OK;
}

// At once for all: what a later search started from is about to change.
static enum msc_status set_all_aside(struct msc_processor *p) {
    for (size_t i = p->first; i < p->end; i++) {
        const char *path = p->config->entries[i].record;
        const char *greedy = msc_processor__greedy_record(p, path);
        if (!greedy) {
            return msc_processor__no_memory();
        }
        MSC_TRY(msc_processor__set_given_aside(p, i));
        MSC_TRY(set_aside(p, path));
        MSC_TRY(set_aside(p, greedy));
    }
    return MSC_OK;
}

// The check costs reference kernels; a search that goes on had it when it began.
static enum msc_status run_baseline(struct msc_processor *p) {
    struct msc_config *c = p->config;
    bool is_new = false;
    for (size_t i = p->first; i < p->end; i++) {
        bool has_record = false;
        MSC_TRY(msc_processor__has_record(&has_record, c->entries[i].record));
        is_new = is_new || !has_record;
    }
    return is_new && p->model && p->model->dataset
               ? msc_model_check(p->model, &c->dataset, c->atol, c->rtol)
               : MSC_OK;
}

enum msc_status msc_processor__run_entry(struct msc_processor *p, size_t i,
                                         struct msc_processor_result *result) {
    enum msc_processor_mode mode = p->options.is_dry_run ? MSC_PROCESSOR_LOOK : MSC_PROCESSOR_RUN;
    bool is_given = false;
    if (i < p->first) {
        return p->config->entries[i].strategy_file ? msc_processor__recall(p, i) : MSC_OK;
    }
    MSC_TRY(msc_processor__is_given(&is_given, p, i));
    if (is_given) {
        return msc_processor__apply_given(p, i, result);
    }
    msc_log(p->log, MSC_LOG_INFO, "%s: %s", p->config->entries[i].name,
            p->config->entries[i].record);
    enum msc_status status = msc_processor__enter(p, i, mode);
    if (status == MSC_OK) {
        status = msc_processor__search(p, result);
    }
    msc_processor__leave(p);
    return status;
}

// A dry run finds nothing, but a record may tell what the next search starts from.
static enum msc_status recall_dry(struct msc_processor *p, size_t i) {
    const struct msc_config_entry *e = &p->config->entries[i];
    bool has_record = false;
    if (i < p->first || !e->strategy_file || p->options.restart) {
        return MSC_OK;
    }
    MSC_TRY(msc_processor__has_record(&has_record, e->record));
    enum msc_status status = has_record ? msc_processor__recall(p, i) : MSC_OK;
    return status == MSC_E_STATE ? MSC_OK : status; // it has no winner yet
}

static enum msc_status run_all_stages(struct msc_processor *p,
                                      struct msc_processor_result *result) {
    bool is_dry_run = p->options.is_dry_run;
    // Of one search alone, or before any, there is nothing to record.
    bool has_stages = p->config->stages.are_named && !p->is_from_record && !is_dry_run &&
                      !p->options.entry && !p->options.record && !p->options.agent;
    MSC_TRY(msc_processor__claim_files(p));
    MSC_TRY(is_dry_run ? MSC_OK : msc_processor__set_damaged_log_aside(p));
    if (has_stages) {
        MSC_TRY(msc_processor__open_log(p, MSC_PROCESSOR_RUN));
        MSC_TRY(msc_processor__set_damaged_aside(p));
        MSC_TRY(p->options.restart && !is_set_aside(p) ? set_all_aside(p) : MSC_OK);
        return msc_processor__run_stages(p, result);
    }
    MSC_TRY(msc_processor__load(p, is_dry_run ? MSC_PROCESSOR_LOOK : MSC_PROCESSOR_RUN));
    MSC_TRY(is_dry_run ? MSC_OK : msc_processor__set_damaged_aside(p));
    if (p->options.restart && !is_dry_run && !is_set_aside(p)) {
        MSC_TRY(set_all_aside(p));
    }
    if (!is_dry_run) {
        MSC_TRY(run_baseline(p));
    }
    // An entry with a base of its own does not ask what those before it found.
    bool is_alone = p->end == p->first + 1 && p->config->entries[p->first].base;
    for (size_t i = is_alone ? p->first : 0; i < p->end; i++) {
        MSC_TRY(msc_processor__run_entry(p, i, result));
        if (is_dry_run) {
            MSC_TRY(recall_dry(p, i));
        }
        if (result->was_cancelled || !result->is_feasible) {
            break; // nothing to go on from
        }
    }
    return MSC_OK;
}

// The caller gets the text, too; the log file would have nothing of it.
static void tell_failure(const struct msc_processor *p, enum msc_status status) {
    if (p->log_file) {
        msc_log(msc_log_file_alone(p->log_file),
                status == MSC_E_CANCELLED ? MSC_LOG_INFO : MSC_LOG_ERROR, "%s",
                msc_status_message());
    }
}

enum msc_status msc_processor_run(struct msc_processor *p, struct msc_processor_result *result) {
    *result = (struct msc_processor_result){.is_feasible = true};
    result->reports = cJSON_CreateArray();
    if (!result->reports) {
        return msc_processor__no_memory();
    }
    enum msc_status status = run_all_stages(p, result);
    if (status != MSC_OK) {
        tell_failure(p, status);
        msc_processor_result_finish(result);
    }
    return status;
}

void msc_processor_result_finish(struct msc_processor_result *result) {
    cJSON_Delete(result->reports);
    result->reports = NULL;
}
