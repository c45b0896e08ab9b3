#include "graph/reference/numeric.h"

#include "base/float_bits.h"
#include "base/platform.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

// Adding and then subtracting 1.5 * 2^23 rounds to the nearest integer, half to even. The low bits
// of the sum hold that integer in two's complement. Unlike a conversion, this is defined for NaN.
#define ROUNDER 12582912.0f
#define ROUNDER_BITS 0x4b400000u

// mantissa * 2^n for n in [-252, 254]. The power is applied as two factors, each a normal number.
// Only the second multiplication can round, and only to a denormal result.
MSC_INLINE float scale_by_power(float mantissa, uint32_t n) {
    uint32_t half = (uint32_t)((int32_t)n >> 1);
    float first = msc_float_of_bits((half + 127u) << 23);
    float second = msc_float_of_bits((n - half + 127u) << 23);
    return mantissa * first * second;
}

static inline float exp_one(float x) {
    // Beyond these bounds the result is infinite or zero. A NaN is not changed.
    x = x > 90.0f ? 90.0f : x;
    x = x < -104.0f ? -104.0f : x;
    float shifted = x * 1.44269504f + ROUNDER;
    float n = shifted - ROUNDER;
    // ln 2 is split in two parts. The first has 10 bits, so that its product with n is exact.
    float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
    float p = 1.3818697e-3f;
    p = p * r + 8.368716e-3f;
    p = p * r + 4.1668292e-2f;
    p = p * r + 1.6666521e-1f;
    p = p * r + 4.9999994e-1f;
    p = p * (r * r) + r + 1.0f;
    return scale_by_power(p, msc_float_bits(shifted) - ROUNDER_BITS);
}

static inline float tanh_one(float x) {
    float a = fabsf(x);
    float z = x * x;
    float p = -5.6370148e-3f;
    p = p * z + 2.0579655e-2f;
    p = p * z + -5.3722013e-2f;
    p = p * z + 1.3331237e-1f;
    p = p * z + -3.3333275e-1f;
    float small = p * z * a + a;
    float e = exp_one(2.0f * a);
    float large = 1.0f - 2.0f / (e + 1.0f);
    return copysignf(a < 0.625f ? small : large, x);
}

static inline float erf_one(float x) {
    float a = fabsf(x);
    float z = x * x;
    float p = -5.9944164e-4f;
    p = p * z + 4.9940264e-3f;
    p = p * z + -2.6767345e-2f;
    p = p * z + 1.12818435e-1f;
    p = p * z + -3.7612498e-1f;
    p = p * z + 1.2837915e-1f;
    float small = p * a + a;
    // q is -log(1 - erf(a)), fitted up to a = 4; for larger a, erf is 1 in float32.
    float b = a > 4.0f ? 4.0f : a;
    float q = 5.1962616e-7f;
    q = q * b + 1.4335026e-5f;
    q = q * b + -3.9680948e-4f;
    q = q * b + 4.053732e-3f;
    q = q * b + -2.4895595e-2f;
    q = q * b + 1.08012244e-1f;
    q = q * b + 6.335434e-1f;
    q = q * b + 1.1294341f;
    q = q * b + -1.6039683e-4f;
    float large = 1.0f - exp_one(-q);
    return copysignf(a < 0.921875f ? small : large, x);
}

static inline float sigmoid_one(float x) {
    float e = exp_one(-fabsf(x));
    // For NaN the comparison is false and selects `e`, which is also NaN.
    return (x >= 0.0f ? 1.0f : e) / (1.0f + e);
}

// Splits a positive finite x into m * 2^*e with m in [sqrt(0.5), sqrt(2)).
MSC_INLINE float split_exponent(float x, float *e) {
    bool is_denormal = x < 1.17549435e-38f;
    uint32_t bits = msc_float_bits(is_denormal ? x * 8388608.0f : x);
    // 0x3f3504f3 is sqrt(0.5). The exponent field of the difference counts powers of two above
    // sqrt(0.5).
    uint32_t above = bits - 0x3f3504f3u;
    int32_t n = (int32_t)above >> 23;
    *e = (float)(is_denormal ? n - 23 : n);
    return msc_float_of_bits((above & 0x007fffffu) + 0x3f3504f3u);
}

