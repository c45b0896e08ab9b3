// Operators that are written as the table says: operands in the order of the roles, parameters that
// are attributes here as initialisers, every other attribute under its own key. Beside them the few
// whose ONNX attribute is told by which joint it is.
#include "base/str.h"
#include "graph/onnx/onnx_export_internal.h"
#include "graph/op_attrs.h"

#include <string.h>

// Is the attribute a parameter, which opset 21 takes as an input?
static bool is_parameter(enum msc_op op, const char *key) {
    struct msc_op_role role;
    for (int i = 0; msc_op_role(op, i, &role) && !role.is_repeated; i++) {
        if (role.is_attribute && strlen(key) == (size_t)role.length &&
            strncmp(key, role.name, (size_t)role.length) == 0) {
            return true;
        }
    }
    return false;
}

// A single whole number is a scalar, but for TopK, which wants a list of one.
static enum msc_status scalar_input(const char **out, struct msc_onnx_joint *j, const char *key) {
    int64_t value;
    if (!msc_joint_attr_i64(j->joint, key, &value)) {
        return MSC_OK;
    }
    int64_t *copy = msc_arena_array(&j->e->arena, 1, sizeof(copy[0]));
    const char *name = msc_arena_printf(&j->e->arena, "%s.%s", j->joint->name, key);
    if (copy == NULL || name == NULL) {
        return msc_onnx__no_memory(j->e);
    }
    *copy = value;
    int64_t one = 1;
    int n_dims = j->joint->op == MSC_OP_TOPK ? 1 : 0;
    return msc_onnx__add_initializer(out, j->e, name, MSC_ONNX_INT64, n_dims, &one, copy,
                                     sizeof(copy[0]));
}

static enum msc_status find_input(const char **out, struct msc_onnx_joint *j, int position,
                                  const struct msc_op_role *role) {
    *out = position < j->joint->n_operands ? j->inputs[position] : "";
    if (!role->is_attribute || (*out)[0] != '\0') {
        return MSC_OK;
    }
    char *key = msc_arena_strndup(&j->e->arena, role->name, (size_t)role->length);
    if (key == NULL) {
        return msc_onnx__no_memory(j->e);
    }
    const struct msc_op_attr *row = msc_op_attr_find(j->joint->op, key);
    bool is_scalar = row != NULL && row->type == MSC_ATTR_INT;
    return is_scalar ? scalar_input(out, j, key) : msc_onnx__list_input(out, j, key);
}

// How many inputs the node has: all operands, and parameters behind them.
static int count_inputs(const struct msc_onnx_joint *j) {
    struct msc_op_role role;
    int n = 0;
    while (msc_op_role(j->joint->op, n, &role)) {
        if (role.is_repeated && n >= j->joint->n_operands) {
            break;
        }
        n++;
    }
    return n;
}

static enum msc_status put_list(struct msc_onnx_joint *j, const struct msc_op_attr *row,
                                const char *text) {
    size_t most = strlen(text) / 2 + 1;
    if (row->type == MSC_ATTR_FLOATS) {
        float *values = msc_arena_array(&j->e->arena, most, sizeof(values[0]));
        int n = values == NULL ? -1 : msc_attr_read_floats(values, (int)most, text);
        return n < 0 ? msc_onnx__no_memory(j->e)
                     : msc_onnx__put_floats(j->e, j->node, row->key, values, (size_t)n);
    }
    int64_t *values = msc_arena_array(&j->e->arena, most, sizeof(values[0]));
    int n = values == NULL ? -1 : msc_attr_read_ints(values, (int)most, text);
    return n < 0 ? msc_onnx__no_memory(j->e)
                 : msc_onnx__put_ints(j->e, j->node, row->key, values, (size_t)n);
}

// Types by number, activations as a list of texts, sampling methods by their newer names.
static enum msc_status put_word(struct msc_onnx_joint *j, const char *key, const char *text) {
    static const char *const newer[][2] = {{"bilinear", "linear"}, {"bicubic", "cubic"}};
    if (strcmp(key, "dtype") == 0 || strcmp(key, "output_datatype") == 0) {
        return msc_onnx__put_int(j->e, j->node, key, msc_onnx_type(msc_dtype_find(text)));
    }
    if (strcmp(key, "activations") == 0) {
        return msc_onnx__put_texts(j->e, j->node, key, text);
    }
    for (size_t i = 0; j->joint->op == MSC_OP_GRID_SAMPLE && i < 2; i++) {
        text = strcmp(text, newer[i][0]) == 0 ? newer[i][1] : text;
    }
    return msc_onnx__put_text(j->e, j->node, key, text);
}

