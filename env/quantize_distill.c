#include "env/quantize_distill.h"

#include "env/env_quantize.h"
#include "env/quantize_internal.h"
#include "tools/distiller.h"
#include "tools/strategy.h"

#include <math.h>
#include <string.h>

// The quantisation that was tried with a ridge, and an edit of it.
struct candidate {
    struct msc_quant quant;
    struct msc_edit edit;
};

struct distilling {
    struct msc_env *env;
    struct msc_quantize *z;
    const struct msc_quantize_distill_options *options;
    struct msc_quantize_distilled *out;
    struct msc_dataset *fit_samples, *held_samples;
    struct msc_distill *fit, *held; // of `fit` the evaluator alone
    // Biases are rounded by the addresses of edits: candidates keep theirs to the end.
    struct msc_bias_edits *bias_edits;
    struct candidate *candidates;  // [n_sites][n_ridges]
    int32_t *kept;                 // [n_sites] the candidate that the plan has now, or MSC_NO_ID
    const struct msc_edit **edits; // [n_slots] the plan by now
    const struct msc_edit **tried; // [n_ridges][n_slots]
    struct msc_distill_run *runs;  // [n_ridges]
};

static enum msc_status no_stage_memory(void) {
    return MSC_FAIL(MSC_E_NOMEM, "out of memory for the stage distill");
}

static const struct msc_sites *sites_of(const struct distilling *d) {
    return msc_quantizer_sites(d->z->quantizer);
}

static struct candidate *candidate_of(const struct distilling *d, int32_t site, size_t ridge) {
    return &d->candidates[(size_t)site * d->options->n_ridges + ridge];
}

// ---- Samples ----------------------------------------------------------------------------------

// The last samples are held back; of sequences whole ones.
static enum msc_status split_samples(struct distilling *d) {
    const struct msc_dataset *all = msc_env_host(d->env)->dataset;
    int64_t n = msc_dataset_n_samples(all);
    int64_t unit = msc_dataset_is_sequence(all) ? msc_dataset_batch_size(all) : 1;
    int64_t n_fit = n - (int64_t)ceil(d->options->held_back * (double)n);
    n_fit -= n_fit % unit;
    if (n_fit < 1 || n_fit >= n) {
        return MSC_FAIL(
            MSC_E_UNSUPPORTED, "%lld calibration samples%s are too few to hold back %g of them",
            (long long)n, unit > 1 ? " in so long sequences" : "", d->options->held_back);
    }
    d->out->n_held_back = n - n_fit;
    MSC_TRY(msc_dataset_create_part(&d->fit_samples, all, 0, n_fit));
    MSC_TRY(msc_dataset_create_part(&d->held_samples, all, n_fit, n - n_fit));
    MSC_TRY(msc_distill_create_as(&d->fit, d->z->distill, d->fit_samples));
    MSC_TRY(msc_distill_create_as(&d->held, d->z->distill, d->held_samples));
    return msc_distill_compute_reference(d->held);
}

static enum msc_status distilling_init(struct distilling *d, const uint32_t choices[],
                                       struct msc_arena *arena) {
    const struct msc_sites *sites = sites_of(d);
    size_t n_slots = (size_t)sites->n_slots + 1, n_sites = (size_t)sites->n_sites + 1;
    size_t n_ridges = d->options->n_ridges;
    d->candidates = msc_arena_array(arena, n_sites * n_ridges, sizeof(d->candidates[0]));
    d->kept = msc_arena_array(arena, n_sites, sizeof(d->kept[0]));
    d->edits = msc_arena_array(arena, n_slots, sizeof(d->edits[0]));
    d->tried = msc_arena_array(arena, n_ridges * n_slots, sizeof(d->tried[0]));
    d->runs = msc_arena_array(arena, n_ridges, sizeof(d->runs[0]));
    d->out->weights = msc_alloc_zero(n_sites, sizeof(d->out->weights[0]));
    if (!d->candidates || !d->kept || !d->edits || !d->tried || !d->runs || !d->out->weights) {
        return no_stage_memory();
    }
    for (int32_t i = 0; i < sites->n_sites; i++) {
        d->kept[i] = MSC_NO_ID;
    }
    MSC_TRY(msc_bias_edits_create(&d->bias_edits, msc_env_host(d->env)->graph, sites));
    MSC_TRY(msc_quantize__make_room(d->z, 1));
    MSC_TRY(msc_quantize__set_run(d->z, 0, choices));
    memcpy(d->edits, d->z->runs[0].edits, (size_t)sites->n_slots * sizeof(d->edits[0]));
    return split_samples(d);
}

