// An analytic environment for tests, benchmarks and learning. It needs no model and almost no
// evaluation time, and its optimum can be computed.
//
// Task t has elements_t elements and `choices` widths, from w = choices (most expensive, choice 0)
// down to 1 (cheapest). A point's size is the sum of elements_t * w_t / 8 bytes. Its loss is the
// sum over tasks of a seeded table that grows as the width falls. With `interaction` above 0, each
// pair of neighbouring tasks adds a seeded term of either sign, so the best plan need not combine
// the best choices of single tasks. A trial with a bound is evaluated in eight batches of equal
// loss and stops as soon as their sum exceeds the bound.
#include "env/env_toy.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/rng.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    METRIC_LOSS,
    METRIC_SIZE,
    METRIC_SIZE_RATIO,
    METRIC_COUNT,
};

enum {
    CAUSE_TRIAL,
    CAUSE_ENVIRONMENT,
};

#define FEATURE_COUNT 2
#define FLOAT_BYTES 4.0
#define BATCHES 8

struct toy {
    int64_t tasks;
    int64_t choices;
    int64_t seed;
    double interaction;
    int64_t delay_us;
    int64_t fail_at;
    int64_t fail_every;
    int fail_cause;
    int64_t crash_at;
    int64_t hang_at;

    struct msc_space space;
    uint32_t *bytes; // [tasks], bytes that a task adds for each step of width
    double *losses;  // [tasks, choices]
    double *pairs;   // [tasks - 1, choices, choices]; NULL without interaction
};

static const struct msc_metric toy_metrics[METRIC_COUNT] = {
    [METRIC_LOSS] = {.name = "distill_loss", .unit = "", .help = "seeded loss of the widths"},
    [METRIC_SIZE] = {.name = "size_bytes",
                     .unit = "bytes",
                     .help = "size of all elements at their widths",
                     .is_exact = true},
    [METRIC_SIZE_RATIO] = {.name = "size_ratio",
                           .unit = "",
                           .help = "size_bytes relative to 4 bytes per element",
                           .is_exact = true},
};

static const char *const toy_feature_names[FEATURE_COUNT] = {"elements", "position"};

static const struct msc_param toy_params[] = {
    {.name = "tasks",
     .help = "number of tasks",
     .offset = offsetof(struct toy, tasks),
     .type = MSC_PARAM_I64,
     .number = 12,
     .min = 1,
     .max = 4096},
    {.name = "choices",
     .help = "choices of each task",
     .offset = offsetof(struct toy, choices),
     .type = MSC_PARAM_I64,
     .number = 4,
     .min = 1,
     .max = 64},
    {.name = "seed",
     .help = "seed of losses and sizes; each seed is another problem",
     .offset = offsetof(struct toy, seed),
     .type = MSC_PARAM_I64,
     .number = 0,
     .min = 0,
     .max = 9007199254740991.0},
    {.name = "interaction",
     .help = "strength of the terms between neighbouring tasks; 0 makes losses additive",
     .offset = offsetof(struct toy, interaction),
     .type = MSC_PARAM_F64,
     .number = 0,
     .min = 0,
     .max = 1},
    {.name = "delay_us",
     .help = "time that each trial takes, as if a model ran",
     .offset = offsetof(struct toy, delay_us),
     .type = MSC_PARAM_I64,
     .number = 0,
     .min = 0,
     .max = 1e9,
     .unit = "us"},
    {.name = "fail_at",
     .help = "fault injection for tests: id of a trial that fails (-1: none)",
     .offset = offsetof(struct toy, fail_at),
     .type = MSC_PARAM_I64,
     .number = -1,
     .min = -1,
     .max = 9007199254740991.0},
    {.name = "fail_every",
     .help = "fault injection for tests: about one point in N fails (0: none)",
     .offset = offsetof(struct toy, fail_every),
     .type = MSC_PARAM_I64,
     .number = 0,
     .min = 0,
     .max = 1e9},
    {.name = "fail_cause",
     .help = "fault injection for tests: a failure is a loss of NaN (trial) or a missing device "
             "(environment)",
     .offset = offsetof(struct toy, fail_cause),
     .type = MSC_PARAM_ENUM,
     .text = "trial",
     .names = "trial|environment"},
    {.name = "crash_at",
     .help = "fault injection for tests: id of a trial that aborts the program (-1: none)",
     .offset = offsetof(struct toy, crash_at),
     .type = MSC_PARAM_I64,
     .number = -1,
     .min = -1,
     .max = 9007199254740991.0},
    {.name = "hang_at",
     .help = "fault injection for tests: id of a trial that never ends (-1: none)",
     .offset = offsetof(struct toy, hang_at),
     .type = MSC_PARAM_I64,
     .number = -1,
     .min = -1,
     .max = 9007199254740991.0},
    {0},
};

