// MSCProcessor runs the stages of a configuration, from the model file to the compressed model.
//
//     struct msc_processor_options o = MSC_PROCESSOR_OPTIONS_INIT;
//     MSC_TRY(msc_processor_open(&p, "digits.json", &o));
//     MSC_TRY(msc_processor_run(p, &result));
//     ... result.reports ...
//     msc_processor_result_finish(&result);
//     msc_processor_close(p);
//
// The stage `baseline` checks the backend. Then the searches of the configuration run in turn. Each
// starts from the results of the searches before it. The best trial of each search is written to
// the section's strategy file and to WORKSPACE/<model>.onnx, during the search and at its end. A
// record can be opened in place of a configuration: it has one search (msc_processor_open_record).
//
// If a configuration names more of the RFC's stages (`prepare`, `parse`, `optimize`, `distill`,
// `track`, `compile`, `export`), each is recorded in WORKSPACE/msc_stages.json with a hash of
// everything it depends on. A stage whose hash has not changed does not run again: its recorded
// report is used, and neither model nor dataset is loaded for it (docs/stages.md).
//
// The log and the log file report each improvement, progress at intervals of `log_every`, and at
// the end why the search ended and its result.
//
// Files next to a record:
//     RECORD.params        scales and reference outputs
//     RECORD.moments       progress of computing RECORD.params, before the first trial
//     RECORD.prepared      scales from a launch that ended before it began a record
//     RECORD.base.json     the strategy that the search started from, if any
//     RECORD.result.json   results computed at the end
//     RECORD.rerank.json   the new order of the best trials, if requested
//     RECORD.distill.json  the winner with improved weights, if requested
//     RECORD.attempt       trials in flight, while the search runs
// A record that is set aside takes these files along, except .moments, .prepared and .attempt.
#ifndef MSC_PIPELINE_PROCESSOR_H
#define MSC_PIPELINE_PROCESSOR_H

#include "config/config.h"
#include "model/export.h"
#include "model/model.h"
#include "pipeline/processor_options.h"
#include "pipeline/processor_result.h"
#include "model/program_id.h"
#include "search/search.h"

MSC_PUBLIC_BEGIN

struct msc_processor;

// `path` is a configuration; no other file is read or written yet. Strings in the options are
// borrowed until close. *out is owned by the caller.
enum msc_status msc_processor_open(struct msc_processor **out, const char *path,
                                   const struct msc_processor_options *options);
// Opens the configuration in the header of a record. MSC_E_STATE: the header names a library or
// program that the options do not allow. A dry run starts no agent, so it refuses only libraries
// that it would load. A worker without node_path refuses only environments that are code.
enum msc_status msc_processor_open_record(struct msc_processor **out, const char *path,
                                          const struct msc_processor_options *options);
void msc_processor_close(struct msc_processor *p); // accepts NULL

const struct msc_config *msc_processor_config(const struct msc_processor *p);

// Call msc_processor_result_finish after success.
enum msc_status msc_processor_run(struct msc_processor *p, struct msc_processor_result *result);

// Loads model, dataset and environment of a record's search, without changing any file.
enum msc_status msc_processor_prepare(struct msc_processor *p);
// Call these two after msc_processor_prepare. The results are borrowed.
struct msc_env *msc_processor_env(const struct msc_processor *p);
const char *msc_processor_numerics(const struct msc_processor *p);
const struct msc_graph *msc_processor_graph(const struct msc_processor *p); // NULL without a model

MSC_PUBLIC_END

#endif
