// The table of metrics that environments with runs of the network have, after the functions that its rows
// name. A row says everything about a metric but how an environment computes it from a trial's choices: see
// struct msc_env_metric. docs/add-a-metric.md adds one step by step.
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

// In the order of a space. The first is the objective if a configuration names none.
const struct msc_metric_row msc_metric_table[] = {
    {.metric = {.name = "distill_loss", .unit = "", .help = "how far the outputs move, by `loss`"},
     .is_distance = true,
     .of_run = loss_of_run},
    {.metric = {.name = "accuracy",
                .unit = "",
                .help = "share of samples whose greatest class score is the label; with labels",
                .is_maximised = true},
     .needs = MSC_METRIC_NEEDS_LABELS,
     .sample = msc_metric_is_correct},
    {.metric = {.name = "size_bytes",
                .unit = "bytes",
                .help = "all weights as they are stored: packed bits, scales, zero points and "
                        "floats; of sparse weights, what is not 0 and where",
                .is_exact = true}},
    {.metric = {.name = "size_ratio",
                .unit = "",
                .help = "size_bytes over that of the whole float model",
                .is_exact = true},
     .ratio_of = "size_bytes"},
    {.metric = {.name = "bit_ops",
                .unit = "",
                .help = "multiply-accumulates times the bits of both factors, for one sample",
                .is_exact = true}},
    {.metric = {.name = "bit_ops_ratio",
                .unit = "",
                .help = "bit_ops over that of the whole float model",
                .is_exact = true},
     .ratio_of = "bit_ops"},
    {.metric = {.name = "macs",
                .unit = "",
                .help = "multiply-accumulates for one sample",
                .is_exact = true}},
    {.metric = {.name = "macs_ratio",
                .unit = "",
                .help = "macs over that of the whole model",
                .is_exact = true},
     .ratio_of = "macs"},
    {.metric = {.name = MSC_METRIC_LATENCY,
                .unit = "us",
                .help =
                    "of one run in the target's runtime where it is installed, else by mscgym's "
                    "cpu kernels: by a table that is measured first; only where it is asked for",
                .is_exact = true},
     .needs = MSC_METRIC_NEEDS_ASKING},
    {.metric = {.name = "latency_ratio",
                .unit = "",
                .help = MSC_METRIC_LATENCY " over that of the float model",
                .is_exact = true},
     .needs = MSC_METRIC_NEEDS_ASKING,
     .ratio_of = MSC_METRIC_LATENCY},
    {.metric = {.name = "file_bytes",
                .unit = "bytes",
                .help = "of the exported file without metadata; only where it is asked for"},
     .needs = MSC_METRIC_NEEDS_ASKING},
    {.metric = {.name = "command",
                .unit = "",
                .help = "the number that a program gives, by `command`; only where it is asked for",
                .is_measured = true},
     .needs = MSC_METRIC_NEEDS_ASKING | MSC_METRIC_NEEDS_COMMAND},
    {.metric = {.name = NULL}},
};

_Static_assert(sizeof(msc_metric_table) / sizeof(msc_metric_table[0]) - 1 <= MSC_MAX_METRICS,
               "a space has no room for as many metrics");
