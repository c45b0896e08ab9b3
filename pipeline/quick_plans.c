// The plans that are tried: all pairs of a choice for weights and one for activations; then the best
// of them with ever more of those tensors left float that lose most by 8 bits.
#include "pipeline/quick_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// What leaving tensors float may cost at most, as a factor on bytes and on bit operations; what twice
// as many of them have to gain, and what a tensor has to alone, as a part of the loss.
#define MOST_COST 1.25
#define LEAST_STEP 0.1
#define LEAST_GAIN 0.005

#define N_OF(array) (sizeof(array) / sizeof(array)[0])

static const enum msc_quick_choice of_weights[] = {MSC_QUICK_AFFINE, MSC_QUICK_DESCENT,
                                                   MSC_QUICK_NEAREST};
static const enum msc_quick_choice of_activations[] = {MSC_QUICK_NEAREST, MSC_QUICK_MINMAX,
                                                       MSC_QUICK_PERCENTILE};

enum msc_status msc_quick__no_memory(void) {
    return MSC_FAIL(MSC_E_NOMEM, "out of memory for the plans of 8 bits");
}

enum msc_status msc_quick__check_stop(const struct msc_quick *q) {
    return msc_cancel_soon(q->options->host.cancel) ? MSC_FAIL(MSC_E_CANCELLED, "stopped") : MSC_OK;
}

static const struct msc_space *quick_space(const struct msc_quick *q) {
    return msc_env_space(q->p->env);
}

// ---- Measuring --------------------------------------------------------------------------------

// On the samples; each trial on its own.
static enum msc_status evaluate_trials(struct msc_quick *q, struct msc_trial trials[], size_t n) {
    struct msc_trial **list = msc_alloc_zero(n + 1, sizeof(struct msc_trial *));
    if (!list) {
        return msc_quick__no_memory();
    }
    for (size_t i = 0; i < n; i++) {
        list[i] = &trials[i];
        trials[i].id = (int64_t)i;
    }
    const struct msc_evaluation e = {.trials = list, .n = n};
    enum msc_status status = msc_env_evaluate(q->p->env, &q->p->goal, &e);
    msc_free(list);
    return status == MSC_OK ? msc_quick__check_stop(q) : status;
}

// On the samples held back.
static enum msc_status judge_plan(struct msc_quick *q, struct msc_quick_plan *plan) {
    plan->loss = INFINITY;
    if (plan->trial.outcome.state != MSC_TRIAL_COMPLETE) {
        return MSC_OK;
    }
    MSC_TRY(msc_env_reevaluate(q->p->env, plan->trial.proposal.choices, MSC_REEVALUATE_VALIDATION,
                               &plan->found));
    const cJSON *validation = cJSON_GetObjectItemCaseSensitive(plan->found, "validation");
    const cJSON *loss = cJSON_GetObjectItemCaseSensitive(validation, "distill_loss");
    plan->loss = cJSON_IsNumber(loss) ? loss->valuedouble : plan->trial.outcome.objectives[0];
    return msc_quick__check_stop(q);
}

static enum msc_status measure_plan(struct msc_quick *q, struct msc_quick_plan *plan) {
    MSC_TRY(evaluate_trials(q, &plan->trial, 1));
    return judge_plan(q, plan);
}

// ---- Pairs ------------------------------------------------------------------------------------

static bool is_weight(const struct msc_space *space, size_t task) {
    for (size_t f = 0; f < space->n_features; f++) {
        if (strcmp(space->feature_names[f], "is_weight") == 0) {
            return space->tasks[task].features[f] > 0;
        }
    }
    return false;
}

static bool is_known(const struct msc_quick *q, const uint32_t point[]) {
    size_t n_bytes = quick_space(q)->n_tasks * sizeof point[0];
    for (size_t i = 0; i < q->n; i++) {
        if (memcmp(q->plans[i].trial.proposal.choices, point, n_bytes) == 0) {
            return true;
        }
    }
    return false;
}

