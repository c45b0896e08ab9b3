// What a strategy does to each layer of a model: the error after the layer, its time, the bytes and
// bits of its weights, and how its weights lie on the levels of their quantisation.
//
//     MSC_TRY(msc_model_layers(&layers, model, strategy));
//
// A layer is a joint that the kernels compute as a step, together with the joints that are fused
// into it. The result has
//
//     samples       number of samples that the errors are measured on
//     runs          number of runs that the times are measured by
//     other_us      time of quantisations and changes of layout between layers
//     float_other_us  likewise, of the unmodified model
//     layers        a list in the order of the network:
//         joint, op     name and operator
//         weight_bits, activation_bits   absent: float, or there is no weight
//         error         norm of the difference over the norm of the joint's outputs in the
//                       unmodified model (model/track.h); absent: not measured
//         bytes, float_bytes   of its weights with their scales, under the strategy and unmodified;
//                       weights of several layers count for the first
//         us, float_us  least time of one sample on one thread, on mscgym's kernels
//     weights       quantised weights, those with most elements, in the order of the network:
//         tensor, bits, low, high   name; bits and range of the integers q
//         scales, clip  number of scales; the median over the scales of the largest magnitude that
//                       is not clipped
//         clipped       share of elements outside of the range
//         from, step    the first bin's lower edge and the width of a bin, in q
//         counts        elements in each bin. The bin of an element is that of x / scale + zero
//                       point before rounding, so that all channels have the same levels
//     activations   the same of quantised activations that the network computes, over all samples
//                   under the strategy; at most 64, in the order of the network
#ifndef MSC_MODEL_LAYERS_H
#define MSC_MODEL_LAYERS_H

#include "model/model.h"
#include "tools/strategy.h"

// `model` has a loaded dataset. *out is owned by the caller (cJSON_Delete).
enum msc_status msc_model_layers(struct cJSON **out, struct msc_model *model,
                                 const struct msc_strategy *strategy);

#endif
