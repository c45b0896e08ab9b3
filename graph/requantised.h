// The tensors that a target requantises, i.e. that pass as integers from one joint to the next,
// grouped into classes that share one scale.
#ifndef MSC_GRAPH_REQUANTISED_H
#define MSC_GRAPH_REQUANTISED_H

#include "graph/target.h"

struct msc_arena;

// True for a product with a factor that is dequantised from constant codes, such as a weight in
// blocks. Such a product computes with floats, whatever the target.
bool msc_graph__has_stored_factor(const struct msc_graph *g, const struct msc_joint *j);

// Fills class_of [n_tensors] with the first tensor of each tensor's class. MSC_NO_ID if the
// tensor does not pass as integers: it is inside a fused joint, or the joints on both sides are
// float.
enum msc_status msc_graph__find_requantised(int32_t class_of[], const struct msc_graph *g,
                                            const struct msc_target *target,
                                            struct msc_arena *scratch);

#endif
