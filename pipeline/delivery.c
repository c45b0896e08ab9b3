#include "pipeline/delivery.h"

#include "base/file.h"
#include "base/json.h"
#include "base/scratch.h"
#include "data/npy.h"
#include "env/trial_runs.h"
#include "graph/onnx/load.h"
#include "graph/target.h"
#include "graph/wide.h"
#include "model/export.h"
#include "model/runtime_samples.h"
#include "tools/runtime.h"
#include "tools/strategy.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct msc_delivery {
    struct msc_arena arena;
    struct msc_delivery_options options;
    const char *runtime_name; // NULL: none
    const char *suffix;       // of the files that it reads
    struct msc_runtime *runtime;
    const char *version, *missing; // of a runtime that was started
    bool is_started;
    struct msc_runtime_samples calibration, validation, one; // n 0: no such samples
    struct msc_scratch scratch;                              // folder for all files
    const char *outputs_path;
    size_t n_exported;
};

// ---- Opening and closing ----------------------------------------------------------------------

enum msc_status msc_delivery_open(struct msc_delivery **out,
                                  const struct msc_delivery_options *options) {
    struct msc_delivery *d = msc_alloc_zero(1, sizeof *d);
    MSC_TRY(MSC_ALLOCATED(d));
    d->options = *options;
    d->runtime_name = options->runtime;
    d->suffix = msc_target_suffix(options->target ? msc_target_find(options->target) : NULL);
    enum msc_status status = msc_scratch_make(&d->scratch, &d->arena);
    if (status == MSC_OK) {
        d->outputs_path = msc_path_join(&d->arena, d->scratch.path, "outputs.npz");
        status = MSC_ALLOCATED(d->outputs_path);
    }
    if (status != MSC_OK) {
        msc_delivery_close(d);
        return status;
    }
    *out = d;
    return MSC_OK;
}

void msc_delivery_close(struct msc_delivery *d) {
    if (!d) {
        return;
    }
    msc_runtime_stop(d->runtime);
    msc_scratch_remove(&d->scratch);
    msc_arena_finish(&d->arena);
    msc_free(d);
}

static void delivery_tell(const struct msc_delivery *d, const char *what,
                          const struct msc_delivery_plan *plan) {
    char text[160];
    snprintf(text, sizeof text, "%s%s%.60s in %s", what, plan ? " of " : "", plan ? plan->name : "",
             d->runtime_name ? d->runtime_name : "its file");
    if (d->options.tell) {
        d->options.tell(d->options.payload, text);
    }
}

// ---- The runtime ------------------------------------------------------------------------------

static enum msc_status write_samples(struct msc_delivery *d) {
    const struct msc_model *m = d->options.model;
    const char *folder = d->scratch.path;
    MSC_TRY(
        msc_runtime_samples_write_first(&d->one, &d->arena, m->dataset, m->specs, folder, "one"));
    if (msc_dataset_is_sequence(m->dataset)) {
        return MSC_OK; // a runtime runs single chunks and does not pass states on
    }
    MSC_TRY(msc_runtime_samples_write(&d->calibration, &d->arena, m->dataset, m->specs, folder,
                                      "calibration"));
    return m->validation ? msc_runtime_samples_write(&d->validation, &d->arena, m->validation,
                                                     m->specs, folder, "validation")
                         : MSC_OK;
}

enum msc_status msc_delivery_start(struct msc_delivery *d, const char **missing) {
    struct msc_runtime_options o = MSC_RUNTIME_OPTIONS_INIT;
    const struct msc_runtime_found *found = NULL;
    *missing = d->missing;
    if (d->is_started) {
        return MSC_OK;
    }
    o.cancel = d->options.cancel;
    delivery_tell(d, "start", NULL);
    enum msc_status status = msc_runtime_start(&d->runtime, &o);
    if (status == MSC_OK) {
        status = msc_runtime_find(&found, d->runtime, d->runtime_name);
    }
    if (status == MSC_E_NOT_FOUND || status == MSC_E_DEVICE) {
        d->missing = msc_arena_strdup(&d->arena, status == MSC_E_DEVICE ? found->missing
                                                                        : msc_status_message());
        *missing = d->missing;
        d->is_started = true;
        return MSC_ALLOCATED(*missing);
    }
    MSC_TRY(status);
    d->version = found->version;
    MSC_TRY(write_samples(d));
    d->is_started = true;
    return MSC_OK;
}

