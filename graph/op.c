#include "graph/op.h"

#include <assert.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

static const struct msc_op_info infos[MSC_OP_COUNT] = {
#define MSC_OP(id, name, onnx, hint, roles, channels, infer, kernel, folding, discontinuity)       \
    [MSC_OP_##id] = {name, onnx, hint, roles, MSC_FOLDING_##folding},
#include "graph/ops.def"
#undef MSC_OP
};

// The first opset that has the ONNX operator, or 0 if opset 13 has it.
static const int opsets[MSC_OP_COUNT] = {
#define MSC_OP(id, name, onnx, hint, roles, channels, infer, kernel, folding, discontinuity)
#define MSC_OPSET(id, opset) [MSC_OP_##id] = opset,
#include "graph/ops.def"
#undef MSC_OP
};

// Largest number of outputs; 0 means 1.
static const int most_outputs[MSC_OP_COUNT] = {
#define MSC_OP(id, name, onnx, hint, roles, channels, infer, kernel, folding, discontinuity)
#define MSC_OUTPUTS(id, n) [MSC_OP_##id] = n,
#include "graph/ops.def"
#undef MSC_OP
};

static const unsigned traits[MSC_OP_COUNT] = {
#define MSC_OP(id, name, onnx, hint, roles, channels, infer, kernel, folding, discontinuity)
#define MSC_TRAITS(id, flags) [MSC_OP_##id] = flags,
#include "graph/ops.def"
#undef MSC_OP
};

const struct msc_op_info *msc_op_info(enum msc_op op) {
    assert((unsigned)op < MSC_OP_COUNT);
    return &infos[op];
}

int msc_op_opset(enum msc_op op) {
    return opsets[op];
}

int msc_op_n_outputs(enum msc_op op) {
    return most_outputs[op] == 0 ? 1 : most_outputs[op];
}

bool msc_op_has_trait(enum msc_op op, enum msc_op_trait trait) {
    return (traits[op] & (unsigned)trait) != 0;
}

bool msc_op_find(enum msc_op *out, const char *name) {
    for (int op = 0; op < MSC_OP_COUNT; op++) {
        if (strcmp(infos[op].name, name) == 0) {
            *out = (enum msc_op)op;
            return true;
        }
    }
    return false;
}

// Splits a word of the `roles` column into a name and marks.
static struct msc_op_role parse_role(const char *text, size_t length) {
    struct msc_op_role role = {.name = text};
    while (length > 0 && strchr("?*=!+#~", text[length - 1]) != NULL) {
        length--;
        role.is_optional |= text[length] == '?';
        role.is_repeated |= text[length] == '*';
        role.is_attribute |= text[length] == '=';
        role.is_shaping |= text[length] == '!';
        role.is_slot |= text[length] == '+';
        role.is_weight_slot |= text[length] == '#';
        role.is_bias_slot |= text[length] == '~';
    }
    role.length = (int)length;
    return role;
}

bool msc_op_role(enum msc_op op, int position, struct msc_op_role *out) {
    const char *text = msc_op_info(op)->roles;
    while (*text != '\0') {
        size_t length = strcspn(text, " ");
        struct msc_op_role role = parse_role(text, length);
        if (position == 0 || role.is_repeated) {
            *out = role;
            return true;
        }
        position--;
        text += length;
        text += strspn(text, " ");
    }
    return false;
}

bool msc_op_is_parameter(enum msc_op op, const char *key) {
    struct msc_op_role role;
    for (int i = 0; msc_op_role(op, i, &role) && !role.is_repeated; i++) {
        if (role.is_attribute && strlen(key) == (size_t)role.length &&
            strncmp(key, role.name, (size_t)role.length) == 0) {
            return true;
        }
    }
    return false;
}

// Operators of one family are contiguous in ops.def, so a family is a range of ids.
bool msc_op_is_conv(enum msc_op op) {
    return op >= MSC_OP_CONV1D && op <= MSC_OP_CONV3D_BIAS;
}

bool msc_op_is_conv_transpose(enum msc_op op) {
    return op >= MSC_OP_CONV2D_TRANSPOSE && op <= MSC_OP_CONV3D_TRANSPOSE;
}

bool msc_op_is_elementwise(enum msc_op op) {
    return op >= MSC_OP_RELU && op <= MSC_OP_WHERE;
}

bool msc_op_is_comparison(enum msc_op op) {
    return op >= MSC_OP_EQUAL && op <= MSC_OP_LESS_EQUAL;
}
