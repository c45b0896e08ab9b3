#include "cli/hooks.h"
#include "cli/output.h"
#include "cli/searching.h"
#include "cli/serving.h"
#include "cli/table.h"

#include "base/json.h"
#include "base/process.h"
#include "base/shown.h"
#include "base/str.h"
#include "base/style.h"
#include "kernels/engine/backends.h"
#include "pipeline/log_file.h"
#include "results/report.h"
#include "results/report_drop.h"
#include "supervise/supervise.h"

#include <stdio.h>
#include <string.h>

enum msc_status msc_cli_fill_options(struct msc_processor_options *out,
                                     const struct msc_cli_call *call,
                                     const struct msc_cli_common *common) {
    out->device = common->device;
    out->isa = common->isa;
    out->n_threads = common->threads > 0 ? (int)common->threads : 0;
    out->memory_bytes = common->memory_bytes;
    out->plugins = common->operators.items;
    out->n_plugins = common->operators.n;
    out->log = &call->console->log;
    out->has_log_level = common->log_level >= 0;
    out->log_level = out->has_log_level ? msc_log_level_at((size_t)common->log_level) : 0;
    msc_console_open_up(call->console); // the configuration filters messages
    return msc_cli_bindings(&out->bindings, &out->n_bindings, &common->bind, call->arena);
}

enum msc_status msc_cli_fill_stoppable(struct msc_processor_options *out, struct msc_worker *worker,
                                       const struct msc_cli_call *call,
                                       const struct msc_cli_common *common) {
    // Static, because a signal may arrive until the process ends.
    static struct msc_cancel cancel;
    MSC_TRY(msc_cli_fill_options(out, call, common));
    msc_worker_stop_at_once();
    MSC_TRY(msc_worker_open(worker, &cancel));
    out->cancel = &cancel;
    return MSC_OK;
}

enum msc_status msc_cli_fill_model_options(struct msc_model_options *out,
                                           const struct msc_cli_call *call,
                                           const struct msc_cli_common *common) {
    MSC_TRY(common->isa ? msc_backend_set_isa(common->isa) : MSC_OK);
    out->device = common->device ? common->device : out->device;
    out->n_threads = common->threads > 0 ? (int)common->threads : 0;
    out->memory_bytes = common->memory_bytes;
    out->plugins = common->operators.items;
    out->n_plugins = common->operators.n;
    out->log = &call->console->log;
    return msc_cli_bindings(&out->bindings, &out->n_bindings, &common->bind, call->arena);
}

// The receivers of progress: console and hooks.
struct audience {
    struct msc_console *console;
    struct msc_hooks *hooks;
};

static void tell_progress(void *payload, const struct msc_config_entry *entry,
                          const struct msc_search_progress *progress, double best) {
    const struct audience *a = payload;
    msc_console_progress(a->console, entry->name, progress, best);
    msc_hooks_progress(a->hooks, entry->name, progress, best);
}

static void show_measuring(void *payload, const struct msc_config_entry *entry, const char *what,
                           double left_s) {
    const struct audience *a = payload;
    msc_console_measuring(a->console, entry->name, what, left_s);
}

// Runs --on-end for each search that ended, or once if the command failed.
static void tell_hooks_end(struct msc_hooks *hooks, enum msc_status status, const cJSON *reports) {
    const cJSON *report = NULL;
    if (status != MSC_OK) {
        char message[512];
        snprintf(message, sizeof message, "%s", msc_status_message());
        msc_hooks_end(hooks, NULL, message);
        (void)msc_status_restore(status, message); // a hook's error must not replace the search's
        return;
    }
    cJSON_ArrayForEach(report, reports) {
        if (msc_json_get(report, "end")) {
            msc_hooks_end(hooks, report, NULL);
        }
    }
}

// ---- The result -------------------------------------------------------------------------------

static void write_files(struct msc_str *out, const cJSON *report) {
    static const char *const keys[] = {"strategy", "model"};
    const cJSON *files = msc_json_get(report, "files");
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (msc_json_text_of(files, keys[i])) {
            msc_str_printf(out, "%s: ", keys[i]);
            msc_shown_append(out, msc_json_text_of(files, keys[i]));
            msc_str_char(out, '\n');
        }
    }
}

