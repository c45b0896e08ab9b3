// Finds the tensors that a target requantises: tensors that its joints write and read as integers.
// Groups them into classes of tensors that share one scale.
#ifndef MSC_GRAPH_REQUANTISED_H
#define MSC_GRAPH_REQUANTISED_H

#include "graph/target.h"

struct msc_arena;

// True for a matrix product of which one factor is a constant that the model stores as integers and
// dequantises itself, such as a weight with one scale for each block of elements. Such a product
// computes with floats, whatever the target.
bool msc_graph__has_stored_factor(const struct msc_graph *g, const struct msc_joint *j);

// Sets class_of [n_tensors] to the first tensor of each tensor's class. For a tensor that is not
// requantised, sets MSC_NO_ID: the tensor is inside a fused joint, or its producer and its
// consumers compute in float.
enum msc_status msc_graph__find_requantised(int32_t class_of[], const struct msc_graph *g,
                                            const struct msc_target *target,
                                            struct msc_arena *scratch);

#endif