static enum msc_status put_attr(struct msc_onnx_joint *j, const struct msc_op_attr *row) {
    const char *text = msc_joint_attr(j->joint, row->key);
    int64_t whole;
    float real;
    if (text == NULL || text[0] == '\0' || is_parameter(j->joint->op, row->key)) {
        return MSC_OK;
    }
    switch (row->type) {
    case MSC_ATTR_INT:
    case MSC_ATTR_BOOL:
        return msc_attr_read_int(&whole, text) ? msc_onnx__put_int(j->e, j->node, row->key, whole)
                                               : MSC_OK;
    case MSC_ATTR_FLOAT:
        return msc_attr_read_float(&real, text) ? msc_onnx__put_float(j->e, j->node, row->key, real)
                                                : MSC_OK;
    case MSC_ATTR_TEXT:
        return put_word(j, row->key, text);
    default:
        return put_list(j, row, text);
    }
}

static enum msc_status add_node(struct msc_onnx_joint *j) {
    size_t n = (size_t)count_inputs(j);
    const char **inputs = msc_arena_array(&j->e->arena, n + 1, sizeof(inputs[0]));
    if (inputs == NULL) {
        return msc_onnx__no_memory(j->e);
    }
    for (size_t i = 0; i < n; i++) {
        struct msc_op_role role;
        msc_op_role(j->joint->op, (int)i, &role);
        MSC_TRY(find_input(&inputs[i], j, (int)i, &role));
    }
    return msc_onnx__add_own(j, inputs, n);
}

enum msc_status msc_onnx__write_by_table(struct msc_onnx_joint *j) {
    int n_rows;
    const struct msc_op_attr *rows = msc_op_attrs(j->joint->op, &n_rows);
    MSC_TRY(add_node(j));
    for (int i = 0; i < n_rows; i++) {
        MSC_TRY(put_attr(j, &rows[i]));
    }
    return MSC_OK;
}

// One attribute more, which the joint's operator implies.
enum msc_status msc_onnx__write_implied(struct msc_onnx_joint *j) {
    static const struct {
        enum msc_op op;
        const char *key, *text; // text NULL: the number
        int64_t number;
    } implied[] = {
        {MSC_OP_MOD, "fmod", NULL, 1},
        {MSC_OP_TRIL, "upper", NULL, 0},
        {MSC_OP_LEFT_SHIFT, "direction", "LEFT", 0},
        {MSC_OP_RIGHT_SHIFT, "direction", "RIGHT", 0},
    };
    MSC_TRY(msc_onnx__write_by_table(j));
    for (size_t i = 0; i < sizeof(implied) / sizeof(implied[0]); i++) {
        if (implied[i].op == j->joint->op) {
            return implied[i].text != NULL
                       ? msc_onnx__put_text(j->e, j->node, implied[i].key, implied[i].text)
                       : msc_onnx__put_int(j->e, j->node, implied[i].key, implied[i].number);
        }
    }
    return MSC_OK;
}

// Random numbers of a shape that is known; of another they take after an input that is not there
// any more.
enum msc_status msc_onnx__write_random(struct msc_onnx_joint *j) {
    int64_t shape[MSC_MAX_DIMS];
    const char *distribution = msc_joint_attr(j->joint, "distribution");
    bool is_normal = distribution != NULL && strcmp(distribution, "normal") == 0;
    int n = msc_joint_attr_list(j->joint, "shape", shape, MSC_MAX_DIMS);
    float first, second, seed;
    if (n < 0 || !msc_joint_attr_float(j->joint, "first", &first) ||
        !msc_joint_attr_float(j->joint, "second", &second) ||
        !msc_joint_attr_float(j->joint, "seed", &seed)) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "random numbers of a shape that is computed");
    }
    const char *output = j->e->names[j->joint->outputs[0]];
    MSC_TRY(msc_onnx__add_node(&j->node, j->e, is_normal ? "RandomNormal" : "RandomUniform",
                               j->joint->name, NULL, 0, &output, 1));
    MSC_TRY(msc_onnx__put_ints(j->e, j->node, "shape", shape, (size_t)n));
    MSC_TRY(put_word(j, "dtype", msc_joint_attr(j->joint, "dtype")));
    MSC_TRY(msc_onnx__put_float(j->e, j->node, is_normal ? "mean" : "low", first));
    MSC_TRY(msc_onnx__put_float(j->e, j->node, is_normal ? "scale" : "high", second));
    return msc_onnx__put_float(j->e, j->node, "seed", seed);
}
