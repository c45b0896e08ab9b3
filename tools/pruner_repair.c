// Makes the edits of a consumer that loses channels: repaired weights, or a mask.
#include "tools/linear_algebra.h"
#include "tools/pruner_internal.h"

#include <math.h>

// ---- Least squares ----------------------------------------------------------------------------

// The remaining and the removed columns.
struct columns {
    int64_t n_kept, n_gone;
    int64_t *kept, *gone;
};

static enum msc_status split_columns(struct columns *out, const struct msc_pruner_rows *r,
                                     const bool is_gone[], struct msc_arena *arena) {
    size_t n = (size_t)r->rows.n_columns + 1;
    out->n_kept = out->n_gone = 0;
    out->kept = msc_arena_array(arena, n, sizeof(out->kept[0]));
    out->gone = msc_arena_array(arena, n, sizeof(out->gone[0]));
    MSC_TRY(MSC_ALLOCATED(out->kept && out->gone));
    for (int64_t k = 0; k < r->rows.n_columns; k++) {
        if (r->unit[k] != MSC_NO_ID && is_gone[r->unit[k]]) {
            out->gone[out->n_gone++] = k;
        } else {
            out->kept[out->n_kept++] = k;
        }
    }
    return MSC_OK;
}

// Weights and moments of a group of rows, split into remaining and removed columns.
struct solving {
    double *lost;   // [n_rows, n_gone] the removed weights
    double *change; // [n_rows, n_kept] change of the remaining weights
    double *c;      // [n_kept, n_kept]
    double *cross;  // [n_gone, n_kept]
};

// Moments of few samples, rounded to float32, are not always definite; then the damping is
// increased.
static enum msc_status solve(struct solving *s, const struct msc_pruner_rows *r,
                             const struct msc_consumer *c, int64_t group, const struct columns *at,
                             double ridge) {
    int64_t n_rows = r->rows.n_rows / r->rows.n_groups;
    enum msc_status status = MSC_E_INVALID;
    for (int64_t i = 0; i < at->n_gone * at->n_kept; i++) {
        s->cross[i] =
            msc_pruner__moment(r, c, group, at->gone[i / at->n_kept], at->kept[i % at->n_kept]);
    }
    for (int i = 0; i < MSC_PRUNER_ATTEMPTS && status == MSC_E_INVALID; i++) {
        msc_product_f64(s->change, s->lost, s->cross, n_rows, at->n_gone, at->n_kept);
        msc_pruner__fill_moments(s->c, r, c, group, at->kept, at->n_kept,
                                 msc_pruner__damping(r, c, group, ridge));
        status = msc_solve_right(s->c, s->change, n_rows, at->n_kept);
        ridge *= 10;
    }
    return status;
}

// Applies the change to the rows, and computes the shift of each row's bias.
static enum msc_status take_solution(double shifts[], float w[], const struct solving *s,
                                     const struct columns *at, const double means[], int64_t n_rows,
                                     int64_t n) {
    for (int64_t row = 0; row < n_rows; row++) {
        shifts[row] = 0;
        for (int64_t k = 0; k < at->n_gone; k++) {
            shifts[row] += s->lost[row * at->n_gone + k] * means[at->gone[k]];
            w[row * n + at->gone[k]] = 0;
        }
        for (int64_t k = 0; k < at->n_kept; k++) {
            float *x = &w[row * n + at->kept[k]];
            float repaired = (float)((double)*x + s->change[row * at->n_kept + k]);
            shifts[row] -= ((double)repaired - (double)*x) * means[at->kept[k]];
            *x = repaired;
            if (!isfinite(repaired)) {
                return MSC_E_INVALID;
            }
        }
    }
    return MSC_OK;
}

static enum msc_status repair_group(double shifts[], struct msc_pruner_rows *r,
                                    const struct msc_consumer *c, int64_t group,
                                    const struct columns *at, double ridge) {
    int64_t n = r->rows.n_columns, n_rows = r->rows.n_rows / r->rows.n_groups;
    int64_t kept = at->n_kept, gone = at->n_gone;
    float *w = r->rows.values + group * n_rows * n;
    struct solving s = {
        .lost = msc_alloc((size_t)(n_rows * gone) * sizeof(s.lost[0]) + 1),
        .change = msc_alloc((size_t)(n_rows * kept) * sizeof(s.change[0]) + 1),
        .c = msc_alloc((size_t)(kept * kept) * sizeof(s.c[0]) + 1),
        .cross = msc_alloc((size_t)(gone * kept) * sizeof(s.cross[0]) + 1),
    };
    enum msc_status status =
        s.lost && s.change && s.c && s.cross ? MSC_OK : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    for (int64_t i = 0; status == MSC_OK && i < n_rows * gone; i++) {
        s.lost[i] = w[i / gone * n + at->gone[i % gone]];
    }
    if (status == MSC_OK) {
        status = solve(&s, r, c, group, at, ridge);
    }
    if (status == MSC_OK) {
        status = take_solution(shifts + group * n_rows, w, &s, at, c->moment.means + group * n,
                               n_rows, n);
    }
    msc_free(s.cross);
    msc_free(s.c);
    msc_free(s.change);
    msc_free(s.lost);
    return status;
}

// ---- Edits ------------------------------------------------------------------------------------

