// The remarks of the agent `auto` (agents/remarks.h).
#ifndef MSC_AGENTS_AUTO_REMARKS_H
#define MSC_AGENTS_AUTO_REMARKS_H

#include "agents/auto.h"

struct msc_str;

void msc_auto_remarks(struct msc_auto *a, const struct msc_space *space, struct msc_str *out);

#endif
