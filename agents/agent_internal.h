// Internals of struct msc_agent (agent.c) for agent_library.c, which opens agents, and for agents
// that need their host or seed.
#ifndef MSC_AGENTS_AGENT_INTERNAL_H
#define MSC_AGENTS_AGENT_INTERNAL_H

#include "agents/agent.h"

// The arguments of msc_agent_create, plus the host and library that only msc_agent_open knows.
struct msc_agent_setup {
    const struct msc_agent_def *def;
    const struct cJSON *config; // may be NULL
    const struct msc_space *space;
    const struct msc_goal *goal;
    uint64_t seed;
    struct msc_agent_host host;
    void *library; // closed after the agent's finish, or at once on failure; may be NULL
};

enum msc_status msc_agent__create(struct msc_agent **out, const struct msc_agent_setup *setup);

const struct msc_agent_host *msc_agent__host(const struct msc_agent *agent);
uint64_t msc_agent__seed(const struct msc_agent *agent);

#endif
