// What a target requantises: the tensors of a graph that pass as integers from one joint to the
// next, in classes that have one scale.
#ifndef MSC_GRAPH_REQUANTISED_H
#define MSC_GRAPH_REQUANTISED_H

#include "graph/target.h"

struct msc_arena;

// Fills class_of [n_tensors] with the first tensor of each one's class, or MSC_NO_ID: no integers
// there (it stays inside of a joint that the target fuses, or joints on both sides are float).
enum msc_status msc_graph__find_requantised(int32_t class_of[], const struct msc_graph *g,
                                            const struct msc_target *target,
                                            struct msc_arena *scratch);

#endif