static double toy_width(const struct toy *toy, uint32_t choice) {
    return (double)toy->choices - (double)choice;
}

static double toy_pair_loss(const struct toy *toy, size_t t, uint32_t left, uint32_t right) {
    size_t n = (size_t)toy->choices;
    return toy->pairs[(t * n + left) * n + right];
}

// Summed in the order of tasks, so that equal points give equal bits.
static double toy_point_loss(const struct toy *toy, const uint32_t choices[]) {
    size_t n_choices = (size_t)toy->choices;
    double sum = 0.0;
    for (size_t t = 0; t < (size_t)toy->tasks; t++) {
        sum += toy->losses[t * n_choices + choices[t]];
        if (toy->pairs && t > 0) {
            sum += toy_pair_loss(toy, t - 1, choices[t - 1], choices[t]);
        }
    }
    return sum;
}

static enum msc_status toy_draw_tables(struct toy *toy, struct msc_arena *arena) {
    size_t n_tasks = (size_t)toy->tasks;
    size_t n_choices = (size_t)toy->choices;
    toy->bytes = msc_arena_array(arena, n_tasks, sizeof *toy->bytes);
    toy->losses = msc_arena_array(arena, n_tasks * n_choices, sizeof *toy->losses);
    if (toy->interaction > 0.0) {
        toy->pairs = msc_arena_array(arena, n_tasks * n_choices * n_choices, sizeof *toy->pairs);
    }
    if (!toy->bytes || !toy->losses || (toy->interaction > 0.0 && !toy->pairs)) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    struct msc_rng rng;
    msc_rng_seed(&rng, (uint64_t)toy->seed, 1);
    for (size_t t = 0; t < n_tasks; t++) {
        toy->bytes[t] = 1 + (uint32_t)msc_rng_below(&rng, 64);
        double sensitivity = 0.01 + msc_rng_double(&rng) * msc_rng_double(&rng);
        double step = 1.0;
        double loss = 0.0;
        for (size_t c = 0; c < n_choices; c++) {
            toy->losses[t * n_choices + c] = loss;
            loss += sensitivity * step * (0.25 + msc_rng_double(&rng));
            step *= 1.5;
        }
    }
    for (size_t t = 0; toy->pairs && t + 1 < n_tasks; t++) {
        for (size_t i = 0; i < n_choices * n_choices; i++) {
            double left = toy->losses[t * n_choices + i / n_choices];
            double right = toy->losses[(t + 1) * n_choices + i % n_choices];
            // |term| is at most a quarter of the sum of both isolated losses, and each loss is in
            // at most two pairs. So the total is never negative.
            toy->pairs[t * n_choices * n_choices + i] =
                toy->interaction * (msc_rng_double(&rng) - 0.5) * sqrt(left * right);
        }
    }
    return MSC_OK;
}

