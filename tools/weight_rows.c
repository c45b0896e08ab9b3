#include "tools/weight_rows.h"

#include "base/alloc.h"

#define LEAST_DAMPING 0.01
#define MOST_DAMPING 10.0

// ---- Rows -------------------------------------------------------------------------------------

int64_t msc_weight_rows_element(const struct msc_weight_rows *w, int64_t row, int64_t k) {
    return w->is_input_first ? k * w->n_rows + row : row * w->n_columns + k;
}

static int64_t rows_of_group(const struct msc_weight_rows *w) {
    return w->n_rows / w->n_groups;
}

enum msc_status msc_weight_rows_init(struct msc_weight_rows *w, const struct msc_tensor *weight,
                                     const struct msc_slot *slot, const struct msc_moment *moment,
                                     struct msc_arena *arena) {
    int64_t n = msc_array_n_elements(weight->data);
    const float *x = msc_array_data(weight->data);
    *w = (struct msc_weight_rows){.array = weight->data,
                                  .is_input_first = weight->n_dims == 2 && slot->channel_axis == 1,
                                  .n_groups = moment->n_groups,
                                  .n_rows = n / moment->n_columns,
                                  .n_columns = moment->n_columns};
    w->values = msc_arena_array(arena, (size_t)n + 1, sizeof(w->values[0]));
    MSC_TRY(MSC_ALLOCATED(w->values));
    for (int64_t r = 0; r < w->n_rows; r++) {
        for (int64_t k = 0; k < w->n_columns; k++) {
            w->values[r * w->n_columns + k] = x[msc_weight_rows_element(w, r, k)];
        }
    }
    return MSC_OK;
}

// ---- Integers ---------------------------------------------------------------------------------

// The index, in the quantisation's scales, of a row's scale for block `block`.
static int64_t scale_of(const struct msc_rounded_rows *r, int64_t row, int64_t block) {
    return r->form.n == 1            ? 0
           : r->rows->is_input_first ? block * r->rows->n_rows + row
                                     : row * r->n_blocks + block;
}

enum msc_status msc_rounded_rows_init(struct msc_rounded_rows *r, const struct msc_weight_rows *w,
                                      const struct msc_quant *now, struct msc_scheme scheme,
                                      bool has_shifts, struct msc_arena *arena) {
    int64_t size = now->group_size > 0 ? now->group_size : w->n_columns;
    *r = (struct msc_rounded_rows){
        .rows = w, .form = *now, .scheme = scheme, .n_blocks = (w->n_columns + size - 1) / size};
    size_t n_scales = (size_t)(w->n_rows * r->n_blocks) + 1;
    size_t n_shifts = has_shifts ? (size_t)w->n_rows + 1 : 1;
    float *shifts = msc_arena_array(arena, n_shifts, sizeof(shifts[0]));
    r->scales = msc_arena_array(arena, n_scales, sizeof(r->scales[0]));
    r->zero_points = msc_arena_array(arena, n_scales, sizeof(r->zero_points[0]));
    r->integers =
        msc_arena_array(arena, (size_t)(w->n_rows * w->n_columns) + 1, sizeof(r->integers[0]));
    r->shifts = has_shifts ? shifts : NULL;
    MSC_TRY(MSC_ALLOCATED(shifts && r->scales && r->zero_points && r->integers));
    for (int64_t row = 0; row < w->n_rows; row++) {
        for (int64_t b = 0; b < r->n_blocks; b++) {
            r->scales[row * r->n_blocks + b] = now->scales[scale_of(r, row, b)];
            r->zero_points[row * r->n_blocks + b] = now->zero_points[scale_of(r, row, b)];
        }
    }
    return MSC_OK;
}

static enum msc_status give_integers(struct msc_array **out, const struct msc_rounded_rows *r) {
    const struct msc_weight_rows *w = r->rows;
    MSC_TRY(msc_array_create(out, r->scheme.is_symmetric ? MSC_DTYPE_I8 : MSC_DTYPE_U8,
                             msc_array_n_dims(w->array), msc_array_dims(w->array)));
    uint8_t *bytes = msc_array_data(*out);
    for (int64_t row = 0; row < w->n_rows; row++) {
        for (int64_t k = 0; k < w->n_columns; k++) {
            bytes[msc_weight_rows_element(w, row, k)] =
                (uint8_t)r->integers[row * w->n_columns + k];
        }
    }
    return MSC_OK;
}

