// A library of another version: it calls a function that this program lacks.
#include <mscgym/env/env.h>

enum msc_status msc_gone(struct msc_env *env);

static const struct msc_env_def gone = {.abi = 1, .name = "gone", .init = msc_gone};

const struct msc_env_def *const msc_env_plugin = &gone;
