#include "env/quantize/distill.h"

#include "env/quantize/definition.h"
#include "env/quantize/internal.h"
#include "env/whole.h"
#include "tools/distiller.h"
#include "tools/strategy.h"
#include "tools/weight_steps.h"

#include <math.h>
#include <string.h>

// An improved quantisation of a weight, fitted with one of the ridges, and its edit.
struct candidate {
    struct msc_quant quant;
    struct msc_edit edit;
};

// How a candidate is judged on the held-back samples.
enum way {
    BY_OUTPUTS, // by the error of the outputs of the joint that has the weight
    BY_LOSS,    // by the distill loss of the plan
    N_WAYS
};

static const char *const ways[N_WAYS] = {[BY_OUTPUTS] = "outputs", [BY_LOSS] = "loss"};

// One pass over all weights with one way of judging.
struct attempt {
    enum way way;
    struct candidate *candidates;  // [n_sites][n_ridges]
    int32_t *kept;                 // [n_sites], ridge of the candidate in the plan, or MSC_NO_ID
    const struct msc_edit **edits; // [n_slots], the plan so far
    struct msc_quantize_distilled_weight *weights;
    size_t n_weights, n_improved;
    double loss; // of the plan, on the held-back samples
};

struct distilling {
    struct msc_env *env;
    struct msc_quantize *z;
    const struct msc_quantize_distill_options *options;
    struct msc_quantize_distilled *out;
    struct msc_dataset *fit_samples, *held_samples;
    struct msc_distill *fit, *held; // losses on both parts; `fit` is used only for its evaluator
    // Bias edits identify other edits by address, so candidates must not move until the end.
    struct msc_bias_edits *bias_edits;
    const struct msc_edit **before; // [n_slots], the plan to improve
    struct attempt attempts[N_WAYS];
    const struct msc_edit **tried; // [n_ridges][n_slots], the plan with each candidate
    struct msc_distill_run *runs;  // [n_ridges]
    size_t n_done, n_sites;        // progress over all attempts
};

static const struct msc_sites *sites_of(const struct distilling *d) {
    return msc_quantizer_sites(d->z->quantizer);
}

static struct candidate *candidate_of(const struct distilling *d, const struct attempt *a,
                                      int32_t site, size_t ridge) {
    return &a->candidates[(size_t)site * d->options->n_ridges + ridge];
}

// ---- Samples ----------------------------------------------------------------------------------

// Holds back the last samples; sequences are not divided.
static enum msc_status split_samples(struct distilling *d) {
    const struct msc_dataset *all = msc_env_host(d->env)->dataset;
    int64_t n = msc_dataset_n_samples(all);
    int64_t unit = msc_dataset_is_sequence(all) ? msc_dataset_batch_size(all) : 1;
    int64_t n_fit = n - (int64_t)ceil(d->options->held_back * (double)n);
    n_fit -= n_fit % unit;
    if (n_fit < 1 || n_fit >= n) {
        return MSC_FAIL(
            MSC_E_UNSUPPORTED,
            "%lld calibration samples%s are too few to hold back a fraction of %g; add samples",
            (long long)n, unit > 1 ? " in sequences of this length" : "", d->options->held_back);
    }
    d->out->n_held_back = n - n_fit;
    msc_trial_runs_drop_caches(&d->z->runs); // the evaluators of the parts need the memory
    MSC_TRY(msc_dataset_create_part(&d->fit_samples, all, 0, n_fit));
    MSC_TRY(msc_dataset_create_part(&d->held_samples, all, n_fit, n - n_fit));
    MSC_TRY(msc_distill_create_as(&d->fit, d->z->runs.distill, d->fit_samples));
    MSC_TRY(msc_distill_create_as(&d->held, d->z->runs.distill, d->held_samples));
    return msc_whole_compute_reference(d->held, d->env);
}

static enum msc_status begin_attempt(struct distilling *d, enum way way, struct msc_arena *arena) {
    const struct msc_sites *sites = sites_of(d);
    size_t n_slots = (size_t)sites->n_slots, n_sites = (size_t)sites->n_sites;
    struct attempt *a = &d->attempts[way];
    *a = (struct attempt){.way = way, .loss = d->out->loss_before};
    a->candidates =
        msc_arena_array(arena, n_sites * d->options->n_ridges + 1, sizeof(a->candidates[0]));
    a->kept = msc_arena_array(arena, n_sites + 1, sizeof(a->kept[0]));
    a->edits = msc_arena_array(arena, n_slots + 1, sizeof(a->edits[0]));
    a->weights = msc_alloc_zero(n_sites + 1, sizeof(a->weights[0]));
    MSC_TRY(MSC_ALLOCATED(a->candidates && a->kept && a->edits && a->weights));
    for (size_t i = 0; i < n_sites; i++) {
        a->kept[i] = MSC_NO_ID;
    }
    memcpy(a->edits, d->before, n_slots * sizeof(a->edits[0]));
    return MSC_OK;
}

