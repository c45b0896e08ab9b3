// Operations on measured second moments.
#include "base/alloc.h"
#include "tools/linear_algebra.h"
#include "tools/second_moment.h"

#include <string.h>

static void mix_f32(float to[], const float from[], int64_t n, double share) {
    for (int64_t i = 0; to && i < n; i++) {
        to[i] = (float)(to[i] * (1 - share) + from[i] * share);
    }
}

static void mix_f64(double to[], const double from[], int64_t n, double share) {
    for (int64_t i = 0; to && i < n; i++) {
        to[i] = to[i] * (1 - share) + from[i] * share;
    }
}

int64_t msc_moment_n_blocks(int64_t n_columns, int64_t block_columns) {
    return block_columns > 0 ? (n_columns + block_columns - 1) / block_columns : 1;
}

int64_t msc_moment_n_products(int64_t n_columns, int64_t block_columns) {
    int64_t n_full = block_columns > 0 ? n_columns / block_columns : 0;
    int64_t rest = n_columns - n_full * block_columns;
    return n_full * block_columns * block_columns + rest * rest;
}

// Appends the held-back rows of m to those of sum.
static enum msc_status add_held(struct msc_moment *sum, const struct msc_moment *m) {
    int64_t n = sum->n_columns, n_held = sum->n_held + m->n_held;
    if (m->n_held == 0) {
        return MSC_OK;
    }
    float *held = msc_alloc((size_t)(sum->n_groups * n_held * n) * sizeof(held[0]) + 1);
    MSC_TRY(MSC_ALLOCATED(held));
    for (int64_t g = 0; g < sum->n_groups; g++) {
        size_t n_first = (size_t)(sum->n_held * n), n_second = (size_t)(m->n_held * n);
        float *to = held + g * n_held * n;
        if (n_first > 0) {
            memcpy(to, sum->held + (size_t)g * n_first, n_first * sizeof(held[0]));
        }
        memcpy(to + n_first, m->held + (size_t)g * n_second, n_second * sizeof(held[0]));
    }
    msc_free(sum->held);
    sum->held = held;
    sum->n_held = n_held;
    return MSC_OK;
}

enum msc_status msc_moment_add(bool *is_added, struct msc_moment *sum, const struct msc_moment *m) {
    *is_added = false;
    if (!sum->means || !m->means || !sum->h != !m->h || m->n_columns != sum->n_columns ||
        m->n_groups != sum->n_groups || m->block_columns != sum->block_columns) {
        return MSC_OK;
    }
    MSC_TRY(add_held(sum, m));
    double share = (double)m->n_rows / (double)(m->n_rows + sum->n_rows);
    int64_t n = m->n_groups * m->n_columns;
    int64_t n_products = m->n_groups * msc_moment_n_products(m->n_columns, m->block_columns);
    mix_f32(sum->h, m->h, n_products, share);
    mix_f32(sum->cross, m->cross, n_products, share);
    mix_f64(sum->means, m->means, n, share);
    mix_f64(sum->float_means, m->float_means, n, share);
    sum->n_rows += m->n_rows;
    *is_added = true;
    return MSC_OK;
}

// ---- Rows held back ---------------------------------------------------------------------------

// What is left of a column's square below this share is only rounding noise.
#define LEAST_LEFT 1e-5

static double without(double mean, double held_sum, const struct msc_moment *m) {
    return (mean * (double)m->n_rows - held_sum) / (double)(m->n_rows - m->n_held);
}

// Fills one block of h. gram [width, width], its upper triangle: the products of the held-back
// rows.
static void fill_without(float to[], const float h[], const float gram[], int64_t width,
                         const struct msc_moment *m) {
    for (int64_t k = 0; k < width; k++) {
        for (int64_t l = k; l < width; l++) {
            double left = without((double)h[k * width + l], (double)gram[k * width + l], m);
            to[k * width + l] = to[l * width + k] = (float)left;
        }
    }
    for (int64_t k = 0; k < width; k++) {
        int64_t at = k * (width + 1);
        bool is_gone = !(to[at] > LEAST_LEFT * (double)h[at]);
        for (int64_t l = 0; is_gone && l < width; l++) {
            to[k * width + l] = to[l * width + k] = 0;
        }
    }
}

