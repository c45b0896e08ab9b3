#include "cli/searching.h"

#include <string.h>

struct search_values {
    struct msc_cli_search search;
    const char *record, *entry, *baseline, *accuracy_drop, *imatrix;
    struct msc_cli_list warm_from;
    bool restart;
};

static const struct msc_cli_option options[] = {
    {.name = "CONFIG",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "configuration (JSON, YAML or TOML)",
     .offset = MSC_CLI_SEARCH(path),
     .is_positional = true,
     .is_required = true},
    {.name = "entry",
     .argument = "NAME",
     .type = MSC_CLI_TEXT,
     .help = "run only this search, such as quantize[1]",
     .details = "A configuration with several searches needs it for --record, --trials and --time.",
     .offset = offsetof(struct search_values, entry)},
    {.name = "record",
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "write this record in place of the configuration's",
     .details = "The strategy file and the model in the workspace then come from this search, "
                "unless its entry has \"deliver\": false.",
     .offset = offsetof(struct search_values, record)},
    {.name = "baseline",
     .argument = "KIND",
     .type = MSC_CLI_TEXT,
     .names = "uniform|greedy",
     .help =
         "compare with uniform plans (uniform, the default) or also with a greedy search (greedy)",
     .offset = offsetof(struct search_values, baseline)},
    {.name = "accuracy-drop",
     .argument = "X",
     .type = MSC_CLI_TEXT,
     .help = "bound the drop of the accuracy from the float model by X, such as 0.01 for one point",
     .details = "It replaces the bounds of the searches on the accuracy, and needs labels. Without "
                "a bound on size or speed, make one of these an objective. The plan also keeps the "
                "bound on the validation samples, if there are any.",
     .offset = offsetof(struct search_values, accuracy_drop)},
    {.name = "imatrix",
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "importance file of llama.cpp, in place of the imatrix of the quantize searches",
     .offset = offsetof(struct search_values, imatrix)},
    {.name = "warm-from",
     .argument = "FILE",
     .type = MSC_CLI_LIST,
     .values = MSC_CLI_FILES,
     .help = "start from the points of another record or of a strategy file; may be repeated",
     .details = "If the record has the same network, samples, environment and numerics, the agent "
                "observes its trials. Otherwise its best points are evaluated first.",
     .offset = offsetof(struct search_values, warm_from)},
    {.name = "restart",
     .type = MSC_CLI_FLAG,
     .help = "start over, and keep the old record under another name",
     .details = "A strategy file that would be applied without a search is kept in the same way.",
     .offset = offsetof(struct search_values, restart)},
    {0},
};

static int cmd_search(const struct msc_cli_call *call, void *payload) {
    struct search_values *v = payload;
    struct msc_processor_options o = MSC_PROCESSOR_OPTIONS_INIT;
    bool is_greedy = v->baseline && strcmp(v->baseline, "greedy") == 0;
    if (v->baseline && !is_greedy && strcmp(v->baseline, "uniform") != 0) {
        return msc_cli_fail(call, MSC_FAIL(MSC_E_INVALID,
                                           "search: --baseline is \"%s\", expected uniform or "
                                           "greedy",
                                           v->baseline));
    }
    if (v->accuracy_drop) {
        enum msc_status status = msc_cli_parse_drop(&o.accuracy_drop, "search", v->accuracy_drop);
        if (status != MSC_OK) {
            return msc_cli_fail(call, status);
        }
        o.has_accuracy_drop = true;
    }
    o.entry = v->entry;
    o.imatrix = v->imatrix;
    o.record = v->record;
    o.restart = v->restart;
    o.baseline_greedy = is_greedy;
    o.warm_from = v->warm_from.items;
    o.n_warm_from = v->warm_from.n;
    return msc_cli_run_search(call, &v->search, &o, msc_processor_open);
}

const struct msc_cli_command msc_cmd_search = {
    .name = "search",
    .summary = "runs the searches of a configuration, or continues them",
    .usage = "CONFIG [options]",
    .description =
        "Every trial is written to a record, and the best plan to a strategy file and "
        "as ONNX. Ctrl-C stops the search after the current round, or after the current "
        "part of a long round; the same command continues the search. A finished search "
        "prints its result again. In the result, noise_ratio is the relative change of "
        "the winner's distill_loss that rounding alone may cause; isolated_loss_sum adds "
        "the losses of the winner's choices, each measured with everything else float.",
    .examples =
        "  mscgym search digits.json\n"
        "  mscgym search digits.json --dry-run\n"
        "  mscgym search digits.json --time 8h --threads 8\n"
        "  mscgym search both.json --entry quantize[1] --restart\n"
        "  mscgym search digits.json --record b.jsonl --warm-from msc_workspace/digits.jsonl\n",
    .options = options,
    .shared = msc_cli_search_options,
    .uses_models = true,
    .values_size = sizeof(struct search_values),
    .run = cmd_search,
};
