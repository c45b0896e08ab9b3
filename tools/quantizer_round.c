// Choices of weights that look at what they are multiplied by: scales by the error of outputs
// (observer hessian), integers by GPTQ or coordinate descent (tools/rounding.h).
#include "tools/bias_edits.h"
#include "tools/linear_algebra.h"
#include "tools/quantizer_internal.h"
#include "tools/rounding.h"
#include "tools/second_moment.h"

#include <stdlib.h>
#include <string.h>

// Of the mean of H's diagonal, as in GPTQ; ten times as much where that does not make H definite.
#define DAMPING 0.01
#define MOST_DAMPING 1.0
#define DESCENT_PASSES 4

// One weight at work: its rows by groups, each with the second moment of its inputs.
struct rounded_weight {
    struct msc_quantizer *q;
    int32_t site;
    const struct msc_array *array;
    bool is_input_first; // [in, out]: rows are its columns
    struct msc_moment moment;
    int64_t n_rows;                 // of all groups
    float *rows;                    // [n_rows, n_columns]
    struct msc_gptq_order **orders; // [n_groups]; NULL: no choice asks for them
    int n_threads;
};

// What a choice makes of it.
struct rounded_choice {
    const struct msc_choice *choice;
    struct msc_quant form;
    struct msc_observation observation;
    int64_t n_blocks;     // scales of a row
    float *scales;        // [n_rows, n_blocks]
    int32_t *zero_points; // [n_rows, n_blocks]
    int32_t *integers;    // [n_rows, n_columns]
    float *shifts;        // [n_rows]; NULL: none
};

static enum msc_status no_rounding_memory(const struct rounded_weight *w) {
    return MSC_FAIL(MSC_E_NOMEM, "out of memory for rounding weight %s",
                    w->q->sites.sites[w->site].name);
}

static bool needs_moments(const struct msc_quantizer *q, size_t choice) {
    const struct msc_choice *c = &q->choices[choice];
    return msc_quantizer__has_scales(q, choice) &&
           (c->observers[MSC_SITE_WEIGHT] == MSC_OBSERVER_HESSIAN ||
            c->rounding != MSC_ROUNDING_NEAREST || c->correction != MSC_CORRECTION_NONE);
}

// Are integers kept? Those of a row with a gain are not the nearest ones of its scale.
static bool has_integers(const struct msc_choice *c) {
    return c->rounding != MSC_ROUNDING_NEAREST || c->correction != MSC_CORRECTION_NONE;
}

// ---- Rows -------------------------------------------------------------------------------------

// Element k of row r in the weight's own array.
static int64_t element_of(const struct rounded_weight *w, int64_t row, int64_t k) {
    return w->is_input_first ? k * w->n_rows + row : row * w->moment.n_columns + k;
}

// Scale `block` of row r in the order of a quantisation.
static int64_t scale_of(const struct rounded_weight *w, const struct rounded_choice *c, int64_t row,
                        int64_t block) {
    return w->is_input_first ? block * w->n_rows + row : row * c->n_blocks + block;
}

static enum msc_status gather_weight_rows(struct rounded_weight *w) {
    int64_t n = msc_array_n_elements(w->array);
    const float *x = msc_array_data(w->array);
    w->n_rows = n / w->moment.n_columns;
    w->rows = msc_alloc((size_t)n * sizeof(w->rows[0]) + 1);
    if (!w->rows) {
        return no_rounding_memory(w);
    }
    for (int64_t r = 0; r < w->n_rows; r++) {
        for (int64_t k = 0; k < w->moment.n_columns; k++) {
            w->rows[r * w->moment.n_columns + k] = x[element_of(w, r, k)];
        }
    }
    return MSC_OK;
}

// ---- In parallel: some rows of one group ------------------------------------------------------

static int64_t rows_of_group(const struct rounded_weight *w) {
    return w->n_rows / w->moment.n_groups;
}

static int64_t units_of_group(const struct rounded_weight *w) {
    return (rows_of_group(w) + MSC_ROUNDING_ROWS - 1) / MSC_ROUNDING_ROWS;
}

