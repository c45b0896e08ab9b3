#include "tools/elimination.h"

#include "base/alloc.h"
#include "tools/linear_algebra.h"

#include <stdbool.h>
#include <string.h>

// Number of rows of the factor that are subtracted from the inverse in one batch. A batch is larger
// only if more rows are removed at once.
enum { PENDING = 256 };

struct msc_elimination {
    int64_t n_rows, n; // n: remaining columns, plus those removed since the last catch_up
    int32_t n_units;
    bool *has_gone;      // [n_units]
    int64_t *first;      // [n_units + 1] first column of each unit; removed units become empty
    int64_t *block_at;   // [n_units] offset of each unit's block in `blocks`
    double *blocks;      // [k, k] per unit: the diagonal block of the current inverse
    double *inverse;     // [n, n], upper triangle; the product pending^T pending is not yet
                         // subtracted
    double *weights;     // [n, n_rows], current values
    double *pending;     // [capacity, n], of which n_pending rows are used
    double *gone, *lost; // workspaces [capacity, capacity] and [capacity, n_rows]
    int64_t *left;       // [n] workspace
    int64_t n_pending, capacity;
};

static int64_t columns_of(const struct msc_elimination *e, int32_t unit) {
    return e->first[unit + 1] - e->first[unit];
}

// ---- Making -----------------------------------------------------------------------------------

void msc_elimination_destroy(struct msc_elimination *e) {
    if (e) {
        msc_free(e->has_gone);
        msc_free(e->first);
        msc_free(e->block_at);
        msc_free(e->blocks);
        msc_free(e->inverse);
        msc_free(e->weights);
        msc_free(e->pending);
        msc_free(e->gone);
        msc_free(e->lost);
        msc_free(e->left);
        msc_free(e);
    }
}

static enum msc_status take_rooms(struct msc_elimination *e, const struct msc_eliminated *of) {
    int64_t n_blocks = 0, widest = 1;
    for (int32_t u = 0; u < of->n_units; u++) {
        int64_t n = of->first[u + 1] - of->first[u];
        n_blocks += n * n;
        widest = n > widest ? n : widest;
    }
    e->capacity = PENDING > widest ? PENDING : widest;
    e->capacity = e->capacity < e->n ? e->capacity : e->n;
    size_t n = (size_t)e->n, n_units = (size_t)e->n_units + 1, n_rows = (size_t)e->n_rows;
    size_t capacity = (size_t)e->capacity, size = sizeof(double);
    e->has_gone = msc_alloc_zero(n_units, sizeof(e->has_gone[0]));
    e->first = msc_alloc_zero(n_units, sizeof(e->first[0]));
    e->block_at = msc_alloc_zero(n_units, sizeof(e->block_at[0]));
    e->blocks = msc_alloc((size_t)n_blocks * size + 1);
    e->inverse = msc_alloc(n * n * size + 1);
    e->weights = msc_alloc(n * n_rows * size + 1);
    e->pending = msc_alloc(capacity * n * size + 1);
    e->gone = msc_alloc(capacity * capacity * size + 1);
    e->lost = msc_alloc(capacity * n_rows * size + 1);
    e->left = msc_alloc_zero(n + 1, sizeof(e->left[0]));
    bool has_all = e->has_gone && e->first && e->block_at && e->blocks && e->inverse &&
                   e->weights && e->pending && e->gone && e->lost && e->left;
    return MSC_ALLOCATED(has_all);
}

