// The environment `schedule`: how the steps of a network are computed, among ways that give the
// same bits on a device (docs/schedule.md). Trials are measured in turn with the choices by rule.
#include "env/schedule/bench.h"

#include "base/json.h"
#include "env/api/env.h"
#include "env/schedule/first.h"

#include <math.h>
#include <string.h>

enum {
    METRIC_RELATIVE,
    METRIC_LATENCY,
    METRIC_COUNT,
};

struct schedule_env {
    int64_t n_rounds;
    struct msc_schedule_bench *bench;
    struct msc_space space;
};

static const struct msc_metric metrics[METRIC_COUNT] = {
    [METRIC_RELATIVE] = {.name = "relative_latency",
                         .unit = "",
                         .help = "latency, relative to that of the choices by rule, measured in "
                                 "turn",
                         .is_measured = true},
    [METRIC_LATENCY] = {.name = "latency_us",
                        .unit = "us",
                        .help = "latency of one run on the first batch",
                        .is_measured = true},
};

static const struct msc_param params[] = {
    {.name = "rounds",
     .help = "runs of a trial, each in turn with a run of the choices by rule; the least times "
             "count",
     .offset = offsetof(struct schedule_env, n_rounds),
     .type = MSC_PARAM_I64,
     .number = 5,
     .min = 1,
     .max = 10000},
    {0},
};

static const char *const feature_names[] = {"rows", "cols", "depth", "steps", "share"};
enum { FEATURE_COUNT = sizeof feature_names / sizeof feature_names[0] };

// ---- The space --------------------------------------------------------------------------------

// Logarithms of the shape; the share is that of all classes' time, or of their products.
static void fill_features(double f[], const struct msc_schedule_class *c, double all) {
    const struct msc_work *w = &c->variants.work;
    double macs = (double)w->rows * (double)w->cols * (double)w->depth * c->n_steps;
    f[0] = log2((double)w->rows);
    f[1] = log2((double)w->cols);
    f[2] = log2((double)w->depth);
    f[3] = c->n_steps;
    f[4] = macs / all;
}

static double count_all(const struct msc_schedule_bench *bench) {
    double all = 0.0;
    for (size_t i = 0; i < msc_schedule_bench_n(bench); i++) {
        const struct msc_schedule_class *c = msc_schedule_bench_class(bench, i);
        const struct msc_work *w = &c->variants.work;
        all += (double)w->rows * (double)w->cols * (double)w->depth * c->n_steps;
    }
    return all;
}

// Choices by rule lead, because the others are more often faster.
static enum msc_status build_task(struct msc_task *out, const struct msc_schedule_class *c,
                                  double all, struct msc_arena *arena) {
    const struct msc_variants *v = &c->variants;
    const char **labels = msc_arena_array(arena, (size_t)v->n, sizeof *labels);
    uint32_t *order = msc_arena_array(arena, (size_t)v->n, sizeof *order);
    double *features = msc_arena_array(arena, FEATURE_COUNT, sizeof *features);
    MSC_TRY(MSC_ALLOCATED(labels && order && features));
    for (int i = 0; i < v->n; i++) {
        labels[i] = v->names[i];
        order[i] = (uint32_t)(i == 0 ? v->by_rule : i <= v->by_rule ? i - 1 : i);
    }
    fill_features(features, c, all);
    *out = (struct msc_task){.name = c->joint,
                             .n_choices = (uint32_t)v->n,
                             .labels = labels,
                             .most_expensive_first = order,
                             .features = features};
    return MSC_OK;
}

static enum msc_status build_tasks(struct schedule_env *e, struct msc_arena *arena) {
    size_t n = msc_schedule_bench_n(e->bench);
    struct msc_task *tasks = msc_arena_array(arena, n, sizeof *tasks);
    MSC_TRY(MSC_ALLOCATED(tasks));
    for (size_t i = 0; i < n; i++) {
        MSC_TRY(build_task(&tasks[i], msc_schedule_bench_class(e->bench, i), count_all(e->bench),
                           arena));
    }
    e->space.n_tasks = n;
    e->space.tasks = tasks;
    e->space.n_features = FEATURE_COUNT;
    e->space.feature_names = feature_names;
    e->space.n_metrics = METRIC_COUNT;
    e->space.metrics = metrics;
    return MSC_OK;
}

