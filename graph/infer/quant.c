// Infers the outputs of operators that convert between floats and quantised integers.
#include "graph/infer/infer_internal.h"
#include "graph/linear_quant.h"

#include <string.h>

static bool is_quantised_type(enum msc_dtype dtype) {
    return dtype == MSC_DTYPE_I8 || dtype == MSC_DTYPE_U8 || dtype == MSC_DTYPE_I16 ||
           dtype == MSC_DTYPE_U16;
}

static bool is_scale_type(enum msc_dtype dtype) {
    return dtype == MSC_DTYPE_F32 || dtype == MSC_DTYPE_F16 || dtype == MSC_DTYPE_BF16;
}

static enum msc_status fail_type(const struct msc_infer *call, int operand, const char *expected) {
    return msc_infer__fail(call, "operand %d is %s, expected %s", operand,
                           msc_dtype_name(call->operands[operand]->dtype), expected);
}

// Reads the dimensions as numbers; false if one is a symbol.
static bool read_dims(int64_t dims[], const struct msc_infer_tensor *t) {
    bool are_numbers = true;
    for (int i = 0; i < t->n_dims; i++) {
        dims[i] = t->dims[i].value;
        are_numbers = are_numbers && msc_infer__is_number(t->dims[i]);
    }
    return are_numbers;
}

// True if the shapes are equal, or both tensors have one element.
static bool are_alike(int n_a, const int64_t a[], int n_b, const int64_t b[]) {
    bool are_single = msc_dims_product(n_a, a) == 1 && msc_dims_product(n_b, b) == 1;
    return are_single || (n_a == n_b && memcmp(a, b, (size_t)n_a * sizeof(a[0])) == 0);
}

// Checks that scales and zero points have equal shapes, which fit the tensor. Unknown lengths are
// not checked.
static enum msc_status check_scales(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0], *scale = call->operands[1];
    const struct msc_infer_tensor *zero = call->n_operands > 2 ? call->operands[2] : NULL;
    int64_t dims[MSC_MAX_DIMS], scale_dims[MSC_MAX_DIMS], zero_dims[MSC_MAX_DIMS];
    struct msc_linear_quant m;
    if (!is_scale_type(scale->dtype)) {
        return fail_type(call, 1, "float32, float16 or bfloat16");
    }
    bool is_known = read_dims(scale_dims, scale);
    if (zero != NULL && read_dims(zero_dims, zero) && is_known &&
        !are_alike(zero->n_dims, zero_dims, scale->n_dims, scale_dims)) {
        char text[MSC_INFER_TEXT_BYTES], scale_text[MSC_INFER_TEXT_BYTES];
        return msc_infer__fail(call, "zero points are %s, expected the shape of the scales, %s",
                               msc_infer__shape_text(text, call, zero),
                               msc_infer__shape_text(scale_text, call, scale));
    }
    if (read_dims(dims, x) && is_known) {
        return msc_linear_quant_init(&m, call->joint, x->n_dims, dims, scale->n_dims, scale_dims);
    }
    return MSC_OK;
}

enum msc_status msc_infer__quantize(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0];
    const struct msc_infer_tensor *zero = call->n_operands > 2 ? call->operands[2] : NULL;
    enum msc_dtype dtype =
        zero != NULL ? zero->dtype : msc_dtype_find(msc_infer__text(call, "dtype"));
    if (!is_scale_type(x->dtype) && x->dtype != MSC_DTYPE_I32) {
        return fail_type(call, 0, "float32, float16, bfloat16 or int32");
    }
    if (!is_quantised_type(dtype)) {
        return msc_infer__fail(call, "the result is %s, expected integers of 8 or 16 bits",
                               msc_dtype_name(dtype));
    }
    MSC_TRY(check_scales(call));
    msc_infer__copy(&call->outputs[0], x);
    call->outputs[0].dtype = dtype;
    return MSC_OK;
}

enum msc_status msc_infer__dequantize(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0];
    const struct msc_infer_tensor *zero = call->n_operands > 2 ? call->operands[2] : NULL;
    if (!is_quantised_type(x->dtype) && x->dtype != MSC_DTYPE_I32) {
        return fail_type(call, 0, "integers of 8 or 16 bits, or int32");
    }
    if (zero != NULL && zero->dtype != x->dtype) {
        return fail_type(call, 2, msc_dtype_name(x->dtype));
    }
    MSC_TRY(check_scales(call));
    msc_infer__copy(&call->outputs[0], x);
    call->outputs[0].dtype = call->operands[1]->dtype;
    return MSC_OK;
}

// The outputs are the quantised tensor, its scale and its zero point.
enum msc_status msc_infer__dynamic_quantize(const struct msc_infer *call) {
    MSC_TRY(msc_infer__require_float(call, 0));
    for (int i = 0; i < call->n_outputs; i++) {
        struct msc_infer_tensor *out = &call->outputs[i];
        if (i == 0) {
            msc_infer__copy(out, call->operands[0]);
        }
        out->dtype = i == 1 ? MSC_DTYPE_F32 : MSC_DTYPE_U8;
    }
    return MSC_OK;
}
