// Runs the user's programs (--on-improve, --on-end) when a search finds a better trial and when the
// search ends. The programs run without a shell; their environment variables describe the event
// (man mscgym).
//
// The programs run one at a time, in a thread of their own. If several improvements arrive while a
// program runs, only the newest is kept. A program that fails or takes longer than MSC_HOOK_SECONDS
// causes a warning, but cannot stop the search. The search waits for programs only when it ends.
#ifndef MSC_CLI_HOOKS_H
#define MSC_CLI_HOOKS_H

#include "base/log.h"
#include "search/search.h"

struct cJSON;
struct msc_hooks;

#define MSC_HOOK_SECONDS 60.0

// Each command is the path of a program, or a JSON list of words; NULL: no command. *out is NULL if
// both commands are NULL. MSC_E_INVALID names the option.
enum msc_status msc_hooks_open(struct msc_hooks **out, const char *on_improve, const char *on_end,
                               const struct msc_log *log);
// Runs --on-improve if this launch has found a new best feasible trial since the last call.
// `entry` is the name of the search, `best` the value of its first objective. Accepts NULL.
void msc_hooks_progress(struct msc_hooks *hooks, const char *entry,
                        const struct msc_search_progress *progress, double best);
// Runs --on-end after all improvements have been reported. `report` is the report of the search.
// NULL: the search failed, for the reason `failure`. Accepts NULL.
void msc_hooks_end(struct msc_hooks *hooks, const struct cJSON *report, const char *failure);
void msc_hooks_close(struct msc_hooks *hooks); // ends running programs; accepts NULL

#endif
