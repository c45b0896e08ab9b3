#include "fake_env.h"

#include <cjson/cJSON.h>

#include <time.h>

#define MAX_TASKS 16
#define MAX_CHOICES 10

struct fake {
    int64_t tasks;
    int64_t choices;
    int64_t baselines;

    struct msc_space space;
    struct msc_task task_list[MAX_TASKS];
    struct msc_baseline baseline_list[MAX_CHOICES];
    uint32_t points[MAX_CHOICES][MAX_TASKS];
    struct msc_cost_factor factors[MAX_TASKS];
    struct msc_cost_term terms[MAX_TASKS];
    struct msc_cost cost;
};

struct fake_control fake_control;

void fake_reset(void) {
    fake_control = (struct fake_control){.fail_from = -1, .fail_to = -1, .stop_at = -1};
}

static const struct msc_metric fake_metrics[] = {
    {.name = "distill_loss", .unit = ""},
    {.name = "size_bytes", .unit = "bytes", .is_exact = true},
};
static const char *const fake_labels[MAX_CHOICES] = {"0", "1", "2", "3", "4",
                                                     "5", "6", "7", "8", "9"};
static const char *const fake_names[MAX_TASKS] = {"a", "b", "c", "d", "e", "f", "g", "h",
                                                  "i", "j", "k", "l", "m", "n", "o", "p"};
static const uint32_t fake_order[MAX_CHOICES] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
static const double fake_sizes[MAX_CHOICES] = {10, 9, 8, 7, 6, 5, 4, 3, 2, 1};

static const struct msc_param fake_params[] = {
    {.name = "tasks",
     .help = "tasks",
     .type = MSC_PARAM_I64,
     .number = 2,
     .min = 1,
     .max = MAX_TASKS,
     .offset = offsetof(struct fake, tasks)},
    {.name = "choices",
     .help = "choices",
     .type = MSC_PARAM_I64,
     .number = 4,
     .min = 1,
     .max = MAX_CHOICES,
     .offset = offsetof(struct fake, choices)},
    {.name = "baselines",
     .help = "baselines",
     .type = MSC_PARAM_I64,
     .number = 0,
     .min = 0,
     .max = MAX_CHOICES,
     .offset = offsetof(struct fake, baselines)},
    {0},
};

static enum msc_status fake_init(struct msc_env *env) {
    struct fake *f = msc_env_state(env);
    for (size_t t = 0; t < (size_t)f->tasks; t++) {
        f->task_list[t] = (struct msc_task){.name = fake_names[t],
                                            .n_choices = (uint32_t)f->choices,
                                            .labels = fake_labels,
                                            .most_expensive_first = fake_order};
        f->factors[t] = (struct msc_cost_factor){.task = (uint32_t)t, .by_choice = fake_sizes};
        f->terms[t] = (struct msc_cost_term){.scale = 1, .n_factors = 1, .factors = &f->factors[t]};
        for (uint32_t c = 0; c < MAX_CHOICES; c++) {
            f->points[c][t] = c;
        }
    }
    for (uint32_t c = 0; c < f->baselines; c++) {
        f->baseline_list[c] =
            (struct msc_baseline){.label = fake_labels[c], .choices = f->points[c]};
    }
    f->cost =
        (struct msc_cost){.metric = "size_bytes", .n_terms = (size_t)f->tasks, .terms = f->terms};
    f->space = (struct msc_space){.n_tasks = (size_t)f->tasks,
                                  .tasks = f->task_list,
                                  .n_metrics = 2,
                                  .metrics = fake_metrics,
                                  .n_costs = 1,
                                  .costs = &f->cost,
                                  .n_baselines = (size_t)f->baselines,
                                  .baselines = f->baseline_list};
    return MSC_OK;
}

static const struct msc_space *fake_space(const struct msc_env *env) {
    const struct fake *f = msc_env_state(env);
    return &f->space;
}

static void wait_us(int64_t us) {
    const struct timespec time = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    if (us > 0) {
        nanosleep(&time, NULL);
    }
}