enum msc_status msc_delivery_describe(const struct msc_delivery *d, struct cJSON *object) {
    MSC_TRY(msc_json_add_text(object, "name", d->runtime_name));
    MSC_TRY(msc_json_add_text(object, "version", d->version));
    MSC_TRY(msc_json_add_text(object, "processor", msc_runtime_host(d->runtime)->processor));
    MSC_TRY(msc_json_add_number(object, "threads", d->options.n_threads));
    return msc_json_add_number(object, "rounds", (double)d->options.n_rounds);
}

// Turns a refusal, or outputs of the wrong form, into a failure of the plan. Other failures, such
// as a crash of the runtime or a cancellation, are returned.
static enum msc_status settle(struct msc_delivery *d, struct msc_delivery_plan *plan,
                              enum msc_status status) {
    bool is_of_plan = status == MSC_E_STATE || status == MSC_E_FORMAT;
    if (!is_of_plan || !msc_runtime_is_alive(d->runtime)) {
        return status;
    }
    plan->is_refused = status == MSC_E_STATE;
    plan->failure = msc_arena_strdup(&d->arena, msc_status_message());
    return MSC_ALLOCATED(plan->failure);
}

static void fill_job(struct msc_runtime_job *job, const struct msc_delivery *d,
                     const struct msc_runtime_samples *samples) {
    *job = (struct msc_runtime_job)MSC_RUNTIME_JOB_INIT;
    job->runtime = d->runtime_name;
    job->n_threads = d->options.n_threads;
    job->n_rounds = d->options.n_rounds;
    job->batch = samples->batch;
    job->axes = samples->axes;
    job->n_axes = samples->n_axes;
    job->inputs = samples->paths[0];
}

// Finds the object `runtime` in the plan's results, or creates it.
static enum msc_status runtime_object(cJSON **out, struct msc_delivery_plan *plan) {
    *out = msc_json_get(plan->found, "runtime");
    if (*out) {
        return MSC_OK;
    }
    *out = cJSON_CreateObject();
    return msc_json_add(plan->found, "runtime", *out);
}

// ---- Files ------------------------------------------------------------------------------------

enum msc_status msc_model_file_bytes(uint64_t *out, const char *path, struct msc_arena *arena) {
    const char *const *beside = NULL;
    size_t n = 0;
    if (msc_export_is_tflite(path)) { // it holds its weights
        return msc_file_size(out, path);
    }
    MSC_TRY(msc_graph_companions(&beside, &n, arena, path));
    *out = 0;
    for (size_t i = 0; i <= n; i++) {
        uint64_t n_bytes = 0;
        MSC_TRY(msc_file_size(&n_bytes, i == 0 ? path : beside[i - 1]));
        *out += n_bytes;
    }
    return MSC_OK;
}

// The size of a model that msc_onnx_save has written. Reading it to find the files of its weights
// is necessary only if there may be one.
static enum msc_status exported_bytes(uint64_t *out, struct msc_delivery *d, const char *path) {
    const char *data_path = msc_arena_printf(&d->arena, "%s.data", path);
    MSC_TRY(MSC_ALLOCATED(data_path));
    return msc_file_exists(data_path) ? msc_model_file_bytes(out, path, &d->arena)
                                      : msc_file_size(out, path);
}