static void write_numbers(struct msc_str *out, const char *before, const cJSON *object) {
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, object) {
        msc_str_printf(out, "  %s%s: %.5g\n", before, item->string, item->valuedouble);
    }
}

// Writes the result of a section that applies a strategy file without a search.
static void write_applied(struct msc_str *out, const cJSON *applied) {
    msc_str_append(out, "applied: ");
    msc_shown_append(out, msc_json_text_of(applied, "strategy"));
    msc_str_append(out, ", unchanged; --restart makes a new plan\n");
    write_numbers(out, "", msc_json_get(applied, "metrics"));
    write_numbers(out, "validation.", msc_json_get(applied, "validation"));
}

static void write_latency(struct msc_str *out, const cJSON *report) {
    const cJSON *profile = msc_json_get(report, "profile");
    const cJSON *row = NULL;
    cJSON_ArrayForEach(row, profile) {
        double values[3] = {0};
        static const char *const keys[] = {"median_us", "p10_us", "p90_us"};
        for (size_t i = 0; i < 3; i++) {
            const cJSON *item = msc_json_get(row, keys[i]);
            values[i] = item ? item->valuedouble : 0;
        }
        msc_str_printf(out, "latency of one sample on one thread, %s: %.4g us (%.4g to %.4g)\n",
                       row->string, values[0], values[1], values[2]);
    }
}

static enum msc_status write_report(struct msc_str *out, const cJSON *report) {
    if (msc_json_text_of(report, "estimate_text")) {
        msc_shown_append_lines(out, msc_json_text_of(report, "estimate_text"));
        return MSC_OK;
    }
    const cJSON *applied = msc_json_get(report, "applied");
    if (applied) {
        write_applied(out, applied);
    } else {
        MSC_TRY(msc_report_text_folded(out, report, msc_cli_terminal_columns()));
    }
    write_files(out, report);
    const cJSON *greedy = msc_json_get(report, "greedy");
    if (greedy) {
        msc_str_append(out, "\nthe greedy baseline search:\n");
        MSC_TRY(msc_report_text_folded(out, greedy, msc_cli_terminal_columns()));
    }
    write_latency(out, report);
    return MSC_OK;
}

// Writes the joint at which the compressed model differs most from the original one.
static void write_track(struct msc_str *out, const cJSON *report) {
    const cJSON *fall_db = msc_json_get(report, "fall_db");
    msc_str_append(out, "track: ");
    if (fall_db) {
        msc_shown_append(out, msc_json_text_of(report, "worst"));
        msc_str_printf(out, " falls most, by %.1f dB; ", fall_db->valuedouble);
    } else {
        msc_str_append(out, "nothing differs; ");
    }
    msc_shown_append(out, msc_json_text_of(report, "file"));
    msc_str_char(out, '\n');
}

static enum msc_status print_reports(const struct msc_console *console, const cJSON *reports) {
    struct msc_str text = {.has_styles = console->has_output_colors};
    const cJSON *report = NULL;
    enum msc_status status = MSC_OK;
    cJSON_ArrayForEach(report, reports) {
        if (msc_json_text_of(report, "stage")) {
            write_track(&text, report);
            continue;
        }
        if (cJSON_GetArraySize(reports) > 1) {
            msc_str_append(&text, text.length > 0 ? "\n" : "");
            msc_style_begin(&text, MSC_STYLE_HEADING);
            msc_str_append(&text, "search ");
            msc_shown_append(&text, msc_json_text_of(report, "entry"));
            msc_style_end(&text);
            msc_str_char(&text, '\n');
        }
        MSC_TRY_OUT(write_report(&text, report));
    }
    status = msc_cli_print_str(&text);
out:
    msc_str_finish(&text);
    return status;
}

