#include "env/env_quantize.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "data/safetensors.h"
#include "env/distill.h"
#include "env/quantize_space.h"
#include "graph/onnx.h"
#include "tools/strategy.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NOISE_RUNS = 8 };

struct quantize {
    // Parameters. Those of the quantizer are read by msc_quantizer_read_options.
    int strategy;
    int loss;
    int64_t kl_axis;
    int kl_input;
    const char *class_scores;
    const cJSON *loss_tensors;
    const char *target, *group;
    const cJSON *choices, *weights, *activations, *include, *exclude, *fix;

    struct msc_quantizer_options quantizer_options;
    struct msc_distill_options distill_options;
    struct msc_quantizer *quantizer;
    struct msc_distill *distill;   // on the calibration samples
    struct msc_distill *validated; // on the validation samples; made when first asked for
    struct msc_quantize_space space;
    int file_metric; // index of file_bytes, or -1
    size_t n_slots;
    const struct msc_quant **fixed; // [n_slots] edits of slots that are no task
    struct msc_hash parameters;     // of scales, zero points and reference outputs
    // Of the call at hand.
    const struct msc_evaluation *evaluation;
    struct msc_distill_run *runs;
    const struct msc_quant **edits; // [n_runs][n_slots]
    size_t runs_capacity;
};

#define FIELD(member) offsetof(struct quantize, member)

static const struct msc_param quantize_params[] = {
    {.name = "strategy",
     .help = "what a trial is measured by",
     .offset = FIELD(strategy),
     .type = MSC_PARAM_ENUM,
     .text = "distill_loss",
     .names = "distill_loss"},
    {.name = "loss",
     .help = "distance between outputs and those of the float model",
     .offset = FIELD(loss),
     .type = MSC_PARAM_ENUM,
     .text = "mse",
     .names = "mse|kl|cosine"},
    {.name = "loss_tensors",
     .help = "tensors to compare: a list of names, or an object of names and weights "
             "(default: the model's outputs)",
     .offset = FIELD(loss_tensors),
     .type = MSC_PARAM_JSON},
    {.name = "kl_axis",
     .help = "axis of the classes, for kl; negative counts from the end",
     .offset = FIELD(kl_axis),
     .type = MSC_PARAM_I64,
     .number = -1,
     .min = -8,
     .max = 7},
    {.name = "kl_input",
     .help = "what the compared tensors hold, for kl",
     .offset = FIELD(kl_input),
     .type = MSC_PARAM_ENUM,
     .text = "logits",
     .names = "logits|probs"},
    {.name = "class_scores",
     .help = "compared tensor whose greatest entry is the class, for accuracy (default: the first)",
     .offset = FIELD(class_scores),
     .type = MSC_PARAM_TEXT},
    {.name = "target",
     .help = "runtime whose limits hold: onnx or tensorrt",
     .offset = FIELD(target),
     .type = MSC_PARAM_TEXT,
     .text = "onnx"},
    {.name = "group",
     .help = "what shares a decision: tensor, site (each use) or joint",
     .offset = FIELD(group),
     .type = MSC_PARAM_TEXT,
     .text = "tensor"},
    {.name = "choices",
     .help = "list of {bits, observer, percentile, scale} or {float} "
             "(default: 8 bits with the range scaled by 0.8, 0.9, 1, 1.1, 1.2)",
     .offset = FIELD(choices),
     .type = MSC_PARAM_JSON},
    {.name = "weights",
     .help = "{per_channel, symmetric} (default: both true)",
     .offset = FIELD(weights),
     .type = MSC_PARAM_JSON},
    {.name = "activations",
     .help = "{symmetric} (default: false)",
     .offset = FIELD(activations),
     .type = MSC_PARAM_JSON},
    {.name = "include",
     .help = "name patterns of the tensors to quantise (default: all)",
     .offset = FIELD(include),
     .type = MSC_PARAM_JSON},
    {.name = "exclude",
     .help = "name patterns of the tensors to leave float",
     .offset = FIELD(exclude),
     .type = MSC_PARAM_JSON},
    {.name = "fix",
     .help = "name patterns and the choice that they take without a search",
     .offset = FIELD(fix),
     .type = MSC_PARAM_JSON},
    {0},
};

// ---- Parameters -------------------------------------------------------------------------------