static enum msc_status toy_build_costs(struct toy *toy, struct msc_arena *arena) {
    size_t n_tasks = (size_t)toy->tasks;
    size_t n_choices = (size_t)toy->choices;
    double *widths = msc_arena_array(arena, n_choices, sizeof *widths);
    struct msc_cost_factor *factors = msc_arena_array(arena, n_tasks, sizeof *factors);
    struct msc_cost_term *terms = msc_arena_array(arena, 2 * n_tasks, sizeof *terms);
    struct msc_cost *costs = msc_arena_array(arena, 2, sizeof *costs);
    MSC_TRY(MSC_ALLOCATED(widths && factors && terms && costs));
    for (size_t c = 0; c < n_choices; c++) {
        widths[c] = toy_width(toy, (uint32_t)c);
    }
    double float_bytes = 0.0;
    for (size_t t = 0; t < n_tasks; t++) {
        float_bytes += 8.0 * toy->bytes[t] * FLOAT_BYTES;
    }
    for (size_t t = 0; t < n_tasks; t++) {
        factors[t] = (struct msc_cost_factor){.task = (uint32_t)t, .by_choice = widths};
        struct msc_cost_term term = {
            .scale = toy->bytes[t], .n_factors = 1, .factors = &factors[t]};
        terms[t] = term;
        term.scale /= float_bytes;
        terms[n_tasks + t] = term;
    }
    costs[0] = (struct msc_cost){.metric = "size_bytes", .n_terms = n_tasks, .terms = terms};
    costs[1] =
        (struct msc_cost){.metric = "size_ratio", .n_terms = n_tasks, .terms = terms + n_tasks};
    toy->space.n_costs = 2;
    toy->space.costs = costs;
    return MSC_OK;
}

static enum msc_status toy_build_tasks(struct toy *toy, struct msc_arena *arena) {
    size_t n_tasks = (size_t)toy->tasks;
    size_t n_choices = (size_t)toy->choices;
    const char **labels = msc_arena_array(arena, n_choices, sizeof *labels);
    uint32_t *order = msc_arena_array(arena, n_choices, sizeof *order);
    double *features = msc_arena_array(arena, n_tasks * FEATURE_COUNT, sizeof *features);
    struct msc_task *tasks = msc_arena_array(arena, n_tasks, sizeof *tasks);
    MSC_TRY(MSC_ALLOCATED(labels && order && features && tasks));
    for (size_t c = 0; c < n_choices; c++) {
        labels[c] = msc_arena_printf(arena, "%zu", n_choices - c);
        order[c] = (uint32_t)c;
    }
    for (size_t t = 0; t < n_tasks; t++) {
        features[t * FEATURE_COUNT] = 8.0 * toy->bytes[t];
        features[t * FEATURE_COUNT + 1] = (double)t / (double)n_tasks;
        tasks[t] = (struct msc_task){
            .name = msc_arena_printf(arena, "task_%zu", t),
            .n_choices = (uint32_t)n_choices,
            .labels = labels,
            .most_expensive_first = order,
            .features = features + t * FEATURE_COUNT,
        };
    }
    toy->space.n_tasks = n_tasks;
    toy->space.tasks = tasks;
    toy->space.n_features = FEATURE_COUNT;
    toy->space.feature_names = toy_feature_names;
    return MSC_OK;
}

static enum msc_status toy_build_baselines(struct toy *toy, struct msc_arena *arena) {
    size_t n_tasks = (size_t)toy->tasks;
    size_t n_choices = (size_t)toy->choices;
    struct msc_baseline *baselines = msc_arena_array(arena, n_choices, sizeof *baselines);
    uint32_t *points = msc_arena_array(arena, n_choices * n_tasks, sizeof *points);
    MSC_TRY(MSC_ALLOCATED(baselines && points));
    for (size_t c = 0; c < n_choices; c++) {
        for (size_t t = 0; t < n_tasks; t++) {
            points[c * n_tasks + t] = (uint32_t)c;
        }
        baselines[c] = (struct msc_baseline){
            .label = toy->space.tasks[0].labels[c],
            .choices = points + c * n_tasks,
        };
    }
    toy->space.n_baselines = n_choices;
    toy->space.baselines = baselines;
    return MSC_OK;
}

static const struct msc_metric *toy_metric(size_t index) {
    return index < METRIC_COUNT ? &toy_metrics[index] : NULL;
}

static enum msc_status toy_init(struct msc_env *env) {
    struct toy *toy = msc_env_state(env);
    struct msc_arena *arena = msc_env_arena(env);
    toy->space.n_metrics = METRIC_COUNT;
    toy->space.metrics = toy_metrics;
    MSC_TRY(toy_draw_tables(toy, arena));
    MSC_TRY(toy_build_tasks(toy, arena));
    MSC_TRY(toy_build_costs(toy, arena));
    return toy_build_baselines(toy, arena);
}

