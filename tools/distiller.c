#include "tools/distiller.h"

#include "base/alloc.h"
#include "tools/linear_algebra.h"
#include "tools/weight_rows.h"

#include <math.h>
#include <string.h>

enum { DESCENT_PASSES = 4 };

struct distilling {
    const struct msc_distiller_job *job;
    struct msc_scheme scheme;
    struct msc_weight_rows rows;    // trained
    float *moved;                   // [n_rows, n_columns] trained rows times `cross`
    const float *h;                 // second moment of the inputs, centred if there are shifts
    const float *cross;             // F'X of the moment, centred if there are shifts
    double *means;                  // [n_rows] mean output of the float model, without its bias
    struct msc_gptq_order **orders; // [n_groups]
};

// The rows of one ridge.
struct improving {
    const struct distilling *d;
    double ridge;
    struct msc_weight_rows rows; // fitted
    struct msc_rounded_rows rounded;
};

bool msc_distiller_takes(const struct msc_quant *quant) {
    return quant && quant->type == MSC_DTYPE_NONE && !quant->blocks && quant->bits <= 8;
}

static int64_t rows_of_group(const struct distilling *d) {
    return d->rows.n_rows / d->rows.n_groups;
}

static enum msc_status take_moments(struct distilling *d, struct msc_arena *arena) {
    const struct msc_moment *m = d->job->moment;
    d->h = m->h;
    d->cross = m->cross;
    if (d->job->has_shifts) {
        size_t n = (size_t)(m->n_groups * m->n_columns * m->n_columns);
        float *h = msc_arena_array(arena, n + 1, sizeof(h[0]));
        float *cross = msc_arena_array(arena, n + 1, sizeof(cross[0]));
        if (h && cross) { // the bias can correct the means
            msc_moment_centre(h, m->h, m->means, m->means, m);
            msc_moment_centre(cross, m->cross, m->float_means, m->means, m);
        }
        d->h = h;
        d->cross = cross;
    }
    return MSC_ALLOCATED(d->h && d->cross);
}

// Sets up the trained rows.
static enum msc_status distilling_init(struct distilling *d, struct msc_arena *arena) {
    const struct msc_distiller_job *job = d->job;
    d->scheme = (struct msc_scheme){.bits = job->now->bits,
                                    .is_symmetric = job->now->low < 0,
                                    .is_weight = true,
                                    .has_lowest = !job->target || !job->target->narrow_weights};
    MSC_TRY(msc_weight_rows_init(&d->rows, job->weight, job->slot, job->moment, arena));
    return take_moments(d, arena);
}

// The trained rows times the moments, and the means of their outputs.
static enum msc_status move_rows(struct distilling *d, struct msc_arena *arena) {
    const struct msc_moment *m = d->job->moment;
    int64_t n = m->n_columns, of_group = rows_of_group(d);
    d->moved = msc_arena_array(arena, (size_t)(d->rows.n_rows * n) + 1, sizeof(d->moved[0]));
    d->means = msc_arena_array(arena, (size_t)d->rows.n_rows + 1, sizeof(d->means[0]));
    MSC_TRY(MSC_ALLOCATED(d->moved && d->means));
#pragma omp parallel for num_threads(d->job->n_threads) schedule(dynamic)
    for (int64_t g = 0; g < d->rows.n_groups; g++) {
        int64_t first = g * of_group;
        msc_product_f32(d->moved + first * n, d->rows.values + first * n, d->cross + g * n * n,
                        of_group, n, n);
        for (int64_t r = first; d->job->has_shifts && r < first + of_group; r++) {
            d->means[r] = msc_dot_means(d->rows.values + r * n, m->float_means + g * n, n);
        }
    }
    return MSC_OK;
}

// ---- Least squares ----------------------------------------------------------------------------

// Sets a = h + d I, and returns d: `ridge` times the mean of h's diagonal.
static double add_ridge(double a[], const float h[], int64_t n, double ridge) {
    double mean = 0;
    for (int64_t k = 0; k < n; k++) {
        mean += h[k * n + k] / (double)n;
    }
    for (int64_t i = 0; i < n * n; i++) {
        a[i] = h[i];
    }
    for (int64_t k = 0; k < n; k++) {
        a[k * n + k] += ridge * mean;
    }
    return ridge * mean;
}