static void distilling_finish(struct distilling *d) {
    size_t n = d->candidates ? (size_t)sites_of(d)->n_sites * d->options->n_ridges : 0;
    for (size_t i = 0; i < n; i++) {
        msc_quant_finish(&d->candidates[i].quant);
    }
    msc_bias_edits_destroy(d->bias_edits);
    msc_distill_destroy(d->fit);
    msc_distill_destroy(d->held);
    msc_dataset_destroy(d->fit_samples);
    msc_dataset_destroy(d->held_samples);
}

// ---- One weight -------------------------------------------------------------------------------

// How the plan quantises a weight that the search has chosen for, or NULL.
static const struct msc_quant *quant_of(const struct distilling *d, int32_t site) {
    const struct msc_site *s = &sites_of(d)->sites[site];
    if (s->kind != MSC_SITE_WEIGHT || !msc_quantizer_is_included(d->z->quantizer, site)) {
        return NULL;
    }
    const struct msc_quant *quant = msc_edit_quant(d->edits[s->slots[0]]);
    return msc_distiller_takes(quant) ? quant : NULL;
}

// Under the plan as it is. Zeroed where a use of the weight is of another kind.
static enum msc_status measure_moment(struct msc_moment *out, const struct distilling *d,
                                      int32_t site) {
    const struct msc_site *s = &sites_of(d)->sites[site];
    struct msc_evaluator *ev = msc_distill_evaluator(d->fit);
    struct msc_moment_options o = MSC_MOMENT_OPTIONS_INIT;
    bool has_all = true;
    o.n_threads = msc_evaluator_n_threads(ev);
    o.edits = d->edits;
    for (int32_t i = 0; has_all && i < s->n_slots; i++) {
        struct msc_moment m = {0};
        size_t n_done;
        MSC_TRY(msc_moments_measure(&m, &n_done, &s->slots[i], 1, ev, &o));
        has_all = m.h != NULL;
        if (i == 0) {
            *out = m;
        } else {
            has_all = msc_moment_add(out, &m);
            msc_moment_finish(&m);
        }
    }
    if (!has_all) {
        msc_moment_finish(out);
    }
    return MSC_OK;
}

// Of n candidates the losses of the plan with each, on the samples held back.
static enum msc_status try_candidates(struct distilling *d, int32_t site) {
    const struct msc_sites *sites = sites_of(d);
    size_t n_slots = (size_t)sites->n_slots;
    for (size_t i = 0; i < d->options->n_ridges; i++) {
        const struct msc_edit **edits = d->tried + i * n_slots;
        memcpy(edits, d->edits, n_slots * sizeof(edits[0]));
        for (int32_t k = 0; k < sites->sites[site].n_slots; k++) {
            edits[sites->sites[site].slots[k]] = &candidate_of(d, site, i)->edit;
        }
        // Biases follow from the others anew.
        memcpy(edits + sites->n_site_slots, d->z->fixed + sites->n_site_slots,
               (size_t)(sites->n_slots - sites->n_site_slots) * sizeof(edits[0]));
        MSC_TRY(msc_bias_edits_fill(d->bias_edits, edits));
        d->runs[i] = (struct msc_distill_run){.edits = edits};
    }
    MSC_TRY(msc_distill_run(d->held, d->runs, d->options->n_ridges, NULL, NULL));
    for (size_t i = 0; i < d->options->n_ridges; i++) {
        if (d->runs[i].status != MSC_OK) {
            return msc_status_restore(d->runs[i].status, d->runs[i].message);
        }
    }
    return MSC_OK;
}

// The best candidate becomes part of the plan if that is better for it.
static void keep_best(struct distilling *d, int32_t site,
                      struct msc_quantize_distilled_weight *weight) {
    size_t n_slots = (size_t)sites_of(d)->n_slots;
    double least = d->out->loss_after;
    for (size_t i = 0; i < d->options->n_ridges; i++) {
        if (d->runs[i].loss < least) {
            least = d->runs[i].loss;
            d->kept[site] = (int32_t)i;
        }
    }
    if (d->kept[site] != MSC_NO_ID) {
        size_t best = (size_t)d->kept[site];
        memcpy(d->edits, d->tried + best * n_slots, n_slots * sizeof(d->edits[0]));
        weight->ridge = d->options->ridges[best];
        d->out->loss_after = least;
        d->out->n_improved++;
    }
    weight->loss = d->out->loss_after;
}

