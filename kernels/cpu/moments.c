#include "kernels/cpu/moments.h"

#include "base/platform.h"

#include <string.h>

// LANES: floats in the widest vector. BLOCK: elements of a block of a row. COLUMNS, ROWS: size of a
// block of columns.
enum { LANES = 16, BLOCK = 4096, COLUMNS = 64, ROWS = 128 };

void msc_moments_join(struct msc_moments *m, const struct msc_moments *other) {
    double n = m->n + other->n, d = other->mean - m->mean;
    if (other->n == 0) {
        return;
    }
    if (m->n == 0) {
        *m = *other;
        return;
    }
    m->mean += d * (other->n / n);
    m->squares += other->squares + d * d * (m->n * (other->n / n));
    m->n = n;
}

// ---- Rows -------------------------------------------------------------------------------------

// Adds lanes in the same order on every machine.
static inline float add_lanes(const float lanes[LANES]) {
    float sums[LANES / 2];
    for (int k = 0; k < LANES / 2; k++) {
        sums[k] = lanes[k] + lanes[k + LANES / 2];
    }
    float low = (sums[0] + sums[4]) + (sums[2] + sums[6]);
    float high = (sums[1] + sums[5]) + (sums[3] + sums[7]);
    return low + high;
}

static inline float moments_sum_row(const float x[], int64_t n) {
    float a[LANES] = {0}, b[LANES] = {0}, c[LANES] = {0}, d[LANES] = {0}, rest = 0.0f;
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        for (int k = 0; k < LANES; k++) {
            a[k] += x[i + k];
            b[k] += x[i + LANES + k];
            c[k] += x[i + 2 * LANES + k];
            d[k] += x[i + 3 * LANES + k];
        }
    }
    for (; i + LANES <= n; i += LANES) {
        for (int k = 0; k < LANES; k++) {
            a[k] += x[i + k];
        }
    }
    for (; i < n; i++) {
        rest += x[i];
    }
    for (int k = 0; k < LANES; k++) {
        a[k] = (a[k] + b[k]) + (c[k] + d[k]);
    }
    return add_lanes(a) + rest;
}

// The moments of a block of at least one element.
MSC_SIMD static struct msc_moments measure_block(const float x[], int64_t n) {
    float a[LANES] = {0}, b[LANES] = {0}, a_squares[LANES] = {0}, b_squares[LANES] = {0};
    float d = 0.0f, squares = 0.0f, mean = moments_sum_row(x, n) / (float)n;
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        for (int k = 0; k < LANES; k++) {
            float first = x[i + k] - mean, second = x[i + LANES + k] - mean;
            a[k] += first;
            b[k] += second;
            a_squares[k] += first * first;
            b_squares[k] += second * second;
        }
    }
    for (; i + LANES <= n; i += LANES) {
        for (int k = 0; k < LANES; k++) {
            float first = x[i + k] - mean;
            a[k] += first;
            a_squares[k] += first * first;
        }
    }
    for (; i < n; i++) {
        float rest = x[i] - mean;
        d += rest;
        squares += rest * rest;
    }
    for (int k = 0; k < LANES; k++) {
        a[k] += b[k];
        a_squares[k] += b_squares[k];
    }
    double sum = (double)(add_lanes(a) + d), shift = sum / (double)n;
    double spread = (double)(add_lanes(a_squares) + squares) - shift * sum;
    return (struct msc_moments){(double)n, (double)mean + shift, spread < 0 ? 0 : spread};
}

void msc_moments_add_row(struct msc_moments *m, const float x[], int64_t n) {
    for (int64_t i = 0; i < n; i += BLOCK) {
        struct msc_moments block = measure_block(x + i, n - i < BLOCK ? n - i : BLOCK);
        msc_moments_join(m, &block);
    }
}

// ---- Columns ----------------------------------------------------------------------------------

struct sums {
    float mean[COLUMNS];                // rounded to float32
    float d[COLUMNS], squares[COLUMNS]; // sums of x - mean and of (x - mean)^2
};

