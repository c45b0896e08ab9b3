// Writes an operator as its row in ops.def defines it. Operands are written in the order of the
// roles, attributes under ONNX's names. Attributes that ONNX has as inputs become initialisers.
#include "base/str.h"
#include "graph/onnx/onnx_export_internal.h"
#include "graph/op_attrs.h"

#include <string.h>

// An integer parameter becomes a scalar input of the node. TopK requires a list of one element
// instead.
static enum msc_status integer_input(const char **out, struct msc_onnx_joint *j, const char *key) {
    int64_t value;
    if (!msc_joint_attr_i64(j->joint, key, &value)) {
        return MSC_OK;
    }
    int64_t *copy = msc_arena_array(&j->e->arena, 1, sizeof(copy[0]));
    const char *name = msc_arena_printf(&j->e->arena, "%s.%s", j->joint->name, key);
    MSC_TRY(MSC_ALLOCATED(copy && name));
    *copy = value;
    int64_t one = 1;
    int n_dims = j->joint->op == MSC_OP_TOPK ? 1 : 0;
    return msc_onnx__add_initializer(out, j->e, name, MSC_ONNX_INT64, n_dims, &one, copy,
                                     sizeof(copy[0]));
}

enum msc_status msc_onnx__real_input(const char **out, struct msc_onnx_joint *j, const char *key) {
    struct msc_onnx_export *e = j->e;
    enum msc_dtype dtype = msc_graph_tensor(e->graph, j->joint->operands[0])->dtype;
    int operand = msc_joint_operand(j->joint, key);
    float value;
    *out = operand >= 0 ? j->inputs[operand] : "";
    if (*out[0] != '\0' || !msc_joint_attr_float(j->joint, key, &value)) {
        return MSC_OK;
    }
    struct msc_array *single, *converted;
    MSC_TRY(msc_array_create_from(&single, MSC_DTYPE_F32, 0, NULL, &value));
    enum msc_status status = msc_array_convert(&converted, single, dtype);
    msc_array_release(single);
    MSC_TRY(status);
    status = msc_grow(&e->arrays, &e->arrays_capacity, e->n_arrays + 1, sizeof(e->arrays[0]));
    if (status != MSC_OK) {
        msc_array_release(converted);
        return status;
    }
    e->arrays[e->n_arrays++] = converted;
    const char *name = msc_arena_printf(&e->arena, "%s.%s", j->joint->name, key);
    MSC_TRY(MSC_ALLOCATED(name));
    return msc_onnx__add_initializer(out, e, name, msc_onnx_type(dtype), 0, NULL,
                                     msc_array_data(converted), msc_array_n_bytes(converted));
}

static enum msc_status find_input(const char **out, struct msc_onnx_joint *j, int position,
                                  const struct msc_op_role *role) {
    *out = position < j->joint->n_operands ? j->inputs[position] : "";
    if (!role->is_attribute || (*out)[0] != '\0') {
        return MSC_OK;
    }
    char *key = msc_arena_strndup(&j->e->arena, role->name, (size_t)role->length);
    MSC_TRY(MSC_ALLOCATED(key));
    const struct msc_op_attr *row = msc_op_attr_find(j->joint->op, key);
    switch (row == NULL ? MSC_ATTR_INTS : row->type) {
    case MSC_ATTR_INT:
        return integer_input(out, j, key);
    case MSC_ATTR_FLOAT:
        return msc_onnx__real_input(out, j, key);
    default:
        return msc_onnx__list_input(out, j, key);
    }
}

// Number of inputs of the node: all operands, then the parameters that are inputs in ONNX.
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
        return n < 0 ? MSC_FAIL(MSC_E_NOMEM, "out of memory")
                     : msc_onnx__put_floats(j->e, j->node, row->onnx, values, (size_t)n);
    }
    int64_t *values = msc_arena_array(&j->e->arena, most, sizeof(values[0]));
    int n = values == NULL ? -1 : msc_attr_read_ints(values, (int)most, text);
    return n < 0 ? MSC_FAIL(MSC_E_NOMEM, "out of memory")
                 : msc_onnx__put_ints(j->e, j->node, row->onnx, values, (size_t)n);
}

