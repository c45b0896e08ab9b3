// The operator table: ops.def has one row for each operator that a joint can have.
#ifndef MSC_GRAPH_OP_H
#define MSC_GRAPH_OP_H

#include "base/status.h"

#include <stdbool.h>

MSC_PUBLIC_BEGIN

enum msc_op {
#define MSC_OP(id, name, onnx, hint, roles, channels, infer, kernel, folding, discontinuity)       \
    MSC_OP_##id,
#include "graph/ops.def"
#undef MSC_OP
    MSC_OP_COUNT
};

// Whether the operator is computed at once if all operands are constant.
enum msc_folding {
    MSC_FOLDING_KEPT,   // never: its result differs from run to run, or no kernel runs it
    MSC_FOLDING_ONCE,   // only when a model is imported
    MSC_FOLDING_FOLDED, // also when a graph is bound: shape arithmetic
    MSC_FOLDING_GROWN,  // as FOLDED with a lower size limit: the output often outgrows the operands
};

enum msc_op_trait {
    // The lengths of outputs are unknown before the kernel runs.
    MSC_TRAIT_LATE = 1,
    // It reads only the shapes of its operands.
    MSC_TRAIT_SHAPE = 2,
    // Float outputs consist of elements of the first input: some of them, or all at other
    // positions.
    MSC_TRAIT_PART = 4,
    // Inputs and outputs have the same axes. (Element-wise operators have them without this
    // flag.)
    MSC_TRAIT_AXES = 8,
    // Axis names inferred from consumers of its output also hold for inputs of the same rank.
    MSC_TRAIT_AXES_BACK = 16,
};

struct msc_op_info {
    const char *name; // MSC's: "nn.conv2d"
    const char *onnx; // ONNX operator it is exported as; "" if none
    const char *hint; // prefix of a joint's name if the model gives none
    const char *roles;
    enum msc_folding folding;
};

const struct msc_op_info *msc_op_info(enum msc_op op);
// The first opset that has the ONNX operator, or 0 if opset 13 has it.
int msc_op_opset(enum msc_op op);
// Maximum number of outputs.
int msc_op_n_outputs(enum msc_op op);
bool msc_op_has_trait(enum msc_op op, enum msc_op_trait trait);
// By MSC name; false if not found.
bool msc_op_find(enum msc_op *out, const char *name);

// One operand position, parsed from the roles.
struct msc_op_role {
    const char *name; // not NUL-terminated: `length` characters
    int length;
    bool is_optional;
    bool is_repeated;
    bool is_attribute;   // becomes an attribute when constant
    bool is_shaping;     // its contents determine lengths of outputs
    bool is_slot;        // may be quantised
    bool is_weight_slot; // may be quantised if it is constant
    bool is_bias_slot;   // a bias that edits may change if it is constant
};
// The role of operand `position` (a repeated role has no end); false past the last.
bool msc_op_role(enum msc_op op, int position, struct msc_op_role *out);
// True if the attribute is a parameter that can also be an operand.
bool msc_op_is_parameter(enum msc_op op, const char *key);

// Kinds that several modules ask for.
bool msc_op_is_conv(enum msc_op op); // all convolutions, except transposed ones
bool msc_op_is_conv_transpose(enum msc_op op);
bool msc_op_is_elementwise(enum msc_op op); // operands of one shape, or broadcast
bool msc_op_is_comparison(enum msc_op op);  // equal, greater, ...: two operands, result bool

MSC_PUBLIC_END

#endif
