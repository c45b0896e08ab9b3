#include "tools/sparsity.h"

#include "base/alloc.h"
#include "tools/linear_algebra.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Maximum numbers of conjugate gradient steps in the final repair and between stages; the number of
// stages; and the relative squared gradient at which repair stops.
enum { MOST_STEPS = 40, STEPS_BETWEEN = 10, STAGES = 8 };
#define RESIDUAL 1e-8

// ---- Counts -----------------------------------------------------------------------------------

static int64_t round_share(double share, int64_t n) {
    return (int64_t)(share * (double)n + 0.5);
}

int64_t msc_sparsity_count(const struct msc_sparsity *s, int64_t n_rows, int64_t n_columns,
                           int64_t run) {
    if (s->m == 0) {
        return n_rows * n_columns - round_share(s->share, n_rows * n_columns);
    }
    int64_t rest = run % s->m;
    int64_t of_run = run / s->m * s->n + (rest < s->n ? rest : s->n);
    return n_rows * (n_columns / run) * of_run;
}

double msc_sparsity_bytes(const struct msc_sparsity *s, int64_t n_kept, int64_t n,
                          size_t element_bytes) {
    int64_t bits = 0;
    if (n_kept == n) {
        return (double)element_bytes * (double)n;
    }
    while (s->m > 0 && (1 << bits) < s->m) {
        bits++;
    }
    int64_t n_bits = s->m > 0 ? n_kept * bits : n;
    return (double)element_bytes * (double)n_kept + (double)((n_bits + 7) / 8);
}

// ---- Repair -----------------------------------------------------------------------------------

void msc_sparse_rows_mask(struct msc_sparse_rows *r) {
    for (int64_t i = 0; i < r->n_rows * r->n_columns; i++) {
        r->w[i] = r->is_kept[i] ? r->w[i] : 0;
    }
}

// State for all rows [n_rows, n]: the gradient at the remaining weights, and the next search
// direction. Products of directions are computed in float32, which takes half the time.
struct descent {
    double *residual, *way;
    double *square; // [n_rows] residual' D^-1 residual, with C's diagonal D
    float *c, *single, *product;
};

static double weighed_square(const struct msc_sparse_rows *r, const double residual[]) {
    double sum = 0;
    for (int64_t k = 0; k < r->n_columns; k++) {
        sum += residual[k] * residual[k] / r->c[k * r->n_columns + k];
    }
    return sum;
}

// Starts with the removed weights set to 0.
static double descent_begin(struct descent *d, const struct msc_sparse_rows *r) {
    int64_t n = r->n_columns;
    double total = 0;
    for (int64_t i = 0; i < r->n_rows * n; i++) {
        d->way[i] = r->is_kept[i] ? 0 : r->w[i];
    }
    msc_product_f64(d->residual, d->way, r->c, r->n_rows, n, n);
    for (int64_t i = 0; i < r->n_rows * n; i++) {
        d->residual[i] = r->is_kept[i] ? d->residual[i] : 0;
        d->way[i] = d->residual[i] / r->c[i % n * n + i % n];
    }
    for (int64_t i = 0; i < r->n_rows; i++) {
        d->square[i] = weighed_square(r, d->residual + i * n);
        total += d->square[i];
    }
    return total;
}

// Makes one step of conjugate gradients for a row. False if there is no descent direction.
static bool descend_row(struct descent *d, struct msc_sparse_rows *r, int64_t row) {
    int64_t n = r->n_columns, first = row * n;
    double *residual = d->residual + first, *way = d->way + first;
    const float *product = d->product + first;
    double slope = 0;
    for (int64_t k = 0; k < n; k++) {
        slope += way[k] * (double)product[k];
    }
    if (!(slope > 0)) {
        return false;
    }
    double step = d->square[row] / slope;
    for (int64_t k = 0; k < n; k++) {
        r->w[first + k] += step * way[k];
        residual[k] -= r->is_kept[first + k] ? step * (double)product[k] : 0;
    }
    double square = weighed_square(r, residual), again = square / d->square[row];
    for (int64_t k = 0; k < n; k++) {
        way[k] = residual[k] / r->c[k * n + k] + again * way[k];
    }
    d->square[row] = square;
    return true;
}

static void copy_as_f32(float out[], const double x[], int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = (float)x[i];
    }
}

static void descend(struct descent *d, struct msc_sparse_rows *r, double first, int n_steps) {
    double left = first;
    for (int step = 0; step < n_steps && left > RESIDUAL * first; step++) {
        copy_as_f32(d->single, d->way, r->n_rows * r->n_columns);
        msc_product_f32(d->product, d->single, d->c, r->n_rows, r->n_columns, r->n_columns);
        left = 0;
        for (int64_t row = 0; row < r->n_rows; row++) {
            left += d->square[row] > 0 && descend_row(d, r, row) ? d->square[row] : 0;
        }
    }
}

static enum msc_status repair(struct msc_sparse_rows *r, int n_steps) {
    size_t n = (size_t)(r->n_rows * r->n_columns), n_square = (size_t)(r->n_columns * r->n_columns);
    double *room = msc_alloc((2 * n + (size_t)r->n_rows) * sizeof(room[0]) + 1);
    float *single = msc_alloc((n_square + 2 * n) * sizeof(single[0]) + 1);
    enum msc_status status = MSC_ALLOCATED(room && single);
    if (status == MSC_OK) {
        struct descent d = {room,   room + n,          room + 2 * n,
                            single, single + n_square, single + n_square + n};
        copy_as_f32(d.c, r->c, (int64_t)n_square);
        double first = descent_begin(&d, r);
        msc_sparse_rows_mask(r);
        descend(&d, r, first, n_steps);
    }
    msc_free(single);
    msc_free(room);
    return status;
}

