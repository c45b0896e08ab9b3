// The commands, in the order of --help.
#include "cli/cli.h"

#include <string.h>

extern const struct msc_cli_command msc_cmd_search;
extern const struct msc_cli_command msc_cmd_sensitivity;
extern const struct msc_cli_command msc_cmd_quantize;
extern const struct msc_cli_command msc_cmd_resume;
extern const struct msc_cli_command msc_cmd_show;
extern const struct msc_cli_command msc_cmd_watch;
extern const struct msc_cli_command msc_cmd_report;
extern const struct msc_cli_command msc_cmd_verify;
extern const struct msc_cli_command msc_cmd_salvage;
extern const struct msc_cli_command msc_cmd_export;
extern const struct msc_cli_command msc_cmd_run;
extern const struct msc_cli_command msc_cmd_bench;
extern const struct msc_cli_command msc_cmd_track;
extern const struct msc_cli_command msc_cmd_graph;
extern const struct msc_cli_command msc_cmd_config;
extern const struct msc_cli_command msc_cmd_envs;
extern const struct msc_cli_command msc_cmd_agents;
extern const struct msc_cli_command msc_cmd_gym;
extern const struct msc_cli_command msc_cmd_devices;
extern const struct msc_cli_command msc_cmd_tune;
extern const struct msc_cli_command msc_cmd_worker;
extern const struct msc_cli_command msc_cmd_completion;
extern const struct msc_cli_command msc_cmd_manual;

const struct msc_cli_command *const msc_cli_commands[] = {
    &msc_cmd_search,  &msc_cmd_sensitivity, &msc_cmd_quantize, &msc_cmd_resume,
    &msc_cmd_show,    &msc_cmd_watch,       &msc_cmd_report,   &msc_cmd_verify,
    &msc_cmd_salvage, &msc_cmd_export,      &msc_cmd_run,      &msc_cmd_bench,
    &msc_cmd_track,   &msc_cmd_graph,       &msc_cmd_config,   &msc_cmd_envs,
    &msc_cmd_agents,  &msc_cmd_gym,         &msc_cmd_devices,  &msc_cmd_tune,
    &msc_cmd_worker,  &msc_cmd_completion,  &msc_cmd_manual,   NULL,
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
