// Plans with activations that are quantised dynamically: their scales follow from the tensor at run
// time, so they fit every sample, and need no calibration. Only inputs of linear layers can be.
#include "pipeline/quick/quick_internal.h"

#include <string.h>

// The least gain of changing a single activation, as a fraction of the loss.
#define LEAST_GAIN 0.002
// The greatest factor on bit operations if the other activations are float. A float product counts
// 16 times as much as one of bytes, so less than half of the products are then float.
#define MOST_COST 8

bool msc_quick__takes_dynamic(const struct msc_quick *q, size_t task) {
    const struct msc_space *space = msc_quick__space(q);
    uint32_t choice =
        q->dynamic == MSC_QUICK_NO_CHOICE ? 0 : space->baselines[q->dynamic].choices[task];
    return q->dynamic != MSC_QUICK_NO_CHOICE && !msc_quick__is_weight(q, task) &&
           strcmp(space->tasks[task].labels[choice], space->baselines[q->dynamic].label) == 0;
}

static bool is_dynamic_at(const struct msc_quick *q, const uint32_t point[], size_t task) {
    return msc_quick__takes_dynamic(q, task) &&
           point[task] == msc_quick__space(q)->baselines[q->dynamic].choices[task];
}

// Counts the float and the dynamic tasks of a plan. Float activations that cannot be dynamic do not
// count as left float.
static void count(const struct msc_quick *q, struct msc_quick_plan *plan) {
    const struct msc_space *space = msc_quick__space(q);
    plan->n_float = plan->n_float_beside = 0;
    plan->is_dynamic = false;
    for (size_t t = 0; t < space->n_tasks; t++) {
        bool is_float = plan->choices[t] == space->baselines[q->effort->of_float].choices[t];
        plan->n_float += is_float;
        plan->n_float_beside += is_float && !msc_quick__takes_dynamic(q, t);
        plan->is_dynamic = plan->is_dynamic || is_dynamic_at(q, plan->choices, t);
    }
}

// The other activations are float only if few products read them, as in attention, and not as in a
// network of convolutions, and only if the user allows as many float tensors.
static bool is_allowed(const struct msc_quick *q, const struct msc_quick_plan *plan,
                       const struct msc_quick_plan *beside) {
    const struct msc_cost *cost = msc_space_find_cost(msc_quick__space(q), "bit_ops");
    int64_t most = q->options->n_float;
    return (most < 0 || (int64_t)plan->n_float <= most) &&
           (!cost || msc_cost_value(cost, plan->choices) <=
                         MOST_COST * msc_cost_value(cost, beside->choices));
}

enum msc_status msc_quick__add_dynamic(struct msc_quick *q) {
    const struct msc_space *space = msc_quick__space(q);
    const struct msc_quick_plan best = q->plans[0];
    for (int i = 0; i < 2; i++) {
        struct msc_quick_plan *plan = NULL;
        MSC_TRY(msc_quick__begin_plan(&plan, q, &best));
        for (size_t t = 0; t < space->n_tasks; t++) {
            if (msc_quick__takes_dynamic(q, t)) {
                plan->choices[t] = space->baselines[q->dynamic].choices[t];
                plan->activations = q->dynamic;
            } else if (i == 1 && !msc_quick__is_weight(q, t)) {
                plan->choices[t] = space->baselines[q->effort->of_float].choices[t];
            }
        }
        count(q, plan);
        q->n += plan->is_dynamic && !msc_quick__is_known(q, plan->choices) &&
                is_allowed(q, plan, &best);
    }
    return MSC_OK;
}

// The best plan without dynamic activations; NULL if there is none.
static const struct msc_quick_plan *find_static(const struct msc_quick *q) {
    for (size_t i = 0; i < q->n; i++) {
        if (!q->plans[i].is_dynamic) {
            return &q->plans[i];
        }
    }
    return NULL;
}

// Fills points [n]: the best plan, then the best plan with each of the tasks changed. Returns n.
static size_t fill_points(const struct msc_quick *q, uint32_t choices[], const uint32_t *points[],
                          size_t tasks[]) {
    const struct msc_space *space = msc_quick__space(q);
    const struct msc_quick_plan *other = find_static(q);
    const uint32_t *best = q->plans[0].choices;
    size_t n = 0;
    for (size_t t = 0; t <= space->n_tasks; t++) { // the first point changes nothing
        bool is_first = t == 0;
        if (!is_first && (!other || !msc_quick__takes_dynamic(q, t - 1))) {
            continue;
        }
        uint32_t *point = choices + n * (space->n_tasks + 1);
        memcpy(point, best, space->n_tasks * sizeof point[0]);
        if (!is_first) {
            bool is_dynamic = is_dynamic_at(q, best, t - 1);
            point[t - 1] =
                (is_dynamic ? other->choices : space->baselines[q->dynamic].choices)[t - 1];
            tasks[n] = t - 1;
        }
        points[n++] = point;
    }
    return n;
}

enum msc_status msc_quick__mix_dynamic(struct msc_quick *q) {
    size_t n_tasks = msc_quick__space(q)->n_tasks, n = 0;
    struct msc_quick_plan *plan = NULL;
    struct msc_arena arena = {0};
    uint32_t *choices = msc_arena_array(&arena, (n_tasks + 1) * (n_tasks + 1), sizeof choices[0]);
    const uint32_t **points = msc_arena_array(&arena, n_tasks + 1, sizeof(points[0]));
    size_t *tasks = msc_arena_array(&arena, n_tasks + 1, sizeof tasks[0]);
    double *losses = msc_arena_array(&arena, n_tasks + 1, sizeof losses[0]);
    enum msc_status status = MSC_ALLOCATED(choices && points && tasks && losses);
    if (status == MSC_OK) {
        n = fill_points(q, choices, points, tasks);
    }
    if (n > 1) {
        status = msc_quick__measure_some(losses, q, points, n, false);
        status = status == MSC_OK ? msc_quick__begin_plan(&plan, q, &q->plans[0]) : status;
    }
    for (size_t i = 1; status == MSC_OK && i < n; i++) {
        if (losses[i] < losses[0] * (1 - LEAST_GAIN)) {
            plan->choices[tasks[i]] = points[i][tasks[i]];
        }
    }
    if (status == MSC_OK && plan) {
        count(q, plan);
        q->n += !msc_quick__is_known(q, plan->choices);
    }
    msc_arena_finish(&arena);
    return status;
}
