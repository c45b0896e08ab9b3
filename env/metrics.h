// Metrics of environments that run the network. The table (metric_table.c) has one row for each
// metric, with its name, unit, direction and help. Each environment has a list of the metrics that
// it computes itself from a trial's choices. Spaces, exact costs, outcomes, checks of objectives
// and bounds, and reports all follow from the table and this list.
//
//     MSC_TRY(msc_metrics_choose(&m, msc_quantize_metrics, host, config)); // before the loss
//     MSC_TRY(msc_metrics_build(&space, references, &m, &costing, arena)); // after its tasks
//     MSC_TRY(msc_metrics_before(outcome->metrics, &m, env, choices, edits));
//     msc_metrics_after(outcome->metrics, &m, &run);
//
// docs/add-a-metric.md shows step by step how to add a metric.
#ifndef MSC_ENV_METRICS_H
#define MSC_ENV_METRICS_H

#include "env/distill.h"

struct cJSON;
struct msc_env;

// Requirements of a metric.
enum {
    MSC_METRIC_NEEDS_LABELS = 1 << 0,  // labels of the samples
    MSC_METRIC_NEEDS_COMMAND = 1 << 2, // env.command
    MSC_METRIC_NEEDS_ASKING = 1 << 1,  // measured only if an objective or a bound names it
    MSC_METRIC_NEEDS_NEXT = 1 << 3,    // labels that are the next tokens
};

// An exact metric under construction: constant + the sum of its terms, and the float model's value.
struct msc_metric_cost {
    struct msc_arena *arena; // memory of the terms
    struct msc_cost_term *terms;
    size_t n_terms, capacity;
    double constant;
    double reference;
};

struct msc_metric_row {
    struct msc_metric metric; // a row without a name ends the table
    bool is_distance;         // a distance from the float model; 0 for the float model itself
    unsigned needs;           // MSC_METRIC_NEEDS_*

    // At most one of `of_run`, `sample` and `ratio_of` is set. If none is, environments that list
    // the metric compute it. `of_run` takes the metric from the results of a run; `sample` computes
    // the value of one sample; the metric is the mean over all samples. Every environment that runs
    // the network has all metrics with `of_run` or `sample`. These metrics are also measured for
    // the float model, except distances.
    double (*of_run)(const struct msc_distill_run *run);
    double (*sample)(const struct msc_sample *s);
    // Name of an exact metric in an earlier row. This metric is that metric divided by its value
    // for the float model, and therefore exact, too. Environments that have this metric list it.
    const char *ratio_of;
};

// One row for each metric.
extern const struct msc_metric_row msc_metric_table[];

#define MSC_METRIC_LATENCY "latency_us"
// The `sample` of accuracy: 1 if the greatest class score is at the label's index, else 0.
double msc_metric_is_correct(const struct msc_sample *s);

// A metric that an environment computes itself. Either `cost` or `measure` is set; for a ratio,
// neither is.
struct msc_env_metric {
    const char *name; // of a row of the table; NULL ends the list
    // For an exact metric: sets its constant, terms and reference. Called when the space's tasks
    // are known. `of` is the argument of msc_metrics_build.
    enum msc_status (*cost)(struct msc_metric_cost *out, const void *of);
    // Measures the metric from a trial's choices and edits (NULL: the float model) before the trial
    // runs.
    enum msc_status (*measure)(double *out, const struct msc_env *env, const uint32_t choices[],
                               const struct msc_edit *const edits[]);
};

// Implements the function `metric` of a definition: returns the index-th metric of an environment
// with this list, or NULL after the last.
const struct msc_metric *msc_metric_at(const struct msc_env_metric list[], size_t index);

// For `cost` functions: adds scale * product of n_factors factors. `by_choice[i]` [n_choices],
// borrowed, has the factor for each choice of `tasks[i]`.
enum msc_status msc_metric_add_term(struct msc_metric_cost *cost, double scale, size_t n_factors,
                                    const uint32_t tasks[], const double *const by_choice[]);

struct msc_metric_chosen {
    const struct msc_metric_row *row;
    const struct msc_env_metric *own; // computed by the environment; NULL: measured by runs
    // Index in the space; -1: the calibration samples lack labels, but validation samples may have
    // them.
    int index;
    size_t in_run; // if the metric has a `sample` function: its index in `sampled`
};

// The metrics that a search measures.
struct msc_metrics {
    size_t n;
    struct msc_metric_chosen chosen[MSC_MAX_METRICS];
    bool command_is_maximised; // whether greater values of the metric `command` are better
    size_t n_sampled;
    struct msc_sample_metric sampled[MSC_MAX_METRICS];
};

// Chooses the metrics of a search, for an environment with this list: all metrics without
// MSC_METRIC_NEEDS_ASKING, and those that an objective or a bound in its JSON object names.
// MSC_E_INVALID: a requirement of a named metric is not met.
enum msc_status msc_metrics_choose(struct msc_metrics *out, const struct msc_env_metric list[],
                                   const struct msc_env_host *host, const struct cJSON *config);
// Whether a metric was chosen.
bool msc_metrics_has(const struct msc_metrics *m, const char *name);
// Adds metrics and costs to a space whose tasks are complete. Fills references [MSC_MAX_METRICS],
// by index of metric, with the float model's values; NaN: the value must be measured.
enum msc_status msc_metrics_build(struct msc_space *space, double references[],
                                  const struct msc_metrics *m, const void *of,
                                  struct msc_arena *arena);

// msc_metrics_before fills the metrics [n_metrics] that are measured before a trial with these
// choices and edits runs. msc_metrics_after fills those measured by the run.
enum msc_status msc_metrics_before(double metrics[], const struct msc_metrics *m,
                                   const struct msc_env *env, const uint32_t choices[],
                                   const struct msc_edit *const edits[]);
// Whether any metric is measured before a trial runs.
bool msc_metrics_has_before(const struct msc_metrics *m);
void msc_metrics_after(double metrics[], const struct msc_metrics *m,
                       const struct msc_distill_run *run);
// msc_metrics_add adds the metrics of a run to a report by name. msc_metrics_add_float adds the
// metrics of a run of the float model, except distances, and puts "float_" before each name.
enum msc_status msc_metrics_add(struct cJSON *object, const struct msc_metrics *m,
                                const struct msc_distill_run *run);
enum msc_status msc_metrics_add_float(struct cJSON *object, const struct msc_metrics *m,
                                      const struct msc_distill_run *run);
// Whether a metric of the space needs a run of the float model for its reference.
bool msc_metrics_need_float(const struct msc_metrics *m);

#endif