// A group whose inputs are all zero keeps its weights.
static enum msc_status solve_group(struct improving *i, int64_t group) {
    const struct distilling *d = i->d;
    int64_t n = d->rows.n_columns, n_rows = rows_of_group(d), first = group * n_rows * n;
    size_t n_weights = (size_t)(n_rows * n);
    const float *w = d->rows.values + first, *moved = d->moved + first;
    float *fitted = i->rows.values + first;
    double *b = msc_alloc(n_weights * sizeof(b[0]) + 1);
    double *a = msc_alloc((size_t)(n * n) * sizeof(a[0]) + 1);
    enum msc_status status = b && a ? MSC_OK : MSC_E_NOMEM;
    memcpy(fitted, w, n_weights * sizeof(w[0]));
    if (status == MSC_OK) {
        double ridge = add_ridge(a, d->h + group * n * n, n, i->ridge);
        for (size_t k = 0; k < n_weights; k++) {
            b[k] = moved[k] + ridge * w[k];
        }
        if (ridge > 0) {
            status = msc_solve_right(a, b, n_rows, n);
        }
        for (size_t k = 0; ridge > 0 && status == MSC_OK && k < n_weights; k++) {
            fitted[k] = (float)b[k];
            status = isfinite(fitted[k]) ? MSC_OK : MSC_E_INVALID;
        }
    }
    msc_free(b);
    msc_free(a);
    return status;
}

// ---- Rounding ---------------------------------------------------------------------------------

// Sets the shift of a row: its mean output error, which the bias corrects.
static void shift_row(struct improving *i, int64_t group, int64_t row) {
    struct msc_rounded_rows *r = &i->rounded;
    int64_t n = i->rows.n_columns, size = r->form.group_size > 0 ? r->form.group_size : n;
    const double *means = i->d->job->moment->means + group * n;
    double mean = 0;
    for (int64_t k = 0; k < n; k++) {
        int64_t block = row * r->n_blocks + k / size;
        int32_t q = r->integers[row * n + k] - r->zero_points[block];
        mean += means[k] * q * r->scales[block];
    }
    r->shifts[row] = (float)(i->d->means[row] - mean);
}

static enum msc_status round_some(void *payload, struct msc_rounding_rows *rows, int64_t group,
                                  int64_t first) {
    struct improving *i = payload;
    if (i->rounded.form.n > 1 && i->d->job->fits_ranges) {
        msc_rounding_fit_ranges(rows);
    } else if (i->rounded.form.n > 1) {
        MSC_TRY(msc_rounding_fit(rows));
    }
    MSC_TRY(msc_rounding_gptq(rows, i->d->orders + group));
    MSC_TRY(msc_rounding_descend(rows, DESCENT_PASSES));
    for (int64_t r = 0; i->rounded.shifts && r < rows->n_rows; r++) {
        shift_row(i, group, first + r);
    }
    return MSC_OK;
}

// ---- All groups -------------------------------------------------------------------------------

// Messages are local to the thread that failed, so the message is set again here.
static enum msc_status solve_groups(struct improving *i) {
    int worst = MSC_OK;
#pragma omp parallel for num_threads(i->d->job->n_threads) schedule(dynamic) reduction(min : worst)
    for (int64_t g = 0; g < i->d->rows.n_groups; g++) {
        int status = solve_group(i, g);
        worst = status < worst ? status : worst;
    }
    return worst == MSC_OK ? MSC_OK
           : worst == MSC_E_INVALID
               ? MSC_FAIL(MSC_E_INVALID,
                          "weights cannot be fitted, because the second moments of their inputs "
                          "are not finite or not positive definite; check the dataset")
               : MSC_FAIL(MSC_E_NOMEM, "out of memory");
}

static enum msc_status improve(struct msc_quant *out, const struct distilling *d, double ridge) {
    const struct msc_distiller_job *job = d->job;
    struct msc_arena arena = {0};
    struct improving i = {.d = d, .ridge = ridge, .rows = d->rows};
    size_t n = (size_t)(d->rows.n_rows * d->rows.n_columns) + 1;
    enum msc_status status = MSC_OK;
    i.rows.values = msc_arena_array(&arena, n, sizeof(i.rows.values[0]));
    MSC_TRY_OUT(MSC_ALLOCATED(i.rows.values));
    MSC_TRY_OUT(solve_groups(&i));
    MSC_TRY_OUT(
        msc_rounded_rows_init(&i.rounded, &i.rows, job->now, d->scheme, job->has_shifts, &arena));
    MSC_TRY_OUT(msc_weight_rows_each(&i.rounded, d->h, job->n_threads, round_some, &i));
    status = msc_rounded_rows_give(out, &i.rounded, true);
out:
    msc_arena_finish(&arena);
    return status;
}

