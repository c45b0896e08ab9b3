// Opens the workers that measure the trials of a session (--cluster): processes on this machine or
// in Ray, or jobs of Slurm.
#ifndef MSC_PIPELINE_SESSION_POOL_H
#define MSC_PIPELINE_SESSION_POOL_H

#include "pipeline/session.h"

struct msc_pool;

// MSC_E_INVALID: the options for --cluster do not fit its kind or the environment.
enum msc_status msc_session_check_cluster(const struct msc_session *s);
// *out, owned by the caller, remains NULL without --cluster. The session is borrowed until the pool
// is closed.
enum msc_status msc_session_open_pool(struct msc_pool **out, struct msc_session *s);

#endif