static enum msc_status fake_evaluate(struct msc_env *env, const struct msc_evaluation *e) {
    const struct fake *f = msc_env_state(env);
    struct fake_control *c = &fake_control;
    wait_us(c->n_calls++ == 0 ? c->first_us : 0);
    c->largest_call = e->n > c->largest_call ? e->n : c->largest_call;
    if (c->fail_calls != MSC_OK && e->n > 1) {
        return MSC_FAIL(c->fail_calls, "%zu trials are too many", e->n);
    }
    if (c->n_calls > c->short_from && c->n_calls <= c->short_to) {
        return MSC_FAIL(MSC_E_NOMEM, "no memory");
    }
    for (size_t i = 0; i < e->n; i++) {
        struct msc_trial *trial = e->trials[i];
        struct msc_outcome *outcome = &trial->outcome;
        if (trial->id == c->stop_at) {
            c->cancel->level = c->stop_level;
        }
        if (msc_cancel_now(c->cancel)) {
            return MSC_FAIL(MSC_E_CANCELLED, "stopped on request");
        }
        if (c->lost_from > 0 && c->n_calls >= c->lost_from && i >= e->n / 2) {
            return MSC_FAIL(MSC_E_LOST, "the device is lost");
        }
        if (trial->id >= c->fail_from && trial->id < c->fail_to) {
            if (!c->fails_softly) {
                return MSC_FAIL(MSC_E_DEVICE, "the device is lost");
            }
            msc_outcome_fail(outcome, MSC_CAUSE_ENVIRONMENT, "the device is lost");
            if (e->finished) {
                e->finished(e->payload, i);
            }
            continue;
        }
        wait_us(c->delay_us);
        c->n_trials++;
        outcome->metrics[0] = 0.0;
        for (size_t t = 0; t < f->space.n_tasks; t++) {
            outcome->metrics[0] += trial->proposal.choices[t];
        }
        if (outcome->metrics[0] > e->bounds[i]) {
            msc_outcome_prune(outcome, "over its bound");
        }
        outcome->time_us = 10;
        outcome->reuse_ratio = 0.25;
        if (e->finished && !c->reports_late) {
            e->finished(e->payload, i);
        }
    }
    for (size_t i = 0; e->finished && c->reports_late && i < e->n; i++) {
        e->finished(e->payload, i);
    }
    return MSC_OK;
}

// Validation loss: twice the loss that the search measures.
static enum msc_status fake_reevaluate(struct msc_env *env, const uint32_t choices[], unsigned what,
                                       struct cJSON **out) {
    const struct fake *f = msc_env_state(env);
    double loss = 0.0;
    if (what & MSC_REEVALUATE_EFFORT) {
        *out = cJSON_CreateObject();
        cJSON *effort = cJSON_AddObjectToObject(*out, "effort");
        cJSON_AddNumberToObject(effort, "noise", 9);
        cJSON_AddNumberToObject(effort, "alone", 3);
        cJSON_AddNumberToObject(effort, "validation", 0.5);
        return MSC_OK;
    }
    for (size_t t = 0; t < f->space.n_tasks; t++) {
        loss += 2.0 * choices[t];
    }
    *out = cJSON_CreateObject();
    cJSON_AddNumberToObject(*out, "noise", 0.01);
    cJSON_AddNumberToObject(*out, "isolated_loss_sum", 0.5 * loss);
    cJSON *validation = cJSON_AddObjectToObject(*out, "validation");
    cJSON_AddNumberToObject(validation, "distill_loss", loss);
    return MSC_OK;
}

static enum msc_status fake_reference(struct msc_env *env, double metrics[MSC_MAX_METRICS]) {
    const struct fake *f = msc_env_state(env);
    metrics[0] = 0.0;
    metrics[1] = 40.0 * (double)f->space.n_tasks;
    return MSC_OK;
}

const struct msc_env_def msc_env_fake = {
    .abi = MSC_ENV_ABI,
    .name = "fake",
    .summary = "for tests",
    .version = 1,
    .state_size = sizeof(struct fake),
    .params = fake_params,
    .init = fake_init,
    .space = fake_space,
    .evaluate = fake_evaluate,
    .reference = fake_reference,
    .reevaluate = fake_reevaluate,
};
