// The operator table: one row of ops.def for each operator that a joint can have.
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

// Whether the operator is computed at once where all operands are constant.
enum msc_folding {
    MSC_FOLDING_KEPT,   // never: its result differs from run to run, or no kernel runs it
    MSC_FOLDING_ONCE,   // by an importer
    MSC_FOLDING_FOLDED, // when a graph is bound, too: arithmetic of shapes
    MSC_FOLDING_GROWN,  // the same; its output is often larger than its operands: a lower limit
};

enum msc_op_trait {
    // The kernel makes outputs whose lengths nobody knows before it runs.
    MSC_TRAIT_LATE = 1,
    // Of its operands it reads the shape alone.
    MSC_TRAIT_SHAPE = 2,
    // Outputs that are floats hold elements of the first input: some, or all in other places.
    MSC_TRAIT_PART = 4,
    // The axes of inputs and outputs are the same ones (beside what msc_op_is_elementwise says).
    MSC_TRAIT_AXES = 8,
    // What readers know of the axes of its output holds for inputs of as many dimensions.
    MSC_TRAIT_AXES_BACK = 16,
};

struct msc_op_info {
    const char *name; // MSC's: "nn.conv2d"
    const char *onnx; // ONNX operator it is exported as; "" for none
    const char *hint; // joint names begin with it when the model gives none
    const char *roles;
    enum msc_folding folding;
};

const struct msc_op_info *msc_op_info(enum msc_op op);
// How many outputs it can have at most.
int msc_op_n_outputs(enum msc_op op);
bool msc_op_has_trait(enum msc_op op, enum msc_op_trait trait);
// By MSC name; false when there is none.
bool msc_op_find(enum msc_op *out, const char *name);

// One operand position, parsed from the roles.
struct msc_op_role {
    const char *name; // not NUL-terminated: `length` characters
    int length;
    bool is_optional;
    bool is_repeated;
    bool is_attribute;   // becomes an attribute when constant
    bool is_shaping;     // lengths of outputs hang on what it holds
    bool is_slot;        // may be quantised
    bool is_weight_slot; // ... where it is constant
    bool is_bias_slot;   // a bias that edits may be for where it is constant
};
// The role of operand `position` (repeated roles go on for ever); false past the last.
bool msc_op_role(enum msc_op op, int position, struct msc_op_role *out);
// Is the attribute a parameter, which may be an operand as well?
bool msc_op_is_parameter(enum msc_op op, const char *key);

// Kinds that many places ask for.
bool msc_op_is_conv(enum msc_op op); // all convolutions, not transposed
bool msc_op_is_conv_transpose(enum msc_op op);
bool msc_op_is_elementwise(enum msc_op op); // arithmetic on one shape or on broadcast ones
bool msc_op_is_comparison(enum msc_op op);  // equal, greater, ...: of two operands, to bool

MSC_PUBLIC_END

#endif
