// The commands, in the order users see.
#include "cli/cli.h"

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

const struct msc_cli_command *const msc_cli_commands[] = {
    &msc_cmd_search,   &msc_cmd_sensitivity,
    &msc_cmd_quantize, &msc_cmd_resume,
    &msc_cmd_show,     &msc_cmd_watch,
    &msc_cmd_report,   &msc_cmd_verify,
    &msc_cmd_salvage,  &msc_cmd_export,
    &msc_cmd_run,      &msc_cmd_bench,
    &msc_cmd_track,    &msc_cmd_graph,
    &msc_cmd_config,   &msc_cmd_envs,
    &msc_cmd_agents,   &msc_cmd_gym,
    &msc_cmd_devices,  &msc_cmd_tune,
    &msc_cmd_worker,   NULL,
};