enum msc_status msc_rounded_rows_give(struct msc_quant *out, const struct msc_rounded_rows *r,
                                      bool has_integers) {
    struct msc_array *integers = NULL, *shifts = NULL;
    float *scales = msc_alloc((size_t)r->form.n * sizeof(scales[0]) + 1);
    int32_t *zeros = msc_alloc((size_t)r->form.n * sizeof(zeros[0]) + 1);
    enum msc_status status = MSC_ALLOCATED(scales && zeros);
    if (status == MSC_OK && has_integers) {
        status = give_integers(&integers, r);
    }
    if (status == MSC_OK && r->shifts) {
        status = msc_array_create_from(&shifts, MSC_DTYPE_F32, 1, &r->rows->n_rows, r->shifts);
    }
    if (status != MSC_OK) {
        msc_array_release(integers);
        msc_free(scales);
        msc_free(zeros);
        return status;
    }
    for (int64_t row = 0; row < r->rows->n_rows; row++) {
        for (int64_t b = 0; b < r->n_blocks; b++) {
            scales[scale_of(r, row, b)] = r->scales[row * r->n_blocks + b];
            zeros[scale_of(r, row, b)] = r->zero_points[row * r->n_blocks + b];
        }
    }
    *out = r->form;
    out->scales = scales;
    out->zero_points = zeros;
    out->integers = integers;
    out->shifts = shifts;
    msc_scheme_limits(&r->scheme, &out->low, &out->high);
    msc_quant_seal(out);
    return MSC_OK;
}

// ---- In parallel ------------------------------------------------------------------------------

static enum msc_status factor_group(struct msc_gptq_order **out, const struct msc_weight_rows *w,
                                    const float h[]) {
    enum msc_status status = MSC_E_INVALID;
    for (double damping = LEAST_DAMPING; status == MSC_E_INVALID && damping <= MOST_DAMPING;
         damping *= 10) {
        status = msc_gptq_order_create(out, h, w->n_columns, damping);
    }
    return status;
}

void msc_gptq_orders_destroy(struct msc_gptq_order **orders, int64_t n) {
    for (int64_t g = 0; orders && g < n; g++) {
        msc_gptq_order_destroy(orders[g]);
    }
    msc_free(orders);
}

enum msc_status msc_weight_rows_factor(struct msc_gptq_order ***out,
                                       const struct msc_weight_rows *w, const float h[],
                                       int n_threads) {
    struct msc_gptq_order **orders = msc_alloc_zero((size_t)w->n_groups + 1, sizeof(orders[0]));
    int64_t n = w->n_columns;
    int worst = MSC_OK;
    MSC_TRY(MSC_ALLOCATED(orders));
#pragma omp parallel for num_threads(n_threads) schedule(dynamic) reduction(min : worst)
    for (int64_t g = 0; g < w->n_groups; g++) {
        int status = factor_group(&orders[g], w, h + g * n * n);
        worst = status < worst ? status : worst;
    }
    if (worst != MSC_OK) {
        msc_gptq_orders_destroy(orders, w->n_groups);
        return worst == MSC_E_INVALID
                   ? MSC_FAIL(
                         MSC_E_INVALID,
                         "the second moments of a weight's inputs have no Cholesky factor; use "
                         "\"rounding\": \"nearest\"")
                   : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    *out = orders;
    return MSC_OK;
}

enum msc_status msc_weight_rows_each(const struct msc_rounded_rows *r, const float h[],
                                     int n_threads, msc_weight_rows_work work, void *payload) {
    const struct msc_weight_rows *w = r->rows;
    int64_t n = w->n_columns, of_group = rows_of_group(w);
    int64_t n_parts = (of_group + MSC_ROUNDING_ROWS - 1) / MSC_ROUNDING_ROWS;
    int worst = MSC_OK;
#pragma omp parallel for num_threads(n_threads) schedule(dynamic) reduction(min : worst)
    for (int64_t i = 0; i < w->n_groups * n_parts; i++) {
        int64_t group = i / n_parts, at = i % n_parts * MSC_ROUNDING_ROWS;
        int64_t left = of_group - at, first = group * of_group + at;
        struct msc_rounding_rows rows = {
            .n_rows = left < MSC_ROUNDING_ROWS ? left : MSC_ROUNDING_ROWS,
            .n_columns = n,
            .weights = w->values + first * n,
            .h = h + group * n * n,
            .scheme = r->scheme,
            .group_size = r->form.group_size,
            .scales = r->scales + first * r->n_blocks,
            .zero_points = r->zero_points + first * r->n_blocks,
            .integers = r->integers + first * n,
        };
        int status = work(payload, &rows, group, first);
        worst = status < worst ? status : worst;
    }
    return MSC_ALLOCATED(worst == MSC_OK);
}
