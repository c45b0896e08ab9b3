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
// Like msc_graph_load, but for callers that print or save the graph as text: MSCGraph .json may
// lack its weights file. *has_weights reports whether that file exists; without this file nothing
// can be computed or folded.
enum msc_status msc_graph_load_form(struct msc_graph **out, bool *has_weights, const char *path);
// Like msc_graph_load, for a network that can be read only for given inputs. `feeds` holds these
// inputs by name. The graph is valid only for these inputs.
enum msc_status msc_graph_load_for(struct msc_graph **out, const char *path,
                                   const struct msc_array_list *feeds);
// Like msc_graph_load, with bindings that may decide how the file is read: a branch may depend on a
// length, or on an input of one integer (bound by the input's name). If *is_bound, the bindings are
// part of the graph; otherwise the caller must bind the graph.
enum msc_status msc_graph_load_bound(struct msc_graph **out, bool *is_bound, const char *path,
                                     const struct msc_binding bindings[], size_t n);
// Like msc_graph_load_bound, with replaced weights, which are applied before any pass. Names and
// shapes are those in the file; floats of another width are converted. A layer keeps its weights if
// none of them is replaced. Otherwise all weights of the layer and of the normalisation after it
// must be given. MSC_E_INVALID if a name is unknown, a weight does not fit, or a weight is missing.
enum msc_status msc_graph_load_weights(struct msc_graph **out, bool *is_bound, const char *path,
                                       const struct msc_binding bindings[], size_t n,
                                       const struct msc_array_list *weights);
// Paths of the other files that a model is read from, such as files of weights. The strings are in
// the arena. Does not check that the files exist.
enum msc_status msc_graph_companions(const char *const **out, size_t *n, struct msc_arena *arena,
                                     const char *path);

MSC_PUBLIC_END

#endif