enum msc_status msc_sparse_rows_repair(struct msc_sparse_rows *r) {
    return repair(r, MOST_STEPS);
}

// ---- Choosing ---------------------------------------------------------------------------------

struct entry {
    double score;
    int64_t at; // index in is_kept
};

static int compare_entries(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    return x->score != y->score ? (x->score < y->score ? -1 : 1)
                                : (x->at > y->at) - (x->at < y->at);
}

// State while weights are chosen. The worth of a weight w in column k is w^2 worth[k].
struct choosing {
    struct msc_sparse_rows *rows;
    double *worth; // [n_columns]
    struct entry *entries;
};

// Removes the n_going weights of least worth in columns [first, end) of n_rows rows.
static void let_go(struct choosing *c, int64_t first_row, int64_t n_rows, int64_t first,
                   int64_t end, int64_t n_going) {
    int64_t n = 0;
    for (int64_t i = first_row; i < first_row + n_rows; i++) {
        for (int64_t k = first; k < end; k++) {
            int64_t at = i * c->rows->n_columns + k;
            double w = c->rows->w[at];
            c->entries[n++] = (struct entry){w * w * c->worth[k], at};
        }
    }
    qsort(c->entries, (size_t)n, sizeof(c->entries[0]), compare_entries);
    for (int64_t i = 0; i < n_going; i++) {
        c->rows->is_kept[c->entries[i].at] = false;
    }
}

static void choose(struct choosing *c, const struct msc_sparsity *s) {
    int64_t n = c->rows->n_columns, n_rows = c->rows->n_rows;
    for (int64_t i = 0; i < n_rows * n; i++) {
        c->rows->is_kept[i] = true;
    }
    if (s->m == 0) {
        let_go(c, 0, n_rows, 0, n, round_share(s->share, n_rows * n));
        return;
    }
    for (int64_t first = 0, end; first < n; first = end) {
        int64_t left = c->rows->run - first % c->rows->run;
        end = first + (left < s->m ? left : s->m);
        for (int64_t i = 0; i < n_rows && end - first > s->n; i++) {
            let_go(c, i, 1, first, end, end - first - s->n);
        }
    }
}

// The sparsity after a stage. Later stages remove fewer weights than earlier ones.
static struct msc_sparsity sparsity_after(const struct msc_sparsity *s, int stage) {
    double left = 1 - (double)stage / STAGES, part = 1 - left * left * left;
    return (struct msc_sparsity){
        .share = s->share * part, .n = s->m - (int)((s->m - s->n) * part + 0.5), .m = s->m};
}

// Chooses weights in stages. Each stage uses the weights as repaired after the previous stage, in
// copies; the weights of `rows` are unchanged.
static enum msc_status choose_by_stages(struct choosing *c, const struct msc_sparsity *s) {
    struct msc_sparse_rows *rows = c->rows, now = *rows;
    size_t n_bytes = (size_t)(rows->n_rows * rows->n_columns) * sizeof(now.w[0]);
    enum msc_status status = MSC_OK;
    now.w = msc_alloc(n_bytes + 1);
    MSC_TRY(MSC_ALLOCATED(now.w));
    memcpy(now.w, rows->w, n_bytes);
    c->rows = &now;
    int n_before = s->m;
    for (int stage = 1; status == MSC_OK && stage <= STAGES; stage++) {
        struct msc_sparsity here = sparsity_after(s, stage);
        if (s->m > 0 && here.n == n_before) {
            continue; // no further weights are removed
        }
        choose(c, &here);
        n_before = here.n;
        if (s->m > 0 ? here.n > s->n : stage < STAGES) {
            memcpy(now.w, rows->w, n_bytes);
            status = repair(&now, STEPS_BETWEEN);
        }
    }
    c->rows = rows;
    msc_free(now.w);
    return status;
}

// Sets the worth of columns, such as C_kk for energy or 1 / (C^-1)_kk for hessian.
static enum msc_status fill_worth(struct choosing *c, enum msc_criterion criterion) {
    int64_t n = c->rows->n_columns;
    bool is_inverse = criterion == MSC_CRITERION_HESSIAN;
    double *inverse = is_inverse ? msc_alloc((size_t)(n * n) * sizeof(inverse[0]) + 1) : NULL;
    enum msc_status status =
        is_inverse && !inverse ? MSC_FAIL(MSC_E_NOMEM, "out of memory") : MSC_OK;
    if (inverse) {
        memcpy(inverse, c->rows->c, (size_t)(n * n) * sizeof(inverse[0]));
        status = msc_invert_f64(inverse, n);
    }
    for (int64_t k = 0; status == MSC_OK && k < n; k++) {
        c->worth[k] = is_inverse                          ? 1 / inverse[k * n + k]
                      : criterion == MSC_CRITERION_ENERGY ? c->rows->c[k * n + k]
                                                          : 1;
    }
    msc_free(inverse);
    return status;
}

enum msc_status msc_sparse_rows_choose(struct msc_sparse_rows *r, const struct msc_sparsity *s,
                                       enum msc_criterion criterion) {
    struct choosing c = {.rows = r};
    c.entries = msc_alloc((size_t)(r->n_rows * r->n_columns) * sizeof(c.entries[0]) + 1);
    c.worth = msc_alloc((size_t)r->n_columns * sizeof(c.worth[0]) + 1);
    enum msc_status status = MSC_ALLOCATED(c.entries && c.worth);
    if (status == MSC_OK) {
        status = fill_worth(&c, criterion);
    }
    if (status == MSC_OK && criterion == MSC_CRITERION_HESSIAN) {
        status = choose_by_stages(&c, s);
    } else if (status == MSC_OK) {
        choose(&c, s);
    }
    msc_free(c.worth);
    msc_free(c.entries);
    return status;
}
