// A plan: how a bound graph runs on a backend. A plan is made once for each signature of inputs
// (kernels/engine/signatures.h), and trials never change it. This header declares what backends
// read of a plan; kernels/engine/planner.h makes plans.
//
// Joints are grouped into steps: an anchor (convolution, linear layer, pooling, …) with the
// element-wise joints that follow it, or a chain of only element-wise joints. Results inside a step
// are not stored. Steps exchange values; a value is a tensor in one layout. If a step needs another
// layout than a value has, the plan contains a reorder step. A joint that changes only the dims and
// moves no element (a reshape in NCHW) becomes an alias step.
//
//     values:  x(NCHW) --reorder--> x(NHWC) --conv+relu--> y(NHWC) --conv--> ...
//
// Some lengths depend on computed data (such as the output of NonZero). Joints with such lengths
// and their consumers form the plan's dynamic-shape remainder, which runs joint by joint after the
// steps (kernels/engine/remainder.h). Joints whose tensors have no elements belong to the remainder
// too.
//
// The plan does not contain quantisation: if a trial has an edit for a slot, the evaluator
// quantises the step input that reads this slot (kernels/engine/evaluator.h).
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
    int32_t step; // step that makes it; MSC_NO_ID for graph inputs
    int32_t output;
    int32_t input; // index of the graph input that it holds, or MSC_NO_ID
};

enum msc_step_kind {
    MSC_STEP_RUN,
    MSC_STEP_ALIAS,   // output 0 shares the bytes of input 0, with other dims
    MSC_STEP_REORDER, // input 0 in another layout
};

enum msc_operand_kind {
    MSC_OPERAND_NONE,   // the operand is absent
    MSC_OPERAND_INPUT,  // `index` is a step input
    MSC_OPERAND_INNER,  // output 0 of the step's joint `index`
    MSC_OPERAND_WEIGHT, // `index` is the tensor id of a weight or of a constant's elements
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
    int32_t n_joints; // 0 for a reorder; the first is the anchor, the last writes the outputs
    const struct msc_step_joint *joints;
    int32_t n_inputs;
    const int32_t *inputs; // value ids
    const int32_t *slots;  // [n_inputs] slot through which the input is read, or MSC_NO_ID
    int32_t n_outputs;
    const int32_t *outputs; // value ids
    int32_t n_weight_slots;
    // Slots of the anchor's weights, then of its bias, in operand order.
    int32_t weight_slots[MSC_STEP_MAX_WEIGHTS];
    int32_t weight_operands[MSC_STEP_MAX_WEIGHTS]; // operand of the anchor that reads each slot
    // Of a DequantizeLinear that undoes a QuantizeLinear: the step of the latter, and the
    // quantisation of both. The output is then the value that was quantised, under this
    // quantisation. MSC_NO_ID and NULL for every other step.
    int32_t undone;
    const struct msc_quant *quant;
    // Quantisations of weights that apply if a trial does not edit their slots, for weights that
    // the model stores as integers; NULL: none.
    const struct msc_edit *own_edits[MSC_STEP_MAX_WEIGHTS];
    struct msc_hash hash; // covers all members above that affect the bits of the outputs
    double macs;          // multiply-accumulates, 0 for data movement
    void *kernel;         // owned by the backend, made by prepare
};

// The index of the weight slot that an operand of the anchor reads; MSC_NO_ID: it reads none.
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
    struct msc_sites sites;        // slots of the bound graph
    // Edit slots: the slots of the graph before binding. Edits and steps use their ids.
    int32_t n_slots;
    const int32_t *slot_ids;    // [sites.n_slots] edit slot of each of `sites`, or MSC_NO_ID
    const int32_t *bound_slots; // [n_slots] first of `sites` with this edit slot, or MSC_NO_ID
    const int32_t *parts;       // [n_joints] each joint's chunk of the sequence; 0 if there is only
                                // one chunk
    int32_t n_parts;
    int32_t n_values;
    struct msc_value *values;
    int32_t n_steps;
    struct msc_step *steps; // topological order
    int32_t n_wanted;
    const int32_t *wanted_tensors; // [n_wanted] requested tensors, in the order requested
    // Values read after the steps: first the NCHW values of the wanted tensors (MSC_NO_ID for a
    // tensor that is constant or made by the remainder), then values that the remainder reads.
    int32_t n_live_out;
    int32_t *live_out;          // [n_live_out]
    int32_t *live_out_slots;    // [n_wanted] slot whose edit is applied for sinks, or MSC_NO_ID
    const bool *in_remainder;   // [n_joints]
    bool wants_remainder;       // some wanted tensor has no live-out value
    bool remainder_reads_slots; // some joint of the remainder reads a slot
    bool *is_remainder_slot;    // [sites.n_slots] activation slots that no step reads
    bool has_remainder_slots;   // any of is_remainder_slot is true
    int32_t *slot_values;       // [sites.n_slots] value that is read through the slot, or MSC_NO_ID
    void *storage;
};

// A view of a value stored at `data`.
struct msc_view msc_plan_view(const struct msc_plan *plan, int32_t value, void *data);

MSC_PUBLIC_END

#endif
