#include "kernels/cpu/simd.h"

#include "base/platform.h"
#include "graph/reference/numeric.h"

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
    // If `is_corrected`, the scale is so moderate that no relevant remainder is subnormal and that
    // x_low and x_high do not overflow.
    q.x_low = q.low * scale;
    q.x_high = q.high * scale;
    q.is_corrected = scale > 0x1p-60f && scale < 0x1p60f && q.low >= -255.0f && q.high <= 255.0f;
    return q;
}

MSC_SIMD static void plain_quantize(uint8_t out[], const float x[], int64_t n,
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

struct msc_simd_bytes msc_simd_limit(const struct msc_simd_finish *f,
                                     const struct msc_simd_bytes *q) {
    struct msc_simd_bytes limited = *q;
    const float limits[2] = {f->low, f->high};
    uint8_t bytes[2];
    bool is_signed = q->low + (float)q->zero_point < 0.0f;
    plain_quantize(bytes, limits, 2, q);
    limited.low = (float)((is_signed ? (int8_t)bytes[0] : bytes[0]) - q->zero_point);
    limited.high = (float)((is_signed ? (int8_t)bytes[1] : bytes[1]) - q->zero_point);
    return limited;
}

// ---- Sums -------------------------------------------------------------------------------------

MSC_SIMD static void plain_finish(float out[], const struct msc_simd_finish *f, int64_t n) {
    const int32_t *sums = f->sums, *offsets = f->offsets;
    const float *scales = f->scales, *bias = f->bias;
    float low = f->low, high = f->high;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        // Unsigned arithmetic, because a sum may have wrapped around; subtracting its offset wraps
        // it back.
        float y = scales[i] * (float)(int32_t)((uint32_t)sums[i] - (uint32_t)offsets[i]);
        y = y + bias[i];
        y = y < low ? low : y;
        out[i] = y > high ? high : y;
    }
}

// ---- Depthwise --------------------------------------------------------------------------------

static int64_t plain_round_up(int64_t n, int64_t unit) {
    return (n + unit - 1) / unit * unit;
}

size_t msc_simd_taps_bytes(int n_taps, int64_t period) {
    return (size_t)(plain_round_up(n_taps, MSC_SIMD_TAPS) *
                    plain_round_up(period, MSC_SIMD_BLOCK)) *
           sizeof(int16_t);
}

// Packs the weights as [block][tap][element].
static void plain_pack_taps(void *packed, const int8_t weights[], int64_t n_channels, int n_taps,
                            int64_t period) {
    int8_t *to = packed;
    for (int64_t block = 0; block < period; block += MSC_SIMD_BLOCK) {
        for (int tap = 0; tap < n_taps; tap++) {
            for (int64_t i = 0; i < MSC_SIMD_BLOCK; i++) {
                *to++ = weights[(block + i) % n_channels * n_taps + tap];
            }
        }
    }
}

MSC_SIMD static void plain_add_block(int32_t sums[], const struct msc_simd_taps *t, int64_t at,
                                     const int8_t *weights, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        sums[i] = 0;
    }
    for (int tap = 0; tap < t->n_taps; tap++) {
        const uint8_t *x = t->taps[tap] + at;
        const int8_t *w = weights + tap * MSC_SIMD_BLOCK;
        for (int64_t i = 0; i < n; i++) {
            sums[i] += (int32_t)(uint8_t)(x[i] ^ t->flip) * w[i];
        }
    }
}

static const int8_t *plain_block_weights(const struct msc_simd_taps *t, int64_t i) {
    return (const int8_t *)t->weights + i % t->period * t->n_taps;
}

static void plain_add_taps(int32_t sums[], const struct msc_simd_taps *t) {
    for (int64_t run = 0; run < t->n_runs; run++) {
        for (int64_t i = 0; i < t->n; i += MSC_SIMD_BLOCK) {
            int64_t n = t->n - i < MSC_SIMD_BLOCK ? t->n - i : MSC_SIMD_BLOCK;
            plain_add_block(sums + i, t, run * t->step + i, plain_block_weights(t, i), n);
        }
        sums += t->n;
    }
}

