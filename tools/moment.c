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

void msc_moment_finish(struct msc_moment *m) {
    msc_free(m->h);
    msc_free(m->means);
    msc_free(m->cross);
    msc_free(m->float_means);
    *m = (struct msc_moment){0};
}
