// Computes scales and integers for choices that depend on a weight's inputs: scales that minimise
// the output error (observer `hessian`), and integers by GPTQ or coordinate descent
// (tools/rounding.h).
#include "tools/bias_edits.h"
#include "tools/block_rows.h"
#include "tools/held_back.h"
#include "tools/moment_file.h"
#include "tools/quantizer_internal.h"
#include "tools/weight_rows.h"

#include <math.h>
#include <string.h>

#define DESCENT_PASSES 4
#define REFITS 2
// Rows sampled for means: their error by sampling is far below the shift of a channel by 8 bits.
#define ROWS_FOR_MEANS 4096

// The share of rows that is held back if rows are few for the columns.
#define HELD_BACK 0.125
#define FEW_ROWS 8.0 // per column
// With fewer rows held back, none of a choice is kept that depends on rows.
enum { LEAST_JUDGES = 4 };

enum {
    BY_CENTRED = 1, // for choices whose shifts correct the mean
    BY_SHRUNK = 2,  // for choices with groups, and for few rows (msc_moment_shrink)
    N_BY = 4
};

// A weight to round, with the second moment of its inputs.
struct rounded_weight {
    const struct msc_quantizer *q;
    int32_t site;
    struct msc_moment moment;
    struct msc_weight_rows rows;
    // Moments for rounding rows, by BY_ flags.
    struct rounded_by {
        const float *h;                 // NULL: no choice needs it
        struct msc_gptq_order **orders; // [n_groups, blocks]; NULL: no choice needs them
    } by[N_BY];
    int n_threads;
    // The same with the moment of the rows that are not held back; NULL: no rows are held back.
    struct rounded_weight *fitted;
    bool has_few; // rows for the columns, so that some are held back
};

// The rounding of a weight under one choice.
struct rounded_choice {
    const struct rounded_weight *w;
    const struct msc_choice *choice;
    const struct rounded_by *by;
    struct msc_rounded_rows rounded;
};

static bool needs_moments(const struct msc_quantizer *q, size_t choice) {
    const struct msc_choice *c = &q->choices[choice];
    return !c->is_float && c->type == MSC_DTYPE_NONE &&
           (c->observers[MSC_SITE_WEIGHT] == MSC_OBSERVER_HESSIAN ||
            c->rounding != MSC_ROUNDING_NEAREST || c->correction != MSC_CORRECTION_NONE);
}

// True if means of the inputs are enough.
static bool needs_only_means(const struct msc_choice *c) {
    return c->observers[MSC_SITE_WEIGHT] != MSC_OBSERVER_HESSIAN &&
           c->rounding == MSC_ROUNDING_NEAREST && c->correction == MSC_CORRECTION_BIAS;
}

// True if the choice stores integers, because rounding to nearest under the final scale would not
// give the same ones. After a gain it would not either.
static bool has_integers(const struct msc_choice *c) {
    return c->rounding != MSC_ROUNDING_NEAREST || c->correction == MSC_CORRECTION_AFFINE;
}

// ---- One choice -------------------------------------------------------------------------------

// Does each row get its own gain? That needs a scale per row.
static bool is_corrected(const struct msc_choice *choice, const struct msc_quant *form) {
    return choice->correction == MSC_CORRECTION_AFFINE && form->n > 1;
}

static enum msc_status round_rows(const struct rounded_choice *c, struct msc_rounding_rows *rows,
                                  struct msc_gptq_order *const orders[]) {
    if (c->choice->observers[MSC_SITE_WEIGHT] == MSC_OBSERVER_HESSIAN && c->rounded.form.n > 1) {
        MSC_TRY(msc_rounding_fit(rows));
        for (int64_t i = 0; i < rows->n_rows * c->rounded.n_blocks; i++) {
            rows->scales[i] *= (float)c->choice->range_scale;
        }
    }
    if (c->choice->rounding == MSC_ROUNDING_NEAREST) {
        msc_rounding_nearest(rows);
        return MSC_OK;
    }
    MSC_TRY(msc_rounding_gptq(rows, orders));
    bool descends_later = is_corrected(c->choice, &c->rounded.form); // with gains
    return c->choice->rounding == MSC_ROUNDING_DESCENT && !descends_later
               ? msc_rounding_descend(rows, DESCENT_PASSES)
               : MSC_OK;
}

// Does the weight's quantisation correct means by a shift?
static bool is_shifted(const struct msc_choice *choice, const struct msc_quant *form) {
    return choice->correction == MSC_CORRECTION_BIAS || is_corrected(choice, form);
}

