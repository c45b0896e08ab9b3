// MSCProcessor: the stages of a configuration, from the model file to the compressed model.
//
//     struct msc_processor_options o = MSC_PROCESSOR_OPTIONS_INIT;
//     MSC_TRY(msc_processor_open(&p, "digits.json", &o));
//     MSC_TRY(msc_processor_run(p, &result));
//     ... result.reports ...
//     msc_processor_result_finish(&result);
//     msc_processor_close(p);
//
// Stages: `baseline` checks the backend; then each search of the configuration in turn, starting
// from what those before it found; the best of each goes to the section's strategy file and, as
// ONNX, to WORKSPACE/<model>.onnx, while the search runs and at its end. A record stands for a
// configuration with its one search (msc_processor_open_record).
//
// A configuration that names more of the RFC's stages (`prepare`, `parse`, `optimize`, `distill`,
// `track`, `compile`, `export`) has each of them recorded in WORKSPACE/msc_stages.json with the hash of
// all that it rests on. What is unchanged is not done again, model and dataset are not even loaded, and
// its report is that of the time when it was done (docs/stages.md).
//
// How a search goes stands in the log and its file: each improvement, now and then a line on how far
// it is (`log_every`), and at the end why it ended and with what.
//
// Beside a record: RECORD.params (scales and reference outputs), RECORD.moments (how far it has come
// with these, while it makes integers of weights or orders of channels), RECORD.prepared (the first, of a
// launch that was ended before its record began), RECORD.base.json (the strategy it started from, if any), RECORD.result.json
// (what its end worked out), RECORD.rerank.json (how its best trials were ordered anew, if asked for),
// RECORD.distill.json (its winner with better weights, if asked for), RECORD.attempt (while it runs). All
// go with a record that is set aside, but the second, the third and the last.
#ifndef MSC_PIPELINE_PROCESSOR_H
#define MSC_PIPELINE_PROCESSOR_H

#include "pipeline/config.h"
#include "pipeline/export.h"
#include "pipeline/model.h"
#include "pipeline/processor_options.h"
#include "pipeline/processor_result.h"
#include "pipeline/program_id.h"
#include "search/search.h"

MSC_PUBLIC_BEGIN

struct msc_processor;

// `path` is a configuration. Nothing but it is read or written yet. Text in the options is borrowed
// until close. *out is owned by the caller.
enum msc_status msc_processor_open(struct msc_processor **out, const char *path,
                                   const struct msc_processor_options *options);
// From the header of a record alone. MSC_E_STATE: it names a library or a program (in a dry run,
// which starts no agent: a library that would have to be loaded; at a worker, which has no node_path: an
// environment that is code), and options do not allow it.
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
