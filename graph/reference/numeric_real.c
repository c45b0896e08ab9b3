#include "graph/reference/numeric_real.h"

#include "base/platform.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

// Adding and then subtracting 1.5 * 2^52 rounds to the nearest integer, half to even. The low bits
// of the sum hold that integer in two's complement.
#define REAL_ROUNDER 6755399441055744.0

static inline uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static inline double real_of(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

// Comparisons are written so that NaN is kept.
static inline double exp_one(double x) {
    x = x > 709.0 ? 709.0 : x;
    x = x < -708.0 ? -708.0 : x;
    double shifted = x * 1.4426950408889634 + REAL_ROUNDER;
    double n = shifted - REAL_ROUNDER;
    // ln 2 in two parts; the product of n and the first part is exact.
    double r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10;
    double p = 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    return p * real_of((bits_of(shifted) + 1023) << 52);
}

static inline double expm1_one(double x) {
    double small = x + 0.5 * x * x;
    return fabs(x) < 1e-5 ? small : exp_one(x) - 1.0;
}

// log(1 + t) for t in [0, 1], as 2 atanh(t / (2 + t)).
static inline double log1p_one(double t) {
    double s = t / (2.0 + t), z = s * s;
    double p = 1.0 / 27.0;
    p = p * z + 1.0 / 25.0;
    p = p * z + 1.0 / 23.0;
    p = p * z + 1.0 / 21.0;
    p = p * z + 1.0 / 19.0;
    p = p * z + 1.0 / 17.0;
    p = p * z + 1.0 / 15.0;
    p = p * z + 1.0 / 13.0;
    p = p * z + 1.0 / 11.0;
    p = p * z + 1.0 / 9.0;
    p = p * z + 1.0 / 7.0;
    p = p * z + 1.0 / 5.0;
    p = p * z + 1.0 / 3.0;
    p = p * z + 1.0;
    return 2.0 * s * p;
}

static inline double softplus_one(double x) {
    return log1p_one(exp_one(-fabs(x))) + (x > 0.0 ? x : 0.0);
}

// tanh(log(1 + e)) is (e^2 + 2 e) / (e^2 + 2 e + 2).
static inline double mish_one(double x) {
    double e = exp_one(x > 40.0 ? 40.0 : x);
    double square = e * e + 2.0 * e;
    return x < -700.0 ? -0.0 : x * (square / (square + 2.0));
}

static inline double sinh_one(double x) {
    double e = exp_one(fabs(x));
    double a = fabs(x), small = a + a * a * a / 6.0;
    return copysign(a < 1e-4 ? small : 0.5 * (e - 1.0 / e), x);
}

static inline double cosh_one(double x) {
    double e = exp_one(fabs(x));
    return 0.5 * (e + 1.0 / e);
}

// Subtracts multiples of pi / 2, in three parts whose products with the multiple are exact. The low
// bits of *quadrant hold the multiple.
static inline double reduce_angle(double x, uint64_t *quadrant) {
    double shifted = x * 0.63661977236758134 + REAL_ROUNDER;
    double n = shifted - REAL_ROUNDER;
    *quadrant = bits_of(shifted);
    double r = x - n * 1.57079632673412561417e+00;
    r = r - n * 6.07710050630396597660e-11;
    return r - n * 2.02226624879595063154e-21;
}

static inline double sin_part(double r) {
    double z = r * r;
    double p = 1.0 / 6227020800.0;
    p = p * z - 1.0 / 39916800.0;
    p = p * z + 1.0 / 362880.0;
    p = p * z - 1.0 / 5040.0;
    p = p * z + 1.0 / 120.0;
    p = p * z - 1.0 / 6.0;
    return r + r * z * p;
}

static inline double cos_part(double r) {
    double z = r * r;
    double p = -1.0 / 87178291200.0;
    p = p * z + 1.0 / 479001600.0;
    p = p * z - 1.0 / 3628800.0;
    p = p * z + 1.0 / 40320.0;
    p = p * z - 1.0 / 720.0;
    p = p * z + 1.0 / 24.0;
    p = p * z - 0.5;
    return 1.0 + z * p;
}

static inline double sin_of_quadrant(double r, uint64_t quadrant) {
    double y = quadrant & 1 ? cos_part(r) : sin_part(r);
    return real_of(bits_of(y) ^ (quadrant & 2) << 62);
}

static inline double sin_one(double x) {
    uint64_t quadrant;
    double r = reduce_angle(x, &quadrant);
    return sin_of_quadrant(r, quadrant);
}

static inline double cos_one(double x) {
    uint64_t quadrant;
    double r = reduce_angle(x, &quadrant);
    return sin_of_quadrant(r, quadrant + 1);
}

static inline double tan_one(double x) {
    uint64_t quadrant;
    double r = reduce_angle(x, &quadrant);
    return sin_of_quadrant(r, quadrant) / sin_of_quadrant(r, quadrant + 1);
}

// atan(p / q) for p and q that are not negative, and not both 0.
static inline double atan_quotient(double p, double q) {
    bool is_middle = p > 0.41421356237309503 * q, is_large = p > 2.4142135623730949 * q;
    double above = is_large ? -q : is_middle ? p - q : p;
    double below = is_large ? p : is_middle ? p + q : q;
    double first = is_large ? 1.57079632679489661923 : is_middle ? 0.78539816339744830962 : 0.0;
    // Sums odd and even terms of the series separately, so that their operations overlap.
    double t = above / below, z = t * t, w = z * z;
    double even = 1.0 / 23.0, odd = 1.0 / 25.0;
    even = even * w + 1.0 / 19.0;
    odd = odd * w + 1.0 / 21.0;
    even = even * w + 1.0 / 15.0;
    odd = odd * w + 1.0 / 17.0;
    even = even * w + 1.0 / 11.0;
    odd = odd * w + 1.0 / 13.0;
    even = even * w + 1.0 / 7.0;
    odd = odd * w + 1.0 / 9.0;
    even = even * w + 1.0 / 3.0;
    odd = odd * w + 1.0 / 5.0;
    double y = even - odd * z;
    return first + (t - t * z * y);
}

static inline double atan_one(double x) {
    return copysign(atan_quotient(fabs(x), 1.0), x);
}

// asin(s) for s in [0, 0.5] with square z, by its series.
static inline double asin_part(double s, double z) {
    double w = z * z;
    double even = 0.005740037670841924, odd = 0.005153309682319905;
    even = even * w + 0.0073125258735988454;
    odd = odd * w + 0.006447210311889649;
    even = even * w + 0.009761609529194078;
    odd = odd * w + 0.008390335809616815;
    even = even * w + 0.01396484375;
    odd = odd * w + 0.011551800896139705;
    even = even * w + 0.022372159090909092;
    odd = odd * w + 0.017352764423076924;
    even = even * w + 0.044642857142857144;
    odd = odd * w + 0.030381944444444444;
    even = even * w + 0.16666666666666666;
    odd = odd * w + 0.075;
    return s + s * z * (even + odd * z);
}

// Above 0.5, asin(a) is pi / 2 - 2 asin(sqrt((1 - a) / 2)).
static inline double asin_one(double x) {
    double a = fabs(x);
    double z = a > 0.5 ? (1.0 - a) * 0.5 : a * a;
    double y = asin_part(a > 0.5 ? sqrt(z) : a, z);
    return copysign(a > 0.5 ? 1.57079632679489661923 - 2.0 * y : y, x);
}

static inline double acos_one(double x) {
    double a = fabs(x);
    double z = a > 0.5 ? (1.0 - a) * 0.5 : a * a;
    double y = asin_part(a > 0.5 ? sqrt(z) : a, z);
    double large = x < 0.0 ? 3.14159265358979323846 - 2.0 * y : 2.0 * y;
    double small = x < 0.0 ? 1.57079632679489661923 + y : 1.57079632679489661923 - y;
    return a > 0.5 ? large : small;
}

#define RUN(name)                                                                                  \
    MSC_SIMD static void name##_clones(double out[], const double x[], int64_t n) {                \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) {                                      \
            out[i] = name##_one(x[i]);                                                             \
        }                                                                                          \
    }                                                                                              \
    void msc_real_##name##_run(double out[], const double x[], int64_t n) {                        \
        name##_clones(out, x, n);                                                                  \
    }

RUN(sin)
RUN(cos)
RUN(tan)
RUN(asin)
RUN(acos)
RUN(atan)
RUN(sinh)
RUN(cosh)
RUN(expm1)
RUN(softplus)
RUN(mish)
