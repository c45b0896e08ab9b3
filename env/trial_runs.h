// Trials as runs of the network: the base of environments that turn choices into edits of the
// network and measure the result by the distill loss. Such an environment has a struct
// msc_trial_runs in its state. The definition's function `runs` returns it. The definition's `init`
// fills the first part of the struct.
//
//     const struct msc_env_def msc_env_quantize = {
//         MSC_TRIAL_RUNS_DEFINITION,            // the functions that need only the runs
//         .name = "quantize", .init = quantize_init, .runs = quantize_runs, ...};
//
//     struct msc_trial_runs *r = &state->runs;  // in init
//     r->fill = fill_edits, r->fill_alone = fill_one, r->payload = state;
//     MSC_TRY(msc_trial_runs_choose(r, &options, metrics, env));
//     MSC_TRY(msc_distill_create(&r->distill, host, host->dataset, &options));
//     r->space = &state->space, r->references = state->references, r->n_slots = n_slots;
//
//     msc_trial_runs_finish(r);                 // in finish
#ifndef MSC_ENV_TRIAL_RUNS_H
#define MSC_ENV_TRIAL_RUNS_H

#include "base/json.h"
#include "env/env.h"
#include "env/metrics.h"

struct msc_trial_runs {
    // Set by the environment:
    const struct msc_space *space;
    const double *references; // the float model's values, from msc_metrics_build
    struct msc_metrics metrics;
    struct msc_distill *distill;   // on the calibration samples; owned
    struct msc_distill *validated; // on the validation samples; created on demand; owned
    size_t n_slots;
    // Optional: called before the edits of an evaluation are filled. `points` [n] are the points to
    // be evaluated; `n` is 0 if the points are not known. Edits filled earlier are no longer used.
    enum msc_status (*begin)(void *payload, const uint32_t *const points[], size_t n);
    // Fills the edits [n_slots] of a point. `fill_alone` fills the edits of one task's choice; all
    // other tasks remain as in the float model.
    enum msc_status (*fill)(void *payload, const uint32_t choices[],
                            const struct msc_edit *edits[]);
    enum msc_status (*fill_alone)(void *payload, const uint32_t choices[], size_t task,
                                  const struct msc_edit *edits[]);
    void *payload;

    // The current call:
    const struct msc_evaluation *evaluation;
    const struct msc_env_part *part;
    uint64_t began_ns;
    struct msc_distill_run *runs;
    const struct msc_edit **edits; // [n_runs][n_slots]
    size_t capacity;
};

// The runs of an environment, or NULL if it has none.
struct msc_trial_runs *msc_trial_runs_of(const struct msc_env *env);
// Chooses the metrics of an environment with this list. Sets the metrics of *o to those that the
// loss must measure.
enum msc_status msc_trial_runs_choose(struct msc_trial_runs *r, struct msc_distill_options *o,
                                      const struct msc_env_metric list[],
                                      const struct msc_env *env);
void msc_trial_runs_finish(struct msc_trial_runs *r); // accepts a zeroed struct
// Frees the results that the evaluators keep; they are computed again when they are needed.
void msc_trial_runs_drop_caches(const struct msc_trial_runs *r);

// Begins an evaluation: makes room for at least n runs. Earlier contents of `runs` and `edits` are
// lost.
enum msc_status msc_trial_runs_make_room(struct msc_trial_runs *r, size_t n);
// Sets run i to the edits of a point.
enum msc_status msc_trial_runs_set(struct msc_trial_runs *r, size_t i, const uint32_t choices[]);

// The functions of MSC_TRIAL_RUNS_DEFINITION.
const struct msc_space *msc_trial_runs_space(const struct msc_env *env);
enum msc_status msc_trial_runs_evaluate(struct msc_env *env, const struct msc_evaluation *e);
struct msc_env_batches msc_trial_runs_batches(const struct msc_env *env);
enum msc_status msc_trial_runs_evaluate_part(struct msc_env *env, const struct msc_evaluation *e,
                                             const struct msc_env_part *part);
double msc_trial_runs_partial_loss(const struct msc_env *env, const double terms[],
                                   size_t n_batches);
enum msc_status msc_trial_runs_reference(struct msc_env *env, double metrics[MSC_MAX_METRICS]);
enum msc_status msc_trial_runs_reevaluate(struct msc_env *env, const uint32_t choices[],
                                          unsigned what, cJSON **out);

// clang-format off
#define MSC_TRIAL_RUNS_DEFINITION                                                                  \
    .abi = MSC_ENV_ABI,                                                                            \
    .needs = MSC_ENV_NEEDS_GRAPH | MSC_ENV_NEEDS_DATASET | MSC_ENV_NEEDS_BACKEND,                  \
    .space = msc_trial_runs_space,                                                                 \
    .evaluate = msc_trial_runs_evaluate,                                                           \
    .batches = msc_trial_runs_batches,                                                             \
    .evaluate_part = msc_trial_runs_evaluate_part,                                                 \
    .partial_loss = msc_trial_runs_partial_loss,                                                   \
    .reference = msc_trial_runs_reference,                                                         \
    .reevaluate = msc_trial_runs_reevaluate
// clang-format on

// For `identity` and `describe`: hashes of the whole model, its weights and the samples of the
// search.
struct msc_hash msc_trial_runs_hash_inputs(const struct msc_env *env);
enum msc_status msc_trial_runs_describe_inputs(const struct msc_env *env, cJSON *object);

// The loss on the validation samples, created on demand. *out is NULL if there are no such samples,
// or if the loss cannot be computed on them, which is logged.
enum msc_status msc_trial_runs_get_validated(struct msc_distill **out, struct msc_env *env,
                                             struct msc_trial_runs *r);
// Measures a plan and the float model on the validation samples. *out is owned by the caller; NULL
// if there are no such samples.
enum msc_status msc_trial_runs_validate(cJSON **out, struct msc_env *env, struct msc_trial_runs *r,
                                        const struct msc_edit *const edits[]);

enum msc_env_samples {
    MSC_SAMPLES_CALIBRATION, // the samples of the search
    MSC_SAMPLES_VALIDATION,  // held-out samples
};

// Measures outputs that were computed elsewhere, for example by the exported model in its runtime.
// Adds the metrics that the search measures by runs ("distill_loss" and, if there are labels,
// "accuracy") to `object`. `outputs` has an array for each output of the model, with the batches of
// samples concatenated along the first axis. MSC_E_UNSUPPORTED: the loss compares a tensor that is
// not an output, or the environment has no distill loss. MSC_E_NOT_FOUND: the search has no such
// samples.
enum msc_status msc_env_judge(struct cJSON *object, struct msc_env *env,
                              enum msc_env_samples samples, const struct msc_array_list *outputs);

#endif
