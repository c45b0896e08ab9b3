// MSCProcessor: the stages of a configuration, from the model file to the compressed model.
//
//     struct msc_processor_options o = MSC_PROCESSOR_OPTIONS_INIT;
//     MSC_TRY(msc_processor_open(&p, "digits.json", &o));
//     MSC_TRY(msc_processor_run(p, &result));
//     ... result.reports ...
//     msc_processor_result_finish(&result);
//     msc_processor_close(p);
//
// The stage `baseline` checks the backend. Then each search of the configuration runs in turn and
// starts from what the searches before it have found. The best trial of each becomes the section's
// strategy file and the ONNX file WORKSPACE/<model>.onnx, while the search runs and at its end. A
// record can be opened in place of a configuration with its one search (msc_processor_open_record).
//
// If a configuration names more of the RFC's stages (`prepare`, `parse`, `optimize`, `distill`,
// `track`, `compile`, `export`), each is recorded in WORKSPACE/msc_stages.json with the hash of all
// that it depends on. A stage whose hash has not changed is not run again: its report is the
// recorded one, and model and dataset are not loaded for it (docs/stages.md).
//
// The log and its file tell of each improvement, from time to time how far the search is
// (`log_every`), and at the end why it ended and with what.
//
// Files next to a record:
//     RECORD.params        scales and reference outputs
//     RECORD.moments       how far the search has come with these before its first trial
//     RECORD.prepared      scales of a launch that was ended before its record began
//     RECORD.base.json     the strategy that the search started from, if any
//     RECORD.result.json   what was computed at the end
//     RECORD.rerank.json   how the best trials were reordered, if asked for
//     RECORD.distill.json  the winner with better weights, if asked for
//     RECORD.attempt       trials in flight, while the search runs
// A record that is set aside takes them along, except .moments, .prepared and .attempt.
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

// `path` is a configuration; no other file is read or written yet. Text in the options is borrowed
// until close. *out is owned by the caller.
enum msc_status msc_processor_open(struct msc_processor **out, const char *path,
                                   const struct msc_processor_options *options);
// Opens the configuration in the header of a record. MSC_E_STATE: it names a library or a program,
// and the options do not allow it. A dry run starts no agent, so that only libraries to load are
// refused; a worker without node_path refuses only environments that are code.
enum msc_status msc_processor_open_record(struct msc_processor **out, const char *path,
                                          const struct msc_processor_options *options);
void msc_processor_close(struct msc_processor *p); // accepts NULL

const struct msc_config *msc_processor_config(const struct msc_processor *p);

// The result is to be finished unless this fails.
enum msc_status msc_processor_run(struct msc_processor *p, struct msc_processor_result *result);

// For looking at a record: model, dataset and environment of its search, as the record was made.
enum msc_status msc_processor_prepare(struct msc_processor *p);
struct msc_env *msc_processor_env(const struct msc_processor *p);  // once prepared; borrowed
const char *msc_processor_numerics(const struct msc_processor *p); // once prepared
const struct msc_graph *msc_processor_graph(const struct msc_processor *p); // NULL without a model

MSC_PUBLIC_END

#endif
