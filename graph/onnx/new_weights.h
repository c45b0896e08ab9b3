// Checks of replacement weights, for all model formats. Internal to graph/.
#ifndef MSC_GRAPH_ONNX_NEW_WEIGHTS_H
#define MSC_GRAPH_ONNX_NEW_WEIGHTS_H

#include "data/npy.h"

// A weight of the model and the index of its layer.
struct msc_layer_weight {
    const char *name;
    int32_t layer;
};

// MSC_E_INVALID if a new weight's name is not among the model's `n` names. The message suggests a
// cause if the names reveal one.
enum msc_status msc_new_weights__check_names(const struct msc_array_list *weights,
                                             const char *const known[], size_t n);
// MSC_E_INVALID if only some weights of a layer are replaced. Layer indices are below `n_layers`.
enum msc_status msc_new_weights__check_layers(const struct msc_array_list *weights,
                                              const struct msc_layer_weight list[], size_t n,
                                              size_t n_layers);
// Converts a replacement weight to this type and shape. *out is a new reference, or a copy if the
// floats have another width. MSC_E_INVALID if the shape differs, if only one of the types is a
// float type, or if an element is NaN or overflows.
enum msc_status msc_new_weights__fit(struct msc_array **out, const char *name,
                                     const struct msc_array *weight, enum msc_dtype dtype,
                                     int n_dims, const int64_t dims[]);

#endif