static enum msc_status read_loss_tensors(struct quantize *z, struct msc_arena *arena) {
    struct msc_distill_options *o = &z->distill_options;
    const cJSON *item;
    if (!z->loss_tensors || cJSON_IsNull(z->loss_tensors)) {
        return MSC_OK;
    }
    bool is_list = cJSON_IsArray(z->loss_tensors);
    int n = cJSON_GetArraySize(z->loss_tensors);
    const char **names = msc_arena_array(arena, (size_t)n + 1, sizeof(names[0]));
    double *weights = msc_arena_array(arena, (size_t)n + 1, sizeof(weights[0]));
    if (!names || !weights) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for env.loss_tensors");
    }
    if ((!is_list && !cJSON_IsObject(z->loss_tensors)) || n == 0) {
        return MSC_FAIL(MSC_E_INVALID,
                        "env.loss_tensors: expected a list of names, or an object of "
                        "names and weights");
    }
    cJSON_ArrayForEach(item, z->loss_tensors) {
        bool fits = is_list ? cJSON_IsString(item) : cJSON_IsNumber(item) && item->valuedouble > 0;
        if (!fits) {
            return MSC_FAIL(MSC_E_INVALID, "env.loss_tensors: expected %s",
                            is_list ? "names" : "positive weights");
        }
        names[o->n_tensors] = is_list ? item->valuestring : item->string;
        weights[o->n_tensors++] = is_list ? 1 : item->valuedouble;
    }
    o->tensors = names;
    o->weights = weights;
    return MSC_OK;
}

static enum msc_status read_options(struct msc_env *env, struct quantize *z) {
    static const enum msc_loss_kind kinds[] = {MSC_LOSS_MSE, MSC_LOSS_KL, MSC_LOSS_COSINE};
    struct msc_arena *arena = msc_env_arena(env);
    z->distill_options = (struct msc_distill_options){.kind = kinds[z->loss],
                                                      .kl_axis = (int)z->kl_axis,
                                                      .kl_is_logits = z->kl_input == 0,
                                                      .class_scores = z->class_scores};
    MSC_TRY(read_loss_tensors(z, arena));
    return msc_quantizer_read_options(&z->quantizer_options, msc_env_config(env), z->target, arena);
}

// ---- Scales and reference outputs: computed once, then read from RECORD.params ----------------

static struct msc_hash hash_list(const struct msc_array_list *list) {
    struct msc_hash h = msc_hash_bytes("params", 6);
    for (size_t i = 0; i < list->n; i++) {
        h = msc_hash_add_text(h, list->names[i]);
        h = msc_hash_combine(h, msc_array_hash(list->arrays[i]));
    }
    return h;
}

struct progress {
    const struct msc_log *log;
    size_t tenths;
};

static void tell_progress(void *payload, size_t done, size_t all) {
    struct progress *p = payload;
    size_t tenths = done * 10 / all;
    if (tenths > p->tenths) {
        p->tenths = tenths;
        msc_log(p->log, MSC_LOG_INFO, "calibrating: %zu of %zu sites", done, all);
    }
}

static enum msc_status list_parameters(const struct quantize *z, struct msc_array_list *list) {
    MSC_TRY(msc_quantizer_save(z->quantizer, list));
    return msc_distill_save_reference(z->distill, list);
}

static enum msc_status compute_parameters(struct msc_env *env, struct quantize *z,
                                          struct msc_array_list *list) {
    const struct msc_env_host *host = msc_env_host(env);
    struct progress progress = {.log = host->log};
    if (host->parameters_required) {
        return MSC_FAIL(MSC_E_STATE,
                        "%s is missing: it holds the scales that this record was made with, which "
                        "cannot be computed again under other numerics",
                        host->parameters_path);
    }
    MSC_TRY(msc_distill_compute_reference(z->distill));
    MSC_TRY(msc_quantizer_calibrate(z->quantizer, msc_distill_evaluator(z->distill), tell_progress,
                                    &progress));
    MSC_TRY(list_parameters(z, list));
    return host->parameters_path ? msc_safetensors_save(host->parameters_path, list, NULL, 0)
                                 : MSC_OK;
}

static enum msc_status load_parameters(struct quantize *z, const char *path,
                                       struct msc_array_list *list) {
    enum msc_status status = msc_safetensors_load(list, path);
    if (status == MSC_OK) {
        status = msc_quantizer_load(z->quantizer, list);
        if (status == MSC_OK) {
            status = msc_distill_load_reference(z->distill, list);
        }
        if (status != MSC_OK) {
            status = msc_status_prefix(status, "%s does not belong to this configuration", path);
        }
    }
    return status;
}

