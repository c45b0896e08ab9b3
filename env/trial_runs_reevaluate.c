// Measures the best point again for the report: noise, isolated losses, validation, memory, effort.
#include "env/trial_runs.h"

#include "data/dataset.h"
#include "env/whole.h"

#include <math.h>

enum { NOISE_RUNS = 8 };

// In larger spaces, measuring each choice by itself would take longer than most searches.
enum { MOST_TASKS_ALONE = 100 };

// If the strategy to start from removes channels, a choice cannot be measured by itself.
static bool measures_alone(const struct msc_env *env, const struct msc_trial_runs *r) {
    return r->space->n_tasks <= MOST_TASKS_ALONE && !msc_whole_is_more(env);
}

static enum msc_status add_run_metrics(cJSON *object, const struct msc_trial_runs *r,
                                       const struct msc_distill_run *run) {
    return run->status == MSC_OK ? msc_metrics_add(object, &r->metrics, run)
                                 : msc_status_restore(run->status, run->message);
}

// Adds the loss on the calibration samples and its noise: the greatest relative change over runs
// with perturbed inputs. The noise is left out if one of these runs gives no finite loss.
static enum msc_status reevaluate_noise(struct msc_trial_runs *r, const uint32_t choices[],
                                        cJSON *out) {
    double noise = 0;
    bool is_known = true;
    MSC_TRY(msc_trial_runs_make_room(r, NOISE_RUNS + 1));
    for (size_t i = 0; i <= NOISE_RUNS; i++) {
        MSC_TRY(msc_trial_runs_set(r, i, choices));
        r->runs[i].noise_seed = i;
    }
    MSC_TRY(msc_distill_run(r->distill, r->runs, NOISE_RUNS + 1, NULL, NULL));
    MSC_TRY(add_run_metrics(out, r, &r->runs[0]));
    for (size_t i = 1; i <= NOISE_RUNS; i++) {
        const struct msc_distill_run *run = &r->runs[i];
        if (run->status != MSC_OK) {
            return msc_status_restore(run->status, run->message);
        }
        double moved = fabs(run->loss - r->runs[0].loss);
        double relative = r->runs[0].loss > 0 ? moved / r->runs[0].loss : moved;
        is_known = is_known && isfinite(relative);
        noise = relative > noise ? relative : noise;
    }
    return is_known ? msc_json_add_number(out, "noise", noise) : MSC_OK;
}

// Adds the sum of isolated losses. Each is the loss of one choice with everything else float, as in
// a search that scores tensors one by one.
static enum msc_status reevaluate_alone(struct msc_trial_runs *r, const uint32_t choices[],
                                        cJSON *out) {
    size_t n = r->space->n_tasks;
    double sum = 0;
    MSC_TRY(msc_trial_runs_make_room(r, n));
    for (size_t t = 0; t < n; t++) {
        const struct msc_edit **edits = r->edits + t * r->n_slots;
        r->runs[t] = (struct msc_distill_run){.edits = edits};
        MSC_TRY(r->fill_alone(r->payload, choices, t, edits));
    }
    MSC_TRY(msc_distill_run(r->distill, r->runs, n, NULL, NULL));
    for (size_t t = 0; t < n; t++) {
        if (r->runs[t].status != MSC_OK) {
            return msc_status_restore(r->runs[t].status, r->runs[t].message);
        }
        sum += r->runs[t].loss;
    }
    return msc_json_add_number(out, "isolated_loss_sum", sum);
}

enum msc_status msc_trial_runs_get_validated(struct msc_distill **out, struct msc_env *env,
                                             struct msc_trial_runs *r) {
    const struct msc_env_host *host = msc_env_host(env);
    *out = r->validated;
    if (*out || !host->validation) {
        return MSC_OK;
    }
    enum msc_status status = msc_distill_create_as(&r->validated, r->distill, host->validation);
    if (status == MSC_E_INVALID) {
        msc_log(host->log, MSC_LOG_WARNING, "no loss on the validation samples: %s",
                msc_status_message());
        return MSC_OK;
    }
    MSC_TRY(status);
    MSC_TRY(msc_whole_compute_reference(r->validated, env));
    *out = r->validated;
    return MSC_OK;
}

