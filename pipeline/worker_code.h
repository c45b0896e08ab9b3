// Environments that are a library or a program. Workers need the same file as the coordinator.
#ifndef MSC_PIPELINE_WORKER_CODE_H
#define MSC_PIPELINE_WORKER_CODE_H

#include "config/config.h"

// True if the entry's environment is a library or a program.
bool msc_worker_code_is_needed(const struct msc_config_entry *e);
// Hash of the environment's library, in the arena; NULL: it is not a library.
enum msc_status msc_worker_code_hash(const char **out, struct msc_arena *arena,
                                     const struct msc_config_entry *e);

#endif
