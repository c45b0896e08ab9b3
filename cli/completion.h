// Completion scripts of shells, made from the commands and their tables of options.
//
// Each offers the commands, the options of a command, and for an option's value or an argument the names, files or
// folders that its row in the table says.
#ifndef MSC_CLI_COMPLETION_H
#define MSC_CLI_COMPLETION_H

#include "cli/cli.h"

void msc_cli_complete_bash(struct msc_str *out, const struct msc_cli_command *const commands[]);
void msc_cli_complete_zsh(struct msc_str *out, const struct msc_cli_command *const commands[]);
void msc_cli_complete_fish(struct msc_str *out, const struct msc_cli_command *const commands[]);

// Names that the option's value may have, divided by blanks; nothing for a file or any text.
void msc_cli_complete_names(struct msc_str *out, const struct msc_cli_option *option);
bool msc_cli_completes_files(const struct msc_cli_option *option);

#endif
