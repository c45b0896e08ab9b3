// A model made ready: its graph, what its inputs are, the backend that computes it, its samples.
//
//     struct msc_model_options o = MSC_MODEL_OPTIONS_INIT;
//     MSC_TRY(msc_model_open(&model, "digits.onnx", &o));
//     MSC_TRY(msc_model_load_dataset(model, &config->dataset));
//     ... model->graph, model->dataset, model->backend ...
//     msc_model_close(model);
//
// The leading dimension of the inputs, where it is a symbol, counts samples: it takes any batch
// size and cannot be bound. A model without it runs sample by sample.
#ifndef MSC_MODEL_MODEL_H
#define MSC_MODEL_MODEL_H

#include "base/cancel.h"
#include "kernels/backend.h"
#include "config/config.h"

MSC_PUBLIC_BEGIN

struct msc_model_options {
    const char *device;
    int n_threads;         // 0: all there are
    uint64_t memory_bytes; // that the process may hold; 0: half of what is free
    bool is_single;        // one evaluation at a time: the threads go inside the kernels
    const struct msc_binding *bindings;
    size_t n_bindings;
    const struct msc_array_list *feeds;   // the only inputs that it will run on; may be NULL
    const struct msc_array_list *weights; // over the file's (msc_graph_load_weights); may be NULL
    const struct msc_log *log;
    const struct msc_cancel *cancel;
};

#define MSC_MODEL_OPTIONS_INIT                                                                     \
    { .device = "auto" }

// Open structure, to be read only.
struct msc_model {
    struct msc_arena arena;
    const char *path;
    struct msc_graph *graph;
    struct msc_backend *backend;
    int n_threads; // to evaluate with
    uint64_t memory_bytes;
    struct msc_binding *bindings; // as they were given
    size_t n_bindings;
    size_t n_inputs;
    struct msc_input_spec *specs; // [n_inputs], with bound values
    bool is_batched;
    bool has_state;                 // samples of a batch follow one another
    struct msc_dataset *dataset;    // NULL until loaded
    struct msc_dataset *validation; // NULL: none
    int64_t n_shared;               // samples for validation that are others, too, and left out
    const struct msc_log *log;
    const struct msc_cancel *cancel;
};

// *out is owned by the caller.
enum msc_status msc_model_open(struct msc_model **out, const char *path,
                               const struct msc_model_options *options);
void msc_model_close(struct msc_model *model); // accepts NULL

// Samples for the search and, when asked for, for validation. A batch size of 0 in `from` is
// replaced by one that only the model's shapes decide.
enum msc_status msc_model_load_dataset(struct msc_model *model, struct msc_config_dataset *from);
// Of inputs that do not all begin with the same symbol this may be steps in time as well as samples:
// where the arrays [n_inputs] are just what the inputs want, they become one sample.
void msc_model_take_whole(struct msc_model *model, const struct msc_array *const arrays[]);
// Makes inputs states, before samples are loaded or the network is run; texts are borrowed.
enum msc_status msc_model_set_states(struct msc_model *model,
                                     const struct msc_config_state states[], size_t n);
// Takes the weights of `path` from now on: a model with the same joints (ONNX, MSCGraph JSON), or a .npz
// or .safetensors with arrays by the names and shapes that weights have in the model's file, floats of any
// width (graph/onnx/load.h); those that are not named are again the file's. Graph, samples and backend stay. Strategies are for the weights
// that they were found with: msc_strategy_refit makes them fit. MSC_E_INVALID: they are no weights of this
// model, and it stays as it was.
enum msc_status msc_model_update_weights(struct msc_model *model, const char *path);
const char *msc_model_numerics(const struct msc_model *model);

// The `baseline` stage: the backend's float outputs on the first batch against those of the
// reference kernels. MSC_E_STATE names the output that differs by more than atol + rtol * |value|
// (model/allclose.h says it all). In place of an output that differs behind a discontinuity, the
// tensors before it are compared (graph/discontinuity.h); an output that differs behind what the
// network quantises itself is compared from there on, and the codes with it (model/grids.h).
enum msc_status msc_model_check(struct msc_model *model, const struct msc_config_dataset *from,
                                double atol, double rtol);

// One run of the network.
struct msc_model_run {
    const struct msc_array *const *inputs; // [n_inputs], in the graph's order
    const char *const *places;             // [n_inputs] where they are from, for errors; or NULL
    const struct msc_strategy *strategy;   // NULL: float
    const char *const *tensors;            // names of what to return; n_tensors 0: the outputs
    size_t n_tensors;
    int64_t repeat;   // measured runs; 0: none
    bool is_sequence; // inputs hold chunks for the model's states; those of states may be NULL
    // Results, owned by the caller.
    struct msc_array **outputs; // [n_outputs] from msc_alloc
    int32_t *wanted;            // [n_outputs] tensor ids of the model's graph, likewise
    size_t n_outputs;
    double *microseconds; // [repeat], sorted
};
// Inputs have the samples of one batch. Without a dataset they decide branches for good. Outputs
// have the bits that the search computes on such a batch when the model was not opened as single.
enum msc_status msc_model_run(struct msc_model *model, struct msc_model_run *run);
void msc_model_run_finish(struct msc_model_run *run); // frees the results

MSC_PUBLIC_END

#endif