static void fill_blocks_without(struct msc_moment *out, const struct msc_moment *m, float gram[]) {
    int64_t n = m->n_columns, block = m->block_columns > 0 ? m->block_columns : n;
    const float *h = m->h;
    float *to = out->h;
    for (int64_t first = 0; first < m->n_groups * n;) {
        int64_t left = n - first % n, width = left < block ? left : block;
        memset(gram, 0, (size_t)(width * width) * sizeof(gram[0]));
        msc_add_gram_f32(gram, m->held + first / n * m->n_held * n + first % n, n, m->n_held,
                         width);
        fill_without(to, h, gram, width, m);
        h += width * width;
        to += width * width;
        first += width;
    }
}

static void fill_means_without(struct msc_moment *out, const struct msc_moment *m) {
    int64_t n = m->n_columns;
    for (int64_t i = 0; i < m->n_groups * n; i++) {
        const float *column = m->held + i / n * m->n_held * n + i % n;
        double sum = 0;
        for (int64_t r = 0; r < m->n_held; r++) {
            sum += (double)column[r * n];
        }
        out->means[i] = without(m->means[i], sum, m);
    }
}

enum msc_status msc_moment_without_held(struct msc_moment *out, const struct msc_moment *m) {
    int64_t n = m->n_columns, block = m->block_columns > 0 ? m->block_columns : n;
    *out = (struct msc_moment){0};
    if (m->n_held == 0 || m->n_held >= m->n_rows) {
        return MSC_OK;
    }
    *out = (struct msc_moment){.n_groups = m->n_groups,
                               .n_columns = n,
                               .n_rows = m->n_rows - m->n_held,
                               .block_columns = m->block_columns};
    size_t n_products = (size_t)(m->n_groups * msc_moment_n_products(n, m->block_columns));
    float *gram = msc_alloc((size_t)(block * block) * sizeof(gram[0]) + 1);
    out->means = msc_alloc((size_t)(m->n_groups * n) * sizeof(out->means[0]) + 1);
    out->h = m->h ? msc_alloc(n_products * sizeof(out->h[0]) + 1) : NULL;
    enum msc_status status = MSC_ALLOCATED(gram && out->means && (out->h || !m->h));
    if (status == MSC_OK) {
        fill_means_without(out, m);
        if (m->h) {
            fill_blocks_without(out, m, gram);
        }
    } else {
        msc_moment_finish(out);
    }
    msc_free(gram);
    return status;
}

void msc_moment_centre(float out[], const float products[], const double a[], const double b[],
                       const struct msc_moment *m) {
    int64_t n = m->n_columns, block = m->block_columns > 0 ? m->block_columns : n;
    for (int64_t i = 0; i < m->n_groups * n; i++) {
        int64_t first = i % n / block * block;
        int64_t width = n - first < block ? n - first : block;
        const double *columns = b + i / n * n + first;
        for (int64_t k = 0; k < width; k++) {
            *out++ = (float)(*products++ - a[i] * columns[k]);
        }
    }
}

// The share by which the products of a block are shrunk.
static double shrinkage(const float h[], int64_t width, int64_t n_rows) {
    double noise = 0, all = 0;
    for (int64_t k = 0; k < width; k++) {
        for (int64_t l = 0; l < width; l++) {
            double product = k == l ? 0 : (double)h[k * width + l];
            double of_diagonal = k == l ? 0 : (double)h[k * width + k] * h[l * width + l];
            noise += of_diagonal + product * product;
            all += product * product;
        }
    }
    double share = all > 0 ? noise / (double)n_rows / all : 0;
    return share < 1 ? share : 1;
}

void msc_moment_shrink(float h[], const struct msc_moment *m) {
    int64_t n = m->n_columns, block = m->block_columns > 0 ? m->block_columns : n;
    for (int64_t first = 0; first < m->n_groups * n;) {
        int64_t left = n - first % n, width = left < block ? left : block;
        float kept = (float)(1 - shrinkage(h, width, m->n_rows));
        for (int64_t i = 0; i < width * width; i++) {
            h[i] *= i % (width + 1) == 0 ? 1 : kept;
        }
        h += width * width;
        first += width;
    }
}

void msc_moment_finish(struct msc_moment *m) {
    msc_free(m->h);
    msc_free(m->held);
    msc_free(m->means);
    msc_free(m->cross);
    msc_free(m->float_means);
    *m = (struct msc_moment){0};
}
