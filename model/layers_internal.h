// Shared by model/layers*.c.
#ifndef MSC_MODEL_LAYERS_INTERNAL_H
#define MSC_MODEL_LAYERS_INTERNAL_H

#include "model/layers.h"
#include "model/model_internal.h"

// A network with its edits, ready to run on one sample.
struct msc_layers_side {
    struct msc_model_run run;
    struct msc_model_runner runner;
    struct msc_step_timer timer;
    const struct msc_graph *graph; // the model's, or without the channels that the strategy removes
    const struct msc_plan *plan;
    double *now_us, *least_us; // [n_steps], in the arena; of the last run, and the least of all
    double now_other_us, least_other_us;
};

// layers_time.c: opens a side on `sample` and runs it `n_runs` times. `strategy` NULL: unmodified.
// Call msc_layers__finish also after a failure.
enum msc_status msc_layers__measure(struct msc_layers_side *side, const struct msc_model *model,
                                    const struct msc_strategy *strategy,
                                    const struct msc_dataset *sample, int n_runs,
                                    struct msc_arena *arena);
void msc_layers__finish(struct msc_layers_side *side); // accepts a zeroed side
// The edit of a weight slot of the side's graph; NULL: none.
const struct msc_edit *msc_layers__edit(const struct msc_layers_side *side, int32_t slot);

// At most this many bins lie inside of the range of q, and this many on each side of it.
enum { MSC_LAYERS_BINS = 64, MSC_LAYERS_MARGIN = 4 };

// A histogram over the levels q of a quantisation.
struct msc_layers_levels {
    const struct msc_quant *quant; // borrowed
    double from, step;             // in q
    size_t n_bins;
    double counts[MSC_LAYERS_BINS + 2 * MSC_LAYERS_MARGIN];
    double n, n_clipped;
};

// layers_levels.c: counts the elements of a tensor, and adds a member of the lists `weights` and
// `activations`.
void msc_layers__levels_init(struct msc_layers_levels *levels, const struct msc_quant *quant);
enum msc_status msc_layers__levels_count(struct msc_layers_levels *levels, int32_t n_dims,
                                         const int64_t dims[], const float x[]);
enum msc_status msc_layers__levels_add(struct cJSON *list, const struct msc_layers_levels *levels,
                                       const char *name);

// layers_activations.c: the list `activations`, over the model's dataset.
enum msc_status msc_layers__activations(struct cJSON *list, const struct msc_model *model,
                                        const struct msc_strategy *strategy,
                                        const struct msc_layers_side *side);
// layers_weights.c: the list `weights`.
enum msc_status msc_layers__weights(struct cJSON *list, const struct msc_layers_side *side);

#endif
