// Leaves tensors float: the 1, 2, 4, ... tensors that cause most of the loss at 8 bits.
#include "pipeline/quick/quick_internal.h"

#include "env/quantize/losses.h"

#include <stdlib.h>
#include <string.h>

// Limits for leaving tensors float: the greatest factor on bytes and on bit operations, and the
// least gain of a single tensor, as a fraction of the loss.
#define MOST_COST 1.25
#define LEAST_GAIN 0.005

// A task, and by how much the loss falls if the task is left float.
struct gain {
    size_t task;
    double value;
};

static int compare_gains(const void *a, const void *b) {
    const struct gain *x = a, *y = b;
    return x->value != y->value ? (x->value < y->value) - (x->value > y->value)
                                : (x->task > y->task) - (x->task < y->task);
}

static void set_float(const struct msc_quick *q, uint32_t point[], size_t task) {
    point[task] = msc_quick__space(q)->baselines[q->effort->of_float].choices[task];
}

static void tell_gain(void *payload, size_t n_done, size_t n) {
    msc_quick__tell(payload, MSC_QUICK_GAINS, n_done, n);
}

enum msc_status msc_quick__measure_some(double losses[], struct msc_quick *q,
                                        const uint32_t *const points[], size_t n, bool is_told) {
    const struct msc_quantize_losses_of some = {.samples = MSC_QUANTIZE_CALIBRATION,
                                                .n_most = q->effort->n_gain_samples,
                                                .done = is_told ? tell_gain : NULL,
                                                .payload = q};
    return msc_quantize_measure_losses(losses, q->session.env, &some, points, n);
}

// Measures the best plan, and the same plan with each of the tasks float. A few samples are enough
// to find the tensors that cause most of the loss. The plans are then compared on the held-back
// samples.
static enum msc_status measure_gains(struct msc_quick *q, struct gain gains[]) {
    const struct msc_space *space = msc_quick__space(q);
    size_t n = space->n_tasks + 1;
    struct msc_arena arena = {0};
    uint32_t *choices = msc_arena_array(&arena, n * n, sizeof choices[0]);
    const uint32_t **points = msc_arena_array(&arena, n, sizeof(points[0]));
    double *losses = msc_arena_array(&arena, n, sizeof losses[0]);
    enum msc_status status = MSC_ALLOCATED(choices && points && losses);
    for (size_t i = 0; status == MSC_OK && i < n; i++) {
        uint32_t *point = choices + i * n;
        memcpy(point, q->plans[0].choices, space->n_tasks * sizeof point[0]);
        if (i > 0) {
            set_float(q, point, i - 1);
        }
        points[i] = point;
    }
    if (status == MSC_OK) {
        status = msc_quick__measure_some(losses, q, points, n, true);
    }
    for (size_t i = 1; status == MSC_OK && i < n; i++) {
        double value = losses[0] > 0.0 ? (losses[0] - losses[i]) / losses[0] : 0.0;
        gains[i - 1] = (struct gain){i - 1, value};
    }
    msc_arena_finish(&arena);
    if (status == MSC_OK) {
        qsort(gains, space->n_tasks, sizeof gains[0], compare_gains);
    }
    return status == MSC_OK ? msc_quick__check_stop(q) : status;
}

// True if a plan with floats does not cost too many bytes and bit operations, compared with the
// best plan. If `is_quick`, its predicted time must not be too long either.
static bool is_affordable(const struct msc_quick *q, const uint32_t point[], bool is_quick) {
    static const char *const costs[] = {"size_bytes", "bit_ops"};
    const struct msc_space *space = msc_quick__space(q);
    const uint32_t *beside = q->plans[0].choices;
    if (is_quick &&
        !msc_quick__is_quick_enough(msc_quick__predict_ratio(q, point), q->plans[0].ratio)) {
        return false;
    }
    for (size_t i = 0; i < sizeof costs / sizeof costs[0]; i++) {
        const struct msc_cost *cost = msc_space_find_cost(space, costs[i]);
        if (cost && msc_cost_value(cost, point) > MOST_COST * msc_cost_value(cost, beside)) {
            return false;
        }
    }
    return true;
}

// Leaves tasks float, in the order of their gains, greatest first, until `n` tasks are float or no
// task remains. Skips tasks that are not affordable.
static void add_floats(const struct msc_quick *q, struct msc_quick_plan *plan, size_t n,
                       const struct gain gains[], bool is_quick) {
    const struct msc_space *space = msc_quick__space(q);
    for (size_t i = 0;
         i < space->n_tasks && msc_quick__n_left(plan) < n && gains[i].value > LEAST_GAIN; i++) {
        uint32_t before = plan->choices[gains[i].task];
        set_float(q, plan->choices, gains[i].task);
        if (is_affordable(q, plan->choices, is_quick)) {
            plan->n_float++;
        } else {
            plan->choices[gains[i].task] = before;
        }
    }
}

// Adds plans with 1, 2, 4, ... tensors left float, up to `most`.
static enum msc_status add_plans(struct msc_quick *q, size_t most, const struct gain gains[],
                                 bool is_quick) {
    for (size_t n = 1; n <= most; n *= 2) {
        struct msc_quick_plan *plan = NULL;
        MSC_TRY(msc_quick__begin_plan(&plan, q, &q->plans[0]));
        add_floats(q, plan, n, gains, is_quick);
        if (msc_quick__n_left(plan) < n) {
            break; // no other tensor gains enough and is affordable
        }
        q->n += !msc_quick__is_known(q, plan->choices);
    }
    return MSC_OK;
}

size_t msc_quick__most_float(const struct msc_quick *q, size_t n_tasks) {
    size_t usual = q->effort->leaves_float ? n_tasks / 10 : 0;
    return q->options->n_float >= 0 ? (size_t)q->options->n_float : usual;
}

enum msc_status msc_quick__leave_float(struct msc_quick *q) {
    size_t n_tasks = msc_quick__space(q)->n_tasks, most = msc_quick__most_float(q, n_tasks);
    bool is_asked = q->options->n_float >= 0;
    if (is_asked) { // counts all float tensors
        size_t beside = q->plans[0].n_float_beside;
        most = most > beside ? most - beside : 0;
    }
    if (most == 0) {
        return MSC_OK;
    }
    struct gain *gains = msc_alloc_zero(n_tasks + 1, sizeof *gains);
    MSC_TRY(MSC_ALLOCATED(gains));
    enum msc_status status = measure_gains(q, gains);
    status = status == MSC_OK ? add_plans(q, most, gains, false) : status;
    // Adds plans both with and without the limit on predicted time. If there is a runtime,
    // measurements in the runtime decide later.
    status =
        status == MSC_OK && !is_asked && q->predictor ? add_plans(q, most, gains, true) : status;
    msc_free(gains);
    return status;
}
