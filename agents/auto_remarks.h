// The remarks of the agent `auto` (msc_agent_def.remarks).
#ifndef MSC_AGENTS_AUTO_REMARKS_H
#define MSC_AGENTS_AUTO_REMARKS_H

#include "agents/agent.h"

void msc_auto_remarks(struct msc_agent *agent, struct msc_str *out);

#endif