static inline float log_one(float x) {
    float e;
    float f = split_exponent(x, &e) - 1.0f;
    float z = f * f;
    float p = 6.74919e-2f;
    p = p * f + -1.1670025e-1f;
    p = p * f + 1.18835375e-1f;
    p = p * f + -1.240624e-1f;
    p = p * f + 1.422036e-1f;
    p = p * f + -1.6667989e-1f;
    p = p * f + 2.0002072e-1f;
    p = p * f + -2.500001e-1f;
    p = p * f + 3.3333313e-1f;
    float y = p * f * z;
    y = y + e * -2.12194440e-4f;
    y = y - 0.5f * z;
    float result = (f + y) + e * 0.693359375f;
    result = x == 0.0f ? -INFINITY : result;
    result = x == INFINITY ? INFINITY : result;
    return x >= 0.0f ? result : NAN;
}

float msc_expf(float x) {
    return exp_one(x);
}

float msc_logf(float x) {
    return log_one(x);
}

float msc_tanhf(float x) {
    return tanh_one(x);
}

float msc_erff(float x) {
    return erf_one(x);
}

float msc_sigmoidf(float x) {
    return sigmoid_one(x);
}

MSC_SIMD static void exp_clones(float out[], const float x[], int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = exp_one(x[i]);
    }
}

void msc_exp_run(float out[], const float x[], int64_t n) {
    exp_clones(out, x, n);
}

MSC_SIMD static void sigmoid_clones(float out[], const float x[], int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = sigmoid_one(x[i]);
    }
}

void msc_sigmoid_run(float out[], const float x[], int64_t n) {
    sigmoid_clones(out, x, n);
}

MSC_SIMD static void tanh_clones(float out[], const float x[], int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = tanh_one(x[i]);
    }
}

void msc_tanh_run(float out[], const float x[], int64_t n) {
    tanh_clones(out, x, n);
}

MSC_SIMD static void erf_clones(float out[], const float x[], int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = erf_one(x[i]);
    }
}

void msc_erf_run(float out[], const float x[], int64_t n) {
    erf_clones(out, x, n);
}

MSC_SIMD static void log_clones(float out[], const float x[], int64_t n) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = log_one(x[i]);
    }
}

void msc_log_run(float out[], const float x[], int64_t n) {
    log_clones(out, x, n);
}

// The unevaluated sum high + low. |low| is at most half a unit in the last place of high, so the
// sum has about 48 bits (T. J. Dekker, 1971). The exponent y * log2(x) can reach 150, and its
// absolute error becomes the relative error of the result. With a single float, eight bits of the
// result would be lost.
struct pair {
    float high;
    float low;
};

MSC_INLINE struct pair pair_sum(float a, float b) {
    float s = a + b;
    float from_b = s - a;
    return (struct pair){s, (a - (s - from_b)) + (b - from_b)};
}

// Like pair_sum, for |a| >= |b|.
MSC_INLINE struct pair pair_normal(float a, float b) {
    float s = a + b;
    return (struct pair){s, b - (s - a)};
}

MSC_INLINE struct pair pair_product(float a, float b) {
    float p = a * b;
    float big_a = a * 4097.0f;
    float big_b = b * 4097.0f;
    float a1 = big_a - (big_a - a);
    float b1 = big_b - (big_b - b);
    float a2 = a - a1;
    float b2 = b - b1;
    return (struct pair){p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2};
}

MSC_INLINE struct pair pair_multiply(struct pair a, struct pair b) {
    struct pair p = pair_product(a.high, b.high);
    return pair_normal(p.high, p.low + (a.high * b.low + a.low * b.high));
}

// log2 of a positive finite x: e + 2 / ln 2 * atanh(s) with s = (m - 1) / (m + 1).
MSC_INLINE struct pair log2_pair(float x) {
    static const struct pair third = {3.33333343e-1f, -9.93410776e-9f};
    static const struct pair two_over_ln2 = {2.88539004f, 4.05191811e-8f};
    float e;
    float m = split_exponent(x, &e);
    float f = m - 1.0f;
    struct pair d = pair_sum(m, 1.0f);
    float s1 = f / d.high;
    struct pair back = pair_product(s1, d.high);
    struct pair s = pair_normal(s1, (((f - back.high) - back.low) - s1 * d.low) / d.high);

    struct pair z = pair_multiply(s, s);
    struct pair cubic = pair_multiply(pair_multiply(z, s), third);
    float q = (1.17137894e-1f * z.high + 1.4273386e-1f) * z.high + 2.0000078e-1f;
    float rest = q * z.high * z.high * s.high;
    struct pair t = pair_normal(s.high, cubic.high);
    t = pair_normal(t.high, t.low + (s.low + cubic.low + rest));
    t = pair_multiply(t, two_over_ln2);
    struct pair sum = pair_sum(e, t.high);
    return pair_normal(sum.high, sum.low + t.low);
}