static enum msc_status schedule_init(struct msc_env *env) {
    struct schedule_env *e = msc_env_state(env);
    const struct msc_env_host *host = msc_env_host(env);
    const struct msc_schedule_options options = {.graph = host->graph,
                                                 .dataset = host->dataset,
                                                 .backend = host->backend,
                                                 .strategy = host->base,
                                                 .memory_bytes = host->memory_bytes,
                                                 .cancel = host->cancel,
                                                 .log = host->log};
    MSC_TRY(msc_schedule_bench_open(&e->bench, &options));
    if (msc_schedule_bench_n(e->bench) == 0) {
        return MSC_FAIL(MSC_E_INVALID,
                        "env: no step of this network has a choice on %s; there is nothing to "
                        "search",
                        host->backend->def->name);
    }
    MSC_TRY(build_tasks(e, msc_env_arena(env)));
    return msc_schedule_first(&e->space, e->bench, host, msc_env_arena(env));
}

static const struct msc_space *schedule_space(const struct msc_env *env) {
    const struct schedule_env *e = msc_env_state(env);
    return &e->space;
}

static const struct msc_metric *schedule_metric(size_t index) {
    return index < METRIC_COUNT ? &metrics[index] : NULL;
}

// ---- Trials -----------------------------------------------------------------------------------

static enum msc_status schedule_evaluate(struct msc_env *env, const struct msc_evaluation *e) {
    struct schedule_env *state = msc_env_state(env);
    for (size_t i = 0; i < e->n; i++) {
        struct msc_schedule_time time;
        MSC_TRY(msc_schedule_bench_run(&time, state->bench, e->trials[i]->proposal.choices,
                                       state->n_rounds));
        e->trials[i]->outcome.metrics[METRIC_RELATIVE] = time.us / time.rule_us;
        e->trials[i]->outcome.metrics[METRIC_LATENCY] = time.us;
        if (e->finished) {
            e->finished(e->payload, i);
        }
    }
    return MSC_OK;
}

// What is chosen among: the work of the classes and the names of their variants.
static struct msc_hash schedule_identity(const struct msc_env *env) {
    const struct schedule_env *e = msc_env_state(env);
    const struct msc_backend *backend = msc_env_host(env)->backend;
    const char *numerics = backend->def->numerics(backend);
    struct msc_hash hash = msc_hash_bytes(numerics, strlen(numerics));
    for (size_t i = 0; i < msc_schedule_bench_n(e->bench); i++) {
        const struct msc_variants *v = &msc_schedule_bench_class(e->bench, i)->variants;
        hash = msc_hash_add_text(hash, v->work.kind);
        hash = msc_hash_add_u64(hash, v->work.rows);
        hash = msc_hash_add_u64(hash, v->work.cols);
        hash = msc_hash_add_u64(hash, v->work.depth);
        for (int k = 0; k < v->n; k++) {
            hash = msc_hash_add_text(hash, v->names[k]);
        }
    }
    return hash;
}

static enum msc_status schedule_describe(const struct msc_env *env, struct cJSON *object) {
    char text[MSC_HASH_TEXT_BYTES];
    return msc_json_add_text(object, "work", msc_hash_format(text, schedule_identity(env)));
}

static void schedule_finish(struct msc_env *env) {
    struct schedule_env *e = msc_env_state(env);
    msc_schedule_bench_close(e->bench);
}

const struct msc_env_def msc_env_schedule = {
    .abi = MSC_ENV_ABI,
    .name = "schedule",
    .summary = "how a device computes each step, among ways that give the same bits",
    .version = 1,
    .needs = MSC_ENV_NEEDS_GRAPH | MSC_ENV_NEEDS_DATASET | MSC_ENV_NEEDS_BACKEND,
    .state_size = sizeof(struct schedule_env),
    .params = params,
    .metric = schedule_metric,
    .init = schedule_init,
    .space = schedule_space,
    .evaluate = schedule_evaluate,
    .identity = schedule_identity,
    .describe = schedule_describe,
    .finish = schedule_finish,
};
