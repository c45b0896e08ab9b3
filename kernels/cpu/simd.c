#include "kernels/cpu/simd.h"

#include "base/platform.h"

#include <math.h>
#include <string.h>

// ---- Quantising -------------------------------------------------------------------------------

struct msc_simd_bytes msc_simd_bytes_of(const struct msc_quant *quant) {
    int32_t zero_point = quant->zero_points[0];
    float scale = quant->scales[0];
    struct msc_simd_bytes q = {
        .scale = scale,
        .low = (float)(quant->low - zero_point),
        .high = (float)(quant->high - zero_point),
        .zero_point = zero_point,
        .reciprocal = 1.0f / scale,
    };
    // No remainder of a number that counts is subnormal, and no limit overflows.
    q.x_low = q.low * scale;
    q.x_high = q.high * scale;
    q.is_corrected = scale > 0x1p-60f && scale < 0x1p60f && q.low >= -255.0f && q.high <= 255.0f;
    return q;
}

MSC_SIMD static void quantize(uint8_t out[], const float x[], int64_t n,
                              const struct msc_simd_bytes *q) {
    float scale = q->scale, low = q->low, high = q->high;
    int32_t zero_point = q->zero_point;
    for (int64_t i = 0; i < n; i++) {
        float r = rintf(x[i] / scale);
        r = r > low ? r : low;
        r = r < high ? r : high;
        out[i] = (uint8_t)((int32_t)r + zero_point);
    }
}

// ---- Sums -------------------------------------------------------------------------------------

MSC_SIMD static void finish(float out[], const struct msc_simd_finish *f, int64_t n) {
    const int32_t *sums = f->sums, *offsets = f->offsets;
    const float *scales = f->scales, *bias = f->bias;
    float low = f->low, high = f->high;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        // Unsigned: a sum may have wrapped before its offset brings it back.
        float y = scales[i] * (float)(int32_t)((uint32_t)sums[i] - (uint32_t)offsets[i]);
        y = y + bias[i];
        y = y < low ? low : y;
        out[i] = y > high ? high : y;
    }
}

static void finish_quantize(uint8_t out[], const struct msc_simd_finish *f, int64_t n,
                            const struct msc_simd_bytes *q) {
    float y[256];
    for (int64_t i = 0; i < n; i += 256) {
        int64_t count = n - i < 256 ? n - i : 256;
        struct msc_simd_finish part = *f;
        part.sums += i;
        part.offsets += i;
        part.scales += i;
        part.bias += i;
        finish(y, &part, count);
        quantize(out + i, y, count, q);
    }
}

const struct msc_simd msc_simd_plain = {
    .quantize = quantize,
    .finish = finish,
    .finish_quantize = finish_quantize,
};
