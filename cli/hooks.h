// Programs of the user's that a search runs: when it has found something better, and at its end. No
// shell; what happened is in their environment (man mscgym).
//
// They run one at a time in a thread of their own. While one runs, of several improvements the newest
// waits. What fails or takes longer than HOOK_SECONDS is ended, with a warning: nothing that they do
// stops a search, and it waits for them only at its end.
#ifndef MSC_CLI_HOOKS_H
#define MSC_CLI_HOOKS_H

#include "base/log.h"
#include "search/search.h"

struct cJSON;
struct msc_hooks;

#define MSC_HOOK_SECONDS 60.0

// Commands are the path of a program, or a JSON list of its words; NULL: none. *out is NULL where both
// are. MSC_E_INVALID names the option.
enum msc_status msc_hooks_open(struct msc_hooks **out, const char *on_improve, const char *on_end,
                               const struct msc_log *log);
// Runs --on-improve when the best feasible trial was found in this launch and is another than at the
// last call. `entry` is the name of the search, `best` its first objective. Accepts NULL.
void msc_hooks_progress(struct msc_hooks *hooks, const char *entry,
                        const struct msc_search_progress *progress, double best);
// Runs --on-end for a search, by its report; NULL: none came to an end, and `failure` says why. Once
// improvements were told. Accepts NULL.
void msc_hooks_end(struct msc_hooks *hooks, const struct cJSON *report, const char *failure);
void msc_hooks_close(struct msc_hooks *hooks); // ends what still runs; accepts NULL

#endif
