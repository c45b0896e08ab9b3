// Types and functions shared by the files of msc_quick_quantize.
#ifndef MSC_PIPELINE_QUICK_QUICK_INTERNAL_H
#define MSC_PIPELINE_QUICK_QUICK_INTERNAL_H

#include "env/quantize/predict.h"
#include "pipeline/news.h"
#include "pipeline/quick/quick.h"
#include "tools/strategy.h"

// The choices of plans, in the order of the environment.
enum msc_quick_choice {
    MSC_QUICK_NEAREST,
    MSC_QUICK_DESCENT,
    MSC_QUICK_AFFINE,
    MSC_QUICK_MINMAX,
    MSC_QUICK_PERCENTILE,
    MSC_QUICK_FLOAT,
};

// Enough for the pairs of choices, the doublings of float tensors, and improved weights.
#define MSC_QUICK_MOST_PLANS 80

struct msc_quick_plan {
    enum msc_quick_choice weights, activations;
    size_t n_float;                  // tasks left float
    uint32_t *choices;               // [n_tasks] in the arena
    double loss;                     // loss on the held-back samples; +inf: unknown
    double ratio;                    // predicted time relative to the float model; NaN: unknown
    size_t n_improved;               // number of improved weights
    struct msc_strategy *strategy;   // owned: the plan with improved weights, or NULL
    double metrics[MSC_MAX_METRICS]; // in the space's order; NaN: not measured
    cJSON *found; // owned: {"validation"}, later also the results of the runtime; or NULL
};

struct msc_quick {
    struct msc_arena arena;
    const struct msc_quick_options *options;
    struct msc_setup *setup;
    struct msc_session session;
    struct msc_news news;                     // without msc_news_begin: reports only measurements
    struct msc_quantize_predictor *predictor; // NULL: times cannot be predicted
    struct msc_quick_plan *plans; // [n] in the arena, with room for MSC_QUICK_MOST_PLANS
    size_t n;
};

// MSC_E_CANCELLED if a stop was requested.
enum msc_status msc_quick__check_stop(const struct msc_quick *q);

// True if ranges cover all values, values are rounded to nearest, and nothing is float.
static inline bool msc_quick__is_plain(const struct msc_quick_plan *plan) {
    return plan->weights == MSC_QUICK_NEAREST && plan->activations == MSC_QUICK_MINMAX &&
           plan->n_float == 0 && !plan->strategy;
}

static inline const struct msc_space *msc_quick__space(const struct msc_quick *q) {
    return msc_env_space(q->session.env);
}

// config.c: makes a configuration from the options; once the model is loaded, checks that it has
// the tensors that the options name.
enum msc_status msc_quick__make_config(struct msc_config **out,
                                       const struct msc_quick_options *options);
enum msc_status msc_quick__check_names(const struct msc_quick *q);

// find.c: fills `plans`, the best first, with their losses.
enum msc_status msc_quick__find_plans(struct msc_quick *q);

// plans.c
// Begins a new plan with the choices of `like`. The caller adds it to the list by raising q->n.
enum msc_status msc_quick__begin_plan(struct msc_quick_plan **out, struct msc_quick *q,
                                      const struct msc_quick_plan *like);
// Measures the losses, times and costs of the plans from `first` on.
enum msc_status msc_quick__measure_plans(struct msc_quick *q, size_t first);
// The predicted time of a point relative to the float model; NaN: unknown.
double msc_quick__predict_ratio(const struct msc_quick *q, const uint32_t point[]);
// Sorts the best plan first; equal plans keep their order.
void msc_quick__sort_plans(struct msc_quick *q);
// True if a point is already one of the plans.
bool msc_quick__is_known(const struct msc_quick *q, const uint32_t point[]);
// Moves plan i to the front of the list, as the best plan.
void msc_quick__put_first(struct msc_quick *q, size_t i);

// floats.c: adds plans like the best one, with tensors left float.
enum msc_status msc_quick__leave_float(struct msc_quick *q);

// time.c: finds the best of the plans that their float tensors do not slow down, and moves it to
// the front of the list.
enum msc_status msc_quick__pass_slow(struct msc_quick *q);
// True if a plan's float tensors do not slow it down too much. `ratio` is the plan's time relative
// to the float model; `all_bytes` is the relative time of the plan without float tensors. True if a
// time is NaN.
bool msc_quick__is_quick_enough(double ratio, double all_bytes);

// weights.c: adds the best plan again with improved weights, if these lower the loss.
enum msc_status msc_quick__improve_weights(struct msc_quick *q);

#endif
