// The operator table: one row of ops.def for each operator that a joint can have.
#ifndef MSC_GRAPH_OP_H
#define MSC_GRAPH_OP_H

#include "base/status.h"

#include <stdbool.h>

MSC_PUBLIC_BEGIN

enum msc_op {
#define MSC_OP(id, name, onnx, hint, roles, channels, infer, kernel) MSC_OP_##id,
#include "graph/ops.def"
#undef MSC_OP
    MSC_OP_COUNT
};

enum msc_channels {
    MSC_CHANNELS_PASS,
    MSC_CHANNELS_MIX,
    MSC_CHANNELS_JOIN,
    MSC_CHANNELS_BARRIER,
};

struct msc_op_info {
    const char *name; // MSC's: "nn.conv2d"
    const char *onnx; // ONNX operator it is exported as; "" for none
    const char *hint; // joint names begin with it when the model gives none
    const char *roles;
    enum msc_channels channels;
};

const struct msc_op_info *msc_op_info(enum msc_op op);
// How many outputs it can have at most.
int msc_op_n_outputs(enum msc_op op);
// By MSC name; false when there is none.
bool msc_op_find(enum msc_op *out, const char *name);

// One operand position, parsed from the roles.
struct msc_op_role {
    const char *name; // not NUL-terminated: `length` characters
    int length;
    bool is_optional;
    bool is_repeated;
    bool is_attribute; // becomes an attribute when constant
    bool is_shaping;   // lengths of outputs hang on what it holds
};
// The role of operand `position` (repeated roles go on for ever); false past the last.
bool msc_op_role(enum msc_op op, int position, struct msc_op_role *out);

// Kinds that many places ask for.
bool msc_op_is_conv(enum msc_op op); // all convolutions, not transposed
bool msc_op_is_conv_transpose(enum msc_op op);
bool msc_op_is_elementwise(enum msc_op op); // arithmetic on one shape or on broadcast ones
bool msc_op_is_comparison(enum msc_op op);  // equal, greater, ...: of two operands, to bool

MSC_PUBLIC_END

#endif
