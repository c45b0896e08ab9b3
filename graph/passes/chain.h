// Divides a graph into a chain of groups: between two neighbours there is a single tensor, so that
// any run of groups can be computed elsewhere.
//
//     int32_t *groups = ...;                                          // [n_joints]
//     MSC_TRY(msc_graph_chain(groups, &n_groups, g, 64));
//
// Groups follow three rules. Operators: between two joints the graph may be cut if one tensor alone
// that joints compute is read across the cut; inputs of the graph and constants do not count.
// Patterns: if that gives more than `most` groups, element-wise operators, normalisation and
// quantisation stay with the joint before them, as runtimes compute them together. Limits: then the
// neighbours with the least work are joined until there are `most` groups.
#ifndef MSC_GRAPH_PASSES_CHAIN_H
#define MSC_GRAPH_PASSES_CHAIN_H

#include "graph/graph.h"

// groups[joint] is the number of its group, in the order of the chain, or -1 for shared joints
// (graph/passes/extract.h). *n_groups is at most `most`, which is positive; 0: there are no joints
// to compute. The graph has no fused joints (msc_graph_split).
enum msc_status msc_graph_chain(int32_t groups[], int32_t *n_groups, const struct msc_graph *g,
                                int32_t most);
// The limits alone: joins the neighbours with the least work until at most `most` groups are left.
enum msc_status msc_graph_chain_limit(int32_t groups[], int32_t *n_groups,
                                      const struct msc_graph *g, int32_t most);
// Joins neighbours: groups with equal into[group] become one. `into` [n_groups] begins with 0 and
// never decreases by a step or increases by more than 1.
void msc_graph_chain_join(int32_t groups[], const struct msc_graph *g, const int32_t into[]);

#endif
