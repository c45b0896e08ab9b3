// Reads model files of any supported format: ONNX, GGUF (graph/gguf/decoder.h), or MSCGraph as text
// or JSON with its weights.
//
//     struct msc_graph *g;
//     MSC_TRY(msc_graph_load(&g, "model.onnx"));
#ifndef MSC_GRAPH_ONNX_LOAD_H
#define MSC_GRAPH_ONNX_LOAD_H

#include "graph/graph.h"

MSC_PUBLIC_BEGIN

struct msc_operators;

// Loads a model file by its extension: .onnx, .gguf, or MSCGraph (.msc or .json) next to a
// .safetensors of the same name, which a graph without weights does not need. The passes run on
// every graph that can be computed (graph/passes/simplify.h). The graph has no plug-ins for
// external joints (graph/external.h); the functions below take them as `operators`, which may be
// NULL.
enum msc_status msc_graph_load(struct msc_graph **out, const char *path);
// Like msc_graph_load, but for callers that print or save the graph as text: MSCGraph may lack its
// weights file. *has_weights is false if the graph needs that file and it does not exist; then
// nothing can be computed or folded.
enum msc_status msc_graph_load_form(struct msc_graph **out, bool *has_weights, const char *path,
                                    struct msc_operators *operators);
// Like msc_graph_load, but no pass runs: the joints are those of the file.
enum msc_status msc_graph_load_plain(struct msc_graph **out, const char *path);
// Like msc_graph_load, but if the network cannot be read without its inputs, reads it for the
// inputs in `feeds` (by name). The graph is then valid only for these inputs.
enum msc_status msc_graph_load_for(struct msc_graph **out, const char *path,
                                   const struct msc_array_list *feeds,
                                   struct msc_operators *operators);
// Like msc_graph_load, with bindings that may select branches: the condition of a branch may depend
// on a length, or on an input of one integer (bound by the input's name). If *is_bound is set to
// true, the bindings have been applied to the graph; otherwise the caller must bind the graph.
enum msc_status msc_graph_load_bound(struct msc_graph **out, bool *is_bound, const char *path,
                                     const struct msc_binding bindings[], size_t n,
                                     struct msc_operators *operators);
// Like msc_graph_load_bound, but replaces weights before any pass runs. `weights` uses the names
// and shapes of the file; floats of another width are converted. For ONNX, shapes may be smaller if
// `weights` has all weights of a network from which channels were removed. For each layer,
// `weights` must contain either none of its weights, or all of them and all weights of the
// normalisation after the layer. MSC_E_INVALID if a name is unknown, a weight does not fit, or a
// weight of a layer is missing.
enum msc_status msc_graph_load_weights(struct msc_graph **out, bool *is_bound, const char *path,
                                       const struct msc_binding bindings[], size_t n,
                                       const struct msc_array_list *weights,
                                       struct msc_operators *operators);
// Paths of the other files that a model is read from, such as files of weights. The strings are in
// the arena. Does not check that the files exist.
enum msc_status msc_graph_companions(const char *const **out, size_t *n, struct msc_arena *arena,
                                     const char *path);

MSC_PUBLIC_END

#endif
