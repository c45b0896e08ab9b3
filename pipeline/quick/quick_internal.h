// Types and functions shared by the files of msc_quick_quantize.
#ifndef MSC_PIPELINE_QUICK_QUICK_INTERNAL_H
#define MSC_PIPELINE_QUICK_QUICK_INTERNAL_H

#include "env/quantize/predict.h"
#include "pipeline/news.h"
#include "pipeline/quick/quick.h"
#include "tools/strategy.h"

#define MSC_QUICK_MOST_TRIES 4
#define MSC_QUICK_NO_CHOICE SIZE_MAX

// What an effort does (effort.c). Choices are indices of `choices`.
struct msc_quick_effort {
    const char *name;
    const char *choices; // a JSON list, as in a configuration
    const char *moments; // a JSON object, as in a configuration; NULL: the default
    size_t of_float;     // the choice that leaves a tensor float
    // The choices of the plain plan: ranges of all values, rounded to nearest.
    // MSC_QUICK_NO_CHOICE: it is not measured.
    size_t plain_weights, plain_activations;
    // Tried for all activations, together with the first choice of weights; then the others are
    // tried for all weights, together with the best of these.
    size_t activations[MSC_QUICK_MOST_TRIES], n_activations;
    size_t weights[MSC_QUICK_MOST_TRIES], n_weights;
    int64_t n_gain_samples;                  // for the loss that each tensor causes at 8 bits
    bool leaves_float;                       // even if no number of float tensors is asked for
    bool tries_dynamic;                      // activations quantised dynamically
    bool improves;                           // weights of the best plan, by the stage `distill`
    double improved_ridge;                   // the only ridge that the stage tries
    int64_t improved_rows, improved_columns; // limits of the stage (env/quantize/distill.h)
    double improved_of_column;               // likewise
};

// Enough for the pairs of choices, the doublings of float tensors, and improved weights.
#define MSC_QUICK_MOST_PLANS 80

struct msc_quick_plan {
    size_t weights, activations; // choices
    size_t n_float;              // tasks left float
    // If activations are dynamic, those that cannot be may be float: their number, part of n_float.
    size_t n_float_beside;
    bool is_dynamic;                 // some activations are quantised dynamically
    bool is_quicker;                 // activations are float to save time (quicker.c)
    uint32_t *choices;               // [n_tasks] in the arena
    double loss;                     // loss on the held-back samples; +inf: unknown
    double ratio;                    // predicted time relative to the float model; NaN: unknown
    size_t n_improved;               // number of improved weights
    struct msc_strategy *strategy;   // owned: the plan with improved weights, or NULL
    double metrics[MSC_MAX_METRICS]; // in the space's order; NaN: not measured
    cJSON *found; // owned: {"validation"}, later also the results of the runtime; or NULL
};

// Stages, in the order of the work.
enum msc_quick_stage {
    MSC_QUICK_PREPARE, // ranges and rounded weights of all choices
    MSC_QUICK_PLANS,   // plans of one choice each for weights and activations
    MSC_QUICK_GAINS,   // what each tensor gains if it is left float
    MSC_QUICK_FLOATS,  // plans with float tensors
    MSC_QUICK_IMPROVE, // better weights
    MSC_QUICK_N_STAGES
};

struct msc_quick {
    struct msc_arena arena;
    const struct msc_quick_options *options;
    const struct msc_quick_effort *effort;
    size_t dynamic; // choice of dynamic activations; MSC_QUICK_NO_CHOICE: it is not tried
    struct msc_setup *setup;
    size_t n_rescaled; // activations whose channels were rescaled
    struct msc_session session;
    struct msc_news news;          // without msc_news_begin: reports only measurements
    struct msc_delivery *delivery; // opened when first needed
    cJSON *of_float;               // owned: what the runtime measured of the float model, or NULL
    struct msc_quantize_predictor *predictor; // NULL: times cannot be predicted
    struct msc_quick_plan *plans; // [n] in the arena, with room for MSC_QUICK_MOST_PLANS
    size_t n;
    double began_s; // when the first stage began; 0: not yet
};

// MSC_E_CANCELLED if a stop was requested.
enum msc_status msc_quick__check_stop(const struct msc_quick *q);

