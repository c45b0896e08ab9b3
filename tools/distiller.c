#include "tools/distiller.h"

#include "base/alloc.h"
#include "tools/linear_algebra.h"
#include "tools/rounding.h"

#include <math.h>
#include <string.h>

enum { DESCENT_PASSES = 4 };
#define DAMPING 0.01 // of GPTQ, and how far it is raised where H has no factor
#define MOST_DAMPING 10.0

struct distilling {
    const struct msc_distiller_job *job;
    struct msc_scheme scheme;
    bool is_input_first; // the weight is [columns, rows]
    int64_t n_rows, n_columns;
    int64_t n_blocks;     // scales of a row
    const float *h;       // as the moment's; around the means where there are shifts
    const float *cross;   // the same
    float *weights;       // [n_rows, n_columns]
    double *means;        // [n_rows] of what the float model gives, without its bias
    float *shifts;        // [n_rows]; NULL: none
    float *scales;        // [n_rows, n_blocks]
    int32_t *zero_points; // [n_rows, n_blocks]
    int32_t *integers;    // [n_rows, n_columns]
};

static enum msc_status no_distiller_memory(void) {
    return MSC_FAIL(MSC_E_NOMEM, "out of memory for better weights");
}

bool msc_distiller_takes(const struct msc_quant *quant) {
    return quant && quant->type == MSC_DTYPE_NONE && quant->bits <= 8;
}

static int64_t rows_of_group(const struct distilling *d) {
    return d->n_rows / d->job->moment->n_groups;
}

// Element k of row r in the weight's own array, and scale `block` of it in that of a quantisation.
static int64_t element_of(const struct distilling *d, int64_t row, int64_t k) {
    return d->is_input_first ? k * d->n_rows + row : row * d->n_columns + k;
}

static int64_t scale_of(const struct distilling *d, int64_t row, int64_t block) {
    return d->job->now->n == 1 ? 0
           : d->is_input_first ? block * d->n_rows + row
                               : row * d->n_blocks + block;
}

static double dot_of_means(const double means[], const float w[], int64_t n) {
    double sum = 0;
    for (int64_t k = 0; k < n; k++) {
        sum += means[k] * w[k];
    }
    return sum;
}

// Products of two columns around their means: a bias makes up for these.
static float *centre(const float products[], const double a[], const double b[],
                     const struct msc_moment *m, struct msc_arena *arena) {
    int64_t n = m->n_columns;
    float *out = msc_arena_array(arena, (size_t)(m->n_groups * n * n) + 1, sizeof(out[0]));
    for (int64_t i = 0; out && i < m->n_groups * n * n; i++) {
        int64_t group = i / (n * n), row = i / n % n, column = i % n;
        out[i] = (float)(products[i] - a[group * n + row] * b[group * n + column]);
    }
    return out;
}

static enum msc_status take_moments(struct distilling *d, struct msc_arena *arena) {
    const struct msc_moment *m = d->job->moment;
    d->h = m->h;
    d->cross = m->cross;
    d->means = msc_arena_array(arena, (size_t)d->n_rows + 1, sizeof(d->means[0]));
    if (d->job->has_shifts) {
        d->h = centre(m->h, m->means, m->means, m, arena);
        d->cross = centre(m->cross, m->float_means, m->means, m, arena);
        d->shifts = msc_arena_array(arena, (size_t)d->n_rows + 1, sizeof(d->shifts[0]));
    }
    bool has_all = d->h && d->cross && d->means && (d->shifts || !d->job->has_shifts);
    return has_all ? MSC_OK : no_distiller_memory();
}