static struct msc_rounding_rows unit_rows(const struct rounded_weight *w,
                                          const struct rounded_choice *c, int64_t unit) {
    int64_t n = w->moment.n_columns, group = unit / units_of_group(w);
    int64_t first = unit % units_of_group(w) * MSC_ROUNDING_ROWS;
    int64_t left = rows_of_group(w) - first;
    int64_t row = group * rows_of_group(w) + first;
    return (struct msc_rounding_rows){
        .n_rows = left < MSC_ROUNDING_ROWS ? left : MSC_ROUNDING_ROWS,
        .n_columns = n,
        .weights = w->rows + row * n,
        .h = w->moment.h + group * n * n,
        .scheme = c->observation.scheme,
        .group_size = c->form.group_size,
        .scales = c->scales + row * c->n_blocks,
        .zero_points = c->zero_points + row * c->n_blocks,
        .integers = c->integers + row * n,
    };
}

// Rows that share one scale have no gains of their own.
static bool is_corrected(const struct rounded_choice *c) {
    return c->choice->correction == MSC_CORRECTION_AFFINE && c->form.n > 1;
}

static enum msc_status round_rows(const struct rounded_choice *c, struct msc_rounding_rows *rows,
                                  const struct msc_gptq_order *order) {
    if (c->choice->observers[MSC_SITE_WEIGHT] == MSC_OBSERVER_HESSIAN && c->form.n > 1) {
        MSC_TRY(msc_rounding_fit(rows));
        for (int64_t i = 0; i < rows->n_rows * c->n_blocks; i++) {
            rows->scales[i] *= (float)c->choice->range_scale;
        }
    }
    if (c->choice->rounding == MSC_ROUNDING_NEAREST) {
        msc_rounding_nearest(rows);
        return MSC_OK;
    }
    MSC_TRY(msc_rounding_gptq(rows, order));
    return c->choice->rounding == MSC_ROUNDING_DESCENT ? msc_rounding_descend(rows, DESCENT_PASSES)
                                                       : MSC_OK;
}

static enum msc_status round_unit(const struct rounded_weight *w, const struct rounded_choice *c,
                                  int64_t unit) {
    struct msc_rounding_rows rows = unit_rows(w, c, unit);
    int64_t group = unit / units_of_group(w), row = (rows.weights - w->rows) / rows.n_columns;
    MSC_TRY(round_rows(c, &rows, w->orders ? w->orders[group] : NULL));
    return is_corrected(c) ? msc_rounding_fit_affine(c->shifts ? c->shifts + row : NULL, &rows,
                                                     w->moment.means + group * rows.n_columns)
                           : MSC_OK;
}

// The rows' own threads; the text of what failed stays with the thread it failed on.
static enum msc_status round_units(const struct rounded_weight *w, const struct rounded_choice *c) {
    int64_t n_units = w->moment.n_groups * units_of_group(w);
    int worst = MSC_OK;
#pragma omp parallel for num_threads(w->n_threads) schedule(dynamic) reduction(min : worst)
    for (int64_t unit = 0; unit < n_units; unit++) {
        int status = round_unit(w, c, unit);
        worst = status < worst ? status : worst;
    }
    return worst == MSC_OK ? MSC_OK : no_rounding_memory(w);
}

static enum msc_status make_order(struct msc_gptq_order **out, const struct msc_moment *m,
                                  int64_t group) {
    const float *h = m->h + group * m->n_columns * m->n_columns;
    enum msc_status status = MSC_E_INVALID;
    for (double damping = DAMPING; status == MSC_E_INVALID && damping <= MOST_DAMPING;
         damping *= 10) {
        status = msc_gptq_order_create(out, h, m->n_columns, damping);
    }
    return status;
}

static enum msc_status make_orders(struct rounded_weight *w) {
    int64_t n = w->moment.n_groups;
    int worst = MSC_OK;
    w->orders = msc_alloc_zero((size_t)n + 1, sizeof(w->orders[0]));
    if (!w->orders) {
        return no_rounding_memory(w);
    }
#pragma omp parallel for num_threads(w->n_threads) schedule(dynamic) reduction(min : worst)
    for (int64_t g = 0; g < n; g++) {
        int status = make_order(&w->orders[g], &w->moment, g);
        worst = status < worst ? status : worst;
    }
    if (worst == MSC_E_INVALID) {
        return MSC_FAIL(MSC_E_INVALID,
                        "weight %s: the second moments of its inputs have no Cholesky factor: take "
                        "\"rounding\": \"nearest\"",
                        w->q->sites.sites[w->site].name);
    }
    return worst == MSC_OK ? MSC_OK : no_rounding_memory(w);
}

// ---- One choice -------------------------------------------------------------------------------