static const struct msc_space *toy_space(const struct msc_env *env) {
    const struct toy *toy = msc_env_state(env);
    return &toy->space;
}

// Sleeps in short pieces, so that a request to stop is noticed. False after such a request.
static bool wait_us(const struct msc_env *env, uint64_t duration_us) {
    const struct msc_cancel *cancel = msc_env_host(env)->cancel;
    uint64_t end_ns = msc_clock_ns() + duration_us * 1000;
    for (uint64_t now_ns = msc_clock_ns(); now_ns < end_ns; now_ns = msc_clock_ns()) {
        if (msc_cancel_now(cancel)) {
            return false;
        }
        uint64_t piece_ns = end_ns - now_ns < 10000000 ? end_ns - now_ns : 10000000;
        struct timespec piece = {.tv_sec = 0, .tv_nsec = (long)piece_ns};
        nanosleep(&piece, NULL);
    }
    return true;
}

static bool toy_is_failing(const struct toy *toy, const struct msc_trial *trial) {
    const uint32_t *choices = trial->proposal.choices;
    if (trial->id == toy->fail_at) {
        return true;
    }
    if (toy->fail_every == 0) {
        return false;
    }
    size_t n_bytes = (size_t)toy->tasks * sizeof *choices;
    return msc_hash_bytes(choices, n_bytes).low % (uint64_t)toy->fail_every == 0;
}

static void toy_inject_failure(const struct toy *toy, struct msc_outcome *outcome) {
    outcome->metrics[METRIC_LOSS] = NAN;
    if (toy->fail_cause == CAUSE_ENVIRONMENT) {
        msc_outcome_fail(outcome, MSC_CAUSE_ENVIRONMENT, "injected: the device is gone");
    }
}

// Returns the number of batches after which a trial ends. *partial is its loss over these batches.
static int count_batches(double bound, double loss, double *partial) {
    int n = 1;
    while (n < BATCHES && !(loss * n / BATCHES > bound)) {
        n++;
    }
    *partial = loss * n / BATCHES;
    return n;
}

static enum msc_status toy_evaluate(struct msc_env *env, const struct msc_evaluation *e) {
    const struct toy *toy = msc_env_state(env);
    for (size_t i = 0; i < e->n; i++) {
        struct msc_trial *trial = e->trials[i];
        struct msc_outcome *outcome = &trial->outcome;
        double loss = 0.0;
        int n_batches =
            count_batches(e->bounds[i], toy_point_loss(toy, trial->proposal.choices), &loss);
        uint64_t delay_us = trial->id == toy->hang_at
                                ? UINT64_MAX / 2000
                                : (uint64_t)toy->delay_us * (uint64_t)n_batches / BATCHES;
        if (trial->id == toy->crash_at) {
            abort();
        }
        if (delay_us > 0 && !wait_us(env, delay_us)) {
            return MSC_FAIL(MSC_E_CANCELLED, "stopped on request in trial %lld",
                            (long long)trial->id);
        }
        outcome->metrics[METRIC_LOSS] = loss;
        outcome->time_us = delay_us;
        if (toy_is_failing(toy, trial)) {
            toy_inject_failure(toy, outcome);
        } else if (loss > e->bounds[i]) {
            msc_outcome_prune(outcome, "over its bound after %d of %d batches", n_batches, BATCHES);
        }
        if (e->finished) {
            e->finished(e->payload, i);
        }
    }
    return MSC_OK;
}

static enum msc_status toy_reference(struct msc_env *env, double metrics[MSC_MAX_METRICS]) {
    const struct toy *toy = msc_env_state(env);
    metrics[METRIC_LOSS] = 0.0;
    metrics[METRIC_SIZE] = 0.0;
    for (size_t t = 0; t < (size_t)toy->tasks; t++) {
        metrics[METRIC_SIZE] += 8.0 * toy->bytes[t] * FLOAT_BYTES;
    }
    metrics[METRIC_SIZE_RATIO] = 1.0;
    return MSC_OK;
}

// Tables of the dynamic programme: for tasks 0 … t, the least loss with each choice of task t and
// each size, and the choice of task t - 1 that attains it.
struct programme {
    const struct toy *toy;
    size_t n_sizes;
    double *best;  // [2, choices, n_sizes], of the previous task and of this one
    uint8_t *from; // [tasks, choices, n_sizes]
};

