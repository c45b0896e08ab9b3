#include "cli/plugins.h"

#include "agents/agent.h"

static const struct msc_cli_option options[] = {
    {.name = "NAME", .type = MSC_CLI_TEXT, .help = "one agent alone",
     .offset = offsetof(struct msc_cli_plugins, name), .is_positional = true},
    {0},
};

static int run(const struct msc_cli_call *call, void *payload) {
    struct msc_cli_plugin plugins[64];
    const struct msc_agent_def *const *list = msc_agent_list();
    size_t n = 0;
    for (; list[n] && n < 63; n++) {
        plugins[n] = (struct msc_cli_plugin){list[n]->name, list[n]->summary, list[n]->version,
                                             list[n]->params};
    }
    const struct msc_agent_def *process = &msc_agent_process;
    plugins[n++] = (struct msc_cli_plugin){process->name, process->summary, process->version,
                                           process->params};
    return msc_cli_show_plugins(call, payload, plugins, n, "agent");
}

const struct msc_cli_command msc_cmd_agents = {
    .name = "agents",
    .summary = "the agents, with every parameter, its default and range",
    .usage = "[NAME]",
    .description = "A shared library is an agent as well: {\"type\": \"library\", \"path\": "
                   "\"agent.so\"}.",
    .examples = "  mscgym agents\n"
                "  mscgym agents evolutionary\n",
    .options = options,
    .values_size = sizeof(struct msc_cli_plugins),
    .run = run,
};
