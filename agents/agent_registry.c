// The built-in agents.
//
// To add one: 1. write agents/agent_<name>.c ending in its definition, 2. declare it below and add
// it to the list, which is in the order of `mscgym agents`, and to agents/CMakeLists.txt, 3. run
// `ctest -R conformance`.
#include "agents/agent.h"

#include <string.h>

extern const struct msc_agent_def msc_agent_auto;
extern const struct msc_agent_def msc_agent_grid_search;
extern const struct msc_agent_def msc_agent_random;
extern const struct msc_agent_def msc_agent_evolutionary;
extern const struct msc_agent_def msc_agent_sensitivity;

static const struct msc_agent_def *const definitions[] = {
    &msc_agent_auto,         &msc_agent_grid_search, &msc_agent_random,
    &msc_agent_evolutionary, &msc_agent_sensitivity, NULL,
};

const struct msc_agent_def *const *msc_agent_list(void) {
    return definitions;
}

const struct msc_agent_def *msc_agent_find(const char *name) {
    for (size_t i = 0; definitions[i]; i++) {
        if (strcmp(definitions[i]->name, name) == 0) {
            return definitions[i];
        }
    }
    return NULL;
}
