#include "cli/cli.h"

#include <string.h>

const struct msc_cli_command *msc_cli_find_command(const struct msc_cli_command *const commands[],
                                                   const char *name) {
    for (size_t i = 0; commands[i]; i++) {
        if (strcmp(commands[i]->name, name) == 0) {
            return commands[i];
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
