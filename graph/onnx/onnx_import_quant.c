// Translates QuantizeLinear, DequantizeLinear and Cast. 4-bit integers and 8-bit floats are stored
// in bytes; the joint's attributes define what these bytes represent.
#include "graph/onnx/onnx_import_internal.h"

// Before opset 13 the attribute axis does not exist and there is a single scale.
static enum msc_status copy_axis(struct msc_onnx_node *n) {
    int64_t block;
    MSC_TRY(msc_onnx__copy_attrs(n, n->rule.op));
    MSC_TRY(msc_onnx__int(&block, n, "block_size", 0));
    if (block < 0) {
        return MSC_FAIL(MSC_E_FORMAT, "block_size is %lld, expected 0 or more", (long long)block);
    }
    return MSC_OK;
}

enum msc_status msc_onnx__quantize(struct msc_onnx_node *n) {
    const struct msc_value *zero = msc_onnx__input(n, 2);
    int64_t type;
    const char *format = zero == NULL ? "" : zero->format;
    MSC_TRY(copy_axis(n));
    MSC_TRY(msc_onnx__int(&type, n, "output_dtype", 0));
    if (zero == NULL && type != 0) {
        int number = type < 0 || type > 1000 ? 0 : (int)type;
        enum msc_dtype dtype = msc_onnx_storage(number, &format);
        if (dtype == MSC_DTYPE_NONE) {
            return MSC_ONNX_UNSUPPORTED("conversion to %s (%lld) is not supported",
                                        msc_onnx_type_name(number), (long long)type);
        }
        msc_onnx__set(n, "dtype", msc_dtype_name(dtype));
    }
    msc_onnx__set(n, "format", format);
    return msc_onnx__add_last(n, MSC_OP_QUANTIZE, n->inputs, n->n_inputs);
}

enum msc_status msc_onnx__dequantize(struct msc_onnx_node *n) {
    MSC_TRY(copy_axis(n));
    msc_onnx__set(n, "format", n->inputs[0]->format);
    return msc_onnx__add_last(n, MSC_OP_DEQUANTIZE, n->inputs, n->n_inputs);
}

// True for a constant of bytes whose values fit in 4 bits.
static bool fits_half(const struct msc_array *constant, bool is_signed) {
    enum msc_dtype dtype = is_signed ? MSC_DTYPE_I8 : MSC_DTYPE_U8;
    bool fits = constant != NULL && msc_array_dtype(constant) == dtype;
    for (int64_t i = 0; fits && i < msc_array_n_elements(constant); i++) {
        int64_t value = msc_array_get_i64(constant, i);
        fits = is_signed ? value >= -8 && value <= 7 : value <= 15;
    }
    return fits;
}

// A cast to a 4-bit type is dropped if its operand is a constant that fits: such a constant is
// already stored in bytes.
enum msc_status msc_onnx__cast_to_number(struct msc_onnx_node *n) {
    int64_t type;
    MSC_TRY(msc_onnx__int(&type, n, "to", 0));
    bool is_half = type == MSC_ONNX_INT4 || type == MSC_ONNX_UINT4;
    return is_half && fits_half(n->inputs[0]->constant, type == MSC_ONNX_INT4)
               ? msc_onnx__add_last(n, MSC_OP_IDENTITY, n->inputs, 1)
               : msc_onnx__direct(n);
}