enum msc_status msc_trial_runs_validate(cJSON **out, struct msc_env *env, struct msc_trial_runs *r,
                                        const struct msc_edit *const edits[]) {
    const struct msc_env_host *host = msc_env_host(env);
    struct msc_distill_run run = {.edits = edits}, whole;
    struct msc_distill *validated = NULL;
    *out = NULL;
    MSC_TRY(msc_trial_runs_get_validated(&validated, env, r));
    if (!validated) {
        return MSC_OK;
    }
    MSC_TRY(msc_distill_run(validated, &run, 1, NULL, NULL));
    MSC_TRY(msc_whole_run(&whole, validated, env));
    cJSON *object = cJSON_CreateObject();
    enum msc_status status = MSC_ALLOCATED(object);
    MSC_TRY_OUT(status);
    MSC_TRY_OUT(add_run_metrics(object, r, &run));
    MSC_TRY_OUT(msc_metrics_add_float(object, &r->metrics, &whole));
    status =
        msc_json_add_number(object, "samples", (double)msc_dataset_n_samples(host->validation));
out:
    if (status != MSC_OK) {
        cJSON_Delete(object);
        return status;
    }
    *out = object;
    return MSC_OK;
}

static enum msc_status reevaluate_validation(struct msc_env *env, struct msc_trial_runs *r,
                                             const uint32_t choices[], cJSON *out) {
    cJSON *validation = NULL;
    MSC_TRY(msc_trial_runs_make_room(r, 1));
    MSC_TRY(msc_trial_runs_set(r, 0, choices));
    MSC_TRY(msc_trial_runs_validate(&validation, env, r, r->runs[0].edits));
    return validation ? msc_json_add(out, "validation", validation) : MSC_OK;
}

static enum msc_status reevaluate_memory(struct msc_trial_runs *r, const uint32_t choices[],
                                         cJSON *out) {
    uint64_t n_bytes;
    MSC_TRY(msc_trial_runs_make_room(r, 1));
    MSC_TRY(msc_trial_runs_set(r, 0, choices));
    MSC_TRY(msc_evaluator_measure_memory(msc_distill_evaluator(r->distill), r->runs[0].edits,
                                         &n_bytes));
    return msc_json_add_number(out, "memory_bytes", (double)n_bytes);
}

// Effort of an isolated choice, in trials. On average, half of the network depends on the choice
// and is computed again, in floats. On processors with 8-bit instructions, floats take about four
// times as long as the integers of a trial; on others, they take equally long. The factor 3 is in
// between.
#define ALONE_EFFORT (3.0 * 0.5)

static enum msc_status reevaluate_effort(struct msc_env *env, const struct msc_trial_runs *r,
                                         cJSON *out) {
    const struct msc_env_host *host = msc_env_host(env);
    double n_validation = host->validation ? (double)msc_dataset_n_samples(host->validation) : 0.0;
    double n_samples = (double)msc_dataset_n_samples(host->dataset);
    cJSON *effort = cJSON_CreateObject();
    MSC_TRY(msc_json_add(out, "effort", effort));
    MSC_TRY(msc_json_add_number(effort, "noise", NOISE_RUNS + 1));
    double n_alone = measures_alone(env, r) ? (double)r->space->n_tasks : 0.0;
    MSC_TRY(msc_json_add_number(effort, "alone", ALONE_EFFORT * n_alone));
    // Twice, because the uncompressed model also runs on the validation samples.
    return msc_json_add_number(effort, "validation", 2.0 * n_validation / n_samples);
}

enum msc_status msc_trial_runs_reevaluate(struct msc_env *env, const uint32_t choices[],
                                          unsigned what, cJSON **out) {
    struct msc_trial_runs *r = msc_trial_runs_of(env);
    cJSON *object = cJSON_CreateObject();
    enum msc_status status = MSC_ALLOCATED(object);
    if (status == MSC_OK && (what & MSC_REEVALUATE_NOISE)) {
        status = reevaluate_noise(r, choices, object);
    }
    if (status == MSC_OK && (what & MSC_REEVALUATE_ALONE) && measures_alone(env, r)) {
        status = reevaluate_alone(r, choices, object);
    }
    if (status == MSC_OK && (what & MSC_REEVALUATE_VALIDATION)) {
        status = reevaluate_validation(env, r, choices, object);
    }
    if (status == MSC_OK && (what & MSC_REEVALUATE_MEMORY)) {
        status = reevaluate_memory(r, choices, object);
    }
    if (status == MSC_OK && (what & MSC_REEVALUATE_EFFORT)) {
        status = reevaluate_effort(env, r, object);
    }
    if (status != MSC_OK) {
        cJSON_Delete(object);
        return status;
    }
    *out = object;
    return MSC_OK;
}
