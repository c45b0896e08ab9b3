#include "tools/distiller.h"

#include "base/alloc.h"
#include "tools/linear_algebra.h"
#include "tools/weight_rows.h"

#include <math.h>

enum { DESCENT_PASSES = 4 };

struct distilling {
    const struct msc_distiller_job *job;
    struct msc_weight_rows rows;
    struct msc_rounded_rows rounded;
    const float *h;                 // second moment of the inputs, centred if there are shifts
    const float *cross;             // F'X of the moment, centred if there are shifts
    double *means;                  // [n_rows] mean output of the float model, without its bias
    struct msc_gptq_order **orders; // [n_groups]
};

bool msc_distiller_takes(const struct msc_quant *quant) {
    return quant && quant->type == MSC_DTYPE_NONE && quant->bits <= 8;
}

static int64_t rows_of_group(const struct distilling *d) {
    return d->rows.n_rows / d->rows.n_groups;
}

static enum msc_status take_moments(struct distilling *d, struct msc_arena *arena) {
    const struct msc_moment *m = d->job->moment;
    d->h = m->h;
    d->cross = m->cross;
    d->means = msc_arena_array(arena, (size_t)d->rows.n_rows + 1, sizeof(d->means[0]));
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
    return MSC_ALLOCATED(d->h && d->cross && d->means);
}

