// Model files, whichever form they have: ONNX, or MSCGraph JSON beside its weights.
//
//     struct msc_graph *g;
//     MSC_TRY(msc_graph_load(&g, "model.onnx"));
#ifndef MSC_GRAPH_ONNX_LOAD_H
#define MSC_GRAPH_ONNX_LOAD_H

#include "graph/graph.h"

MSC_PUBLIC_BEGIN

// A model file by its ending: .onnx, or MSCGraph .json beside a .safetensors of the same name.
enum msc_status msc_graph_load(struct msc_graph **out, const char *path);
// The same for its forms alone: MSCGraph .json may stand by itself. *has_weights tells; without them
// nothing can be computed or folded.
enum msc_status msc_graph_load_form(struct msc_graph **out, bool *has_weights, const char *path);
// The same for a network that cannot be read without it: for inputs like these only, by their names.
enum msc_status msc_graph_load_for(struct msc_graph **out, const char *path,
                                   const struct msc_array_list *feeds);
// The same where bindings may decide how the file is read: networks whose branches hang on a
// length, or on an input of one integer (bound by the input's name). *is_bound: they are in
// the graph; else it is as msc_graph_load gives it, for the caller to bind.
enum msc_status msc_graph_load_bound(struct msc_graph **out, bool *is_bound, const char *path,
                                     const struct msc_binding bindings[], size_t n);
// The same with other weights, by the names that the file gives them and of the same shapes, before anything is
// made of them; floats of another width are converted. Layers that are not named stay; of one that is, with the normalisation behind it,
// all weights are. MSC_E_INVALID: there is no such weight, it does not fit, or one is missing.
enum msc_status msc_graph_load_weights(struct msc_graph **out, bool *is_bound, const char *path,
                                       const struct msc_binding bindings[], size_t n,
                                       const struct msc_array_list *weights);
// The files that a model is read from beside its own, such as those of its weights; text is in the
// arena. Whether they are there is not looked at.
enum msc_status msc_graph_companions(const char *const **out, size_t *n, struct msc_arena *arena,
                                     const char *path);

MSC_PUBLIC_END

#endif
