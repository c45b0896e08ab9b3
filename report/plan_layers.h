// What a plan does over the network, task by task in the network's order: bits, density, method.
//
//     MSC_TRY(msc_plan_layers(&layers, record, trial->proposal.choices, graph));
//
// A list with an object for each task:
//
//     task      its name
//     kind      "weight", "activation", "channels", "sparsity"; "joint" where one choice is for all that
//               a joint reads; "task": the environment is not one that compresses a network
//     tensor    what it is about, where the graph has it
//     elements  of a weight; absent of others, and without a graph
//     choice    label
//     bits      of each element; absent where the choice does not say
//     density   the share of channels or elements that stays; likewise
//     method    what else the label says, as "descent affine"; absent: nothing
#ifndef MSC_REPORT_PLAN_LAYERS_H
#define MSC_REPORT_PLAN_LAYERS_H

#include "graph/graph.h"
#include "records/record.h"

struct cJSON;

// What a label says, of a choice that sets bits or of one that takes something away.
struct msc_plan_choice {
    double bits, density; // NaN: it does not say
    const char *method;   // in the label
};
struct msc_plan_choice msc_plan_choice_of_bits(const char *label);
struct msc_plan_choice msc_plan_choice_of_density(const char *label);

// `graph` may be NULL. *out is owned by the caller.
enum msc_status msc_plan_layers(struct cJSON **out, const struct msc_record *record,
                                const uint32_t choices[], const struct msc_graph *graph);
// The tensor (id) or, in *joint, the joint that a task is about; MSC_NO_ID for what there is not.
int32_t msc_plan_find_tensor(int32_t *joint, const struct msc_graph *graph, const char *task);
// How often each label is chosen, the most frequent first: "9 x 8, 3 x 4 descent affine".
enum msc_status msc_plan_summary(char **out, struct msc_arena *arena,
                                 const struct msc_record *record, const uint32_t choices[]);

#endif
