// Ranks the units of a group for removal, by each criterion.
#include "tools/elimination.h"
#include "tools/linear_algebra.h"
#include "tools/pruner_internal.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// While more units than this remain, several are removed at a time, to limit the updates of the
// inverses.
enum { UNITS_ONE_BY_ONE = 64 };

// ---- By scores --------------------------------------------------------------------------------

struct scored {
    double score;
    int32_t unit;
};

static int compare_scores(const void *a, const void *b) {
    const struct scored *x = a, *y = b;
    return x->score != y->score ? (x->score < y->score ? -1 : 1) : x->unit - y->unit;
}

static enum msc_status make_order(int32_t **out, struct msc_pruner *p, int32_t group,
                                  enum msc_criterion criterion) {
    size_t n = (size_t)p->channels.groups[group].n_units;
    int32_t **order = &p->groups[group].orders[criterion];
    *order = *order ? *order : msc_arena_array(&p->arena, n + 1, sizeof((*order)[0]));
    *out = *order;
    return MSC_ALLOCATED(*order);
}

enum msc_status msc_pruner_rank(struct msc_pruner *p, int32_t group, enum msc_criterion criterion,
                                const double scores[]) {
    int32_t n = p->channels.groups[group].n_units;
    int32_t *order;
    MSC_TRY(make_order(&order, p, group, criterion));
    struct scored *ranked = msc_alloc_zero((size_t)n, sizeof(ranked[0]));
    MSC_TRY(MSC_ALLOCATED(ranked));
    for (int32_t i = 0; i < n; i++) {
        ranked[i] = (struct scored){isnan(scores[i]) ? DBL_MAX : scores[i], i};
    }
    qsort(ranked, (size_t)n, sizeof(ranked[0]), compare_scores);
    for (int32_t i = 0; i < n; i++) {
        order[i] = ranked[i].unit;
    }
    msc_free(ranked);
    return MSC_OK;
}

// ---- Norms ------------------------------------------------------------------------------------

static void add_norms(double scores[], const struct msc_pruner *p,
                      const struct msc_channel_group *group, const struct msc_channel_axis *at,
                      bool is_square) {
    const struct msc_tensor *t = msc_graph_tensor(p->g, at->tensor);
    int64_t inner = msc_dims_product(t->n_dims - at->axis - 1, t->dims + at->axis + 1);
    for (int64_t i = 0; i < msc_array_n_elements(t->data); i++) {
        int32_t unit =
            msc_channels_unit(&p->channels, at->tensor, at->axis, i / inner % t->dims[at->axis]);
        int32_t own = unit - group->first_unit;
        double x = msc_array_get_double(t->data, i);
        if (unit != MSC_NO_ID && own >= 0 && own < group->n_units) {
            scores[own] += is_square ? x * x : fabs(x);
        }
    }
}

static void score_norms(double scores[], const struct msc_pruner *p, int32_t index,
                        bool is_square) {
    const struct msc_channel_group *group = &p->channels.groups[index];
    for (int32_t i = 0; i < group->n_axes; i++) {
        const struct msc_tensor *t = msc_graph_tensor(p->g, group->axes[i].tensor);
        if ((group->axes[i].roles & MSC_CHANNEL_MAKES) && t->data) {
            add_norms(scores, p, group, &group->axes[i], is_square);
        }
    }
}

// ---- Consumers --------------------------------------------------------------------------------

// One group of rows of a consumer that reads the units.
struct reading {
    const struct msc_consumer *consumer;
    struct msc_pruner_rows rows;
    int64_t group; // index in the consumer's moment
    int32_t n_units;
    double share;     // 1 / energy of the consumer
    int64_t *columns; // columns of all units, unit by unit
    int64_t *first;   // [n_units + 1] start of each unit's columns in `columns`
    double *w;        // [n_rows, n]
    double *c;        // [n, n] the moments
    struct msc_elimination *left;
};

struct readings {
    struct msc_arena arena; // holds the rows and columns
    size_t n;
    struct reading *all;
    int32_t n_units;
};

static int64_t rows_of(const struct reading *r) {
    return r->rows.rows.n_rows / r->rows.rows.n_groups;
}

