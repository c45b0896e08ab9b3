#include "pipeline/session_estimate.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "cluster/given_device.h"
#include "pipeline/session_learnt.h"
#include "pipeline/session_race.h"
#include "search/estimate.h"
#include "cluster/pool.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

// The least memory in bytes that the search needs; 0: the environment does not know. Includes a
// margin for the rest of the program.
static enum msc_status measure_memory(double *out, const struct msc_session *s) {
    const struct msc_space *space = msc_env_space(s->env);
    uint32_t *first = msc_alloc_zero(space->n_tasks + 1, sizeof *first);
    cJSON *object = NULL;
    *out = 0;
    MSC_TRY(MSC_ALLOCATED(first));
    const uint32_t *choices = space->n_baselines > 0 ? space->baselines[0].choices : first;
    enum msc_status status = msc_env_reevaluate(s->env, choices, MSC_REEVALUATE_MEMORY, &object);
    if (status == MSC_OK) {
        const cJSON *n_bytes = msc_json_get(object, "memory_bytes");
        *out = cJSON_IsNumber(n_bytes) ? 1.15 * n_bytes->valuedouble : 0;
    }
    cJSON_Delete(object);
    msc_free(first);
    return status;
}

enum msc_status msc_session_check_memory(const struct msc_session *s) {
    double least;
    if (!s->setup->model || s->setup->options.memory_bytes == 0) {
        return MSC_OK;
    }
    MSC_TRY(measure_memory(&least, s));
    return least <= (double)s->setup->options.memory_bytes
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID,
                          "--memory: %.0f MB is too little: this search needs at "
                          "least %.0f MB",
                          (double)s->setup->options.memory_bytes * 1e-6, ceil(least * 1e-6));
}

// A low accuracy of the float model shows, before the search starts, that its inputs are not
// prepared as in training.
static enum msc_status estimate_accuracy(struct msc_str *text, cJSON *object,
                                         const struct msc_session *s) {
    double metrics[MSC_MAX_METRICS];
    int metric = msc_space_find_metric(msc_env_space(s->env), "accuracy");
    int64_t n = msc_dataset_n_samples(s->setup->model->dataset);
    MSC_TRY(msc_json_add_number(object, "calibration_samples", (double)n));
    if (!msc_dataset_has_labels(s->setup->model->dataset)) {
        msc_str_append(text, "accuracy: unknown, as the samples have no labels (dataset.labels)\n");
        return msc_json_add(object, "float_accuracy", cJSON_CreateNull());
    }
    if (metric < 0) { // this environment does not measure the accuracy
        return MSC_OK;
    }
    MSC_TRY(msc_env_reference(s->env, metrics));
    msc_str_printf(text, "accuracy: %.5g of the float model on %lld samples\n", metrics[metric],
                   (long long)n);
    return msc_json_add_number(object, "float_accuracy", metrics[metric]);
}

// Writes how many of n samples a plan may lose by a drop of accuracy, and the least standard error
// of such a drop. If the plan loses k more samples than it gains, the differences are least
// scattered if it gains none: their variance is then p (1 - p) n / (n - 1), with p = k / n.
static void write_samples(struct msc_str *text, double most, int64_t n, const char *what) {
    int64_t k = (int64_t)floor(most * (double)n * (1 + 1e-9));
    double p = (double)k / (double)n;
    msc_str_printf(text, ", %lld of %lld %s", (long long)k, (long long)n, what);
    if (k > 0 && n > 1) {
        msc_str_printf(text, " (standard error at least %.2g)",
                       sqrt(p * (1 - p) / (double)(n - 1)));
    }
}

// States the bounds by drop, with the float model's value.
static enum msc_status estimate_drops(struct msc_str *text, cJSON *object,
                                      const struct msc_session *s) {
    cJSON *list = NULL;
    for (size_t i = 0; i < s->goal.n_bounds; i++) {
        const struct msc_drop *drop = &s->drops.of_bound[i];
        const struct msc_bound *bound = &s->goal.bounds[i];
        const struct msc_metric *metric = &msc_env_space(s->env)->metrics[bound->metric];
        if (!drop->is_stated) {
            continue;
        }
        msc_str_printf(text, "%s%s: at most %g from the float model's %.5g", metric->name,
                       drop->is_relative ? MSC_DROP_RATIO_SUFFIX : MSC_DROP_SUFFIX, drop->most,
                       drop->reference);
        if (strcmp(metric->name, "accuracy") == 0 && s->setup->model) {
            const struct msc_model *m = s->setup->model;
            double most = drop->is_relative ? drop->most * drop->reference : drop->most;
            write_samples(text, most, msc_dataset_n_samples(m->dataset), "samples");
            if (m->validation) {
                write_samples(text, most, msc_dataset_n_samples(m->validation),
                              "validation samples");
            }
        }
        msc_str_char(text, '\n');
        if (!list) {
            list = cJSON_CreateArray();
            MSC_TRY(msc_json_add(object, "drops", list));
        }
        cJSON *row = cJSON_CreateObject();
        MSC_TRY(msc_json_push(list, row));
        MSC_TRY(msc_json_add_text(row, "metric", metric->name));
        MSC_TRY(msc_json_add_number(row, "drop", drop->most));
        MSC_TRY(msc_json_add_bool(row, "relative", drop->is_relative));
        MSC_TRY(msc_json_add_number(row, "float", drop->reference));
    }
    return MSC_OK;
}

