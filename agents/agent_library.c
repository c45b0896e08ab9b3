// Opens the agent that a config names: a built-in one, a program, or a shared library.
#include "agents/agent.h"
#include "agents/agent_internal.h"
#include "base/json.h"
#include "base/str.h"
#include "env/api/library.h"

#include <string.h>

static const struct msc_library_function agent_functions[] = {
    {"init", offsetof(struct msc_agent_def, init), false},
    {"ask", offsetof(struct msc_agent_def, ask), false},
    {"tell", offsetof(struct msc_agent_def, tell), false},
    {"done", offsetof(struct msc_agent_def, done), true},
    {"left", offsetof(struct msc_agent_def, left), true},
    {"effort", offsetof(struct msc_agent_def, effort), true},
    {"remarks", offsetof(struct msc_agent_def, remarks), true},
    {"finish", offsetof(struct msc_agent_def, finish), true},
    {0},
};

static const struct msc_library_form agent_form = {
    .kind = "agent",
    .symbol = "msc_agent_plugin",
    .abi = MSC_AGENT_ABI,
    .name = offsetof(struct msc_agent_def, name),
    .summary = offsetof(struct msc_agent_def, summary),
    .params = offsetof(struct msc_agent_def, params),
    .state_size = offsetof(struct msc_agent_def, state_size),
    .functions = agent_functions,
};

enum msc_status msc_agent_library_open(void **library, const struct msc_agent_def **def,
                                       const char *path, const char *folder) {
    const void *definition = NULL;
    MSC_TRY(msc_library_open(library, &definition, path, folder, &agent_form));
    *def = definition;
    return MSC_OK;
}

static enum msc_status fail_unknown_agent(const char *type) {
    const char *names[64] = {"process", "library"};
    size_t n = 2;
    const struct msc_agent_def *const *list = msc_agent_list();
    for (size_t i = 0; list[i] && n < sizeof names / sizeof names[0]; i++) {
        names[n++] = list[i]->name;
    }
    const char *nearest = msc_suggest(type, names, n);
    return nearest ? MSC_FAIL(MSC_E_NOT_FOUND,
                              "agent: unknown agent \"%s\", did you mean "
                              "\"%s\"?",
                              type, nearest)
                   : MSC_FAIL(MSC_E_NOT_FOUND,
                              "agent: unknown agent \"%s\": `mscgym agents` lists "
                              "the agents",
                              type);
}

enum msc_status msc_agent_open(struct msc_agent **out, const struct cJSON *config,
                               const struct msc_space *space, const struct msc_goal *goal,
                               uint64_t seed, const struct msc_agent_host *host) {
    const cJSON *type = msc_json_get(config, "type");
    if (!cJSON_IsString(type)) {
        return MSC_FAIL(MSC_E_INVALID, "agent: \"type\" is missing, expected a name such as "
                                       "\"evolutionary\"");
    }
    struct msc_agent_setup setup = {.config = config, .space = space, .goal = goal, .seed = seed};
    setup.host = host ? *host : setup.host;
    if (strcmp(type->valuestring, "library") == 0) {
        const char *path;
        MSC_TRY(msc_json_get_text(&path, config, "path", "agent"));
        MSC_TRY(msc_agent_library_open(&setup.library, &setup.def, path, setup.host.folder));
    } else if (strcmp(type->valuestring, "process") == 0) {
        setup.def = &msc_agent_process;
    } else {
        setup.def = msc_agent_find(type->valuestring);
    }
    return setup.def ? msc_agent__create(out, &setup) : fail_unknown_agent(type->valuestring);
}
