#include "cli/chart.h"
#include "cli/searching.h"
#include "cli/table.h"

#include "base/json.h"
#include "base/shown.h"
#include "base/str.h"
#include "base/style.h"
#include "base/table.h"
#include "records/record_query.h"
#include "results/compare.h"
#include "results/history.h"
#include "records/kept.h"
#include "results/phases.h"
#include "results/report.h"

struct show_values {
    struct msc_cli_common common;
    struct msc_cli_list records;
    bool best, pareto, canonical, csv, phases, allow_plugins;
    int64_t top;
};

#define SHOW(member) offsetof(struct show_values, member)

static const struct msc_cli_option options[] = {
    {.name = "RECORD",
     .type = MSC_CLI_LIST,
     .values = MSC_CLI_FILES,
     .help = "record of a search; several are compared",
     .offset = SHOW(records),
     .is_positional = true,
     .is_required = true},
    {.name = "best",
     .type = MSC_CLI_FLAG,
     .help = "print the winner's choice for each task",
     .details = "For several records, also the tasks that agree.",
     .offset = SHOW(best)},
    {.name = "top",
     .argument = "N",
     .type = MSC_CLI_COUNT,
     .help = "also print the best N trials",
     .offset = SHOW(top)},
    {.name = "pareto",
     .type = MSC_CLI_FLAG,
     .help = "also print the Pareto front of several objectives",
     .details =
         "For several records, the points that each has on the front of all of them together.",
     .offset = SHOW(pareto)},
    {.name = "csv",
     .type = MSC_CLI_FLAG,
     .help = "print a comparison as CSV, with all tasks and fronts",
     .offset = SHOW(csv)},
    {.name = "phases",
     .type = MSC_CLI_FLAG,
     .help = "also print how the agent arrived at its trials, by running it again; needs the model "
             "and its samples",
     .offset = SHOW(phases)},
    {.name = "allow-plugins",
     .type = MSC_CLI_FLAG,
     .help = "with --phases: trust the record: libraries and programs that it names may run",
     .offset = SHOW(allow_plugins)},
    {.name = "canonical",
     .type = MSC_CLI_FLAG,
     .help = "print the lines of the record without values that may differ from run to run",
     .details = "Equal searches print equal lines.",
     .offset = SHOW(canonical)},
    {0},
};

static enum msc_status print_line(void *payload, const char *line, size_t length) {
    (void)payload;
    struct msc_str text = {0};
    msc_str_append_n(&text, line, length);
    msc_str_char(&text, '\n');
    enum msc_status status = msc_cli_print_data(&text);
    msc_str_finish(&text);
    return status;
}

// Prints a line "task  choice" for each task, aligned.
static enum msc_status print_choices(const struct msc_cli_call *call, const cJSON *report) {
    const cJSON *delivered = msc_json_get(report, "delivered");
    const cJSON *winner = delivered ? delivered : msc_json_get(report, "winner");
    const cJSON *choices = msc_json_get(winner, "choices");
    struct msc_str text = {.has_styles = call->console->has_output_colors};
    const cJSON *item = NULL;
    size_t widest = 0;
    if (!cJSON_IsObject(winner)) {
        return msc_cli_print("no trial has a result yet\n");
    }
    cJSON_ArrayForEach(item, choices) {
        size_t width = msc_table_width(item->string);
        widest = width > widest ? width : widest;
    }
    msc_style_begin(&text, MSC_STYLE_BEST);
    msc_str_printf(&text, "trial %.0f%s", msc_json_get(winner, "id")->valuedouble,
                   delivered ? " with better weights" : "");
    msc_style_end(&text);
    msc_str_char(&text, '\n');
    cJSON_ArrayForEach(item, choices) {
        msc_str_append(&text, "  ");
        msc_cli_write_padded(&text, item->string, widest);
        msc_shown_append(&text, item->valuestring);
        msc_str_char(&text, '\n');
    }
    item = NULL;
    cJSON_ArrayForEach(item, msc_json_get(winner, "metrics")) {
        msc_shown_append(&text, item->string);
        msc_str_append(&text, ": ");
        msc_str_double(&text, item->valuedouble);
        msc_str_char(&text, '\n');
    }
    enum msc_status status = msc_cli_print_str(&text);
    msc_str_finish(&text);
    return status;
}

