#include "graph/op.h"

#include <assert.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

static const struct msc_op_info infos[MSC_OP_COUNT] = {
#define MSC_OP(id, name, onnx, hint, roles, channels, infer, kernel)                               \
    [MSC_OP_##id] = {name, onnx, hint, roles, MSC_CHANNELS_##channels},
#include "graph/ops.def"
#undef MSC_OP
};

const struct msc_op_info *msc_op_info(enum msc_op op) {
    assert((unsigned)op < MSC_OP_COUNT);
    return &infos[op];
}

int msc_op_n_outputs(enum msc_op op) {
    static const struct {
        enum msc_op op;
        int n;
    } rows[] = {
        {MSC_OP_SPLIT, INT_MAX},
        {MSC_OP_TOPK, 2},
        {MSC_OP_UNIQUE, 4},
        {MSC_OP_MAX_POOL_INDICES, 2},
        {MSC_OP_RNN, 2},
        {MSC_OP_GRU, 2},
        {MSC_OP_LSTM, 3},
        {MSC_OP_IF, INT_MAX},
        {MSC_OP_LOOP, INT_MAX},
        {MSC_OP_SCAN, INT_MAX},
        {MSC_OP_DYNAMIC_QUANTIZE, 3},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].op == op) {
            return rows[i].n;
        }
    }
    return 1;
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

// Splits the word at `text` into name and marks.
static struct msc_op_role parse_role(const char *text, size_t length) {
    struct msc_op_role role = {.name = text};
    while (length > 0 && strchr("?*=!", text[length - 1]) != NULL) {
        length--;
        role.is_optional |= text[length] == '?';
        role.is_repeated |= text[length] == '*';
        role.is_attribute |= text[length] == '=';
        role.is_shaping |= text[length] == '!';
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

// The families of ops.def are contiguous, so a kind is a range.
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
