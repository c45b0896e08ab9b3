// What an agent has learnt, as sentences for people. `mscgym show --phases` prints them.
#ifndef MSC_AGENTS_REMARKS_H
#define MSC_AGENTS_REMARKS_H

#include "agents/agent.h"

struct msc_str;

// Appends one line for each remark, each ending in a line feed; nothing for agents without remarks.
// Called between two asks; changes no later proposal.
void msc_agent_remarks(struct msc_agent *agent, struct msc_str *out);

#endif
