#include "env/trial_runs.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "data/dataset.h"
#include "env/whole.h"
#include "graph/graph.h"
#include "graph/wide.h"

#include <math.h>
#include <string.h>
#include <stdio.h>

struct msc_trial_runs *msc_trial_runs_of(const struct msc_env *env) {
    const struct msc_env_def *def = msc_env_definition(env);
    return def->runs ? def->runs(env) : NULL;
}

enum msc_status msc_trial_runs_choose(struct msc_trial_runs *r, struct msc_distill_options *o,
                                      const struct msc_env_metric list[],
                                      const struct msc_env *env) {
    MSC_TRY(msc_metrics_choose(&r->metrics, list, msc_env_host(env), msc_env_config(env)));
    o->metrics = r->metrics.sampled;
    o->n_metrics = r->metrics.n_sampled;
    return MSC_OK;
}

void msc_trial_runs_finish(struct msc_trial_runs *r) {
    msc_distill_destroy(r->validated);
    msc_distill_destroy(r->distill);
    msc_free(r->runs);
    msc_free(r->edits);
}

void msc_trial_runs_drop_caches(const struct msc_trial_runs *r) {
    struct msc_distill *const all[] = {r->distill, r->validated};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i]) {
            msc_evaluator_drop_cache(msc_distill_evaluator(all[i]));
        }
    }
}

static enum msc_status begin_points(const struct msc_trial_runs *r, const uint32_t *const points[],
                                    size_t n) {
    return r->begin ? r->begin(r->payload, points, n) : MSC_OK;
}

enum msc_status msc_trial_runs_make_room(struct msc_trial_runs *r, size_t n) {
    MSC_TRY(begin_points(r, NULL, 0));
    if (n <= r->capacity) {
        return MSC_OK;
    }
    msc_free(r->runs);
    msc_free(r->edits);
    r->capacity = 0;
    r->runs = msc_alloc_zero(n, sizeof(r->runs[0]));
    r->edits = msc_alloc_zero(n * (r->n_slots + 1), sizeof(r->edits[0]));
    MSC_TRY(MSC_ALLOCATED(r->runs && r->edits));
    r->capacity = n;
    return MSC_OK;
}

enum msc_status msc_trial_runs_set(struct msc_trial_runs *r, size_t i, const uint32_t choices[]) {
    const struct msc_edit **edits = r->edits + i * r->n_slots;
    r->runs[i] = (struct msc_distill_run){.edits = edits};
    return r->fill(r->payload, choices, edits);
}

// ---- Functions of definitions -------------------------------------------------------------------

const struct msc_space *msc_trial_runs_space(const struct msc_env *env) {
    return msc_trial_runs_of(env)->space;
}

struct msc_hash msc_trial_runs_hash_inputs(const struct msc_env *env) {
    const struct msc_env_host *host = msc_env_whole_host(env);
    const struct msc_graph *own = msc_graph_own(host->graph);
    struct msc_hash h = msc_graph_hash(own);
    h = msc_hash_combine(h, msc_graph_weights_hash(own));
    return msc_hash_combine(h, msc_dataset_hash(host->dataset));
}

enum msc_status msc_trial_runs_describe_inputs(const struct msc_env *env, cJSON *object) {
    const struct msc_env_host *host = msc_env_whole_host(env);
    const struct msc_graph *own = msc_graph_own(host->graph);
    const struct {
        const char *key;
        struct msc_hash hash;
    } inputs[] = {{"graph", msc_graph_hash(own)},
                  {"weights", msc_graph_weights_hash(own)},
                  {"dataset", msc_dataset_hash(host->dataset)}};
    char text[MSC_HASH_TEXT_BYTES];
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        MSC_TRY(msc_json_add_text(object, inputs[i].key, msc_hash_format(text, inputs[i].hash)));
    }
    return MSC_OK;
}

// ---- Trials -----------------------------------------------------------------------------------

