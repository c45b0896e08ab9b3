// Functions shared by the files of model/.
#ifndef MSC_MODEL_MODEL_INTERNAL_H
#define MSC_MODEL_MODEL_INTERNAL_H

#include "kernels/engine/evaluator.h"
#include "model/model.h"

// Name of an input in datasets; borrowed from the graph.
static inline const char *msc_model__input_name(const struct msc_graph *g,
                                                const struct msc_tensor *t) {
    return t->alias[0] ? t->alias : msc_graph_joint(g, t->producer)->name;
}

// Takes a reference to a split graph in the model's own types, widened unless `keeps_types`.
enum msc_status msc_model__set_graph(struct msc_model *m, const struct msc_graph *g,
                                     bool keeps_types);
// sample_axes.c: sets `is_batched` and `axis` of the specs by the symbol for the number of samples.
void msc_model__find_symbol_axes(struct msc_model *m);
// Sets them of further inputs: those with an open length that must equal the number of samples.
void msc_model__find_equal_axes(struct msc_model *m);
// If every sample of the datasets (`more` may be NULL) takes the same branch, replaces all branches
// by the joints of that branch.
enum msc_status msc_model__take_branches(struct msc_model *m, const struct msc_dataset *data,
                                         const struct msc_dataset *more);
// Sets the memory limit of the process, unless the options gave one, to half of the free memory, up
// to 4 GiB.
void msc_model__settle_memory(struct msc_model *m);
// Fills wanted and n_outputs of a run; outputs are NULL (free with msc_model_run_finish).
enum msc_status msc_model__find_wanted(const struct msc_model *m, struct msc_model_run *run);

// Replaces a value of a wide graph's tensor by one in the model's own type.
enum msc_status msc_model__narrow(struct msc_array **array, const struct msc_graph *g,
                                  int32_t tensor);

// A network on one batch, ready to run repeatedly.
struct msc_model_runner {
    struct msc_evaluator *ev;
    const struct msc_edit **edits;
    struct msc_bias_edits *bias_edits;
    struct msc_array **outputs; // [n_outputs] borrowed; the first run fills them
    size_t n_outputs;
    bool is_done;
    struct msc_graph *pruned; // the model without the channels that a strategy removes, or NULL
    int32_t *wanted;          // [n_outputs] tensors of `pruned`
};

// Uses strategy, wanted and outputs of `run`; model, data and run are borrowed until
// msc_model__runner_close.
enum msc_status msc_model__runner_open(struct msc_model_runner *r, const struct msc_model *m,
                                       const struct msc_dataset *data,
                                       const struct msc_model_run *run);
// Runs all batches of the dataset within the model's memory. The sink gets the wanted tensors [n]
// of the model's graph; `strategy` NULL: float.
enum msc_status msc_model__feed(const struct msc_model *m, const struct msc_strategy *strategy,
                                const struct msc_dataset *data, const int32_t wanted[], size_t n,
                                const struct msc_sink *sink);
// The model's graph bound to the inputs of the first batch, or of its first chunk. Tensors that are
// constant for these inputs are not in it. *out is owned by the caller.
enum msc_status msc_model__bind_first(struct msc_graph **out, const struct msc_model *m,
                                      const struct msc_dataset *data);
// Runs once and returns the time. The first run also packs the weights.
enum msc_status msc_model__runner_run(struct msc_model_runner *r, double *microseconds);
void msc_model__runner_close(struct msc_model_runner *r); // accepts a zeroed struct

#endif
