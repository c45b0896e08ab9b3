// An environment for networks as a shared library: it chooses the bits of each weight while
// activations stay float. It has a task for each weight, a choice for each width, and measures the
// distill loss.
//
//     cc -std=c11 -shared -fPIC $(pkg-config --cflags mscgym) -o weight_bits.so weight_bits.c
//     mscgym search weight_bits.json
//
// The functions that it calls are in the program that loads it, so nothing is linked.
#include <mscgym/base/alloc.h>
#include <mscgym/base/json.h>
#include <mscgym/env/distill.h>
#include <mscgym/tools/range.h>
#include <mscgym/tools/strategy.h>

#include <math.h>

#define WIDEST 8

enum {
    METRIC_LOSS,
    METRIC_SIZE,
    METRIC_COUNT,
};

struct weight_bits {
    int64_t narrowest; // the parameter

    struct msc_distill *distill;
    const struct msc_sites *sites;
    struct msc_space space;
    const char **labels;     // [n_choices], "8" first
    int32_t *sites_of_tasks; // [n_tasks]
    int32_t *tasks_of_slots; // [sites->n_slots], -1: stays float
    struct msc_edit *edits;  // [n_tasks, n_choices]

    // The current evaluation.
    const struct msc_evaluation *evaluation;
    const struct msc_distill_run *runs;
};

static const struct msc_metric metrics[METRIC_COUNT] = {
    [METRIC_LOSS] = {.name = "distill_loss",
                     .unit = "",
                     .help = "distance of the outputs from the float model's"},
    [METRIC_SIZE] = {.name = "size_bytes",
                     .unit = "bytes",
                     .help = "size of all weights without their scales",
                     .is_exact = true},
};

static const struct msc_param weight_bits_params[] = {
    {.name = "narrowest",
     .help = "least number of bits to choose; the most is 8",
     .offset = offsetof(struct weight_bits, narrowest),
     .type = MSC_PARAM_I64,
     .number = 4,
     .min = 2,
     .max = WIDEST - 1},
    {0},
};

static size_t n_choices_of(const struct weight_bits *w) {
    return (size_t)(WIDEST - w->narrowest + 1);
}

// The weight of a task.
static const struct msc_array *weight_of(const struct msc_env *env, size_t task) {
    const struct weight_bits *w = msc_env_state(env);
    const struct msc_site *site = &w->sites->sites[w->sites_of_tasks[task]];
    return msc_graph_tensor(msc_env_host(env)->graph, site->tensor)->data;
}

// ---- The space --------------------------------------------------------------------------------

// Makes a task for each site that is a weight.
static enum msc_status list_tasks(struct msc_env *env, struct weight_bits *w) {
    struct msc_arena *arena = msc_env_arena(env);
    w->sites = msc_evaluator_sites(msc_distill_evaluator(w->distill));
    w->sites_of_tasks =
        msc_arena_array(arena, (size_t)w->sites->n_sites + 1, sizeof *w->sites_of_tasks);
    w->tasks_of_slots =
        msc_arena_array(arena, (size_t)w->sites->n_slots + 1, sizeof *w->tasks_of_slots);
    if (!w->sites_of_tasks || !w->tasks_of_slots) {
        return MSC_FAIL(MSC_E_NOMEM, "weight_bits: out of memory");
    }
    for (int32_t s = 0; s < w->sites->n_slots; s++) {
        w->tasks_of_slots[s] = -1;
    }
    for (int32_t i = 0; i < w->sites->n_sites; i++) {
        const struct msc_site *site = &w->sites->sites[i];
        if (site->kind != MSC_SITE_WEIGHT) {
            continue;
        }
        for (int32_t k = 0; k < site->n_slots; k++) {
            w->tasks_of_slots[site->slots[k]] = (int32_t)w->space.n_tasks;
        }
        w->sites_of_tasks[w->space.n_tasks++] = i;
    }
    return w->space.n_tasks > 0
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID, "weight_bits: the network has no weights");
}

// Makes the edits: one scale for a whole weight, from its greatest magnitude.
static enum msc_status make_edits(struct msc_env *env, struct weight_bits *w) {
    struct msc_arena *arena = msc_env_arena(env);
    size_t n = n_choices_of(w);
    w->edits = msc_arena_array(arena, w->space.n_tasks * n, sizeof *w->edits);
    float *scales = msc_arena_array(arena, w->space.n_tasks * n, sizeof *scales);
    int32_t *zero_points = msc_arena_array(arena, w->space.n_tasks * n, sizeof *zero_points);
    if (!w->edits || !scales || !zero_points) {
        return MSC_FAIL(MSC_E_NOMEM, "weight_bits: out of memory");
    }
    for (size_t i = 0; i < w->space.n_tasks * n; i++) {
        const struct msc_array *weight = weight_of(env, i / n);
        struct msc_range range = {0, 0};
        for (int64_t k = 0; k < msc_array_n_elements(weight); k++) {
            float value = (float)msc_array_get_double(weight, k);
            range.low = fminf(range.low, value);
            range.high = fmaxf(range.high, value);
        }
        struct msc_scheme scheme = {
            .bits = WIDEST - (int32_t)(i % n), .is_symmetric = true, .is_weight = true};
        struct msc_quant quant = {.bits = scheme.bits,
                                  .axis = -1,
                                  .n = 1,
                                  .scales = &scales[i],
                                  .zero_points = &zero_points[i]};
        msc_scheme_limits(&scheme, &quant.low, &quant.high);
        msc_scheme_fit(&scheme, range, &scales[i], &zero_points[i]);
        w->edits[i] = msc_edit_quantize(quant);
    }
    return MSC_OK;
}