static enum msc_status list_columns(struct reading *r, const struct msc_channel_group *group,
                                    struct msc_arena *arena) {
    int64_t n = r->rows.rows.n_columns, n_listed = 0;
    r->columns = msc_arena_array(arena, (size_t)n + 1, sizeof(r->columns[0]));
    r->first = msc_arena_array(arena, (size_t)group->n_units + 1, sizeof(r->first[0]));
    MSC_TRY(MSC_ALLOCATED(r->columns && r->first));
    for (int32_t u = 0; u < group->n_units; u++) {
        r->first[u] = n_listed;
        for (int64_t k = 0; k < n; k++) {
            if (r->rows.unit[k] == group->first_unit + u) {
                r->columns[n_listed++] = k;
            }
        }
    }
    r->first[group->n_units] = n_listed;
    return MSC_OK;
}

static const float *weights_of(const struct reading *r) {
    return r->rows.rows.values + r->group * rows_of(r) * r->rows.rows.n_columns;
}

static enum msc_status fill_moments(struct reading *r, double damping) {
    int64_t n = r->rows.rows.n_columns;
    r->c = msc_alloc((size_t)(n * n) * sizeof(r->c[0]) + 1);
    MSC_TRY(MSC_ALLOCATED(r->c));
    msc_pruner__fill_moments(r->c, &r->rows, r->consumer, r->group, NULL, n, damping);
    return MSC_OK;
}

static enum msc_status reading_fill(struct reading *r) {
    int64_t n = rows_of(r) * r->rows.rows.n_columns;
    const float *values = weights_of(r);
    r->w = msc_alloc((size_t)n * sizeof(r->w[0]) + 1);
    MSC_TRY(MSC_ALLOCATED(r->w));
    for (int64_t i = 0; i < n; i++) {
        r->w[i] = values[i];
    }
    return fill_moments(r, 0);
}

static void reading_empty(struct reading *r) {
    msc_free(r->w);
    msc_free(r->c);
    msc_elimination_destroy(r->left);
    r->w = r->c = NULL;
    r->left = NULL;
}

// Adds tr(W C W').
static enum msc_status add_energy(double *out, const struct reading *r) {
    int64_t n = r->rows.rows.n_columns, n_rows = rows_of(r);
    double *product = msc_alloc((size_t)(n_rows * n) * sizeof(product[0]) + 1);
    MSC_TRY(MSC_ALLOCATED(product));
    msc_product_f64(product, r->w, r->c, n_rows, n, n);
    for (int64_t i = 0; i < n_rows * n; i++) {
        *out += product[i] * r->w[i];
    }
    msc_free(product);
    return MSC_OK;
}

static enum msc_status add_consumer(struct readings *out, const struct msc_pruner *p, int32_t group,
                                    const struct msc_consumer *c) {
    struct msc_pruner_rows rows;
    double energy = 0;
    size_t first = out->n;
    MSC_TRY(msc_pruner__rows(&rows, p, c, &out->arena));
    for (int64_t g = 0; g < c->moment.n_groups; g++) {
        struct reading *r = &out->all[out->n++];
        *r = (struct reading){.consumer = c, .rows = rows, .group = g, .n_units = out->n_units};
        MSC_TRY(list_columns(r, &p->channels.groups[group], &out->arena));
        MSC_TRY(reading_fill(r));
        MSC_TRY(add_energy(&energy, r));
        reading_empty(r);
    }
    for (size_t i = first; i < out->n; i++) {
        out->all[i].share = energy > 0 ? 1 / energy : 0;
    }
    return MSC_OK;
}

static enum msc_status readings_init(struct readings *out, const struct msc_pruner *p,
                                     int32_t group) {
    const struct msc_pruner_group *of = &p->groups[group];
    size_t n = 0;
    out->n_units = p->channels.groups[group].n_units;
    for (int32_t i = 0; i < of->n_consumers; i++) {
        n += (size_t)p->consumers[of->consumers[i]].moment.n_groups;
    }
    out->all = msc_arena_array(&out->arena, n + 1, sizeof(out->all[0]));
    MSC_TRY(MSC_ALLOCATED(out->all));
    for (int32_t i = 0; i < of->n_consumers; i++) {
        const struct msc_consumer *c = &p->consumers[of->consumers[i]];
        if (c->moment.n_groups > 0) {
            MSC_TRY(add_consumer(out, p, group, c));
        }
    }
    return MSC_OK;
}

