// RECORD.moments: what is worked out before the first trial, as far as it has come, while integers of
// weights are being found: scales, reference outputs and second moments of weights' inputs
// (tools/moment_file.h). A search that is killed then runs none of its passes over the samples again. It
// goes once RECORD.params is there.
//
//     MSC_TRY(msc_quantize_kept_open(&kept, env, z));                 // NULL: none
//     MSC_TRY(msc_quantize_kept_take(&is_there, kept, z));            // or observe, and
//     MSC_TRY(msc_quantize_kept_add(&kept, env, z));
//     msc_array_log_close(kept);
//     msc_preparation_remove(env);                                    // env/preparation.h
//
// RECORD.prepared: RECORD.params of a launch that was ended before its record began, renamed by whoever
// begins the record now. What it holds is taken where it says that it came of all that this would come
// of.
//
//     MSC_TRY(msc_quantize_kept_take_prepared(&is_there, env, z));    // or calibrate, and
//     MSC_TRY(msc_quantize_kept_save(list, env, z));                  // RECORD.params itself
#ifndef MSC_ENV_QUANTIZE_KEPT_H
#define MSC_ENV_QUANTIZE_KEPT_H

#include "data/array_log.h"
#include "env/preparation.h"
#include "env/quantize/internal.h"

// Scales, integers, reference outputs and what `more` keeps, as arrays, and from such.
enum msc_status msc_quantize_kept_list(const struct msc_quantize *z, struct msc_array_list *list);
enum msc_status msc_quantize_kept_load(struct msc_quantize *z, const struct msc_array_list *list);

// *out is the caller's (msc_array_log_close). NULL where no choice takes second moments, nothing is kept
// beside a record, or the file cannot be had, which the log is told. MSC_E_NOMEM.
enum msc_status msc_quantize_kept_open(struct msc_array_log **out, const struct msc_env *env,
                                       const struct msc_quantize *z);
// Scales and reference outputs, where they are there. `kept` may be NULL. MSC_E_NOMEM.
enum msc_status msc_quantize_kept_take(bool *is_there, const struct msc_array_log *kept,
                                       const struct msc_env *env, struct msc_quantize *z);
// Adds them. Where that cannot be done the log is told, and *kept closed. MSC_E_NOMEM.
enum msc_status msc_quantize_kept_add(struct msc_array_log **kept, const struct msc_env *env,
                                      const struct msc_quantize *z);
// Scales, integers and reference outputs of RECORD.prepared. What it says of latencies does not count:
// these are a record's own. MSC_E_NOMEM.
enum msc_status msc_quantize_kept_take_prepared(bool *is_there, const struct msc_env *env,
                                                struct msc_quantize *z);
// RECORD.params, with what it came of.
enum msc_status msc_quantize_kept_save(const struct msc_array_list *list, const struct msc_env *env,
                                       const struct msc_quantize *z);
#endif