// True if ranges cover all values, values are rounded to nearest, and nothing is float.
static inline bool msc_quick__is_plain(const struct msc_quick *q,
                                       const struct msc_quick_plan *plan) {
    return plan->weights == q->effort->plain_weights &&
           plan->activations == q->effort->plain_activations && plan->n_float == 0 &&
           !plan->strategy;
}

// Number of tensors that a plan leaves float to lower the loss.
static inline size_t msc_quick__n_left(const struct msc_quick_plan *plan) {
    return plan->n_float - plan->n_float_beside;
}

static inline const struct msc_space *msc_quick__space(const struct msc_quick *q) {
    return msc_env_space(q->session.env);
}

// find.c: true if a task is of weights.
bool msc_quick__is_weight(const struct msc_quick *q, size_t task);

// dynamic.c: plans with activations that are quantised dynamically; nothing is added if the model
// has no such activations, or the effort or the target does without them.
// True if a task can be quantised dynamically.
bool msc_quick__takes_dynamic(const struct msc_quick *q, size_t task);
// Adds plans like the best one, in which the activations that can be are dynamic, and the others
// are as in the best plan or float.
enum msc_status msc_quick__add_dynamic(struct msc_quick *q);
// Adds a plan like the best one in which some activations change between dynamic and static,
// where that lowers the loss.
enum msc_status msc_quick__mix_dynamic(struct msc_quick *q);

// plans.c: the plan with plain weights and activations if it is not the best and has a loss, or
// NULL.
struct msc_quick_plan *msc_quick__find_plain(const struct msc_quick *q);

// floats.c: losses of points on the few samples that are enough to rank tensors; points[0] is the
// best plan. `is_told`: the progress is that of the stage GAINS.
enum msc_status msc_quick__measure_some(double losses[], struct msc_quick *q,
                                        const uint32_t *const points[], size_t n, bool is_told);

// effort.c: the effort of a name, or the default one for NULL. MSC_E_INVALID: there is none.
enum msc_status msc_quick__find_effort(const struct msc_quick_effort **out, const char *name);

// config.c: makes a configuration from the options; once the model is loaded, checks that it has
// the tensors that the options name.
enum msc_status msc_quick__make_config(struct msc_config **out,
                                       const struct msc_quick_options *options,
                                       const struct msc_quick_effort *effort);
enum msc_status msc_quick__check_names(const struct msc_quick *q);
// config.c: if the options name neither a loss nor tensors, and the model's first output is scores
// of tokens, sets the loss `kl` of this output.
enum msc_status msc_quick__choose_loss(const struct msc_quick *q);
// config.c: true if the configuration has a choice of dynamic activations, after those of the
// effort: the effort tries them and the target takes them.
bool msc_quick__tries_dynamic(const struct msc_quick_options *options,
                              const struct msc_quick_effort *effort);

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

// progress.c: tells the caller's callback that n_done of n parts of a stage are done, and the time
// left. n 0: the parts are not counted.
void msc_quick__tell(struct msc_quick *q, enum msc_quick_stage stage, size_t n_done, size_t n);
// The same for a step of the stage PREPARE. `payload` is a msc_quick.
void msc_quick__tell_preparing(void *payload, const char *what, double part);

// floats.c: the most tasks, of n_tasks, that may be left float.
size_t msc_quick__most_float(const struct msc_quick *q, size_t n_tasks);
// Adds plans like the best one, with tensors left float.
enum msc_status msc_quick__leave_float(struct msc_quick *q);

// quicker.c: if the best plan may be slower than the float model, adds plans whose activations are
// float where integers do not save time. Their weights are bytes like those of the best plan.
enum msc_status msc_quick__compute_float(struct msc_quick *q);

// time.c: opens `delivery` unless it is open. Closes it; also if it is not open.
enum msc_status msc_quick__open_delivery(struct msc_quick *q);
void msc_quick__close_delivery(struct msc_quick *q);

// time.c: finds the best of the plans that their float tensors do not slow down, or a quicker one
// if that is slower than the float model, and moves it to the front of the list.
enum msc_status msc_quick__pass_slow(struct msc_quick *q);
// True if a plan's float tensors do not slow it down too much. `ratio` is the plan's time relative
// to the float model; `all_bytes` is the relative time of the plan without float tensors. True if a
// time is NaN.
bool msc_quick__is_quick_enough(double ratio, double all_bytes);

// weights.c: adds the best plan again with improved weights, if these lower the loss.
enum msc_status msc_quick__improve_weights(struct msc_quick *q);

#endif