static void readings_finish(struct readings *r) {
    for (size_t i = 0; i < r->n; i++) {
        reading_empty(&r->all[i]);
    }
    msc_arena_finish(&r->arena);
}

// Gathers columns of w [n_rows, n] into adjacent ones, and the matching rows and columns of c.
static void take_columns(double w[], double c[], const struct reading *r, const int64_t columns[],
                         int64_t n_taken) {
    int64_t n = r->rows.rows.n_columns;
    for (int64_t i = 0; i < rows_of(r) * n_taken; i++) {
        w[i] = r->w[i / n_taken * n + columns[i % n_taken]];
    }
    for (int64_t i = 0; i < n_taken * n_taken; i++) {
        c[i] = r->c[columns[i / n_taken] * n + columns[i % n_taken]];
    }
}

static int64_t columns_of(const struct reading *r, int32_t unit) {
    return r->first[unit + 1] - r->first[unit];
}

// Adds tr(W_c C_cc W_c').
static enum msc_status add_carried(double *out, const struct reading *r, int32_t unit) {
    int64_t n = columns_of(r, unit), n_rows = rows_of(r);
    double *room = msc_alloc((size_t)(2 * n_rows * n + n * n) * sizeof(room[0]) + 1);
    double *w = room, *product = room + n_rows * n, *c = room + 2 * n_rows * n;
    enum msc_status status = MSC_ALLOCATED(room);
    double sum = 0;
    if (status == MSC_OK && n > 0) {
        take_columns(w, c, r, r->columns + r->first[unit], n);
        msc_product_f64(product, w, c, n_rows, n, n);
        for (int64_t i = 0; i < n_rows * n; i++) {
            sum += product[i] * w[i];
        }
        *out += r->share * sum;
    }
    msc_free(room);
    return status;
}

static enum msc_status score_energy(double scores[], struct readings *readings) {
    for (size_t i = 0; i < readings->n; i++) {
        struct reading *r = &readings->all[i];
        MSC_TRY(reading_fill(r));
        for (int32_t u = 0; u < readings->n_units; u++) {
            MSC_TRY(add_carried(&scores[u], r, u));
        }
        reading_empty(r);
    }
    return MSC_OK;
}

// ---- Saliency ---------------------------------------------------------------------------------

static enum msc_status begin_elimination(struct reading *r, double ridge) {
    int64_t n = r->rows.rows.n_columns;
    double damping = msc_pruner__damping(&r->rows, r->consumer, r->group, ridge);
    MSC_TRY(fill_moments(r, damping));
    const struct msc_eliminated of = {.n_rows = rows_of(r),
                                      .n_columns = n,
                                      .w = weights_of(r),
                                      .c = r->c,
                                      .n_units = r->n_units,
                                      .columns = r->columns,
                                      .first = r->first};
    enum msc_status status = msc_elimination_create(&r->left, &of);
    msc_free(r->c);
    r->c = NULL;
    return status;
}

static enum msc_status score_saliency(double *out, const struct readings *readings, int32_t unit) {
    *out = 0;
    for (size_t i = 0; i < readings->n; i++) {
        double score;
        MSC_TRY(msc_elimination_score(&score, readings->all[i].left, unit));
        *out += readings->all[i].share * score;
    }
    return MSC_OK;
}

static enum msc_status eliminate_units(struct readings *readings, const int32_t units[],
                                       int32_t n) {
    for (size_t i = 0; i < readings->n; i++) {
        MSC_TRY(msc_elimination_remove(readings->all[i].left, units, n));
    }
    return MSC_OK;
}

