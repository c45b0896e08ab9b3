// Mean and variance of many floats: the first part of normalisations.
//
//     struct msc_moments m = {0};
//     msc_moments_add_row(&m, x, n);         // repeat for all rows
//     double variance = msc_moments_variance(&m);
//
// Elements are taken in blocks that fit a first-level cache. First the block's mean is computed in
// float32, then the sums of the differences from the mean and of their squares. The sum of
// differences also corrects the mean. The moments of blocks are combined in double. So long rows,
// or a mean much larger than the standard deviation, lose no precision, and equal numbers have
// variance 0. The bits are the same on every machine.
#ifndef MSC_KERNELS_CPU_MOMENTS_H
#define MSC_KERNELS_CPU_MOMENTS_H

#include <stdint.h>

struct msc_moments {
    double n, mean;
    double squares; // sum of (x - mean)^2
};

// Combines `m` with the moments `other` of further elements.
void msc_moments_join(struct msc_moments *m, const struct msc_moments *other);
void msc_moments_add_row(struct msc_moments *m, const float x[], int64_t n);
// Needs at least one element.
static inline double msc_moments_variance(const struct msc_moments *m) {
    return m->squares / m->n;
}

// The moments of every column of a matrix.
struct msc_moments_columns {
    int64_t n; // elements of each column
    double *mean, *squares;
};

// Adds the next rows, of `width` elements each; `width` is the same in all calls. `m` and its
// arrays must be zeroed before the first call.
void msc_moments_add_rows(struct msc_moments_columns *m, const float x[], int64_t n_rows,
                          int64_t width);
// The combined moments of `times` groups of columns. Group i consists of the n columns from index
// (first + i * period) on.
struct msc_moments msc_moments_of_columns(const struct msc_moments_columns *m, int64_t first,
                                          int64_t n, int64_t period, int64_t times);

#endif
