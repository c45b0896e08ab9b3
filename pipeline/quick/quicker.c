// Plans that compute in floats where integers do not save time.
//
// A file for ONNX Runtime stores weights of bytes for a joint in floats so that they are converted
// once, at load. So a plan whose activations are all float, and whose weights are bytes, takes the
// time of the float model, and its file is as small as that of a plan with bytes everywhere.
// Between these two plans are others, with stretches of joints in floats and in integers; the
// predictor finds the quickest.
#include "pipeline/quick/quick_internal.h"

#include "graph/target.h"

#include <string.h>

enum {
    MOST_STRETCH = 32, // tasks
    MOST_PASSES = 4,
    MOST_PREDICTIONS = 20000,
};

// Predictions may be wrong by this factor, so a plan with a lower predicted time is surely quicker
// than the float model.
#define SURE_RATIO 0.65

// A walk over plans: each activation has the choice of the best plan, or is float.
struct walk {
    const struct msc_quick *q;
    const uint32_t *integers, *floats; // choices of a task, by task
    uint32_t *point, *before;
    double ratio;
    size_t n_predictions;
};

// Gives the tasks of [first, end) the choices `from` if this lowers the predicted time.
static bool take_stretch(struct walk *w, const uint32_t from[], size_t first, size_t end) {
    size_t n_bytes = (end - first) * sizeof from[0];
    if (memcmp(w->point + first, from + first, n_bytes) == 0 ||
        w->n_predictions >= MOST_PREDICTIONS) {
        return false;
    }
    memcpy(w->before, w->point + first, n_bytes);
    memcpy(w->point + first, from + first, n_bytes);
    double ratio = msc_quick__predict_ratio(w->q, w->point);
    w->n_predictions++;
    if (ratio < w->ratio * (1 - 1e-9)) {
        w->ratio = ratio;
        return true;
    }
    memcpy(w->point + first, w->before, n_bytes);
    return false;
}

static void find_quickest(struct walk *w, size_t n_tasks) {
    bool is_better = true;
    for (int pass = 0; pass < MOST_PASSES && is_better; pass++) {
        is_better = false;
        for (size_t length = MOST_STRETCH; length > 0; length /= 2) {
            for (size_t first = 0; first + length <= n_tasks; first++) {
                is_better = take_stretch(w, w->floats, first, first + length) || is_better;
                is_better = take_stretch(w, w->integers, first, first + length) || is_better;
            }
        }
    }
}

static enum msc_status add_quicker(struct msc_quick *q, const uint32_t point[]) {
    struct msc_quick_plan *plan = NULL;
    size_t n_tasks = msc_quick__space(q)->n_tasks;
    MSC_TRY(msc_quick__begin_plan(&plan, q, &q->plans[0]));
    memcpy(plan->choices, point, n_tasks * sizeof point[0]);
    plan->is_quicker = true;
    plan->n_float = plan->n_float_beside = 0;
    for (size_t t = 0; t < n_tasks; t++) {
        plan->n_float += point[t] == msc_quick__space(q)->baselines[q->effort->of_float].choices[t];
    }
    q->n += !msc_quick__is_known(q, point);
    return MSC_OK;
}

// Whether such plans are wanted: the target converts weights at load, and the best plan may be
// slower than the float model.
static bool is_wanted(const struct msc_quick *q) {
    const struct msc_target *target = msc_target_find(q->session.entry->target);
    return q->effort->leaves_float && q->options->n_float < 0 && q->predictor && target &&
           target->has_forms && !(q->plans[0].ratio < SURE_RATIO);
}

enum msc_status msc_quick__compute_float(struct msc_quick *q) {
    size_t n_tasks = msc_quick__space(q)->n_tasks;
    const uint32_t *all_float = msc_quick__space(q)->baselines[q->effort->of_float].choices;
    if (!is_wanted(q)) {
        return MSC_OK;
    }
    uint32_t *floats = msc_arena_array(&q->arena, n_tasks + 1, sizeof floats[0]);
    struct walk w = {.q = q, .integers = q->plans[0].choices, .floats = floats};
    w.point = msc_arena_array(&q->arena, n_tasks + 1, sizeof w.point[0]);
    w.before = msc_arena_array(&q->arena, n_tasks + 1, sizeof w.before[0]);
    MSC_TRY(MSC_ALLOCATED(floats && w.point && w.before));
    for (size_t t = 0; t < n_tasks; t++) {
        floats[t] = msc_quick__is_weight(q, t) ? q->plans[0].choices[t] : all_float[t];
    }
    double of_floats = msc_quick__predict_ratio(q, floats);
    bool is_float_quicker = of_floats < q->plans[0].ratio;
    memcpy(w.point, is_float_quicker ? floats : w.integers, n_tasks * sizeof w.point[0]);
    w.ratio = is_float_quicker ? of_floats : q->plans[0].ratio;
    find_quickest(&w, n_tasks);
    MSC_TRY(add_quicker(q, w.point));
    return add_quicker(q, floats);
}
