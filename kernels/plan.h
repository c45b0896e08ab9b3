// A plan: how a bound graph runs on a backend, made once for each signature of inputs and never
// changed by a trial. Here it is as data, for backends to read; kernels/engine/planner.h makes it.
//
// Joints are grouped into steps: an anchor (convolution, linear layer, pooling, …) with the
// element-wise joints that follow it, or a chain of element-wise joints alone. Inside a step
// nothing is kept; between steps are values: a tensor in one layout. Where a step wants another
// layout than a value has, the plan holds a reorder step; where a joint only renames (reshape of a
// plain value) it holds an alias step.
//
//     values:  x(NCHW) --reorder--> x(NHWC) --conv+relu--> y(NHWC) --conv--> ...
//
// Lengths that depend on what joints compute (behind a NonZero, say) end the planned region: such
// joints, and those that read them, are the plan's dynamic-shape remainder, which is run joint by
// joint once the steps are done (kernels/engine/remainder.h). So is what has no elements.
//
// Quantising is not in the plan: an input of a step with a slot is quantised when a trial has an
// edit there (kernels/engine/evaluator.h).
#ifndef MSC_KERNELS_PLAN_H
#define MSC_KERNELS_PLAN_H

#include "base/hash.h"
#include "graph/graph.h"
#include "graph/site.h"
#include "graph/view.h"

MSC_PUBLIC_BEGIN

struct msc_backend;

struct msc_value {
    int32_t tensor; // id in the plan's graph
    enum msc_layout layout;
    enum msc_dtype dtype;
    int n_dims;
    int64_t dims[MSC_MAX_DIMS];
    size_t n_bytes;
    int32_t step; // that makes it; MSC_NO_ID for graph inputs
    int32_t output;
    int32_t input; // index of the graph input it is, or MSC_NO_ID
};

enum msc_step_kind {
    MSC_STEP_RUN,
    MSC_STEP_ALIAS,   // output 0 is the bytes of input 0 under other dims
    MSC_STEP_REORDER, // input 0 in another layout
};

enum msc_operand_kind {
    MSC_OPERAND_NONE,   // absent
    MSC_OPERAND_INPUT,  // index of a step input
    MSC_OPERAND_INNER,  // output 0 of the step's joint number `index`
    MSC_OPERAND_WEIGHT, // tensor id of a weight or of a constant's elements
};

struct msc_operand {
    enum msc_operand_kind kind;
    int32_t index;
};

struct msc_step_joint {
    const struct msc_joint *joint; // borrowed from the plan's graph
    int32_t n_operands;
    const struct msc_operand *operands; // in the operator's order
};

#define MSC_STEP_MAX_WEIGHTS 4

struct msc_step {
    enum msc_step_kind kind;
    int32_t n_joints; // 0 for a reorder; the first is the anchor, the last makes the outputs
    const struct msc_step_joint *joints;
    int32_t n_inputs;
    const int32_t *inputs; // value ids
    const int32_t *slots;  // [n_inputs] slot read through that input, or MSC_NO_ID
    int32_t n_outputs;
    const int32_t *outputs; // value ids
    int32_t n_weight_slots;
    // Slots of the anchor's weights, then of its bias, in operand order.
    int32_t weight_slots[MSC_STEP_MAX_WEIGHTS];
    int32_t weight_operands[MSC_STEP_MAX_WEIGHTS]; // and the operands that they are of
    struct msc_hash hash; // of everything above that changes a bit of the outputs
    double macs;          // multiply-accumulates, 0 for data movement
    void *kernel;         // the backend's, made by prepare
};

// Which of the step's weight slots an operand of the anchor is; MSC_NO_ID: none.
static inline int32_t msc_step_weight_slot(const struct msc_step *s, int32_t operand) {
    for (int32_t i = 0; i < s->n_weight_slots; i++) {
        if (s->weight_operands[i] == operand) {
            return i;
        }
    }
    return MSC_NO_ID;
}

struct msc_plan {
    const struct msc_graph *graph; // bound; owned by the plan
    struct msc_backend *backend;   // borrowed
    struct msc_sites sites;        // slots of the graph
    // Slots of steps are those that edits are for.
    int32_t n_slots;
    const int32_t *slot_ids;    // [sites.n_slots] which of these each is, MSC_NO_ID: none
    const int32_t *bound_slots; // [n_slots] the first that is it in `sites`, MSC_NO_ID: gone
    const int32_t *parts;       // [n_joints] chunk of a sequence, all 0 where there is but one
    int32_t n_parts;
    int32_t n_values;
    struct msc_value *values;
    int32_t n_steps;
    struct msc_step *steps; // topological order
    int32_t n_wanted;
    const int32_t *wanted_tensors; // [n_wanted] those asked for, in the order asked
    // What leaves the steps: plain values of the tensors asked for (MSC_NO_ID: a constant, or the
    // remainder's), then of those that the remainder reads.
    int32_t n_live_out;
    int32_t *live_out;          // [n_live_out]
    int32_t *live_out_slots;    // [n_wanted] slot whose edit sinks see them under, or MSC_NO_ID
    const bool *in_remainder;   // [n_joints]
    bool wants_remainder;       // something wanted is no live-out value
    bool remainder_reads_slots; // the remainder's joints read through slots
    bool *is_remainder_slot;    // [sites.n_slots] activations that no step reads: constants, too
    bool has_remainder_slots;   // any of them
    int32_t *slot_values;       // [sites.n_slots] value that a step reads there; MSC_NO_ID: none
    void *storage;
};

// A view of a value over given memory.
struct msc_view msc_plan_view(const struct msc_plan *plan, int32_t value, void *data);

MSC_PUBLIC_END

#endif