// True if the plans of the search in this record edit a model.
static bool has_edits(const struct msc_config *config, const char *record) {
    for (size_t i = 0; config->model && i < config->n_entries; i++) {
        const struct msc_config_entry *e = &config->entries[i];
        if (e->record && strcmp(e->record, record) == 0) {
            return e->env_def && e->env_def->edits;
        }
    }
    return false;
}

static void tell_end(const struct msc_cli_call *call, const struct msc_config *config,
                     const struct msc_processor_result *result) {
    struct msc_console *console = call->console;
    const char *record = NULL;
    const cJSON *report = NULL;
    struct msc_str path = {0}; // quoted for a shell command
    bool is_left_out = false;  // every plan within the bounds breaks one on the validation samples
    cJSON_ArrayForEach(report, result->reports) {
        record = msc_json_text_of(report, "record") ? msc_json_text_of(report, "record") : record;
        is_left_out =
            !cJSON_IsObject(msc_json_get(report, "winner")) && msc_report__has_held_out(report);
    }
    msc_shown_append_path(&path, record ? record : "");
    if (result->was_cancelled && record) {
        msc_log(&console->log, MSC_LOG_INFO, "stopped; mscgym resume %s%s continues",
                msc_str_text(&path), config->names_code ? " --allow-plugins" : "");
    } else if (!result->is_feasible && record && is_left_out) {
        msc_log(&console->log, MSC_LOG_ERROR,
                "%s: no trial meets every bound on the validation samples, so nothing was exported",
                record);
    } else if (!result->is_feasible && record && has_edits(config, record)) {
        msc_log(&console->log, MSC_LOG_ERROR,
                "%s: no trial meets every bound, so nothing was exported; mscgym export %s -o "
                "MODEL.onnx writes the nearest one",
                record, msc_str_text(&path));
    } else if (!result->is_feasible && record) {
        msc_log(&console->log, MSC_LOG_ERROR, "%s: no trial meets every bound", record);
    }
    msc_str_finish(&path);
    if (result->export_status != MSC_OK) {
        msc_console_error(console, result->export_message);
    }
}

static enum msc_status print_result(const struct msc_console *console,
                                    const struct msc_cli_search *values, const cJSON *reports) {
    if (values->print && !values->dry_run) {
        return values->print(values, reports);
    }
    return values->common.json ? msc_cli_print_json(reports) : print_reports(console, reports);
}

static int tell_result(const struct msc_cli_call *call, const struct msc_cli_search *values,
                       const struct msc_config *config, const struct msc_processor_result *result) {
    enum msc_status status = print_result(call->console, values, result->reports);
    tell_end(call, config, result);
    if (status != MSC_OK) {
        return msc_cli_fail(call, status);
    }
    if (result->export_status != MSC_OK) {
        return msc_cli_exit_code(result->export_status);
    }
    return result->was_cancelled ? MSC_CLI_STOPPED
           : result->is_feasible ? MSC_CLI_OK
                                 : MSC_CLI_FAILED;
}

// ---- Parent and worker ------------------------------------------------------------------------

static int run_worker(const struct msc_cli_call *call, const struct msc_cli_search *values,
                      struct msc_processor_options *options, msc_cli_open open) {
    // Static, because a signal may arrive until the process ends.
    static struct msc_cancel cancel;
    struct msc_worker worker = {0};
    struct msc_processor *p = NULL;
    struct msc_processor_result result = {0};
    struct audience audience = {.console = call->console};
    int code = MSC_CLI_OK;
    bool is_leaving = false;
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_worker_open(&worker, &cancel));
    if (!values->dry_run) {
        MSC_TRY_OUT(msc_hooks_open(&audience.hooks, values->on_improve, values->on_end,
                                   &call->console->log));
    }
    options->cancel = &cancel;
    options->worker = &worker;
    options->progress = tell_progress;
    options->measuring = show_measuring;
    options->shows_progress = msc_console_shows_progress(call->console);
    options->payload = &audience;
    MSC_TRY_OUT(open(&p, values->path, options));
    status = msc_processor_run(p, &result);
    msc_console_end_progress(call->console);
    if (status == MSC_OK) {
        code = tell_result(call, values, msc_processor_config(p), &result);
    }
