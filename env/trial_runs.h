// Trials as runs of the network: the base of environments that turn choices into edits of the network
// and measure these by the distill loss. Such an environment has a struct msc_trial_runs in its state,
// which its definition's `runs` returns. Its init fills the first part of the struct.
//
//     const struct msc_env_def msc_env_quantize = {
//         MSC_TRIAL_RUNS_DEFINITION,            // the functions that need no more than the runs
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
    // The environment's.
    const struct msc_space *space;
    const double *references; // of the float model, as msc_metrics_build has them
    struct msc_metrics metrics;
    struct msc_distill *distill;   // on the calibration samples; owned
    struct msc_distill *validated; // on the validation samples; made when first asked for; owned
    size_t n_slots;
    // Optional: before the edits of an evaluation are filled, with the points [n] that they will be
    // of, as far as these are known. Edits that were filled before are used no longer.
    enum msc_status (*begin)(void *payload, const uint32_t *const points[], size_t n);
    // The edits [n_slots] of a point; and those that the choice of one task alone makes of the float
    // model.
    enum msc_status (*fill)(void *payload, const uint32_t choices[],
                            const struct msc_edit *edits[]);
    enum msc_status (*fill_alone)(void *payload, const uint32_t choices[], size_t task,
                                  const struct msc_edit *edits[]);
    void *payload;

    // Of the call at hand.
    const struct msc_evaluation *evaluation;
    const struct msc_env_part *part;
    uint64_t began_ns;
    struct msc_distill_run *runs;
    const struct msc_edit **edits; // [n_runs][n_slots]
    size_t capacity;
};

// The runs of an environment that has any, or NULL.
struct msc_trial_runs *msc_trial_runs_of(const struct msc_env *env);
// Chooses the metrics of an environment with this list, and has the loss measure them.
enum msc_status msc_trial_runs_choose(struct msc_trial_runs *r, struct msc_distill_options *o,
                                      const struct msc_env_metric list[],
                                      const struct msc_env *env);
void msc_trial_runs_finish(struct msc_trial_runs *r); // accepts zeroed

// Begins an evaluation: makes `runs` and `edits` hold at least n runs; what they held is lost.
enum msc_status msc_trial_runs_make_room(struct msc_trial_runs *r, size_t n);
// Run i applies the choices, one per task.
enum msc_status msc_trial_runs_set(struct msc_trial_runs *r, size_t i, const uint32_t choices[]);

// The functions of the definition that all these environments have.
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

// For `identity` and `describe`: the whole model, its weights and the samples of the search.
struct msc_hash msc_trial_runs_hash_inputs(const struct msc_env *env);
enum msc_status msc_trial_runs_describe_inputs(const struct msc_env *env, cJSON *object);

// The loss on the validation samples, made when first asked for. *out is NULL where there is none,
// and a warning says why.
enum msc_status msc_trial_runs_get_validated(struct msc_distill **out, struct msc_env *env,
                                             struct msc_trial_runs *r);
// What a plan is worth on the validation samples, with what the float model is; *out, the caller's,
// is NULL where there are none.
enum msc_status msc_trial_runs_validate(cJSON **out, struct msc_env *env, struct msc_trial_runs *r,
                                        const struct msc_edit *const edits[]);

enum msc_env_samples {
    MSC_SAMPLES_CALIBRATION, // those of the search
    MSC_SAMPLES_VALIDATION,  // those held out
};

// What outputs are worth that something else has computed, the exported model in its runtime say:
// adds the metrics that the search measures by running the network ("distill_loss", "accuracy" where
// there are labels) to `object`. `outputs` has an array for each output of the model, batch after
// batch of the samples along its first axis. MSC_E_UNSUPPORTED: the loss compares a tensor that is
// no output, or the environment has no distill loss; MSC_E_NOT_FOUND: the search has no such samples.
enum msc_status msc_env_judge(struct cJSON *object, struct msc_env *env,
                              enum msc_env_samples samples, const struct msc_array_list *outputs);

#endif
