// What weights in place of a model's own are checked for, whichever form the model's file has.
// Internal to graph/.
#ifndef MSC_GRAPH_ONNX_NEW_WEIGHTS_H
#define MSC_GRAPH_ONNX_NEW_WEIGHTS_H

#include "data/npy.h"

// A weight of the model, and the layer it belongs to.
struct msc_layer_weight {
    const char *name;
    int32_t layer;
};

// MSC_E_INVALID: one of the names is none of the `n` that the model knows. The line says why, where the names
// tell.
enum msc_status msc_new_weights__check_names(const struct msc_array_list *weights,
                                             const char *const known[], size_t n);
// MSC_E_INVALID: of a layer, below `n_layers`, some weights are new and some are not.
enum msc_status msc_new_weights__check_layers(const struct msc_array_list *weights,
                                              const struct msc_layer_weight list[], size_t n,
                                              size_t n_layers);
// A new weight of the name, as elements of this type and shape: a new reference, or a copy where floats are
// of another width. MSC_E_INVALID: it has another shape, is of another kind, or a finite element is beyond
// the type.
enum msc_status msc_new_weights__fit(struct msc_array **out, const char *name,
                                     const struct msc_array *weight, enum msc_dtype dtype,
                                     int n_dims, const int64_t dims[]);

#endif
