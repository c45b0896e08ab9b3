#include "cli/cli.h"

#include <string.h>

#define MSC_CLI_COMMAND(name) extern const struct msc_cli_command msc_cmd_##name;
#include "cli/commands.def"
#undef MSC_CLI_COMMAND

const struct msc_cli_command *const msc_cli_commands[] = {
#define MSC_CLI_COMMAND(name) &msc_cmd_##name,
#include "cli/commands.def"
#undef MSC_CLI_COMMAND
    NULL,
};

const struct msc_cli_command *msc_cli_find_command(const char *name) {
    for (size_t i = 0; msc_cli_commands[i]; i++) {
        if (strcmp(msc_cli_commands[i]->name, name) == 0) {
            return msc_cli_commands[i];
        }
    }
    return NULL;
}

void msc_cli_tables(const struct msc_cli_option *out[MSC_CLI_TABLE_COUNT],
                    const struct msc_cli_command *command) {
    size_t n = 0;
    out[n++] = command->options;
    if (command->shared) {
        out[n++] = command->shared;
    }
    if (command->uses_models) {
        out[n++] = msc_cli_model_options;
    }
    out[n++] = msc_cli_basic_options;
    out[n] = NULL;
}
