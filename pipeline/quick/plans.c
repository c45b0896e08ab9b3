// The list of plans: creating them, their losses and times, and their order.
#include "pipeline/quick/quick_internal.h"

#include "env/quantize/losses.h"

#include <math.h>
#include <string.h>

// The least gain for leaving twice as many tensors float, as a fraction of the loss. Leaving a
// tensor float makes the joints before and after it compute in float, a cost that bytes and bit
// operations hardly show.
#define LEAST_STEP 0.25

enum msc_status msc_quick__check_stop(const struct msc_quick *q) {
    return msc_cancel_soon(q->options->host.cancel) ? MSC_FAIL(MSC_E_CANCELLED, "stopped") : MSC_OK;
}

// ---- Plans ------------------------------------------------------------------------------------

enum msc_status msc_quick__begin_plan(struct msc_quick_plan **out, struct msc_quick *q,
                                      const struct msc_quick_plan *like) {
    size_t n_tasks = msc_quick__space(q)->n_tasks;
    struct msc_quick_plan *plan = &q->plans[q->n];
    if (q->n >= MSC_QUICK_MOST_PLANS) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    *plan = (struct msc_quick_plan){.weights = like->weights,
                                    .activations = like->activations,
                                    .n_float = like->n_float,
                                    .n_float_beside = like->n_float_beside,
                                    .is_dynamic = like->is_dynamic,
                                    .loss = INFINITY,
                                    .ratio = like->ratio};
    plan->choices = msc_arena_array(&q->arena, n_tasks + 1, sizeof plan->choices[0]);
    MSC_TRY(MSC_ALLOCATED(plan->choices));
    if (like->choices) {
        memcpy(plan->choices, like->choices, n_tasks * sizeof plan->choices[0]);
    }
    *out = plan;
    return MSC_OK;
}

// Fills the metrics that are known without running the network.
static void fill_costs(struct msc_quick_plan *plan, const struct msc_space *space) {
    for (size_t i = 0; i < space->n_metrics; i++) {
        plan->metrics[i] = NAN;
    }
    for (size_t i = 0; i < space->n_costs; i++) {
        plan->metrics[msc_space_find_metric(space, space->costs[i].metric)] =
            msc_cost_value(&space->costs[i], plan->choices);
    }
}

// Stores the loss in `found`: {"validation": {"distill_loss": ...}}. Without held-back samples,
// stores it in the metric instead.
static enum msc_status note_loss(struct msc_quick_plan *plan, const struct msc_quick *q) {
    if (!q->setup->model->validation) {
        plan->metrics[msc_space_find_metric(msc_quick__space(q), "distill_loss")] = plan->loss;
        plan->found = cJSON_CreateObject();
        return MSC_ALLOCATED(plan->found);
    }
    cJSON *validation = cJSON_CreateObject();
    plan->found = cJSON_CreateObject();
    if (!plan->found) {
        cJSON_Delete(validation);
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    MSC_TRY(msc_json_add(plan->found, "validation", validation));
    return plan->loss < INFINITY ? msc_json_add_number(validation, "distill_loss", plan->loss)
                                 : MSC_OK;
}

double msc_quick__predict_ratio(const struct msc_quick *q, const uint32_t point[]) {
    double of_float = q->predictor ? msc_quantize_predict_us(q->predictor, NULL) : 0;
    return of_float > 0 ? msc_quantize_predict_us(q->predictor, point) / of_float : NAN;
}

enum msc_status msc_quick__measure_plans(struct msc_quick *q, size_t first) {
    const struct msc_quantize_losses_of held_back = {.samples = MSC_QUANTIZE_VALIDATION};
    const uint32_t *points[MSC_QUICK_MOST_PLANS] = {NULL};
    double losses[MSC_QUICK_MOST_PLANS];
    size_t n = q->n - first;
    for (size_t i = 0; i < n; i++) {
        points[i] = q->plans[first + i].choices;
    }
    MSC_TRY(msc_quantize_measure_losses(losses, q->session.env, &held_back, points, n));
    for (size_t i = 0; i < n; i++) {
        struct msc_quick_plan *plan = &q->plans[first + i];
        plan->loss = losses[i];
        plan->ratio = msc_quick__predict_ratio(q, plan->choices);
        fill_costs(plan, msc_quick__space(q));
        MSC_TRY(note_loss(plan, q));
    }
    return msc_quick__check_stop(q);
}

bool msc_quick__is_known(const struct msc_quick *q, const uint32_t point[]) {
    size_t n_bytes = msc_quick__space(q)->n_tasks * sizeof point[0];
    for (size_t i = 0; i < q->n; i++) {
        if (memcmp(q->plans[i].choices, point, n_bytes) == 0) {
            return true;
        }
    }
    return false;
}

struct msc_quick_plan *msc_quick__find_plain(const struct msc_quick *q) {
    for (size_t i = 1; i < q->n; i++) {
        struct msc_quick_plan *plan = &q->plans[i];
        if (msc_quick__is_plain(q, plan) && plan->loss < INFINITY) {
            return plan;
        }
    }
    return NULL;
}

// ---- Their order ------------------------------------------------------------------------------

// The loss by which a plan is ranked: each doubling of the number of float tensors must pay off.
static double rank_of(const struct msc_quick_plan *plan) {
    size_t n_left = msc_quick__n_left(plan);
    double n_steps = n_left > 0 ? 1.0 + log2((double)n_left) : 0.0;
    return plan->loss / pow(1.0 - LEAST_STEP, n_steps);
}

static void rank_plan(struct msc_quick *q, size_t i) {
    struct msc_quick_plan plan = q->plans[i];
    for (; i > 0 && rank_of(&plan) < rank_of(&q->plans[i - 1]); i--) {
        q->plans[i] = q->plans[i - 1];
    }
    q->plans[i] = plan;
}

void msc_quick__put_first(struct msc_quick *q, size_t i) {
    struct msc_quick_plan plan = q->plans[i];
    memmove(q->plans + 1, q->plans, i * sizeof q->plans[0]);
    q->plans[0] = plan;
}

void msc_quick__sort_plans(struct msc_quick *q) {
    for (size_t i = 1; i < q->n; i++) {
        rank_plan(q, i);
    }
}
