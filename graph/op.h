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

// Tells when a joint whose operands are all constant is replaced by its result.
enum msc_folding {
    MSC_FOLDING_KEPT,   // never: results differ from run to run, or no kernel exists
    MSC_FOLDING_ONCE,   // when a model is imported
    MSC_FOLDING_FOLDED, // also when a graph is bound (shape arithmetic)
    MSC_FOLDING_GROWN,  // like FOLDED, but with a lower limit for the size of the output
};

enum msc_op_trait {
    // Lengths of the outputs are unknown until the kernel has run.
    MSC_TRAIT_LATE = 1,
    // The operator reads only the shapes of its operands.
    MSC_TRAIT_SHAPE = 2,
    // Float outputs consist of elements of the first input: some of the elements, or all of them at
    // other positions.
    MSC_TRAIT_PART = 4,
    // Inputs and outputs have the same axes. Not set for element-wise operators, which always have
    // the same axes.
    MSC_TRAIT_AXES = 8,
    // The axis names of the output, if inferred from its consumers, also hold for inputs of the
    // same rank.
    MSC_TRAIT_AXES_BACK = 16,
};

struct msc_op_info {
    const char *name; // the operator's name in MSC: "nn.conv2d"
    const char *onnx; // name of the ONNX operator that it is exported as; "" if none
    const char *hint; // default name of a joint
    const char *roles;
    enum msc_folding folding;
};

const struct msc_op_info *msc_op_info(enum msc_op op);
// The first opset that has the ONNX operator, or 0 if opset 13 has it.
int msc_op_opset(enum msc_op op);
// Maximum number of outputs.
int msc_op_n_outputs(enum msc_op op);
bool msc_op_has_trait(enum msc_op op, enum msc_op_trait trait);
// Finds an operator by its MSC name; false if there is none.
bool msc_op_find(enum msc_op *out, const char *name);

// The role of one operand, parsed from `roles`.
struct msc_op_role {
    const char *name; // not NUL-terminated: `length` characters
    int length;
    bool is_optional;
    bool is_repeated;
    bool is_attribute;   // becomes an attribute when constant
    bool is_shaping;     // its elements determine lengths of outputs
    bool is_slot;        // may be quantised
    bool is_weight_slot; // may be quantised if it is constant
    bool is_bias_slot;   // a bias that edits may change if it is constant
};
// The role of the operand at `position`; false if the operator has no operand there. If the last
// role is repeated, it covers all further positions.
bool msc_op_role(enum msc_op op, int position, struct msc_op_role *out);
// True if the attribute is a parameter that can also be an operand.
bool msc_op_is_parameter(enum msc_op op, const char *key);

// Families of operators that several modules distinguish.
bool msc_op_is_conv(enum msc_op op); // all convolutions, except transposed ones
bool msc_op_is_conv_transpose(enum msc_op op);
bool msc_op_is_elementwise(enum msc_op op); // operands have the same shape or are broadcast
bool msc_op_is_comparison(enum msc_op op);  // equal, greater, ...: two operands, result bool

MSC_PUBLIC_END

#endif
