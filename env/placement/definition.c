// The environment `placement`: which backend computes which group of joints (docs/placement.md).
// `mscgym place` writes its table. Trials are answered from the table, or measured whole.
#include "env/placement/place_table.h"

#include "base/file.h"
#include "base/json.h"
#include "env/api/env.h"
#include "env/placement/whole.h"

#include <math.h>

enum {
    METRIC_LATENCY,
    METRIC_PIECES,
    METRIC_COUNT,
};

enum {
    MEASURE_TABLE,
    MEASURE_WHOLE,
};

struct placement_env {
    const char *file;
    bool exact;
    int measure;
    struct msc_place_table *table;
    const char *path;              // of the table
    struct msc_place_bench *bench; // opened by the first trial that is measured
    struct msc_space space;
};

#define LATENCY                                                                                    \
    .name = "latency_us", .unit = "us",                                                            \
    .help = "latency, predicted from the table or measured whole"
#define PIECES                                                                                     \
    { .name = "pieces", .unit = "", .help = "number of pieces", .is_exact = true }

// By what is measured.
static const struct msc_metric metrics[][METRIC_COUNT] = {
    [MEASURE_TABLE] = {[METRIC_LATENCY] = {LATENCY}, [METRIC_PIECES] = PIECES},
    [MEASURE_WHOLE] = {[METRIC_LATENCY] = {LATENCY, .is_measured = true}, [METRIC_PIECES] = PIECES},
};

static const struct msc_param params[] = {
    {.name = "file",
     .help = "table of latencies that mscgym place wrote (docs/placement.md)",
     .offset = offsetof(struct placement_env, file),
     .type = MSC_PARAM_TEXT},
    {.name = "exact",
     .help = "evaluate the optimum of the table, found by a dynamic program, as a baseline",
     .offset = offsetof(struct placement_env, exact),
     .type = MSC_PARAM_BOOL,
     .number = 1},
    {.name = "measure",
     .help = "latency of a trial: predicted from the table, or measured whole, in one process",
     .offset = offsetof(struct placement_env, measure),
     .type = MSC_PARAM_ENUM,
     .text = "table",
     .names = "table|whole"},
    {0},
};

static const char *const feature_names[] = {"position", "joints", "macs"};
enum { FEATURE_COUNT = sizeof feature_names / sizeof feature_names[0] };

// ---- The space --------------------------------------------------------------------------------

// Backends by the latency of the group alone, the slowest first; those that cannot run it lead.
static void order_choices(uint32_t order[], const struct msc_place_table *p, size_t group) {
    for (size_t i = 0; i < p->n_backends; i++) {
        size_t k = i;
        double us = *msc_place_table_us(p, group, group, i);
        while (k > 0) {
            double other = *msc_place_table_us(p, group, group, order[k - 1]);
            if (!(isnan(us) ? !isnan(other) : us > other)) {
                break;
            }
            order[k] = order[k - 1];
            k--;
        }
        order[k] = (uint32_t)i;
    }
}

static enum msc_status build_tasks(struct placement_env *e, struct msc_arena *arena) {
    const struct msc_place_table *p = e->table;
    const char **labels = msc_arena_array(arena, p->n_backends, sizeof *labels);
    uint32_t *orders = msc_arena_array(arena, p->n_groups * p->n_backends, sizeof *orders);
    double *features = msc_arena_array(arena, p->n_groups * FEATURE_COUNT, sizeof *features);
    struct msc_task *tasks = msc_arena_array(arena, p->n_groups, sizeof *tasks);
    MSC_TRY(MSC_ALLOCATED(labels && orders && features && tasks));
    for (size_t i = 0; i < p->n_backends; i++) {
        labels[i] = p->backends[i].label;
    }
    for (size_t i = 0; i < p->n_groups; i++) {
        double *f = &features[i * FEATURE_COUNT];
        order_choices(&orders[i * p->n_backends], p, i);
        f[0] = (double)i / (double)p->n_groups;
        f[1] = (double)p->groups[i].n_joints;
        f[2] = p->groups[i].macs;
        tasks[i] = (struct msc_task){.name = p->groups[i].name,
                                     .n_choices = (uint32_t)p->n_backends,
                                     .labels = labels,
                                     .most_expensive_first = &orders[i * p->n_backends],
                                     .features = f};
    }
    e->space.n_tasks = p->n_groups;
    e->space.tasks = tasks;
    e->space.n_features = FEATURE_COUNT;
    e->space.feature_names = feature_names;
    e->space.n_metrics = METRIC_COUNT;
    e->space.metrics = metrics[e->measure];
    return MSC_OK;
}

// The number of pieces: that of groups, less 1 for each pair of neighbours with one backend. The
// pair has the backend b if the product of two factors is 1, each 1 for the choice b.
static enum msc_status build_costs(struct placement_env *e, struct msc_arena *arena) {
    size_t k = e->table->n_backends, n_terms = (e->table->n_groups - 1) * k;
    double *is_chosen = msc_arena_array(arena, k * k, sizeof *is_chosen);
    struct msc_cost_factor *factors = msc_arena_array(arena, 2 * n_terms + 1, sizeof *factors);
    struct msc_cost_term *terms = msc_arena_array(arena, n_terms + 1, sizeof *terms);
    struct msc_cost *cost = msc_arena_array(arena, 1, sizeof *cost);
    MSC_TRY(MSC_ALLOCATED(is_chosen && factors && terms && cost));
    for (size_t i = 0; i < k * k; i++) {
        is_chosen[i] = i / k == i % k;
    }
    for (size_t i = 0; i < n_terms; i++) {
        struct msc_cost_factor *f = &factors[2 * i];
        const double *by_choice = &is_chosen[i % k * k];
        f[0] = (struct msc_cost_factor){.task = (uint32_t)(i / k), .by_choice = by_choice};
        f[1] = (struct msc_cost_factor){.task = (uint32_t)(i / k) + 1, .by_choice = by_choice};
        terms[i] = (struct msc_cost_term){.scale = -1.0, .n_factors = 2, .factors = f};
    }
    *cost = (struct msc_cost){.metric = e->space.metrics[METRIC_PIECES].name,
                              .constant = (double)e->table->n_groups,
                              .n_terms = n_terms,
                              .terms = terms};
    e->space.n_costs = 1;
    e->space.costs = cost;
    return MSC_OK;
}

