// Normalisation over groups of channels, single channels, and neighbouring channels.
#include "graph/reference/reference_internal.h"

#include <math.h>

// (x - mean) / sqrt(variance + epsilon) over all elements of a group, then scale and shift per
// channel, or per group if gamma has one element per group. Sums are in double.
static void normalize_group(const struct msc_reference_call *call, int64_t first, int64_t n,
                            int64_t channel, int64_t n_spatial, int64_t group, double epsilon) {
    const struct msc_view *x = &call->operands[0];
    const struct msc_view *gamma = &call->operands[1], *beta = &call->operands[2];
    bool is_by_channel = gamma->dims[0] == x->dims[1];
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += msc_reference__get_double_at(x, first + i);
    }
    double mean = n > 0 ? sum / (double)n : 0;
    for (int64_t i = 0; i < n; i++) {
        double d = msc_reference__get_double_at(x, first + i) - mean;
        squares += d * d;
    }
    double factor = 1 / sqrt(squares / (double)n + epsilon);
    for (int64_t i = 0; i < n; i++) {
        int64_t c = is_by_channel ? channel + i / n_spatial : group;
        double d = msc_reference__get_double_at(x, first + i) - mean;
        msc_reference__set_double_at(&call->outputs[0], first + i,
                                     d * factor * msc_reference__get_double_at(gamma, c) +
                                         msc_reference__get_double_at(beta, c));
    }
}

enum msc_status msc_reference__group_norm(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0];
    int64_t n_groups = x->dims[1];
    float epsilon;
    MSC_TRY(msc_reference__get_float(&epsilon, call, "epsilon"));
    if (call->joint->op == MSC_OP_GROUP_NORM) {
        MSC_TRY(msc_reference__get_i64(&n_groups, call, "num_groups"));
    }
    int64_t n_spatial = msc_dims_product(x->n_dims - 2, x->dims + 2);
    int64_t channels = x->dims[1] / n_groups, n = channels * n_spatial;
    for (int64_t i = 0; i < x->dims[0] * n_groups; i++) {
        normalize_group(call, i * n, n, i % n_groups * channels, n_spatial, i % n_groups,
                        (double)epsilon);
    }
    return MSC_OK;
}

// (x - mean) / sqrt(variance + epsilon) over the last axes, then scale and shift per element. Sums
// are in double.
enum msc_status msc_reference__layer_norm(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0], *gamma = &call->operands[1];
    const struct msc_view *beta =
        call->n_operands > 2 && call->operands[2].data != NULL ? &call->operands[2] : NULL;
    float epsilon;
    MSC_TRY(msc_reference__get_float(&epsilon, call, "epsilon"));
    int64_t n = msc_view_n_elements(gamma), n_rows = n > 0 ? msc_view_n_elements(x) / n : 0;
    for (int64_t first = 0; first < n_rows * n; first += n) {
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < n; i++) {
            sum += msc_reference__get_double_at(x, first + i);
        }
        double mean = sum / (double)n;
        for (int64_t i = 0; i < n; i++) {
            double d = msc_reference__get_double_at(x, first + i) - mean;
            squares += d * d;
        }
        double factor = 1 / sqrt(squares / (double)n + (double)epsilon);
        for (int64_t i = 0; i < n; i++) {
            double d = (msc_reference__get_double_at(x, first + i) - mean) * factor;
            double shift = beta == NULL ? 0 : msc_reference__get_double_at(beta, i);
            double y = d * msc_reference__get_double_at(gamma, i) + shift;
            msc_reference__set_double_at(&call->outputs[0], first + i, y);
        }
    }
    return MSC_OK;
}

// x / (bias + alpha / size * sum of squares over `size` neighbouring channels) ^ beta.
enum msc_status msc_reference__lrn(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0];
    float alpha, beta, bias;
    int64_t size;
    MSC_TRY(msc_reference__get_float(&alpha, call, "alpha"));
    MSC_TRY(msc_reference__get_float(&beta, call, "beta"));
    MSC_TRY(msc_reference__get_float(&bias, call, "bias"));
    MSC_TRY(msc_reference__get_i64(&size, call, "size"));
    int64_t channels = x->dims[1], n = msc_view_n_elements(x);
    int64_t n_spatial = msc_dims_product(x->n_dims - 2, x->dims + 2);
    for (int64_t i = 0; i < n; i++) {
        int64_t c = i / n_spatial % channels, first = c - (size - 1) / 2;
        double sum = 0;
        for (int64_t k = first < 0 ? 0 : first; k < first + size && k < channels; k++) {
            double value = msc_reference__get_double_at(x, i + (k - c) * n_spatial);
            sum += value * value;
        }
        double divisor = pow((double)bias + (double)alpha / (double)size * sum, (double)beta);
        msc_reference__set_double_at(&call->outputs[0], i,
                                     msc_reference__get_double_at(x, i) / divisor);
    }
    return MSC_OK;
}