static enum msc_status export_plan(const struct msc_delivery *d,
                                   const struct msc_delivery_plan *plan) {
    const struct msc_graph *graph = d->options.model->graph;
    struct msc_strategy *strategy = NULL;
    if (plan->choices) {
        MSC_TRY(msc_export_strategy(&strategy, d->options.env, plan->choices));
    }
    enum msc_status status =
        msc_export_model(graph, strategy ? strategy : plan->strategy, plan->path, NULL, -1);
    msc_strategy_destroy(strategy);
    return status;
}

enum msc_status msc_delivery_export(struct msc_delivery *d, struct msc_delivery_plan *plan) {
    const char *original = d->options.model->path;
    uint64_t n_bytes = 0;
    bool is_original = !plan->choices && !plan->strategy && msc_path_ends_in(original, d->suffix);
    if (is_original) {
        plan->path = original;
    } else if (!plan->path || !msc_path_ends_in(plan->path, d->suffix)) {
        plan->path = msc_arena_printf(&d->arena, "%s/plan_%zu%s", d->scratch.path, d->n_exported++,
                                      d->suffix);
        MSC_TRY(MSC_ALLOCATED(plan->path));
        MSC_TRY(export_plan(d, plan));
    }
    MSC_TRY(is_original ? msc_model_file_bytes(&n_bytes, original, &d->arena)
                        : exported_bytes(&n_bytes, d, plan->path));
    if (!plan->found) {
        plan->found = cJSON_CreateObject();
        MSC_TRY(MSC_ALLOCATED(plan->found));
    }
    cJSON_DeleteItemFromObjectCaseSensitive(plan->found, "file_bytes");
    return msc_json_add_number(plan->found, "file_bytes", (double)n_bytes);
}

// ---- Outputs ----------------------------------------------------------------------------------

// Appends the elements of each array in `from` to the array of the same name in `to`.
static enum msc_status append_outputs(struct msc_array_list *to,
                                      const struct msc_array_list *from) {
    for (size_t i = 0; i < from->n; i++) {
        struct msc_array *old = msc_array_list_find(to, from->names[i]);
        struct msc_array *joined = NULL;
        int64_t n_old = old ? msc_array_n_elements(old) : 0;
        int64_t n = n_old + msc_array_n_elements(from->arrays[i]);
        enum msc_dtype dtype = msc_array_dtype(from->arrays[i]);
        if (old && msc_array_dtype(old) != dtype) {
            return MSC_FAIL(MSC_E_FORMAT, "output %s has different types in different batches",
                            from->names[i]);
        }
        MSC_TRY(msc_array_create(&joined, dtype, 1, &n));
        char *data = msc_array_data(joined);
        if (old) {
            memcpy(data, msc_array_data(old), msc_array_n_bytes(old));
            data += msc_array_n_bytes(old);
        }
        memcpy(data, msc_array_data(from->arrays[i]), msc_array_n_bytes(from->arrays[i]));
        for (size_t k = 0; old && k < to->n; k++) {
            if (to->arrays[k] == old) {
                to->arrays[k] = msc_array_retain(joined);
            }
        }
        enum msc_status status = old ? MSC_OK : msc_array_list_add(to, from->names[i], joined);
        msc_array_release(old);
        msc_array_release(joined);
        MSC_TRY(status);
    }
    return MSC_OK;
}

// Checks the shape of an output against the graph's. The first axis counts samples, so any length
// is accepted. If batches differ in the length of another open axis, the array has only one axis.
static bool has_shape_of(const struct msc_array *a, const struct msc_tensor *t) {
    bool is_equal = msc_array_n_dims(a) == (t->n_dims > 0 ? t->n_dims : 1), is_open = false;
    for (int i = 1; i < t->n_dims; i++) {
        is_open = is_open || t->dims[i] < 0;
        is_equal = is_equal && (t->dims[i] < 0 || t->dims[i] == msc_array_dim(a, i));
    }
    return is_equal || (is_open && msc_array_n_dims(a) == 1);
}

