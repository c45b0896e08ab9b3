// What the files of the model share. Nobody else includes this.
#ifndef MSC_MODEL_MODEL_INTERNAL_H
#define MSC_MODEL_MODEL_INTERNAL_H

#include "kernels/engine/evaluator.h"
#include "model/model.h"

// What an input is called in datasets; borrowed from the graph.
static inline const char *msc_model__input_name(const struct msc_graph *g,
                                                const struct msc_tensor *t) {
    return t->alias[0] ? t->alias : msc_graph_joint(g, t->producer)->name;
}

// Replaces branches that are the same for every sample of the datasets (`more` may be NULL) by what
// they do, so that their joints are the graph's own.
enum msc_status msc_model__take_branches(struct msc_model *m, const struct msc_dataset *data,
                                         const struct msc_dataset *more);
// What the process may hold, unless it was said: half of what is free now, up to 4 GiB.
void msc_model__settle_memory(struct msc_model *m);
// Fills wanted and n_outputs of a run, with outputs that are NULL (msc_model_run_finish).
enum msc_status msc_model__find_wanted(const struct msc_model *m, struct msc_model_run *run);

// A network on one batch, ready to run again and again.
struct msc_model_runner {
    struct msc_evaluator *ev;
    const struct msc_edit **edits;
    struct msc_bias_edits *bias_edits;
    struct msc_array **outputs; // [n_outputs] borrowed; the first run fills them
    size_t n_outputs;
    bool is_done;
    struct msc_graph *pruned; // of a strategy that takes channels away; else NULL
    int32_t *wanted;          // [n_outputs] its tensors
};

// With the strategy, wanted and outputs of `run`; model, data and run are borrowed until it is
// closed.
enum msc_status msc_model__runner_open(struct msc_model_runner *r, const struct msc_model *m,
                                       const struct msc_dataset *data,
                                       const struct msc_model_run *run);
// All batches of the dataset, within the model's memory. The sink gets the wanted tensors [n] of the
// model's graph; `strategy` NULL: float.
enum msc_status msc_model__feed(const struct msc_model *m, const struct msc_strategy *strategy,
                                const struct msc_dataset *data, const int32_t wanted[], size_t n,
                                const struct msc_sink *sink);
// What it took. The first time packs the weights, too.
enum msc_status msc_model__runner_run(struct msc_model_runner *r, double *microseconds);
void msc_model__runner_close(struct msc_model_runner *r); // accepts a zeroed one

#endif
