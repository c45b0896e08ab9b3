// RECORD.moments: partial results of the preparation before the first trial, kept while it finds
// the integers of weights. The results are scales, reference outputs and second moments of the
// inputs of weights (tools/moment_file.h). If the search is killed, the next launch repeats none of
// its passes over the samples. The file is removed when RECORD.params is complete.
//
//     MSC_TRY(msc_quantize_kept_open(&kept, env, z));                 // NULL: not kept
//     MSC_TRY(msc_quantize_kept_take(&is_there, kept, env, z));       // or observe, and
//     MSC_TRY(msc_quantize_kept_add(&kept, env, z));
//     msc_array_log_close(kept);
//     msc_preparation_remove(env);                                    // env/preparation.h
//
// RECORD.prepared: RECORD.params of a launch that ended before its record began, renamed by the
// launch that begins the record now. It is used if its metadata say that it was computed from the
// same inputs.
//
//     MSC_TRY(msc_quantize_kept_take_prepared(&is_there, env, z));    // or calibrate, and
//     MSC_TRY(msc_quantize_kept_save(list, env, z));                  // RECORD.params itself
#ifndef MSC_ENV_QUANTIZE_KEPT_H
#define MSC_ENV_QUANTIZE_KEPT_H

#include "data/array_log.h"
#include "env/preparation.h"
#include "env/quantize/internal.h"

// The array of the losses of single choices (env/quantize/alone.h).
#define MSC_QUANTIZE_ALONE "alone"

// Lists scales, integers, reference outputs and the arrays of `more`, and loads them from such a
// list. Also loads the losses of single choices, if the list has them.
enum msc_status msc_quantize_kept_list(const struct msc_quantize *z, struct msc_array_list *list);
enum msc_status msc_quantize_kept_load(struct msc_quantize *z, const struct msc_array_list *list);

// Opens RECORD.moments. *out is owned by the caller (msc_array_log_close). It is NULL if no choice
// needs second moments, if the search keeps no files next to a record, or if the file cannot be
// opened, which is logged. MSC_E_NOMEM.
enum msc_status msc_quantize_kept_open(struct msc_array_log **out, const struct msc_env *env,
                                       const struct msc_quantize *z);
// Loads scales and reference outputs if RECORD.moments has them. `kept` may be NULL. MSC_E_NOMEM.
enum msc_status msc_quantize_kept_take(bool *is_there, const struct msc_array_log *kept,
                                       const struct msc_env *env, struct msc_quantize *z);
// Adds scales and reference outputs to RECORD.moments. A failure is logged, and *kept is closed.
// MSC_E_NOMEM.
enum msc_status msc_quantize_kept_add(struct msc_array_log **kept, const struct msc_env *env,
                                      const struct msc_quantize *z);
// Loads scales, integers and reference outputs of RECORD.prepared. Its latencies are ignored,
// because each record measures its own. MSC_E_NOMEM.
enum msc_status msc_quantize_kept_take_prepared(bool *is_there, const struct msc_env *env,
                                                struct msc_quantize *z);
// Writes RECORD.params, with hashes of its inputs and contents in the metadata.
enum msc_status msc_quantize_kept_save(const struct msc_array_list *list, const struct msc_env *env,
                                       const struct msc_quantize *z);
#endif
