// A plan's choices (bits, density, method), one task at a time in the network's order.
//
//     MSC_TRY(msc_plan_layers(&layers, record, trial->proposal.choices, graph));
//
// The result is a list with an object for each task:
//
//     task      its name
//     kind      "weight", "activation", "channels", "sparsity"; "joint": one choice for all inputs
//               of a joint; "task": the environment does not compress a network
//     tensor    the tensor that the task compresses, if the graph has it
//     elements  number of a weight's elements; only for weights, and only with a graph
//     choice    label
//     bits      of each element; absent if the label does not give them
//     density   share of channels or elements that is kept; absent if the label does not give it
//     method    the rest of the label, such as "descent affine"; absent if there is none
#ifndef MSC_RESULTS_PLAN_LAYERS_H
#define MSC_RESULTS_PLAN_LAYERS_H

#include "graph/graph.h"
#include "records/record.h"

struct cJSON;

// The parts of a choice's label. The choice sets bits, or removes channels or elements.
struct msc_plan_choice {
    double bits, density; // NaN: not in the label
    const char *method;   // points into the label
};
struct msc_plan_choice msc_plan_choice_of_bits(const char *label);
struct msc_plan_choice msc_plan_choice_of_density(const char *label);

// `graph` may be NULL. *out is owned by the caller.
enum msc_status msc_plan_layers(struct cJSON **out, const struct msc_record *record,
                                const uint32_t choices[], const struct msc_graph *graph);
// Returns the id of the tensor that a task is about. If the task is about a joint, sets *joint to
// the joint's id. Both are MSC_NO_ID if the graph has no such tensor or joint.
int32_t msc_plan_find_tensor(int32_t *joint, const struct msc_graph *graph, const char *task);
// Writes how often each label occurs, most frequent first: "9 x 8, 3 x 4 descent affine".
enum msc_status msc_plan_summary(char **out, struct msc_arena *arena,
                                 const struct msc_record *record, const uint32_t choices[]);

#endif
