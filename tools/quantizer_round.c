// Choices of weights that look at what they are multiplied by: scales by the error of outputs
// (observer hessian), integers by GPTQ or coordinate descent (tools/rounding.h).
#include "tools/bias_edits.h"
#include "tools/quantizer_internal.h"
#include "tools/weight_rows.h"

#define DESCENT_PASSES 4

// One weight at work, with the second moment of its inputs.
struct rounded_weight {
    struct msc_quantizer *q;
    int32_t site;
    struct msc_moment moment;
    struct msc_weight_rows rows;
    struct msc_gptq_order **orders; // [n_groups]; NULL: no choice asks for them
    int n_threads;
};

// What a choice makes of it.
struct rounded_choice {
    const struct rounded_weight *w;
    const struct msc_choice *choice;
    struct msc_rounded_rows rounded;
};

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

// ---- One choice -------------------------------------------------------------------------------

// Rows that share one scale have no gains of their own.
static bool is_corrected(const struct msc_choice *choice, const struct msc_quant *form) {
    return choice->correction == MSC_CORRECTION_AFFINE && form->n > 1;
}

static enum msc_status round_rows(const struct rounded_choice *c, struct msc_rounding_rows *rows,
                                  const struct msc_gptq_order *order) {
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
    MSC_TRY(msc_rounding_gptq(rows, order));
    return c->choice->rounding == MSC_ROUNDING_DESCENT ? msc_rounding_descend(rows, DESCENT_PASSES)
                                                       : MSC_OK;
}

static enum msc_status round_some(void *payload, struct msc_rounding_rows *rows, int64_t group,
                                  int64_t first) {
    const struct rounded_choice *c = payload;
    const struct rounded_weight *w = c->w;
    float *shifts = c->rounded.shifts;
    MSC_TRY(round_rows(c, rows, w->orders ? w->orders[group] : NULL));
    return is_corrected(c->choice, &c->rounded.form)
               ? msc_rounding_fit_affine(shifts ? shifts + first : NULL, rows,
                                         w->moment.means + group * rows->n_columns)
               : MSC_OK;
}

static enum msc_status round_choice(const struct rounded_weight *w, int32_t choice) {
    struct msc_quantizer *q = w->q;
    struct rounded_choice c = {.w = w, .choice = &q->choices[choice]};
    // What the calibration has put there already.
    const struct msc_quant *now = msc_quantizer_quant(q, w->site, choice);
    struct msc_observation observation = msc_quantizer__observation(q, w->site, choice);
    bool has_shifts = is_corrected(c.choice, now) &&
                      msc_bias_edits_take_shifts(q->graph, &q->sites, w->site, w->rows.n_rows);
    struct msc_quant found = {0};
    struct msc_arena arena = {0};
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(
        msc_rounded_rows_init(&c.rounded, &w->rows, now, observation.scheme, has_shifts, &arena));
    MSC_TRY_OUT(msc_weight_rows_each(&c.rounded, w->moment.h, w->n_threads, round_some, &c));
    MSC_TRY_OUT(msc_rounded_rows_give(&found, &c.rounded, has_integers(c.choice)));
    status = msc_quantizer__set(q, w->site, choice, &found);
out:
    msc_quant_finish(&found);
    msc_arena_finish(&arena);
    return status;
}

// ---- One weight -------------------------------------------------------------------------------

static enum msc_status round_choices(struct rounded_weight *w) {
    struct msc_quantizer *q = w->q;
    for (size_t i = 0; i < q->n_choices; i++) {
        if (!needs_moments(q, i)) {
            continue;
        }
        if (!w->orders && q->choices[i].rounding != MSC_ROUNDING_NEAREST) {
            MSC_TRY(msc_weight_rows_factor(&w->orders, &w->rows, w->moment.h, w->n_threads));
        }
        MSC_TRY(round_choice(w, (int32_t)i));
    }
    return MSC_OK;
}

static enum msc_status round_weight(struct msc_quantizer *q, int32_t site,
                                    const struct msc_moment *moment, int n_threads) {
    const struct msc_slot *slot = &q->sites.slots[q->sites.sites[site].slots[0]];
    struct rounded_weight w = {.q = q, .site = site, .moment = *moment, .n_threads = n_threads};
    struct msc_arena arena = {0};
    enum msc_status status = msc_weight_rows_init(&w.rows, msc_graph_tensor(q->graph, slot->tensor),
                                                  slot, moment, &arena);
    status = status == MSC_OK ? round_choices(&w) : status;
    msc_gptq_orders_destroy(w.orders, moment->n_groups);
    msc_arena_finish(&arena);
    return status == MSC_OK ? MSC_OK
                            : msc_status_prefix(status, "weight %s", q->sites.sites[site].name);
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
