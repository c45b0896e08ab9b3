// QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear: float32 division, rounding half to even,
// saturation.
#include "graph/linear_quant.h"
#include "graph/reference/reference_internal.h"

static enum msc_status reference_linear_quant_init(struct msc_linear_quant *m,
                                                   const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0], *scales = &call->operands[1];
    return msc_linear_quant_init(m, call->joint, x->n_dims, x->dims, scales->n_dims, scales->dims);
}

static int64_t zero_of(const struct msc_reference_call *call, int64_t scale) {
    return msc_reference__has(call, 2) ? msc_reference__get_i64_at(&call->operands[2], scale) : 0;
}

struct numbers {
    struct msc_quant_format format;
    float scale, zero;
};

// Quantises the elements [first, first + n), which share a scale.
static void quantize_run(const struct msc_view *out, const struct msc_view *x, int64_t first,
                         int64_t n, const struct numbers *q) {
    union msc_reference_chunk buffer;
    int64_t rounded[MSC_REFERENCE_CHUNK];
    for (int64_t begin = 0; begin < n; begin += MSC_REFERENCE_CHUNK) {
        int64_t length = n - begin < MSC_REFERENCE_CHUNK ? n - begin : MSC_REFERENCE_CHUNK;
        const float *values =
            msc_reference__load_chunk(&buffer, x, first + begin, 1, length, MSC_REFERENCE_F32);
        for (int64_t i = 0; i < length; i++) {
            rounded[i] = msc_quantize_number(&q->format, values[i], q->scale, q->zero);
        }
        msc_reference__store_chunk(out, first + begin, rounded, length, MSC_REFERENCE_INT);
    }
}

static void dequantize_run(const struct msc_view *out, const struct msc_view *x, int64_t first,
                           int64_t n, const struct numbers *q, int64_t zero) {
    union msc_reference_chunk buffer;
    float values[MSC_REFERENCE_CHUNK];
    for (int64_t begin = 0; begin < n; begin += MSC_REFERENCE_CHUNK) {
        int64_t length = n - begin < MSC_REFERENCE_CHUNK ? n - begin : MSC_REFERENCE_CHUNK;
        const int64_t *codes =
            msc_reference__load_chunk(&buffer, x, first + begin, 1, length, MSC_REFERENCE_INT);
        for (int64_t i = 0; i < length; i++) {
            values[i] = msc_dequantize_number(&q->format, codes[i], zero, q->scale);
        }
        msc_reference__store_chunk(out, first + begin, values, length, MSC_REFERENCE_F32);
    }
}

enum msc_status msc_reference__quantize(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0], *out = &call->outputs[0];
    int64_t n = msc_view_n_elements(x);
    struct msc_linear_quant m;
    struct numbers q;
    MSC_TRY(reference_linear_quant_init(&m, call));
    msc_quant_format_init(&q.format, call->joint, out->dtype);
    for (int64_t i = 0, length, at; i < n; i += length) {
        length = msc_linear_quant_run(&m, i, n, &at);
        q.scale = (float)msc_reference__get_double_at(&call->operands[1], at);
        q.zero = msc_quant_format_value(&q.format, zero_of(call, at));
        quantize_run(out, x, i, length, &q);
    }
    return MSC_OK;
}

enum msc_status msc_reference__dequantize(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0];
    int64_t n = msc_view_n_elements(x);
    struct msc_linear_quant m;
    struct numbers q = {.zero = 0};
    MSC_TRY(reference_linear_quant_init(&m, call));
    msc_quant_format_init(&q.format, call->joint, x->dtype);
    for (int64_t i = 0, length, at; i < n; i += length) {
        length = msc_linear_quant_run(&m, i, n, &at);
        q.scale = (float)msc_reference__get_double_at(&call->operands[1], at);
        dequantize_run(&call->outputs[0], x, i, length, &q, zero_of(call, at));
    }
    return MSC_OK;
}

// Quantises to uint8 with a scale that follows from the elements (graph/quant.h).
enum msc_status msc_reference__dynamic_quantize(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0];
    int64_t n = msc_view_n_elements(x);
    int32_t zero_point;
    struct numbers q = {.format = {.high = 255}};
    msc_quant_find_dynamic(&q.scale, &zero_point, x->data, n);
    q.zero = (float)zero_point;
    quantize_run(&call->outputs[0], x, 0, n, &q);
    if (call->n_outputs > 1) {
        msc_reference__set_double_at(&call->outputs[1], 0, (double)q.scale);
    }
    if (call->n_outputs > 2) {
        msc_reference__set_i64_at(&call->outputs[2], 0, zero_point);
    }
    return MSC_OK;
}
