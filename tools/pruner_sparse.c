// Removes single weights from the columns that remain after channel pruning.
#include "tools/pruner_internal.h"

#include <math.h>

// The remaining columns of rows in pattern order: the input channels of the first kernel position,
// then of the second, and so on.
struct left {
    int64_t n, run;
    int64_t *columns; // [n]
};

static enum msc_status list_left(struct left *out, const struct msc_pruner_rows *r, int64_t n_taps,
                                 const bool is_gone[], struct msc_arena *arena) {
    int64_t n_channels = r->rows.n_columns / n_taps;
    out->n = 0;
    out->columns = msc_arena_array(arena, (size_t)r->rows.n_columns + 1, sizeof(out->columns[0]));
    MSC_TRY(MSC_ALLOCATED(out->columns));
    for (int64_t tap = 0; tap < n_taps; tap++) {
        for (int64_t channel = 0; channel < n_channels; channel++) {
            int64_t k = channel * n_taps + tap;
            if (r->unit[k] == MSC_NO_ID || !is_gone[r->unit[k]]) {
                out->columns[out->n++] = k;
            }
        }
    }
    out->run = out->n / n_taps; // all positions have equally many channels
    return MSC_OK;
}

// The data that choose the weights to remove in a group of rows.
struct thinning {
    const struct msc_prune_choice *choice;
    enum msc_criterion criterion; // the choice's criterion; without moments, l2
    bool repairs;
    struct msc_sparse_rows rows;
    double *moments; // [n, n]; NULL: not needed
};

// Moments of few samples, rounded to float32, are not always definite; then the damping is
// increased.
static enum msc_status choose(struct thinning *t, const struct msc_pruner_rows *r,
                              const struct msc_consumer *c, int64_t group, const struct left *left,
                              double ridge) {
    enum msc_status status = MSC_E_INVALID;
    for (int i = 0; i < MSC_PRUNER_ATTEMPTS && status == MSC_E_INVALID; i++) {
        if (t->moments) {
            msc_pruner__fill_moments(t->moments, r, c, group, left->columns, left->n,
                                     msc_pruner__damping(r, c, group, ridge));
        }
        status = msc_sparse_rows_choose(&t->rows, &t->choice->sparsity, t->criterion);
        ridge *= 10;
    }
    return status;
}

// Copies the changed rows back, and adds the bias shifts that preserve their mean outputs.
static enum msc_status take_rows(double shifts[], struct msc_pruner_rows *r, const double means[],
                                 int64_t first_row, const struct left *left,
                                 const struct thinning *t) {
    for (int64_t row = 0; row < t->rows.n_rows; row++) {
        float *values = r->rows.values + (first_row + row) * r->rows.n_columns;
        for (int64_t k = 0; k < left->n; k++) {
            float *x = &values[left->columns[k]];
            float now = (float)t->rows.w[row * left->n + k];
            if (!isfinite(now)) {
                return MSC_E_INVALID;
            }
            shifts[first_row + row] -=
                means ? ((double)now - (double)*x) * means[left->columns[k]] : 0;
            *x = now;
        }
    }
    return MSC_OK;
}

static enum msc_status thin_group(double shifts[], struct msc_pruner_rows *r,
                                  const struct msc_consumer *c, int64_t group,
                                  const struct left *left, struct thinning *t, double ridge) {
    int64_t n_rows = t->rows.n_rows, first = group * n_rows;
    for (int64_t i = 0; i < n_rows; i++) {
        for (int64_t k = 0; k < left->n; k++) {
            t->rows.w[i * left->n + k] =
                r->rows.values[(first + i) * r->rows.n_columns + left->columns[k]];
        }
    }
    MSC_TRY(choose(t, r, c, group, left, ridge));
    if (t->repairs) {
        MSC_TRY(msc_sparse_rows_repair(&t->rows));
    } else {
        msc_sparse_rows_mask(&t->rows);
    }
    const double *means = t->repairs ? c->moment.means + group * r->rows.n_columns : NULL;
    return take_rows(shifts, r, means, first, left, t);
}

enum msc_status msc_pruner__make_sparse(double shifts[], struct msc_pruner_rows *r,
                                        const struct msc_pruner *p, const struct msc_consumer *c,
                                        const struct msc_prune_choice *choice, const bool is_gone[],
                                        struct msc_arena *arena) {
    struct left left = {0};
    MSC_TRY(list_left(&left, r, c->n_taps, is_gone, arena));
    int64_t n_rows = r->rows.n_rows / r->rows.n_groups;
    bool has_moments = c->moment.n_groups > 0;
    struct thinning t = {.choice = choice,
                         .criterion = has_moments ? choice->criterion : MSC_CRITERION_L2,
                         .repairs = has_moments && p->options->repairs};
    bool by_moments =
        t.repairs || t.criterion == MSC_CRITERION_ENERGY || t.criterion == MSC_CRITERION_HESSIAN;
    size_t n = (size_t)(n_rows * left.n);
    t.moments = by_moments ? msc_alloc((size_t)(left.n * left.n) * sizeof(t.moments[0]) + 1) : NULL;
    t.rows = (struct msc_sparse_rows){.n_rows = n_rows,
                                      .n_columns = left.n,
                                      .run = left.run,
                                      .w = msc_alloc(n * sizeof(t.rows.w[0]) + 1),
                                      .c = t.moments,
                                      .is_kept = msc_alloc(n * sizeof(t.rows.is_kept[0]) + 1)};
    enum msc_status status =
        MSC_ALLOCATED(t.rows.w && t.rows.is_kept && (t.moments || !by_moments));
    for (int64_t g = 0; status == MSC_OK && g < r->rows.n_groups; g++) {
        status = thin_group(shifts, r, c, g, &left, &t, p->options->ridge);
    }
    msc_free(t.rows.is_kept);
    msc_free(t.rows.w);
    msc_free(t.moments);
    return status;
}
