// Completion scripts of shells, made from the commands and their tables of options.
//
// Each script offers the commands and the options of a command. For an argument or the value of an
// option it offers the names, files or folders that the row in the table allows.
#ifndef MSC_CLI_COMPLETION_H
#define MSC_CLI_COMPLETION_H

#include "cli/cli.h"

void msc_cli_complete_bash(struct msc_str *out, const struct msc_cli_command *const commands[]);
void msc_cli_complete_zsh(struct msc_str *out, const struct msc_cli_command *const commands[]);
void msc_cli_complete_fish(struct msc_str *out, const struct msc_cli_command *const commands[]);

// Names that the option's value may have, separated by blanks; none if the value is a file or free
// text.
void msc_cli_complete_names(struct msc_str *out, const struct msc_cli_option *option);
bool msc_cli_completes_files(const struct msc_cli_option *option);

#endif
