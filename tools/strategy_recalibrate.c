// Recomputes the scales of a strategy for other weights, keeping its choices.
//
// A quantizer uses one scheme for all weights and one for all activations. Edits found by several
// searches may have more schemes. Each round therefore handles the edits whose schemes equal one
// scheme for weights and one for activations.
#include "tools/strategy_internal.h"

#include "tools/quantizer.h"

#include <stdio.h>
#include <string.h>

struct recalibration {
    struct msc_strategy *strategy;
    const struct msc_graph *graph;
    struct msc_arena arena;
    int32_t *choice_of; // [strategy->n] choice in this round; MSC_NO_ID: handled in another round
    bool *is_done;      // [strategy->n]
    struct msc_choice *choices;
    const char **names; // names of tensors
    struct msc_quantizer_options options;
};

static bool is_weight(const struct recalibration *r, const struct msc_strategy_edit *e) {
    return msc_graph_tensor(r->graph, msc_graph_find_tensor(r->graph, e->tensor))->data != NULL;
}

static struct msc_operand_scheme scheme_of(const struct msc_strategy_edit *e) {
    return (struct msc_operand_scheme){.is_symmetric = e->origin.is_symmetric,
                                       .is_per_channel = e->edit.quant.axis >= 0};
}

// Does the edit have the schemes of this round? The first edit of a kind determines its scheme.
static bool goes_along(struct msc_operand_scheme *scheme, bool *is_set,
                       const struct msc_strategy_edit *e) {
    const struct msc_operand_scheme own = scheme_of(e);
    if (!*is_set) {
        *scheme = own;
        *is_set = true;
    }
    return own.is_symmetric == scheme->is_symmetric && own.is_per_channel == scheme->is_per_channel;
}

static int32_t add_choice(struct recalibration *r, const struct msc_strategy_edit *e) {
    struct msc_quantizer_options *o = &r->options;
    struct msc_choice c = {.bits = e->edit.quant.bits,
                           .group_size = e->edit.quant.group_size,
                           .observers = {e->origin.observer, e->origin.observer},
                           .percentile = e->origin.percentile,
                           .range_scale = e->origin.range_scale,
                           .rounding = e->origin.rounding,
                           .correction = e->origin.correction};
    for (size_t i = 0; i < o->n_choices; i++) {
        const struct msc_choice *x = &r->choices[i];
        if (x->bits == c.bits && x->group_size == c.group_size &&
            x->observers[0] == c.observers[0] && x->percentile == c.percentile &&
            x->range_scale == c.range_scale && x->rounding == c.rounding &&
            x->correction == c.correction) {
            return (int32_t)i;
        }
    }
    snprintf(c.label, sizeof(c.label), "%s", e->label);
    r->choices[o->n_choices] = c;
    return (int32_t)o->n_choices++;
}

// Selects the edits of the next round; false if none are left.
static bool plan_round(struct recalibration *r) {
    bool has_weights = false, has_activations = false;
    r->options = (struct msc_quantizer_options){.target = r->strategy->target,
                                                .all_sites = r->strategy->target != NULL,
                                                .group = MSC_GROUP_TENSOR,
                                                .choices = r->choices,
                                                .include = r->names};
    for (size_t i = 0; i < r->strategy->n; i++) {
        const struct msc_strategy_edit *e = &r->strategy->edits[i];
        r->choice_of[i] = MSC_NO_ID;
        if (r->is_done[i]) {
            continue;
        }
        bool fits = is_weight(r, e) ? goes_along(&r->options.weights, &has_weights, e)
                                    : goes_along(&r->options.activations, &has_activations, e);
        if (fits) {
            r->choice_of[i] = add_choice(r, e);
            r->names[r->options.n_include++] = e->tensor;
        }
    }
    return r->options.n_include > 0;
}

static enum msc_status take_quants(struct recalibration *r, const struct msc_quantizer *q) {
    for (size_t i = 0; i < r->strategy->n; i++) {
        struct msc_strategy_edit *e = &r->strategy->edits[i];
        if (r->choice_of[i] == MSC_NO_ID) {
            continue;
        }
        int32_t site = msc_sites_find_name(msc_quantizer_sites(q), e->tensor);
        const struct msc_quant *quant =
            site == MSC_NO_ID ? NULL : msc_quantizer_quant(q, site, r->choice_of[i]);
        if (site != MSC_NO_ID && msc_quantizer_is_left(q, site)) {
            return MSC_FAIL(MSC_E_STATE,
                            "tensor %s contains NaN or infinity on these samples, so it cannot be "
                            "quantised by the strategy",
                            e->tensor);
        }
        if (!quant) {
            return MSC_FAIL(MSC_E_STATE, "tensor %s cannot be quantised in this model", e->tensor);
        }
        MSC_TRY(msc_strategy__copy_quant(r->strategy, &e->edit, quant));
        r->is_done[i] = true;
    }
    return MSC_OK;
}

static enum msc_status recalibration_run_round(struct recalibration *r, struct msc_evaluator *ev) {
    struct msc_quantizer *q;
    MSC_TRY(msc_quantizer_create(&q, r->graph, &r->options));
    enum msc_status status = msc_quantizer_calibrate(q, ev, NULL, NULL);
    if (status == MSC_OK) {
        status = take_quants(r, q);
    }
    msc_quantizer_destroy(q);
    return status;
}

static enum msc_status check_origins(struct recalibration *r) {
    const struct msc_strategy *s = r->strategy;
    for (size_t i = 0; i < s->n; i++) {
        const struct msc_quant *quant = &s->edits[i].edit.quant;
        // 16-bit floats have no scales; dynamic quantisations find theirs at run time
        r->is_done[i] = quant->type != MSC_DTYPE_NONE || quant->is_dynamic;
        if (!r->is_done[i] && !s->edits[i].has_origin) {
            return MSC_FAIL(MSC_E_STATE,
                            "%s: %s does not say how its scales were found; mscgym export RECORD "
                            "--save-strategy writes a file that does",
                            s->name ? s->name : "the strategy", s->edits[i].site);
        }
    }
    return MSC_OK;
}

static enum msc_status recalibration_make_room(struct recalibration *r) {
    size_t n = r->strategy->n + 1;
    r->choice_of = msc_arena_array(&r->arena, n, sizeof(r->choice_of[0]));
    r->is_done = msc_arena_array(&r->arena, n, sizeof(r->is_done[0]));
    r->choices = msc_arena_array(&r->arena, n, sizeof(r->choices[0]));
    r->names = msc_arena_array(&r->arena, n, sizeof(r->names[0]));
    return MSC_ALLOCATED(r->choice_of && r->is_done && r->choices && r->names);
}

enum msc_status msc_strategy_recalibrate(struct msc_strategy *s, const struct msc_graph *g,
                                         struct msc_evaluator *ev) {
    struct recalibration r = {.strategy = s, .graph = g};
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(recalibration_make_room(&r));
    MSC_TRY_OUT(check_origins(&r));
    // Scales may be for other shapes, as those of a network from which channels were removed since.
    MSC_TRY_OUT(msc_strategy__check_sites(s, g));
    while (plan_round(&r)) {
        MSC_TRY_OUT(recalibration_run_round(&r, ev));
    }
    s->weights = msc_graph_weights_hash(g);
    s->has_weights = true;
out:
    msc_arena_finish(&r.arena);
    return status;
}
