// --help, printed from the commands and their tables of options.
#ifndef MSC_CLI_HELP_H
#define MSC_CLI_HELP_H

#include "cli/cli.h"

// Help of the program: lists its commands.
void msc_cli_help(struct msc_str *out, const struct msc_cli_command *const commands[]);
void msc_cli_help_options(struct msc_str *out, const struct msc_cli_option options[]);
void msc_cli_help_command(struct msc_str *out, const struct msc_cli_command *command);

#endif
