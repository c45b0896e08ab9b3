// RECORD.moments: what an environment has worked out before its first trial, as far as it has come
// (data/array_log.h). A search that is killed then goes on from there. It goes once RECORD.params is there.
//
//     MSC_TRY(msc_preparation_open(&kept, env));       // NULL: nothing is kept
//     ... msc_array_log_read(&array, kept, "a"), or work it out and msc_array_log_add ...
//     msc_array_log_close(kept);
//     msc_preparation_remove(env);
#ifndef MSC_ENV_PREPARATION_H
#define MSC_ENV_PREPARATION_H

#include "data/array_log.h"
#include "data/npy.h"
#include "env/api/env.h"

// *out is the caller's (msc_array_log_close). NULL where nothing is kept beside a record, or the file cannot
// be had, which the log is told. MSC_E_NOMEM.
enum msc_status msc_preparation_open(struct msc_array_log **out, const struct msc_env *env);
// The file, if there is one, and no other.
void msc_preparation_remove(const struct msc_env *env);

// All that can change a bit of what is kept. MSC_E_NOMEM.
enum msc_status msc_preparation_identity(struct msc_hash *out, const struct msc_env *env);
// Of the arrays of RECORD.params: names and elements, in their order.
struct msc_hash msc_preparation_hash(const struct msc_array_list *list);
// Of a file beside the record. NULL: out of memory.
char *msc_preparation_path(const struct msc_env *env, const char *ending, struct msc_arena *arena);
// Without what is of no use all is worked out anew, which the log is told; only want of memory ends it.
enum msc_status msc_preparation_pass_over(const struct msc_env *env, enum msc_status why,
                                          const char *consequence);

#define MSC_PREPARATION_NOT_KEPT                                                                   \
    "what is worked out before the first trial is not kept until it is done"

#endif
