#include "tools/moment_sums.h"

#include "base/alloc.h"
#include "tools/linear_algebra.h"

#include <string.h>

// Number of rows whose products are summed in float32 before the sum is added in float64.
enum { CHUNK = 1024 };

static size_t n_of_triangle(int64_t n) {
    return (size_t)n * (size_t)(n + 1) / 2;
}

// Elements of the triangles of a group.
static size_t n_of_triangles(int64_t n_columns, int64_t block_columns) {
    int64_t n_full = n_columns / block_columns;
    return (size_t)n_full * n_of_triangle(block_columns) +
           n_of_triangle(n_columns - n_full * block_columns);
}

uint64_t msc_moment_sums_bytes(int64_t n_groups, int64_t n_columns, int64_t block_columns,
                               bool has_cross) {
    uint64_t n = (uint64_t)n_columns, of_group = n * CHUNK * sizeof(float);
    of_group += n_of_triangles(n_columns, block_columns) * sizeof(double);
    of_group += has_cross ? n * CHUNK * sizeof(float) + n * n * sizeof(double) : 0;
    return (uint64_t)n_groups * of_group +
           (uint64_t)(block_columns * block_columns) * sizeof(float);
}

enum msc_status msc_moment_sums_init(struct msc_moment_sums *s, int64_t n_groups, int64_t n_columns,
                                     int64_t block_columns, bool has_cross) {
    size_t groups = (size_t)n_groups, n = (size_t)n_columns;
    size_t n_triangles = groups * n_of_triangles(n_columns, block_columns);
    bool has_all = true;
    *s = (struct msc_moment_sums){
        .n_groups = n_groups, .n_columns = n_columns, .block_columns = block_columns};
    for (int i = 0; i < (has_cross ? MSC_MOMENT_SIDES : 1); i++) {
        s->chunk[i] = msc_alloc(groups * CHUNK * n * sizeof(float) + 1);
        s->means[i] = msc_alloc_zero(groups * n + 1, sizeof(double));
        has_all = has_all && s->chunk[i] && s->means[i];
    }
    s->products = msc_alloc((size_t)(block_columns * block_columns) * sizeof(float) + 1);
    s->sums = msc_alloc_zero(n_triangles + 1, sizeof(double));
    s->cross = has_cross ? msc_alloc_zero(groups * n * n + 1, sizeof(double)) : NULL;
    return MSC_ALLOCATED(has_all && s->products && s->sums && (s->cross || !has_cross));
}

enum msc_status msc_moment_sums_init_means(struct msc_moment_sums *s, int64_t n_groups,
                                           int64_t n_columns) {
    *s = (struct msc_moment_sums){
        .n_groups = n_groups, .n_columns = n_columns, .block_columns = n_columns};
    s->means[MSC_MOMENT_X] = msc_alloc_zero((size_t)(n_groups * n_columns) + 1, sizeof(double));
    return MSC_ALLOCATED(s->means[MSC_MOMENT_X]);
}

// ---- Adding up --------------------------------------------------------------------------------

static void add_triangle(double sums[], const float products[], int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = i; k < n; k++) {
            *sums++ += products[i * n + k];
        }
    }
}

// Adds the products of the chunk's rows, for one group.
static void add_products(struct msc_moment_sums *s, int64_t group) {
    int64_t n = s->n_columns, n_rows = s->n_in_chunk;
    const float *x = s->chunk[MSC_MOMENT_X] + group * CHUNK * n;
    double *sums = s->sums + (size_t)group * n_of_triangles(n, s->block_columns);
    for (int64_t first = 0; first < n; first += s->block_columns) {
        int64_t width = n - first < s->block_columns ? n - first : s->block_columns;
        memset(s->products, 0, (size_t)(width * width) * sizeof(s->products[0]));
        msc_add_gram_f32(s->products, x + first, n, n_rows, width);
        add_triangle(sums, s->products, width);
        sums += n_of_triangle(width);
    }
    if (s->cross) {
        double *cross = s->cross + group * n * n;
        memset(s->products, 0, (size_t)(n * n) * sizeof(s->products[0]));
        msc_add_cross_f32(s->products, s->chunk[MSC_MOMENT_F] + group * CHUNK * n, x, n_rows, n);
        for (int64_t i = 0; i < n * n; i++) {
            cross[i] += s->products[i];
        }
    }
}

