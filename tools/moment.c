// Operations on measured second moments.
#include "base/alloc.h"
#include "tools/second_moment.h"

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

bool msc_moment_add(struct msc_moment *sum, const struct msc_moment *m) {
    if (!sum->means || !m->means || !sum->h != !m->h || m->n_columns != sum->n_columns ||
        m->n_groups != sum->n_groups || m->block_columns != sum->block_columns) {
        return false;
    }
    double share = (double)m->n_rows / (double)(m->n_rows + sum->n_rows);
    int64_t n = m->n_groups * m->n_columns;
    int64_t n_products = m->n_groups * msc_moment_n_products(m->n_columns, m->block_columns);
    mix_f32(sum->h, m->h, n_products, share);
    mix_f32(sum->cross, m->cross, n_products, share);
    mix_f64(sum->means, m->means, n, share);
    mix_f64(sum->float_means, m->float_means, n, share);
    sum->n_rows += m->n_rows;
    return true;
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
    msc_free(m->means);
    msc_free(m->cross);
    msc_free(m->float_means);
    *m = (struct msc_moment){0};
}