static void finish_trial(void *payload, size_t i) {
    struct msc_trial_runs *r = payload;
    const struct msc_distill_run *run = &r->runs[i];
    const struct msc_env_part *part = r->part;
    struct msc_outcome *o = &r->evaluation->trials[i]->outcome;
    msc_metrics_after(o->metrics, &r->metrics, run);
    // The mean over all batches so far.
    o->reuse_ratio = (o->reuse_ratio * (double)part->first +
                      run->reuse_ratio * (double)(part->end - part->first)) /
                     (double)part->end;
    // Trials share work, so the time is divided equally among them.
    o->time_us += part->kind == MSC_PART_FOLD
                      ? part->found[i].time_us
                      : (msc_clock_ns() - r->began_ns) / 1000 / r->evaluation->n;
    if (o->state == MSC_TRIAL_FAILED) {
        // The trial failed before its run: keep the reason.
    } else if (run->status != MSC_OK) {
        bool is_outside = run->status == MSC_E_NOMEM || run->status == MSC_E_DEVICE;
        msc_outcome_fail(o, is_outside ? MSC_CAUSE_ENVIRONMENT : MSC_CAUSE_TRIAL, "%s",
                         run->message);
    } else if (!isfinite(run->loss)) {
        msc_outcome_fail(o, MSC_CAUSE_TRIAL, "the loss is not a finite number");
    } else if (run->was_stopped) {
        msc_outcome_prune(o, "over its bound after %lld samples", (long long)run->n_samples);
    } else if (run->is_part) {
        msc_outcome_prune(o, "raced out after %lld samples", (long long)run->n_samples);
    } else {
        o->state = MSC_TRIAL_COMPLETE;
        o->reason[0] = '\0';
    }
    if (r->evaluation->finished) {
        r->evaluation->finished(r->evaluation->payload, i);
    }
}

// Fills the metrics that are measured before a run. If a program fails on a trial or takes too
// long, the trial is the cause; if it cannot be started, the environment is.
static enum msc_status measure_before(struct msc_env *env, const struct msc_trial_runs *r,
                                      struct msc_trial *trial,
                                      const struct msc_edit *const edits[]) {
    struct msc_outcome *outcome = &trial->outcome;
    enum msc_status status =
        msc_metrics_before(outcome->metrics, &r->metrics, env, trial->proposal.choices, edits);
    if (status == MSC_OK || status == MSC_E_CANCELLED || status == MSC_E_NOMEM ||
        status == MSC_E_LOST) {
        return status;
    }
    msc_outcome_fail(outcome, status == MSC_E_STATE ? MSC_CAUSE_TRIAL : MSC_CAUSE_ENVIRONMENT, "%s",
                     msc_status_message());
    return MSC_OK;
}

static enum msc_status begin_trials(const struct msc_trial_runs *r,
                                    const struct msc_evaluation *e) {
    const uint32_t **points = msc_alloc_zero(e->n + 1, sizeof(points[0]));
    MSC_TRY(MSC_ALLOCATED(points));
    for (size_t i = 0; i < e->n; i++) {
        points[i] = e->trials[i]->proposal.choices;
    }
    enum msc_status status = begin_points(r, points, e->n);
    msc_free(points);
    return status;
}

enum msc_status msc_trial_runs_evaluate(struct msc_env *env, const struct msc_evaluation *e) {
    const struct msc_env_part whole = {.end =
                                           msc_distill_n_batches(msc_trial_runs_of(env)->distill)};
    return msc_trial_runs_evaluate_part(env, e, &whole);
}

struct msc_env_batches msc_trial_runs_batches(const struct msc_env *env) {
    const struct msc_distill *d = msc_trial_runs_of(env)->distill;
    return (struct msc_env_batches){.n = msc_distill_n_batches(d),
                                    .n_terms = msc_distill_n_terms(d),
                                    .n_sums = msc_distill_n_sums(d)};
}

double msc_trial_runs_partial_loss(const struct msc_env *env, const double terms[],
                                   size_t n_batches) {
    return msc_distill_partial_loss(msc_trial_runs_of(env)->distill, terms, n_batches);
}