// Converts the array in the list to the type in which losses are computed.
static enum msc_status widen_output(struct msc_array_list *list, struct msc_array *array,
                                    enum msc_dtype dtype) {
    struct msc_array *wide;
    for (size_t i = 0; i < list->n && msc_array_dtype(array) != dtype; i++) {
        if (list->arrays[i] == array) {
            MSC_TRY(msc_array_convert(&wide, array, dtype));
            list->arrays[i] = wide;
            msc_array_release(array);
            return MSC_OK;
        }
    }
    return MSC_OK;
}

// Checks that the file holds each output of the model, with the output's type and shape, and
// widens float16 outputs.
static enum msc_status take_outputs(const struct msc_delivery *d, struct msc_array_list *found) {
    const struct msc_graph *g = d->options.model->graph;
    for (int32_t i = 0; i < msc_graph_n_outputs(g); i++) {
        int32_t output = msc_graph_output(g, i);
        const struct msc_tensor *t = msc_graph_tensor(g, output);
        enum msc_dtype own = msc_graph_tensor(msc_graph_own(g), output)->dtype;
        struct msc_array *a = msc_array_list_find(found, t->alias);
        if (!a) {
            return MSC_FAIL(MSC_E_FORMAT, "%s returned no output %s", d->runtime_name, t->alias);
        }
        if (msc_array_dtype(a) != own || !has_shape_of(a, t)) {
            return MSC_FAIL(MSC_E_FORMAT, "%s returned output %s with another type or shape",
                            d->runtime_name, t->alias);
        }
        MSC_TRY(widen_output(found, a, t->dtype));
    }
    return MSC_OK;
}

// True if a status means that the file of outputs is wrong.
static bool is_of_file(enum msc_status status) {
    return status == MSC_E_NOT_FOUND || status == MSC_E_INVALID || status == MSC_E_UNSUPPORTED;
}

// Runs all samples in the runtime and collects the outputs in the order of the samples.
static enum msc_status run_samples(struct msc_array_list *outputs, struct msc_delivery *d,
                                   const struct msc_delivery_plan *plan,
                                   const struct msc_runtime_samples *samples) {
    struct msc_runtime_job job;
    fill_job(&job, d, samples);
    job.models = &plan->path;
    job.n_models = 1;
    for (size_t i = 0; i < samples->n; i++) {
        struct msc_array_list part = {0};
        job.inputs = samples->paths[i];
        MSC_TRY(msc_runtime_outputs(d->runtime, &job, d->outputs_path));
        enum msc_status status = msc_npz_load(&part, d->outputs_path);
        if (status == MSC_OK) {
            status = take_outputs(d, &part);
        }
        if (status == MSC_OK) {
            status = append_outputs(outputs, &part);
        }
        msc_array_list_finish(&part);
        MSC_TRY(is_of_file(status) ? MSC_FAIL(MSC_E_FORMAT, "%s", msc_status_message()) : status);
    }
    return MSC_OK;
}

// Adds the metrics of a plan's outputs to `object`.
static enum msc_status judge_samples(cJSON *object, struct msc_delivery *d,
                                     struct msc_delivery_plan *plan, enum msc_env_samples which,
                                     const struct msc_runtime_samples *samples) {
    struct msc_array_list outputs = {0};
    enum msc_status status = run_samples(&outputs, d, plan, samples);
    if (status == MSC_OK) {
        status = msc_env_judge(object, d->options.env, which, &outputs);
        status =
            status == MSC_E_INVALID ? MSC_FAIL(MSC_E_FORMAT, "%s", msc_status_message()) : status;
    }
    msc_array_list_finish(&outputs);
    if (status == MSC_E_UNSUPPORTED) { // every plan fails like this, so no plan is measured
        msc_log(d->options.log, MSC_LOG_WARNING, "the loss in %s is not measured: %s",
                d->runtime_name, msc_status_message());
        d->calibration.n = 0;
        d->validation.n = 0;
        return MSC_OK;
    }
    return status == MSC_E_NOT_FOUND ? MSC_OK : settle(d, plan, status);
}

