#include "tools/rounding_internal.h"

#include "base/alloc.h"
#include "tools/linear_algebra.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Number of columns that GPTQ rounds before the later columns are updated.
enum { BLOCK = 64 };

// Integers minus their zero point, from low to high.
struct grid {
    double scale, low, high;
    int32_t zero_point;
};

static struct grid grid_of(const struct msc_rounding_rows *r, int64_t row, int64_t column) {
    int32_t low, high;
    int64_t at = row * msc_rounding__n_groups(r) + column / msc_rounding__group_columns(r);
    msc_scheme_limits(&r->scheme, &low, &high);
    int32_t zero = r->zero_points[at];
    return (struct grid){
        .scale = r->scales[at], .low = low - zero, .high = high - zero, .zero_point = zero};
}

static double nearest_on(const struct grid *g, double x) {
    double q = rint(x / g->scale);
    q = q < g->low ? g->low : q;
    return q > g->high ? g->high : q;
}

void msc_rounding_nearest(struct msc_rounding_rows *r) {
    for (int64_t i = 0; i < r->n_rows; i++) {
        for (int64_t k = 0; k < r->n_columns; k++) {
            struct grid g = grid_of(r, i, k);
            int64_t at = i * r->n_columns + k;
            r->integers[at] = (int32_t)nearest_on(&g, r->weights[at]) + g.zero_point;
        }
    }
}

// ---- Errors -----------------------------------------------------------------------------------

// out = q - w for the current integers.
static void subtract_weights(float out[], const struct msc_rounding_rows *r) {
    msc_rounding__dequantize(out, r);
    for (int64_t i = 0; i < r->n_rows * r->n_columns; i++) {
        out[i] -= r->weights[i];
    }
}

enum msc_status msc_rounding_errors(double errors[], const struct msc_rounding_rows *r) {
    size_t n = (size_t)(r->n_rows * r->n_columns);
    float *off = msc_alloc(2 * n * sizeof(off[0]) + 1);
    MSC_TRY(MSC_ALLOCATED(off));
    subtract_weights(off, r);
    msc_rounding__product(off + n, off, r);
    for (int64_t i = 0; i < r->n_rows; i++) {
        errors[i] =
            msc_dot(off + i * r->n_columns, off + (int64_t)n + i * r->n_columns, r->n_columns);
    }
    msc_free(off);
    return MSC_OK;
}

// ---- GPTQ -------------------------------------------------------------------------------------

// With H = L' L, the error e' H e is |L e|^2. The columns are processed from the last to the first:
// element p of L e is L[p, p] e[p] plus the sum of L[k, p] e[k] over the columns k > p, which are
// rounded already. So e[p] is chosen to cancel that sum. Without rounding the compensation is the
// one of the paper, which reads the Cholesky factor of the inverse of H.
struct msc_gptq_order {
    int64_t n;
    int64_t *columns; // [n] of the block; the last is processed first
    double *factor;   // [n, n] lower
};

struct ranked {
    double weight;
    int64_t column;
};

static int compare_ranks(const void *a, const void *b) {
    const struct ranked *x = a, *y = b;
    if (x->weight != y->weight) {
        return x->weight > y->weight ? -1 : 1;
    }
    return x->column < y->column ? -1 : 1;
}

static double diagonal(const float h[], int64_t n, int64_t k) {
    double d = h[k * n + k];
    return d > 0 ? d : 1;
}

static void sort_columns(struct msc_gptq_order *o, struct ranked ranks[], const float h[]) {
    for (int64_t k = 0; k < o->n; k++) {
        ranks[k] = (struct ranked){diagonal(h, o->n, k), k};
    }
    qsort(ranks, (size_t)o->n, sizeof(ranks[0]), compare_ranks);
    for (int64_t k = 0; k < o->n; k++) {
        o->columns[o->n - 1 - k] = ranks[k].column;
    }
}

static void damp(struct msc_gptq_order *o, const float h[], double damping) {
    double mean = 0;
    for (int64_t k = 0; k < o->n; k++) {
        mean += diagonal(h, o->n, k) / (double)o->n;
    }
    for (int64_t i = 0; i < o->n; i++) {
        for (int64_t k = 0; k < i; k++) {
            o->factor[i * o->n + k] = h[o->columns[i] * o->n + o->columns[k]];
        }
        o->factor[i * o->n + i] = diagonal(h, o->n, o->columns[i]) + damping * mean;
    }
}