static enum msc_status distilling_init(struct distilling *d, const uint32_t choices[],
                                       struct msc_arena *arena) {
    const struct msc_sites *sites = sites_of(d);
    size_t n_slots = (size_t)sites->n_slots + 1, n_ridges = d->options->n_ridges;
    d->before = msc_arena_array(arena, n_slots, sizeof(d->before[0]));
    d->tried = msc_arena_array(arena, n_ridges * n_slots, sizeof(d->tried[0]));
    d->runs = msc_arena_array(arena, n_ridges, sizeof(d->runs[0]));
    MSC_TRY(MSC_ALLOCATED(d->before && d->tried && d->runs));
    MSC_TRY(msc_bias_edits_create(&d->bias_edits, msc_env_host(d->env)->graph, sites));
    MSC_TRY(msc_trial_runs_make_room(&d->z->runs, 1));
    MSC_TRY(msc_trial_runs_set(&d->z->runs, 0, choices));
    memcpy(d->before, d->z->runs.runs[0].edits, (size_t)sites->n_slots * sizeof(d->before[0]));
    return split_samples(d);
}

static void distilling_finish(struct distilling *d) {
    for (size_t i = 0; i < N_WAYS; i++) {
        const struct attempt *a = &d->attempts[i];
        size_t n = a->candidates ? (size_t)sites_of(d)->n_sites * d->options->n_ridges : 0;
        for (size_t k = 0; k < n; k++) {
            msc_quant_finish(&a->candidates[k].quant);
        }
        msc_free(a->weights);
    }
    msc_bias_edits_destroy(d->bias_edits);
    msc_distill_destroy(d->fit);
    msc_distill_destroy(d->held);
    msc_dataset_destroy(d->fit_samples);
    msc_dataset_destroy(d->held_samples);
}

// ---- One weight -------------------------------------------------------------------------------

// Has a weight more columns than are improved? Its rows are along the channel axis.
static bool is_too_long(const struct distilling *d, const struct msc_site *s) {
    const struct msc_tensor *t = msc_graph_tensor(msc_env_host(d->env)->graph, s->tensor);
    return d->options->most_columns > 0 && s->channel_axis >= 0 &&
           msc_tensor_n_elements(t) > d->options->most_columns * t->dims[s->channel_axis];
}

// The quantisation of a site in a plan if it is a weight that can be improved; else NULL.
static const struct msc_quant *quant_of(const struct distilling *d,
                                        const struct msc_edit *const edits[], int32_t site) {
    const struct msc_site *s = &sites_of(d)->sites[site];
    if (s->kind != MSC_SITE_WEIGHT || !msc_quantizer_is_included(d->z->quantizer, site)) {
        return NULL;
    }
    const struct msc_quant *quant = msc_edit_quant(edits[s->slots[0]]);
    return msc_distiller_takes(quant) && !is_too_long(d, s) ? quant : NULL;
}

// Measures the second moment of a weight's inputs on some samples, under the current plan. *out is
// zeroed if a use of the weight is neither a convolution nor a linear layer.
static enum msc_status measure_moment(struct msc_moment *out, const struct distilling *d,
                                      const struct attempt *a, struct msc_distill *samples,
                                      int32_t site) {
    const struct msc_site *s = &sites_of(d)->sites[site];
    struct msc_evaluator *ev = msc_distill_evaluator(samples);
    struct msc_moment_options o = MSC_MOMENT_OPTIONS_INIT;
    bool has_all = true;
    o.n_threads = msc_evaluator_n_threads(ev);
    o.edits = a->edits;
    o.n_rows = d->options->most_rows > 0 ? d->options->most_rows : o.n_rows;
    o.most_of_column = d->options->most_of_column;
    *out = (struct msc_moment){.h = NULL};
    for (int32_t i = 0; has_all && i < s->n_slots; i++) {
        struct msc_moment m = {0};
        size_t n_done;
        MSC_TRY(msc_moments_measure(&m, &n_done, &s->slots[i], 1, ev, &o));
        has_all = m.h != NULL;
        if (i == 0) {
            *out = m;
        } else {
            enum msc_status status = msc_moment_add(&has_all, out, &m);
            msc_moment_finish(&m);
            MSC_TRY(status);
        }
    }
    if (!has_all) {
        msc_moment_finish(out);
    }
    return MSC_OK;
}