// size_bytes = the sum over weights of elements * bits / 8.
static enum msc_status make_cost(struct msc_env *env, struct weight_bits *w) {
    struct msc_arena *arena = msc_env_arena(env);
    size_t n_tasks = w->space.n_tasks;
    double *bits = msc_arena_array(arena, n_choices_of(w), sizeof *bits);
    struct msc_cost_factor *factors = msc_arena_array(arena, n_tasks, sizeof *factors);
    struct msc_cost_term *terms = msc_arena_array(arena, n_tasks, sizeof *terms);
    struct msc_cost *cost = msc_arena_array(arena, 1, sizeof *cost);
    if (!bits || !factors || !terms || !cost) {
        return MSC_FAIL(MSC_E_NOMEM, "weight_bits: out of memory");
    }
    for (size_t c = 0; c < n_choices_of(w); c++) {
        bits[c] = WIDEST - (double)c;
    }
    for (size_t t = 0; t < n_tasks; t++) {
        factors[t] = (struct msc_cost_factor){.task = (uint32_t)t, .by_choice = bits};
        terms[t] =
            (struct msc_cost_term){.scale = (double)msc_array_n_elements(weight_of(env, t)) / 8,
                                   .n_factors = 1,
                                   .factors = &factors[t]};
    }
    *cost = (struct msc_cost){.metric = "size_bytes", .n_terms = n_tasks, .terms = terms};
    w->space.n_costs = 1;
    w->space.costs = cost;
    return MSC_OK;
}

// Makes the tasks, and a uniform plan of each width as a baseline, which every search measures
// first.
static enum msc_status make_space(struct msc_env *env, struct weight_bits *w) {
    struct msc_arena *arena = msc_env_arena(env);
    size_t n = n_choices_of(w);
    size_t n_tasks = w->space.n_tasks;
    uint32_t *order = msc_arena_array(arena, n, sizeof *order);
    uint32_t *points = msc_arena_array(arena, n * n_tasks, sizeof *points);
    struct msc_task *tasks = msc_arena_array(arena, n_tasks, sizeof *tasks);
    struct msc_baseline *baselines = msc_arena_array(arena, n, sizeof *baselines);
    w->labels = msc_arena_array(arena, n, sizeof *w->labels);
    if (!order || !points || !tasks || !baselines || !w->labels) {
        return MSC_FAIL(MSC_E_NOMEM, "weight_bits: out of memory");
    }
    for (size_t c = 0; c < n; c++) {
        order[c] = (uint32_t)c;
        w->labels[c] = msc_arena_printf(arena, "%d", WIDEST - (int)c);
        if (!w->labels[c]) {
            return MSC_FAIL(MSC_E_NOMEM, "weight_bits: out of memory");
        }
        for (size_t t = 0; t < n_tasks; t++) {
            points[c * n_tasks + t] = (uint32_t)c;
        }
        baselines[c] =
            (struct msc_baseline){.label = w->labels[c], .choices = &points[c * n_tasks]};
    }
    for (size_t t = 0; t < n_tasks; t++) {
        tasks[t] = (struct msc_task){.name = w->sites->sites[w->sites_of_tasks[t]].name,
                                     .n_choices = (uint32_t)n,
                                     .labels = w->labels,
                                     .most_expensive_first = order};
    }
    w->space.tasks = tasks;
    w->space.n_metrics = METRIC_COUNT;
    w->space.metrics = metrics;
    w->space.n_baselines = n;
    w->space.baselines = baselines;
    return make_cost(env, w);
}

// For `mscgym envs`.
static const struct msc_metric *weight_bits_metric(size_t index) {
    return index < METRIC_COUNT ? &metrics[index] : NULL;
}

static enum msc_status weight_bits_init(struct msc_env *env) {
    struct weight_bits *w = msc_env_state(env);
    const struct msc_env_host *host = msc_env_host(env);
    const struct msc_distill_options options = {.kind = MSC_LOSS_MSE};
    MSC_TRY(msc_distill_create(&w->distill, host, host->dataset, &options));
    MSC_TRY(list_tasks(env, w));
    MSC_TRY(make_edits(env, w));
    MSC_TRY(make_space(env, w));
    return msc_distill_compute_reference(w->distill);
}

