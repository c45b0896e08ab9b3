#include "batch_env.h"

#include <math.h>
#include <string.h>

#define MAX_TASKS 8
#define MAX_CHOICES 4
#define MAX_BATCHES 16
#define N_SUMS 2

struct batch_env {
    int64_t tasks, choices, batches;
    bool is_broken, is_broken_at_once;
    double lie_share;
    uint64_t lie_seed;
    struct msc_space space;
    struct msc_task task_list[MAX_TASKS];
    double empty[N_SUMS * MAX_BATCHES];
};

static const struct msc_metric metrics[] = {
    {.name = "distill_loss", .unit = ""},
    {.name = "accuracy", .unit = "", .is_maximised = true},
};
static const char *const labels[MAX_CHOICES] = {"0", "1", "2", "3"};
static const char *const names[MAX_TASKS] = {"a", "b", "c", "d", "e", "f", "g", "h"};
static const uint32_t order[MAX_CHOICES] = {0, 1, 2, 3};

static const struct msc_param params[] = {
    {.name = "tasks",
     .help = "tasks",
     .type = MSC_PARAM_I64,
     .number = 5,
     .min = 1,
     .max = MAX_TASKS,
     .offset = offsetof(struct batch_env, tasks)},
    {.name = "choices",
     .help = "choices",
     .type = MSC_PARAM_I64,
     .number = 3,
     .min = 1,
     .max = MAX_CHOICES,
     .offset = offsetof(struct batch_env, choices)},
    {.name = "batches",
     .help = "batches",
     .type = MSC_PARAM_I64,
     .number = 6,
     .min = 1,
     .max = MAX_BATCHES,
     .offset = offsetof(struct batch_env, batches)},
    {0},
};

static enum msc_status init(struct msc_env *env) {
    struct batch_env *b = msc_env_state(env);
    for (size_t t = 0; t < (size_t)b->tasks; t++) {
        b->task_list[t] = (struct msc_task){.name = names[t],
                                            .n_choices = (uint32_t)b->choices,
                                            .labels = labels,
                                            .most_expensive_first = order};
    }
    b->space = (struct msc_space){
        .n_tasks = (size_t)b->tasks, .tasks = b->task_list, .n_metrics = 2, .metrics = metrics};
    return MSC_OK;
}

static const struct msc_space *space(const struct msc_env *env) {
    const struct batch_env *b = msc_env_state(env);
    return &b->space;
}

static struct msc_env_batches batches(const struct msc_env *env) {
    const struct batch_env *b = msc_env_state(env);
    size_t n = (size_t)b->batches;
    return (struct msc_env_batches){.n = n, .n_terms = N_SUMS * n, .n_sums = N_SUMS};
}

static double term_of(const struct batch_env *b, const uint32_t choices[], size_t batch,
                      size_t sum) {
    struct msc_hash h = msc_hash_bytes(choices, (size_t)b->tasks * sizeof choices[0]);
    h = msc_hash_add_u64(h, batch * N_SUMS + sum);
    uint64_t drawn = msc_hash_add_u64(h, b->lie_seed).low;
    bool is_lie = (double)(drawn >> 11) * 0x1p-53 < b->lie_share && choices[0] + choices[1] > 0;
    bool is_wrong =
        is_lie || (b->is_broken && (b->is_broken_at_once || batch + 1 == (size_t)b->batches));
    return (double)(h.low >> 11) * 0x1p-53 - 0.05 + (is_wrong ? 1e-9 : 0.0);
}

static double partial_loss(const struct msc_env *env, const double terms[], size_t n_batches) {
    const struct batch_env *b = msc_env_state(env);
    double sum = 0;
    for (size_t i = 0; i < n_batches; i++) {
        sum += terms[i];
    }
    return sum / (double)b->batches;
}

// Sets the outcome from the terms of the first `n_there` batches. The trial is pruned at the first
// batch at which its loss exceeds `bound`.
static void finish(const struct msc_env *env, struct msc_trial *trial, const double terms[],
                   double bound, size_t n_there, size_t end, const struct msc_part_found *found) {
    const struct batch_env *b = msc_env_state(env);
    struct msc_outcome *o = &trial->outcome;
    size_t n = (size_t)b->batches;
    o->metrics[1] = NAN;
    for (size_t k = 1; k <= n_there; k++) {
        o->metrics[0] = partial_loss(env, terms, k);
        if (o->metrics[0] > bound) {
            msc_outcome_prune(o, "over its bound after %zu batches", k);
            return;
        }
    }
    if (n_there < end) {
        msc_outcome_fail(o, found->cause, "%s", found->reason);
    } else if (end < n) {
        msc_outcome_prune(o, "raced out after %zu batches", end);
    } else {
        o->state = MSC_TRIAL_COMPLETE;
        o->metrics[1] = partial_loss(env, terms + n, n);
    }
}

static enum msc_status evaluate_part(struct msc_env *env, const struct msc_evaluation *e,
                                     const struct msc_env_part *part) {
    struct batch_env *b = msc_env_state(env);
    size_t n = (size_t)b->batches;
    for (size_t i = 0; i < e->n; i++) {
        double *terms = part->terms ? part->terms[i] : b->empty;
        size_t n_there = part->first;
        const struct msc_part_found *found = NULL;
        if (part->kind == MSC_PART_FOLD) {
            found = &part->found[i];
            n_there += found->n_batches;
        }
        while (!found && n_there < part->end) {
            for (size_t sum = 0; sum < N_SUMS; sum++) {
                terms[sum * n + n_there] = term_of(b, e->trials[i]->proposal.choices, n_there, sum);
            }
            n_there++;
            if (partial_loss(env, terms, n_there) > e->bounds[i]) {
                break;
            }
        }
        finish(env, e->trials[i], terms, e->bounds[i], n_there,
               !found && n_there < part->end ? n_there : part->end, found);
        if (e->finished) {
            e->finished(e->payload, i);
        }
    }
    return MSC_OK;
}

static enum msc_status evaluate(struct msc_env *env, const struct msc_evaluation *e) {
    const struct msc_env_part whole = {.end = batches(env).n};
    return evaluate_part(env, e, &whole);
}

void batch_env_break(struct msc_env *env, bool always) {
    struct batch_env *b = msc_env_state(env);
    b->is_broken = true;
    b->is_broken_at_once = always;
}

void batch_env_lie(struct msc_env *env, double share, uint64_t seed) {
    struct batch_env *b = msc_env_state(env);
    b->lie_share = share;
    b->lie_seed = seed;
}

const struct msc_env_def msc_env_batch = {
    .abi = MSC_ENV_ABI,
    .name = "batch",
    .summary = "for tests",
    .version = 1,
    .state_size = sizeof(struct batch_env),
    .params = params,
    .init = init,
    .space = space,
    .evaluate = evaluate,
    .batches = batches,
    .evaluate_part = evaluate_part,
    .partial_loss = partial_loss,
};
