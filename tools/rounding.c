#include "tools/rounding_internal.h"

#include "base/alloc.h"
#include "tools/linear_algebra.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Number of columns that GPTQ rounds before the later columns are updated.
enum { BLOCK = 64 };

int64_t msc_rounding__group_columns(const struct msc_rounding_rows *r) {
    return r->group_size > 0 ? r->group_size : r->n_columns;
}

int64_t msc_rounding__n_groups(const struct msc_rounding_rows *r) {
    int64_t size = msc_rounding__group_columns(r);
    return (r->n_columns + size - 1) / size;
}

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

void msc_rounding__dequantize(float out[], const struct msc_rounding_rows *r) {
    for (int64_t i = 0; i < r->n_rows; i++) {
        for (int64_t k = 0; k < r->n_columns; k++) {
            struct grid g = grid_of(r, i, k);
            int64_t at = i * r->n_columns + k;
            out[at] = (float)((r->integers[at] - g.zero_point) * g.scale);
        }
    }
}

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
    msc_product_f32(off + n, off, r->h, r->n_rows, r->n_columns, r->n_columns);
    for (int64_t i = 0; i < r->n_rows; i++) {
        errors[i] =
            msc_dot(off + i * r->n_columns, off + (int64_t)n + i * r->n_columns, r->n_columns);
    }
    msc_free(off);
    return MSC_OK;
}

// ---- GPTQ -------------------------------------------------------------------------------------

struct msc_gptq_order {
    int64_t n;
    int64_t *columns; // [n] in processing order
    double *factor;   // [n, n] upper
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
        o->columns[k] = ranks[k].column;
    }
}

static void damp(struct msc_gptq_order *o, const float h[], double damping) {
    double mean = 0;
    for (int64_t k = 0; k < o->n; k++) {
        mean += diagonal(h, o->n, k) / (double)o->n;
    }
    for (int64_t i = 0; i < o->n; i++) {
        for (int64_t k = i; k < o->n; k++) {
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
    status = msc_cholesky_of_inverse(o->factor, n);
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

// Rounds, for all rows, the k-th column in the order `o`, and updates the rest of the column's
// block. `left` [n_rows, n] has the current weights in this order. Sets the column's errors
// [n_rows, BLOCK].
static void round_column(struct msc_rounding_rows *r, const struct msc_gptq_order *o, int64_t k,
                         int64_t end, double left[], double errors[]) {
    const double *factor = o->factor + k * o->n;
    int64_t column = o->columns[k];
    for (int64_t i = 0; i < r->n_rows; i++) {
        struct grid g = grid_of(r, i, column);
        double *row = left + i * o->n;
        double q = nearest_on(&g, row[k]);
        double error = (row[k] - q * g.scale) / factor[k];
        r->integers[i * o->n + column] = (int32_t)q + g.zero_point;
        errors[i * BLOCK + k % BLOCK] = error;
        for (int64_t j = k + 1; j < end; j++) {
            row[j] -= error * factor[j];
        }
    }
}

enum msc_status msc_rounding_gptq(struct msc_rounding_rows *r, const struct msc_gptq_order *o) {
    int64_t n = o->n;
    double *left = msc_alloc((size_t)(r->n_rows * n) * sizeof(left[0]) + 1);
    double *errors = msc_alloc((size_t)(r->n_rows * BLOCK) * sizeof(errors[0]) + 1);
    enum msc_status status = MSC_ALLOCATED(left && errors);
    for (int64_t i = 0; status == MSC_OK && i < r->n_rows; i++) {
        for (int64_t k = 0; k < n; k++) {
            left[i * n + k] = r->weights[i * n + o->columns[k]];
        }
    }
    for (int64_t begin = 0; status == MSC_OK && begin < n; begin += BLOCK) {
        int64_t end = begin + BLOCK < n ? begin + BLOCK : n;
        for (int64_t k = begin; k < end; k++) {
            round_column(r, o, k, end, left, errors);
        }
        if (end < n) {
            msc_subtract_product_f64(left + end, n, errors, BLOCK, o->factor + begin * n + end, n,
                                     r->n_rows, end - begin, n - end);
        }
    }
    msc_free(left);
    msc_free(errors);
    return status;
}

// ---- Coordinate descent -----------------------------------------------------------------------

// Updates one integer. The row's error is a parabola in the integer's value q, with its minimum at
// q - gradient / h[k, k]. `gradient` [n_columns] is (q - w)' H of the row. True if the integer
// changes.
static bool descend_one(struct msc_rounding_rows *r, int64_t row, int64_t k, double gradient[]) {
    const float *h = r->h + k * r->n_columns;
    struct grid g = grid_of(r, row, k);
    int32_t *integer = &r->integers[row * r->n_columns + k];
    double now = *integer - g.zero_point;
    double next = nearest_on(&g, now * g.scale - gradient[k] / h[k]);
    if (next == now) {
        return false;
    }
    double moved = (next - now) * g.scale;
    for (int64_t j = 0; j < r->n_columns; j++) {
        gradient[j] += moved * h[j];
    }
    *integer = (int32_t)next + g.zero_point;
    return true;
}

static enum msc_status first_gradients(double gradients[], const struct msc_rounding_rows *r) {
    size_t n = (size_t)(r->n_rows * r->n_columns);
    float *off = msc_alloc(2 * n * sizeof(off[0]) + 1);
    MSC_TRY(MSC_ALLOCATED(off));
    subtract_weights(off, r);
    msc_product_f32(off + n, off, r->h, r->n_rows, r->n_columns, r->n_columns);
    for (size_t i = 0; i < n; i++) {
        gradients[i] = off[n + i];
    }
    msc_free(off);
    return MSC_OK;
}

enum msc_status msc_rounding_descend(struct msc_rounding_rows *r, int n_passes) {
    int64_t n = r->n_columns;
    double *gradients = msc_alloc((size_t)(r->n_rows * n) * sizeof(gradients[0]) + 1);
    enum msc_status status =
        gradients ? first_gradients(gradients, r) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    bool is_moving = true;
    for (int pass = 0; status == MSC_OK && pass < n_passes && is_moving; pass++) {
        is_moving = false;
        for (int64_t k = 0; k < n; k++) {
            for (int64_t i = 0; i < r->n_rows && r->h[k * n + k] > 0; i++) {
                is_moving = descend_one(r, i, k, gradients + i * n) || is_moving;
            }
        }
    }
    msc_free(gradients);
    return status;
}