// Removes units one by one; units that no cut removes are appended in the order of their last
// scores.
static enum msc_status order_by_saliency(int32_t order[], struct readings *readings,
                                         int32_t n_needed) {
    int32_t n_alive = readings->n_units, n_done = 0;
    struct scored *alive = msc_alloc_zero((size_t)n_alive, sizeof(alive[0]));
    enum msc_status status = MSC_ALLOCATED(alive);
    for (int32_t i = 0; alive && i < n_alive; i++) {
        alive[i].unit = i;
    }
    while (status == MSC_OK && n_alive > 0) {
        int32_t n_going = 1 + n_alive / UNITS_ONE_BY_ONE;
        for (int32_t i = 0; status == MSC_OK && i < n_alive; i++) {
            status = score_saliency(&alive[i].score, readings, alive[i].unit);
        }
        qsort(alive, (size_t)n_alive, sizeof(alive[0]), compare_scores);
        n_going = n_done + n_going >= n_needed ? n_alive : n_going;
        for (int32_t i = 0; i < n_going; i++) {
            order[n_done++] = alive[i].unit;
        }
        n_alive -= n_going;
        if (status == MSC_OK && n_alive > 0) {
            status = eliminate_units(readings, order + n_done - n_going, n_going);
            memmove(alive, alive + n_going, (size_t)n_alive * sizeof(alive[0]));
        }
    }
    msc_free(alive);
    return status;
}

// The largest number of units that any cut with the criterion removes.
static int32_t most_gone(const struct msc_pruner *p, int32_t index, enum msc_criterion criterion) {
    const struct msc_pruner_group *group = &p->groups[index];
    int32_t most = 0, n_units = p->channels.groups[index].n_units;
    for (size_t i = 0; i < group->n_cuts; i++) {
        int32_t n = n_units - group->cuts[i].n_kept;
        bool is_it = p->options->choices[group->cuts[i].choice].criterion == criterion;
        most = is_it && n > most ? n : most;
    }
    return most;
}

static enum msc_status try_saliency(int32_t order[], struct readings *readings, double ridge,
                                    int32_t n_needed) {
    enum msc_status status = MSC_OK;
    for (size_t i = 0; status == MSC_OK && i < readings->n; i++) {
        status = begin_elimination(&readings->all[i], ridge);
    }
    if (status == MSC_OK) {
        status = order_by_saliency(order, readings, n_needed);
    }
    for (size_t i = 0; i < readings->n; i++) {
        reading_empty(&readings->all[i]);
    }
    return status;
}

// Moments of few samples, rounded to float32, are not always definite; then the damping is
// increased.
static enum msc_status rank_by_saliency(struct msc_pruner *p, int32_t group,
                                        struct readings *readings) {
    int32_t *order, n_needed = most_gone(p, group, MSC_CRITERION_HESSIAN);
    double ridge = p->options->ridge;
    enum msc_status status = MSC_E_INVALID;
    MSC_TRY(make_order(&order, p, group, MSC_CRITERION_HESSIAN));
    for (int i = 0; i < MSC_PRUNER_ATTEMPTS && status == MSC_E_INVALID; i++) {
        status = try_saliency(order, readings, ridge, n_needed);
        ridge *= 10;
    }
    return status;
}

// ---- All criteria -----------------------------------------------------------------------------

static enum msc_status rank_by(struct msc_pruner *p, int32_t group, enum msc_criterion criterion,
                               struct readings *readings) {
    double *scores = msc_alloc_zero((size_t)readings->n_units, sizeof(scores[0]));
    enum msc_status status = MSC_ALLOCATED(scores);
    if (status == MSC_OK && criterion == MSC_CRITERION_ENERGY && readings->n > 0) {
        status = score_energy(scores, readings);
    } else if (status == MSC_OK) {
        score_norms(scores, p, group, criterion != MSC_CRITERION_L1);
    }
    if (status == MSC_OK) {
        status = msc_pruner_rank(p, group, criterion, scores);
    }
    msc_free(scores);
    return status;
}

enum msc_status msc_pruner__rank_group(struct msc_pruner *p, int32_t group) {
    struct readings readings = {.n = 0};
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(readings_init(&readings, p, group));
    for (int i = 0; i < MSC_N_CRITERIA; i++) {
        enum msc_criterion criterion = (enum msc_criterion)i;
        if (criterion == MSC_CRITERION_LOSS || !msc_pruner_uses(p, criterion)) {
            continue;
        }
        // Without moments of consumers, norms rank the units instead.
        MSC_TRY_OUT(criterion == MSC_CRITERION_HESSIAN && readings.n > 0
                        ? rank_by_saliency(p, group, &readings)
                        : rank_by(p, group, criterion, &readings));
    }
out:
    readings_finish(&readings);
    return status;
}