static enum msc_status put_attr(struct msc_onnx_joint *j, const struct msc_op_attr *row) {
    const char *text = msc_joint_attr(j->joint, row->key);
    int64_t integer;
    float real;
    if (text == NULL || text[0] == '\0' || row->onnx[0] == '\0' ||
        msc_op_is_parameter(j->joint->op, row->key)) {
        return MSC_OK;
    }
    switch (row->type) {
    case MSC_ATTR_INT:
    case MSC_ATTR_BOOL:
        return msc_attr_read_int(&integer, text)
                   ? msc_onnx__put_int(j->e, j->node, row->onnx, integer)
                   : MSC_OK;
    case MSC_ATTR_FLOAT:
        return msc_attr_read_float(&real, text)
                   ? msc_onnx__put_float(j->e, j->node, row->onnx, real)
                   : MSC_OK;
    case MSC_ATTR_TEXT:
        return msc_onnx__put_text(j->e, j->node, row->onnx, text);
    case MSC_ATTR_TEXTS:
        return msc_onnx__put_texts(j->e, j->node, row->onnx, text);
    case MSC_ATTR_DTYPE:
        return msc_onnx__put_int(j->e, j->node, row->onnx, msc_onnx_type(msc_dtype_find(text)));
    case MSC_ATTR_INTS:
    case MSC_ATTR_FLOATS:
        break;
    }
    return put_list(j, row, text);
}

enum msc_status msc_onnx__put_attrs(struct msc_onnx_joint *j, const char *keys) {
    while (*keys != '\0') {
        size_t length = strcspn(keys, " ");
        char *key = msc_arena_strndup(&j->e->arena, keys, length);
        MSC_TRY(MSC_ALLOCATED(key));
        const struct msc_op_attr *row = msc_op_attr_find(j->joint->op, key);
        MSC_TRY(row == NULL ? MSC_OK : put_attr(j, row));
        keys += length;
        keys += strspn(keys, " ");
    }
    return MSC_OK;
}

static enum msc_status onnx_export_direct_add_node(struct msc_onnx_joint *j) {
    size_t n = (size_t)count_inputs(j);
    const char **inputs = msc_arena_array(&j->e->arena, n + 1, sizeof(inputs[0]));
    MSC_TRY(MSC_ALLOCATED(inputs));
    for (size_t i = 0; i < n; i++) {
        struct msc_op_role role;
        msc_op_role(j->joint->op, (int)i, &role);
        MSC_TRY(find_input(&inputs[i], j, (int)i, &role));
    }
    return msc_onnx__add_own(j, inputs, n);
}

enum msc_status msc_onnx__write_direct(struct msc_onnx_joint *j) {
    int n_rows;
    const struct msc_op_attr *rows = msc_op_attrs(j->joint->op, &n_rows);
    MSC_TRY(onnx_export_direct_add_node(j));
    for (int i = 0; i < n_rows; i++) {
        MSC_TRY(put_attr(j, &rows[i]));
    }
    return MSC_OK;
}

// Writes one additional attribute that the joint's operator implies.
enum msc_status msc_onnx__write_implied(struct msc_onnx_joint *j) {
    static const struct {
        enum msc_op op;
        const char *key, *text; // NULL: the value is `number`
        int64_t number;
    } implied[] = {
        {MSC_OP_MOD, "fmod", NULL, 1},
        {MSC_OP_TRIL, "upper", NULL, 0},
        {MSC_OP_LEFT_SHIFT, "direction", "LEFT", 0},
        {MSC_OP_RIGHT_SHIFT, "direction", "RIGHT", 0},
    };
    MSC_TRY(msc_onnx__write_direct(j));
    for (size_t i = 0; i < sizeof(implied) / sizeof(implied[0]); i++) {
        if (implied[i].op == j->joint->op) {
            return implied[i].text != NULL
                       ? msc_onnx__put_text(j->e, j->node, implied[i].key, implied[i].text)
                       : msc_onnx__put_int(j->e, j->node, implied[i].key, implied[i].number);
        }
    }
    return MSC_OK;
}
