// `agents --check` and `envs --check`: the rules of search/check.h, each in a process of its own.
#ifndef MSC_CLI_CHECKING_H
#define MSC_CLI_CHECKING_H

#include "cli/cli.h"
#include "cli/plugins.h"

// Options of both commands, behind that of the name.
#define MSC_CLI_CHECK_OPTIONS                                                                      \
    {.name = "check",                                                                              \
     .type = MSC_CLI_FLAG,                                                                         \
     .help = "try whether it keeps the contract, rule by rule",                                    \
     .offset = offsetof(struct msc_cli_plugins, check)},                                           \
    {                                                                                              \
        .name = "limit", .argument = "TIME", .type = MSC_CLI_DURATION,                             \
        .help = "with --check: for each rule (default 5m)",                                        \
        .offset = offsetof(struct msc_cli_plugins, limit_s)                                        \
    }

// values->name is that of a built-in agent, a shared library, a configuration (.json), whose first
// search is meant, or a program with its arguments, between blanks. Returns the exit code.
int msc_cli_check_agent(const struct msc_cli_call *call, const struct msc_cli_plugins *values);
// values->name is that of a built-in environment, a shared library or a configuration.
int msc_cli_check_env(const struct msc_cli_call *call, const struct msc_cli_plugins *values);

#endif