// Fits a gain and a shift per row; descent alternates with the gain, since a gain changes the
// scale.
static enum msc_status correct_rows(const struct rounded_choice *c, struct msc_rounding_rows *rows,
                                    float shifts[], const double means[]) {
    return c->choice->rounding == MSC_ROUNDING_DESCENT
               ? msc_rounding_descend_affine(shifts, rows, means, DESCENT_PASSES, REFITS)
               : msc_rounding_fit_affine(shifts, rows, means);
}

static enum msc_status round_some(void *payload, struct msc_rounding_rows *rows, int64_t group,
                                  int64_t first) {
    const struct rounded_choice *c = payload;
    float *shifts = c->rounded.shifts;
    int64_t n_blocks = c->w->rows.n_orders / c->w->rows.n_groups;
    MSC_TRY(round_rows(c, rows, c->by->orders ? c->by->orders + group * n_blocks : NULL));
    const double *means = c->w->moment.means + group * rows->n_columns;
    if (is_corrected(c->choice, &c->rounded.form)) {
        return correct_rows(c, rows, shifts ? shifts + first : NULL, means);
    }
    return shifts ? msc_rounding_fit_shifts(shifts + first, rows, means) : MSC_OK;
}

// Clears columns that are constant: after centring only rounding noise is left of them.
static void forget_constants(float centred[], const struct msc_moment *m) {
    int64_t n = m->n_columns, block = m->block_columns > 0 ? m->block_columns : n;
    const float *h = m->h;
    for (int64_t i = 0; i < m->n_groups * n;) {
        int64_t left = n - i % n, width = left < block ? left : block;
        for (int64_t column = 0; column < width; column++) {
            bool is_constant =
                !(centred[column * width + column] > 1e-5F * h[column * width + column]);
            for (int64_t k = 0; is_constant && k < width; k++) {
                centred[column * width + k] = centred[k * width + column] = 0;
            }
        }
        h += width * width;
        centred += width * width;
        i += width;
    }
}

// Prepares the moments and orders once a choice needs them.
static enum msc_status round_by(struct rounded_weight *w, int flags, bool has_orders,
                                struct msc_arena *arena) {
    struct rounded_by *by = &w->by[flags];
    const struct msc_moment *m = &w->moment;
    if (!by->h && flags != 0) {
        size_t n = (size_t)(m->n_groups * msc_moment_n_products(m->n_columns, m->block_columns));
        float *h = msc_arena_array(arena, n + 1, sizeof(h[0]));
        MSC_TRY(MSC_ALLOCATED(h));
        if (flags & BY_CENTRED) {
            msc_moment_centre(h, m->h, m->means, m->means, m);
            forget_constants(h, m);
        } else {
            memcpy(h, m->h, n * sizeof(h[0]));
        }
        if (flags & BY_SHRUNK) {
            msc_moment_shrink(h, m);
        }
        by->h = h;
    } else if (!by->h) {
        by->h = m->h;
    }
    return by->orders || !has_orders
               ? MSC_OK
               : msc_weight_rows_factor(&by->orders, &w->rows, by->h, w->n_threads);
}

// What of a choice is done, from all of it to ever less.
static struct msc_choice choice_for(const struct rounded_weight *w, int32_t choice,
                                    enum msc_fallback fallback) {
    struct msc_choice c = w->q->choices[choice];
    c.rounding = fallback >= MSC_FALLBACK_NEAREST ? MSC_ROUNDING_NEAREST : c.rounding;
    if (fallback >= MSC_FALLBACK_SHIFT) {
        if (c.observers[MSC_SITE_WEIGHT] == MSC_OBSERVER_HESSIAN) {
            c.observers[MSC_SITE_WEIGHT] = MSC_OBSERVER_MINMAX; // the scales are there
        }
        c.correction = c.correction == MSC_CORRECTION_NONE ? c.correction : MSC_CORRECTION_BIAS;
    }
    c.correction = fallback >= MSC_FALLBACK_ALL ? MSC_CORRECTION_NONE : c.correction;
    return c;
}

static bool is_same_choice(const struct msc_choice *a, const struct msc_choice *b) {
    return a->rounding == b->rounding && a->correction == b->correction &&
           a->observers[MSC_SITE_WEIGHT] == b->observers[MSC_SITE_WEIGHT];
}

