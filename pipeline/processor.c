#include "pipeline/processor.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "pipeline/claim_files.h"
#include "pipeline/given.h"
#include "pipeline/left_outputs.h"
#include "pipeline/log_file.h"
#include "pipeline/processor_parts.h"
#include "pipeline/read_files.h"
#include "pipeline/recall.h"
#include "records/record_files.h"
#include "pipeline/run_entry.h"
#include "pipeline/run_stages.h"
#include "pipeline/session.h"
#include "pipeline/session_runtime.h"
#include "records/record.h"
#include "supervise/supervise.h"
#include "supervise/worker_page.h"

#include <stdatomic.h>
#include <string.h>

struct msc_processor {
    struct msc_setup *setup;
    struct msc_session session; // opened by msc_processor_prepare
};

// ---- Opening ----------------------------------------------------------------------------------

// Takes ownership of the setup, also on failure.
static enum msc_status make_processor(struct msc_processor **out, struct msc_setup *setup) {
    struct msc_processor *p = msc_alloc_zero(1, sizeof *p);
    if (!p) {
        msc_setup_destroy(setup);
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    p->setup = setup;
    *out = p;
    return MSC_OK;
}

enum msc_status msc_processor_open(struct msc_processor **out, const char *path,
                                   const struct msc_processor_options *options) {
    struct msc_config *config = NULL;
    struct msc_setup *setup = NULL;
    MSC_TRY(msc_config_load(&config, path, MSC_CONFIG_CODE_ALLOWED));
    MSC_TRY(msc_setup_create(&setup, config, options));
    return make_processor(out, setup);
}

enum msc_status msc_processor_open_record(struct msc_processor **out, const char *path,
                                          const struct msc_processor_options *options) {
    struct msc_setup *setup = NULL;
    MSC_TRY(msc_setup_open_record(&setup, path, options));
    return make_processor(out, setup);
}

void msc_processor_close(struct msc_processor *p) {
    if (!p) {
        return;
    }
    msc_session_close(&p->session);
    msc_setup_destroy(p->setup);
    msc_free(p);
}

const struct msc_config *msc_processor_config(const struct msc_processor *p) {
    return p->setup->config;
}

// ---- Opening a record to look at it -----------------------------------------------------------

enum msc_status msc_processor_prepare(struct msc_processor *p) {
    MSC_TRY(msc_setup_load(p->setup, MSC_SETUP_LOOK));
    return msc_session_open(&p->session, p->setup, p->setup->first, MSC_SETUP_LOOK);
}

void msc_processor__release(struct msc_processor *p) {
    msc_session_close(&p->session);
    msc_model_close(p->setup->model);
    p->setup->model = NULL;
}

struct msc_env *msc_processor_env(const struct msc_processor *p) {
    return p->session.env;
}

const char *msc_processor_numerics(const struct msc_processor *p) {
    return msc_setup_numerics(p->setup);
}

const struct msc_graph *msc_processor_graph(const struct msc_processor *p) {
    return p->setup->model ? p->setup->model->graph : NULL;
}

struct msc_setup *msc_processor__setup(const struct msc_processor *p) {
    return p->setup;
}

enum msc_status msc_processor_files(struct msc_file_set *files, const struct msc_processor *p) {
    const struct msc_setup *setup = p->setup;
    const struct msc_config *c = setup->config;
    const struct msc_config_entry *e = &c->entries[setup->first];
    MSC_TRY(msc_file_set_read(files, c->is_stored ? "the record" : "the configuration", c->path));
    MSC_TRY(msc_read_files_add(files, c, setup->end, &setup->options));
    for (const struct msc_record_file *f = msc_record_file_kinds; f->ending; f++) {
        const char *path = msc_record_file(&files->arena, e->record, f->ending);
        MSC_TRY(MSC_ALLOCATED(path));
        MSC_TRY(msc_file_set_read(files, f->what, path));
    }
    return MSC_OK;
}

// ---- Running ----------------------------------------------------------------------------------

// True if an earlier worker of this command has already set the old records aside: the worker has
// noted this in its page, or has begun a record. A worker that starts after a crash has the same
// command line, so --restart must not take effect twice.
static bool is_set_aside(const struct msc_setup *setup) {
    const struct msc_worker *worker = setup->options.worker;
    return worker && worker->page &&
           (atomic_load(&worker->page->n_aside_bytes) != 0 ||
            (atomic_load(&worker->page->record_low) | atomic_load(&worker->page->record_high)) !=
                0);
}

static enum msc_status set_aside(struct msc_setup *setup, const char *path) {
    char *aside = NULL;
    MSC_TRY(msc_record_set_aside(&aside, path, setup->log));
    if (aside) {
        msc_worker_note_aside(setup->options.worker, path, path, aside);
    }
    msc_free(aside);
    return MSC_OK;
}

// Sets all records aside at once, before any search changes the results that later searches start
// from.
static enum msc_status set_all_aside(struct msc_setup *setup) {
    for (size_t i = setup->first; i < setup->end; i++) {
        const char *path = setup->config->entries[i].record;
        const char *greedy = msc_record_sibling(&setup->arena, path, "greedy");
        MSC_TRY(MSC_ALLOCATED(greedy));
        MSC_TRY(msc_given_set_aside(setup, i));
        MSC_TRY(set_aside(setup, path));
        MSC_TRY(set_aside(setup, greedy));
    }
    return MSC_OK;
}

// Checks the backend against the reference kernels if any search is new. A search that continues
// was checked when it began.
static enum msc_status run_baseline(struct msc_setup *setup) {
    struct msc_config *c = setup->config;
    bool is_new = false;
    for (size_t i = setup->first; i < setup->end; i++) {
        bool has_record = false;
        MSC_TRY(msc_record_has_header(&has_record, c->entries[i].record));
        is_new = is_new || !has_record;
    }
    return is_new && setup->model && setup->model->dataset
               ? msc_model_check(setup->model, &c->dataset, c->atol, c->rtol)
               : MSC_OK;
}

// A dry run has no result of its own, so the next search starts from the result in the entry's
// record, if there is one.
static enum msc_status recall_dry(struct msc_setup *setup, size_t i) {
    const struct msc_config_entry *e = &setup->config->entries[i];
    bool has_record = false;
    if (i < setup->first || !e->strategy_file || setup->options.restart) {
        return MSC_OK;
    }
    MSC_TRY(msc_record_has_header(&has_record, e->record));
    enum msc_status status = has_record ? msc_recall(setup, i) : MSC_OK;
    return status == MSC_E_STATE ? MSC_OK : status; // the record has no winner yet
}

static enum msc_status run_all_stages(struct msc_setup *setup,
                                      struct msc_processor_result *result) {
    bool is_dry_run = setup->options.is_dry_run;
    // Stages are not recorded for a single search, or in a dry run.
    bool has_stages = setup->config->stages.are_named && !setup->config->is_stored && !is_dry_run &&
                      !setup->options.entry && !setup->options.record && !setup->options.agent;
    MSC_TRY(msc_session_check_runtimes(setup));
    MSC_TRY(msc_claim_files(setup));
    MSC_TRY(is_dry_run ? MSC_OK : msc_left_outputs_set_log_aside(setup));
    if (has_stages) {
        MSC_TRY(msc_setup_open_log(setup, MSC_SETUP_RUN));
        MSC_TRY(msc_left_outputs_set_aside(setup));
        MSC_TRY(setup->options.restart && !is_set_aside(setup) ? set_all_aside(setup) : MSC_OK);
        return msc_run_stages(setup, result);
    }
    MSC_TRY(msc_setup_load(setup, is_dry_run ? MSC_SETUP_LOOK : MSC_SETUP_RUN));
    MSC_TRY(is_dry_run ? MSC_OK : msc_left_outputs_set_aside(setup));
    if (setup->options.restart && !is_dry_run && !is_set_aside(setup)) {
        MSC_TRY(set_all_aside(setup));
    }
    if (!is_dry_run) {
        MSC_TRY(run_baseline(setup));
    }
    // An entry with its own base does not need the results of earlier entries.
    bool is_alone = setup->end == setup->first + 1 && setup->config->entries[setup->first].base;
    for (size_t i = is_alone ? setup->first : 0; i < setup->end; i++) {
        MSC_TRY(msc_run_entry(setup, i, result));
        if (is_dry_run) {
            MSC_TRY(recall_dry(setup, i));
        }
        if (result->was_cancelled || !result->is_feasible) {
            break; // later entries have nothing to start from
        }
    }
    return MSC_OK;
}

// Writes the error to the log file; the caller reports it elsewhere.
static void tell_failure(const struct msc_setup *setup, enum msc_status status) {
    if (setup->log_file) {
        msc_log(msc_log_file_alone(setup->log_file),
                status == MSC_E_CANCELLED ? MSC_LOG_INFO : MSC_LOG_ERROR, "%s",
                msc_status_message());
    }
}

enum msc_status msc_processor_run(struct msc_processor *p, struct msc_processor_result *result) {
    *result = (struct msc_processor_result){.is_feasible = true};
    result->reports = cJSON_CreateArray();
    MSC_TRY(MSC_ALLOCATED(result->reports));
    enum msc_status status = run_all_stages(p->setup, result);
    if (status != MSC_OK) {
        tell_failure(p->setup, status);
        msc_processor_result_finish(result);
    }
    return status;
}
