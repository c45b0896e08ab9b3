// The table of metrics for environments that run the network. The functions that its rows name come
// first. A row defines a metric completely, except how an environment computes it from a trial's
// choices: see struct msc_env_metric. docs/add-a-metric.md shows step by step how to add a metric.
#include "env/metrics.h"

#include <stddef.h>

static double loss_of_run(const struct msc_distill_run *run) {
    return run->loss;
}

double msc_metric_is_correct(const struct msc_sample *s) {
    struct msc_sample_tensor scores = msc_sample_class_scores(s);
    int64_t best = 0;
    for (int64_t i = 1; i < scores.n; i++) {
        best = scores.z[i] > scores.z[best] ? i : best;
    }
    return best == msc_sample_label(s);
}

// In the order of a space's metrics. The first one is the default objective.
const struct msc_metric_row msc_metric_table[] = {
    {.metric = {.name = "distill_loss",
                .unit = "",
                .help = "distance of the outputs from the float model's, by `loss`"},
     .is_distance = true,
     .of_run = loss_of_run},
    {.metric = {.name = "accuracy",
                .unit = "",
                .help =
                    "fraction of samples whose class of greatest score is the label; needs labels",
                .is_maximised = true},
     .needs = MSC_METRIC_NEEDS_LABELS,
     .sample = msc_metric_is_correct},
    {.metric = {.name = "size_bytes",
                .unit = "bytes",
                .help = "size of all weights as stored: packed integers, scales, zero points and "
                        "floats; for sparse weights, nonzero values and their positions",
                .is_exact = true}},
    {.metric = {.name = "size_ratio",
                .unit = "",
                .help = "size_bytes relative to the whole float model",
                .is_exact = true},
     .ratio_of = "size_bytes"},
    {.metric = {.name = "bit_ops",
                .unit = "",
                .help = "multiply-accumulates for one sample, each times the bits of both factors",
                .is_exact = true}},
    {.metric = {.name = "bit_ops_ratio",
                .unit = "",
                .help = "bit_ops relative to the whole float model",
                .is_exact = true},
     .ratio_of = "bit_ops"},
    {.metric = {.name = "macs",
                .unit = "",
                .help = "multiply-accumulates for one sample",
                .is_exact = true}},
    {.metric = {.name = "macs_ratio",
                .unit = "",
                .help = "macs relative to the whole model",
                .is_exact = true},
     .ratio_of = "macs"},
    {.metric = {.name = MSC_METRIC_LATENCY,
                .unit = "us",
                .help = "time of one run in the target's runtime if it is installed, else by "
                        "mscgym's cpu kernels; from a table that is measured before the search if "
                        "an objective or bound names the metric",
                .is_exact = true},
     .needs = MSC_METRIC_NEEDS_ASKING},
    {.metric = {.name = "latency_ratio",
                .unit = "",
                .help = MSC_METRIC_LATENCY " relative to the float model",
                .is_exact = true},
     .needs = MSC_METRIC_NEEDS_ASKING,
     .ratio_of = MSC_METRIC_LATENCY},
    {.metric = {.name = "file_bytes",
                .unit = "bytes",
                .help = "size of the exported file without metadata; measured only if an objective "
                        "or bound names it"},
     .needs = MSC_METRIC_NEEDS_ASKING},
    {.metric = {.name = "command",
                .unit = "",
                .help = "number given by the program `command`; measured only if an objective or "
                        "bound names it",
                .is_measured = true},
     .needs = MSC_METRIC_NEEDS_ASKING | MSC_METRIC_NEEDS_COMMAND},
    {.metric = {.name = NULL}},
};

_Static_assert(sizeof(msc_metric_table) / sizeof(msc_metric_table[0]) - 1 <= MSC_MAX_METRICS,
               "a space cannot hold all metrics: raise MSC_MAX_METRICS");
