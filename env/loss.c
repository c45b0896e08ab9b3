#include "env/loss.h"

#include "base/maths.h"
#include "kernels/backend.h"

#include <math.h>

double msc_loss_sum_squares(const float y[], int64_t n) {
    double lanes[MSC_MATHS_LANES] = {0};
    for (int64_t i = 0; i < n; i++) {
        lanes[i % MSC_MATHS_LANES] += (double)y[i] * (double)y[i];
    }
    return msc_maths_add_lanes(lanes);
}

double msc_loss_of_squares(double squares, int64_t n, double mean_square) {
    double error = squares / (double)n;
    // If the float output is zero everywhere, the error is not normalised.
    return mean_square > 0 ? error / mean_square : error;
}

// The functions of the table have the arguments of msc_loss_sample; samples are not empty.
static double loss_mse(const struct msc_loss *loss, const float y[], const float z[],
                       struct msc_loss_shape shape, double mean_square) {
    int64_t n = shape.outer * shape.axis * shape.inner;
    (void)loss;
    return msc_loss_of_squares(msc_squares_sum(y, z, n), n, mean_square);
}

static double loss_cosine(const struct msc_loss *loss, const float y[], const float z[],
                          struct msc_loss_shape shape, double mean_square) {
    int64_t n = shape.outer * shape.axis * shape.inner;
    (void)loss;
    (void)mean_square;
    double dots[MSC_MATHS_LANES] = {0};
    for (int64_t i = 0; i < n; i++) {
        dots[i % MSC_MATHS_LANES] += (double)y[i] * (double)z[i];
    }
    // One root of the product is used, not a product of two roots, because it is exact if both sums
    // are equal.
    double norm = sqrt(msc_loss_sum_squares(y, n) * msc_loss_sum_squares(z, n));
    if (norm == 0) {
        return msc_squares_sum(y, z, n) == 0 ? 0.0 : 1.0;
    }
    double distance = 1.0 - msc_maths_add_lanes(dots) / norm;
    return distance > 0 || isnan(distance) ? distance : 0.0;
}

double msc_log_sum_exp(const float x[], int64_t n, int64_t stride) {
    double top = -INFINITY;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        top = (double)x[i * stride] > top ? (double)x[i * stride] : top;
    }
    for (int64_t i = 0; i < n; i++) {
        sum += msc_maths_exp((double)x[i * stride] - top);
    }
    return top + msc_maths_log(sum);
}

static double divergence_of_logits(const float y[], const float z[], int64_t n, int64_t stride) {
    double norm_y = msc_log_sum_exp(y, n, stride);
    double norm_z = msc_log_sum_exp(z, n, stride);
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double log_p = (double)y[i * stride] - norm_y;
        double log_q = (double)z[i * stride] - norm_z;
        sum += msc_maths_exp(log_p) * (log_p - log_q);
    }
    return sum;
}

// Probabilities below the smallest normal float are raised to it, so that a probability rounded to
// 0 gives a large but finite loss.
static double divergence_of_probabilities(const float y[], const float z[], int64_t n,
                                          int64_t stride) {
    const double least = 1.1754943508222875e-38;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double p = (double)y[i * stride];
        double q = (double)z[i * stride];
        if (isnan(p) || isnan(q)) {
            return NAN;
        }
        if (p > 0) {
            sum += p * msc_maths_log(p / (q > least ? q : least));
        }
    }
    return sum;
}

static double loss_kl(const struct msc_loss *loss, const float y[], const float z[],
                      struct msc_loss_shape s, double mean_square) {
    double sum = 0;
    (void)mean_square;
    for (int64_t o = 0; o < s.outer; o++) {
        for (int64_t i = 0; i < s.inner; i++) {
            int64_t at = o * s.axis * s.inner + i;
            double d = loss->is_logits
                           ? divergence_of_logits(y + at, z + at, s.axis, s.inner)
                           : divergence_of_probabilities(y + at, z + at, s.axis, s.inner);
            // A divergence is not negative; rounding can make it slightly so.
            sum += d > 0 || isnan(d) ? d : 0;
        }
    }
    return sum / (double)(s.outer * s.inner);
}

double msc_loss_sample(const struct msc_loss *loss, const float y[], const float z[],
                       struct msc_loss_shape shape, double mean_square) {
    static double (*const losses[MSC_LOSS_COUNT])(const struct msc_loss *, const float[],
                                                  const float[], struct msc_loss_shape, double) = {
        [MSC_LOSS_MSE] = loss_mse,
        [MSC_LOSS_KL] = loss_kl,
        [MSC_LOSS_COSINE] = loss_cosine,
    };
    int64_t n = shape.outer * shape.axis * shape.inner;
    return n > 0 ? losses[loss->kind](loss, y, z, shape, mean_square) : 0;
}
