// What the agent knows before a search begins or continues, for a dry run.
#ifndef MSC_PIPELINE_SESSION_LEARNT_H
#define MSC_PIPELINE_SESSION_LEARNT_H

#include "pipeline/session.h"
#include "search/search.h"

struct msc_str;

// Lets a new agent observe the trials of the session's record or, if it has none, those that
// `o->warm` tells it; then adds the agent's remarks (agents/agent.h) to `object` as `learnt`, and a
// line for each to `text`. Adds nothing if there are no such trials, or no remarks, or if the agent
// is a program or a library. Measures the baselines again if it uses `o->warm`.
enum msc_status msc_session_add_learnt(struct msc_str *text, struct cJSON *object,
                                       const struct msc_session *s,
                                       const struct msc_search_options *o);

#endif
