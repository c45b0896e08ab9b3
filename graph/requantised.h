// The tensors that a target requantises, i.e. that pass as integers from one joint to the next,
// grouped into classes that share one scale.
#ifndef MSC_GRAPH_REQUANTISED_H
#define MSC_GRAPH_REQUANTISED_H

#include "graph/target.h"

struct msc_arena;

// Fills class_of [n_tensors] with the first tensor of each tensor's class. MSC_NO_ID if the
// tensor does not pass as integers: it is inside a fused joint, or the joints on both sides are
// float.
enum msc_status msc_graph__find_requantised(int32_t class_of[], const struct msc_graph *g,
                                            const struct msc_target *target,
                                            struct msc_arena *scratch);

#endif