static enum msc_status get_parameters(struct msc_env *env, struct quantize *z) {
    const struct msc_env_host *host = msc_env_host(env);
    struct msc_array_list found = {0};
    struct msc_array_list own = {0};
    enum msc_status status;
    if (host->parameters_path && msc_file_exists(host->parameters_path)) {
        MSC_TRY_OUT(load_parameters(z, host->parameters_path, &found));
        // Hashed in our order, whatever else is in the file.
        MSC_TRY_OUT(list_parameters(z, &own));
    } else {
        MSC_TRY_OUT(compute_parameters(env, z, &own));
    }
    z->parameters = hash_list(&own);
    status = MSC_OK;
out:
    msc_array_list_finish(&found);
    msc_array_list_finish(&own);
    return status;
}

// ---- Edits ------------------------------------------------------------------------------------

// What holds whatever the trial chooses: earlier strategies, then sites fixed to a choice.
static enum msc_status build_fixed(struct msc_env *env, struct quantize *z) {
    const struct msc_env_host *host = msc_env_host(env);
    const struct msc_sites *sites = msc_quantizer_sites(z->quantizer);
    z->n_slots = (size_t)sites->n_slots;
    z->fixed = msc_arena_array(msc_env_arena(env), z->n_slots + 1, sizeof(z->fixed[0]));
    if (!z->fixed) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for edits");
    }
    if (host->base) {
        MSC_TRY(msc_strategy_apply(host->base, host->graph, sites, z->fixed));
    }
    for (int32_t i = 0; i < sites->n_sites; i++) {
        int32_t choice = msc_quantizer_fixed_choice(z->quantizer, i);
        if (!msc_quantizer_is_included(z->quantizer, i) || choice == MSC_NO_ID) {
            continue;
        }
        for (int32_t k = 0; k < sites->sites[i].n_slots; k++) {
            z->fixed[sites->sites[i].slots[k]] = msc_quantizer_quant(z->quantizer, i, choice);
        }
    }
    return MSC_OK;
}

static void fill_edits(const struct quantize *z, const uint32_t choices[],
                       const struct msc_quant *edits[]) {
    for (size_t s = 0; s < z->n_slots; s++) {
        int32_t site = z->space.site_of_slot[s];
        int32_t task = z->space.task_of_site[site];
        edits[s] = task == MSC_NO_ID
                       ? z->fixed[s]
                       : msc_quantizer_quant(z->quantizer, site, (int32_t)choices[task]);
    }
}

// ---- The environment's functions --------------------------------------------------------------

// Exporting every trial takes time: the size of the file is measured only where the goal names it.
static bool asks_for_file(const cJSON *config) {
    const cJSON *bounds = cJSON_GetObjectItemCaseSensitive(config, "bounds");
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(config, "objectives")) {
        if (cJSON_IsString(item) && strcmp(item->valuestring, "file_bytes") == 0) {
            return true;
        }
    }
    return cJSON_GetObjectItemCaseSensitive(bounds, "file_bytes") != NULL;
}

static enum msc_status quantize_init(struct msc_env *env) {
    struct quantize *z = msc_env_state(env);
    const struct msc_env_host *host = msc_env_host(env);
    MSC_TRY(read_options(env, z));
    MSC_TRY(msc_quantizer_create(&z->quantizer, host->graph, &z->quantizer_options));
    MSC_TRY(msc_distill_create(&z->distill, host, host->dataset, &z->distill_options));
    MSC_TRY(get_parameters(env, z));
    MSC_TRY(build_fixed(env, z));
    const struct msc_plan *plan = msc_evaluator_plan(msc_distill_evaluator(z->distill), 0);
    unsigned measured = msc_dataset_has_labels(host->dataset) ? MSC_QUANTIZE_MEASURES_ACCURACY : 0;
    measured |= asks_for_file(msc_env_config(env)) ? MSC_QUANTIZE_MEASURES_FILE : 0;
    MSC_TRY(msc_quantize_space_build(&z->space, z->quantizer, plan, z->fixed,
                                     msc_dataset_batch_samples(host->dataset, 0), measured,
                                     msc_env_arena(env)));
    z->file_metric = msc_space_find_metric(&z->space.space, "file_bytes");
    return MSC_OK;
}

static const struct msc_space *quantize_space(const struct msc_env *env) {
    const struct quantize *z = msc_env_state(env);
    return &z->space.space;
}

