// Environments that are code, a library or a program: workers need the same file.
#ifndef MSC_PIPELINE_WORKER_CODE_H
#define MSC_PIPELINE_WORKER_CODE_H

#include "config/config.h"

// Is the environment of the entry code?
bool msc_worker_code_is_needed(const struct msc_config_entry *e);
// Hash of the environment's library, in the arena; NULL: it is not a library.
enum msc_status msc_worker_code_hash(const char **out, struct msc_arena *arena,
                                     const struct msc_config_entry *e);

#endif