static void plain_add_taps_quantize(uint8_t out[], const struct msc_simd_taps *t,
                                    const struct msc_simd_finish *f,
                                    const struct msc_simd_bytes *q) {
    int32_t sums[MSC_SIMD_BLOCK];
    float y[MSC_SIMD_BLOCK];
    for (int64_t run = 0; run < t->n_runs; run++) {
        for (int64_t i = 0; i < t->n; i += MSC_SIMD_BLOCK) {
            int64_t n = t->n - i < MSC_SIMD_BLOCK ? t->n - i : MSC_SIMD_BLOCK;
            int64_t at = i % t->period;
            struct msc_simd_finish part = *f;
            part.sums = sums;
            part.offsets += at;
            part.scales += at;
            part.bias += at;
            plain_add_block(sums, t, run * t->step + i, plain_block_weights(t, i), n);
            plain_finish(y, &part, n);
            plain_quantize(out + i, y, n, q);
        }
        out += t->n;
    }
}

// ---- Pooling ----------------------------------------------------------------------------------

MSC_SIMD static void largest_of_two(uint8_t *restrict out, const uint8_t *restrict x, int64_t n,
                                    uint8_t flip) {
    for (int64_t i = 0; i < n; i++) {
        uint8_t a = out[i] ^ flip, b = x[i] ^ flip;
        out[i] = (a > b ? a : b) ^ flip;
    }
}

static void plain_largest(uint8_t out[], const uint8_t x[], const struct msc_simd_pool *p,
                          uint8_t flip) {
    for (int64_t w = 0; w < p->n_windows; w++) {
        memcpy(out, x + p->offsets[0], (size_t)p->channels);
        for (int64_t t = 1; t < p->n_taps; t++) {
            largest_of_two(out, x + p->offsets[t], p->channels, flip);
        }
        out += p->channels;
        x += p->step;
    }
}

// The number of channels that are pooled together over all taps: the lanes of the widest vector.
// Loops over them need `omp simd`: without it, such a short loop is unrolled instead of vectorised.
enum { WIDTH = 16 };

MSC_SIMD static void max_taps(float *restrict out, const float *restrict x, const int64_t offsets[],
                              int64_t n, int64_t channels) {
    int64_t c = 0;
    for (; c + WIDTH <= channels; c += WIDTH) {
        float max[WIDTH];
        for (int i = 0; i < WIDTH; i++) {
            max[i] = -INFINITY;
        }
        for (int64_t k = 0; k < n; k++) {
            const float *from = x + offsets[k] + c;
#pragma omp simd
            for (int i = 0; i < WIDTH; i++) {
                float value = from[i];
                max[i] = ((value > max[i]) | (value != value)) ? value : max[i];
            }
        }
        for (int i = 0; i < WIDTH; i++) {
            out[c + i] = max[i];
        }
    }
    for (; c < channels; c++) {
        float max = -INFINITY;
        for (int64_t k = 0; k < n; k++) {
            float value = x[offsets[k] + c];
            max = value > max || value != value ? value : max;
        }
        out[c] = max;
    }
}

MSC_SIMD static void mean_taps(float *restrict out, const float *restrict x,
                               const int64_t offsets[], int64_t n, int64_t channels,
                               float divisor) {
    int64_t c = 0;
    for (; c + WIDTH <= channels; c += WIDTH) {
        float sum[WIDTH] = {0};
        for (int64_t k = 0; k < n; k++) {
            const float *from = x + offsets[k] + c;
#pragma omp simd
            for (int i = 0; i < WIDTH; i++) {
                sum[i] += from[i];
            }
        }
        for (int i = 0; i < WIDTH; i++) {
            out[c + i] = sum[i] / divisor;
        }
    }
    for (; c < channels; c++) {
        float sum = 0.0f;
        for (int64_t k = 0; k < n; k++) {
            sum += x[offsets[k] + c];
        }
        out[c] = sum / divisor;
    }
}

static void plain_largest_float(float out[], const float x[], const struct msc_simd_pool *p) {
    for (int64_t w = 0; w < p->n_windows; w++) {
        max_taps(out + w * p->channels, x + w * p->step, p->offsets, p->n_taps, p->channels);
    }
}