// Scales that another observer has found, in the order of rows.
static void take_scales(const struct rounded_weight *w, struct rounded_choice *c,
                        const struct msc_quant *found) {
    for (int64_t r = 0; r < w->n_rows; r++) {
        for (int64_t b = 0; b < c->n_blocks; b++) {
            int64_t at = found->n > 1 ? scale_of(w, c, r, b) : 0;
            c->scales[r * c->n_blocks + b] = found->scales[at];
            c->zero_points[r * c->n_blocks + b] = found->zero_points[at];
        }
    }
}

// Hands what was found to the quantizer, in the order of the weight.
static enum msc_status keep_rounded(const struct rounded_weight *w, struct rounded_choice *c,
                                    int32_t choice) {
    struct msc_array *integers = NULL, *shifts = NULL;
    enum msc_dtype dtype = c->form.low < 0 ? MSC_DTYPE_I8 : MSC_DTYPE_U8;
    float *scales = msc_alloc((size_t)c->form.n * sizeof(scales[0]) + 1);
    int32_t *zeros = msc_alloc((size_t)c->form.n * sizeof(zeros[0]) + 1);
    enum msc_status status = scales && zeros ? MSC_OK : no_rounding_memory(w);
    MSC_TRY_OUT(status);
    MSC_TRY_OUT(
        msc_array_create(&integers, dtype, msc_array_n_dims(w->array), msc_array_dims(w->array)));
    if (c->shifts) {
        MSC_TRY_OUT(msc_array_create_from(&shifts, MSC_DTYPE_F32, 1, &w->n_rows, c->shifts));
    }
    uint8_t *bytes = msc_array_data(integers);
    for (int64_t r = 0; r < w->n_rows; r++) {
        for (int64_t k = 0; k < w->moment.n_columns; k++) {
            bytes[element_of(w, r, k)] = (uint8_t)c->integers[r * w->moment.n_columns + k];
        }
        for (int64_t b = 0; b < c->n_blocks; b++) {
            int64_t at = c->form.n > 1 ? scale_of(w, c, r, b) : 0;
            scales[at] = c->scales[r * c->n_blocks + b];
            zeros[at] = c->zero_points[r * c->n_blocks + b];
        }
    }
    const struct msc_quant found = {.scales = scales,
                                    .zero_points = zeros,
                                    .integers = has_integers(c->choice) ? integers : NULL,
                                    .shifts = shifts};
    status = msc_quantizer__set(w->q, w->site, choice, &found);
out:
    msc_array_release(integers);
    msc_array_release(shifts);
    msc_free(scales);
    msc_free(zeros);
    return status;
}

static enum msc_status round_choice(const struct rounded_weight *w, int32_t choice) {
    struct msc_quantizer *q = w->q;
    struct rounded_choice c = {.choice = &q->choices[choice],
                               .form = msc_quantizer__form(q, w->site, choice),
                               .observation = msc_quantizer__observation(q, w->site, choice)};
    int64_t n = w->moment.n_columns;
    struct msc_arena arena = {0};
    enum msc_status status = MSC_OK;
    c.n_blocks = c.form.group_size > 0 ? (n + c.form.group_size - 1) / c.form.group_size : 1;
    c.scales = msc_arena_array(&arena, (size_t)(w->n_rows * c.n_blocks) + 1, sizeof(float));
    c.zero_points = msc_arena_array(&arena, (size_t)(w->n_rows * c.n_blocks) + 1, sizeof(int32_t));
    c.integers = msc_arena_array(&arena, (size_t)(w->n_rows * n) + 1, sizeof(int32_t));
    bool has_shifts =
        is_corrected(&c) && msc_bias_edits_take_shifts(q->graph, &q->sites, w->site, w->n_rows);
    c.shifts = has_shifts ? msc_arena_array(&arena, (size_t)w->n_rows + 1, sizeof(float)) : NULL;
    if (!c.scales || !c.zero_points || !c.integers || (has_shifts && !c.shifts)) {
        status = no_rounding_memory(w);
        goto out;
    }
    // What the calibration has put there already.
    take_scales(w, &c, msc_quantizer_quant(q, w->site, choice));
    MSC_TRY_OUT(round_units(w, &c));
    status = keep_rounded(w, &c, choice);
out:
    msc_arena_finish(&arena);
    return status;
}

// ---- One weight -------------------------------------------------------------------------------

static void rounded_weight_finish(struct rounded_weight *w) {
    for (int64_t g = 0; w->orders && g < w->moment.n_groups; g++) {
        msc_gptq_order_destroy(w->orders[g]);
    }
    msc_free(w->orders);
    msc_free(w->rows);
}