enum msc_status msc_delivery_outputs(struct msc_delivery *d, struct msc_delivery_plan *plan) {
    cJSON *object = NULL;
    cJSON *validation = NULL;
    if (d->calibration.n == 0) {
        return MSC_OK;
    }
    delivery_tell(d, "outputs", plan);
    MSC_TRY(runtime_object(&object, plan));
    MSC_TRY(judge_samples(object, d, plan, MSC_SAMPLES_CALIBRATION, &d->calibration));
    if (d->validation.n == 0 || plan->failure) {
        return MSC_OK;
    }
    validation = cJSON_CreateObject();
    MSC_TRY(msc_json_add(object, "validation", validation));
    return judge_samples(validation, d, plan, MSC_SAMPLES_VALIDATION, &d->validation);
}

// ---- Latency ----------------------------------------------------------------------------------

// Adds the latency of plan `index`. `base` is the float model's index, or SIZE_MAX if the float
// model was not measured.
static enum msc_status add_latency(struct msc_delivery_plan *plan, const struct msc_latency *l,
                                   size_t index, size_t base) {
    static const char *const keys[] = {"latency_us", "latency_ratio", "us_by_round"};
    cJSON *object = NULL;
    struct msc_quartiles q;
    MSC_TRY(runtime_object(&object, plan));
    MSC_TRY(msc_latency_quartiles(&q, l, index));
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        cJSON_DeleteItemFromObjectCaseSensitive(object, keys[i]);
    }
    MSC_TRY(msc_json_add_number(object, "latency_us", q.median));
    if (base != SIZE_MAX) {
        MSC_TRY(msc_latency_ratios(&q, l, index, base));
        MSC_TRY(msc_json_add_number(object, "latency_ratio", q.median));
    }
    cJSON *rounds = cJSON_CreateArray();
    MSC_TRY(msc_json_add(object, "us_by_round", rounds));
    for (size_t r = 0; r < l->n_rounds; r++) {
        MSC_TRY(msc_json_push(rounds, cJSON_CreateNumber(l->us[index * l->n_rounds + r])));
    }
    return MSC_OK;
}

static enum msc_status measure_turns(struct msc_delivery *d, struct msc_delivery_plan *plans[],
                                     const char *paths[], size_t n) {
    struct msc_runtime_job job;
    struct msc_latency latency = {0};
    size_t base = SIZE_MAX;
    for (size_t i = 0; i < n; i++) {
        base = plans[i]->choices ? base : i;
    }
    fill_job(&job, d, &d->one);
    job.batch = 1;
    job.models = paths;
    job.n_models = n;
    enum msc_status status = msc_runtime_latency(d->runtime, &job, &latency);
    for (size_t i = 0; status == MSC_OK && i < n; i++) {
        status = add_latency(plans[i], &latency, i, base);
    }
    msc_latency_finish(&latency);
    return status;
}

enum msc_status msc_delivery_latency(struct msc_delivery *d, struct msc_delivery_plan *plans[],
                                     size_t n) {
    const char **paths = msc_alloc_zero(n + 1, sizeof *paths);
    struct msc_delivery_plan **measured = msc_alloc_zero(n + 1, sizeof(struct msc_delivery_plan *));
    enum msc_status status = MSC_OK;
    size_t n_measured = 0;
    MSC_TRY_OUT(MSC_ALLOCATED(paths && measured));
    for (size_t i = 0; i < n; i++) {
        if (!plans[i]->failure) {
            paths[n_measured] = plans[i]->path;
            measured[n_measured++] = plans[i];
        }
    }
    delivery_tell(d, "latencies", NULL);
    status = n_measured > 0 ? measure_turns(d, measured, paths, n_measured) : MSC_OK;
out:
    msc_free(measured);
    msc_free(paths);
    return status;
}
