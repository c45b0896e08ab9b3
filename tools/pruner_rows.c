// Prepares a consumer's weight as rows, with the moments of its inputs.
#include "tools/pruner_internal.h"

enum msc_status msc_pruner__rows(struct msc_pruner_rows *out, const struct msc_pruner *p,
                                 const struct msc_consumer *c, struct msc_arena *arena) {
    const struct msc_tensor *t = msc_graph_tensor(p->g, c->tensor);
    const struct msc_slot *slot = &p->sites.slots[c->slots[0]];
    // The layout of the joint's rows, for a consumer without moments.
    const struct msc_moment shape = {.n_groups = c->n_row_groups, .n_columns = c->n_columns};
    const struct msc_moment *moment = c->moment.n_groups > 0 ? &c->moment : &shape;
    int64_t n = moment->n_columns;
    int64_t inner = msc_dims_product(t->n_dims - c->axis - 1, t->dims + c->axis + 1);
    int32_t *unit = msc_arena_array(arena, (size_t)n + 1, sizeof(unit[0]));
    MSC_TRY(MSC_ALLOCATED(unit));
    MSC_TRY(msc_weight_rows_init(&out->rows, t, slot, moment, arena));
    for (int64_t k = 0; k < n; k++) {
        int64_t element = msc_weight_rows_element(&out->rows, 0, k);
        unit[k] =
            msc_channels_unit(&p->channels, c->tensor, c->axis, element / inner % t->dims[c->axis]);
    }
    out->unit = unit;
    out->is_centred = c->bias_slot != MSC_NO_ID;
    return MSC_OK;
}

double msc_pruner__damping(const struct msc_pruner_rows *r, const struct msc_consumer *c,
                           int64_t group, double ridge) {
    int64_t n = c->moment.n_columns;
    double sum = 0;
    for (int64_t k = 0; k < n; k++) {
        sum += msc_pruner__moment(r, c, group, k, k);
    }
    return sum > 0 ? ridge * sum / (double)n : ridge;
}

void msc_pruner__fill_moments(double out[], const struct msc_pruner_rows *r,
                              const struct msc_consumer *c, int64_t group, const int64_t columns[],
                              int64_t n, double damping) {
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < n; k++) {
            out[i * n + k] = msc_pruner__moment(r, c, group, columns ? columns[i] : i,
                                                columns ? columns[k] : k) +
                             (i == k ? damping : 0);
        }
    }
}