static struct msc_distiller_job job_of(const struct distilling *d, int32_t site,
                                       const struct msc_moment *moment) {
    const struct msc_slot *slot = &sites_of(d)->slots[sites_of(d)->sites[site].slots[0]];
    const struct msc_graph *graph = msc_env_host(d->env)->graph;
    const struct msc_tensor *weight = msc_graph_tensor(graph, slot->tensor);
    int64_t n_rows = msc_tensor_n_elements(weight) / moment->n_columns;
    return (struct msc_distiller_job){
        .weight = weight,
        .slot = slot,
        .moment = moment,
        .target = d->z->quantizer_options.target,
        .has_shifts = msc_bias_edits_take_shifts(graph, sites_of(d), site, n_rows),
        .n_threads = msc_evaluator_n_threads(msc_distill_evaluator(d->fit)),
    };
}

struct plan {
    const struct msc_sites *sites;
    const struct msc_edit *const *edits; // [n_slots]
};

// The least scale of a joint's integer activations; 0 if it has none.
static double scale_in_plan(const void *payload, int32_t joint) {
    const struct plan *plan = payload;
    const struct msc_sites *sites = plan->sites;
    double least = INFINITY;
    for (int32_t i = 0; i < sites->n_site_slots; i++) {
        const struct msc_slot *slot = &sites->slots[i];
        const struct msc_quant *quant = msc_edit_quant(plan->edits[i]);
        if (slot->joint == joint && slot->kind == MSC_SITE_ACTIVATION &&
            msc_quant_is_static(quant)) {
            least = fmin(least, (double)quant->scales[0]);
        }
    }
    return isfinite(least) ? least : 0;
}

// Widens the candidate's scales until the target can add the bias.
static enum msc_status widen_candidate(struct candidate *c, const struct distilling *d,
                                       const struct attempt *a, int32_t site) {
    const struct plan plan = {sites_of(d), a->edits};
    const struct msc_weight_steps beside = {.graph = msc_env_host(d->env)->graph,
                                            .sites = plan.sites,
                                            .site = site,
                                            .scale_of = scale_in_plan,
                                            .payload = &plan};
    struct msc_quant wider;
    MSC_TRY(msc_weight_steps_widen(&wider, &c->quant, &beside));
    if (wider.n > 0) {
        msc_quant_finish(&c->quant);
        c->quant = wider;
    }
    return MSC_OK;
}

static enum msc_status make_candidates(const struct distilling *d, const struct attempt *a,
                                       int32_t site, const struct msc_moment *moment) {
    struct msc_distiller_job job = job_of(d, site, moment);
    job.now = quant_of(d, a->edits, site);
    struct msc_quant found[MSC_QUANTIZE_MOST_RIDGES];
    job.ridges = d->options->ridges;
    job.n_ridges = d->options->n_ridges;
    job.fits_ranges = d->options->fits_ranges;
    MSC_TRY(msc_distiller_improve(found, &job));
    for (size_t i = 0; i < d->options->n_ridges; i++) {
        candidate_of(d, a, site, i)->quant = found[i];
    }
    for (size_t i = 0; i < d->options->n_ridges; i++) {
        struct candidate *c = candidate_of(d, a, site, i);
        MSC_TRY(widen_candidate(c, d, a, site));
        c->edit = msc_edit_quantize(c->quant);
    }
    return MSC_OK;
}

// Sets `tried` to the plan with each of the candidates.
static enum msc_status apply_candidates(struct distilling *d, const struct attempt *a,
                                        int32_t site) {
    const struct msc_sites *sites = sites_of(d);
    size_t n_slots = (size_t)sites->n_slots;
    for (size_t i = 0; i < d->options->n_ridges; i++) {
        const struct msc_edit **edits = d->tried + i * n_slots;
        memcpy(edits, a->edits, n_slots * sizeof(edits[0]));
        for (int32_t k = 0; k < sites->sites[site].n_slots; k++) {
            edits[sites->sites[site].slots[k]] = &candidate_of(d, a, site, i)->edit;
        }
        // Bias edits are computed again from the other edits.
        memcpy(edits + sites->n_site_slots, d->z->fixed + sites->n_site_slots,
               (size_t)(sites->n_slots - sites->n_site_slots) * sizeof(edits[0]));
        MSC_TRY(msc_bias_edits_fill(d->bias_edits, edits));
        d->runs[i] = (struct msc_distill_run){.edits = edits};
    }
    return MSC_OK;
}

