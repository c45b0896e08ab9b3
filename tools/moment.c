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

bool msc_moment_add(struct msc_moment *sum, const struct msc_moment *m) {
    if (!sum->h || !m->h || m->n_columns != sum->n_columns || m->n_groups != sum->n_groups) {
        return false;
    }
    double share = (double)m->n_rows / (double)(m->n_rows + sum->n_rows);
    int64_t n = m->n_groups * m->n_columns;
    mix_f32(sum->h, m->h, n * m->n_columns, share);
    mix_f32(sum->cross, m->cross, n * m->n_columns, share);
    mix_f64(sum->means, m->means, n, share);
    mix_f64(sum->float_means, m->float_means, n, share);
    sum->n_rows += m->n_rows;
    return true;
}

void msc_moment_centre(float out[], const float products[], const double a[], const double b[],
                       const struct msc_moment *m) {
    int64_t n = m->n_columns;
    for (int64_t i = 0; i < m->n_groups * n * n; i++) {
        int64_t row = i / n, column = row / n * n + i % n;
        out[i] = (float)(products[i] - a[row] * b[column]);
    }
}

void msc_moment_finish(struct msc_moment *m) {
    msc_free(m->h);
    msc_free(m->means);
    msc_free(m->cross);
    msc_free(m->float_means);
    *m = (struct msc_moment){0};
}