enum msc_status msc_distiller_improve(struct msc_quant out[], const struct msc_distiller_job *job) {
    struct msc_arena arena = {0};
    struct distilling d = {.job = job};
    enum msc_status status = MSC_OK;
    size_t n_done = 0;
    msc_linear_algebra_begin();
    MSC_TRY_OUT(distilling_init(&d, &arena));
    MSC_TRY_OUT(move_rows(&d, &arena));
    MSC_TRY_OUT(msc_weight_rows_factor(&d.orders, &d.rows, d.h, job->n_threads));
    for (; n_done < job->n_ridges; n_done++) {
        MSC_TRY_OUT(improve(&out[n_done], &d, job->ridges[n_done]));
    }
out:
    for (size_t i = 0; status != MSC_OK && i < n_done; i++) {
        msc_quant_finish(&out[i]);
    }
    msc_gptq_orders_destroy(d.orders, d.rows.n_orders);
    msc_arena_finish(&arena);
    return status;
}

// ---- Errors -----------------------------------------------------------------------------------

// Adds the error of one group: mean (q x + s - w f)^2 less mean (w f)^2, which is q'Hq - 2 w F'X
// q + 2 s (mean of q x - w f) + s^2, with q the quantised rows. by_h [rows of a group, n_columns].
static void add_group_error(double *out, const struct distilling *d, const struct msc_quant *quant,
                            const float q[], int64_t group, float by_h[]) {
    const struct msc_moment *m = d->job->moment;
    int64_t n = m->n_columns, n_rows = rows_of_group(d), first = group * n_rows;
    msc_product_f32(by_h, q + first * n, m->h + group * n * n, n_rows, n, n);
    for (int64_t r = 0; r < n_rows; r++) {
        const float *of_q = q + (first + r) * n, *w = d->rows.values + (first + r) * n;
        const float *by_cross = d->moved + (first + r) * n;
        double shift = quant->shifts ? msc_array_get_double(quant->shifts, first + r) : 0;
        double mean = msc_dot_means(of_q, m->means + group * n, n) -
                      msc_dot_means(w, m->float_means + group * n, n);
        for (int64_t k = 0; k < n; k++) {
            *out += of_q[k] * ((double)by_h[r * n + k] - 2.0 * (double)by_cross[k]);
        }
        *out += shift * (shift + 2 * mean);
    }
}

// room [n_rows + rows of a group, n_columns]
static enum msc_status add_error(double *out, const struct distilling *d,
                                 const struct msc_quant *quant, float room[]) {
    struct msc_array *quantised = NULL;
    MSC_TRY(msc_fake_quantize_array(&quantised, d->job->weight->data, quant));
    int64_t n = d->rows.n_columns, n_all = d->rows.n_rows * n;
    const float *x = msc_array_data(quantised);
    for (int64_t i = 0; i < n_all; i++) {
        room[i] = x[msc_weight_rows_element(&d->rows, i / n, i % n)];
    }
    for (int64_t g = 0; g < d->rows.n_groups; g++) {
        add_group_error(out, d, quant, room, g, room + n_all);
    }
    msc_array_release(quantised);
    return MSC_OK;
}

enum msc_status msc_distiller_errors(double out[], const struct msc_distiller_job *job,
                                     const struct msc_quant *const quants[], size_t n) {
    struct msc_arena arena = {0};
    struct distilling d = {.job = job, .cross = job->moment->cross};
    enum msc_status status = MSC_OK;
    msc_linear_algebra_begin();
    MSC_TRY_OUT(msc_weight_rows_init(&d.rows, job->weight, job->slot, job->moment, &arena));
    MSC_TRY_OUT(move_rows(&d, &arena));
    int64_t n_room = (d.rows.n_rows + rows_of_group(&d)) * d.rows.n_columns;
    float *room = msc_arena_array(&arena, (size_t)n_room + 1, sizeof(room[0]));
    status = MSC_ALLOCATED(room);
    for (size_t i = 0; status == MSC_OK && i < n; i++) {
        out[i] = 0;
        status = add_error(&out[i], &d, quants[i], room);
    }
out:
    msc_arena_finish(&arena);
    return status;
}
