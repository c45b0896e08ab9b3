#include "cli/plugins.h"

#include "env/env.h"

static const struct msc_cli_option options[] = {
    {.name = "NAME", .type = MSC_CLI_TEXT, .help = "one environment alone",
     .offset = offsetof(struct msc_cli_plugins, name), .is_positional = true},
    {0},
};

static int run(const struct msc_cli_call *call, void *payload) {
    struct msc_cli_plugin plugins[64];
    const struct msc_env_def *const *list = msc_env_list();
    size_t n = 0;
    for (; list[n] && n < 64; n++) {
        plugins[n] = (struct msc_cli_plugin){list[n]->name, list[n]->summary, list[n]->version,
                                             list[n]->params};
    }
    return msc_cli_show_plugins(call, payload, plugins, n, "environment");
}

const struct msc_cli_command msc_cmd_envs = {
    .name = "envs",
    .summary = "the environments, with every parameter, its default and range",
    .usage = "[NAME]",
    .description = "A shared library is an environment as well: {\"type\": \"./env.so\"}.",
    .examples = "  mscgym envs\n"
                "  mscgym envs quantize\n",
    .options = options,
    .values_size = sizeof(struct msc_cli_plugins),
    .run = run,
};
