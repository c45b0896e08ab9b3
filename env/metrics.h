// What an environment can measure: one row for each metric, in a table of its own. All that has to do
// with metrics goes by these rows: the space and its costs, outcomes, the check of objectives and
// bounds, what reports measure once more.
//
// To add a metric: write its row there, with the function that it names, and its line in
// docs/quantize.md or docs/prune.md. Nothing else changes. It needs asking, or records made without it
// fit no longer: what is measured unasked is part of every space.
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

    // How it is measured: one of these.
    // Exact: constant, terms and reference, for a space whose tasks are there; `of` is what
    // msc_metrics_build was given.
    enum msc_status (*cost)(struct msc_metric_cost *out, const void *of);
    // Exact: the metric of this name, whose row comes before, over that of the float model.
    const char *ratio_of;
    // From a run of the network: of what each run gives, or as the mean of its samples. What is no
    // distance is measured of the float model, too.
    double (*of_run)(const struct msc_distill_run *run);
    double (*sample)(const struct msc_sample *s);
    // From a trial's choices and edits (NULL: the float model), before it runs.
    enum msc_status (*measure)(double *out, const struct msc_env *env, const uint32_t choices[],
                               const struct msc_edit *const edits[]);
};

// Rows that environments share.
double msc_metric_loss(const struct msc_distill_run *run);     // of_run: the distill loss
double msc_metric_is_correct(const struct msc_sample *sample); // sample: for accuracy

// clang-format off
#define MSC_METRIC_ROWS_OF_RUNS                                                                    \
    {.metric = {.name = "distill_loss", .unit = "", .help = "how far the outputs move, by `loss`"}, \
     .is_distance = true,                                                                          \
     .of_run = msc_metric_loss},                                                                   \
    {.metric = {.name = "accuracy",                                                                \
                .unit = "",                                                                        \
                .help = "share of samples whose greatest class score is the label; with labels",   \
                .is_maximised = true},                                                             \
     .needs = MSC_METRIC_NEEDS_LABELS,                                                             \
     .sample = msc_metric_is_correct}
#define MSC_METRIC_OF_COMMAND                                                                      \
    {                                                                                              \
        .name = "command", .unit = "",                                                             \
        .help = "the number that a program gives, by `command`; only where it is asked for",       \
        .is_measured = true                                                                        \
    }
// clang-format on

// For functions of `cost`: adds scale * product of n_factors factors, by_choice[i] [n_choices] being
// that of tasks[i], and borrowed.
enum msc_status msc_metric_add_term(struct msc_metric_cost *cost, double scale, size_t n_factors,
                                    const uint32_t tasks[], const double *const by_choice[]);

// The metrics that a search can have measured.
struct msc_metrics {
    size_t n;
    const struct msc_metric_row *rows[MSC_MAX_METRICS];
    // Each one's index in the space, or -1: the calibration samples lack what it needs, which
    // others may have.
    int indices[MSC_MAX_METRICS];
    size_t in_run[MSC_MAX_METRICS]; // of those with `sample`: which of `sampled` they are
    bool command_is_maximised;      // greater numbers of the program are better
    size_t n_sampled;
    struct msc_sample_metric sampled[MSC_MAX_METRICS];
};

// Of a table, all that need no asking, and those that the environment's JSON object names.
// MSC_E_INVALID: one that it names needs what is not there.
enum msc_status msc_metrics_choose(struct msc_metrics *out, const struct msc_metric_row table[],
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
