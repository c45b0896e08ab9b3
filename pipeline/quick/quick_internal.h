// What the files of msc_quick_quantize share.
#ifndef MSC_PIPELINE_QUICK_QUICK_INTERNAL_H
#define MSC_PIPELINE_QUICK_QUICK_INTERNAL_H

#include "env/quantize/predict.h"
#include "pipeline/news.h"
#include "pipeline/quick/quick.h"
#include "tools/strategy.h"

// The choices that plans are made of, in the order of the environment.
enum msc_quick_choice {
    MSC_QUICK_NEAREST,
    MSC_QUICK_DESCENT,
    MSC_QUICK_AFFINE,
    MSC_QUICK_MINMAX,
    MSC_QUICK_PERCENTILE,
    MSC_QUICK_FLOAT,
};

// Pairs of choices, doublings of what is left float, better weights.
#define MSC_QUICK_MOST_PLANS 80

struct msc_quick_plan {
    enum msc_quick_choice weights, activations;
    size_t n_float;                // tasks that are left alone
    uint32_t *choices;             // [n_tasks] in the arena
    double loss;                   // on the samples held back; +inf: not known
    double ratio;                  // of its time to the float model's, as predicted; NaN: not known
    size_t n_improved;             // weights
    struct msc_strategy *strategy; // owned: with better weights than those of its choices, or NULL
    double metrics[MSC_MAX_METRICS]; // by the space's; NaN: not measured
    cJSON *found; // owned: {"validation"}, then what the runtime makes of it; or NULL
};

struct msc_quick {
    struct msc_arena arena;
    const struct msc_quick_options *options;
    struct msc_setup *setup;
    struct msc_session session;
    struct msc_news news;                     // never begun: only tells what is measured
    struct msc_quantize_predictor *predictor; // NULL: nothing is known of times
    struct msc_quick_plan *plans; // [n] in the arena, with room for MSC_QUICK_MOST_PLANS
    size_t n;
};

// MSC_E_CANCELLED once somebody has asked to stop.
enum msc_status msc_quick__check_stop(const struct msc_quick *q);

// Ranges from the least to the greatest value, rounded to nearest, and nothing float.
static inline bool msc_quick__is_plain(const struct msc_quick_plan *plan) {
    return plan->weights == MSC_QUICK_NEAREST && plan->activations == MSC_QUICK_MINMAX &&
           plan->n_float == 0 && !plan->strategy;
}

static inline const struct msc_space *msc_quick__space(const struct msc_quick *q) {
    return msc_env_space(q->session.env);
}

// config.c: the configuration that the options say; and whether the model has the tensors that
// they name, once it is loaded.
enum msc_status msc_quick__make_config(struct msc_config **out,
                                       const struct msc_quick_options *options);
enum msc_status msc_quick__check_names(const struct msc_quick *q);

// find.c: fills `plans`, the best first, with their losses.
enum msc_status msc_quick__find_plans(struct msc_quick *q);

// plans.c
// A plan like another one, not counted yet.
enum msc_status msc_quick__begin_plan(struct msc_quick_plan **out, struct msc_quick *q,
                                      const struct msc_quick_plan *like);
// The losses, times and costs of the plans from `first` on.
enum msc_status msc_quick__measure_plans(struct msc_quick *q, size_t first);
// The predicted time of a point, relative to the float model; NaN: not known.
double msc_quick__predict_ratio(const struct msc_quick *q, const uint32_t point[]);
// Puts the best first; equal plans keep their order.
void msc_quick__sort_plans(struct msc_quick *q);
// Is a point one of the plans already?
bool msc_quick__is_known(const struct msc_quick *q, const uint32_t point[]);
// Makes plan i the best one.
void msc_quick__put_first(struct msc_quick *q, size_t i);

// floats.c: adds plans like the best one, with tensors left float.
enum msc_status msc_quick__leave_float(struct msc_quick *q);

// time.c: makes that plan the best which is the first that is not slowed down by its floats.
enum msc_status msc_quick__pass_slow(struct msc_quick *q);
// Is a ratio to the float model's time such that floats may stay, beside the ratio without them? NaN is.
bool msc_quick__is_quick_enough(double ratio, double all_bytes);

// weights.c: adds the best plan once more, with better weights, if these lose less.
enum msc_status msc_quick__improve_weights(struct msc_quick *q);

#endif
