// Weights that a model stores quantised, or quantises itself.
#include "graph/constant_internal.h"
#include "graph/linear_quant.h"

static int64_t zero_of(const struct msc_constant_call *call, int64_t scale) {
    const struct msc_array *zeros = call->n_operands > 2 ? call->operands[2] : NULL;
    return zeros == NULL ? 0 : msc_array_get_i64(zeros, scale);
}

static bool init(struct msc_linear_quant *m, const struct msc_constant_call *call) {
    const struct msc_array *x = call->operands[0], *scales = call->operands[1];
    return msc_linear_quant_init(m, call->joint, msc_array_n_dims(x), msc_array_dims(x),
                                 msc_array_n_dims(scales), msc_array_dims(scales)) == MSC_OK;
}

bool msc_constant__dequantize(const struct msc_constant_call *call) {
    const struct msc_array *x = call->operands[0];
    float *out = msc_array_data(call->outputs[0]);
    int64_t n = msc_array_n_elements(x);
    struct msc_linear_quant m;
    struct msc_quant_format format;
    if (msc_array_dtype(call->outputs[0]) != MSC_DTYPE_F32 || !init(&m, call)) {
        return false;
    }
    msc_quant_format_init(&format, call->joint, msc_array_dtype(x));
    for (int64_t i = 0, length, at; i < n; i += length) {
        length = msc_linear_quant_run(&m, i, n, &at);
        float scale = (float)msc_array_get_double(call->operands[1], at);
        int64_t zero = zero_of(call, at);
        for (int64_t k = i; k < i + length; k++) {
            out[k] = msc_dequantize_number(&format, msc_array_get_i64(x, k), zero, scale);
        }
    }
    return true;
}

static void store(struct msc_array *out, int64_t i, int64_t code) {
    if (msc_dtype_bytes(msc_array_dtype(out)) == 1) {
        ((uint8_t *)msc_array_data(out))[i] = (uint8_t)code;
    } else {
        ((uint16_t *)msc_array_data(out))[i] = (uint16_t)code;
    }
}

bool msc_constant__quantize(const struct msc_constant_call *call) {
    const struct msc_array *x = call->operands[0];
    int64_t n = msc_array_n_elements(x);
    struct msc_linear_quant m;
    struct msc_quant_format format;
    if (!init(&m, call)) {
        return false;
    }
    msc_quant_format_init(&format, call->joint, msc_array_dtype(call->outputs[0]));
    for (int64_t i = 0, length, at; i < n; i += length) {
        length = msc_linear_quant_run(&m, i, n, &at);
        float scale = (float)msc_array_get_double(call->operands[1], at);
        float zero = msc_quant_format_value(&format, zero_of(call, at));
        for (int64_t k = i; k < i + length; k++) {
            float value = (float)msc_array_get_double(x, k);
            store(call->outputs[0], k, msc_quantize_number(&format, value, scale, zero));
        }
    }
    return true;
}
