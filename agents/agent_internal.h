// What agent.c shares with the ways of opening an agent.
#ifndef MSC_AGENTS_AGENT_INTERNAL_H
#define MSC_AGENTS_AGENT_INTERNAL_H

#include "agents/agent.h"

// How to make an agent: the arguments of msc_agent_create, and what only msc_agent_open knows.
struct msc_agent_setup {
    const struct msc_agent_def *def;
    const struct cJSON *config; // may be NULL
    const struct msc_space *space;
    const struct msc_goal *goal;
    uint64_t seed;
    const char *folder; // where relative paths start, or NULL
    void *library;      // closed after the agent's finish, or at once on failure; may be NULL
};

enum msc_status msc_agent__create(struct msc_agent **out, const struct msc_agent_setup *setup);

double msc_agent__process_timeout_s(const struct msc_agent *agent); // of msc_agent_process
const char *msc_agent__folder(const struct msc_agent *agent);
uint64_t msc_agent__seed(const struct msc_agent *agent);

#endif
