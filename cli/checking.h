// `agents --check` and `envs --check`: the rules of checks/check.h, each in a process of its own.
#ifndef MSC_CLI_CHECKING_H
#define MSC_CLI_CHECKING_H

#include "cli/cli.h"
#include "cli/plugins.h"

// The options --check and --limit.
extern const struct msc_cli_option msc_cli_check_options[];

// values->name is a built-in agent, a shared library, a configuration (.json; its first search is
// checked), or a program with its arguments, separated by blanks. Returns the exit code.
int msc_cli_check_agent(const struct msc_cli_call *call, const struct msc_cli_plugins *values);
// values->name is a built-in environment, a shared library, a program or a configuration.
int msc_cli_check_env(const struct msc_cli_call *call, const struct msc_cli_plugins *values);

#endif