// Measured costs (docs/cluster.md) of a pipe, of calls through Ray, and of srun, which takes 92 ms
// for a message of more than a kilobyte.
static struct msc_pool_costs costs_of(enum msc_cluster_kind kind, size_t n_gpus) {
    static const double messages_s[] = {
        [MSC_CLUSTER_LOCAL] = 0.1e-3, [MSC_CLUSTER_RAY] = 3e-3, [MSC_CLUSTER_SLURM] = 0.184};
    static const double starts_s[] = {
        [MSC_CLUSTER_LOCAL] = 0.5, [MSC_CLUSTER_RAY] = 6.0, [MSC_CLUSTER_SLURM] = 2.0};
    long n_processors = sysconf(_SC_NPROCESSORS_ONLN);
    return (struct msc_pool_costs){.trial_s = 20e-6,
                                   .worker_s = 0.8e-3,
                                   .message_s = messages_s[kind],
                                   .start_s = starts_s[kind],
                                   .most = kind != MSC_CLUSTER_LOCAL ? 0
                                           : n_gpus > 1              ? n_gpus
                                           : n_processors > 0        ? (size_t)n_processors
                                                                     : 0};
}

// The number of GPUs that local workers take in turn.
static size_t count_gpus(const struct msc_session *s) {
    struct msc_vulkan_device devices[MSC_VULKAN_MAX_DEVICES];
    const char *device = s->setup->config->device;
    if (strcmp(device, "cpu") == 0) {
        return 1;
    }
    int n = msc_vulkan_list(devices, MSC_VULKAN_MAX_DEVICES);
    return msc_place_count(device, devices, n);
}

// With --cluster: estimates how many workers are worth having, and reports the figures that the
// estimate is computed from.
static enum msc_status estimate_workers(struct msc_str *text, cJSON *object,
                                        const struct msc_session *s, const struct msc_estimate *e) {
    size_t n_trials = s->entry->parallel;
    double round_s = e->trial_s * (double)n_trials, worth_s;
    struct msc_cluster c;
    if (!s->setup->options.cluster || isnan(round_s)) {
        return MSC_OK;
    }
    MSC_TRY(msc_cluster_read(&c, &s->setup->arena, s->setup->options.cluster));
    size_t n_gpus = c.kind == MSC_CLUSTER_LOCAL && s->setup->model ? count_gpus(s) : 0;
    if (n_gpus == 1) {
        msc_str_append(text, "workers: local ones share the device of this machine, and are not "
                             "faster than one process: none are worth having\n");
        return msc_json_add_number(object, "workers_worth_having", 0);
    }
    const struct msc_pool_costs costs = costs_of(c.kind, n_gpus);
    double left_s = isfinite(e->left_s) ? e->left_s : INFINITY;
    size_t n =
        msc_pool_worth(&worth_s, &costs, round_s, left_s, n_trials, msc_env_n_batches(s->env));
    msc_str_printf(text, "workers: a round of %zu trials takes ", n_trials);
    msc_str_append_duration(text, round_s);
    msc_str_printf(text, " on this machine; with %zu equally fast workers it takes ",
                   n > 0 ? n : 2);
    msc_str_append_duration(text, worth_s);
    msc_str_append(text, ", of which messages take ");
    msc_str_append_duration(text, costs.message_s);
    msc_str_append(text, "; workers start in ");
    msc_str_append_duration(text, costs.start_s);
    if (n > 0) {
        msc_str_printf(text, ": up to %zu are worth having\n", n);
    } else {
        msc_str_append(text, ": none are worth having\n");
    }
    return msc_json_add_number(object, "workers_worth_having", (double)n);
}

// The memory limit; the device may have less than was requested.
static double most_memory(const struct msc_model *m) {
    uint64_t room = msc_backend_get_memory(m->backend).room_bytes;
    return (double)(room < m->memory_bytes ? room : m->memory_bytes);
}

static enum msc_status make_estimate(struct msc_str *text, cJSON *object,
                                     const struct msc_session *s,
                                     const struct msc_search_options *o) {
    struct msc_estimate e;
    double least = 0;
    MSC_TRY(msc_estimate_make(&e, o));
    msc_estimate_text(text, &e);
    MSC_TRY(msc_estimate_describe(&e, object));
    MSC_TRY(msc_session_advise_race(text, object, s));
    MSC_TRY(estimate_workers(text, object, s, &e));
    if (s->setup->model) {
        MSC_TRY(measure_memory(&least, s));
        double most = most_memory(s->setup->model);
        msc_str_printf(text, "memory: up to %.3g GB, at least %.0f MB\n", most * 1e-9,
                       ceil(least * 1e-6));
        MSC_TRY(msc_json_add_number(object, "memory_bytes", most));
        MSC_TRY(msc_json_add_number(object, "least_memory_bytes", least));
        MSC_TRY(estimate_accuracy(text, object, s));
    }
    MSC_TRY(estimate_drops(text, object, s));
    MSC_TRY(msc_session_add_learnt(text, object, s, o));
    MSC_TRY(msc_str_status(text));
    return msc_estimate_check(&e, o->record_path);
}

enum msc_status msc_session_add_estimate(cJSON *reports, const struct msc_session *s,
                                         const struct msc_search_options *o) {
    struct msc_str text = {0};
    cJSON *report = cJSON_CreateObject(), *object = cJSON_CreateObject();
    enum msc_status status = msc_json_push(reports, report);
    if (status != MSC_OK) {
        cJSON_Delete(object);
        return status;
    }
    MSC_TRY(msc_json_add(report, "estimate", object));
    MSC_TRY_OUT(msc_json_add_text(report, "entry", s->entry->name));
    MSC_TRY_OUT(make_estimate(&text, object, s, o));
    MSC_TRY_OUT(msc_str_status(&text));
    MSC_TRY_OUT(msc_json_add_text(report, "estimate_text", msc_str_text(&text)));
out:
    msc_str_finish(&text);
    return status;
}
