// Mean and spread of many floats: what normalisations begin with.
//
//     struct msc_moments m = {0};
//     msc_moments_add_row(&m, x, n);         // as many rows as belong together
//     double variance = msc_moments_variance(&m);
//
// Elements are taken in blocks that fit a first-level cache: the block's mean in float32, then the
// differences from it and their squares, which puts the mean right as well; blocks are joined in
// double. So there is no loss over long rows, nor where the mean is much larger than the spread,
// and equal numbers have a spread of 0. The bits are the same on every machine.
#ifndef MSC_KERNELS_CPU_MOMENTS_H
#define MSC_KERNELS_CPU_MOMENTS_H

#include <stdint.h>

struct msc_moments {
    double n, mean;
    double squares; // sum of (x - mean)^2
};

// What `m` and `other` are together.
void msc_moments_join(struct msc_moments *m, const struct msc_moments *other);
void msc_moments_add_row(struct msc_moments *m, const float x[], int64_t n);
// Of at least one element.
static inline double msc_moments_variance(const struct msc_moments *m) {
    return m->squares / m->n;
}

// The same of every column of a matrix.
struct msc_moments_columns {
    int64_t n; // elements of each
    double *mean, *squares;
};

// The next rows, of `width` elements each, `width` being the same in all calls. `m` begins zeroed,
// its arrays as well.
void msc_moments_add_rows(struct msc_moments_columns *m, const float x[], int64_t n_rows,
                          int64_t width);
// What columns first ... first + n - 1 are together, and those every `period` behind them, `times`
// altogether.
struct msc_moments msc_moments_of_columns(const struct msc_moments_columns *m, int64_t first,
                                          int64_t n, int64_t period, int64_t times);

#endif
