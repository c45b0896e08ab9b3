// Writes compressed models: a graph with the edits of a strategy, as ONNX.
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

// Writes a model with a strategy's edits (NULL: none) as ONNX. The metadata identify `record`
// (msc_record_identity; may be NULL) and `trial` (< 0: none).
enum msc_status msc_export_model(const struct msc_graph *graph, const struct msc_strategy *strategy,
                                 const char *path, const struct msc_record *record, int64_t trial);
// The edits of a point as a strategy; *out is owned by the caller.
enum msc_status msc_export_strategy(struct msc_strategy **out, struct msc_env *env,
                                    const uint32_t choices[]);

MSC_PUBLIC_END

#endif