// A whole network on each backend and, if asked for, the exact optimum.
static enum msc_status build_baselines(struct placement_env *e, struct msc_arena *arena) {
    const struct msc_place_table *p = e->table;
    size_t n = p->n_backends + 1;
    struct msc_baseline *baselines = msc_arena_array(arena, n, sizeof *baselines);
    uint32_t *points = msc_arena_array(arena, n * p->n_groups, sizeof *points);
    double us;
    MSC_TRY(MSC_ALLOCATED(baselines && points));
    for (size_t b = 0; b < p->n_backends; b++) {
        for (size_t i = 0; i < p->n_groups; i++) {
            points[b * p->n_groups + i] = (uint32_t)b;
        }
        baselines[b] = (struct msc_baseline){.label = p->backends[b].label,
                                             .choices = &points[b * p->n_groups]};
    }
    e->space.n_baselines = p->n_backends;
    e->space.baselines = baselines;
    if (e->exact) {
        uint32_t *best = &points[p->n_backends * p->n_groups];
        MSC_TRY(msc_place_table_best(&us, p, best));
        baselines[e->space.n_baselines++] =
            (struct msc_baseline){.label = "the exact optimum", .choices = best};
    }
    return MSC_OK;
}

static enum msc_status placement_init(struct msc_env *env) {
    struct placement_env *e = msc_env_state(env);
    struct msc_arena *arena = msc_env_arena(env);
    if (!e->file) {
        return MSC_FAIL(MSC_E_INVALID, "env: \"file\" is missing, expected the path of a table "
                                       "that mscgym place wrote (docs/placement.md)");
    }
    e->path = msc_path_join(arena, msc_env_host(env)->folder, e->file);
    MSC_TRY(MSC_ALLOCATED(e->path));
    MSC_TRY(msc_place_table_load(&e->table, e->path));
    MSC_TRY(build_tasks(e, arena));
    MSC_TRY(build_costs(e, arena));
    return build_baselines(e, arena);
}

static const struct msc_space *placement_space(const struct msc_env *env) {
    const struct placement_env *e = msc_env_state(env);
    return &e->space;
}

static const struct msc_metric *placement_metric(size_t index) {
    return index < METRIC_COUNT ? &metrics[MEASURE_TABLE][index] : NULL;
}

// ---- Trials -----------------------------------------------------------------------------------

static enum msc_status measure(double *us, const char **why, struct msc_env *env,
                               const uint32_t choices[]) {
    struct placement_env *state = msc_env_state(env);
    *why = "a backend cannot run one of the pieces";
    *us = msc_place_table_predict(state->table, choices);
    if (state->measure == MEASURE_TABLE || isnan(*us)) {
        return MSC_OK;
    }
    if (!state->bench) {
        MSC_TRY(msc_place_bench_open(&state->bench, state->table, state->path,
                                     msc_env_host(env)->cancel));
    }
    return msc_place_bench_run(us, why, state->bench, choices);
}

static enum msc_status placement_evaluate(struct msc_env *env, const struct msc_evaluation *e) {
    for (size_t i = 0; i < e->n; i++) {
        struct msc_outcome *outcome = &e->trials[i]->outcome;
        const char *why;
        double us;
        MSC_TRY(measure(&us, &why, env, e->trials[i]->proposal.choices));
        outcome->metrics[METRIC_LATENCY] = us;
        if (isnan(us)) {
            msc_outcome_fail(outcome, MSC_CAUSE_TRIAL, "%s", why);
        }
        if (e->finished) {
            e->finished(e->payload, i);
        }
    }
    return MSC_OK;
}

static struct msc_hash placement_identity(const struct msc_env *env) {
    const struct placement_env *e = msc_env_state(env);
    return msc_place_table_hash(e->table);
}

static enum msc_status placement_describe(const struct msc_env *env, struct cJSON *object) {
    char text[MSC_HASH_TEXT_BYTES];
    return msc_json_add_text(object, "table", msc_hash_format(text, placement_identity(env)));
}

static void placement_finish(struct msc_env *env) {
    struct placement_env *e = msc_env_state(env);
    msc_place_bench_close(e->bench);
    msc_place_table_close(e->table);
}

const struct msc_env_def msc_env_placement = {
    .abi = MSC_ENV_ABI,
    .name = "placement",
    .summary = "which backend computes which part, in a table of latencies of mscgym place",
    .version = 1,
    .state_size = sizeof(struct placement_env),
    .params = params,
    .metric = placement_metric,
    .init = placement_init,
    .space = placement_space,
    .evaluate = placement_evaluate,
    .identity = placement_identity,
    .describe = placement_describe,
    .finish = placement_finish,
};