out:
    is_leaving = msc_worker_leave(&worker, status);
    if (is_leaving) { // the parent restarts this process, or reports the error
        code = msc_cli_exit_code(status);
    } else {
        tell_hooks_end(audience.hooks, status, result.reports);
        code = status == MSC_OK ? code : msc_cli_fail(call, status);
    }
    msc_hooks_close(audience.hooks);
    msc_processor_result_finish(&result);
    msc_processor_close(p);
    msc_worker_close(&worker);
    return code;
}

// Appends a line to the worker's log file. If that fails, only the terminal shows it.
static void append_line(const char *path, enum msc_log_level level, const char *line) {
    struct msc_log_file *file = NULL;
    if (msc_log_file_open(&file, path, level, NULL) == MSC_OK) {
        msc_log(msc_log_file_log(file), level, "%s", line);
    }
    msc_log_file_close(file);
}

// The served page has a process of its own. The parent then has only one thread, and an error of
// the page cannot stop the parent.
static int searching_supervise(const struct msc_cli_call *call, const struct msc_cli_search *values,
                               const char *record) {
    int code = MSC_CLI_FAILED;
    struct msc_process *page = NULL;
    const struct msc_supervise_options options = {
        .argv = call->whole_argv, .log = &call->console->log, .append = append_line};
    enum msc_status status = MSC_OK;
    msc_output_give_back();
    if (values->serve && !values->dry_run) {
        status = msc_cli_start_page(&page, call, values->path, record, values->port);
    }
    if (status == MSC_OK) {
        status = msc_supervise(&code, &options);
    }
    msc_process_stop(page, 0.0);
    if (status != MSC_OK && !values->dry_run) { // the parent gave up, so no worker runs --on-end
        struct msc_hooks *hooks = NULL;
        char message[512];
        snprintf(message, sizeof message, "%s", msc_status_message());
        if (msc_hooks_open(&hooks, NULL, values->on_end, &call->console->log) == MSC_OK) {
            msc_hooks_end(hooks, NULL, message);
        }
        msc_hooks_close(hooks);
        (void)msc_status_restore(status, message);
    }
    return status == MSC_OK ? code : msc_cli_fail(call, status);
}

static enum msc_status take_log(struct msc_processor_options *options, const char *log) {
    static const char kind[] = "tensorboard:";
    if (!log) {
        return MSC_OK;
    }
    if (strncmp(log, kind, sizeof kind - 1) != 0 || log[sizeof kind - 1] == '\0') {
        return MSC_FAIL(MSC_E_INVALID, "--log is \"%s\", expected tensorboard:DIR", log);
    }
    options->tensorboard = log + sizeof kind - 1;
    return MSC_OK;
}

enum msc_status msc_cli_parse_drop(double *out, const char *command, const char *text) {
    return msc_parse_double(out, text) && *out >= 0 && *out < 1
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID,
                          "%s: --accuracy-drop is \"%s\", expected a number from 0 to less than 1, "
                          "such as 0.01 for one point",
                          command, text);
}

int msc_cli_run_search(const struct msc_cli_call *call, const struct msc_cli_search *values,
                       struct msc_processor_options *options, msc_cli_open open) {
    options->has_trials = values->trials >= 0;
    options->trials = values->trials;
    options->seconds = values->seconds;
    options->is_dry_run = values->dry_run;
    options->accept_new_numerics = values->accept_new_numerics;
    options->warm_start = values->warm_start;
    options->retry_failed = values->retry_failed;
    options->cluster = values->cluster;
    options->numerics = values->numerics;
    options->node_path = values->node_path;
    options->copy_to = values->copy_to;
    options->worker_program = "/proc/self/exe";
    options->node_program = values->worker_program;
    enum msc_status status = msc_cli_fill_options(options, call, &values->common);
    if (status == MSC_OK) {
        status = take_log(options, values->log);
    }
    if (status != MSC_OK) {
        return msc_cli_fail(call, status);
    }
    return msc_worker_is_wanted() ? run_worker(call, values, options, open)
                                  : searching_supervise(call, values, options->record);
}
