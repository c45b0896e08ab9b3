// Reads model files of any supported format: ONNX, or MSCGraph JSON with its weights.
//
//     struct msc_graph *g;
//     MSC_TRY(msc_graph_load(&g, "model.onnx"));
#ifndef MSC_GRAPH_ONNX_LOAD_H
#define MSC_GRAPH_ONNX_LOAD_H

#include "graph/graph.h"

MSC_PUBLIC_BEGIN

// Loads a model file by its extension: .onnx, or MSCGraph .json next to a .safetensors of the
// same name.
enum msc_status msc_graph_load(struct msc_graph **out, const char *path);
// The same if only the text forms are needed: MSCGraph .json may lack its weights file.
// *has_weights reports whether it exists; without weights nothing can be computed or folded.
enum msc_status msc_graph_load_form(struct msc_graph **out, bool *has_weights, const char *path);
// The same for a network that can be read only for given inputs: `feeds` are inputs by name, and
// the graph is valid only for such inputs.
enum msc_status msc_graph_load_for(struct msc_graph **out, const char *path,
                                   const struct msc_array_list *feeds);
// The same with bindings that may decide how the file is read: a branch may depend on a length,
// or on an input of one integer (bound by the input's name). *is_bound: the bindings are part of
// the graph; otherwise the graph is as from msc_graph_load and the caller must bind it.
enum msc_status msc_graph_load_bound(struct msc_graph **out, bool *is_bound, const char *path,
                                     const struct msc_binding bindings[], size_t n);
// The same with replaced weights, which are applied before any pass. Names and shapes are those
// in the file; floats of another width are converted. Layers without a replaced weight keep
// theirs. For any other layer, including the normalisation after it, all weights must be given.
// MSC_E_INVALID if a name is unknown, a weight does not fit, or one is missing.
enum msc_status msc_graph_load_weights(struct msc_graph **out, bool *is_bound, const char *path,
                                       const struct msc_binding bindings[], size_t n,
                                       const struct msc_array_list *weights);
// The other files that a model is read from, such as files of weights. Text is in the arena. Does
// not check that the files exist.
enum msc_status msc_graph_companions(const char *const **out, size_t *n, struct msc_arena *arena,
                                     const char *path);

MSC_PUBLIC_END

#endif
