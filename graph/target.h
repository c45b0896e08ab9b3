// Targets: the runtimes that a compressed model is for. graph/target.c has a row for each target,
// graph/targets.def the role of each operator.
//
// A runtime that computes in integer arithmetic reads and writes integers: each tensor between
// two such joints is requantised once, whether a search chose it or not. This decides which
// tensors of a network are sites (graph/site.h), how many bits a choice takes in the file, and
// how biases are stored.
//
//     const struct msc_target *t = msc_target_find("onnxruntime");
//     if (msc_target_role(t, graph, joint) == MSC_TARGET_INTEGER) ...
#ifndef MSC_GRAPH_TARGET_H
#define MSC_GRAPH_TARGET_H

#include "graph/graph.h"

MSC_PUBLIC_BEGIN

enum msc_target_role {
    MSC_TARGET_FLOAT,   // computed in float32: inputs are dequantised first
    MSC_TARGET_INTEGER, // reads and writes integers, each tensor with its own scale
    MSC_TARGET_READS,   // reads integers; writes integers if a consumer reads them, else float32
    MSC_TARGET_MOVES, // moves integers or selects among them: input and output have the same scale
    // Clips to bounds that the quantisation of its output enforces anyway; fused with the integer
    // joint before it.
    MSC_TARGET_SATURATES,
    // Multiplies by or adds a scalar; fused with the integer joint before it. The factor becomes
    // part of the output's scale, the summand part of the bias.
    MSC_TARGET_AFFINE,
    // Only in the table: INTEGER if all its operands are written as integers, else FLOAT. So the
    // sums after a transformer's matrix products, which may be read as floats, remain float.
    MSC_TARGET_FOLLOWS,
};

// Answers to the questions of graph/targets.def.
enum msc_target_meaning {
    MSC_TARGET_WHOLE,
    MSC_TARGET_SCALED,
};
enum msc_target_question {
    MSC_TARGET_ALIGNED_LENGTH,
    MSC_TARGET_QUESTION_COUNT,
};

// Coordinate mode of a resize that aligns corners with a SCALED length. With a WHOLE length the
// mode is ONNX's align_corners.
#define MSC_TARGET_ALIGN_SCALED "align_corners_scaled"

struct msc_target {
    const char *name;
    const char *alias; // another name, or NULL
    // Name of the runtime in tools/runtime.h; NULL if tools/runtime.h does not support it.
    const char *runtime;
    // Limits of its integer path. Per-tensor weights are a special case of per-channel ones; only
    // `weights_per_channel` rejects them.
    int32_t min_bits, max_bits;
    bool weights_symmetric, weights_per_channel, activations_symmetric; // requirements
    bool takes_groups;
    bool takes_channels; // per-channel scales for activations that depthwise convolutions read
    bool narrow_weights; // symmetric weights without the lowest integer
    const char *takes;   // these limits in words
    // Its exports store 8-bit integers as unsigned, because sums of signed ones saturate.
    bool stores_unsigned;
    // Its exports use the node patterns that it has integer kernels for (graph/onnx).
    bool has_forms;
    bool rounds_biases; // biases are int32 in the scale of the sums; else float32
    // Its exports quantise a moved tensor again after the move; else it is moved as integers.
    bool pairs_moves;
    bool requantises; // it has roles: everything that it requantises may be a site
    int32_t column;   // column in graph/targets.def, if it has roles
};

// Hard swish is x * clip(x + 3, 0, 6) / 6, which is 0 for all x below -3. A target with forms
// computes it in integer arithmetic if 3 is a whole number of steps.
#define MSC_HARD_SWISH_CUT 3.0f

// By name or alias; NULL if there is none.
const struct msc_target *msc_target_find(const char *name);
// Like msc_target_find, for a name from a user: MSC_E_INVALID if no target has the name; the
// message begins with `where` and lists the names.
enum msc_status msc_target_get(const struct msc_target **out, const char *name, const char *where);
// The default target of a configuration. `sums_bytes`: the machine has instructions that sum
// products of bytes (msc_machine_sums_bytes).
const struct msc_target *msc_target_by_default(bool sums_bytes);
// Row i of the table; NULL past the last.
const struct msc_target *msc_target_at(size_t i);
// Role of a joint for a target. All joints are float for a target that does not requantise. Sums
// and products with a constant (except a scalar, if the target has forms), concatenations with a
// constant, and resizing by any method but nearest are also float.
enum msc_target_role msc_target_role(const struct msc_target *t, const struct msc_graph *g,
                                     const struct msc_joint *j);
// Meaning of operators for a target; NULL: as in ONNX's specification. Models for `generic` run
// in ONNX Runtime, so its meaning applies to them.
enum msc_target_meaning msc_target_meaning(const struct msc_target *t,
                                           enum msc_target_question question);
// True if the joint computes in integer arithmetic.
static inline bool msc_target_is_integer(enum msc_target_role role) {
    return role == MSC_TARGET_INTEGER || role == MSC_TARGET_READS;
}
// Bits that one integer takes: for a weight, in the exported file (except small weights, see
// graph/packing.h); for an activation, when the target computes it.
int32_t msc_target_stored_bits(const struct msc_target *t, bool is_weight, int32_t bits);

MSC_PUBLIC_END

#endif