// The rows as they were trained, with the scales of the plan.
static enum msc_status distilling_init(struct distilling *d, struct msc_arena *arena) {
    const struct msc_distiller_job *job = d->job;
    const struct msc_quant *now = job->now;
    const float *x = msc_array_data(job->weight->data);
    size_t n = (size_t)msc_array_n_elements(job->weight->data);
    d->scheme = (struct msc_scheme){.bits = now->bits,
                                    .is_symmetric = now->low < 0,
                                    .is_weight = true,
                                    .has_lowest = !job->target || !job->target->narrow_weights};
    d->is_input_first = job->weight->n_dims == 2 && job->slot->channel_axis == 1;
    d->n_columns = job->moment->n_columns;
    d->n_rows = (int64_t)n / d->n_columns;
    d->n_blocks = now->group_size > 0 ? (d->n_columns + now->group_size - 1) / now->group_size : 1;
    size_t n_scales = (size_t)(d->n_rows * d->n_blocks);
    d->weights = msc_arena_array(arena, n + 1, sizeof(d->weights[0]));
    d->scales = msc_arena_array(arena, n_scales + 1, sizeof(d->scales[0]));
    d->zero_points = msc_arena_array(arena, n_scales + 1, sizeof(d->zero_points[0]));
    d->integers = msc_arena_array(arena, n + 1, sizeof(d->integers[0]));
    if (!d->weights || !d->scales || !d->zero_points || !d->integers) {
        return no_distiller_memory();
    }
    for (int64_t r = 0; r < d->n_rows; r++) {
        for (int64_t k = 0; k < d->n_columns; k++) {
            d->weights[r * d->n_columns + k] = x[element_of(d, r, k)];
        }
        for (int64_t b = 0; b < d->n_blocks; b++) {
            d->scales[r * d->n_blocks + b] = now->scales[scale_of(d, r, b)];
            d->zero_points[r * d->n_blocks + b] = now->zero_points[scale_of(d, r, b)];
        }
    }
    return take_moments(d, arena);
}

// ---- Least squares ----------------------------------------------------------------------------

// h + d I, as the upper triangle that is read; returns d.
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