// ---- On the samples held back -----------------------------------------------------------------

static enum msc_status measure_loss(double *out, const struct distilling *d,
                                    const struct msc_edit *const edits[]) {
    struct msc_distill_run run = {.edits = edits};
    MSC_TRY(msc_distill_run(d->held, &run, 1, NULL, NULL));
    *out = run.loss;
    return run.status == MSC_OK ? MSC_OK : msc_status_restore(run.status, run.message);
}

static enum msc_status judge_by_loss(double *now, double values[], const struct distilling *d,
                                     const struct attempt *a) {
    *now = a->loss;
    MSC_TRY(msc_distill_run(d->held, d->runs, d->options->n_ridges, NULL, NULL));
    for (size_t i = 0; i < d->options->n_ridges; i++) {
        values[i] = d->runs[i].loss;
        if (d->runs[i].status != MSC_OK) {
            return msc_status_restore(d->runs[i].status, d->runs[i].message);
        }
    }
    return MSC_OK;
}

static enum msc_status judge_by_outputs(double *now, double values[], const struct distilling *d,
                                        const struct attempt *a, int32_t site) {
    struct msc_moment moment;
    MSC_TRY(measure_moment(&moment, d, a, d->held, site));
    const struct msc_distiller_job job = job_of(d, site, &moment);
    const struct msc_quant *quants[MSC_QUANTIZE_MOST_RIDGES + 1] = {quant_of(d, a->edits, site)};
    double errors[MSC_QUANTIZE_MOST_RIDGES + 1] = {0};
    size_t n = d->options->n_ridges;
    for (size_t i = 0; i < n; i++) {
        quants[i + 1] = &candidate_of(d, a, site, i)->quant;
    }
    enum msc_status status = msc_distiller_errors(errors, &job, quants, n + 1);
    for (size_t i = 0; status == MSC_OK && i < n; i++) {
        values[i] = errors[i + 1];
    }
    *now = errors[0];
    msc_moment_finish(&moment);
    return status;
}

// Puts the best candidate into the plan if it is better than the weight in the plan.
static enum msc_status keep_best(struct distilling *d, struct attempt *a, int32_t site,
                                 struct msc_quantize_distilled_weight *weight) {
    double values[MSC_QUANTIZE_MOST_RIDGES], least;
    size_t n_slots = (size_t)sites_of(d)->n_slots;
    MSC_TRY(apply_candidates(d, a, site));
    MSC_TRY(a->way == BY_LOSS ? judge_by_loss(&least, values, d, a)
                              : judge_by_outputs(&least, values, d, a, site));
    for (size_t i = 0; i < d->options->n_ridges; i++) {
        if (values[i] < least) {
            least = values[i];
            a->kept[site] = (int32_t)i;
        }
    }
    if (a->kept[site] != MSC_NO_ID) {
        size_t best = (size_t)a->kept[site];
        memcpy(a->edits, d->tried + best * n_slots, n_slots * sizeof(a->edits[0]));
        weight->ridge = d->options->ridges[best];
        a->n_improved++;
        a->loss = a->way == BY_LOSS ? least : a->loss;
    }
    return MSC_OK;
}

// ---- All weights ------------------------------------------------------------------------------

static enum msc_status improve_weight(struct distilling *d, struct attempt *a, int32_t site) {
    struct msc_moment moment;
    struct msc_quantize_distilled_weight *weight = &a->weights[a->n_weights];
    MSC_TRY(measure_moment(&moment, d, a, d->fit, site));
    if (!moment.h) {
        return MSC_OK; // neither a convolution nor a linear layer
    }
    *weight = (struct msc_quantize_distilled_weight){.site = sites_of(d)->sites[site].name};
    a->n_weights++;
    enum msc_status status = make_candidates(d, a, site, &moment);
    msc_moment_finish(&moment);
    if (status == MSC_E_INVALID) { // no improved weight was found
        return MSC_OK;
    }
    MSC_TRY(status);
    return keep_best(d, a, site, weight);
}

