#include "base/maths.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

// log 2 and log 2 / 32, each split into two parts. The high part has so few bits that its product
// with an integer is exact.
#define LN2_HIGH 0x1.62e42feep-1
#define LN2_LOW 0x1.a39ef35793c76p-33
#define STEP_HIGH 0x1.62e42fefap-6
#define STEP_LOW 0x1.cf79abc9e3b3ap-45
#define STEPS 32                      // per power of two
#define PER_STEP 0x1.71547652b82fep+5 // 32 / log 2
// Adding and then subtracting this rounds to the nearest integer.
#define TO_WHOLE 0x1.8p52
#define SQRT_HALF 0x1.6a09e667f3bcdp-1

// 2^(i / STEPS), correctly rounded; computed with mpmath.
static const double roots[STEPS] = {
    0x1.0p+0,
    0x1.059b0d3158574p+0,
    0x1.0b5586cf9890fp+0,
    0x1.11301d0125b51p+0,
    0x1.172b83c7d517bp+0,
    0x1.1d4873168b9aap+0,
    0x1.2387a6e756238p+0,
    0x1.29e9df51fdee1p+0,
    0x1.306fe0a31b715p+0,
    0x1.371a7373aa9cbp+0,
    0x1.3dea64c123422p+0,
    0x1.44e086061892dp+0,
    0x1.4bfdad5362a27p+0,
    0x1.5342b569d4f82p+0,
    0x1.5ab07dd485429p+0,
    0x1.6247eb03a5585p+0,
    0x1.6a09e667f3bcdp+0,
    0x1.71f75e8ec5f74p+0,
    0x1.7a11473eb0187p+0,
    0x1.82589994cce13p+0,
    0x1.8ace5422aa0dbp+0,
    0x1.93737b0cdc5e5p+0,
    0x1.9c49182a3f090p+0,
    0x1.a5503b23e255dp+0,
    0x1.ae89f995ad3adp+0,
    0x1.b7f76f2fb5e47p+0,
    0x1.c199bdd85529cp+0,
    0x1.cb720dcef9069p+0,
    0x1.d5818dcfba487p+0,
    0x1.dfc97337b9b5fp+0,
    0x1.ea4afa2a490dap+0,
    0x1.f50765b6e4540p+0,
};

// 2^n, if it is a normal number.
static double power_of_two(int n) {
    uint64_t bits = (uint64_t)(n + 1023) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// e^x = 2^(n / STEPS) e^r with |r| at most log(2) / 64; e^r by its Taylor series up to r^6.
double msc_maths_exp(double x) {
    if (!(x > -746.0 && x < 710.0)) {
        return isnan(x) ? x : x < 0.0 ? 0.0 : INFINITY;
    }
    double nearest = (x * PER_STEP + TO_WHOLE) - TO_WHOLE;
    double r = (x - nearest * STEP_HIGH) - nearest * STEP_LOW, square = r * r;
    double series =
        r + square * (1.0 / 2.0 + r * (1.0 / 6.0) +
                      square * (1.0 / 24.0 + r * (1.0 / 120.0) + square * (1.0 / 720.0)));
    int n = (int)nearest, step = n & (STEPS - 1);
    // The power is applied as two factors, so that only the second one rounds if the result is
    // subnormal.
    int power = (n - step) / STEPS, half = power / 2;
    return (roots[step] + roots[step] * series) * power_of_two(half) * power_of_two(power - half);
}

// With x = 2^k (1 + f) and s = f / (2 + f): log(1 + f) = 2 atanh(s) = 2 (s + s^3/3 + s^5/5 ...).
// Here 2 s = f - s f and s f = f^2/2 - s f^2/2, so the largest term, f, is exact.
double msc_maths_log(double x) {
    if (!(x > 0.0 && x < INFINITY)) {
        return x == 0.0 ? -INFINITY : x > 0.0 ? x : NAN;
    }
    int k = 0;
    double m = frexp(x, &k), sum = 0.0;
    if (m < SQRT_HALF) {
        m *= 2.0;
        k--;
    }
    double f = m - 1.0, half = 0.5 * f * f, s = f / (2.0 + f), square = s * s;
    for (int i = 21; i >= 3; i -= 2) {
        sum = (sum + 2.0 / i) * square;
    }
    return k * LN2_HIGH - ((half - (s * (half + sum) + k * LN2_LOW)) - f);
}

double msc_maths_add_lanes(const double s[MSC_MATHS_LANES]) {
    return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}
