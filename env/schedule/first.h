// The first tries of a search: the choices by rule, those kept for equal or similar work, and one
// variant wherever it exists.
#ifndef MSC_ENV_SCHEDULE_FIRST_H
#define MSC_ENV_SCHEDULE_FIRST_H

#include "env/api/env.h"
#include "env/schedule/bench.h"

// Adds baselines to a space whose tasks are the classes of the bench. What is kept changes with
// time, but the baselines of a search may not: they are read from the host's file of parameters, or
// written to it. MSC_E_FORMAT: the file does not fit. MSC_E_STATE: it is required and missing.
enum msc_status msc_schedule_first(struct msc_space *space, const struct msc_schedule_bench *bench,
                                   const struct msc_env_host *host, struct msc_arena *arena);

#endif