static void begin_run(struct msc_trial_runs *r, size_t i) {
    const struct msc_evaluation *e = r->evaluation;
    struct msc_distill_run *run = &r->runs[i];
    run->is_bounded = e->bounds[i] < INFINITY;
    run->bound = e->bounds[i];
    run->terms = r->part->terms ? r->part->terms[i] : NULL;
}

// Fills outcomes of trials that were run elsewhere. Edits are made only for metrics measured before
// runs.
static enum msc_status fold_trials(struct msc_trial_runs *r, struct msc_env *env) {
    const struct msc_env_part *part = r->part;
    bool has_before = part->first == 0 && msc_metrics_has_before(&r->metrics);
    for (size_t i = 0; i < r->evaluation->n; i++) {
        const struct msc_part_found *found = &part->found[i];
        struct msc_trial *trial = r->evaluation->trials[i];
        struct msc_distill_run *run = &r->runs[i];
        *run = (struct msc_distill_run){.edits = NULL};
        if (has_before) {
            MSC_TRY(begin_points(r, (const uint32_t *const[]){trial->proposal.choices}, 1));
            MSC_TRY(msc_trial_runs_set(r, i, trial->proposal.choices));
            MSC_TRY(measure_before(env, r, trial, run->edits));
        }
        begin_run(r, i);
        run->status = found->cause == MSC_CAUSE_NONE          ? MSC_OK
                      : found->cause == MSC_CAUSE_ENVIRONMENT ? MSC_E_DEVICE
                                                              : MSC_E_STATE;
        run->reuse_ratio = found->reuse_ratio;
        snprintf(run->message, sizeof run->message, "%s", found->reason ? found->reason : "");
        MSC_TRY(msc_distill_fold(r->distill, run, part->first + found->n_batches, part->end));
        finish_trial(r, i);
    }
    return MSC_OK;
}

static enum msc_status run_trials(struct msc_trial_runs *r, struct msc_env *env) {
    const struct msc_evaluation *e = r->evaluation;
    const struct msc_env_part *part = r->part;
    MSC_TRY(begin_trials(r, e));
    for (size_t i = 0; i < e->n; i++) {
        struct msc_trial *trial = e->trials[i];
        MSC_TRY(msc_trial_runs_set(r, i, trial->proposal.choices));
        if (part->first == 0 && part->kind == MSC_PART_NEXT) {
            MSC_TRY(measure_before(env, r, trial, r->runs[i].edits));
        }
        begin_run(r, i);
    }
    return msc_distill_run_batches(r->distill, r->runs, e->n, part->first, part->end, finish_trial,
                                   r);
}

enum msc_status msc_trial_runs_evaluate_part(struct msc_env *env, const struct msc_evaluation *e,
                                             const struct msc_env_part *part) {
    struct msc_trial_runs *r = msc_trial_runs_of(env);
    MSC_TRY(msc_trial_runs_make_room(r, e->n));
    r->evaluation = e;
    r->part = part;
    r->began_ns = msc_clock_ns();
    return part->kind == MSC_PART_FOLD ? fold_trials(r, env) : run_trials(r, env);
}

enum msc_status msc_trial_runs_reference(struct msc_env *env, double metrics[MSC_MAX_METRICS]) {
    struct msc_trial_runs *r = msc_trial_runs_of(env);
    struct msc_distill_run run;
    for (size_t i = 0; i < r->space->n_metrics; i++) {
        metrics[i] = r->references[i];
    }
    enum msc_status status = msc_metrics_before(metrics, &r->metrics, env, NULL, NULL);
    if (status == MSC_E_CANCELLED || status == MSC_E_NOMEM || status == MSC_E_LOST) {
        return status;
    }
    if (status != MSC_OK) {
        msc_log(msc_env_host(env)->log, MSC_LOG_WARNING, "cannot measure the float model: %s",
                msc_status_message());
    }
    if (!msc_metrics_need_float(&r->metrics)) {
        return MSC_OK;
    }
    MSC_TRY(msc_whole_run(&run, r->distill, env));
    msc_metrics_after(metrics, &r->metrics, &run);
    return run.status == MSC_OK ? MSC_OK : msc_status_restore(run.status, run.message);
}