enum msc_status msc_gptq_order_create(struct msc_gptq_order **out, const float h[], int64_t n,
                                      double damping) {
    struct msc_gptq_order *o = msc_alloc_zero(1, sizeof(*o));
    struct ranked *ranks = msc_alloc((size_t)n * sizeof(ranks[0]) + 1);
    enum msc_status status = MSC_OK;
    if (o) {
        o->n = n;
        o->columns = msc_alloc((size_t)n * sizeof(o->columns[0]) + 1);
        o->factor = msc_alloc((size_t)(n * n) * sizeof(o->factor[0]) + 1);
    }
    MSC_TRY_OUT(MSC_ALLOCATED(o && ranks && o->columns && o->factor));
    sort_columns(o, ranks, h);
    damp(o, h, damping);
    status = msc_cholesky_f64(o->factor, n);
out:
    msc_free(ranks);
    if (status != MSC_OK) {
        msc_gptq_order_destroy(o);
        return status;
    }
    *out = o;
    return MSC_OK;
}

void msc_gptq_order_destroy(struct msc_gptq_order *o) {
    if (o) {
        msc_free(o->columns);
        msc_free(o->factor);
        msc_free(o);
    }
}

// Rounds column p of the order in all rows, and adds its errors to the sums of the columns
// `begin` … p - 1. sums [n_rows, n] of L[k, p] e[k]; errors [n_rows, BLOCK] gets -e[p].
static void round_column(struct msc_rounding_rows *r, const struct msc_gptq_order *o, int64_t first,
                         int64_t p, int64_t begin, double sums[], double errors[]) {
    const double *factor = o->factor + p * o->n;
    int64_t column = first + o->columns[p];
    for (int64_t i = 0; i < r->n_rows; i++) {
        struct grid g = grid_of(r, i, column);
        double w = r->weights[i * r->n_columns + column], *of_row = sums + i * o->n;
        double q = nearest_on(&g, w - of_row[p] / factor[p]);
        double error = q * g.scale - w;
        r->integers[i * r->n_columns + column] = (int32_t)q + g.zero_point;
        errors[i * BLOCK + p - begin] = -error;
        msc_add_scaled(of_row + begin, factor + begin, error, p - begin);
    }
}

// Rounds the columns of one block of H, which begins at column `first`.
static void round_block(struct msc_rounding_rows *r, const struct msc_gptq_order *o, int64_t first,
                        double sums[], double errors[]) {
    int64_t n = o->n;
    memset(sums, 0, (size_t)(r->n_rows * n) * sizeof(sums[0]));
    for (int64_t end = n; end > 0; end -= end < BLOCK ? end : BLOCK) {
        int64_t begin = end > BLOCK ? end - BLOCK : 0;
        for (int64_t p = end - 1; p >= begin; p--) {
            round_column(r, o, first, p, begin, sums, errors);
        }
        if (begin > 0) {
            msc_subtract_product_f64(sums, n, errors, BLOCK, o->factor + begin * n, n, r->n_rows,
                                     end - begin, begin);
        }
    }
}

enum msc_status msc_rounding_gptq(struct msc_rounding_rows *r,
                                  struct msc_gptq_order *const orders[]) {
    size_t n_rows = (size_t)r->n_rows, block = (size_t)msc_rounding__block(r);
    double *sums = msc_alloc(n_rows * block * sizeof(sums[0]) + 1);
    double *errors = msc_alloc(n_rows * BLOCK * sizeof(errors[0]) + 1);
    enum msc_status status = MSC_ALLOCATED(sums && errors);
    for (int64_t first = 0; status == MSC_OK && first < r->n_columns;) {
        round_block(r, *orders, first, sums, errors);
        first += (*orders++)->n;
    }
    msc_free(sums);
    msc_free(errors);
    return status;
}

// ---- Coordinate descent -----------------------------------------------------------------------

// Column k of H, in its block: the block's columns from `first` on.
struct column {
    const float *h;
    int64_t first, width, k;
};

static struct column column_of(const struct msc_rounding_rows *r, int64_t k) {
    int64_t block = msc_rounding__block(r), first = k / block * block;
    int64_t width = r->n_columns - first < block ? r->n_columns - first : block;
    return (struct column){r->h + first * block + (k - first) * width, first, width, k};
}

