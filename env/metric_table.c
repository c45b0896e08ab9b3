// The table of metrics for environments that run the network. The functions that its rows name come
// first. A row defines a metric completely, except how an environment computes it from a trial's
// choices: see struct msc_env_metric. docs/add-a-metric.md shows step by step how to add a metric.
#include "env/metrics.h"

#include <stddef.h>

static double loss_of_run(const struct msc_distill_run *run) {
    return run->loss;
}

static int64_t greatest(const float scores[], int64_t n) {
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++) {
        best = scores[i] > scores[best] ? i : best;
    }
    return best;
}

// The share of tokens whose greatest score is at the float model's index.
static double keeps_top1(const struct msc_sample *s) {
    struct msc_sample_tensor t = msc_sample_class_scores(s);
    int64_t n_kept = 0, n = t.shape.axis;
    for (int64_t i = 0; i < t.shape.outer; i++) {
        n_kept += greatest(t.y + i * n, n) == greatest(t.z + i * n, n);
    }
    return (double)n_kept / (double)t.shape.outer;
}

// The mean of -log p(next token), where p is the softmax of the scores. A next token without a
// score counts as one whose p is the smallest normal float.
static double cross_entropy(const struct msc_sample *s) {
    struct msc_sample_tensor t = msc_sample_class_scores(s);
    int64_t n = t.shape.axis, n_next = t.shape.outer - 1;
    double sum = 0;
    for (int64_t i = 0; i < n_next; i++) {
        int64_t next = msc_sample_token(s, i + 1);
        const float *scores = t.z + i * n;
        bool has_score = next >= 0 && next < n;
        sum += has_score ? msc_log_sum_exp(scores, n, 1) - (double)scores[next] : 87.3365447505;
    }
    return n_next > 0 ? sum / (double)n_next : 0;
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
    {.metric = {.name = "top1_kept",
                .unit = "",
                .help = "share of tokens whose greatest score is that of the float model; needs "
                        "labels that are the next tokens",
                .is_maximised = true},
     .needs = MSC_METRIC_NEEDS_NEXT,
     .sample = keeps_top1},
    {.metric = {.name = "cross_entropy",
                .unit = "",
                .help = "mean -log p(next token), whose exponential is the perplexity; needs "
                        "labels that are the next tokens"},
     .needs = MSC_METRIC_NEEDS_NEXT,
     .sample = cross_entropy},
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
