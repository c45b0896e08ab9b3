#include "base/platform.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/simd.h"

// Each function has one loop per storage type. The loops differ only in the pointer type.

MSC_SIMD static void expand_u8(float out[], const uint8_t q[], int64_t n, int32_t zero_point,
                               int shift, int32_t mask) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = (float)(((int32_t)q[i] - zero_point) >> shift & mask);
    }
}

MSC_SIMD static void expand_i8(float out[], const int8_t q[], int64_t n, int32_t zero_point,
                               int shift, int32_t mask) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = (float)(((int32_t)q[i] - zero_point) >> shift & mask);
    }
}

MSC_SIMD static void dequantize_u8(float *restrict out, const uint8_t *restrict q, int64_t n,
                                   int32_t zero_point, float scale) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = (float)((int32_t)q[i] - zero_point) * scale;
    }
}

MSC_SIMD static void dequantize_i8(float *restrict out, const int8_t *restrict q, int64_t n,
                                   int32_t zero_point, float scale) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = (float)((int32_t)q[i] - zero_point) * scale;
    }
}

MSC_SIMD static void expand_row(float out[], const uint8_t q[], int64_t n, uint8_t flip,
                                const int32_t zero_points[]) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = (float)((int32_t)(uint8_t)(q[i] ^ flip) - flip - zero_points[i]);
    }
}

MSC_SIMD static void scale_row(float x[], int64_t n, const float scales[]) {
    for (int64_t i = 0; i < n; i++) {
        x[i] *= scales[i];
    }
}

struct msc_quant msc_cpu_byte_quant(enum msc_dtype dtype, const float *scale,
                                    const int32_t *zero_point) {
    bool is_signed = dtype == MSC_DTYPE_I8;
    return (struct msc_quant){.bits = 8,
                              .low = is_signed ? -128 : 0,
                              .high = is_signed ? 127 : 255,
                              .axis = -1,
                              .n = 1,
                              .scales = scale,
                              .zero_points = zero_point};
}

void msc_cpu_expand(float out[], const void *q, enum msc_dtype dtype, int64_t n, int32_t zero_point,
                    int shift, int32_t mask) {
    if (dtype == MSC_DTYPE_U8) {
        expand_u8(out, q, n, zero_point, shift, mask);
    } else {
        expand_i8(out, q, n, zero_point, shift, mask);
    }
}

void msc_cpu_expand_channels(float out[], const void *q, enum msc_dtype dtype, int64_t first,
                             int64_t n, const struct msc_quant *quant, bool is_value) {
    const uint8_t *bytes = q, flip = dtype == MSC_DTYPE_I8 ? 0x80 : 0;
    for (int64_t i = 0, c = first % quant->n; i < n; c = 0) {
        int64_t length = quant->n - c < n - i ? quant->n - c : n - i;
        expand_row(out + i, bytes + i, length, flip, quant->zero_points + c);
        if (is_value) {
            scale_row(out + i, length, quant->scales + c);
        }
        i += length;
    }
}

void msc_cpu_dequantize(float out[], const void *q, enum msc_dtype dtype, int64_t n,
                        const struct msc_quant *quant) {
    if (dtype == MSC_DTYPE_U8) {
        dequantize_u8(out, q, n, quant->zero_points[0], quant->scales[0]);
    } else {
        dequantize_i8(out, q, n, quant->zero_points[0], quant->scales[0]);
    }
}

MSC_SIMD static void add_floats_clones(int32_t sums[], const float product[], int64_t n,
                                       int shift) {
    for (int64_t i = 0; i < n; i++) {
        sums[i] = (int32_t)((uint32_t)sums[i] + ((uint32_t)(int32_t)product[i] << shift));
    }
}

void msc_cpu_add_floats(int32_t sums[], const float product[], int64_t n, int shift) {
    add_floats_clones(sums, product, n, shift);
}

MSC_SIMD static void add_integers_clones(int32_t sums[], const int32_t product[], int64_t n,
                                         int shift) {
    for (int64_t i = 0; i < n; i++) {
        sums[i] = (int32_t)((uint32_t)sums[i] + ((uint32_t)product[i] << shift));
    }
}

void msc_cpu_add_integers(int32_t sums[], const int32_t product[], int64_t n, int shift) {
    add_integers_clones(sums, product, n, shift);
}

MSC_SIMD static void to_floats_clones(float out[], const int32_t sums[], int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = (float)sums[i];
    }
}

void msc_cpu_to_floats(float out[], const int32_t sums[], int64_t n) {
    to_floats_clones(out, sums, n);
}

MSC_SIMD static void recode_clones(uint8_t out[], const uint8_t q[], int64_t n, uint8_t flip,
                                   int shift, uint8_t mask) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = (uint8_t)((uint8_t)(q[i] ^ flip) >> shift & mask);
    }
}

void msc_cpu_recode(uint8_t out[], const uint8_t q[], int64_t n, uint8_t flip, int shift,
                    uint8_t mask) {
    recode_clones(out, q, n, flip, shift, mask);
}

// ---- Quantising -------------------------------------------------------------------------------

static void cpu_quantize_run(void *out, enum msc_dtype dtype, const struct msc_quant *q,
                             const float x[], int64_t n) {
    if (dtype == MSC_DTYPE_F32) {
        msc_quant_apply_run(out, x, n, q);
        return;
    }
    struct msc_simd_bytes bytes = msc_simd_bytes_of(q);
    msc_simd_best()->quantize(out, x, n, &bytes);
}

enum msc_status msc_cpu_check_quantized(enum msc_dtype dtype, const struct msc_quant *q) {
    if (q->axis >= 0) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "a step that writes an activation cannot quantise it in "
                                           "groups or by channel");
    }
    if (dtype != MSC_DTYPE_U8 && dtype != MSC_DTYPE_I8 && dtype != MSC_DTYPE_F32) {
        return MSC_FAIL(MSC_E_INVALID, "cannot quantise to %s: expected u8, i8 or f32",
                        msc_dtype_name(dtype));
    }
    return MSC_OK;
}

enum msc_status msc_cpu_quantize(struct msc_backend *b, const struct msc_view *in,
                                 const struct msc_view *out, const struct msc_quant *q,
                                 int thread) {
    (void)b;
    (void)thread;
    if (msc_quant_is_by_channel(q)) {
        int64_t outer, inner;
        MSC_TRY(msc_quant_place(&outer, &inner, in, q));
        msc_quantize_channels(out->data, out->dtype, in->data, outer, inner, q);
        return MSC_OK;
    }
    MSC_TRY(msc_cpu_check_quantized(out->dtype, q));
    cpu_quantize_run(out->data, out->dtype, q, in->data, msc_view_n_elements(in));
    return MSC_OK;
}

void msc_cpu_write_quantized(const struct msc_quantized quantized[], int32_t n_quantized,
                             int64_t first, const float x[], int64_t n) {
    for (int32_t i = 0; i < n_quantized; i++) {
        const struct msc_view *to = &quantized[i].view;
        cpu_quantize_run((char *)to->data + (size_t)first * msc_dtype_bytes(to->dtype), to->dtype,
                         quantized[i].quant, x, n);
    }
}
