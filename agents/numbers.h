// Logarithm, exponential, normal distribution and random draws that give the same bits on every
// machine: an agent's proposals must not depend on the C library.
#ifndef MSC_AGENTS_NUMBERS_H
#define MSC_AGENTS_NUMBERS_H

#include "base/rng.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

// Natural logarithm of x > 0, by the series of atanh on [sqrt(1/2), sqrt(2)]. Error below 1e-13.
static inline double msc_agent_log(double x) {
    int exponent = 0;
    double m = frexp(x, &exponent);
    if (m < 0.70710678118654752) {
        m *= 2.0;
        exponent--;
    }
    double z = (m - 1.0) / (m + 1.0), square = z * z, sum = 0.0;
    for (int k = 17; k >= 1; k -= 2) {
        sum = sum * square + 1.0 / k;
    }
    return 2.0 * z * sum + exponent * 0.69314718055994531;
}

// e^x: a power of two times the Taylor series of the remainder. Relative error below 1e-13; 0 or
// +inf outside the range of double; NaN for NaN.
static inline double msc_agent_exp(double x) {
    if (isnan(x)) {
        return x;
    }
    double n = floor(x / 0.69314718055994531 + 0.5);
    double r = x - n * 0.69314718055994531, sum = 1.0;
    for (int k = 14; k >= 1; k--) {
        sum = 1.0 + sum * r / k;
    }
    return n < -1080.0 ? 0.0 : n > 1080.0 ? INFINITY : ldexp(sum, (int)n);
}

// Replaces each x by e^x, with the same bits as msc_agent_exp. Faster, because the divisions of
// several numbers overlap.
static inline void msc_agent_exp_each(double x[], size_t n) {
    enum { BLOCK = 8 };
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        double whole[BLOCK], rest[BLOCK], sum[BLOCK];
        bool is_usual = true;
        for (size_t b = 0; b < BLOCK; b++) {
            is_usual = is_usual && x[i + b] > -700.0 && x[i + b] < 700.0;
        }
        if (!is_usual) {
            for (size_t b = 0; b < BLOCK; b++) {
                x[i + b] = msc_agent_exp(x[i + b]);
            }
            continue;
        }
        for (size_t b = 0; b < BLOCK; b++) {
            whole[b] = floor(x[i + b] / 0.69314718055994531 + 0.5);
            rest[b] = x[i + b] - whole[b] * 0.69314718055994531;
            sum[b] = 1.0;
        }
        for (int k = 14; k >= 1; k--) {
            for (size_t b = 0; b < BLOCK; b++) {
                sum[b] = 1.0 + sum[b] * rest[b] / k;
            }
        }
        for (size_t b = 0; b < BLOCK; b++) {
            uint64_t bits = (uint64_t)(1023 + (int)whole[b]) << 52; // of 2^whole
            double power;
            memcpy(&power, &bits, sizeof power);
            x[i + b] = sum[b] * power;
        }
    }
    for (; i < n; i++) {
        x[i] = msc_agent_exp(x[i]);
    }
}

// Density of the standard normal distribution.
static inline double msc_agent_density(double x) {
    return 0.39894228040143268 * msc_agent_exp(-0.5 * x * x);
}

// Mills' ratio for x >= 0: upper tail probability divided by density. Uses the series of the lower
// part (Marsaglia 2004) and, for large x, Laplace's continued fraction. Error below 1e-12.
static inline double msc_agent_mills_ratio(double x) {
    if (x > 3.0) {
        double ratio = x;
        for (int k = 60; k >= 1; k--) {
            ratio = x + k / ratio;
        }
        return 1.0 / ratio;
    }
    double sum = x, term = x;
    for (int k = 3; k <= 81; k += 2) {
        term *= x * x / k;
        sum += term;
    }
    return 0.5 / msc_agent_density(x) - sum;
}

// The standard normal distribution function: the probability of a number below x.
static inline double msc_agent_below(double x) {
    double beyond = msc_agent_density(x) * msc_agent_mills_ratio(fabs(x));
    return x < 0.0 ? beyond : 1.0 - beyond;
}

// The mean of max(z + n, 0) over standard normal n: the expected improvement, in standard
// deviations, of a point whose mean is better by z standard deviations (Jones et al. 1998).
static inline double msc_agent_gain(double z) {
    double x = fabs(z);
    return fmax(z, 0.0) + msc_agent_density(x) * (1.0 - x * msc_agent_mills_ratio(x));
}

// An approximately normal number of mean 0 and variance 1: the sum of the eight bytes of a random
// number. Each byte has the variance (256^2 - 1) / 12.
static inline double msc_agent_normal(struct msc_rng *rng) {
    uint64_t bytes = msc_rng_u64(rng);
    uint64_t pairs = (bytes & 0x00ff00ff00ff00ff) + ((bytes >> 8) & 0x00ff00ff00ff00ff);
    uint64_t sum = (pairs * 0x0001000100010001) >> 48;
    return ((double)sum - 1020.0) * 0.004784196154532612; // sqrt(12 / (8 * (256^2 - 1)))
}

#endif
