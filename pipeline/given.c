#include "pipeline/given.h"

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "graph/target.h"
#include "model/export.h"
#include "pipeline/publisher.h"
#include "records/record_files.h"
#include "pipeline/stage_profile.h"
#include "model/strategies.h"
#include "records/record_query.h"
#include "supervise/supervise.h"
#include "tools/strategy.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- Given, or the section's own --------------------------------------------------------------

// True if the strategy is the unchanged result of the entry's record.
static enum msc_status is_own(bool *out, const struct msc_config_entry *e,
                              const struct msc_strategy *s) {
    struct msc_record *record = NULL;
    struct msc_hash plain, identity;
    bool has_record = false;
    *out = false;
    MSC_TRY(msc_record_has_header(&has_record, e->record));
    if (!msc_strategy_is_plain(&plain, s) || !has_record) {
        return MSC_OK;
    }
    MSC_TRY(msc_record_open(&record, e->record, MSC_RECORD_HEADER, NULL));
    enum msc_status status = msc_record_identity(&identity, record);
    *out = status == MSC_OK && msc_hash_equal(plain, msc_strategy_plain_hash(s, identity));
    msc_record_close(record);
    return status;
}

static enum msc_status fail_damaged(const struct msc_config_entry *e, enum msc_status status) {
    char why[400];
    snprintf(why, sizeof why, "%s", msc_status_message());
    return status == MSC_E_NOMEM
               ? status
               : MSC_FAIL(status,
                          "%s; or use --restart: %s then makes the usual plan, and this file is "
                          "renamed",
                          why, e->name);
}

// Like msc_given_is, but as if --restart were not given.
static enum msc_status find_given(bool *out, const struct msc_config_entry *e) {
    struct msc_strategy *s = NULL;
    bool own = false;
    *out = false;
    if (!e->is_plain || !e->is_delivered || !msc_file_exists(e->strategy_file)) {
        return MSC_OK;
    }
    enum msc_status status = msc_strategy_load(&s, e->strategy_file);
    if (status != MSC_OK) {
        return fail_damaged(e, status);
    }
    status = is_own(&own, e, s);
    msc_strategy_destroy(s);
    *out = !own;
    return status;
}

enum msc_status msc_given_is(bool *out, const struct msc_setup *setup, size_t entry) {
    bool is_anew = setup->options.restart && entry >= setup->first && entry < setup->end;
    *out = false;
    return is_anew ? MSC_OK : find_given(out, &setup->config->entries[entry]);
}

enum msc_status msc_given_set_aside(struct msc_setup *setup, size_t entry) {
    const struct msc_config_entry *e = &setup->config->entries[entry];
    const char *kept = NULL;
    bool is_given = false;
    enum msc_status status = find_given(&is_given, e);
    if (status != MSC_OK && status != MSC_E_NOMEM && status != MSC_E_IO) {
        is_given = true; // a file that cannot be read counts as given, so that it is not lost
        status = MSC_OK;
    }
    if (status != MSC_OK || !is_given) {
        return status;
    }
    MSC_TRY(msc_file_set_aside(&kept, &setup->arena, e->strategy_file));
    msc_worker_note_aside(setup->options.worker, e->record, e->strategy_file, kept);
    msc_log(setup->log, MSC_LOG_INFO, "%s: the old strategy file is now %s", e->strategy_file,
            kept);
    return MSC_OK;
}

// ---- Applying it ------------------------------------------------------------------------------

static enum msc_status check_target(const struct msc_config_entry *e,
                                    const struct msc_strategy *s) {
    const struct msc_target *target = msc_strategy_scheme(s).target;
    const struct msc_target *wanted = msc_target_find(e->target);
    return !target || e->is_target_default || target == wanted
               ? MSC_OK
               : MSC_FAIL(MSC_E_STATE,
                          "%s: the strategy is for target %s, but %s has target %s; set "
                          "\"target\": \"%s\"",
                          e->strategy_file, target->name, e->section, e->target, target->name);
}

// Merges the strategy with the results of earlier entries.
static enum msc_status add_to_found(struct msc_strategy **out, const struct msc_setup *setup,
                                    const struct msc_config_entry *e,
                                    const struct msc_strategy *s) {
    bool prunes = setup->found && msc_strategy_prunes(setup->found);
    if (prunes && !msc_strategy_prunes_as(s, setup->found)) {
        return MSC_FAIL(
            MSC_E_STATE,
            "%s: the strategy does not fit the model that the sections before %s produce; "
            "restore the right file",
            e->strategy_file, e->section);
    }
    MSC_TRY(msc_strategy_create(out, NULL));
    enum msc_status status =
        setup->found && !prunes ? msc_strategy_merge(*out, setup->found) : MSC_OK;
    if (status == MSC_OK) {
        status = msc_strategy_merge(*out, s);
    }
    if (status != MSC_OK) {
        msc_strategy_destroy(*out);
    }
    return status;
}

static enum msc_status take(struct msc_setup *setup, const struct msc_config_entry *e) {
    struct msc_strategy *s = NULL, *found = NULL;
    MSC_TRY(msc_strategy_load(&s, e->strategy_file));
    enum msc_status status = msc_strategy_check_weights(s, setup->model->graph);
    if (status == MSC_OK) {
        status = check_target(e, s);
    }
    if (status == MSC_OK) {
        status = add_to_found(&found, setup, e, s);
    }
    msc_strategy_destroy(s);
    if (status != MSC_OK) {
        return fail_damaged(e, status);
    }
    msc_strategy_destroy(setup->found);
    setup->found = found;
    return MSC_OK;
}