// x^y for positive finite x and finite y.
MSC_INLINE float pow_positive(float x, float y) {
    // log2(x) is 0 or at least 2^-24 in magnitude, so a larger |y| overflows or underflows in any
    // case. The bound also keeps pair_product, which multiplies by 4097, from overflowing.
    y = y > 1e12f ? 1e12f : y;
    y = y < -1e12f ? -1e12f : y;
    struct pair l = log2_pair(x);
    struct pair product = pair_product(l.high, y);
    float low = product.low + l.low * y;
    bool is_beyond = product.high > 200.0f || product.high < -200.0f;
    float beyond = product.high > 0.0f ? INFINITY : 0.0f;
    float high = is_beyond ? 0.0f : product.high;
    float shifted = high + ROUNDER;
    float r = (high - (shifted - ROUNDER)) + (is_beyond ? 0.0f : low);
    float p = 1.4324839e-5f;
    p = p * r + 1.5452136e-4f;
    p = p * r + 1.3337962e-3f;
    p = p * r + 9.618087e-3f;
    p = p * r + 5.550405e-2f;
    p = p * r + 2.402265e-1f;
    p = p * r + 6.931472e-1f;
    float result = scale_by_power(p * r + 1.0f, msc_float_bits(shifted) - ROUNDER_BITS);
    return is_beyond ? beyond : result;
}

float msc_powf(float x, float y) {
    if (y == 2.0f) {
        return x * x;
    }
    if (y == 3.0f) {
        return x * x * x;
    }
    if (y == 0.5f && x >= 0.0f) {
        return sqrtf(x) + 0.0f; // pow(-0, 0.5) is +0
    }
    if (y == 0.0f || x == 1.0f) {
        return 1.0f;
    }
    if (y == 1.0f || x != x || y != y) {
        return y == 1.0f ? x : x + y;
    }
    float a = fabsf(x);
    bool is_whole = floorf(y) == y;
    bool is_odd = is_whole && floorf(y * 0.5f) != y * 0.5f;
    float result;
    if (isinf(y)) {
        result = a == 1.0f ? 1.0f : ((a > 1.0f) == (y > 0.0f) ? INFINITY : 0.0f);
    } else if (a == 0.0f || isinf(a)) {
        result = (a == 0.0f) == (y > 0.0f) ? 0.0f : INFINITY;
    } else if (x < 0.0f && !is_whole) {
        return NAN;
    } else {
        result = pow_positive(a, y);
    }
    return signbit(x) && is_odd ? -result : result;
}

// True if msc_powf computes x^y with pow_positive. All other cases are exceptions.
MSC_INLINE bool is_plain_power(float x, float y) {
    bool is_plain_x = x > 0.0f && x < INFINITY && x != 1.0f;
    bool is_short = y == 0.0f || y == 0.5f || y == 1.0f || y == 2.0f || y == 3.0f;
    return is_plain_x && fabsf(y) < INFINITY && !is_short;
}

enum { POWER_BLOCK = 256 };

// Computes up to POWER_BLOCK powers with pow_positive. Returns the number of exceptions (see
// is_plain_power), which must be computed again.
MSC_SIMD static int power_clones(float out[], const float x[], const float y[], int n) {
    int n_exceptions = 0;
#pragma omp simd reduction(+ : n_exceptions)
    for (int i = 0; i < n; i++) {
        bool is_plain = is_plain_power(x[i], y[i]);
        n_exceptions += is_plain ? 0 : 1;
        out[i] = pow_positive(is_plain ? x[i] : 1.0f, is_plain ? y[i] : 1.0f);
    }
    return n_exceptions;
}

void msc_pow_run(float out[], const float x[], const float y[], int64_t n) {
    float block[POWER_BLOCK];
    for (int64_t at = 0; at < n; at += POWER_BLOCK) {
        int count = n - at < POWER_BLOCK ? (int)(n - at) : POWER_BLOCK;
        int n_exceptions = power_clones(block, x + at, y + at, count);
        for (int i = 0; n_exceptions > 0 && i < count; i++) {
            if (!is_plain_power(x[at + i], y[at + i])) {
                block[i] = msc_powf(x[at + i], y[at + i]);
            }
        }
        memcpy(out + at, block, (size_t)count * sizeof(float));
    }
}