static void toy_advance(struct programme *p, size_t t, const double *before, double *after) {
    const struct toy *toy = p->toy;
    size_t n_choices = (size_t)toy->choices;
    for (size_t i = 0; i < n_choices * p->n_sizes; i++) {
        after[i] = INFINITY;
    }
    for (uint32_t c = 0; c < n_choices; c++) {
        size_t step = toy->bytes[t] * (n_choices - c);
        uint8_t *from = p->from + (t * n_choices + c) * p->n_sizes;
        for (uint32_t left = 0; left < (t > 0 ? n_choices : 1); left++) {
            double added = toy->losses[t * n_choices + c];
            added += toy->pairs && t > 0 ? toy_pair_loss(toy, t - 1, left, c) : 0.0;
            for (size_t size = step; size < p->n_sizes; size++) {
                double loss = before[left * p->n_sizes + size - step] + added;
                if (loss < after[c * p->n_sizes + size]) {
                    after[c * p->n_sizes + size] = loss;
                    from[size] = (uint8_t)left;
                }
            }
        }
    }
}

static enum msc_status toy_run_programme(struct programme *p, uint32_t choices[]) {
    const struct toy *toy = p->toy;
    size_t n_tasks = (size_t)toy->tasks;
    size_t n_choices = (size_t)toy->choices;
    size_t layer = n_choices * p->n_sizes;
    for (size_t i = 0; i < layer; i++) {
        p->best[i] = i == 0 ? 0.0 : INFINITY;
    }
    for (size_t t = 0; t < n_tasks; t++) {
        toy_advance(p, t, p->best + (t % 2) * layer, p->best + ((t + 1) % 2) * layer);
    }
    const double *last = p->best + (n_tasks % 2) * layer;
    size_t end = 0;
    for (size_t i = 0; i < layer; i++) {
        end = last[i] < last[end] ? i : end;
    }
    if (isinf(last[end])) {
        return MSC_FAIL(MSC_E_NOT_FOUND, "toy: every point is larger than the bound");
    }
    size_t size = end % p->n_sizes;
    size_t choice = end / p->n_sizes;
    for (size_t t = n_tasks; t-- > 0;) {
        choices[t] = (uint32_t)choice;
        uint8_t left = p->from[(t * n_choices + choice) * p->n_sizes + size];
        size -= toy->bytes[t] * (n_choices - choice);
        choice = left;
    }
    return MSC_OK;
}

enum msc_status msc_env_toy_optimum(const struct msc_env *env, double max_size_bytes,
                                    uint32_t choices[], double *distill_loss) {
    assert(strcmp(msc_env_definition(env)->name, "toy") == 0);
    const struct toy *toy = msc_env_state(env);
    size_t n_choices = (size_t)toy->choices;
    double greatest = 0.0;
    for (size_t t = 0; t < (size_t)toy->tasks; t++) {
        greatest += (double)toy->bytes[t] * (double)toy->choices;
    }
    struct programme p = {.toy = toy};
    p.n_sizes = (size_t)fmax(0.0, floor(fmin(max_size_bytes, greatest))) + 1;
    p.best = msc_alloc_zero(2 * n_choices * p.n_sizes, sizeof *p.best);
    p.from = msc_alloc_zero((size_t)toy->tasks * n_choices * p.n_sizes, sizeof *p.from);
    enum msc_status status = p.best && p.from ? toy_run_programme(&p, choices)
                                              : MSC_FAIL(MSC_E_NOMEM, "toy: out of memory");
    if (status == MSC_OK) {
        *distill_loss = toy_point_loss(toy, choices);
    }
    msc_free(p.best);
    msc_free(p.from);
    return status;
}

const struct msc_env_def msc_env_toy = {
    .abi = MSC_ENV_ABI,
    .name = "toy",
    .summary = "analytic losses and sizes with a known optimum; needs no model",
    .version = 1,
    .state_size = sizeof(struct toy),
    .params = toy_params,
    .metric = toy_metric,
    .init = toy_init,
    .space = toy_space,
    .evaluate = toy_evaluate,
    .reference = toy_reference,
};