// Sums all columns of a block. The loops keep sums in registers, not in memory.
MSC_SIMD static void sum_columns(struct sums *s, const float x[], int64_t n_rows, int64_t step) {
    float lanes[COLUMNS] = {0}, mean[COLUMNS], first[COLUMNS] = {0}, second[COLUMNS] = {0};
    for (int64_t r = 0; r < n_rows; r++) {
        for (int k = 0; k < COLUMNS; k++) {
            lanes[k] += x[r * step + k];
        }
    }
    for (int k = 0; k < COLUMNS; k++) {
        mean[k] = lanes[k] / (float)n_rows;
    }
    for (int64_t r = 0; r < n_rows; r++) {
        for (int k = 0; k < COLUMNS; k++) {
            float difference = x[r * step + k] - mean[k];
            first[k] += difference;
            second[k] += difference * difference;
        }
    }
    memcpy(s->mean, mean, sizeof(mean));
    memcpy(s->d, first, sizeof(first));
    memcpy(s->squares, second, sizeof(second));
}

// Like sum_columns, for fewer columns.
MSC_SIMD static void sum_few_columns(struct sums *s, const float x[], int64_t n_rows, int64_t step,
                                     int64_t width) {
    memset(s, 0, sizeof(*s));
    for (int64_t r = 0; r < n_rows; r++) {
        for (int64_t k = 0; k < width; k++) {
            s->mean[k] += x[r * step + k];
        }
    }
    for (int64_t k = 0; k < width; k++) {
        s->mean[k] /= (float)n_rows;
    }
    for (int64_t r = 0; r < n_rows; r++) {
        for (int64_t k = 0; k < width; k++) {
            float difference = x[r * step + k] - s->mean[k];
            s->d[k] += difference;
            s->squares[k] += difference * difference;
        }
    }
}

// Combines the sums of a block of columns with the moments of the rows so far.
MSC_SIMD static void join_columns(double *restrict mean, double *restrict squares, int64_t n,
                                  const struct sums *restrict s, int64_t n_rows, int64_t width) {
    double inverse = 1.0 / (double)n_rows;
    double part = (double)n_rows / (double)(n + n_rows), spread = (double)n * part;
    for (int64_t k = 0; k < width; k++) {
        double shift = (double)s->d[k] * inverse;
        double rest = (double)s->squares[k] - shift * (double)s->d[k];
        double d = (double)s->mean[k] + shift - mean[k];
        mean[k] += d * part;
        squares[k] += (rest < 0 ? 0 : rest) + d * d * spread;
    }
}

void msc_moments_add_rows(struct msc_moments_columns *m, const float x[], int64_t n_rows,
                          int64_t width) {
    for (int64_t r = 0; r < n_rows; r += ROWS) {
        int64_t rows = n_rows - r < ROWS ? n_rows - r : ROWS;
        for (int64_t c = 0; c < width; c += COLUMNS) {
            int64_t n = width - c < COLUMNS ? width - c : COLUMNS;
            struct sums s;
            if (n == COLUMNS) {
                sum_columns(&s, x + r * width + c, rows, width);
            } else {
                sum_few_columns(&s, x + r * width + c, rows, width, n);
            }
            join_columns(m->mean + c, m->squares + c, m->n, &s, rows, n);
        }
        m->n += rows;
    }
}

struct msc_moments msc_moments_of_columns(const struct msc_moments_columns *m, int64_t first,
                                          int64_t n, int64_t period, int64_t times) {
    double mean = 0, squares = 0, n_columns = (double)(n * times);
    for (int64_t t = 0; t < times; t++) {
        for (int64_t c = first + t * period; c < first + t * period + n; c++) {
            mean += m->mean[c];
        }
    }
    mean /= n_columns;
    for (int64_t t = 0; t < times; t++) {
        for (int64_t c = first + t * period; c < first + t * period + n; c++) {
            double d = m->mean[c] - mean;
            squares += m->squares[c] + (double)m->n * (d * d);
        }
    }
    return (struct msc_moments){n_columns * (double)m->n, mean, squares};
}