static enum msc_status make_room(struct quantize *z, size_t n) {
    if (n <= z->runs_capacity) {
        return MSC_OK;
    }
    msc_free(z->runs);
    msc_free(z->edits);
    z->runs_capacity = 0;
    z->runs = msc_alloc_zero(n, sizeof(z->runs[0]));
    z->edits = msc_alloc_zero(n * (z->n_slots + 1), sizeof(z->edits[0]));
    if (!z->runs || !z->edits) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for %zu trials", n);
    }
    z->runs_capacity = n;
    return MSC_OK;
}

static void set_run(struct quantize *z, size_t i, const uint32_t choices[]) {
    const struct msc_quant **edits = z->edits + i * z->n_slots;
    fill_edits(z, choices, edits);
    z->runs[i] = (struct msc_distill_run){.edits = edits};
}

static void finish_trial(void *payload, size_t i) {
    struct quantize *z = payload;
    const struct msc_distill_run *run = &z->runs[i];
    struct msc_outcome *o = &z->evaluation->outcomes[i];
    o->metrics[MSC_QUANTIZE_LOSS] = run->loss;
    if (!isnan(run->accuracy)) {
        o->metrics[MSC_QUANTIZE_ACCURACY] = run->accuracy;
    }
    o->reuse_ratio = run->reuse_ratio;
    if (run->status != MSC_OK) {
        bool is_outside = run->status == MSC_E_NOMEM || run->status == MSC_E_DEVICE;
        o->state = MSC_TRIAL_FAILED;
        o->cause = is_outside ? MSC_CAUSE_ENVIRONMENT : MSC_CAUSE_TRIAL;
        snprintf(o->reason, sizeof(o->reason), "%.*s", (int)sizeof(o->reason) - 1, run->message);
    } else if (!isfinite(run->loss)) {
        o->state = MSC_TRIAL_FAILED;
        o->cause = MSC_CAUSE_TRIAL;
        snprintf(o->reason, sizeof(o->reason), "the loss is not a finite number");
    }
    if (z->evaluation->finished) {
        z->evaluation->finished(z->evaluation->payload, i);
    }
}

static enum msc_status measure_file(const struct msc_env *env,
                                    const struct msc_quant *const edits[], double *out) {
    const struct quantize *z = msc_env_state(env);
    const struct msc_onnx_export_options o = {.sites = msc_quantizer_sites(z->quantizer),
                                              .slot_edits = edits};
    uint64_t n_bytes;
    MSC_TRY(msc_onnx_measure(&n_bytes, msc_env_host(env)->graph, &o));
    *out = (double)n_bytes;
    return MSC_OK;
}

static enum msc_status quantize_evaluate(struct msc_env *env, const struct msc_evaluation *e) {
    struct quantize *z = msc_env_state(env);
    MSC_TRY(make_room(z, e->n));
    z->evaluation = e;
    for (size_t i = 0; z->file_metric >= 0 && i < e->n; i++) {
        set_run(z, i, e->trials[i].choices);
        MSC_TRY(measure_file(env, z->runs[i].edits, &e->outcomes[i].metrics[z->file_metric]));
    }
    for (size_t i = 0; i < e->n; i++) {
        set_run(z, i, e->trials[i].choices);
    }
    return msc_distill_run(z->distill, z->runs, e->n, finish_trial, z);
}

static enum msc_status quantize_reference(struct msc_env *env, double metrics[MSC_MAX_METRICS]) {
    struct quantize *z = msc_env_state(env);
    const struct msc_space *space = &z->space.space;
    struct msc_distill_run run = {.edits = NULL};
    const struct {
        const char *name;
        double value;
    } known[] = {{"size_bytes", z->space.float_size_bytes},
                 {"size_ratio", 1},
                 {"bit_ops", z->space.float_bit_ops},
                 {"bit_ops_ratio", 1},
                 {"macs", z->space.macs}};
    MSC_TRY(msc_distill_run(z->distill, &run, 1, NULL, NULL));
    if (run.status != MSC_OK) {
        return msc_status_restore(run.status, run.message);
    }
    if (z->file_metric >= 0) {
        MSC_TRY(measure_file(env, NULL, &metrics[z->file_metric]));
    }
    metrics[MSC_QUANTIZE_LOSS] = run.loss;
    if (!isnan(run.accuracy)) {
        metrics[MSC_QUANTIZE_ACCURACY] = run.accuracy;
    }
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        metrics[msc_space_find_metric(space, known[i].name)] = known[i].value;
    }
    return MSC_OK;
}

