// QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear: float32 division, rounding half to even,
// saturation.
#include "graph/linear_quant.h"
#include "kernels/reference_internal.h"

static enum msc_status init(struct msc_linear_quant *m, const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0], *scales = &call->operands[1];
    return msc_linear_quant_init(m, call->joint, x->n_dims, x->dims, scales->n_dims, scales->dims);
}

static int64_t zero_of(const struct msc_reference_call *call, int64_t scale) {
    return msc_reference__has(call, 2) ? msc_reference__get_i64_at(&call->operands[2], scale) : 0;
}

struct numbers {
    float scale, zero, low, high;
};

// Elements [first, first + n) of one scale.
static void quantize_run(const struct msc_view *out, const struct msc_view *x, int64_t first,
                         int64_t n, const struct numbers *q) {
    union msc_reference_chunk buffer;
    int64_t rounded[MSC_REFERENCE_CHUNK];
    for (int64_t begin = 0; begin < n; begin += MSC_REFERENCE_CHUNK) {
        int64_t length = n - begin < MSC_REFERENCE_CHUNK ? n - begin : MSC_REFERENCE_CHUNK;
        const float *values =
            msc_reference__load_chunk(&buffer, x, first + begin, 1, length, MSC_REFERENCE_F32);
        for (int64_t i = 0; i < length; i++) {
            rounded[i] =
                (int64_t)msc_quantize_number(values[i], q->scale, q->zero, q->low, q->high);
        }
        msc_reference__store_chunk(out, first + begin, rounded, length, MSC_REFERENCE_INT);
    }
}

static void dequantize_run(const struct msc_view *out, const struct msc_view *x, int64_t first,
                           int64_t n, float scale, int64_t zero) {
    union msc_reference_chunk buffer;
    float values[MSC_REFERENCE_CHUNK];
    for (int64_t begin = 0; begin < n; begin += MSC_REFERENCE_CHUNK) {
        int64_t length = n - begin < MSC_REFERENCE_CHUNK ? n - begin : MSC_REFERENCE_CHUNK;
        const int64_t *q =
            msc_reference__load_chunk(&buffer, x, first + begin, 1, length, MSC_REFERENCE_INT);
        for (int64_t i = 0; i < length; i++) {
            values[i] = msc_dequantize_number(q[i], zero, scale);
        }
        msc_reference__store_chunk(out, first + begin, values, length, MSC_REFERENCE_F32);
    }
}

enum msc_status msc_reference__quantize(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0], *out = &call->outputs[0];
    int64_t bits, n = msc_view_n_elements(x);
    struct msc_linear_quant m;
    struct numbers q;
    MSC_TRY(init(&m, call));
    MSC_TRY(msc_reference__get_i64(&bits, call, "bits"));
    msc_linear_quant_limits(&q.low, &q.high, out->dtype, bits);
    for (int64_t i = 0, length, at; i < n; i += length) {
        length = msc_linear_quant_run(&m, i, n, &at);
        q.scale = (float)msc_reference__get_double_at(&call->operands[1], at);
        q.zero = (float)zero_of(call, at);
        quantize_run(out, x, i, length, &q);
    }
    return MSC_OK;
}

enum msc_status msc_reference__dequantize(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0];
    int64_t n = msc_view_n_elements(x);
    struct msc_linear_quant m;
    MSC_TRY(init(&m, call));
    for (int64_t i = 0, length, at; i < n; i += length) {
        length = msc_linear_quant_run(&m, i, n, &at);
        float scale = (float)msc_reference__get_double_at(&call->operands[1], at);
        dequantize_run(&call->outputs[0], x, i, length, scale, zero_of(call, at));
    }
    return MSC_OK;
}

// To uint8, over the range from the least to the greatest element, with 0 in it.
enum msc_status msc_reference__dynamic_quantize(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0];
    int64_t n = msc_view_n_elements(x);
    float least = 0, greatest = 0;
    for (int64_t i = 0; i < n; i++) {
        float value = ((const float *)x->data)[i];
        least = value < least ? value : least;
        greatest = value > greatest ? value : greatest;
    }
    struct numbers q = {.scale = greatest > least ? (greatest - least) / 255 : 1, .high = 255};
    q.zero = msc_quantize_number(-least, q.scale, 0, q.low, q.high);
    quantize_run(&call->outputs[0], x, 0, n, &q);
    if (call->n_outputs > 1) {
        msc_reference__set_double_at(&call->outputs[1], 0, (double)q.scale);
    }
    if (call->n_outputs > 2) {
        msc_reference__set_i64_at(&call->outputs[2], 0, (int64_t)q.zero);
    }
    return MSC_OK;
}