// On a terminal, draws the best value over trials as a line of characters.
static enum msc_status write_best_so_far(struct msc_str *out, const struct msc_record *record) {
    enum { STEPS = 1024, LEAST = 8, MOST = 100, LABELS = 44 };
    double values[MOST];
    struct msc_history history = {0};
    size_t columns = msc_cli_terminal_columns();
    size_t n = columns > LABELS + LEAST ? columns - LABELS : LEAST;
    n = n < MOST ? n : MOST;
    if (columns == 0) {
        return MSC_OK;
    }
    enum msc_status status = msc_history_read(&history, record, STEPS);
    if (status == MSC_OK && history.n_last > 0) {
        double first = history.steps[0].value, last = history.last[0].value;
        msc_history_sample(values, n, &history, MSC_HISTORY_TRIALS);
        msc_str_append(out, "best so far: ");
        msc_chart_line(out, values, n, msc_cli_is_utf8());
        msc_str_printf(out, " from %.4g to %.4g\n", first, last);
    }
    msc_history_finish(&history);
    return status;
}

static enum msc_status print_report(const struct msc_cli_call *call, const cJSON *report,
                                    const struct msc_record *record) {
    struct msc_str text = {.has_styles = call->console->has_output_colors};
    enum msc_status status = msc_report_text_folded(&text, report, msc_cli_terminal_columns());
    if (status == MSC_OK) {
        status = write_best_so_far(&text, record);
    }
    if (status == MSC_OK && msc_json_get(report, "phases")) {
        status = msc_phases_text(&text, report, msc_cli_terminal_columns());
    }
    if (status == MSC_OK) {
        status = msc_cli_print_str(&text);
    }
    msc_str_finish(&text);
    return status;
}

// The agent needs the costs of the space, which only the environment has.
static enum msc_status add_phases(cJSON *report, const struct msc_record *record,
                                  const struct msc_cli_call *call, const struct show_values *v) {
    struct msc_processor_options o = MSC_PROCESSOR_OPTIONS_INIT;
    struct msc_processor *p = NULL;
    enum msc_status status = MSC_OK;
    if (!v->phases) {
        return MSC_OK;
    }
    MSC_TRY(msc_cli_fill_options(&o, call, &v->common));
    o.allow_plugins = v->allow_plugins;
    MSC_TRY_OUT(msc_processor_open_record(&p, v->records.items[0], &o));
    MSC_TRY_OUT(msc_processor_prepare(p));
    const struct msc_config_entry *entry = &msc_processor_config(p)->entries[0];
    const struct msc_phases_options of = {
        .record = record,
        .space = msc_env_space(msc_processor_env(p)),
        .agent_config = entry->agent,
        .agent_folder = entry->folder,
    };
    status = msc_phases_add(report, &of);
out:
    msc_processor_close(p);
    return status;
}

static enum msc_status open_shown(struct msc_record **out, cJSON **kept,
                                  const struct show_values *v, const struct msc_log *log) {
    const char *path = v->records.items[0];
    if (!v->phases) {
        return msc_report_open_record(out, kept, path, v->top > 0 ? (size_t)v->top : 0, v->pareto,
                                      log);
    }
    MSC_TRY(msc_record_open(out, path, MSC_RECORD_READ, log)); // the agent runs again on all trials
    return msc_kept_load(kept, *out, log);
}