static enum msc_status improve_weights(struct distilling *d, struct attempt *a) {
    const struct msc_quantize_distill_options *o = d->options;
    for (int32_t i = 0; i < sites_of(d)->n_sites; i++) { // in topological order
        if (!quant_of(d, d->before, i)) {
            continue;
        }
        if (msc_cancel_soon(msc_env_host(d->env)->cancel)) {
            return MSC_FAIL(MSC_E_CANCELLED, "stopped");
        }
        if (o->progress) {
            o->progress(o->payload, d->n_done, (size_t)(a->way + 1) * d->n_sites);
        }
        d->n_done++;
        MSC_TRY(improve_weight(d, a, i));
    }
    return measure_loss(&a->loss, d, a->edits);
}

// Judges candidates first by the outputs of their joints; the plan's loss is used only once, at the
// end. Judging each candidate by the plan's loss overfits the held-back samples a little, so this
// second way is used only if the first one does not improve the plan.
static enum msc_status improve_plan(struct attempt **best, struct distilling *d,
                                    struct msc_arena *arena) {
    for (int32_t i = 0; i < sites_of(d)->n_sites; i++) {
        d->n_sites += quant_of(d, d->before, i) != NULL;
    }
    MSC_TRY(measure_loss(&d->out->loss_before, d, d->before));
    for (int way = 0; way < (d->options->only_outputs ? BY_LOSS : N_WAYS); way++) {
        struct attempt *a = &d->attempts[way];
        MSC_TRY(begin_attempt(d, (enum way)way, arena));
        MSC_TRY(improve_weights(d, a));
        msc_log(msc_env_host(d->env)->log, MSC_LOG_INFO,
                "weights judged by %s: %zu of %zu improved, loss on the held-back samples %.4g, "
                "before %.4g",
                ways[way], a->n_improved, a->n_weights, a->loss, d->out->loss_before);
        *best = a;
        if (a->loss < d->out->loss_before) {
            break;
        }
    }
    return MSC_OK;
}

// ---- Results ----------------------------------------------------------------------------------

static enum msc_status make_strategy(struct distilling *d, const struct attempt *a,
                                     const uint32_t choices[]) {
    const struct msc_sites *sites = sites_of(d);
    const struct msc_graph *graph = msc_env_host(d->env)->graph;
    MSC_TRY(msc_quantize__make_strategy(&d->out->strategy, d->env, choices));
    for (int32_t i = 0; i < sites->n_sites; i++) {
        if (a->kept[i] == MSC_NO_ID) {
            continue;
        }
        int32_t choice = msc_quantize__choice_of_site(d->z, i, choices);
        const struct msc_quant *quant = &candidate_of(d, a, i, (size_t)a->kept[i])->quant;
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
    MSC_TRY(msc_metrics_before(metrics, &z->runs.metrics, env, choices, edits));
    MSC_TRY(msc_distill_run(z->runs.distill, &run, 1, NULL, NULL));
    msc_metrics_after(metrics, &z->runs.metrics, &run);
    return run.status == MSC_OK ? MSC_OK : msc_status_restore(run.status, run.message);
}

static enum msc_status take_best(struct distilling *d, struct attempt *a,
                                 const uint32_t choices[]) {
    if (d->options->only_outputs && !(a->loss < d->out->loss_before)) {
        return MSC_OK;
    }
    d->out->loss_after = a->loss;
    d->out->by = ways[a->way];
    d->out->n_weights = a->n_weights;
    d->out->n_improved = a->n_improved;
    d->out->weights = a->weights;
    a->weights = NULL;
    MSC_TRY(make_strategy(d, a, choices));
    MSC_TRY(measure_edits(d->out->metrics, d->env, choices, a->edits));
    return msc_trial_runs_validate(&d->out->validation, d->env, &d->z->runs, a->edits);
}

static enum msc_status check_environment(const struct msc_env *env) {
    return msc_env_definition(env) == &msc_env_quantize
               ? MSC_OK
               : MSC_FAIL(MSC_E_UNSUPPORTED,
                          "environment %s has no weights to improve, expected quantize",
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
    enum msc_status status = MSC_ALLOCATED(edits);
    MSC_TRY_OUT(status);
    MSC_TRY_OUT(msc_strategy_apply_to_any(plan, graph, sites, edits));
    MSC_TRY_OUT(msc_strategy_check_weights(plan, msc_env_whole_host(env)->graph));
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
    struct attempt *best = NULL;
    struct distilling d = {.env = env, .z = msc_env_state(env), .options = options, .out = out};
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(distilling_init(&d, choices, &arena));
    MSC_TRY_OUT(improve_plan(&best, &d, &arena));
    status = take_best(&d, best, choices);
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
