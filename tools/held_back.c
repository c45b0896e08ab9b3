#include "tools/held_back.h"

#include "base/alloc.h"
#include "tools/linear_algebra.h"

// Room for one group of rows.
struct room {
    float *off;     // [n_columns, rows of the group] errors q - w
    float *outputs; // [n_held, rows of the group]
};

static double error_of_group(const struct room *room, const struct msc_weight_rows *w,
                             const struct msc_moment *m, const struct msc_quant *quant,
                             const float quantised[], int64_t group) {
    int64_t n = w->n_columns, n_rows = w->n_rows / w->n_groups, first = group * n_rows;
    const float *weights = msc_array_data(w->array);
    double error = 0;
    for (int64_t k = 0; k < n; k++) {
        for (int64_t r = 0; r < n_rows; r++) {
            int64_t at = msc_weight_rows_element(w, first + r, k);
            room->off[k * n_rows + r] = quantised[at] - weights[at];
        }
    }
    msc_product_f32(room->outputs, m->held + group * m->n_held * n, room->off, m->n_held, n,
                    n_rows);
    for (int64_t i = 0; i < m->n_held * n_rows; i++) {
        double shift = quant->shifts ? msc_array_get_double(quant->shifts, first + i % n_rows) : 0;
        double output = (double)room->outputs[i] + shift;
        error += output * output;
    }
    return error;
}

enum msc_status msc_held_back_error(double *error, const struct msc_weight_rows *w,
                                    const struct msc_moment *m, const struct msc_quant *quant) {
    size_t n_rows = (size_t)(w->n_rows / w->n_groups);
    struct room room = {
        .off = msc_alloc((size_t)w->n_columns * n_rows * sizeof(float) + 1),
        .outputs = msc_alloc((size_t)m->n_held * n_rows * sizeof(float) + 1),
    };
    struct msc_array *quantised = NULL;
    enum msc_status status = MSC_ALLOCATED(room.off && room.outputs);
    if (status == MSC_OK) {
        status = msc_fake_quantize_array(&quantised, w->array, quant);
    }
    *error = 0;
    for (int64_t g = 0; status == MSC_OK && g < w->n_groups; g++) {
        *error += error_of_group(&room, w, m, quant, msc_array_data(quantised), g);
    }
    msc_array_release(quantised);
    msc_free(room.off);
    msc_free(room.outputs);
    return status;
}