static void plain_mean(float out[], const float x[], const struct msc_simd_pool *p, float divisor) {
    for (int64_t w = 0; w < p->n_windows; w++) {
        mean_taps(out + w * p->channels, x + w * p->step, p->offsets, p->n_taps, p->channels,
                  divisor);
    }
}

// ---- Softmax ----------------------------------------------------------------------------------

// PIECE elements of a row are computed at a time, to stay in a first-level cache.
enum { LANES = 16, MAX_LANES = 64, PIECE = 1024 };

MSC_SIMD static float row_max(const float x[], int64_t n) {
    float lanes[MAX_LANES], max = -INFINITY;
    for (int k = 0; k < MAX_LANES; k++) {
        lanes[k] = -INFINITY;
    }
    int64_t i = 0;
    for (; i + MAX_LANES <= n; i += MAX_LANES) {
        for (int k = 0; k < MAX_LANES; k++) {
            lanes[k] = x[i + k] > lanes[k] ? x[i + k] : lanes[k];
        }
    }
    for (; i < n; i++) {
        max = x[i] > max ? x[i] : max;
    }
    for (int k = LANES; k < MAX_LANES; k++) {
        lanes[k % LANES] = lanes[k] > lanes[k % LANES] ? lanes[k] : lanes[k % LANES];
    }
    for (int k = 0; k < LANES; k++) {
        max = lanes[k] > max ? lanes[k] : max;
    }
    return max;
}

// The partial sums of a row. At the end, the lanes are added to `rest` in the same order on every
// machine.
struct sum {
    float lanes[LANES], rest;
};

// Adds a piece of a row to the sum. The length of all pieces except the last is a multiple of
// LANES.
MSC_SIMD static void plain_add_piece(struct sum *s, const float x[], int64_t n) {
    float lanes[LANES], rest = s->rest;
    memcpy(lanes, s->lanes, sizeof(lanes));
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        for (int k = 0; k < LANES; k++) {
            lanes[k] += x[i + k];
        }
    }
    for (; i < n; i++) {
        rest += x[i];
    }
    memcpy(s->lanes, lanes, sizeof(lanes));
    s->rest = rest;
}

static float simd_total(const struct sum *s) {
    float sum = s->rest;
    for (int k = 0; k < LANES; k++) {
        sum += s->lanes[k];
    }
    return sum;
}

MSC_SIMD static void subtract(float out[], const float x[], int64_t n, float value) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = x[i] - value;
    }
}

MSC_SIMD static void plain_divide(float out[], int64_t n, float value) {
    for (int64_t i = 0; i < n; i++) {
        out[i] /= value;
    }
}

static void plain_softmax(float out[], const float x[], int64_t n) {
    float max = row_max(x, n);
    struct sum sum = {.rest = 0.0f};
    for (int64_t i = 0; i < n; i += PIECE) {
        int64_t length = n - i < PIECE ? n - i : PIECE;
        subtract(out + i, x + i, length, max);
        msc_exp_run(out + i, out + i, length);
        plain_add_piece(&sum, out + i, length);
    }
    plain_divide(out, n, simd_total(&sum));
}

static void plain_log_softmax(float out[], const float x[], int64_t n) {
    float max = row_max(x, n), powers[PIECE];
    struct sum sum = {.rest = 0.0f};
    for (int64_t i = 0; i < n; i += PIECE) {
        int64_t length = n - i < PIECE ? n - i : PIECE;
        subtract(out + i, x + i, length, max);
        msc_exp_run(powers, out + i, length);
        plain_add_piece(&sum, powers, length);
    }
    subtract(out, out, n, msc_logf(simd_total(&sum)));
}

const struct msc_simd msc_simd_plain = {
    .isa = "plain",
    .quantize = plain_quantize,
    .finish = plain_finish,
    .pack_taps = plain_pack_taps,
    .add_taps = plain_add_taps,
    .add_taps_quantize = plain_add_taps_quantize,
    .largest = plain_largest,
    .largest_float = plain_largest_float,
    .mean = plain_mean,
    .softmax = plain_softmax,
    .log_softmax = plain_log_softmax,
};
