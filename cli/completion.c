#include "cli/completion.h"

#include "agents/agent.h"
#include "base/str.h"
#include "env/env.h"

void msc_cli_complete_names(struct msc_str *out, const struct msc_cli_option *option) {
    for (const char *c = option->names ? option->names : ""; *c; c++) {
        msc_str_char(out, *c == '|' ? ' ' : *c);
    }
    const struct msc_agent_def *const *agents = msc_agent_list();
    for (size_t i = 0; option->values == MSC_CLI_AGENTS && agents[i]; i++) {
        msc_str_printf(out, "%s%s", i > 0 ? " " : "", agents[i]->name);
    }
    const struct msc_env_def *const *envs = msc_env_list();
    for (size_t i = 0; option->values == MSC_CLI_ENVS && envs[i]; i++) {
        msc_str_printf(out, "%s%s", i > 0 ? " " : "", envs[i]->name);
    }
}

bool msc_cli_completes_files(const struct msc_cli_option *option) {
    return option->values == MSC_CLI_FILES || option->values == MSC_CLI_AGENTS ||
           option->values == MSC_CLI_ENVS;
}