static enum msc_status make_candidates(struct distilling *d, int32_t site,
                                       const struct msc_moment *moment) {
    const struct msc_slot *slot = &sites_of(d)->slots[sites_of(d)->sites[site].slots[0]];
    const struct msc_graph *graph = msc_env_host(d->env)->graph;
    const struct msc_tensor *weight = msc_graph_tensor(graph, slot->tensor);
    int64_t n_rows = msc_tensor_n_elements(weight) / moment->n_columns;
    struct msc_distiller_job job = {
        .weight = weight,
        .slot = slot,
        .now = quant_of(d, site),
        .moment = moment,
        .target = d->z->quantizer_options.target,
        .has_shifts = msc_bias_edits_take_shifts(graph, sites_of(d), site, n_rows),
        .n_threads = msc_evaluator_n_threads(msc_distill_evaluator(d->fit)),
    };
    for (size_t i = 0; i < d->options->n_ridges; i++) {
        struct candidate *c = candidate_of(d, site, i);
        job.ridge = d->options->ridges[i];
        MSC_TRY(msc_distiller_improve(&c->quant, &job));
        c->edit = msc_edit_quantize(c->quant);
    }
    return MSC_OK;
}

static enum msc_status improve_weight(struct distilling *d, int32_t site) {
    struct msc_moment moment = {0};
    struct msc_quantize_distilled_weight *weight = &d->out->weights[d->out->n_weights];
    MSC_TRY(measure_moment(&moment, d, site));
    if (!moment.h) {
        return MSC_OK; // neither a convolution nor a linear layer
    }
    *weight = (struct msc_quantize_distilled_weight){.site = sites_of(d)->sites[site].name,
                                                     .loss = d->out->loss_after};
    d->out->n_weights++;
    enum msc_status status = make_candidates(d, site, &moment);
    msc_moment_finish(&moment);
    if (status == MSC_E_INVALID) { // there is no better weight to try
        return MSC_OK;
    }
    MSC_TRY(status);
    MSC_TRY(try_candidates(d, site));
    keep_best(d, site, weight);
    return MSC_OK;
}

static enum msc_status improve_weights(struct distilling *d) {
    const struct msc_quantize_distill_options *o = d->options;
    const struct msc_sites *sites = sites_of(d);
    struct msc_distill_run run = {.edits = d->edits};
    size_t n = 0, done = 0;
    MSC_TRY(msc_distill_run(d->held, &run, 1, NULL, NULL));
    MSC_TRY(run.status == MSC_OK ? MSC_OK : msc_status_restore(run.status, run.message));
    d->out->loss_before = d->out->loss_after = run.loss;
    for (int32_t i = 0; i < sites->n_sites; i++) {
        n += quant_of(d, i) != NULL;
    }
    for (int32_t i = 0; i < sites->n_sites; i++) { // in topological order
        if (!quant_of(d, i)) {
            continue;
        }
        if (msc_cancel_soon(msc_env_host(d->env)->cancel)) {
            return MSC_FAIL(MSC_E_CANCELLED, "stopped");
        }
        if (o->progress) {
            o->progress(o->payload, done++, n);
        }
        MSC_TRY(improve_weight(d, i));
    }
    return MSC_OK;
}

// ---- What came of it --------------------------------------------------------------------------

static enum msc_status make_strategy(struct distilling *d, const uint32_t choices[]) {
    const struct msc_sites *sites = sites_of(d);
    const struct msc_graph *graph = msc_env_host(d->env)->graph;
    MSC_TRY(msc_quantize__make_strategy(&d->out->strategy, d->env, choices));
    for (int32_t i = 0; i < sites->n_sites; i++) {
        if (d->kept[i] == MSC_NO_ID) {
            continue;
        }
        int32_t choice = msc_quantize__choice_of_site(d->z, i, choices);
        const struct msc_quant *quant = &candidate_of(d, i, (size_t)d->kept[i])->quant;
        const struct msc_strategy_origin origin = {
            .observer = MSC_OBSERVER_HESSIAN,
            .range_scale = 1,
            .is_symmetric = quant->low < 0,
            .rounding = MSC_ROUNDING_DESCENT,
            .correction = quant->shifts ? MSC_CORRECTION_AFFINE : MSC_CORRECTION_NONE};
        const struct msc_strategy_choice made = {
            .label = msc_quantizer_choice(d->z->quantizer, (size_t)choice)->label,
            .quant = quant,
            .origin = &origin};
        MSC_TRY(msc_strategy_set(d->out->strategy, graph, sites, i, &made));
    }
    return MSC_OK;
}

