#include "cli/searching.h"

struct resume_values {
    struct msc_cli_search search;
    bool allow_plugins;
};

static const struct msc_cli_option options[] = {
    {.name = "RECORD",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "record of the search",
     .offset = MSC_CLI_SEARCH(path),
     .is_positional = true,
     .is_required = true},
    {.name = "allow-plugins",
     .type = MSC_CLI_FLAG,
     .help = "trust the record: libraries and programs that it names may run",
     .offset = offsetof(struct resume_values, allow_plugins)},
    {0},
};

static int cmd_resume(const struct msc_cli_call *call, void *payload) {
    const struct resume_values *v = payload;
    struct msc_processor_options o = MSC_PROCESSOR_OPTIONS_INIT;
    o.allow_plugins = v->allow_plugins;
    return msc_cli_run_search(call, &v->search, &o, msc_processor_open_record);
}

const struct msc_cli_command msc_cmd_resume = {
    .name = "resume",
    .summary = "continues a search from its record",
    .usage = "RECORD [options]",
    .description =
        "The record's header holds the configuration. Paths in it are relative to the record.",
    .examples = "  mscgym resume msc_workspace/digits.jsonl\n"
                "  mscgym resume msc_workspace/digits.jsonl --trials 5000\n",
    .options = options,
    .shared = msc_cli_search_options,
    .uses_models = true,
    .values_size = sizeof(struct resume_values),
    .run = cmd_resume,
};
