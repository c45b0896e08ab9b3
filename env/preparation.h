// RECORD.moments: partial results of an environment's preparation before the first trial
// (data/array_log.h). If the search is killed, the next start continues from the partial results.
// The file is removed when RECORD.params is complete.
//
//     MSC_TRY(msc_preparation_open(&kept, env));       // NULL: partial results are not kept
//     ... msc_array_log_read(&array, kept, "a"), or compute it and msc_array_log_add ...
//     msc_array_log_close(kept);
//     msc_preparation_remove(env);
#ifndef MSC_ENV_PREPARATION_H
#define MSC_ENV_PREPARATION_H

#include "data/array_log.h"
#include "data/npy.h"
#include "env/api/env.h"

// *out is owned by the caller (msc_array_log_close). It is NULL if the search keeps no files next
// to a record, or if the file cannot be opened, which is logged. MSC_E_NOMEM.
enum msc_status msc_preparation_open(struct msc_array_log **out, const struct msc_env *env);
// Removes the file if it exists.
void msc_preparation_remove(const struct msc_env *env);

// Hash of everything that can change a bit of the parameters. MSC_E_NOMEM.
enum msc_status msc_preparation_identity(struct msc_hash *out, const struct msc_env *env);
// Hash of the arrays of RECORD.params: names and elements in order.
struct msc_hash msc_preparation_hash(const struct msc_array_list *list);
// Path of a file next to the record: RECORD followed by `ending`. NULL: not enough memory.
char *msc_preparation_path(const struct msc_env *env, const char *ending, struct msc_arena *arena);
// Handles a failure to use a kept file. If `why` is MSC_E_NOMEM, returns it. Otherwise logs the
// last error and `consequence` and returns MSC_OK, so that the caller computes the results again.
enum msc_status msc_preparation_pass_over(const struct msc_env *env, enum msc_status why,
                                          const char *consequence);

#define MSC_PREPARATION_NOT_KEPT                                                                   \
    "if this search is interrupted before its first trial, the preparation starts again"

#endif
