#include "model/latency.h"

#include "base/rng.h"
#include "model/model_internal.h"

// ---- One batch --------------------------------------------------------------------------------

static enum msc_status random_array(struct msc_array **out, const struct msc_input_spec *spec,
                                    int64_t batch, struct msc_rng *rng) {
    int64_t dims[MSC_MAX_DIMS];
    struct msc_array *values = NULL;
    bool is_byte = msc_dtype_is_integer(spec->dtype) && msc_dtype_bytes(spec->dtype) == 1;
    for (int k = 0; k < spec->n_dims; k++) {
        int64_t open_length = spec->is_batched && k == spec->axis ? batch : 1;
        dims[k] = spec->dims[k] < 0 ? open_length : spec->dims[k];
    }
    MSC_TRY(msc_array_create(&values, MSC_DTYPE_F32, spec->n_dims, dims));
    float *x = msc_array_data(values);
    for (int64_t i = 0; i < msc_array_n_elements(values); i++) {
        x[i] = msc_dtype_is_float(spec->dtype) ? (float)(2.0 * msc_rng_double(rng) - 1.0)
                                               : (float)msc_rng_below(rng, is_byte ? 128 : 2);
    }
    enum msc_status status = msc_array_convert(out, values, spec->dtype);
    msc_array_release(values);
    return status;
}

static enum msc_status make_random(struct msc_dataset **out, const struct msc_model *m,
                                   int64_t batch) {
    struct msc_rng rng;
    struct msc_array **arrays = msc_alloc_zero(m->n_inputs + 1, sizeof *arrays);
    enum msc_status status = MSC_OK;
    MSC_TRY(MSC_ALLOCATED(arrays));
    msc_rng_seed(&rng, 0, 0);
    for (size_t i = 0; i < m->n_inputs; i++) {
        MSC_TRY_OUT(random_array(&arrays[i], &m->specs[i], batch, &rng));
    }
    status = msc_dataset_create_whole(out, m->specs, (const struct msc_array *const *)arrays,
                                      m->n_inputs);
out:
    for (size_t i = 0; i < m->n_inputs; i++) {
        msc_array_release(arrays[i]);
    }
    msc_free(arrays);
    return status;
}

enum msc_status msc_model_load_first(struct msc_model *m, const char *inputs, int64_t batch) {
    struct msc_dataset_options o = MSC_DATASET_OPTIONS_INIT;
    if (inputs) {
        o.inputs = inputs;
        o.batch = m->is_batched ? batch : 1;
        o.samples = o.batch;
        MSC_TRY(msc_dataset_load(&m->dataset, &o, m->specs, m->n_inputs));
    } else {
        MSC_TRY(make_random(&m->dataset, m, batch));
    }
    msc_model__settle_memory(m);
    return msc_model__take_branches(m, m->dataset, NULL);
}

// ---- Measuring --------------------------------------------------------------------------------

// One model of a measurement.
struct turn {
    struct msc_model_run run;
    struct msc_model_runner runner;
    int64_t n_runs; // runs in each round
};

// Median time of n_runs runs.
static enum msc_status turn_measure(struct turn *turn, int64_t n_runs, double *us) {
    double times[MSC_LATENCY_MAX_RUNS];
    for (int64_t i = 0; i < n_runs; i++) {
        MSC_TRY(msc_model__runner_run(&turn->runner, &times[i]));
    }
    *us = msc_quartiles_of(times, (size_t)n_runs).median;
    return MSC_OK;
}

static enum msc_status turn_open(struct turn *turn, struct msc_model *model) {
    double us = 0;
    MSC_TRY(msc_model__find_wanted(model, &turn->run));
    MSC_TRY(msc_model__runner_open(&turn->runner, model, model->dataset, &turn->run));
    MSC_TRY(turn_measure(turn, 1, &us));
    MSC_TRY(turn_measure(turn, 3, &us));
    double n_runs = MSC_LATENCY_TURN_US / us;
    turn->n_runs = n_runs < 1.0                    ? 1
                   : n_runs > MSC_LATENCY_MAX_RUNS ? MSC_LATENCY_MAX_RUNS
                                                   : (int64_t)n_runs;
    return turn_measure(turn, turn->n_runs, &us);
}

enum msc_status msc_model_latency(struct msc_latency *latency, struct msc_model *const models[],
                                  size_t n_models, size_t n_rounds) {
    struct turn *turns = msc_alloc_zero(n_models, sizeof *turns);
    enum msc_status status = msc_latency_init(latency, n_models, n_rounds);
    if (!turns) {
        status = MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    for (size_t i = 0; status == MSC_OK && i < n_models; i++) {
        status = turn_open(&turns[i], models[i]);
        latency->runs[i] = turns[i].n_runs;
    }
    for (size_t r = 0; status == MSC_OK && r < n_rounds; r++) {
        for (size_t i = 0; status == MSC_OK && i < n_models; i++) {
            status = turn_measure(&turns[i], turns[i].n_runs, &latency->us[i * n_rounds + r]);
        }
    }
    for (size_t i = 0; turns && i < n_models; i++) {
        msc_model__runner_close(&turns[i].runner);
        msc_model_run_finish(&turns[i].run);
    }
    msc_free(turns);
    if (status != MSC_OK) {
        msc_latency_finish(latency);
    }
    return status;
}