static enum msc_status quantize_edits(struct msc_env *env, const uint32_t choices[], cJSON **out) {
    struct quantize *z = msc_env_state(env);
    const struct msc_env_host *host = msc_env_host(env);
    const struct msc_sites *sites = msc_quantizer_sites(z->quantizer);
    struct msc_strategy *s;
    enum msc_status status = MSC_OK;
    MSC_TRY(msc_strategy_create(&s));
    if (host->base) {
        MSC_TRY_OUT(msc_strategy_merge(s, host->base));
    }
    for (int32_t i = 0; i < sites->n_sites; i++) {
        int32_t task = z->space.task_of_site[i];
        int32_t choice = task == MSC_NO_ID ? msc_quantizer_fixed_choice(z->quantizer, i)
                                           : (int32_t)choices[task];
        if (!msc_quantizer_is_included(z->quantizer, i) || choice == MSC_NO_ID) {
            continue;
        }
        // A float choice takes away what earlier strategies did there.
        const struct msc_quant *quant = msc_quantizer_quant(z->quantizer, i, choice);
        const char *label = quant ? msc_quantizer_choice(z->quantizer, (size_t)choice)->label : "";
        MSC_TRY_OUT(msc_strategy_set(s, host->graph, sites, i, label, quant));
    }
    status = msc_strategy_to_json(s, host->graph, out);
out:
    msc_strategy_destroy(s);
    return status;
}

// ---- The winner, once more --------------------------------------------------------------------

static enum msc_status add_measured(cJSON *object, const struct msc_distill_run *run) {
    if (run->status != MSC_OK) {
        return msc_status_restore(run->status, run->message);
    }
    MSC_TRY(msc_json_add_number(object, "distill_loss", run->loss));
    return isnan(run->accuracy) ? MSC_OK : msc_json_add_number(object, "accuracy", run->accuracy);
}

// The loss on the calibration samples, and how far rounding alone moves it: the greatest relative
// change over runs with perturbed inputs.
static enum msc_status examine_noise(struct quantize *z, const uint32_t choices[], cJSON *out) {
    double noise = 0;
    MSC_TRY(make_room(z, NOISE_RUNS + 1));
    for (size_t i = 0; i <= NOISE_RUNS; i++) {
        set_run(z, i, choices);
        z->runs[i].noise_seed = i;
    }
    MSC_TRY(msc_distill_run(z->distill, z->runs, NOISE_RUNS + 1, NULL, NULL));
    MSC_TRY(add_measured(out, &z->runs[0]));
    for (size_t i = 1; i <= NOISE_RUNS; i++) {
        double moved = fabs(z->runs[i].loss - z->runs[0].loss);
        double relative = z->runs[0].loss > 0 ? moved / z->runs[0].loss : moved;
        noise = relative > noise ? relative : noise;
    }
    return msc_json_add_number(out, "noise", noise);
}

// Each choice alone, everything else float: what a search that scores tensors one by one would add.
static enum msc_status examine_alone(struct quantize *z, const uint32_t choices[], cJSON *out) {
    size_t n = z->space.space.n_tasks;
    double sum = 0;
    MSC_TRY(make_room(z, n));
    for (size_t t = 0; t < n; t++) {
        set_run(z, t, choices);
        const struct msc_quant **edits = z->edits + t * z->n_slots;
        for (size_t s = 0; s < z->n_slots; s++) {
            int32_t task = z->space.task_of_site[z->space.site_of_slot[s]];
            edits[s] = task == (int32_t)t ? edits[s] : NULL;
        }
    }
    MSC_TRY(msc_distill_run(z->distill, z->runs, n, NULL, NULL));
    for (size_t t = 0; t < n; t++) {
        if (z->runs[t].status != MSC_OK) {
            return msc_status_restore(z->runs[t].status, z->runs[t].message);
        }
        sum += z->runs[t].loss;
    }
    return msc_json_add_number(out, "isolated_loss_sum", sum);
}

