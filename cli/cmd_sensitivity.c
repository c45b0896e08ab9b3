#include "cli/searching.h"
#include "cli/table.h"

#include "base/json.h"
#include "base/str.h"
#include "records/record.h"
#include "results/analysis.h"

#include <string.h>

// Number of pairs of a record that are printed by default.
#define PAIRS_SHOWN 20

struct sensitivity_values {
    struct msc_cli_search search;
    const char *record, *entry;
    struct msc_cli_list warm_from;
    int64_t pairs;
    bool restart, csv;
};

#define SENSITIVITY(member) offsetof(struct sensitivity_values, member)

static const struct msc_cli_option options[] = {
    {.name = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "configuration to measure, or record to print",
     .offset = MSC_CLI_SEARCH(path),
     .is_positional = true,
     .is_required = true},
    {.name = "pairs",
     .argument = "N",
     .type = MSC_CLI_COUNT,
     .help = "measure at most N pairs (default: 64); for a record, print at most N (default: 20)",
     .offset = SENSITIVITY(pairs)},
    {.name = "csv",
     .type = MSC_CLI_FLAG,
     .help = "print CSV, with all choices and pairs",
     .offset = SENSITIVITY(csv)},
    {.name = "entry",
     .argument = "NAME",
     .type = MSC_CLI_TEXT,
     .help = "measure only this search, such as quantize[1]",
     .offset = SENSITIVITY(entry)},
    {.name = "record",
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "write this record (default: the search's, with .sensitivity in its name)",
     .offset = SENSITIVITY(record)},
    {.name = "warm-from",
     .argument = "FILE",
     .type = MSC_CLI_LIST,
     .values = MSC_CLI_FILES,
     .help = "reuse the measurements of another record; may be repeated",
     .offset = SENSITIVITY(warm_from)},
    {.name = "restart",
     .type = MSC_CLI_FLAG,
     .help = "start over, and keep the old record under another name",
     .offset = SENSITIVITY(restart)},
    {0},
};

static enum msc_status print_analysis(const struct sensitivity_values *v,
                                      const struct msc_analysis *analysis) {
    bool is_whole = v->csv || v->search.common.json; // complete output for programs
    size_t most = v->pairs >= 0 ? (size_t)v->pairs : is_whole ? SIZE_MAX : PAIRS_SHOWN;
    struct msc_str text = {0};
    cJSON *object = NULL;
    enum msc_status status = MSC_OK;
    if (v->search.common.json) {
        MSC_TRY_OUT(msc_analysis_describe(&object, analysis, most));
        status = msc_cli_print_json(object);
        goto out;
    }
    if (v->csv) {
        msc_analysis_csv(&text, analysis, most);
    } else {
        MSC_TRY_OUT(msc_analysis_text(&text, analysis, most, msc_cli_terminal_columns()));
    }
    status = v->csv ? msc_cli_print_data(&text) : msc_cli_print_str(&text);
out:
    cJSON_Delete(object);
    msc_str_finish(&text);
    return status;
}

static enum msc_status print_record(const struct sensitivity_values *v, const char *path,
                                    const struct msc_log *log) {
    struct msc_record *record = NULL;
    struct msc_analysis analysis = {0};
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_record_open(&record, path, MSC_RECORD_READ, log));
    MSC_TRY_OUT(msc_analysis_make(&analysis, record));
    status = print_analysis(v, &analysis);
out:
    msc_analysis_finish(&analysis);
    msc_record_close(record);
    return status;
}

static enum msc_status print_found(const struct msc_cli_search *values, const cJSON *reports) {
    const cJSON *record = msc_json_get(cJSON_GetArrayItem(reports, 0), "record");
    const struct sensitivity_values *v = (const struct sensitivity_values *)values;
    return print_record(v, record->valuestring, NULL);
}

static enum msc_status make_agent(cJSON **out, const struct sensitivity_values *v) {
    cJSON *agent = cJSON_CreateObject();
    enum msc_status status = msc_json_add_text(agent, "type", "sensitivity");
    if (status == MSC_OK && v->pairs >= 0) {
        status = msc_json_add_number(agent, "pairs", (double)v->pairs);
    }
    if (status != MSC_OK) {
        cJSON_Delete(agent);
        return status;
    }
    *out = agent;
    return MSC_OK;
}

static int measure_sensitivity(const struct msc_cli_call *call, struct sensitivity_values *v) {
    struct msc_processor_options o = MSC_PROCESSOR_OPTIONS_INIT;
    cJSON *agent = NULL;
    enum msc_status status = make_agent(&agent, v);
    if (status != MSC_OK) {
        return msc_cli_fail(call, status);
    }
    v->search.print = print_found;
    o.agent = agent;
    o.beside = "sensitivity";
    o.entry = v->entry;
    o.record = v->record;
    o.warm_from = v->warm_from.items;
    o.n_warm_from = v->warm_from.n;
    o.restart = v->restart;
    int code = msc_cli_run_search(call, &v->search, &o, msc_processor_open);
    cJSON_Delete(agent);
    return code;
}

static int cmd_sensitivity(const struct msc_cli_call *call, void *payload) {
    struct sensitivity_values *v = payload;
    bool is_record = false;
    enum msc_status status = msc_record_is_file(&is_record, v->search.path);
    if (status == MSC_OK && !is_record) {
        return measure_sensitivity(call, v);
    }
    if (status == MSC_OK) {
        status = print_record(v, v->search.path, &call->console->log);
    }
    return status == MSC_OK ? MSC_CLI_OK : msc_cli_fail(call, status);
}

const struct msc_cli_command msc_cmd_sensitivity = {
    .name = "sensitivity",
    .summary = "measures each choice alone, and the worst choices in pairs",
    .usage = "FILE [options]",
    .description =
        "Given a configuration: measures each choice with all other tasks at their most expensive "
        "choice, then pairs of the choices that lose most, then the plan of least summed loss. The "
        "measurements are a search with a record of its own: Ctrl-C stops it, and the same command "
        "continues it. Given a record of any search: prints what its trials show. The interaction "
        "of a pair is its added loss minus the sum of the added losses of the two choices alone.",
    .examples = "  mscgym sensitivity digits.json\n"
                "  mscgym sensitivity digits.json --pairs 200 --csv > digits.csv\n"
                "  mscgym sensitivity msc_workspace/digits.jsonl\n"
                "  mscgym search digits.json --record b.jsonl --warm-from "
                "msc_workspace/digits.sensitivity.jsonl\n",
    .options = options,
    .shared = msc_cli_search_options,
    .uses_models = true,
    .values_size = sizeof(struct sensitivity_values),
    .run = cmd_sensitivity,
};
