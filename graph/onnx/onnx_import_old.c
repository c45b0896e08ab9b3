// Translates operators whose inputs or attributes differ in opsets before 7.
#include "graph/onnx/onnx_import_internal.h"

#include <string.h>

// Before opset 5, the shape is an attribute.
enum msc_status msc_onnx__reshape(struct msc_onnx_node *n) {
    struct msc_value *operands[2] = {n->inputs[0], NULL};
    MSC_TRY(msc_onnx__list_param(&operands[1], n, 1, "shape"));
    if (operands[1] == NULL) {
        return MSC_FAIL(MSC_E_FORMAT, "the shape is missing");
    }
    MSC_TRY(msc_onnx__copy_attrs(n, MSC_OP_RESHAPE));
    return msc_onnx__add_last(n, MSC_OP_RESHAPE, operands, 2);
}

// Before opset 4, the axis is optional.
enum msc_status msc_onnx__concat(struct msc_onnx_node *n) {
    bool is_given = msc_onnx__attribute(n, "axis") != NULL;
    if (!is_given && n->opset >= 4) {
        return MSC_FAIL(MSC_E_FORMAT, "required attribute axis is missing");
    }
    if (!is_given) {
        msc_onnx__set_int(n, "axis", 1);
    }
    return msc_onnx__direct(n);
}

// Before opset 6, Tile repeats one axis; the axis and the number of repetitions are inputs.
enum msc_status msc_onnx__tile(struct msc_onnx_node *n) {
    int64_t repeats[MSC_MAX_DIMS];
    int rank = msc_onnx__shape(n, n->inputs[0]).n_dims;
    double times, axis;
    if (n->opset >= 6 || n->n_inputs < 3) {
        return msc_onnx__direct(n);
    }
    if (!msc_onnx__scalar(&times, n->inputs[1]) || !msc_onnx__scalar(&axis, n->inputs[2])) {
        return MSC_ONNX_UNSUPPORTED("tiles and axis are computed at run time, expected constants");
    }
    if (!(axis >= 0 && axis < rank && times >= 0 && times < 0x1p31)) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "cannot repeat %g times along axis %g of a tensor with %d dimensions",
                        times, axis, rank);
    }
    for (int i = 0; i < rank; i++) {
        repeats[i] = i == (int)axis ? (int64_t)times : 1;
    }
    struct msc_value *operands[2] = {n->inputs[0], NULL};
    MSC_TRY(msc_onnx__make_ints(&operands[1], n, "", repeats, rank));
    return msc_onnx__add_last(n, MSC_OP_TILE, operands, 2);
}

// Before opset 6, the default coefficients of Selu have only five digits.
enum msc_status msc_onnx__selu(struct msc_onnx_node *n) {
    static const struct {
        const char *key;
        float number;
    } rounded[] = {{"alpha", 1.6732f}, {"gamma", 1.0507f}};
    for (size_t i = 0; n->opset < 6 && i < 2; i++) {
        float number;
        MSC_TRY(msc_onnx__float(&number, n, rounded[i].key, rounded[i].number));
        msc_onnx__set_float(n, rounded[i].key, number);
    }
    return msc_onnx__direct(n);
}

// Before opset 6, the type is given by name instead of number.
enum msc_status msc_onnx__cast(struct msc_onnx_node *n) {
    static const char *const names[] = {"",        "FLOAT",  "UINT8",  "INT8",   "UINT16",
                                        "INT16",   "INT32",  "INT64",  "STRING", "BOOL",
                                        "FLOAT16", "DOUBLE", "UINT32", "UINT64"};
    const char *name;
    if (n->opset >= 6) {
        return msc_onnx__cast_to_number(n);
    }
    MSC_TRY(msc_onnx__text(&name, n, "to", ""));
    for (int type = 1; type < (int)(sizeof(names) / sizeof(names[0])); type++) {
        enum msc_dtype dtype = msc_onnx_dtype(type);
        if (dtype != MSC_DTYPE_NONE && strcmp(names[type], name) == 0) {
            msc_onnx__set(n, "dtype", msc_dtype_name(dtype));
            return msc_onnx__add_last(n, MSC_OP_CAST, n->inputs, 1);
        }
    }
    return MSC_ONNX_UNSUPPORTED("conversion to '%s' is not supported", name);
}