static const struct msc_space *weight_bits_space(const struct msc_env *env) {
    const struct weight_bits *w = msc_env_state(env);
    return &w->space;
}

// ---- Evaluating -------------------------------------------------------------------------------

// Fills and reports an outcome when its run is done.
static void finish_run(void *payload, size_t i) {
    const struct weight_bits *w = payload;
    const struct msc_distill_run *run = &w->runs[i];
    struct msc_outcome *outcome = &w->evaluation->trials[i]->outcome;
    outcome->metrics[METRIC_LOSS] = run->loss;
    outcome->reuse_ratio = run->reuse_ratio;
    if (run->status != MSC_OK) {
        bool is_outside = run->status == MSC_E_NOMEM || run->status == MSC_E_DEVICE;
        msc_outcome_fail(outcome, is_outside ? MSC_CAUSE_ENVIRONMENT : MSC_CAUSE_TRIAL, "%s",
                         run->message);
    } else if (run->was_stopped) {
        outcome->state = MSC_TRIAL_PRUNED;
    }
    if (w->evaluation->finished) {
        w->evaluation->finished(w->evaluation->payload, i);
    }
}

static enum msc_status weight_bits_evaluate(struct msc_env *env, const struct msc_evaluation *e) {
    struct weight_bits *w = msc_env_state(env);
    size_t n_slots = (size_t)w->sites->n_slots;
    struct msc_arena arena = {0};
    struct msc_distill_run *runs = msc_arena_array(&arena, e->n, sizeof *runs);
    const struct msc_edit **edits = msc_arena_array(&arena, e->n * n_slots + 1, sizeof *edits);
    enum msc_status status = runs && edits ? MSC_OK : MSC_E_NOMEM;
    if (status != MSC_OK) {
        status = MSC_FAIL(status, "weight_bits: out of memory");
        goto out;
    }
    for (size_t i = 0; i < e->n; i++) {
        const uint32_t *choices = e->trials[i]->proposal.choices;
        for (size_t s = 0; s < n_slots; s++) {
            int32_t task = w->tasks_of_slots[s];
            edits[i * n_slots + s] =
                task < 0 ? NULL : &w->edits[(size_t)task * n_choices_of(w) + choices[task]];
        }
        runs[i] = (struct msc_distill_run){.edits = &edits[i * n_slots],
                                           .is_bounded = e->bounds[i] < INFINITY,
                                           .bound = e->bounds[i]};
    }
    w->evaluation = e;
    w->runs = runs;
    status = msc_distill_run(w->distill, runs, e->n, finish_run, w);
out:
    msc_arena_finish(&arena);
    return status;
}

// The edits that `mscgym export` applies to the model.
static enum msc_status weight_bits_edits(struct msc_env *env, const uint32_t choices[],
                                         cJSON **out) {
    const struct weight_bits *w = msc_env_state(env);
    const struct msc_graph *graph = msc_env_host(env)->graph;
    struct msc_strategy *strategy;
    enum msc_status status = MSC_OK;
    MSC_TRY(msc_strategy_create(&strategy, NULL));
    for (size_t t = 0; t < w->space.n_tasks; t++) {
        const struct msc_strategy_choice choice = {
            .label = w->labels[choices[t]],
            .quant = &w->edits[t * n_choices_of(w) + choices[t]].quant,
        };
        MSC_TRY_OUT(msc_strategy_set(strategy, graph, w->sites, w->sites_of_tasks[t], &choice));
    }
    status = msc_strategy_to_json(strategy, graph, out);
out:
    msc_strategy_destroy(strategy);
    return status;
}

// A record made with another network, other weights or other samples is refused because of this
// hash.
static struct msc_hash weight_bits_identity(const struct msc_env *env) {
    const struct msc_env_host *host = msc_env_host(env);
    struct msc_hash hash = msc_graph_hash(host->graph);
    hash = msc_hash_combine(hash, msc_graph_weights_hash(host->graph));
    return msc_hash_combine(hash, msc_dataset_hash(host->dataset));
}

static void weight_bits_finish(struct msc_env *env) {
    struct weight_bits *w = msc_env_state(env);
    msc_distill_destroy(w->distill);
}

static const struct msc_env_def weight_bits = {
    .abi = MSC_ENV_ABI,
    .name = "weight_bits",
    .summary = "bits of weights, one scale each, while activations stay float",
    .version = 1,
    .needs = MSC_ENV_NEEDS_GRAPH | MSC_ENV_NEEDS_DATASET | MSC_ENV_NEEDS_BACKEND,
    .state_size = sizeof(struct weight_bits),
    .params = weight_bits_params,
    .metric = weight_bits_metric,
    .init = weight_bits_init,
    .space = weight_bits_space,
    .evaluate = weight_bits_evaluate,
    .edits = weight_bits_edits,
    .identity = weight_bits_identity,
    .finish = weight_bits_finish,
};

extern const struct msc_env_def *const msc_env_plugin;
const struct msc_env_def *const msc_env_plugin = &weight_bits;
