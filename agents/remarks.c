#include "agents/remarks.h"

#include "agents/auto_remarks.h"

#include <string.h>

void msc_agent_remarks(struct msc_agent *agent, struct msc_str *out) {
    if (msc_agent_definition(agent) == msc_agent_find("auto")) {
        msc_auto_remarks(msc_agent_state(agent), msc_agent_space(agent), out);
    }
}