// A choice for weights and one for activations, unless that is a plan already.
static enum msc_status add_pair(struct msc_quick *q, enum msc_quick_choice weights,
                                enum msc_quick_choice activations) {
    const struct msc_space *space = quick_space(q);
    const enum msc_quick_choice of[] = {activations, weights};
    struct msc_quick_plan *plan = &q->plans[q->n];
    *plan = (struct msc_quick_plan){.weights = weights, .activations = activations};
    MSC_TRY(msc_trial_init(&plan->trial, &q->arena, space));
    for (size_t t = 0; t < space->n_tasks; t++) {
        plan->trial.proposal.choices[t] = space->baselines[of[is_weight(space, t)]].choices[t];
    }
    if (!is_known(q, plan->trial.proposal.choices)) {
        MSC_TRY(measure_plan(q, plan));
        q->n++;
    }
    return MSC_OK;
}

static enum msc_status try_pairs(struct msc_quick *q) {
    msc_processor__tell_measuring(q->p, "plans of 8 bits");
    for (size_t w = 0; w < N_OF(of_weights); w++) {
        for (size_t a = 0; a < N_OF(of_activations); a++) {
            MSC_TRY(add_pair(q, of_weights[w], of_activations[a]));
        }
    }
    return MSC_OK;
}

// The loss that a plan is ranked by: 1, 2, 4, ... tensors left float have to pay, step by step.
static double rank_of(const struct msc_quick_plan *plan) {
    double n_steps = plan->n_float > 0 ? 1.0 + log2((double)plan->n_float) : 0.0;
    return plan->loss / pow(1.0 - LEAST_STEP, n_steps);
}

// The best first; of equal ones the first.
static void sort_plans(struct msc_quick *q) {
    for (size_t i = 1; i < q->n; i++) {
        struct msc_quick_plan plan = q->plans[i];
        size_t k = i;
        for (; k > 0 && rank_of(&plan) < rank_of(&q->plans[k - 1]); k--) {
            q->plans[k] = q->plans[k - 1];
        }
        q->plans[k] = plan;
    }
}

// ---- What is left float -----------------------------------------------------------------------

// A task, and by how much the loss falls if it is left float.
struct gain {
    size_t task;
    double value;
};

static int compare_gains(const void *a, const void *b) {
    const struct gain *x = a, *y = b;
    return x->value != y->value ? (x->value < y->value) - (x->value > y->value)
                                : (x->task > y->task) - (x->task < y->task);
}

static void set_float(const struct msc_space *space, uint32_t point[], size_t task) {
    point[task] = space->baselines[MSC_QUICK_FLOAT].choices[task];
}

// [n_tasks] of the best plan, each task alone; the greatest first.
static enum msc_status measure_gains(struct msc_quick *q, struct gain gains[]) {
    const struct msc_space *space = quick_space(q);
    const struct msc_trial *best = &q->plans[0].trial;
    struct msc_arena arena = {0};
    struct msc_trial *trials = msc_arena_array(&arena, space->n_tasks, sizeof trials[0]);
    enum msc_status status = trials ? MSC_OK : msc_quick__no_memory();
    msc_processor__tell_measuring(q->p, "what each tensor loses by 8 bits");
    for (size_t t = 0; status == MSC_OK && t < space->n_tasks; t++) {
        status = msc_trial_init(&trials[t], &arena, space);
        if (status == MSC_OK) {
            memcpy(trials[t].proposal.choices, best->proposal.choices,
                   space->n_tasks * sizeof(uint32_t));
            set_float(space, trials[t].proposal.choices, t);
        }
    }
    if (status == MSC_OK) {
        status = evaluate_trials(q, trials, space->n_tasks);
    }
    for (size_t t = 0; status == MSC_OK && t < space->n_tasks; t++) {
        bool is_there = trials[t].outcome.state == MSC_TRIAL_COMPLETE;
        double loss = is_there ? trials[t].outcome.objectives[0] : INFINITY;
        gains[t] = (struct gain){t, best->outcome.objectives[0] - loss};
    }
    msc_arena_finish(&arena);
    if (status == MSC_OK) {
        qsort(gains, space->n_tasks, sizeof gains[0], compare_gains);
    }
    return status;
}