static enum msc_status measure_edits(double metrics[MSC_MAX_METRICS], const struct msc_env *env,
                                     const uint32_t choices[],
                                     const struct msc_edit *const edits[]) {
    const struct msc_quantize *z = msc_env_state(env);
    const struct msc_space *space = &z->space.space;
    struct msc_distill_run run = {.edits = edits};
    for (size_t i = 0; i < space->n_metrics; i++) {
        metrics[i] = NAN;
    }
    for (size_t i = 0; i < space->n_costs; i++) {
        metrics[msc_space_find_metric(space, space->costs[i].metric)] =
            msc_cost_value(&space->costs[i], choices);
    }
    MSC_TRY(msc_quantize_metrics_before(metrics, &z->metrics, env, edits));
    MSC_TRY(msc_distill_run(z->distill, &run, 1, NULL, NULL));
    msc_quantize_metrics_after(metrics, &z->metrics, &run);
    return run.status == MSC_OK ? MSC_OK : msc_status_restore(run.status, run.message);
}

static enum msc_status measure_improved(struct distilling *d, const uint32_t choices[]) {
    MSC_TRY(measure_edits(d->out->metrics, d->env, choices, d->edits));
    return msc_quantize__validate(&d->out->validation, d->env, d->z, d->edits);
}

static enum msc_status check_environment(const struct msc_env *env) {
    return msc_env_definition(env) == &msc_env_quantize
               ? MSC_OK
               : MSC_FAIL(MSC_E_UNSUPPORTED, "environment %s has no weights to improve",
                          msc_env_definition(env)->name);
}

enum msc_status msc_quantize_measure_plan(double metrics[MSC_MAX_METRICS], struct msc_env *env,
                                          const uint32_t choices[],
                                          const struct msc_strategy *plan) {
    struct msc_bias_edits *bias_edits = NULL;
    MSC_TRY(check_environment(env));
    const struct msc_quantize *z = msc_env_state(env);
    const struct msc_graph *graph = msc_env_host(env)->graph;
    const struct msc_sites *sites = msc_quantizer_sites(z->quantizer);
    const struct msc_edit **edits = msc_alloc_zero((size_t)sites->n_slots + 1, sizeof(edits[0]));
    enum msc_status status = edits ? MSC_OK : no_stage_memory();
    MSC_TRY_OUT(status);
    MSC_TRY_OUT(msc_strategy_apply(plan, graph, sites, edits));
    MSC_TRY_OUT(msc_bias_edits_create(&bias_edits, graph, sites));
    MSC_TRY_OUT(msc_bias_edits_fill(bias_edits, edits));
    status = measure_edits(metrics, env, choices, edits);
out:
    msc_bias_edits_destroy(bias_edits);
    msc_free(edits);
    return status;
}

enum msc_status msc_quantize_distill(struct msc_quantize_distilled *out, struct msc_env *env,
                                     const uint32_t choices[],
                                     const struct msc_quantize_distill_options *options) {
    *out = (struct msc_quantize_distilled){.strategy = NULL};
    MSC_TRY(check_environment(env));
    struct msc_arena arena = {0};
    struct distilling d = {.env = env, .z = msc_env_state(env), .options = options, .out = out};
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(distilling_init(&d, choices, &arena));
    MSC_TRY_OUT(improve_weights(&d));
    MSC_TRY_OUT(make_strategy(&d, choices));
    status = measure_improved(&d, choices);
out:
    distilling_finish(&d);
    msc_arena_finish(&arena);
    if (status != MSC_OK) {
        msc_quantize_distilled_finish(out);
    }
    return status;
}

void msc_quantize_distilled_finish(struct msc_quantize_distilled *d) {
    msc_strategy_destroy(d->strategy);
    msc_free(d->weights);
    cJSON_Delete(d->validation);
    *d = (struct msc_quantize_distilled){.strategy = NULL};
}
