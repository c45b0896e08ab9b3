// Groups and values of the rows that are rounded, and their products with H.
#include "tools/linear_algebra.h"
#include "tools/rounding_internal.h"

int64_t msc_rounding__group_columns(const struct msc_rounding_rows *r) {
    return r->group_size > 0 ? r->group_size : r->n_columns;
}

int64_t msc_rounding__n_groups(const struct msc_rounding_rows *r) {
    int64_t size = msc_rounding__group_columns(r);
    return (r->n_columns + size - 1) / size;
}

int64_t msc_rounding__block(const struct msc_rounding_rows *r) {
    return r->block_columns > 0 && r->block_columns < r->n_columns ? r->block_columns
                                                                   : r->n_columns;
}

void msc_rounding__product(float out[], const float a[], const struct msc_rounding_rows *r) {
    int64_t n = r->n_columns, block = msc_rounding__block(r);
    const float *h = r->h;
    for (int64_t first = 0; first < n; first += block) {
        int64_t width = n - first < block ? n - first : block;
        msc_product_rows_f32(out + first, a + first, n, h, r->n_rows, width, width);
        h += width * width;
    }
}

void msc_rounding__dequantize(float out[], const struct msc_rounding_rows *r) {
    for (int64_t i = 0; i < r->n_rows; i++) {
        for (int64_t k = 0; k < r->n_columns; k++) {
            int64_t at = i * r->n_columns + k;
            int64_t group = i * msc_rounding__n_groups(r) + k / msc_rounding__group_columns(r);
            out[at] = (float)((r->integers[at] - r->zero_points[group]) * (double)r->scales[group]);
        }
    }
}
