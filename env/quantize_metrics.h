// What the quantize environment can measure: one row for each metric, in the table of
// env/quantize_metrics.c. All that has to do with metrics goes by these rows: the space and its
// costs, outcomes, the check of objectives and bounds, what reports measure once more.
//
// To add a metric: write its row there, with the function that it names, and its line in
// docs/quantize.md. Nothing else changes. It needs asking, or records made without it fit no longer:
// what is measured unasked is part of every space.
#ifndef MSC_ENV_QUANTIZE_METRICS_H
#define MSC_ENV_QUANTIZE_METRICS_H

#include "env/distill.h"
#include "env/quantize_space.h"

struct cJSON;
struct msc_env;

// What a metric takes.
enum {
    MSC_QUANTIZE_NEEDS_LABELS = 1 << 0,  // of the samples
    MSC_QUANTIZE_NEEDS_COMMAND = 1 << 2, // env.command
    MSC_QUANTIZE_NEEDS_ASKING = 1 << 1,  // an objective or a bound that names it: it takes time
};

// An exact metric under construction: constant + the sum of its terms, and the float model's.
struct msc_quantize_cost {
    struct msc_arena *arena; // for what the terms point to
    struct msc_cost_term *terms;
    size_t n_terms, capacity;
    double constant;
    double reference;
};

struct msc_quantize_metric {
    struct msc_metric metric; // without a name it ends the table
    bool is_distance;         // from the float model, for which it is 0
    unsigned needs;           // MSC_QUANTIZE_NEEDS_*

    // How it is measured: one of these.
    // Exact: constant, terms and reference, for a space whose tasks are there.
    enum msc_status (*cost)(struct msc_quantize_cost *out, const struct msc_quantize_inputs *in,
                            const struct msc_quantize_space *s);
    // Exact: the metric of this name, whose row comes before, over that of the float model.
    const char *ratio_of;
    // From a run of the network: of what each run gives, or of its samples one by one. What is no
    // distance is measured of the float model, too.
    double (*of_run)(const struct msc_distill_run *run);
    double (*sample)(const struct msc_sample *s);
    double (*total)(const double samples[], int64_t n); // optional, with `sample`; else their mean
    // From a trial's edits (NULL: the float model), before it runs.
    enum msc_status (*measure)(double *out, const struct msc_env *env,
                               const struct msc_edit *const edits[]);
};

extern const struct msc_quantize_metric msc_quantize_metric_rows[];
// The environment's `metric`.
const struct msc_metric *msc_quantize_metric(size_t index);

// For functions of `cost`: adds scale * product of n_factors factors, by_choice[i] [n_choices] being
// that of tasks[i], and borrowed.
enum msc_status msc_quantize_add_term(struct msc_quantize_cost *cost, double scale,
                                      size_t n_factors, const uint32_t tasks[],
                                      const double *const by_choice[]);

// The metrics that a search can have measured.
struct msc_quantize_metrics {
    size_t n;
    const struct msc_quantize_metric *rows[MSC_MAX_METRICS];
    // Each one's index in the space, or -1: the calibration samples lack what it needs, which
    // others may have.
    int indices[MSC_MAX_METRICS];
    size_t in_run[MSC_MAX_METRICS]; // of those with `sample`: which of `sampled` they are
    bool command_is_maximised;      // greater numbers of the program are better
    size_t n_sampled;
    struct msc_sample_metric sampled[MSC_MAX_METRICS];
};

// All that need no asking, and those that the environment's JSON object names. MSC_E_INVALID: one
// that it names needs what is not there.
enum msc_status msc_quantize_metrics_choose(struct msc_quantize_metrics *out,
                                            const struct msc_env_host *host,
                                            const struct cJSON *config);
// Is the metric of this name among them?
bool msc_quantize_metrics_has(const struct msc_quantize_metrics *m, const char *name);
// Adds metrics, costs and references to a space whose tasks are there.
enum msc_status msc_quantize_metrics_build(struct msc_quantize_space *s,
                                           const struct msc_quantize_inputs *in,
                                           struct msc_arena *arena);

// What is measured before a trial with these edits runs, and after the run, into [n_metrics].
enum msc_status msc_quantize_metrics_before(double metrics[], const struct msc_quantize_metrics *m,
                                            const struct msc_env *env,
                                            const struct msc_edit *const edits[]);
void msc_quantize_metrics_after(double metrics[], const struct msc_quantize_metrics *m,
                                const struct msc_distill_run *run);
// Adds to a report what a run has measured, by name; and with "float_" before the names what one of
// the float model has, but for distances.
enum msc_status msc_quantize_metrics_add(struct cJSON *object, const struct msc_quantize_metrics *m,
                                         const struct msc_distill_run *run);
enum msc_status msc_quantize_metrics_add_float(struct cJSON *object,
                                               const struct msc_quantize_metrics *m,
                                               const struct msc_distill_run *run);
// True when a run of the float model measures something of the space that is not known without.
bool msc_quantize_metrics_need_float(const struct msc_quantize_metrics *m);

#endif
