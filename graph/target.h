// Targets: the runtimes that a compressed model can be made for. graph/target.c has a row for each
// target; graph/targets.def has the role of each operator.
//
// In a runtime that computes in integer arithmetic, joints read and write integers. So the runtime
// rounds each tensor between two such joints to integers (requantises it), even if a search would
// keep it in float. The target therefore decides which tensors of a network are sites
// (graph/site.h), how many bits a choice takes in the file, and how biases are stored.
//
//     const struct msc_target *t = msc_target_find("onnxruntime");
//     if (msc_target_role(t, graph, joint) == MSC_TARGET_INTEGER) ...
#ifndef MSC_GRAPH_TARGET_H
#define MSC_GRAPH_TARGET_H

#include "graph/graph.h"

MSC_PUBLIC_BEGIN

enum msc_target_role {
    MSC_TARGET_FLOAT,   // computes in float32; inputs are dequantised first
    MSC_TARGET_INTEGER, // reads and writes integers, each tensor with its own scale
    MSC_TARGET_READS,   // reads integers; writes integers if a consumer reads them, else float32
    MSC_TARGET_MOVES,   // moves or selects integers; input and output have the same scale
    // Clips. Fused into the integer joint that produces its input; the range of the quantised
    // output then enforces the clip bounds.
    MSC_TARGET_SATURATES,
    // Multiplies by or adds a scalar. Fused into the integer joint that produces its input; a
    // factor then becomes part of the output's scale, a summand part of the bias.
    MSC_TARGET_AFFINE,
    // Used only in the table: INTEGER if all operands are written as integers, else FLOAT. In a
    // transformer, matrix products (READS) may write floats, so the sums after them remain float.
    MSC_TARGET_FOLLOWS,
};

// Answers to the questions about operators that graph/targets.def lists and explains.
enum msc_target_meaning {
    MSC_TARGET_WHOLE,
    MSC_TARGET_SCALED,
};
enum msc_target_question {
    MSC_TARGET_ALIGNED_LENGTH,
    MSC_TARGET_QUESTION_COUNT,
};

// Coordinate mode of a resize that aligns corners using a SCALED length. For a WHOLE length the
// mode is ONNX's align_corners.
#define MSC_TARGET_ALIGN_SCALED "align_corners_scaled"

struct msc_target {
    const char *name;
    const char *alias; // another name, or NULL
    // Name of the runtime in tools/runtime.h; NULL if tools/runtime.h does not support it.
    const char *runtime;
    const char *suffix;    // of the files that the runtime reads, such as ".tflite"; NULL: ".onnx"
    bool has_kernel_times; // the runtime tells how long each kernel takes
    // Limits of the target's integer arithmetic. A weight with a single scale is accepted as a
    // per-channel weight with equal scales, unless `weights_per_channel` is set.
    int32_t min_bits, max_bits;
    bool weights_symmetric, weights_per_channel, activations_symmetric; // true: required
    bool takes_groups;
    // allows per-channel scales for activations that depthwise convolutions read
    bool takes_channels;
    bool narrow_weights; // the lowest integer is not used for symmetric weights
    const char *takes;   // the limits in words, for messages
    // Exports store 8-bit integers as unsigned bytes, because the target's sums of products
    // saturate if a factor is a signed byte.
    bool stores_unsigned;
    // Exports use node patterns that the target has integer kernels for (graph/onnx).
    bool has_forms;
    // Exports use the operators that read weights in blocks (graph/block_weights.h).
    bool has_block_operators;
    bool rounds_biases; // biases are int32 with the scale of the sums; else float32
    // Exports dequantise a tensor before it is moved and quantise it after the move; if false, the
    // integers are moved.
    bool pairs_moves;
    // Linear resizes of integers keep the scale of their input; else linear resizes are FLOAT.
    bool resizes_integers;
    // Some kernels write their results with a scale of their own (msc_target_fixed_scale).
    bool fixes_scales;
    bool requantises; // has roles in targets.def; every requantised tensor may be a site
    int32_t column;   // column in graph/targets.def
};

// Hard swish is x * clip(x + 3, 0, 6) / 6, which is 0 for all x below -3. A target with `has_forms`
// computes it in integer arithmetic if 3 is a multiple of the scale of x.
#define MSC_HARD_SWISH_CUT 3.0f

// Finds a target by name or alias; NULL if there is none.
const struct msc_target *msc_target_find(const char *name);
// Like msc_target_find, but for a name given by a user. If no target has the name, returns
// MSC_E_INVALID; the message begins with `where` and lists the names.
enum msc_status msc_target_get(const struct msc_target **out, const char *name, const char *where);
// The default target of a configuration. `sums_bytes`: the machine has instructions that sum
// products of bytes (msc_machine_sums_bytes).
const struct msc_target *msc_target_by_default(bool sums_bytes);
// The ending of the files that the target's runtime reads: ".onnx" if `target` is NULL.
const char *msc_target_suffix(const struct msc_target *target);
// Row i of the table of targets; NULL after the last row.
const struct msc_target *msc_target_at(size_t i);
// The role of a joint for a target. All joints are FLOAT if the target does not requantise. Some
// joints are FLOAT for every target:
//   - a sum or product with a constant, except with a scalar if the target has `has_forms`
//   - a concatenation with a constant
//   - a resize by another method than nearest and, if the target `resizes_integers`, linear
enum msc_target_role msc_target_role(const struct msc_target *t, const struct msc_graph *g,
                                     const struct msc_joint *j);
// A target's answer to a question about the meaning of an operator; `t` NULL: the answer of ONNX's
// specification. Models for `generic` run in ONNX Runtime, so ONNX Runtime's answers apply to them.
enum msc_target_meaning msc_target_meaning(const struct msc_target *t,
                                           enum msc_target_question question);
// True if the target quantises the activation of this operator dynamically (graph/quant.h); `t`
// NULL: if ONNX Runtime does.
bool msc_target_takes_dynamic(const struct msc_target *t, enum msc_op op);
// The scale and zero point, as int8, with which the target's kernel of this operator always writes
// its results; false if it takes any scale.
bool msc_target_fixed_scale(const struct msc_target *t, enum msc_op op, float *scale,
                            int32_t *zero_point);
// True if joints with this role compute in integer arithmetic.
static inline bool msc_target_is_integer(enum msc_target_role role) {
    return role == MSC_TARGET_INTEGER || role == MSC_TARGET_READS;
}
// Converts the bits that a search chose for an integer to the bits that the integer takes: for a
// weight, in the exported file (for small weights, see graph/packing.h); for an activation, while
// the target computes.
int32_t msc_target_stored_bits(const struct msc_target *t, bool is_weight, int32_t bits);

MSC_PUBLIC_END

#endif
