// Distillation losses: for one sample, the distance between an output of the compressed model and
// the same output of the float model.
//
//   mse     mean over elements of (y - z)^2, divided by the mean of y^2 over all samples
//   kl      sum of p log(p / q) along an axis, p and q the softmax of y and z (or y and z
//           themselves when they are probabilities), mean over the other axes
//   cosine  1 - (y . z) / (|y| |z|)
//
// y is the output of the float model, z the output of the compressed model. All sums are in double,
// in a fixed order. The loss is 0 if y and z are equal.
#ifndef MSC_ENV_LOSS_H
#define MSC_ENV_LOSS_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

MSC_PUBLIC_BEGIN

// The losses and their names in a configuration. To add a loss, add its formula above, a line here,
// and its function to the table in env/loss.c.
#define MSC_LOSS_LIST(X)                                                                           \
    X(MSC_LOSS_MSE, "mse")                                                                         \
    X(MSC_LOSS_KL, "kl")                                                                           \
    X(MSC_LOSS_COSINE, "cosine")

#define MSC_LOSS_ENUMERATOR(kind, name) kind,
enum msc_loss_kind { MSC_LOSS_LIST(MSC_LOSS_ENUMERATOR) MSC_LOSS_COUNT };
#undef MSC_LOSS_ENUMERATOR

// "mse|kl|..." in the order of the kinds, for tables of parameters.
#define MSC_LOSS_NAME(kind, name) "|" name
#define MSC_LOSS_NAMES (&(MSC_LOSS_LIST(MSC_LOSS_NAME))[1])

// One output of one sample, in C order.
struct msc_loss_shape {
    int64_t outer, axis, inner; // numbers of elements before, along and after the axis of the loss
                                // `kl`
};

struct msc_loss {
    enum msc_loss_kind kind;
    bool is_logits; // for kl: y and z are logits, not probabilities
};

double msc_loss_sample(const struct msc_loss *loss, const float y[], const float z[],
                       struct msc_loss_shape shape, double mean_square);
// The loss `mse` of a sample of n > 0 elements whose sum of (y - z)^2 is known (msc_squares_sum).
double msc_loss_of_squares(double squares, int64_t n, double mean_square);
// The logarithm of the sum of the exponentials of n values, `stride` elements apart.
double msc_log_sum_exp(const float x[], int64_t n, int64_t stride);
// Sum of squares, for the mean that normalises mse.
double msc_loss_sum_squares(const float y[], int64_t n);

MSC_PUBLIC_END

#endif
