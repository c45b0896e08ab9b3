#include "pipeline/stage_profile.h"

#include "base/alloc.h"
#include "base/json.h"

static enum msc_status measure_latency(cJSON *out, const char *name, struct msc_model *m,
                                       const struct msc_dataset *sample,
                                       const struct msc_strategy *strategy, int64_t repeat) {
    static const struct {
        const char *key;
        double fraction;
    } rows[] = {{"p10_us", 0.1}, {"median_us", 0.5}, {"p90_us", 0.9}};
    struct msc_model_run run = {.strategy = strategy, .repeat = repeat};
    struct msc_array **inputs = msc_alloc_zero(m->n_inputs + 1, sizeof *inputs);
    cJSON *object = cJSON_CreateObject();
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(MSC_ALLOCATED(inputs && object));
    for (size_t i = 0; i < m->n_inputs; i++) {
        MSC_TRY_OUT(msc_dataset_chunk(&inputs[i], sample, 0, i, 0));
    }
    run.inputs = (const struct msc_array *const *)inputs;
    MSC_TRY_OUT(msc_model_run(m, &run));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t at = (size_t)(rows[i].fraction * (double)(repeat - 1));
        MSC_TRY_OUT(msc_json_add_number(object, rows[i].key, run.microseconds[at]));
    }
    MSC_TRY_OUT(msc_json_add_number(object, "runs", (double)repeat));
    status = msc_json_add(out, name, object);
    object = NULL;
out:
    cJSON_Delete(object);
    msc_model_run_finish(&run);
    for (size_t i = 0; inputs && i < m->n_inputs; i++) {
        msc_array_release(inputs[i]);
    }
    msc_free(inputs);
    return status;
}

enum msc_status msc_stage_profile(const struct msc_setup *setup, cJSON *report,
                                  const struct msc_strategy *delivered) {
    struct msc_dataset_options o = setup->config->dataset.options;
    struct msc_dataset *sample = NULL;
    cJSON *profile = cJSON_CreateObject();
    int64_t repeat = setup->config->profile_repeat;
    enum msc_status status = msc_json_add(report, "profile", profile);
    if (status != MSC_OK || !o.inputs || !delivered) {
        return status;
    }
    o.samples = 1;
    o.batch = 1;
    o.labels = NULL;
    MSC_TRY_OUT(msc_dataset_load(&sample, &o, setup->model->specs, setup->model->n_inputs));
    MSC_TRY_OUT(measure_latency(profile, "float", setup->model, sample, NULL, repeat));
    status = measure_latency(profile, "winner", setup->model, sample, delivered, repeat);
out:
    msc_dataset_destroy(sample);
    return status;
}
