// Finds the best plans. First the choices for activations are tried in turn, then the choices for
// weights together with the best choice for activations, then single activations with the other of
// static and dynamic scales. Then tensors of the best pair are left float, slow plans are rejected
// or replaced by quicker ones, and weights are improved.
#include "pipeline/quick/quick_internal.h"

#include <math.h>
#include <string.h>

bool msc_quick__is_weight(const struct msc_quick *q, size_t task) {
    const struct msc_space *space = msc_quick__space(q);
    for (size_t f = 0; f < space->n_features; f++) {
        if (strcmp(space->feature_names[f], "is_weight") == 0) {
            return space->tasks[task].features[f] > 0;
        }
    }
    return false;
}

// Gives all weights, or all activations, of a plan one choice.
static void set_all(const struct msc_quick *q, struct msc_quick_plan *plan, bool are_weights,
                    size_t choice) {
    const struct msc_space *space = msc_quick__space(q);
    for (size_t t = 0; t < space->n_tasks; t++) {
        if (msc_quick__is_weight(q, t) == are_weights) {
            plan->choices[t] = space->baselines[choice].choices[t];
        }
    }
    *(are_weights ? &plan->weights : &plan->activations) = choice;
}

// Adds a plan with one choice for weights and one for activations, unless it is already listed.
static enum msc_status add_pair(struct msc_quick *q, size_t weights, size_t activations) {
    const struct msc_quick_plan like = {.weights = weights};
    struct msc_quick_plan *plan = NULL;
    MSC_TRY(msc_quick__begin_plan(&plan, q, &like));
    set_all(q, plan, true, weights);
    set_all(q, plan, false, activations);
    q->n += !msc_quick__is_known(q, plan->choices);
    return MSC_OK;
}

// Adds the best plan with another choice for weights, unless it is already listed.
static enum msc_status add_weights(struct msc_quick *q, const struct msc_quick_plan *best,
                                   size_t weights) {
    struct msc_quick_plan *plan = NULL;
    MSC_TRY(msc_quick__begin_plan(&plan, q, best));
    set_all(q, plan, true, weights);
    q->n += !msc_quick__is_known(q, plan->choices);
    return MSC_OK;
}

// Measures the plans from `first` on, then sorts all.
static enum msc_status measure_and_sort(struct msc_quick *q, size_t first) {
    MSC_TRY(msc_quick__measure_plans(q, first));
    msc_quick__sort_plans(q);
    return MSC_OK;
}

static enum msc_status try_pairs(struct msc_quick *q) {
    const struct msc_quick_effort *e = q->effort;
    msc_quick__tell(q, MSC_QUICK_PLANS, 0, 0);
    for (size_t i = 0; i < e->n_activations; i++) {
        MSC_TRY(add_pair(q, e->weights[0], e->activations[i]));
    }
    MSC_TRY(measure_and_sort(q, 0));
    size_t n_before = q->n;
    MSC_TRY(msc_quick__add_dynamic(q));
    MSC_TRY(measure_and_sort(q, n_before));
    n_before = q->n;
    const struct msc_quick_plan best = q->plans[0];
    for (size_t i = 1; i < e->n_weights; i++) {
        MSC_TRY(add_weights(q, &best, e->weights[i]));
    }
    MSC_TRY(measure_and_sort(q, n_before));
    n_before = q->n;
    MSC_TRY(msc_quick__mix_dynamic(q));
    return measure_and_sort(q, n_before);
}

enum msc_status msc_quick__find_plans(struct msc_quick *q) {
    q->plans = msc_arena_array(&q->arena, MSC_QUICK_MOST_PLANS, sizeof q->plans[0]);
    MSC_TRY(MSC_ALLOCATED(q->plans));
    MSC_TRY(msc_quantize_predictor_create(&q->predictor, q->session.env));
    MSC_TRY(try_pairs(q));
    if (q->plans[0].loss == INFINITY) {
        return MSC_FAIL(MSC_E_STATE, "no 8-bit plan has a finite loss");
    }
    size_t n_before = q->n;
    MSC_TRY(msc_quick__leave_float(q));
    msc_quick__tell(q, MSC_QUICK_FLOATS, 0, 0);
    MSC_TRY(msc_quick__measure_plans(q, n_before));
    msc_quick__sort_plans(q);
    n_before = q->n;
    MSC_TRY(msc_quick__compute_float(q));
    MSC_TRY(msc_quick__measure_plans(q, n_before));
    MSC_TRY(msc_quick__pass_slow(q));
    if (!q->effort->improves) {
        return MSC_OK;
    }
    msc_quick__close_delivery(q); // its process needs memory
    return msc_quick__improve_weights(q);
}
