// Writes compressed models: a graph with the edits of a strategy.
//
//     MSC_TRY(msc_export_strategy(&strategy, env, trial->proposal.choices));
//     MSC_TRY_OUT(msc_export_model(graph, strategy, "small.onnx", record, trial->id));
#ifndef MSC_MODEL_EXPORT_H
#define MSC_MODEL_EXPORT_H

#include "env/api/env.h"
#include "graph/graph.h"
#include "records/record.h"

MSC_PUBLIC_BEGIN

struct msc_strategy;

// Writes a model with a strategy's edits (NULL: none): for TensorFlow Lite (graph/tflite/tflite.h)
// if the path ends in .tflite, else as ONNX. The metadata identify `record` (msc_record_identity;
// may be NULL) and `trial` (< 0: none).
enum msc_status msc_export_model(const struct msc_graph *graph, const struct msc_strategy *strategy,
                                 const char *path, const struct msc_record *record, int64_t trial);
// True if the path names a file for TensorFlow Lite.
bool msc_export_is_tflite(const char *path);
// Checks before a search that its results can be written to this path. A .tflite file needs a
// network that TensorFlow Lite can hold (MSC_E_UNSUPPORTED) and, unless `target` is NULL, the
// target `tflite` (MSC_E_INVALID). `target` names a target.
enum msc_status msc_export_check(const struct msc_graph *graph, const char *path,
                                 const char *target);
// The edits of a point as a strategy; *out is owned by the caller.
enum msc_status msc_export_strategy(struct msc_strategy **out, struct msc_env *env,
                                    const uint32_t choices[]);

MSC_PUBLIC_END

#endif