static enum msc_status examine_validation(struct msc_env *env, struct quantize *z,
                                          const uint32_t choices[], cJSON *out) {
    const struct msc_env_host *host = msc_env_host(env);
    struct msc_distill_run runs[2] = {{.edits = NULL}};
    if (!host->validation) {
        return MSC_OK;
    }
    if (!z->validated) {
        MSC_TRY(msc_distill_create(&z->validated, host, host->validation, &z->distill_options));
        MSC_TRY(msc_distill_compute_reference(z->validated));
    }
    MSC_TRY(make_room(z, 1));
    set_run(z, 0, choices);
    runs[1].edits = z->edits;
    MSC_TRY(msc_distill_run(z->validated, runs, 2, NULL, NULL));
    cJSON *validation = cJSON_CreateObject();
    MSC_TRY(msc_json_add(out, "validation", validation));
    MSC_TRY(add_measured(validation, &runs[1]));
    if (!isnan(runs[0].accuracy)) {
        MSC_TRY(msc_json_add_number(validation, "float_accuracy", runs[0].accuracy));
    }
    return msc_json_add_number(validation, "samples",
                               (double)msc_dataset_n_samples(host->validation));
}

static enum msc_status quantize_examine(struct msc_env *env, const uint32_t choices[],
                                        unsigned what, cJSON **out) {
    struct quantize *z = msc_env_state(env);
    cJSON *object = cJSON_CreateObject();
    enum msc_status status =
        object ? MSC_OK : MSC_FAIL(MSC_E_NOMEM, "out of memory for the report");
    if (status == MSC_OK && (what & MSC_EXAMINE_NOISE)) {
        status = examine_noise(z, choices, object);
    }
    if (status == MSC_OK && (what & MSC_EXAMINE_ALONE)) {
        status = examine_alone(z, choices, object);
    }
    if (status == MSC_OK && (what & MSC_EXAMINE_VALIDATION)) {
        status = examine_validation(env, z, choices, object);
    }
    if (status != MSC_OK) {
        cJSON_Delete(object);
        return status;
    }
    *out = object;
    return MSC_OK;
}

// ---- Identity ---------------------------------------------------------------------------------

static struct msc_hash base_hash(const struct msc_env_host *host) {
    return host->base ? msc_strategy_hash(host->base) : (struct msc_hash){0, 0};
}

static struct msc_hash quantize_identity(const struct msc_env *env) {
    const struct quantize *z = msc_env_state(env);
    const struct msc_env_host *host = msc_env_host(env);
    struct msc_hash h = msc_graph_hash(host->graph);
    h = msc_hash_combine(h, msc_graph_weights_hash(host->graph));
    h = msc_hash_combine(h, msc_dataset_hash(host->dataset));
    h = msc_hash_combine(h, base_hash(host));
    return msc_hash_combine(h, z->parameters);
}

static enum msc_status quantize_describe(const struct msc_env *env, cJSON *object) {
    const struct quantize *z = msc_env_state(env);
    const struct msc_env_host *host = msc_env_host(env);
    char text[MSC_HASH_TEXT_BYTES];
    MSC_TRY(msc_json_add_text(object, "graph", msc_hash_format(text, msc_graph_hash(host->graph))));
    MSC_TRY(msc_json_add_text(object, "weights",
                              msc_hash_format(text, msc_graph_weights_hash(host->graph))));
    MSC_TRY(msc_json_add_text(object, "dataset",
                              msc_hash_format(text, msc_dataset_hash(host->dataset))));
    MSC_TRY(msc_json_add_text(object, "base_strategy", msc_hash_format(text, base_hash(host))));
    return msc_json_add_text(object, "params_hash", msc_hash_format(text, z->parameters));
}

static void quantize_finish(struct msc_env *env) {
    struct quantize *z = msc_env_state(env);
    msc_distill_destroy(z->validated);
    msc_distill_destroy(z->distill);
    msc_quantizer_destroy(z->quantizer);
    msc_free(z->runs);
    msc_free(z->edits);
}

const struct msc_env_def msc_env_quantize = {
    .abi = MSC_ENV_ABI,
    .name = "quantize",
    .summary = "bits and ranges of weights and activations, by distill loss",
    .version = 1,
    .needs = MSC_ENV_NEEDS_GRAPH | MSC_ENV_NEEDS_DATASET | MSC_ENV_NEEDS_BACKEND,
    .state_size = sizeof(struct quantize),
    .params = quantize_params,
    .init = quantize_init,
    .space = quantize_space,
    .evaluate = quantize_evaluate,
    .reference = quantize_reference,
    .edits = quantize_edits,
    .examine = quantize_examine,
    .identity = quantize_identity,
    .describe = quantize_describe,
    .finish = quantize_finish,
};