// Updates one integer. The error is a parabola in it, with its minimum at q - gradient / h[k, k].
// `gradient` [n_columns] is (q - w)' H of the row. True if the integer changes.
static bool descend_one(struct msc_rounding_rows *r, int64_t row, const struct column *c,
                        double gradient[]) {
    struct grid g = grid_of(r, row, c->k);
    int32_t *integer = &r->integers[row * r->n_columns + c->k];
    double now = *integer - g.zero_point;
    double next = nearest_on(&g, now * g.scale - gradient[c->k] / c->h[c->k - c->first]);
    if (next == now) {
        return false;
    }
    msc_add_scaled_f32(gradient + c->first, c->h, (next - now) * g.scale, c->width);
    *integer = (int32_t)next + g.zero_point;
    return true;
}

static enum msc_status first_gradients(double gradients[], const struct msc_rounding_rows *r) {
    size_t n = (size_t)(r->n_rows * r->n_columns);
    float *off = msc_alloc(2 * n * sizeof(off[0]) + 1);
    MSC_TRY(MSC_ALLOCATED(off));
    subtract_weights(off, r);
    msc_rounding__product(off + n, off, r);
    for (size_t i = 0; i < n; i++) {
        gradients[i] = off[n + i];
    }
    msc_free(off);
    return MSC_OK;
}

static void descend_from(double gradients[], struct msc_rounding_rows *r, int n_passes) {
    bool is_moving = true;
    for (int pass = 0; pass < n_passes && is_moving; pass++) {
        is_moving = false;
        for (int64_t k = 0; k < r->n_columns; k++) {
            struct column c = column_of(r, k);
            for (int64_t i = 0; i < r->n_rows && c.h[k - c.first] > 0; i++) {
                is_moving = descend_one(r, i, &c, gradients + i * r->n_columns) || is_moving;
            }
        }
    }
}

enum msc_status msc_rounding_descend(struct msc_rounding_rows *r, int n_passes) {
    double *gradients = msc_alloc((size_t)(r->n_rows * r->n_columns) * sizeof(gradients[0]) + 1);
    enum msc_status status =
        gradients ? first_gradients(gradients, r) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    if (status == MSC_OK) {
        descend_from(gradients, r, n_passes);
    }
    msc_free(gradients);
    return status;
}

// ---- Descent with gains -----------------------------------------------------------------------

// Fits the gain of a row, and multiplies its scales by it. `image` is w' H of the row. The gradient
// follows the gain.
static void gain_row(struct msc_rounding_rows *r, int64_t row, double gradient[],
                     const float image[]) {
    int64_t n = r->n_columns, n_groups = msc_rounding__n_groups(r);
    const float *w = r->weights + row * n;
    double covariance = 0, variance = 0;
    for (int64_t k = 0; k < n; k++) {
        struct grid g = grid_of(r, row, k);
        double moved = gradient[k] + (double)image[k]; // q' H
        covariance += w[k] * moved;
        variance += (r->integers[row * n + k] - g.zero_point) * g.scale * moved;
    }
    double gain = msc_rounding__gain(covariance, variance);
    for (int64_t g = 0; g < n_groups; g++) {
        r->scales[row * n_groups + g] *= (float)gain;
    }
    for (int64_t k = 0; k < n; k++) {
        gradient[k] = gain * (gradient[k] + (double)image[k]) - (double)image[k];
    }
}

enum msc_status msc_rounding_descend_affine(float shifts[], struct msc_rounding_rows *r,
                                            const double means[], int n_passes, int n_refits) {
    size_t n = (size_t)(r->n_rows * r->n_columns);
    double *gradients = msc_alloc(n * sizeof(gradients[0]) + 1);
    float *images = msc_alloc(n * sizeof(images[0]) + 1);
    enum msc_status status = MSC_ALLOCATED(gradients && images);
    MSC_TRY_OUT(status);
    MSC_TRY_OUT(first_gradients(gradients, r));
    msc_rounding__product(images, r->weights, r);
    for (int fit = 0; fit <= n_refits; fit++) {
        descend_from(gradients, r, n_passes);
        for (int64_t i = 0; i < r->n_rows; i++) {
            gain_row(r, i, gradients + i * r->n_columns, images + i * r->n_columns);
        }
    }
    status = shifts ? msc_rounding_fit_shifts(shifts, r, means) : MSC_OK;
out:
    msc_free(gradients);
    msc_free(images);
    return status;
}
