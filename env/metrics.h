// Metrics of environments with runs of the network. The table (metric_table.c) has one row for each metric,
// with its name, unit, direction and help; an environment lists those of its metrics that it computes from a
// trial's choices. All that deals with metrics goes by these two: the space and its exact costs, outcomes, the
// check of objectives and bounds, and what reports measure again.
//
//     MSC_TRY(msc_metrics_choose(&m, msc_quantize_metrics, host, config)); // before the loss is made
//     MSC_TRY(msc_metrics_build(&space, references, &m, &costing, arena)); // once its tasks are there
//     MSC_TRY(msc_metrics_before(outcome->metrics, &m, env, choices, edits));
//     msc_metrics_after(outcome->metrics, &m, &run);
//
// docs/add-a-metric.md adds a metric step by step.
#ifndef MSC_ENV_METRICS_H
#define MSC_ENV_METRICS_H

#include "env/distill.h"

struct cJSON;
struct msc_env;

// What a metric takes.
enum {
    MSC_METRIC_NEEDS_LABELS = 1 << 0,  // of the samples
    MSC_METRIC_NEEDS_COMMAND = 1 << 2, // env.command
    MSC_METRIC_NEEDS_ASKING = 1 << 1,  // an objective or a bound that names it: it takes time
};

// An exact metric under construction: constant + the sum of its terms, and the float model's.
struct msc_metric_cost {
    struct msc_arena *arena; // for what the terms point to
    struct msc_cost_term *terms;
    size_t n_terms, capacity;
    double constant;
    double reference;
};

struct msc_metric_row {
    struct msc_metric metric; // without a name it ends the table
    bool is_distance;         // from the float model, for which it is 0
    unsigned needs;           // MSC_METRIC_NEEDS_*

    // How it is measured: by one of these, or, if all are NULL, by the environments that list it.
    // Of the results of a run of the network, or as the mean over its samples. Every environment has these
    // metrics. What is no distance is measured of the float model, too.
    double (*of_run)(const struct msc_distill_run *run);
    double (*sample)(const struct msc_sample *s);
    // Exact: the metric of this name, whose row comes before, over that of the float model. Environments
    // that have it list it.
    const char *ratio_of;
};

// One row for each metric.
extern const struct msc_metric_row msc_metric_table[];

#define MSC_METRIC_LATENCY "latency_us"
// The `sample` of accuracy: 1 if the greatest class score is that of the label, else 0.
double msc_metric_is_correct(const struct msc_sample *s);

// A metric that an environment has besides those of runs, and how it computes it: by one function, or by
// none for a ratio.
struct msc_env_metric {
    const char *name; // of a row of the table; NULL ends the list
    // Exact: constant, terms and reference, for a space whose tasks are there; `of` is what
    // msc_metrics_build was given.
    enum msc_status (*cost)(struct msc_metric_cost *out, const void *of);
    // From a trial's choices and edits (NULL: the float model), before it runs.
    enum msc_status (*measure)(double *out, const struct msc_env *env, const uint32_t choices[],
                               const struct msc_edit *const edits[]);
};

// The metric at an index among those that an environment with this list has, or NULL after the last: for
// `metric` of its definition.
const struct msc_metric *msc_metric_at(const struct msc_env_metric list[], size_t index);

// For functions of `cost`: adds scale * product of n_factors factors, by_choice[i] [n_choices] being
// that of tasks[i], and borrowed.
enum msc_status msc_metric_add_term(struct msc_metric_cost *cost, double scale, size_t n_factors,
                                    const uint32_t tasks[], const double *const by_choice[]);

struct msc_metric_chosen {
    const struct msc_metric_row *row;
    const struct msc_env_metric *own; // how the environment computes it; NULL: runs measure it
    // In the space, or -1: the calibration samples lack what it needs, which others may have.
    int index;
    size_t in_run; // with `sample`: which of `sampled` it is
};

// The metrics that a search can have measured.
struct msc_metrics {
    size_t n;
    struct msc_metric_chosen chosen[MSC_MAX_METRICS];
    bool command_is_maximised; // greater numbers of the program are better
    size_t n_sampled;
    struct msc_sample_metric sampled[MSC_MAX_METRICS];
};

// Chooses among the metrics of an environment with this list: all that need no asking, and those that the
// environment's JSON object names. MSC_E_INVALID: a metric that it names needs what is missing.
enum msc_status msc_metrics_choose(struct msc_metrics *out, const struct msc_env_metric list[],
                                   const struct msc_env_host *host, const struct cJSON *config);
// Is the metric of this name among them?
bool msc_metrics_has(const struct msc_metrics *m, const char *name);
// Adds metrics and costs to a space whose tasks are there, and fills references [MSC_MAX_METRICS] by
// the space's metrics: what the float model has; NaN: it is to be measured.
enum msc_status msc_metrics_build(struct msc_space *space, double references[],
                                  const struct msc_metrics *m, const void *of,
                                  struct msc_arena *arena);

// What is measured before a trial with these choices and their edits runs, and after the run, into
// [n_metrics].
enum msc_status msc_metrics_before(double metrics[], const struct msc_metrics *m,
                                   const struct msc_env *env, const uint32_t choices[],
                                   const struct msc_edit *const edits[]);
// False where nothing is measured before.
bool msc_metrics_has_before(const struct msc_metrics *m);
void msc_metrics_after(double metrics[], const struct msc_metrics *m,
                       const struct msc_distill_run *run);
// Adds to a report what a run has measured, by name; and with "float_" before the names what one of
// the float model has, but for distances.
enum msc_status msc_metrics_add(struct cJSON *object, const struct msc_metrics *m,
                                const struct msc_distill_run *run);
enum msc_status msc_metrics_add_float(struct cJSON *object, const struct msc_metrics *m,
                                      const struct msc_distill_run *run);
// True when a run of the float model measures something of the space that is not known without.
bool msc_metrics_need_float(const struct msc_metrics *m);

#endif