static enum msc_status round_blocks(struct msc_quant *out, struct rounded_weight *w,
                                    const struct msc_choice *by, bool has_products,
                                    struct msc_arena *of_weight) {
    struct msc_block_rows_options o = {.type = by->blocks,
                                       .axis = w->q->sites.sites[w->site].group_axis,
                                       .rounding = by->rounding,
                                       .n_threads = w->n_threads};
    if (w->moment.h && has_products) {
        MSC_TRY(round_by(w, BY_SHRUNK, by->rounding != MSC_ROUNDING_NEAREST, of_weight));
        o.h = w->by[BY_SHRUNK].h;
        o.orders = w->by[BY_SHRUNK].orders;
    }
    return msc_block_rows_round(out, &w->rows, &o);
}

// Starts from the scales of `now`, which the observer found. *out is owned by the caller.
static enum msc_status round_as(struct msc_quant *out, struct rounded_weight *w, int32_t choice,
                                enum msc_fallback fallback, const struct msc_quant *now,
                                struct msc_arena *of_weight) {
    const struct msc_quantizer *q = w->q;
    const struct msc_choice by = choice_for(w, choice, fallback);
    struct rounded_choice c = {.w = w, .choice = &by};
    struct msc_observation observation = msc_quantizer__observation(q, w->site, choice);
    bool has_shifts = is_shifted(c.choice, now) &&
                      msc_bias_edits_take_shifts(q->graph, &q->sites, w->site, w->rows.n_rows);
    bool is_shrunk = now->group_size > 0 || w->has_few;
    int flags = (has_shifts ? BY_CENTRED : 0) | (is_shrunk ? BY_SHRUNK : 0);
    struct msc_arena arena = {0};
    enum msc_status status = MSC_OK;
    if (by.blocks) {
        return round_blocks(out, w, &by, fallback < MSC_FALLBACK_SHIFT, of_weight);
    }
    if (w->moment.h && !needs_only_means(c.choice)) {
        MSC_TRY_OUT(round_by(w, flags, c.choice->rounding != MSC_ROUNDING_NEAREST, of_weight));
    }
    c.by = &w->by[flags];
    MSC_TRY_OUT(
        msc_rounded_rows_init(&c.rounded, &w->rows, now, observation.scheme, has_shifts, &arena));
    MSC_TRY_OUT(msc_weight_rows_each(&c.rounded, c.by->h, w->n_threads, round_some, &c));
    status = msc_rounded_rows_give(out, &c.rounded, has_integers(c.choice));
out:
    msc_arena_finish(&arena);
    return status;
}

// Finds what of the choice, fitted to the other rows, has the least error on the rows held back.
static enum msc_status judge_choice(enum msc_fallback *best, struct rounded_weight *w,
                                    int32_t choice, const struct msc_quant *now,
                                    struct msc_arena *of_weight) {
    struct msc_choice before = {.bits = 0};
    if (w->moment.n_held < LEAST_JUDGES) {
        *best = MSC_FALLBACK_ALL;
        return MSC_OK;
    }
    double least = INFINITY, error;
    for (enum msc_fallback f = *best; f < MSC_N_FALLBACKS; f++) {
        const struct msc_choice by = choice_for(w, choice, f);
        struct msc_quant found;
        if (is_same_choice(&by, &before)) {
            continue;
        }
        MSC_TRY(round_as(&found, w->fitted, choice, f, now, of_weight));
        enum msc_status status =
            msc_held_back_error(&error, &w->rows, &w->moment, &found, w->n_threads);
        msc_quant_finish(&found);
        MSC_TRY(status);
        *best = error < least ? f : *best;
        least = error < least ? error : least;
        before = by;
    }
    return MSC_OK;
}

// Rounds by all rows. Without products, only means can be used.
static enum msc_status round_choice(struct msc_quant *out, enum msc_fallback *fallback,
                                    struct rounded_weight *w, int32_t choice,
                                    const struct msc_quant *now, struct msc_arena *of_weight) {
    enum msc_fallback most = w->moment.h ? MSC_FALLBACK_NONE : MSC_FALLBACK_SHIFT, best = most;
    if (w->fitted) {
        MSC_TRY(judge_choice(&best, w, choice, now, of_weight));
    }
    *fallback = best == most ? MSC_FALLBACK_NONE : best;
    return round_as(out, w, choice, best, now, of_weight);
}

// ---- One weight -------------------------------------------------------------------------------

