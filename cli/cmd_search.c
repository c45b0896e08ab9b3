#include "cli/searching.h"

#include <string.h>

struct search_values {
    struct msc_cli_search search;
    const char *record, *entry, *baseline;
    struct msc_cli_list warm_from;
    bool restart;
};

static const struct msc_cli_option options[] = {
    {.name = "CONFIG",
     .type = MSC_CLI_TEXT,
     .help = "configuration (JSON)",
     .offset = MSC_CLI_SEARCH(path),
     .is_positional = true,
     .is_required = true},
    {.name = "entry",
     .argument = "NAME",
     .type = MSC_CLI_TEXT,
     .help = "one search of several, such as quantize[1]",
     .offset = offsetof(struct search_values, entry)},
    {.name = "record",
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .help = "record, in place of the configuration's; strategy file and model are then of it",
     .offset = offsetof(struct search_values, record)},
    MSC_CLI_SEARCH_OPTIONS,
    {.name = "baseline",
     .argument = "KIND",
     .type = MSC_CLI_TEXT,
     .help = "greedy: also a greedy search, beside the result",
     .offset = offsetof(struct search_values, baseline)},
    {.name = "warm-from",
     .argument = "FILE",
     .type = MSC_CLI_LIST,
     .help = "begin with the points of another record, or of a strategy file; may be repeated",
     .offset = offsetof(struct search_values, warm_from)},
    {.name = "restart",
     .type = MSC_CLI_FLAG,
     .help = "start afresh; the old record, or strategy file that would be applied, is kept under "
             "another name",
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
    o.entry = v->entry;
    o.record = v->record;
    o.restart = v->restart;
    o.baseline_greedy = is_greedy;
    o.warm_from = v->warm_from.items;
    o.n_warm_from = v->warm_from.n;
    return msc_cli_run_search(call, &v->search, &o, msc_processor_open);
}

const struct msc_cli_command msc_cmd_search = {
    .name = "search",
    .summary = "runs a configuration, or goes on where its record ends",
    .usage = "CONFIG [options]",
    .description =
        "Searches in turn, writes every trial to a record, the best to the strategy file "
        "and\nas ONNX. Ctrl-C finishes the running round, or its part in work; the same "
        "command goes\non. A search that is done prints its result again.\n"
        "In the result noise_ratio is how far rounding alone may move the winner's "
        "distill_loss,\nas a part of it; isolated_loss_sum adds up the losses that its choices "
        "have each alone.",
    .examples =
        "  mscgym search digits.json\n"
        "  mscgym search digits.json --dry-run\n"
        "  mscgym search digits.json --time 8h --threads 8\n"
        "  mscgym search both.json --entry quantize[1] --restart\n"
        "  mscgym search digits.json --record b.jsonl --warm-from msc_workspace/digits.jsonl\n",
    .options = options,
    .uses_models = true,
    .values_size = sizeof(struct search_values),
    .run = cmd_search,
};