// Does a point cost no more bytes and bit operations than it may beside another?
static bool is_affordable(const struct msc_space *space, const uint32_t point[],
                          const uint32_t beside[]) {
    static const char *const costs[] = {"size_bytes", "bit_ops"};
    for (size_t i = 0; i < sizeof costs / sizeof costs[0]; i++) {
        const struct msc_cost *cost = msc_space_find_cost(space, costs[i]);
        if (cost && msc_cost_value(cost, point) > MOST_COST * msc_cost_value(cost, beside)) {
            return false;
        }
    }
    return true;
}

// Adds the tasks that gain most, as far as they can be afforded, until `n` are float or none is left.
static void add_floats(const struct msc_quick *q, struct msc_quick_plan *plan, size_t n,
                       const struct gain gains[]) {
    const struct msc_space *space = quick_space(q);
    const struct msc_trial *all_8 = &q->plans[0].trial;
    double least = LEAST_GAIN * all_8->outcome.objectives[0];
    uint32_t *point = plan->trial.proposal.choices;
    plan->n_float = 0;
    for (size_t i = 0; i < space->n_tasks && plan->n_float < n && gains[i].value > least; i++) {
        uint32_t before = point[gains[i].task];
        set_float(space, point, gains[i].task);
        if (is_affordable(space, point, all_8->proposal.choices)) {
            plan->n_float++;
        } else {
            point[gains[i].task] = before;
        }
    }
}

// The best plan with 1, 2, 4, ... tasks float.
static enum msc_status try_floats(struct msc_quick *q, const struct gain gains[], size_t most) {
    const struct msc_space *space = quick_space(q);
    for (size_t n = 1; n <= most; n *= 2) {
        struct msc_quick_plan *plan = &q->plans[q->n];
        *plan = (struct msc_quick_plan){.weights = q->plans[0].weights,
                                        .activations = q->plans[0].activations};
        MSC_TRY(msc_trial_init(&plan->trial, &q->arena, space));
        memcpy(plan->trial.proposal.choices, q->plans[0].trial.proposal.choices,
               space->n_tasks * sizeof(uint32_t));
        add_floats(q, plan, n, gains);
        if (plan->n_float < n) {
            break; // nothing more that gains, and can be afforded
        }
        MSC_TRY(measure_plan(q, plan));
        q->n++;
    }
    return MSC_OK;
}

static enum msc_status leave_float(struct msc_quick *q) {
    const struct msc_space *space = quick_space(q);
    size_t most = q->options->n_float >= 0 ? (size_t)q->options->n_float : space->n_tasks / 10;
    struct gain *gains = NULL;
    if (most == 0) {
        return MSC_OK;
    }
    gains = msc_alloc_zero(space->n_tasks + 1, sizeof *gains);
    if (!gains) {
        return msc_quick__no_memory();
    }
    enum msc_status status = measure_gains(q, gains);
    if (status == MSC_OK) {
        msc_processor__tell_measuring(q->p, "plans with tensors left float");
        status = try_floats(q, gains, most);
    }
    msc_free(gains);
    return status;
}

enum msc_status msc_quick__find_plans(struct msc_quick *q) {
    enum { MOST_STEPS = 64 }; // of doubling
    size_t n = N_OF(of_weights) * N_OF(of_activations) + MOST_STEPS;
    q->plans = msc_arena_array(&q->arena, n, sizeof q->plans[0]);
    if (!q->plans) {
        return msc_quick__no_memory();
    }
    MSC_TRY(try_pairs(q));
    sort_plans(q);
    if (q->plans[0].loss == INFINITY) {
        return MSC_FAIL(MSC_E_STATE, "no plan of 8 bits could be evaluated: %s",
                        q->plans[0].trial.outcome.reason);
    }
    MSC_TRY(leave_float(q));
    sort_plans(q);
    return MSC_OK;
}