static enum msc_status show_record(const struct msc_cli_call *call, const struct show_values *v) {
    const struct msc_log *log = &call->console->log;
    struct msc_record *record = NULL;
    cJSON *kept = NULL;
    cJSON *report = NULL;
    enum msc_status status = MSC_OK;
    if (v->canonical) {
        return msc_record_canonical(v->records.items[0], log, print_line, NULL);
    }
    MSC_TRY_OUT(open_shown(&record, &kept, v, log));
    const struct msc_report_options o = {
        .record = record,
        .n_top = v->top > 0 ? (size_t)v->top : 0,
        .has_front = v->pareto,
    };
    MSC_TRY_OUT(msc_report_create(&report, &o));
    MSC_TRY_OUT(msc_report_add_beside(report, record, kept, log));
    MSC_TRY_OUT(add_phases(report, record, call, v));
    status = v->common.json ? msc_cli_print_json(report)
             : v->best      ? print_choices(call, report)
                            : print_report(call, report, record);
out:
    cJSON_Delete(report);
    cJSON_Delete(kept);
    msc_record_close(record);
    return status;
}

// ---- Several records --------------------------------------------------------------------------

static enum msc_status check_compared(const struct show_values *v) {
    const struct {
        bool is_given;
        const char *name;
    } of_one[] = {{v->top >= 0, "top"},
                  {v->phases, "phases"},
                  {v->allow_plugins, "allow-plugins"},
                  {v->canonical, "canonical"}};
    for (size_t i = 0; i < sizeof of_one / sizeof of_one[0]; i++) {
        if (of_one[i].is_given) {
            return MSC_FAIL(MSC_E_INVALID, "show: --%s needs a single RECORD", of_one[i].name);
        }
    }
    return v->csv && v->common.json ? MSC_FAIL(MSC_E_INVALID, "show: use either --csv or --json")
                                    : MSC_OK;
}

static enum msc_status compare_records(const struct msc_cli_call *call,
                                       const struct show_values *v) {
    const struct msc_compare_options o = {
        .paths = v->records.items, .n = v->records.n, .log = &call->console->log};
    const struct msc_compare_text_options text_options = {
        .has_front = v->pareto, .has_all = v->best, .n_columns = msc_cli_terminal_columns()};
    bool is_for_people = !v->common.json && !v->csv;
    struct msc_str text = {.has_styles = is_for_people && call->console->has_output_colors};
    cJSON *comparison = NULL;
    enum msc_status status = MSC_OK;
    MSC_TRY(check_compared(v));
    MSC_TRY(msc_compare_create(&comparison, &o));
    if (v->common.json) {
        status = msc_cli_print_json(comparison);
    } else if (v->csv) {
        msc_compare_csv(&text, comparison);
        status = msc_cli_print_data(&text);
    } else {
        MSC_TRY_OUT(msc_compare_text(&text, comparison, &text_options));
        status = msc_cli_print_str(&text);
    }
out:
    msc_str_finish(&text);
    cJSON_Delete(comparison);
    return status;
}

static int cmd_show(const struct msc_cli_call *call, void *payload) {
    const struct show_values *v = payload;
    bool is_compared = v->records.n > 1 || v->csv;
    enum msc_status status = is_compared ? compare_records(call, v) : show_record(call, v);
    return status == MSC_OK ? MSC_CLI_OK : msc_cli_fail(call, status);
}

const struct msc_cli_command msc_cmd_show = {
    .name = "show",
    .summary = "prints the winner of a record next to the uniform plans",
    .usage = "RECORD... [options]",
    .description =
        "Several records are compared: their configurations, their progress over trials and over "
        "time, their winners task by task, and their fronts. noise_ratio is the relative change of "
        "the winner's distill_loss that rounding alone may cause; isolated_loss_sum adds the "
        "losses of the winner's choices, each measured with everything else float.",
    .examples = "  mscgym show msc_workspace/digits.jsonl --top 10\n"
                "  mscgym show msc_workspace/digits.jsonl --best\n"
                "  mscgym show a.jsonl b.jsonl\n"
                "  mscgym show a.jsonl b.jsonl --csv > compared.csv\n"
                "  mscgym show msc_workspace/digits.jsonl --phases\n"
                "  mscgym show msc_workspace/digits.jsonl --canonical | sha256sum\n",
    .options = options,
    .values_size = sizeof(struct show_values),
    .run = cmd_show,
};
