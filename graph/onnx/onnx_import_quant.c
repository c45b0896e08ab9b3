// Translates QuantizeLinear, DequantizeLinear and Cast. Integers of 4 and 2 bits and floats of 8
// and 4 bits are stored in bytes; the joint's attributes define what these bytes represent.
#include "graph/onnx/onnx_import_compose.h"

#include <string.h>

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

// The type that the attribute names. If the node lacks the attribute, *dtype and *format remain as
// they are.
static enum msc_status read_type(enum msc_dtype *dtype, const char **format,
                                 const struct msc_onnx_node *n, const char *name) {
    int64_t type;
    MSC_TRY(msc_onnx__int(&type, n, name, 0));
    if (type == 0) {
        return MSC_OK;
    }
    int number = type < 0 || type > 1000 ? 0 : (int)type;
    *dtype = msc_onnx_storage(number, format);
    return *dtype != MSC_DTYPE_NONE
               ? MSC_OK
               : MSC_ONNX_UNSUPPORTED("conversion to %s (%lld) is not supported",
                                      msc_onnx_type_name(number), (long long)type);
}

// Checks the attribute `precision` of QuantizeLinear: MSC divides by the scale in float32.
static enum msc_status check_precision(const struct msc_onnx_node *n) {
    enum msc_dtype scale = msc_onnx__shape(n, n->inputs[1]).dtype, dtype = scale;
    const char *format;
    MSC_TRY(read_type(&dtype, &format, n, "precision"));
    return dtype == scale || dtype == MSC_DTYPE_F32
               ? MSC_OK
               : MSC_ONNX_UNSUPPORTED("precision is %s, expected float32", msc_dtype_name(dtype));
}

enum msc_status msc_onnx__quantize(struct msc_onnx_node *n) {
    const struct msc_value *zero = msc_onnx__input(n, 2);
    const char *format = zero == NULL ? "" : zero->format, *wanted = format;
    enum msc_dtype dtype = zero == NULL ? MSC_DTYPE_U8 : msc_onnx__shape(n, zero).dtype;
    enum msc_dtype given = dtype;
    MSC_TRY(copy_axis(n));
    MSC_TRY(check_precision(n));
    MSC_TRY(read_type(&given, &wanted, n, "output_dtype"));
    if (zero != NULL && (given != dtype || strcmp(wanted, format) != 0)) {
        return MSC_FAIL(MSC_E_FORMAT, "output_dtype differs from the type of the zero point");
    }
    if (zero == NULL) {
        msc_onnx__set(n, "dtype", msc_dtype_name(given));
    }
    msc_onnx__set(n, "format", wanted);
    MSC_TRY(msc_onnx__add_last(n, MSC_OP_QUANTIZE, n->inputs, n->n_inputs));
    msc_onnx__find_value(n->import, n->proto->output[0])->value->format = wanted;
    return MSC_OK;
}

// Scale and output may have different types. (q - zero point) * scale is computed in the wider one.
enum msc_status msc_onnx__dequantize(struct msc_onnx_node *n) {
    struct msc_compose c = {.node = n};
    enum msc_dtype scale = msc_onnx__shape(n, n->inputs[1]).dtype, dtype = scale;
    struct msc_value *operands[3] = {n->inputs[0], n->inputs[1], msc_onnx__input(n, 2)};
    const char *format = "";
    MSC_TRY(read_type(&dtype, &format, n, "output_dtype"));
    if (!msc_dtype_is_float(dtype)) {
        return MSC_FAIL(MSC_E_FORMAT, "output_dtype is %s, expected a float type",
                        format[0] != '\0' ? format : msc_dtype_name(dtype));
    }
    bool is_narrowed = dtype != scale && dtype != MSC_DTYPE_F32;
    if (dtype != scale && !is_narrowed) {
        operands[1] = msc_compose_cast(&c, operands[1], dtype);
        MSC_TRY(c.status);
    }
    MSC_TRY(copy_axis(n));
    msc_onnx__set(n, "format", n->inputs[0]->format);
    if (!is_narrowed) {
        return msc_onnx__add_last(n, MSC_OP_DEQUANTIZE, operands, n->n_inputs);
    }
    MSC_TRY(msc_onnx__add_helper(&operands[0], n, MSC_OP_DEQUANTIZE, operands, n->n_inputs));
    msc_onnx__set(n, "dtype", msc_dtype_name(dtype));
    return msc_onnx__add_last(n, MSC_OP_CAST, operands, 1);
}

// True for a constant of bytes whose values are integers of this many bits.
static bool fits_bits(const struct msc_array *constant, int bits, bool is_signed) {
    enum msc_dtype dtype = is_signed ? MSC_DTYPE_I8 : MSC_DTYPE_U8;
    int64_t low = is_signed ? -(1 << (bits - 1)) : 0;
    bool fits = constant != NULL && msc_array_dtype(constant) == dtype;
    for (int64_t i = 0; fits && i < msc_array_n_elements(constant); i++) {
        int64_t value = msc_array_get_i64(constant, i);
        fits = value >= low && value < low + (1 << bits);
    }
    return fits;
}

// A cast to integers of 4 or 2 bits is dropped if its operand is a constant that fits: such a
// constant is already stored in bytes.
enum msc_status msc_onnx__cast_to_number(struct msc_onnx_node *n) {
    int64_t type;
    MSC_TRY(msc_onnx__int(&type, n, "to", 0));
    bool is_signed = type == MSC_ONNX_INT4 || type == MSC_ONNX_INT2;
    int bits = type == MSC_ONNX_INT4 || type == MSC_ONNX_UINT4   ? 4
               : type == MSC_ONNX_INT2 || type == MSC_ONNX_UINT2 ? 2
                                                                 : 0;
    return bits > 0 && fits_bits(n->inputs[0]->constant, bits, is_signed)
               ? msc_onnx__add_last(n, MSC_OP_IDENTITY, n->inputs, 1)
               : msc_onnx__direct(n);
}
