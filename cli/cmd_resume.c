#include "cli/searching.h"

static const struct msc_cli_option options[] = {
    {.name = "RECORD",
     .type = MSC_CLI_TEXT,
     .help = "record of the search",
     .offset = MSC_CLI_SEARCH(path),
     .is_positional = true,
     .is_required = true},
    MSC_CLI_SEARCH_OPTIONS,
    {0},
};

static int run(const struct msc_cli_call *call, void *payload) {
    struct msc_processor_options o = MSC_PROCESSOR_OPTIONS_INIT;
    return msc_cli_run_search(call, payload, &o, msc_processor_open_record);
}

const struct msc_cli_command msc_cmd_resume = {
    .name = "resume",
    .summary = "goes on with a search from its record alone",
    .usage = "RECORD [options]",
    .description = "The record's header holds the configuration; paths in it are relative to the "
                   "record.",
    .examples = "  mscgym resume msc_workspace/digits.jsonl\n"
                "  mscgym resume msc_workspace/digits.jsonl --trials 5000\n",
    .options = options,
    .uses_models = true,
    .values_size = sizeof(struct msc_cli_search),
    .run = run,
};