static void empty_chunk(struct msc_moment_sums *s) {
    for (int64_t g = 0; s->sums && s->n_in_chunk > 0 && g < s->n_groups; g++) {
        add_products(s, g);
    }
    s->n_in_chunk = 0;
}

// Copies rows [first, first + count) of one side into the chunk, and sums them for the means.
static void fill_chunk(struct msc_moment_sums *s, int side, const float rows[], int64_t n_rows,
                       int64_t first, int64_t count) {
    int64_t n = s->n_columns;
    for (int64_t g = 0; g < s->n_groups; g++) {
        const float *from = rows + (g * n_rows + first) * n;
        double *means = s->means[side] + g * n;
        if (s->chunk[side]) {
            memcpy(s->chunk[side] + (g * CHUNK + s->n_in_chunk) * n, from,
                   (size_t)(count * n) * sizeof(from[0]));
        }
        for (int64_t r = 0; r < count; r++) {
            for (int64_t k = 0; k < n; k++) {
                means[k] += from[r * n + k];
            }
        }
    }
}

void msc_moment_sums_add(struct msc_moment_sums *s, const float x[], const float f[],
                         int64_t n_rows) {
    for (int64_t first = 0; first < n_rows;) {
        int64_t room = CHUNK - s->n_in_chunk, left = n_rows - first;
        int64_t count = left < room ? left : room;
        fill_chunk(s, MSC_MOMENT_X, x, n_rows, first, count);
        if (s->cross) {
            fill_chunk(s, MSC_MOMENT_F, f, n_rows, first, count);
        }
        s->n_in_chunk += count;
        first += count;
        if (s->n_in_chunk == CHUNK) {
            empty_chunk(s);
        }
    }
    s->n_rows += n_rows;
}

// ---- Result -----------------------------------------------------------------------------------

static double *take_means(struct msc_moment_sums *s, int side) {
    double *means = s->means[side];
    for (int64_t i = 0; means && i < s->n_groups * s->n_columns; i++) {
        means[i] /= (double)s->n_rows;
    }
    s->means[side] = NULL;
    return means;
}

static void fill_symmetric(float h[], const double sums[], int64_t n, double n_rows) {
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = i; k < n; k++) {
            h[i * n + k] = h[k * n + i] = (float)(*sums++ / n_rows);
        }
    }
}

static void fill_blocks(float h[], const struct msc_moment_sums *s) {
    const double *sums = s->sums;
    for (int64_t i = 0; i < s->n_groups * s->n_columns;) {
        int64_t left = s->n_columns - i % s->n_columns;
        int64_t width = left < s->block_columns ? left : s->block_columns;
        fill_symmetric(h, sums, width, (double)s->n_rows);
        h += width * width;
        sums += n_of_triangle(width);
        i += width;
    }
}

enum msc_status msc_moment_sums_end(struct msc_moment *m, struct msc_moment_sums *s) {
    int64_t n = s->n_columns;
    int64_t n_elements = s->n_groups * msc_moment_n_products(n, s->block_columns);
    empty_chunk(s);
    if (s->n_rows == 0) { // no row was finite
        *m = (struct msc_moment){0};
        return MSC_OK;
    }
    *m = (struct msc_moment){.n_groups = s->n_groups,
                             .n_columns = n,
                             .n_rows = s->n_rows,
                             .block_columns = s->block_columns};
    m->h = s->sums ? msc_alloc((size_t)n_elements * sizeof(m->h[0]) + 1) : NULL;
    m->cross = s->cross ? msc_alloc((size_t)n_elements * sizeof(m->cross[0]) + 1) : NULL;
    if ((s->sums && !m->h) || (s->cross && !m->cross)) {
        msc_moment_finish(m);
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    if (s->sums) {
        fill_blocks(m->h, s);
    }
    for (int64_t i = 0; s->cross && i < n_elements; i++) {
        m->cross[i] = (float)(s->cross[i] / (double)s->n_rows);
    }
    m->means = take_means(s, MSC_MOMENT_X);
    m->float_means = take_means(s, MSC_MOMENT_F);
    return MSC_OK;
}

void msc_moment_sums_finish(struct msc_moment_sums *s) {
    for (int i = 0; i < MSC_MOMENT_SIDES; i++) {
        msc_free(s->chunk[i]);
        msc_free(s->means[i]);
    }
    msc_free(s->products);
    msc_free(s->sums);
    msc_free(s->cross);
    *s = (struct msc_moment_sums){0};
}