static enum msc_status give_weight(struct msc_prune_made *made, const struct msc_pruner_rows *r) {
    const struct msc_array *from = r->rows.array;
    MSC_TRY(msc_array_create(&made->elements[0], MSC_DTYPE_F32, msc_array_n_dims(from),
                             msc_array_dims(from)));
    float *to = msc_array_data(made->elements[0]);
    for (int64_t row = 0; row < r->rows.n_rows; row++) {
        for (int64_t k = 0; k < r->rows.n_columns; k++) {
            to[msc_weight_rows_element(&r->rows, row, k)] =
                r->rows.values[row * r->rows.n_columns + k];
        }
    }
    made->edit = (struct msc_edit){.kind = MSC_EDIT_REPLACE, .elements = made->elements[0]};
    msc_edit_seal(&made->edit);
    made->has_edit = true;
    return MSC_OK;
}

static enum msc_status give_bias(struct msc_prune_made *made, const struct msc_pruner *p,
                                 const struct msc_consumer *c, const double shifts[]) {
    const struct msc_array *from =
        msc_graph_tensor(p->g, p->sites.slots[c->bias_slot].tensor)->data;
    MSC_TRY(msc_array_create(&made->elements[1], MSC_DTYPE_F32, msc_array_n_dims(from),
                             msc_array_dims(from)));
    const float *x = msc_array_data(from);
    float *to = msc_array_data(made->elements[1]);
    for (int64_t i = 0; i < msc_array_n_elements(from); i++) {
        to[i] = (float)((double)x[i] + shifts[i]);
    }
    made->bias = (struct msc_edit){.kind = MSC_EDIT_REPLACE, .elements = made->elements[1]};
    msc_edit_seal(&made->bias);
    made->has_bias = true;
    return MSC_OK;
}

// Sets removed channels to zero, without repair.
static void mask_columns(struct msc_pruner_rows *r, const struct columns *at) {
    for (int64_t row = 0; row < r->rows.n_rows; row++) {
        for (int64_t k = 0; k < at->n_gone; k++) {
            r->rows.values[row * r->rows.n_columns + at->gone[k]] = 0;
        }
    }
}

// How one consumer is changed.
struct rebuilding {
    bool has_gone, repairs;
    const struct msc_prune_choice *sparse; // NULL: no single weights are removed
    const bool *is_gone;
};

static enum msc_status rebuild(struct msc_prune_made *made, const struct msc_pruner *p,
                               const struct msc_consumer *c, const struct rebuilding *how,
                               struct msc_arena *arena) {
    struct msc_pruner_rows r;
    struct columns at;
    MSC_TRY(msc_pruner__rows(&r, p, c, arena));
    MSC_TRY(split_columns(&at, &r, how->is_gone, arena));
    double *shifts = msc_arena_array(arena, (size_t)r.rows.n_rows + 1, sizeof(shifts[0]));
    MSC_TRY(MSC_ALLOCATED(shifts));
    for (int64_t g = 0; how->has_gone && how->repairs && g < r.rows.n_groups; g++) {
        MSC_TRY(repair_group(shifts, &r, c, g, &at, p->options->ridge));
    }
    if (how->has_gone && !how->repairs) {
        mask_columns(&r, &at);
    }
    if (how->sparse) {
        MSC_TRY(msc_pruner__make_sparse(shifts, &r, p, c, how->sparse, how->is_gone, arena));
    }
    MSC_TRY(give_weight(made, &r));
    return r.is_centred && how->repairs ? give_bias(made, p, c, shifts) : MSC_OK;
}

// The choice that removes single weights, or NULL.
static const struct msc_prune_choice *sparse_choice(const struct msc_prune_made *made,
                                                    const struct msc_pruner *p,
                                                    const struct msc_consumer *c) {
    if (c->part == MSC_NO_ID) {
        return NULL;
    }
    const struct msc_pruner_group *part = &p->groups[c->part];
    const struct msc_prune_cut *cut = &part->cuts[made->cuts[c->n_groups - 1]];
    return cut->n_kept == part->cuts[part->n_cuts].n_kept ? NULL
                                                          : &p->options->choices[cut->choice];
}

enum msc_status msc_pruner__repair(struct msc_prune_made *made, const struct msc_pruner *p,
                                   const struct msc_consumer *c, const bool is_gone[],
                                   struct msc_arena *arena) {
    int64_t n = msc_graph_tensor(p->g, c->tensor)->dims[c->axis];
    struct rebuilding how = {.repairs = p->options->repairs && c->moment.n_groups > 0,
                             .sparse = sparse_choice(made, p, c),
                             .is_gone = is_gone};
    for (int64_t i = 0; i < n; i++) {
        int32_t unit = msc_channels_unit(&p->channels, c->tensor, c->axis, i);
        made->is_kept[i] = unit == MSC_NO_ID || !is_gone[unit];
        how.has_gone = how.has_gone || !made->is_kept[i];
    }
    if (!how.has_gone && !how.sparse) {
        return MSC_OK;
    }
    if (how.repairs || how.sparse) {
        return rebuild(made, p, c, &how, arena);
    }
    made->edit =
        (struct msc_edit){.kind = MSC_EDIT_KEEP_CHANNELS,
                          .mask = {.axis = c->axis, .n = (int32_t)n, .is_kept = made->is_kept}};
    msc_edit_seal(&made->edit);
    made->has_edit = true;
    return MSC_OK;
}
