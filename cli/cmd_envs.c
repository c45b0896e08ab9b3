#include "cli/checking.h"
#include "cli/plugins.h"

#include "env/api/library.h"
#include "env/env.h"

static const struct msc_cli_option options[] = {
    {.name = "NAME",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_ENVS,
     .help = "print only this environment: its name or the path of its shared library",
     .offset = offsetof(struct msc_cli_plugins, name),
     .is_positional = true},
    {0},
};

static struct msc_cli_plugin describe_env(const struct msc_env_def *def) {
    return (struct msc_cli_plugin){def->name, def->summary, def->version, def->params, def->metric};
}

// Prints the environment of a shared library, whatever name the environment has.
static int show_env_library(const struct msc_cli_call *call, const struct msc_cli_plugins *values) {
    struct msc_env_library *library = NULL;
    enum msc_status status = msc_env_library_open(&library, values->name);
    if (status != MSC_OK) {
        return msc_cli_fail(call, status);
    }
    const struct msc_cli_plugin plugin = describe_env(msc_env_library_definition(library));
    const struct msc_cli_plugins all = {.common = values->common};
    int code = msc_cli_show_plugins(call, &all, &plugin, 1, "environment");
    msc_env_library_close(library);
    return code;
}

static int cmd_envs(const struct msc_cli_call *call, void *payload) {
    const struct msc_cli_plugins *values = payload;
    if (values->check && values->name) {
        return msc_cli_check_env(call, values);
    }
    if (values->check) {
        return msc_cli_fail(call, MSC_FAIL(MSC_E_INVALID, "--check needs a name: "
                                                          "mscgym envs --check NAME"));
    }
    if (values->name && msc_library_is_path(values->name)) {
        return msc_cli_show_library(call, values, show_env_library);
    }
    struct msc_cli_plugin plugins[64];
    const struct msc_env_def *const *list = msc_env_list();
    size_t n = 0;
    for (; list[n] && n < 64; n++) {
        plugins[n] = describe_env(list[n]);
    }
    return msc_cli_show_plugins(call, payload, plugins, n, "environment");
}

const struct msc_cli_command msc_cmd_envs = {
    .name = "envs",
    .summary = "prints the environments, with every parameter, its default and range",
    .usage = "[NAME | LIBRARY] | --check NAME | LIBRARY | PROGRAM | CONFIG",
    .description = "A configuration names a shared library by its path: {\"type\": \"./env.so\"}.",
    .examples = "  mscgym envs\n"
                "  mscgym envs quantize\n"
                "  mscgym envs ./env.so\n"
                "  mscgym envs --check search.json\n"
                "  mscgym envs --check \"python3 environment.py\"\n",
    .options = options,
    .shared = msc_cli_check_options,
    .values_size = sizeof(struct msc_cli_plugins),
    .run = cmd_envs,
};
