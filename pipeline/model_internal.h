// What the files of the model share. Nobody else includes this.
#ifndef MSC_PIPELINE_MODEL_INTERNAL_H
#define MSC_PIPELINE_MODEL_INTERNAL_H

#include "pipeline/model.h"

// What an input is called in datasets; borrowed from the graph.
const char *msc_model__input_name(const struct msc_graph *g, const struct msc_tensor *t);
// Replaces branches that are the same for every sample of the datasets (`more` may be NULL) by what
// they do, so that their joints are the graph's own.
enum msc_status msc_model__take_branches(struct msc_model *m, const struct msc_dataset *data,
                                         const struct msc_dataset *more);
// What the process may hold, unless it was said: half of what is free now, up to 4 GiB.
void msc_model__settle_memory(struct msc_model *m);

#endif