// A group that nothing comes in by keeps its weights.
static enum msc_status solve_group(struct distilling *d, int64_t group) {
    const struct msc_moment *m = d->job->moment;
    int64_t n = m->n_columns, n_rows = rows_of_group(d);
    size_t n_weights = (size_t)(n_rows * n);
    float *w = d->weights + group * n_rows * n;
    float *moved = msc_alloc(n_weights * sizeof(moved[0]) + 1);
    double *b = msc_alloc(n_weights * sizeof(b[0]) + 1);
    double *a = msc_alloc((size_t)(n * n) * sizeof(a[0]) + 1);
    enum msc_status status = moved && b && a ? MSC_OK : MSC_E_NOMEM;
    for (int64_t r = 0; d->shifts && r < n_rows; r++) {
        d->means[group * n_rows + r] = dot_of_means(m->float_means + group * n, w + r * n, n);
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

static enum msc_status make_order(struct msc_gptq_order **out, const struct distilling *d,
                                  int64_t group) {
    int64_t n = d->n_columns;
    const float *h = d->h + group * n * n;
    enum msc_status status = MSC_E_INVALID;
    for (double damping = DAMPING; status == MSC_E_INVALID && damping <= MOST_DAMPING;
         damping *= 10) {
        status = msc_gptq_order_create(out, h, n, damping);
    }
    return status;
}

// What the mean of a row's outputs is off by.
static void shift_row(struct distilling *d, int64_t group, int64_t row) {
    int64_t n = d->n_columns, size = d->job->now->group_size > 0 ? d->job->now->group_size : n;
    const double *means = d->job->moment->means + group * n;
    double mean = 0;
    for (int64_t k = 0; k < n; k++) {
        int64_t block = row * d->n_blocks + k / size;
        int32_t q = d->integers[row * n + k] - d->zero_points[block];
        mean += means[k] * q * d->scales[block];
    }
    d->shifts[row] = (float)(d->means[row] - mean);
}

// Rows [first, first + n) of a group.
static enum msc_status round_rows(struct distilling *d, const struct msc_gptq_order *order,
                                  int64_t group, int64_t first, int64_t n_rows) {
    int64_t n = d->n_columns, row = group * rows_of_group(d) + first;
    struct msc_rounding_rows rows = {
        .n_rows = n_rows,
        .n_columns = n,
        .weights = d->weights + row * n,
        .h = d->h + group * n * n,
        .scheme = d->scheme,
        .group_size = d->job->now->group_size,
        .scales = d->scales + row * d->n_blocks,
        .zero_points = d->zero_points + row * d->n_blocks,
        .integers = d->integers + row * n,
    };
    if (d->job->now->n > 1) {
        MSC_TRY(msc_rounding_fit(&rows));
    }
    MSC_TRY(msc_rounding_gptq(&rows, order));
    MSC_TRY(msc_rounding_descend(&rows, DESCENT_PASSES));
    for (int64_t r = 0; d->shifts && r < n_rows; r++) {
        shift_row(d, group, row + r);
    }
    return MSC_OK;
}

// ---- In parallel ------------------------------------------------------------------------------

static enum msc_status fail_distiller(int worst) {
    return worst == MSC_E_INVALID
               ? MSC_FAIL(MSC_E_INVALID, "no weights fit the second moments of their inputs")
               : no_distiller_memory();
}

// The text of what failed stays with the thread that it failed on.
static enum msc_status solve_groups(struct distilling *d, struct msc_gptq_order *orders[]) {
    int64_t n_groups = d->job->moment->n_groups;
    int worst = MSC_OK;
#pragma omp parallel for num_threads(d->job->n_threads) schedule(dynamic) reduction(min : worst)
    for (int64_t g = 0; g < n_groups; g++) {
        int status = solve_group(d, g);
        status = status == MSC_OK ? (int)make_order(&orders[g], d, g) : status;
        worst = status < worst ? status : worst;
    }
    return worst == MSC_OK ? MSC_OK : fail_distiller(worst);
}

static enum msc_status round_groups(struct distilling *d, struct msc_gptq_order *const orders[]) {
    int64_t of_group = rows_of_group(d);
    int64_t n_parts = (of_group + MSC_ROUNDING_ROWS - 1) / MSC_ROUNDING_ROWS;
    int worst = MSC_OK;
#pragma omp parallel for num_threads(d->job->n_threads) schedule(dynamic) reduction(min : worst)
    for (int64_t i = 0; i < d->job->moment->n_groups * n_parts; i++) {
        int64_t group = i / n_parts, first = i % n_parts * MSC_ROUNDING_ROWS;
        int64_t left = of_group - first;
        int status = round_rows(d, orders[group], group, first,
                                left < MSC_ROUNDING_ROWS ? left : MSC_ROUNDING_ROWS);
        worst = status < worst ? status : worst;
    }
    return worst == MSC_OK ? MSC_OK : fail_distiller(worst);
}

static enum msc_status improve_rows(struct distilling *d) {
    int64_t n_groups = d->job->moment->n_groups;
    struct msc_gptq_order **orders = msc_alloc_zero((size_t)n_groups + 1, sizeof(orders[0]));
    enum msc_status status = orders ? MSC_OK : no_distiller_memory();
    if (status == MSC_OK) {
        status = solve_groups(d, orders);
    }
    if (status == MSC_OK) {
        status = round_groups(d, orders);
    }
    for (int64_t g = 0; orders && g < n_groups; g++) {
        msc_gptq_order_destroy(orders[g]);
    }
    msc_free(orders);
    return status;
}

// What was found in the order of the weight.
static enum msc_status keep_improved(struct msc_quant *out, const struct distilling *d) {
    const struct msc_quant *now = d->job->now;
    const struct msc_array *weight = d->job->weight->data;
    struct msc_array *integers = NULL, *shifts = NULL;
    float *scales = msc_alloc((size_t)now->n * sizeof(scales[0]));
    int32_t *zeros = msc_alloc((size_t)now->n * sizeof(zeros[0]));
    enum msc_status status = scales && zeros ? MSC_OK : no_distiller_memory();
    if (status == MSC_OK) {
        status = msc_array_create(&integers, d->scheme.is_symmetric ? MSC_DTYPE_I8 : MSC_DTYPE_U8,
                                  msc_array_n_dims(weight), msc_array_dims(weight));
    }
    if (status == MSC_OK && d->shifts) {
        status = msc_array_create_from(&shifts, MSC_DTYPE_F32, 1, &d->n_rows, d->shifts);
    }
    if (status != MSC_OK) {
        msc_array_release(integers);
        msc_free(scales);
        msc_free(zeros);
        return status;
    }
    uint8_t *bytes = msc_array_data(integers);
    for (int64_t r = 0; r < d->n_rows; r++) {
        for (int64_t k = 0; k < d->n_columns; k++) {
            bytes[element_of(d, r, k)] = (uint8_t)d->integers[r * d->n_columns + k];
        }
        for (int64_t b = 0; b < d->n_blocks; b++) {
            scales[scale_of(d, r, b)] = d->scales[r * d->n_blocks + b];
            zeros[scale_of(d, r, b)] = d->zero_points[r * d->n_blocks + b];
        }
    }
    *out = *now;
    out->scales = scales;
    out->zero_points = zeros;
    out->integers = integers;
    out->shifts = shifts;
    msc_scheme_limits(&d->scheme, &out->low, &out->high);
    msc_quant_seal(out);
    return MSC_OK;
}

enum msc_status msc_distiller_improve(struct msc_quant *out, const struct msc_distiller_job *job) {
    struct msc_arena arena = {0};
    struct distilling d = {.job = job};
    enum msc_status status = MSC_OK;
    msc_linear_algebra_begin();
    MSC_TRY_OUT(distilling_init(&d, &arena));
    MSC_TRY_OUT(improve_rows(&d));
    status = keep_improved(out, &d);
out:
    msc_arena_finish(&arena);
    return status;
}

// ---- Errors -----------------------------------------------------------------------------------

// Of one group: mean (q x + s - w f)^2 less mean (w f)^2, which is q'Hq - 2 w F'X q + 2 s (mean of
// q x - w f) + s^2, with q the rows as they are quantised.
static enum msc_status add_group_error(double *out, const struct distilling *d, const float q[],
                                       int64_t group) {
    const struct msc_moment *m = d->job->moment;
    const struct msc_array *shifts = d->job->now->shifts;
    int64_t n = m->n_columns, n_rows = rows_of_group(d), first = group * n_rows;
    float *room = msc_alloc((size_t)(2 * n_rows * n) * sizeof(room[0]) + 1);
    if (!room) {
        return no_distiller_memory();
    }
    float *by_h = room, *by_cross = room + n_rows * n;
    msc_product_f32(by_h, q + first * n, m->h + group * n * n, n_rows, n, n);
    msc_product_f32(by_cross, d->weights + first * n, m->cross + group * n * n, n_rows, n, n);
    for (int64_t r = 0; r < n_rows; r++) {
        const float *of_q = q + (first + r) * n, *w = d->weights + (first + r) * n;
        double shift = shifts ? msc_array_get_double(shifts, first + r) : 0;
        double mean = dot_of_means(m->means + group * n, of_q, n) -
                      dot_of_means(m->float_means + group * n, w, n);
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
    float *q = msc_arena_array(&arena, (size_t)(d.n_rows * d.n_columns) + 1, sizeof(q[0]));
    const float *x = msc_array_data(quantised);
    status = q ? MSC_OK : no_distiller_memory();
    for (int64_t i = 0; q && i < d.n_rows * d.n_columns; i++) {
        q[i] = x[element_of(&d, i / d.n_columns, i % d.n_columns)];
    }
    for (int64_t g = 0; status == MSC_OK && g < job->moment->n_groups; g++) {
        status = add_group_error(out, &d, q, g);
    }
out:
    msc_array_release(quantised);
    msc_arena_finish(&arena);
    return status;
}