static enum msc_status round_weight(struct msc_quantizer *q, int32_t site,
                                    const struct msc_moment *moment, int n_threads) {
    const struct msc_slot *slot = &q->sites.slots[q->sites.sites[site].slots[0]];
    const struct msc_tensor *t = msc_graph_tensor(q->graph, slot->tensor);
    struct rounded_weight w = {.q = q,
                               .site = site,
                               .array = t->data,
                               .is_input_first = t->n_dims == 2 && slot->channel_axis == 1,
                               .moment = *moment,
                               .n_threads = n_threads};
    enum msc_status status = gather_weight_rows(&w);
    for (size_t i = 0; status == MSC_OK && i < q->n_choices; i++) {
        if (needs_moments(q, i)) {
            if (!w.orders && q->choices[i].rounding != MSC_ROUNDING_NEAREST) {
                MSC_TRY_OUT(make_orders(&w));
            }
            status = round_choice(&w, (int32_t)i);
        }
    }
out:
    rounded_weight_finish(&w);
    return status;
}

// ---- All of them ------------------------------------------------------------------------------

bool msc_quantizer__has_rounding(const struct msc_quantizer *q) {
    for (size_t i = 0; i < q->n_choices; i++) {
        if (needs_moments(q, i)) {
            return true;
        }
    }
    return false;
}

// The slots of weights to be rounded, site by site: [n] slots, the site of each.
struct uses {
    int32_t *slots, *sites;
    size_t n;
    struct msc_moment *moments;
};

static enum msc_status list_uses(struct uses *u, const struct msc_quantizer *q,
                                 struct msc_arena *arena) {
    size_t room = (size_t)q->sites.n_slots + 1;
    u->slots = msc_arena_array(arena, room, sizeof(u->slots[0]));
    u->sites = msc_arena_array(arena, room, sizeof(u->sites[0]));
    u->moments = msc_arena_array(arena, room, sizeof(u->moments[0]));
    if (!u->slots || !u->sites || !u->moments) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for rounding weights");
    }
    for (int32_t i = 0; i < q->sites.n_sites; i++) {
        const struct msc_site *s = &q->sites.sites[i];
        for (int32_t k = 0; s->kind == MSC_SITE_WEIGHT && k < s->n_slots; k++) {
            if (msc_quantizer__is_used(q, i)) {
                u->slots[u->n] = s->slots[k];
                u->sites[u->n++] = i;
            }
        }
    }
    return MSC_OK;
}

// Rounds the weights whose uses, `first` to `end`, are all measured.
static enum msc_status round_measured(struct msc_quantizer *q, struct uses *u, size_t first,
                                      size_t end, int n_threads) {
    for (size_t i = first; i < end;) {
        struct msc_moment *sum = &u->moments[i];
        size_t next = i + 1;
        bool has_all = sum->h != NULL;
        for (; next < end && u->sites[next] == u->sites[i]; next++) {
            has_all = has_all && msc_moment_add(sum, &u->moments[next]);
        }
        // A weight that is multiplied in another way keeps what its observer has found.
        if (has_all) {
            MSC_TRY(round_weight(q, u->sites[i], sum, n_threads));
        }
        for (; i < next; i++) {
            msc_moment_finish(&u->moments[i]);
        }
    }
    return MSC_OK;
}

enum msc_status msc_quantizer__round_weights(struct msc_quantizer *q, struct msc_evaluator *ev,
                                             msc_quantizer_progress progress, void *payload) {
    struct msc_arena arena = {0};
    struct uses u = {0};
    struct msc_moment_options o = MSC_MOMENT_OPTIONS_INIT;
    size_t rounded = 0, measured = 0;
    enum msc_status status = list_uses(&u, q, &arena);
    o.n_threads = msc_evaluator_n_threads(ev);
    while (status == MSC_OK && measured < u.n) {
        size_t n_done = 0;
        MSC_TRY_OUT(msc_moments_measure(u.moments + measured, &n_done, u.slots + measured,
                                        u.n - measured, ev, &o));
        measured += n_done;
        // The uses of one weight may be measured in several runs.
        size_t end = measured;
        while (end < u.n && end > rounded && u.sites[end - 1] == u.sites[end]) {
            end--;
        }
        MSC_TRY_OUT(round_measured(q, &u, rounded, end, o.n_threads));
        rounded = end;
        if (progress) {
            progress(payload, measured, u.n);
        }
    }
out:
    for (size_t i = 0; i < u.n; i++) {
        msc_moment_finish(&u.moments[i]);
    }
    msc_arena_finish(&arena);
    return status;
}
