// Targets: the runtimes that a compressed model is for, a row each (graph/target.c) and for each
// operator what it is to them (graph/targets.def).
//
// What a runtime computes over integers it reads and writes as such: each tensor between two such
// joints is requantised once, whether a search chose it or not. That decides which tensors of a
// network are sites (graph/site.h), how many bits a choice takes in the file, and what becomes of
// biases.
//
//     const struct msc_target *t = msc_target_find("onnxruntime");
//     if (msc_target_role(t, graph, joint) == MSC_TARGET_INTEGER) ...
#ifndef MSC_GRAPH_TARGET_H
#define MSC_GRAPH_TARGET_H

#include "graph/graph.h"

MSC_PUBLIC_BEGIN

enum msc_target_role {
    MSC_TARGET_FLOAT,   // computed in float32: what it reads is dequantised before
    MSC_TARGET_INTEGER, // reads integers and writes integers, each with scales of their own
    MSC_TARGET_READS,   // reads integers, and writes them where somebody reads such, else float32
    MSC_TARGET_MOVES,   // moves integers, or chooses among them: one scale goes in and out
    // A limit that the quantisation of what it gives keeps anyway: with the joint before it, which
    // computes over integers, it is one.
    MSC_TARGET_SATURATES,
    // One number multiplied by or added, likewise one with the integer joint before it: the factor is
    // that of its output's scale, the summand part of its bias.
    MSC_TARGET_AFFINE,
    // In the table alone: INTEGER where all of its operands are written as integers, else FLOAT. So
    // the sums behind a transformer's products, which may be read as floats, stay float.
    MSC_TARGET_FOLLOWS,
};

// Answers to the questions about meanings (graph/targets.def).
enum msc_target_meaning {
    MSC_TARGET_WHOLE,
    MSC_TARGET_SCALED,
};
enum msc_target_question {
    MSC_TARGET_ALIGNED_LENGTH,
    MSC_TARGET_QUESTION_COUNT,
};

// The mode of coordinates of a resize that aligns corners by a length that is SCALED; ONNX and a
// WHOLE length know align_corners.
#define MSC_TARGET_ALIGN_SCALED "align_corners_scaled"

struct msc_target {
    const char *name;
    const char *alias; // another name for it, or NULL
    // By which tools/runtime.h knows the runtime; NULL: it does not.
    const char *runtime;
    // What its integer path takes. Weights per tensor are a special case of per channel, which only
    // `weights_per_channel` refuses.
    int32_t min_bits, max_bits;
    bool weights_symmetric, weights_per_channel, activations_symmetric; // what it insists on
    bool takes_groups;
    bool takes_channels; // of activations that depthwise convolutions read: a scale for each
    bool narrow_weights; // symmetric ones without the lowest integer
    const char *takes;   // the same in words
    // Integers of 8 bits are unsigned in its exports: sums of signed ones saturate.
    bool stores_unsigned;
    // Its exports are in the forms that it makes integer kernels of (graph/onnx).
    bool has_forms;
    bool rounds_biases; // to int32 of the step of the sums; else they are float32
    // In the file what is only moved is quantised once more behind; else it is moved as integers.
    bool pairs_moves;
    bool requantises; // it has roles: all that it requantises may be a site
    int32_t column;   // of graph/targets.def, where it has
};

// Where hard swishes, x * clip(x + 3, 0, 6) / 6, have their limits: all below is 0 as this is. A
// target with forms computes them over integers where it is a number of whole steps.
#define MSC_HARD_SWISH_CUT 3.0f

// By name or alias; NULL when there is none.
const struct msc_target *msc_target_find(const char *name);
// The same for a name that somebody gave: MSC_E_INVALID, `where` and which there are, when there is none.
enum msc_status msc_target_get(const struct msc_target **out, const char *name, const char *where);
// The target of configurations that name none, on a machine that has instructions for sums of
// products of bytes (msc_machine_sums_bytes), or has none.
const struct msc_target *msc_target_by_default(bool sums_bytes);
// Row i of all; NULL past the last.
const struct msc_target *msc_target_at(size_t i);
// What a joint is to a target; all are float to one that requantises nothing. So are sums and
// products with a constant, but for numbers where it has forms, concatenations with one, and resizing
// but to the nearest element.
enum msc_target_role msc_target_role(const struct msc_target *t, const struct msc_graph *g,
                                     const struct msc_joint *j);
// What operators mean to a target; to NULL they mean what ONNX's text says. Models of `generic` are
// run by ONNX Runtime, and have its meaning.
enum msc_target_meaning msc_target_meaning(const struct msc_target *t,
                                           enum msc_target_question question);
// Does it compute over integers?
static inline bool msc_target_is_integer(enum msc_target_role role) {
    return role == MSC_TARGET_INTEGER || role == MSC_TARGET_READS;
}
// The bits that an integer of a weight takes in the exported file, unless it is small
// (graph/packing.h), or one of an activation when the target computes it.
int32_t msc_target_stored_bits(const struct msc_target *t, bool is_weight, int32_t bits);

MSC_PUBLIC_END

#endif