static void fill_rooms(struct msc_elimination *e, const struct msc_eliminated *of) {
    int64_t at = 0;
    memcpy(e->first, of->first, ((size_t)e->n_units + 1) * sizeof(e->first[0]));
    for (int64_t i = 0; i < e->n; i++) {
        const double *row = of->c + of->columns[i] * of->n_columns;
        for (int64_t k = 0; k < e->n; k++) {
            e->inverse[i * e->n + k] = row[of->columns[k]];
        }
        for (int64_t k = 0; k < e->n_rows; k++) {
            e->weights[i * e->n_rows + k] = of->w[k * of->n_columns + of->columns[i]];
        }
    }
    for (int32_t u = 0; u < e->n_units; u++) {
        int64_t n = columns_of(e, u), begin = e->first[u];
        e->block_at[u] = at;
        for (int64_t i = 0; i < n; i++) {
            memcpy(e->blocks + at + i * n, e->inverse + (begin + i) * e->n + begin,
                   (size_t)n * sizeof(e->blocks[0]));
        }
        at += n * n;
    }
}

enum msc_status msc_elimination_create(struct msc_elimination **out,
                                       const struct msc_eliminated *of) {
    MSC_TRY(msc_invert_f64(of->c, of->n_columns));
    struct msc_elimination *e = msc_alloc_zero(1, sizeof(*e));
    MSC_TRY(MSC_ALLOCATED(e));
    e->n_rows = of->n_rows;
    e->n = of->first[of->n_units];
    e->n_units = of->n_units;
    enum msc_status status = take_rooms(e, of);
    if (status != MSC_OK) {
        msc_elimination_destroy(e);
        return status;
    }
    fill_rooms(e, of);
    *out = e;
    return MSC_OK;
}

// ---- Scores -----------------------------------------------------------------------------------

enum msc_status msc_elimination_score(double *out, const struct msc_elimination *e, int32_t unit) {
    int64_t k = columns_of(e, unit), n = k * e->n_rows;
    double *factor = msc_alloc((size_t)(k * k + n) * sizeof(factor[0]) + 1);
    double *w = factor + k * k;
    *out = 0;
    MSC_TRY(MSC_ALLOCATED(factor));
    memcpy(factor, e->blocks + e->block_at[unit], (size_t)(k * k) * sizeof(factor[0]));
    memcpy(w, e->weights + e->first[unit] * e->n_rows, (size_t)n * sizeof(w[0]));
    enum msc_status status = msc_cholesky_f64(factor, k);
    if (status == MSC_OK) {
        msc_solve_lower_f64(factor, k, w, e->n_rows);
        for (int64_t i = 0; i < n; i++) {
            *out += w[i] * w[i];
        }
    }
    msc_free(factor);
    return status;
}

// ---- Removing ---------------------------------------------------------------------------------

// Lists the remaining columns, and sets where each unit's columns begin among them.
static int64_t list_left(struct msc_elimination *e) {
    int64_t n = 0, begin = 0;
    for (int32_t u = 0; u < e->n_units; u++) {
        int64_t end = e->first[u + 1];
        e->first[u] = n;
        for (int64_t i = begin; !e->has_gone[u] && i < end; i++) {
            e->left[n++] = i;
        }
        begin = end;
    }
    e->first[e->n_units] = n;
    return n;
}

// Subtracts the pending rows from the inverse, and compacts everything to the remaining columns.
static void catch_up(struct msc_elimination *e) {
    int64_t n = e->n, n_left = list_left(e);
    msc_subtract_gram_f64(e->inverse, e->pending, e->n_pending, n);
    for (int64_t i = 0; i < n_left; i++) {
        const double *row = e->inverse + e->left[i] * n;
        for (int64_t k = i; k < n_left; k++) { // elements are read before they are overwritten
            e->inverse[i * n_left + k] = row[e->left[k]];
        }
        memmove(e->weights + i * e->n_rows, e->weights + e->left[i] * e->n_rows,
                (size_t)e->n_rows * sizeof(e->weights[0]));
    }
    e->n = n_left;
    e->n_pending = 0;
}

