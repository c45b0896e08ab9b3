#include "cli/searching.h"
#include "cli/table.h"

#include "base/json.h"
#include "base/shown.h"
#include "base/str.h"
#include "base/table.h"
#include "records/record_query.h"
#include "search/kept.h"
#include "search/phases.h"
#include "search/recheck.h"
#include "search/report.h"
#include "search/reranked.h"

struct show_values {
    struct msc_cli_common common;
    const char *record;
    bool best, pareto, canonical, phases, allow_plugins;
    int64_t top;
};

#define SHOW(member) offsetof(struct show_values, member)

static const struct msc_cli_option options[] = {
    {.name = "RECORD",
     .type = MSC_CLI_TEXT,
     .help = "record of a search",
     .offset = SHOW(record),
     .is_positional = true,
     .is_required = true},
    {.name = "best",
     .type = MSC_CLI_FLAG,
     .help = "the winner's choices, task by task",
     .offset = SHOW(best)},
    {.name = "top",
     .argument = "N",
     .type = MSC_CLI_COUNT,
     .help = "also the best N trials",
     .offset = SHOW(top)},
    {.name = "pareto",
     .type = MSC_CLI_FLAG,
     .help = "also the Pareto front",
     .offset = SHOW(pareto)},
    {.name = "phases",
     .type = MSC_CLI_FLAG,
     .help = "also how the agent came to its trials, by asking it again; needs the model",
     .offset = SHOW(phases)},
    {.name = "allow-plugins",
     .type = MSC_CLI_FLAG,
     .help = "with --phases: trust it, libraries and programs that it names may run",
     .offset = SHOW(allow_plugins)},
    {.name = "canonical",
     .type = MSC_CLI_FLAG,
     .help = "the lines without what may differ from run to run, for comparing records",
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

// "task  choice", aligned.
static enum msc_status print_choices(const cJSON *report) {
    const cJSON *winner = cJSON_GetObjectItemCaseSensitive(report, "winner");
    const cJSON *choices = cJSON_GetObjectItemCaseSensitive(winner, "choices");
    struct msc_str text = {0};
    const cJSON *item = NULL;
    size_t widest = 0;
    if (!cJSON_IsObject(winner)) {
        return msc_cli_print("no trial has a result yet\n");
    }
    cJSON_ArrayForEach(item, choices) {
        size_t width = msc_table_width(item->string);
        widest = width > widest ? width : widest;
    }
    msc_str_printf(&text, "trial %.0f\n",
                   cJSON_GetObjectItemCaseSensitive(winner, "id")->valuedouble);
    cJSON_ArrayForEach(item, choices) {
        msc_str_append(&text, "  ");
        msc_cli_write_padded(&text, item->string, widest);
        msc_shown_append(&text, item->valuestring);
        msc_str_char(&text, '\n');
    }
    item = NULL;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(winner, "metrics")) {
        msc_shown_append(&text, item->string);
        msc_str_append(&text, ": ");
        msc_str_double(&text, item->valuedouble);
        msc_str_char(&text, '\n');
    }
    enum msc_status status = msc_cli_print_str(&text);
    msc_str_finish(&text);
    return status;
}

static enum msc_status print_report(const cJSON *report) {
    struct msc_str text = {0};
    const cJSON *phases = cJSON_GetObjectItemCaseSensitive(report, "phases");
    enum msc_status status = msc_report_text_folded(&text, report, msc_cli_terminal_columns());
    if (status == MSC_OK && phases) {
        status = msc_phases_text(&text, phases, msc_cli_terminal_columns());
    }
    if (status == MSC_OK) {
        status = msc_cli_print_str(&text);
    }
    msc_str_finish(&text);
    return status;
}

// The agent knows costs, which are the environment's.
static enum msc_status add_phases(cJSON *report, const struct msc_record *record,
                                  const struct msc_cli_call *call, const struct show_values *v) {
    struct msc_processor_options o = MSC_PROCESSOR_OPTIONS_INIT;
    struct msc_processor *p = NULL;
    cJSON *phases = NULL;
    enum msc_status status = MSC_OK;
    if (!v->phases) {
        return MSC_OK;
    }
    MSC_TRY(msc_cli_fill_options(&o, call, &v->common));
    o.allow_plugins = v->allow_plugins;
    MSC_TRY_OUT(msc_processor_open_record(&p, v->record, &o));
    MSC_TRY_OUT(msc_processor_prepare(p));
    const struct msc_config_entry *entry = &msc_processor_config(p)->entries[0];
    const struct msc_phases_options of = {
        .record = record,
        .space = msc_env_space(msc_processor_env(p)),
        .agent_config = entry->agent,
        .agent_folder = entry->folder,
    };
    MSC_TRY_OUT(msc_phases_describe(&phases, &of));
    status = msc_json_add(report, "phases", phases);
out:
    msc_processor_close(p);
    return status;
}

// Of a long record only what is to be shown is held. An agent that is asked again needs all.
static enum msc_status open_shown(struct msc_record **out, cJSON **kept,
                                  const struct show_values *v, const struct msc_log *log) {
    size_t n_reranked = 0;
    size_t n_top = v->top > 0 ? (size_t)v->top : 0;
    if (v->phases) {
        MSC_TRY(msc_record_open(out, v->record, MSC_RECORD_READ, log));
        return msc_kept_load(kept, *out, log);
    }
    MSC_TRY(msc_reranked_n_top(&n_reranked, v->record));
    n_top = n_top > n_reranked ? n_top : n_reranked;
    MSC_TRY(msc_record_open_best(out, v->record, n_top + MSC_RECHECK_MOST + 1, log));
    MSC_TRY(msc_kept_load(kept, *out, log));
    if (!v->pareto || !cJSON_GetObjectItemCaseSensitive(*kept, "left_out")) {
        return MSC_OK;
    }
    // What a trial that is left out had covered is on the front.
    msc_record_close(*out);
    cJSON_Delete(*kept);
    *out = NULL;
    *kept = NULL;
    MSC_TRY(msc_record_open(out, v->record, MSC_RECORD_READ, NULL));
    return msc_kept_load(kept, *out, NULL);
}

static enum msc_status show_record(const struct msc_cli_call *call, const struct show_values *v) {
    const struct msc_log *log = &call->console->log;
    struct msc_record *record = NULL;
    cJSON *kept = NULL;
    cJSON *report = NULL;
    enum msc_status status = MSC_OK;
    if (v->canonical) {
        return msc_record_canonical(v->record, log, print_line, NULL);
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
             : v->best      ? print_choices(report)
                            : print_report(report);
out:
    cJSON_Delete(report);
    cJSON_Delete(kept);
    msc_record_close(record);
    return status;
}

static int cmd_show(const struct msc_cli_call *call, void *payload) {
    enum msc_status status = show_record(call, payload);
    return status == MSC_OK ? MSC_CLI_OK : msc_cli_fail(call, status);
}

const struct msc_cli_command msc_cmd_show = {
    .name = "show",
    .summary = "what a record holds: the winner beside the uniform plans",
    .usage = "RECORD [options]",
    .description =
        "noise_ratio is how far rounding alone may move the winner's distill_loss, as a part of "
        "it;\nisolated_loss_sum adds up the losses that its choices have each alone.",
    .examples = "  mscgym show msc_workspace/digits.jsonl --top 10\n"
                "  mscgym show msc_workspace/digits.jsonl --best\n"
                "  mscgym show msc_workspace/digits.jsonl --phases\n"
                "  mscgym show msc_workspace/digits.jsonl --canonical | sha256sum\n",
    .options = options,
    .values_size = sizeof(struct show_values),
    .run = cmd_show,
};
