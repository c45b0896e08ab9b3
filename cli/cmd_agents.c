#include "cli/checking.h"
#include "cli/plugins.h"

#include "agents/agent.h"
#include "env/api/library.h"

static const struct msc_cli_option options[] = {
    {.name = "NAME",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_AGENTS,
     .help = "print only this agent: its name or the path of its shared library",
     .offset = offsetof(struct msc_cli_plugins, name),
     .is_positional = true},
    {0},
};

static const struct msc_param library_params[] = {
    {.name = "path",
     .help =
         "file of the library, relative to the folder of the entry; further keys are those of its "
         "agent (mscgym agents PATH lists them)",
     .type = MSC_PARAM_TEXT},
    {0},
};

static struct msc_cli_plugin describe_agent(const struct msc_agent_def *def) {
    return (struct msc_cli_plugin){def->name, def->summary, def->version, def->params, NULL};
}

// Prints the agent of a shared library, whatever name the agent has.
static int show_agent_library(const struct msc_cli_call *call,
                              const struct msc_cli_plugins *values) {
    void *library = NULL;
    const struct msc_agent_def *def = NULL;
    enum msc_status status = msc_agent_library_open(&library, &def, values->name, NULL);
    if (status != MSC_OK) {
        return msc_cli_fail(call, status);
    }
    const struct msc_cli_plugin plugin = describe_agent(def);
    const struct msc_cli_plugins all = {.common = values->common};
    int code = msc_cli_show_plugins(call, &all, &plugin, 1, "agent");
    msc_library_close(library);
    return code;
}

static int cmd_agents(const struct msc_cli_call *call, void *payload) {
    const struct msc_cli_plugins *values = payload;
    if (values->check && values->name) {
        return msc_cli_check_agent(call, values);
    }
    if (values->check) {
        return msc_cli_fail(call, MSC_FAIL(MSC_E_INVALID, "--check needs a name: "
                                                          "mscgym agents --check NAME"));
    }
    if (values->name && msc_library_is_path(values->name)) {
        return msc_cli_show_library(call, values, show_agent_library);
    }
    struct msc_cli_plugin plugins[64];
    const struct msc_agent_def *const *list = msc_agent_list();
    size_t n = 0;
    for (; list[n] && n < 62; n++) {
        plugins[n] = describe_agent(list[n]);
    }
    plugins[n++] = describe_agent(&msc_agent_process);
    plugins[n++] =
        (struct msc_cli_plugin){"library", "an agent in a shared library", 1, library_params, NULL};
    return msc_cli_show_plugins(call, payload, plugins, n, "agent");
}

const struct msc_cli_command msc_cmd_agents = {
    .name = "agents",
    .summary = "prints the agents, with every parameter, its default and range",
    .usage = "[NAME | LIBRARY] | --check NAME | LIBRARY | PROGRAM | CONFIG",
    .description = "A configuration names a shared library by its path: {\"type\": \"library\", "
                   "\"path\": \"agent.so\"}.",
    .examples = "  mscgym agents\n"
                "  mscgym agents evolutionary\n"
                "  mscgym agents ./agent.so\n"
                "  mscgym agents --check \"python3 agent.py\"\n",
    .options = options,
    .shared = msc_cli_check_options,
    .values_size = sizeof(struct msc_cli_plugins),
    .run = cmd_agents,
};