// Sets up `fitted`, in the arena, if rows are held back. MSC_E_NOMEM.
static enum msc_status fitted_init(struct rounded_weight *w, struct msc_arena *arena) {
    struct msc_moment moment;
    MSC_TRY(msc_moment_without_held(&moment, &w->moment));
    if (!moment.means) {
        return MSC_OK;
    }
    w->fitted = msc_arena_alloc(arena, sizeof(*w->fitted));
    if (!w->fitted) {
        msc_moment_finish(&moment);
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    *w->fitted = (struct rounded_weight){
        .q = w->q, .site = w->site, .moment = moment, .rows = w->rows, .n_threads = w->n_threads};
    w->has_few = w->fitted->has_few = true;
    return MSC_OK;
}

static enum msc_status round_choices(struct rounded_weight *w, struct msc_quantizer *q,
                                     struct msc_arena *arena) {
    for (size_t i = 0; i < q->n_choices; i++) {
        if (needs_moments(q, i)) {
            struct msc_quant found = {0};
            enum msc_fallback fallback;
            // The quantisation before rounding.
            const struct msc_quant *now = msc_quantizer_quant(q, w->site, (int32_t)i);
            if (!now) {
                continue; // the weight does not take the choice
            }
            enum msc_status status = round_choice(&found, &fallback, w, (int32_t)i, now, arena);
            if (status == MSC_OK) {
                status = msc_quantizer__set(q, w->site, (int32_t)i, &found);
            }
            msc_quant_finish(&found);
            MSC_TRY(status);
            *msc_quantizer__held(q, w->site, i) = (struct msc_quantizer_held){
                .n_held = w->fitted ? (int32_t)w->moment.n_held : 0, .fallback = fallback};
        }
    }
    return MSC_OK;
}

static void rounded_weight_finish(struct rounded_weight *w) {
    for (int i = 0; i < N_BY; i++) {
        msc_gptq_orders_destroy(w->by[i].orders, w->rows.n_orders);
    }
    if (w->fitted) {
        rounded_weight_finish(w->fitted);
        msc_moment_finish(&w->fitted->moment);
    }
}

static enum msc_status round_weight(struct msc_quantizer *q, int32_t site,
                                    const struct msc_moment *moment, int n_threads) {
    const struct msc_slot *slot = &q->sites.slots[q->sites.sites[site].slots[0]];
    struct rounded_weight w = {.q = q, .site = site, .moment = *moment, .n_threads = n_threads};
    struct msc_arena arena = {0};
    enum msc_status status = msc_weight_rows_init(&w.rows, msc_graph_tensor(q->graph, slot->tensor),
                                                  slot, moment, &arena);
    status = status == MSC_OK ? fitted_init(&w, &arena) : status;
    status = status == MSC_OK ? round_choices(&w, q, &arena) : status;
    rounded_weight_finish(&w);
    msc_arena_finish(&arena);
    return status == MSC_OK ? MSC_OK
                            : msc_status_prefix(status, "weight %s", q->sites.sites[site].name);
}

// ---- Other elements ---------------------------------------------------------------------------

static enum msc_status round_elements(struct msc_quant *out, const struct msc_quantizer *q,
                                      int32_t site, int32_t choice, const struct msc_quant *now,
                                      const struct msc_quantizer_other *of) {
    const struct msc_slot *slot = &q->sites.slots[q->sites.sites[site].slots[0]];
    struct msc_tensor weight = *msc_graph_tensor(q->graph, slot->tensor);
    struct rounded_weight w = {.q = q, .site = site, .moment = *of->moment, .n_threads = 1};
    struct msc_arena arena = {0};
    weight.data = (struct msc_array *)of->elements;
    enum msc_status status = msc_weight_rows_init(&w.rows, &weight, slot, of->moment, &arena);
    enum msc_fallback fallback;
    status = status == MSC_OK ? fitted_init(&w, &arena) : status;
    if (status == MSC_OK) {
        status = round_choice(out, &fallback, &w, choice, now, &arena);
    }
    rounded_weight_finish(&w);
    msc_arena_finish(&arena);
    return status;
}

// Replaces `quant` by `better`, unless `better` is empty.
static void take_better(struct msc_quant *quant, struct msc_quant *better) {
    if (better->n > 0) {
        msc_quant_finish(quant);
        *quant = *better;
    }
}

enum msc_status msc_quantizer_fit(struct msc_quant *out, const struct msc_quantizer *q,
                                  int32_t site, int32_t choice,
                                  const struct msc_quantizer_other *of) {
    struct msc_quant better = {0};
    MSC_TRY(msc_quantizer__fit_elements(out, q, site, choice, of->elements));
    enum msc_status status = MSC_OK;
    if (of->moment && needs_moments(q, (size_t)choice)) {
        status = round_elements(&better, q, site, choice, out, of);
        take_better(out, &better);
    }
    if (status == MSC_OK) {
        status = msc_quantizer__widen_quant(&better, q, site, out, of->bias);
        take_better(out, &better);
    }
    if (status != MSC_OK) {
        msc_quant_finish(out);
    }
    return status;
}

// ---- All weights ------------------------------------------------------------------------------

bool msc_quantizer_has_rounding(const struct msc_quantizer *q) {
    for (size_t i = 0; i < q->n_choices; i++) {
        if (needs_moments(q, i)) {
            return true;
        }
    }
    return false;
}

// The uses of weights to round, grouped by site.
struct rounding {
    struct msc_quantizer *q;
    struct msc_evaluator *ev;
    const struct msc_quantizer_rounding *options;
    struct msc_array_log *kept; // the cache; NULL: none, or disabled after an error
    int32_t *slots, *sites;     // [n] slot and site of each use
    struct msc_moment *moments; // [n], each held from measurement until rounding
    size_t n, n_measured, n_rounded;
    bool only_means; // no choice needs more
};

static enum msc_status list_uses(struct rounding *r, struct msc_arena *arena) {
    const struct msc_sites *sites = &r->q->sites;
    size_t room = (size_t)sites->n_slots + 1;
    r->slots = msc_arena_array(arena, room, sizeof(r->slots[0]));
    r->sites = msc_arena_array(arena, room, sizeof(r->sites[0]));
    r->moments = msc_arena_array(arena, room, sizeof(r->moments[0]));
    MSC_TRY(MSC_ALLOCATED(r->slots && r->sites && r->moments));
    for (int32_t i = 0; i < sites->n_sites; i++) {
        const struct msc_site *s = &sites->sites[i];
        for (int32_t k = 0; s->kind == MSC_SITE_WEIGHT && k < s->n_slots; k++) {
            if (msc_quantizer__is_used(r->q, i)) {
                r->slots[r->n] = s->slots[k];
                r->sites[r->n++] = i;
            }
        }
    }
    return MSC_OK;
}

static void tell_rounding(const struct rounding *r, enum msc_quantizer_stage stage, size_t done) {
    if (r->options->progress) {
        r->options->progress(r->options->payload, stage, done, r->n);
    }
}

// ---- Second moments ---------------------------------------------------------------------------

static void tell_measured(void *payload, size_t done) {
    const struct rounding *r = payload;
    tell_rounding(r, MSC_STAGE_MOMENTS, r->n_measured + done);
}

// A cache error only disables the cache, since everything can be measured again. Only MSC_E_NOMEM
// is returned.
static enum msc_status do_without(struct rounding *r, enum msc_status why) {
    if (why != MSC_OK && why != MSC_E_NOMEM) {
        msc_log(r->options->log, MSC_LOG_WARNING, "%s; second moments are no longer cached",
                msc_status_message());
        r->kept = NULL;
        return MSC_OK;
    }
    return why;
}

// Reads the moment of the next use from the cache.
static enum msc_status recall_moment(bool *found, struct rounding *r) {
    size_t i = r->n_measured;
    int32_t tensor = r->q->sites.sites[r->sites[i]].tensor;
    *found = false;
    if (!r->kept) {
        return MSC_OK;
    }
    enum msc_status status =
        msc_moment_load(&r->moments[i], r->kept, "", r->slots[i],
                        msc_tensor_n_elements(msc_graph_tensor(r->q->graph, tensor)));
    *found = status == MSC_OK;
    r->n_measured += *found;
    return status == MSC_E_NOT_FOUND ? MSC_OK : do_without(r, status);
}

// Takes the moment of the next use from the importance file.
static enum msc_status take_importance(bool *found, struct rounding *r) {
    size_t i = r->n_measured;
    *found = msc_quantizer__has_importance(r->q, r->sites[i]);
    if (*found) {
        MSC_TRY(msc_quantizer__importance_moment(&r->moments[i], r->q, r->sites[i]));
        r->n_measured++;
    }
    return MSC_OK;
}

// The uses up to the next one that is in the importance file.
static size_t n_to_measure(const struct rounding *r) {
    size_t end = r->n_measured;
    while (end < r->n && !msc_quantizer__has_importance(r->q, r->sites[end])) {
        end++;
    }
    return end - r->n_measured;
}

static enum msc_status measure_moments(struct rounding *r) {
    struct msc_moment_options o = MSC_MOMENT_OPTIONS_INIT;
    size_t n_done = 0, first = r->n_measured;
    o.n_threads = msc_evaluator_n_threads(r->ev);
    o.only_means = r->only_means;
    o.most_columns = r->q->moment_columns;
    o.least_rows = r->q->least_rows;
    o.n_rows = r->only_means           ? ROWS_FOR_MEANS
               : r->q->moment_rows > 0 ? r->q->moment_rows
                                       : o.n_rows;
    o.held_back = HELD_BACK;
    o.held_below = FEW_ROWS;
    o.memory_bytes = r->options->memory_bytes > 0 ? r->options->memory_bytes : o.memory_bytes;
    o.progress = tell_measured;
    o.payload = r;
    MSC_TRY(msc_moments_measure(r->moments + first, &n_done, r->slots + first, n_to_measure(r),
                                r->ev, &o));
    r->n_measured += n_done;
    for (size_t i = first; r->kept && i < r->n_measured; i++) {
        MSC_TRY(do_without(r, msc_moment_save(r->kept, "", r->slots[i], &r->moments[i])));
    }
    return MSC_OK;
}

// ---- Rounding ---------------------------------------------------------------------------------

// Rounds one weight: its uses are those from n_rounded to end - 1. All of these uses are measured.
static enum msc_status round_next(struct rounding *r, size_t end) {
    size_t first = r->n_rounded;
    struct msc_moment *sum = &r->moments[first];
    bool has_all = sum->means != NULL;
    for (size_t i = first + 1; i < end; i++) {
        if (has_all) {
            MSC_TRY(msc_moment_add(&has_all, sum, &r->moments[i]));
        }
    }
    // If any use has no moment, the weight keeps the observer's result.
    if (has_all) {
        MSC_TRY(round_weight(r->q, r->sites[first], sum, msc_evaluator_n_threads(r->ev)));
    }
    for (size_t i = first; i < end; i++) {
        msc_moment_finish(&r->moments[i]);
    }
    r->n_rounded = end;
    tell_rounding(r, MSC_STAGE_INTEGERS, end);
    return MSC_OK;
}

// Rounds the weights of which all uses are measured. The uses of one weight may be measured in
// several passes.
static enum msc_status round_measured(struct rounding *r) {
    for (size_t i = r->n_rounded; i < r->n_measured;) {
        for (; i < r->n && r->sites[i] == r->sites[r->n_rounded]; i++) {}
        if (i > r->n_measured) {
            break;
        }
        if (msc_cancel_soon(r->options->cancel)) {
            return MSC_FAIL(MSC_E_CANCELLED, "stopped");
        }
        MSC_TRY(round_next(r, i));
    }
    return MSC_OK;
}

static enum msc_status round_weights(struct rounding *r) {
    while (r->n_measured < r->n) {
        bool is_known;
        MSC_TRY(take_importance(&is_known, r));
        MSC_TRY(is_known ? MSC_OK : recall_moment(&is_known, r));
        if (!is_known) {
            MSC_TRY(measure_moments(r));
        }
        MSC_TRY(round_measured(r));
    }
    return MSC_OK;
}

enum msc_status msc_quantizer_round(struct msc_quantizer *q, struct msc_evaluator *ev,
                                    const struct msc_quantizer_rounding *options) {
    struct msc_arena arena = {0};
    struct rounding r = {.q = q, .ev = ev, .options = options, .only_means = true};
    enum msc_status status = MSC_OK;
    for (size_t i = 0; i < q->n_choices; i++) {
        r.only_means = r.only_means && (!needs_moments(q, i) || needs_only_means(&q->choices[i]));
    }
    // Means are quick to measure, and the cache holds whole moments of the usual rows.
    bool is_usual =
        !r.only_means && q->moment_rows == 0 && q->moment_columns == 0 && q->least_rows == 0;
    r.kept = is_usual ? options->kept : NULL;
    if (msc_quantizer_has_rounding(q)) {
        MSC_TRY_OUT(list_uses(&r, &arena));
        MSC_TRY_OUT(round_weights(&r));
    }
    status = msc_quantizer__widen(q);
out:
    for (size_t i = 0; i < r.n; i++) {
        msc_moment_finish(&r.moments[i]);
    }
    msc_arena_finish(&arena);
    return status;
}
