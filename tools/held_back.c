#include "tools/held_back.h"

#include "base/alloc.h"
#include "tools/linear_algebra.h"

// The judged weight, and room. Rows are judged in parts of up to MSC_ROUNDING_ROWS of one group.
struct judging {
    const struct msc_weight_rows *w;
    const struct msc_moment *m;
    const struct msc_quant *quant;
    const float *quantised; // elements
    float *held;            // [n_groups, n_columns, n_held], the rows held back, transposed
    double *errors;         // of the parts
};

static void transpose_held(struct judging *j) {
    int64_t n = j->w->n_columns, n_held = j->m->n_held;
    for (int64_t g = 0; g < j->w->n_groups; g++) {
        for (int64_t i = 0; i < n_held * n; i++) {
            j->held[(g * n + i % n) * n_held + i / n] = j->m->held[g * n_held * n + i];
        }
    }
}

// Sets *error for rows [first, first + n_rows) of a group. MSC_E_NOMEM, without a message.
static enum msc_status judge_rows(double *error, const struct judging *j, int64_t group,
                                  int64_t first, int64_t n_rows) {
    int64_t n = j->w->n_columns, n_held = j->m->n_held;
    const float *weights = msc_array_data(j->w->array);
    float *off = msc_alloc((size_t)(n_rows * (n + n_held)) * sizeof(off[0]) + 1);
    float *outputs = off + n_rows * n;
    if (!off) {
        return MSC_E_NOMEM;
    }
    for (int64_t i = 0; i < n_rows * n; i++) {
        int64_t at = msc_weight_rows_element(j->w, first + i / n, i % n);
        off[i] = j->quantised[at] - weights[at];
    }
    msc_product_f32(outputs, off, j->held + group * n * n_held, n_rows, n, n_held);
    *error = 0;
    for (int64_t i = 0; i < n_rows * n_held; i++) {
        const struct msc_array *shifts = j->quant->shifts;
        double shift = shifts ? msc_array_get_double(shifts, first + i / n_held) : 0;
        *error += ((double)outputs[i] + shift) * ((double)outputs[i] + shift);
    }
    msc_free(off);
    return MSC_OK;
}

// Sums the errors in the order of the parts.
static enum msc_status judge_parts(double *error, const struct judging *j, int64_t n_parts,
                                   int n_threads) {
    int64_t of_group = j->w->n_rows / j->w->n_groups, parts_of_group = n_parts / j->w->n_groups;
    int worst = MSC_OK;
#pragma omp parallel for num_threads(n_threads) schedule(dynamic) reduction(min : worst)
    for (int64_t p = 0; p < n_parts; p++) {
        int64_t group = p / parts_of_group, at = p % parts_of_group * MSC_ROUNDING_ROWS;
        int64_t n_rows = of_group - at < MSC_ROUNDING_ROWS ? of_group - at : MSC_ROUNDING_ROWS;
        int status = judge_rows(&j->errors[p], j, group, group * of_group + at, n_rows);
        worst = status < worst ? status : worst;
    }
    *error = 0;
    for (int64_t p = 0; p < n_parts; p++) {
        *error += j->errors[p];
    }
    return MSC_ALLOCATED(worst == MSC_OK);
}

enum msc_status msc_held_back_error(double *error, const struct msc_weight_rows *w,
                                    const struct msc_moment *m, const struct msc_quant *quant,
                                    int n_threads) {
    int64_t of_group = w->n_rows / w->n_groups;
    int64_t n_parts = w->n_groups * ((of_group + MSC_ROUNDING_ROWS - 1) / MSC_ROUNDING_ROWS);
    struct msc_array *quantised = NULL;
    struct judging j = {
        .w = w,
        .m = m,
        .quant = quant,
        .held = msc_alloc((size_t)(w->n_groups * w->n_columns * m->n_held) * sizeof(float) + 1),
        .errors = msc_alloc_zero((size_t)n_parts + 1, sizeof(double)),
    };
    enum msc_status status = MSC_ALLOCATED(j.held && j.errors);
    if (status == MSC_OK) {
        status = msc_fake_quantize_array(&quantised, w->array, quant);
    }
    if (status == MSC_OK) {
        j.quantised = msc_array_data(quantised);
        transpose_held(&j);
        status = judge_parts(error, &j, n_parts, n_threads);
    }
    msc_array_release(quantised);
    msc_free(j.held);
    msc_free(j.errors);
    return status;
}