// Appends the given rows of the current inverse to the pending rows.
static void take_rows(struct msc_elimination *e, const int64_t columns[], int64_t n_going) {
    int64_t n = e->n;
    double *rows = e->pending + e->n_pending * n;
    for (int64_t i = 0; i < n_going; i++) {
        int64_t c = columns[i];
        for (int64_t k = 0; k < c; k++) {
            rows[i * n + k] = e->inverse[k * n + c];
        }
        memcpy(rows + i * n + c, e->inverse + c * n + c, (size_t)(n - c) * sizeof(rows[0]));
    }
    for (int64_t i = 0; i < e->n_pending * n_going; i++) {
        e->gone[i] = e->pending[i / n_going * n + columns[i % n_going]];
    }
    msc_subtract_cross_f64(rows, e->gone, e->pending, n_going, e->n_pending, n);
}

static void update_blocks(struct msc_elimination *e, const double rows[], int64_t n_going) {
    for (int32_t u = 0; u < e->n_units; u++) {
        int64_t k = columns_of(e, u);
        double *block = e->blocks + e->block_at[u];
        for (int64_t r = 0; !e->has_gone[u] && r < n_going; r++) {
            const double *x = rows + r * e->n + e->first[u];
            for (int64_t i = 0; i < k * k; i++) {
                block[i] -= x[i / k] * x[i % k];
            }
        }
    }
}

static enum msc_status remove_columns(struct msc_elimination *e, const int64_t columns[],
                                      int64_t n_going) {
    int64_t n = e->n;
    double *rows = e->pending + e->n_pending * n;
    take_rows(e, columns, n_going);
    for (int64_t i = 0; i < n_going * n_going; i++) {
        e->gone[i] = rows[i / n_going * n + columns[i % n_going]];
    }
    for (int64_t i = 0; i < n_going; i++) {
        memcpy(e->lost + i * e->n_rows, e->weights + columns[i] * e->n_rows,
               (size_t)e->n_rows * sizeof(e->lost[0]));
    }
    MSC_TRY(msc_cholesky_f64(e->gone, n_going));
    msc_solve_lower_f64(e->gone, n_going, rows, n);
    msc_solve_lower_f64(e->gone, n_going, e->lost, e->n_rows);
    msc_subtract_cross_f64(e->weights, rows, e->lost, n, n_going, e->n_rows);
    update_blocks(e, rows, n_going);
    e->n_pending += n_going;
    return MSC_OK;
}

// How many of the units to remove fit into the capacity at once.
static int32_t count_fitting(const struct msc_elimination *e, const int32_t units[], int32_t n) {
    int64_t n_columns = 0;
    int32_t fitting = 0;
    while (fitting < n && n_columns + columns_of(e, units[fitting]) <= e->capacity) {
        n_columns += columns_of(e, units[fitting++]);
    }
    return fitting;
}

static enum msc_status remove_some(struct msc_elimination *e, const int32_t units[], int32_t n) {
    int64_t n_going = 0;
    for (int32_t i = 0; i < n; i++) {
        n_going += columns_of(e, units[i]);
    }
    if (e->n_pending + n_going > e->capacity) {
        catch_up(e);
    }
    int64_t *columns = msc_alloc((size_t)n_going * sizeof(columns[0]) + 1);
    MSC_TRY(MSC_ALLOCATED(columns));
    n_going = 0;
    for (int32_t i = 0; i < n; i++) {
        for (int64_t k = e->first[units[i]]; k < e->first[units[i] + 1]; k++) {
            columns[n_going++] = k;
        }
        e->has_gone[units[i]] = true;
    }
    enum msc_status status = n_going > 0 ? remove_columns(e, columns, n_going) : MSC_OK;
    msc_free(columns);
    return status;
}

enum msc_status msc_elimination_remove(struct msc_elimination *e, const int32_t units[],
                                       int32_t n) {
    for (int32_t i = 0; i < n;) {
        int32_t fitting = count_fitting(e, units + i, n - i);
        MSC_TRY(remove_some(e, units + i, fitting));
        i += fitting;
    }
    return MSC_OK;
}
