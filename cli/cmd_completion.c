#include "cli/completion.h"

#include "base/str.h"

struct completion_values {
    struct msc_cli_common common;
    int64_t shell;
};

static const struct msc_cli_option options[] = {
    {.name = "SHELL",
     .type = MSC_CLI_CHOICE,
     .names = "bash|zsh|fish",
     .help = "bash, zsh or fish",
     .offset = offsetof(struct completion_values, shell),
     .is_positional = true,
     .is_required = true},
    {0},
};

static int cmd_completion(const struct msc_cli_call *call, void *payload) {
    static void (*const writers[])(struct msc_str *, const struct msc_cli_command *const[]) = {
        msc_cli_complete_bash, msc_cli_complete_zsh, msc_cli_complete_fish};
    const struct completion_values *v = payload;
    struct msc_str text = {0};
    writers[v->shell](&text, call->commands);
    enum msc_status status = msc_cli_print_str(&text);
    msc_str_finish(&text);
    return status == MSC_OK ? MSC_CLI_OK : msc_cli_fail(call, status);
}

const struct msc_cli_command msc_cmd_completion = {
    .name = "completion",
    .summary = "prints a script that completes mscgym's arguments in a shell",
    .usage = "SHELL",
    .description = "Packages install these scripts; this command is for other installations. The "
                   "examples load the script into a running shell.",
    .examples = "  source <(mscgym completion bash)\n"
                "  source <(mscgym completion zsh)\n"
                "  mscgym completion fish | source\n",
    .options = options,
    .values_size = sizeof(struct completion_values),
    .run = cmd_completion,
};