// Sets up the trained rows and the scales of the plan.
static enum msc_status distilling_init(struct distilling *d, struct msc_arena *arena) {
    const struct msc_distiller_job *job = d->job;
    const struct msc_scheme scheme = {.bits = job->now->bits,
                                      .is_symmetric = job->now->low < 0,
                                      .is_weight = true,
                                      .has_lowest = !job->target || !job->target->narrow_weights};
    MSC_TRY(msc_weight_rows_init(&d->rows, job->weight, job->slot, job->moment, arena));
    MSC_TRY(msc_rounded_rows_init(&d->rounded, &d->rows, job->now, scheme, job->has_shifts, arena));
    return take_moments(d, arena);
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
static enum msc_status solve_group(struct distilling *d, int64_t group) {
    const struct msc_moment *m = d->job->moment;
    int64_t n = m->n_columns, n_rows = rows_of_group(d);
    size_t n_weights = (size_t)(n_rows * n);
    float *w = d->rows.values + group * n_rows * n;
    float *moved = msc_alloc(n_weights * sizeof(moved[0]) + 1);
    double *b = msc_alloc(n_weights * sizeof(b[0]) + 1);
    double *a = msc_alloc((size_t)(n * n) * sizeof(a[0]) + 1);
    enum msc_status status = moved && b && a ? MSC_OK : MSC_E_NOMEM;
    for (int64_t r = 0; d->rounded.shifts && r < n_rows; r++) {
        d->means[group * n_rows + r] = msc_dot_means(w + r * n, m->float_means + group * n, n);
    }
    if (status == MSC_OK) {
        double ridge = add_ridge(a, d->h + group * n * n, n, d->job->ridge);
        msc_product_f32(moved, w, d->cross + group * n * n, n_rows, n, n);
        for (size_t i = 0; i < n_weights; i++) {
            b[i] = moved[i] + ridge * w[i];
        }
        if (ridge > 0) {
            status = msc_solve_right(a, b, n_rows, n);
        }
        for (size_t i = 0; ridge > 0 && status == MSC_OK && i < n_weights; i++) {
            w[i] = (float)b[i];
            status = isfinite(w[i]) ? MSC_OK : MSC_E_INVALID;
        }
    }
    msc_free(moved);
    msc_free(b);
    msc_free(a);
    return status;
}

// ---- Rounding ---------------------------------------------------------------------------------

// Sets the shift of a row: its mean output error, which the bias corrects.
static void shift_row(struct distilling *d, int64_t group, int64_t row) {
    struct msc_rounded_rows *r = &d->rounded;
    int64_t n = d->rows.n_columns, size = r->form.group_size > 0 ? r->form.group_size : n;
    const double *means = d->job->moment->means + group * n;
    double mean = 0;
    for (int64_t k = 0; k < n; k++) {
        int64_t block = row * r->n_blocks + k / size;
        int32_t q = r->integers[row * n + k] - r->zero_points[block];
        mean += means[k] * q * r->scales[block];
    }
    r->shifts[row] = (float)(d->means[row] - mean);
}

static enum msc_status round_some(void *payload, struct msc_rounding_rows *rows, int64_t group,
                                  int64_t first) {
    struct distilling *d = payload;
    if (d->job->now->n > 1) {
        MSC_TRY(msc_rounding_fit(rows));
    }
    MSC_TRY(msc_rounding_gptq(rows, d->orders[group]));
    MSC_TRY(msc_rounding_descend(rows, DESCENT_PASSES));
    for (int64_t r = 0; d->rounded.shifts && r < rows->n_rows; r++) {
        shift_row(d, group, first + r);
    }
    return MSC_OK;
}

// ---- All groups -------------------------------------------------------------------------------

// Messages are local to the thread that failed, so the message is set again here.
static enum msc_status solve_groups(struct distilling *d) {
    int worst = MSC_OK;
#pragma omp parallel for num_threads(d->job->n_threads) schedule(dynamic) reduction(min : worst)
    for (int64_t g = 0; g < d->rows.n_groups; g++) {
        int status = solve_group(d, g);
        worst = status < worst ? status : worst;
    }
    return worst == MSC_OK ? MSC_OK
           : worst == MSC_E_INVALID
               ? MSC_FAIL(MSC_E_INVALID,
                          "weights cannot be fitted, because the second moments of their inputs "
                          "are not finite or not positive definite; check the dataset")
               : MSC_FAIL(MSC_E_NOMEM, "out of memory");
}

enum msc_status msc_distiller_improve(struct msc_quant *out, const struct msc_distiller_job *job) {
    struct msc_arena arena = {0};
    struct distilling d = {.job = job};
    enum msc_status status = MSC_OK;
    msc_linear_algebra_begin();
    MSC_TRY_OUT(distilling_init(&d, &arena));
    MSC_TRY_OUT(solve_groups(&d));
    MSC_TRY_OUT(msc_weight_rows_factor(&d.orders, &d.rows, d.h, job->n_threads));
    MSC_TRY_OUT(msc_weight_rows_each(&d.rounded, d.h, job->n_threads, round_some, &d));
    status = msc_rounded_rows_give(out, &d.rounded, true);
out:
    msc_gptq_orders_destroy(d.orders, job->moment->n_groups);
    msc_arena_finish(&arena);
    return status;
}

// ---- Errors -----------------------------------------------------------------------------------

// Adds the error of one group for quantised rows q: mean (q x + s - w f)^2 minus mean (w f)^2,
// which equals q'Hq - 2 w F'X q + 2 s (mean of q x - w f) + s^2.
static enum msc_status add_group_error(double *out, const struct distilling *d, const float q[],
                                       int64_t group) {
    const struct msc_moment *m = d->job->moment;
    const struct msc_array *shifts = d->job->now->shifts;
    int64_t n = m->n_columns, n_rows = rows_of_group(d), first = group * n_rows;
    float *room = msc_alloc((size_t)(2 * n_rows * n) * sizeof(room[0]) + 1);
    MSC_TRY(MSC_ALLOCATED(room));
    float *by_h = room, *by_cross = room + n_rows * n;
    msc_product_f32(by_h, q + first * n, m->h + group * n * n, n_rows, n, n);
    msc_product_f32(by_cross, d->rows.values + first * n, m->cross + group * n * n, n_rows, n, n);
    for (int64_t r = 0; r < n_rows; r++) {
        const float *of_q = q + (first + r) * n, *w = d->rows.values + (first + r) * n;
        double shift = shifts ? msc_array_get_double(shifts, first + r) : 0;
        double mean = msc_dot_means(of_q, m->means + group * n, n) -
                      msc_dot_means(w, m->float_means + group * n, n);
        for (int64_t k = 0; k < n; k++) {
            *out += of_q[k] * ((double)by_h[r * n + k] - 2.0 * (double)by_cross[r * n + k]);
        }
        *out += shift * (shift + 2 * mean);
    }
    msc_free(room);
    return MSC_OK;
}

enum msc_status msc_distiller_error(double *out, const struct msc_distiller_job *job) {
    struct msc_arena arena = {0};
    struct msc_array *quantised = NULL;
    struct distilling d = {.job = job};
    enum msc_status status = MSC_OK;
    *out = 0;
    msc_linear_algebra_begin();
    MSC_TRY_OUT(distilling_init(&d, &arena));
    MSC_TRY_OUT(msc_fake_quantize_array(&quantised, job->weight->data, job->now));
    int64_t n = d.rows.n_rows * d.rows.n_columns;
    float *q = msc_arena_array(&arena, (size_t)n + 1, sizeof(q[0]));
    const float *x = msc_array_data(quantised);
    status = MSC_ALLOCATED(q);
    for (int64_t i = 0; q && i < n; i++) {
        q[i] = x[msc_weight_rows_element(&d.rows, i / d.rows.n_columns, i % d.rows.n_columns)];
    }
    for (int64_t g = 0; status == MSC_OK && g < job->moment->n_groups; g++) {
        status = add_group_error(out, &d, q, g);
    }
out:
    msc_array_release(quantised);
    msc_arena_finish(&arena);
    return status;
}
