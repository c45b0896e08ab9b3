// A model ready to run: its graph, the form of its inputs, the backend that computes it, and its
// samples.
//
//     struct msc_model_options o = MSC_MODEL_OPTIONS_INIT;
//     MSC_TRY(msc_model_open(&model, "digits.onnx", &o));
//     MSC_TRY(msc_model_load_dataset(model, &config->dataset));
//     ... model->graph, model->dataset, model->backend ...
//     msc_model_close(model);
//
// If the leading dimension of the inputs is a symbol, the symbol counts samples: it takes any batch
// size and cannot be bound. A model without such a symbol runs sample by sample.
#ifndef MSC_MODEL_MODEL_H
#define MSC_MODEL_MODEL_H

#include "base/cancel.h"
#include "kernels/backend.h"
#include "config/config.h"

MSC_PUBLIC_BEGIN

struct msc_operators;
struct msc_step_timer;

struct msc_model_options {
    const char *device;    // "auto", "cpu", "vulkan", "vulkan:1", ... (kernels/engine/backends.h)
    int n_threads;         // 0: as many as the machine has
    uint64_t memory_bytes; // limit for the process; 0: half of the free memory
    bool is_single;        // evaluations run one at a time and their kernels use all threads
    bool keeps_types;      // float16 and bfloat16 tensors are not widened to float32 (graph/wide.h)
    const struct msc_binding *bindings;
    size_t n_bindings;
    const char *const *rules; // files of rules that rewrite the graph (graph/rules/rules.h)
    size_t n_rules;
    const struct msc_array_list *feeds; // the only inputs that the model will run on; may be NULL
    const struct msc_array_list
        *weights; // in place of the file's weights (msc_graph_load_weights); may be NULL
    const char *const *plugins; // paths of plug-ins for external joints (model/operators.h)
    size_t n_plugins;
    struct msc_operators *operators; // in place of `plugins`: open plug-ins; may be NULL
    const struct msc_log *log;
    const struct msc_cancel *cancel;
};

#define MSC_MODEL_OPTIONS_INIT                                                                     \
    { .device = "auto" }

// Callers may read the members, but not change them.
struct msc_model {
    struct msc_arena arena;
    const char *path;
    struct msc_graph *graph; // wide (graph/wide.h), unless the model keeps its types
    struct msc_backend *backend;
    struct msc_operators *operators; // from the options
    int n_threads;                   // threads for evaluation
    uint64_t memory_bytes;
    struct msc_binding *bindings; // from the options
    size_t n_bindings;
    const char **rules; // from the options
    size_t n_rules;
    size_t n_inputs;
    struct msc_input_spec *specs; // [n_inputs], with bound values
    bool is_batched;
    bool has_state;                 // the samples of a batch form a sequence
    struct msc_dataset *dataset;    // NULL until loaded
    struct msc_dataset *validation; // NULL: none
    int64_t n_shared;               // calibration samples left out of `validation`
    const struct msc_log *log;
    const struct msc_cancel *cancel;
};

// *out is owned by the caller.
enum msc_status msc_model_open(struct msc_model **out, const char *path,
                               const struct msc_model_options *options);
// Like msc_model_open, for a finalized graph that the program has built. No pass changes the graph
// (docs/graph.md). `name` begins error messages. `feeds` and `weights` of the options are not used.
enum msc_status msc_model_open_graph(struct msc_model **out, const struct msc_graph *graph,
                                     const char *name, const struct msc_model_options *options);
void msc_model_close(struct msc_model *model); // accepts NULL

// Loads the samples for the search and, if the configuration has them, for validation. A batch size
// of 0 in `from` is replaced by one that depends only on the model's shapes.
enum msc_status msc_model_load_dataset(struct msc_model *model, struct msc_config_dataset *from);
// If the inputs do not all begin with the same symbol, a leading symbol may count time steps rather
// than samples. Arrays [n_inputs] that have exactly the inputs' shapes are then one sample.
void msc_model_take_whole(struct msc_model *model, const struct msc_array *const arrays[]);
// Turns inputs into states. Call it before samples are loaded or the network runs. The strings are
// borrowed.
enum msc_status msc_model_set_states(struct msc_model *model,
                                     const struct msc_config_state states[], size_t n);
// Replaces the model's weights by those of `path`: a model with the same joints (ONNX, MSCGraph
// JSON), or a .npz or .safetensors file. The arrays of such a file must have the names and shapes
// that the weights have in the model's file; floats may have any width (graph/onnx/load.h). Weights
// that are not in `path` are read from the model's file. Weights of a pruned network fit if the
// model was opened with such weights of the same shapes. Graph, samples and backend remain. A
// strategy fits only the weights it was found with: call msc_strategy_refit. MSC_E_INVALID: `path`
// does not fit the model, which is unchanged.
enum msc_status msc_model_update_weights(struct msc_model *model, const char *path);
const char *msc_model_numerics(const struct msc_model *model);

// The `baseline` stage: compares the backend's outputs on the first batch with those of the
// reference kernels. MSC_E_STATE names an output that is not close (model/allclose.h). If an output
// after a discontinuity differs, the tensors before the discontinuity are compared instead
// (graph/discontinuity.h). If an output differs after a tensor that the network quantises itself,
// the comparison starts from that tensor's integers, which are compared too (model/grids.h).
enum msc_status msc_model_check(struct msc_model *model, const struct msc_config_dataset *from,
                                double atol, double rtol);

// One run of the network.
struct msc_model_run {
    const struct msc_array *const *inputs; // [n_inputs], in the graph's order
    const char *const *places;             // [n_inputs] their sources, for errors; or NULL
    const struct msc_strategy *strategy;   // NULL: float
    const char *const *tensors;            // names of tensors to return; n_tensors 0: the outputs
    size_t n_tensors;
    int64_t repeat;   // measured runs; 0: none
    bool keeps_types; // outputs have the model's own types, also if its graph is wide
    bool is_sequence; // inputs are chunks for the model's states; inputs of states may be NULL
    const struct msc_step_timer *timer; // times of steps (kernels/engine/evaluator.h); NULL: none
    // Results, owned by the caller.
    struct msc_array **outputs; // [n_outputs] from msc_alloc
    int32_t *wanted;            // [n_outputs] tensor ids of the model's graph, from msc_alloc
    size_t n_outputs;
    double *microseconds; // [repeat], sorted
};
// The inputs hold the samples of one batch. Without a dataset they also decide branches, for all
// later runs. The outputs have the same bits as a search computes on such a batch, unless the model
// was opened with `is_single`.
enum msc_status msc_model_run(struct msc_model *model, struct msc_model_run *run);
void msc_model_run_finish(struct msc_model_run *run); // frees the results

MSC_PUBLIC_END

#endif