enum msc_status msc_given_take(struct msc_setup *setup, size_t entry) {
    return take(setup, &setup->config->entries[entry]);
}

// ---- Its report -------------------------------------------------------------------------------

static enum msc_status add_measured(cJSON *out, const struct msc_setup *setup,
                                    const struct msc_dataset *samples) {
    struct msc_strategy_measured m = {.accuracy = NAN};
    struct msc_arena arena = {0};
    const cJSON *name = NULL;
    size_t n = 0;
    const char **tensors = msc_arena_array(
        &arena, (size_t)cJSON_GetArraySize(setup->config->outputs) + 1, sizeof *tensors);
    if (!tensors) {
        msc_arena_finish(&arena);
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    cJSON_ArrayForEach(name, setup->config->outputs) {
        tensors[n++] = name->valuestring;
    }
    enum msc_status status =
        msc_strategy_measure(&m, setup->found, setup->model, samples, tensors, n);
    msc_arena_finish(&arena);
    MSC_TRY(status);
    MSC_TRY(msc_json_add_number(out, "distill_loss", m.loss));
    if (isnan(m.accuracy)) {
        return MSC_OK;
    }
    MSC_TRY(msc_json_add_number(out, "accuracy", m.accuracy));
    return msc_json_add_number(out, "float_accuracy", m.float_accuracy);
}

static enum msc_status measure_all(cJSON *applied, const struct msc_setup *setup) {
    const struct msc_model *m = setup->model;
    cJSON *metrics = cJSON_CreateObject();
    MSC_TRY(msc_json_add(applied, "metrics", metrics));
    MSC_TRY(add_measured(metrics, setup, m->dataset));
    if (!m->validation) {
        return MSC_OK;
    }
    cJSON *validation = cJSON_CreateObject();
    MSC_TRY(msc_json_add(applied, "validation", validation));
    return add_measured(validation, setup, m->validation);
}

static void tell_applied(const struct msc_setup *setup, const struct msc_config_entry *e,
                         const cJSON *applied, const char *model) {
    const cJSON *loss = msc_json_get(msc_json_get(applied, "metrics"), "distill_loss");
    msc_log(setup->news, MSC_LOG_INFO, "%s: %s is applied unchanged, distill_loss %.5g%s%s",
            e->name, e->strategy_file, loss->valuedouble, model ? ", model " : "",
            model ? model : "");
    if (e->distill) {
        msc_log(setup->log, MSC_LOG_WARNING,
                "%s: distill is skipped: it improves only plans that a search finds, and %s was "
                "given",
                e->name, e->strategy_file);
    }
}

static enum msc_status add_applied(const struct msc_setup *setup, const struct msc_config_entry *e,
                                   cJSON *report) {
    const char *path = NULL;
    cJSON *applied = cJSON_CreateObject(), *files = cJSON_CreateObject();
    enum msc_status status = msc_json_add(report, "applied", applied);
    if (status != MSC_OK) {
        cJSON_Delete(files);
        return status;
    }
    MSC_TRY(msc_json_add(report, "files", files));
    MSC_TRY(msc_json_add_text(applied, "strategy", e->strategy_file));
    MSC_TRY(msc_json_add_number(applied, "edits", (double)msc_strategy_n_edits(setup->found)));
    MSC_TRY(msc_json_add_bool(applied, "prunes", msc_strategy_prunes(setup->found)));
    MSC_TRY(measure_all(applied, setup));
    MSC_TRY(msc_publisher_model_path(&path, setup, e));
    if (path) {
        MSC_TRY(msc_export_model(setup->model->graph, setup->found, path, NULL, -1));
        MSC_TRY(msc_json_add_text(files, "model", path));
    }
    tell_applied(setup, e, applied, path);
    return setup->config->profile_repeat > 0 ? msc_stage_profile(setup, report, setup->found)
                                             : MSC_OK;
}

static enum msc_status add_dry(cJSON *report, const struct msc_config_entry *e) {
    struct msc_str text = {0};
    msc_str_printf(&text, "%s is applied unchanged: nothing is searched\n", e->strategy_file);
    enum msc_status status = msc_str_status(&text);
    if (status == MSC_OK) {
        status = msc_json_add_text(report, "estimate_text", msc_str_text(&text));
    }
    msc_str_finish(&text);
    return status;
}

enum msc_status msc_given_apply(struct msc_setup *setup, size_t entry,
                                struct msc_processor_result *result) {
    const struct msc_config_entry *e = &setup->config->entries[entry];
    MSC_TRY(take(setup, e));
    cJSON *report = cJSON_CreateObject();
    MSC_TRY(msc_json_push(result->reports, report));
    MSC_TRY(msc_json_add_text(report, "entry", e->name));
    enum msc_status status =
        setup->options.is_dry_run ? add_dry(report, e) : add_applied(setup, e, report);
    result->was_cancelled = status == MSC_E_CANCELLED;
    return result->was_cancelled ? MSC_OK : status;
}
