// The built-in environments.
//
// To add one: 1. write env/env_<name>.c, or a folder env/<name>/, that ends in its definition, 2.
// add it to env/CMakeLists.txt, 3. declare it below and add it to the list, which is in the order
// of `mscgym envs`, 4. run `ctest -R conformance`. Environments are declared here instead of
// including their headers, because their folders depend on env/.
#include "env/env.h"

#include <string.h>

extern const struct msc_env_def msc_env_quantize;
extern const struct msc_env_def msc_env_prune;
extern const struct msc_env_def msc_env_combined;
extern const struct msc_env_def msc_env_placement;
extern const struct msc_env_def msc_env_schedule;
extern const struct msc_env_def msc_env_table;
extern const struct msc_env_def msc_env_process;
extern const struct msc_env_def msc_env_toy;

static const struct msc_env_def *const definitions[] = {
    &msc_env_quantize,  &msc_env_prune,    &msc_env_combined,
    &msc_env_placement, &msc_env_schedule, &msc_env_table,
    &msc_env_process,   &msc_env_toy,      NULL,
};

const struct msc_env_def *const *msc_env_list(void) {
    return definitions;
}

const struct msc_env_def *msc_env_find(const char *name) {
    for (size_t i = 0; definitions[i]; i++) {
        if (strcmp(definitions[i]->name, name) == 0) {
            return definitions[i];
        }
    }
    return NULL;
}
