// The distill loss of trials on one dataset: the float model's outputs are kept as reference, and
// every trial's outputs are compared with them sample by sample. Other metrics that are means over
// samples are measured in the same runs.
//
//     struct msc_distill_options o = {.kind = MSC_LOSS_MSE};
//     MSC_TRY(msc_distill_create(&d, host, dataset, &o));
//     MSC_TRY(msc_distill_compute_reference(d));
//     MSC_TRY(msc_distill_run(d, runs, n, done, payload));
#ifndef MSC_ENV_DISTILL_H
#define MSC_ENV_DISTILL_H

#include "data/npy.h"
#include "env/api/env.h"
#include "env/loss.h"
#include "kernels/engine/evaluator.h"

MSC_PUBLIC_BEGIN

struct msc_distill;
struct msc_sample; // one sample of a run, for a metric

// One tensor of a sample, in C order: `y` from the float model and `z` from the run.
struct msc_sample_tensor {
    const float *y, *z; // [n]
    int64_t n;
    struct msc_loss_shape shape; // by the axis of the loss `kl`
};

// A metric that is measured sample by sample.
struct msc_sample_metric {
    // The value of one sample; the metric is the mean over all samples. Called from the evaluator's
    // threads, for several samples at the same time.
    double (*sample)(const struct msc_sample *s);
    bool needs_labels; // not measured if the dataset lacks labels
    bool needs_next;   // not measured if the labels are not the next tokens
    bool has_drop;     // also measures the float model's value less the run's, sample by sample
};

// By how much a metric of samples is less than in the float model, on the same samples. Let d be
// the float model's value of a sample less the run's, over n samples. `mean` is the mean of d, and
// `standard_error` is sqrt(s2 / n), where s2 is the variance of d with the divisor n - 1. Both
// models run on the same samples, so most of d is 0 and the error is smaller than that of the
// difference of two independent means (Agresti, Categorical Data Analysis, 3rd ed. 2013, chapter
// 11: matched pairs).
struct msc_sample_drop {
    double mean;
    double standard_error; // NaN: less than two samples
};

struct msc_distill_options {
    enum msc_loss_kind kind;
    int kl_axis; // axis of the whole output for kl; if negative, counted from the end
    bool kl_is_logits;
    // names or aliases of compared tensors; if n_tensors is 0, the outputs are compared
    const char *const *tensors;
    size_t n_tensors;
    const double *weights; // [n_tensors], or NULL: equal
    // If n_tensors is 0: compares the tensors before discontinuous operators, not the outputs after
    // them.
    bool takes_before;
    // output whose greatest entry is the class; NULL: the first compared tensor
    const char *class_scores;
    const struct msc_sample_metric *metrics; // [n_metrics], borrowed until destroy
    size_t n_metrics;                        // at most MSC_MAX_METRICS
    const struct msc_target *target;         // defines the evaluator's slots; may be NULL
};

struct msc_distill_run {
    const struct msc_edit *const *edits; // [n_slots]
    uint64_t noise_seed;                 // for perturbing the inputs of quantisations; 0: none
    // Whether the run stops at `bound`. The loss of the samples so far is summed in the order of
    // the dataset and divided by the number of all samples. The run stops after the first batch at
    // which this value exceeds `bound`.
    bool is_bounded;
    double bound;
    // For a run in parts: contributions of its batches to the sums, [msc_distill_n_terms], owned by
    // the caller. Earlier parts have filled the terms of their batches; this part fills its own.
    // NULL if the run is not in parts.
    double *terms;
    // Results
    enum msc_status status;
    char message[200];
    bool was_stopped;  // stopped at its bound: `loss` is a lower bound of the full loss
    bool is_part;      // not all batches were run: `loss` is a lower bound
    int64_t n_samples; // samples that `loss` includes
    double loss;
    // [n_metrics]; NaN if not measured, or if the run was stopped or is a part
    double metrics[MSC_MAX_METRICS];
    struct msc_sample_drop drops[MSC_MAX_METRICS]; // [n_metrics]; NaN where metrics are, or unasked
    double reuse_ratio;
};

// All arguments are borrowed until destroy. Logs a warning for each output that is not compared
// (integers) or that follows a discontinuous operator. *out is owned by the caller.
enum msc_status msc_distill_create(struct msc_distill **out, const struct msc_env_host *host,
                                   const struct msc_dataset *dataset,
                                   const struct msc_distill_options *options);
// Creates a loss that compares the same tensors as `other`, but on other samples. `other` must
// outlive the new loss. MSC_E_INVALID if the length of a compared tensor depends on the data of
// these samples.
enum msc_status msc_distill_create_as(struct msc_distill **out, const struct msc_distill *other,
                                      const struct msc_dataset *dataset);
void msc_distill_destroy(struct msc_distill *d); // accepts NULL

struct msc_evaluator *msc_distill_evaluator(struct msc_distill *d);

// Runs the float model and keeps its outputs as reference. A wide graph (graph/wide.h) is run in
// the model's own types.
enum msc_status msc_distill_compute_reference(struct msc_distill *d);
// Appends the reference as "reference/<tensor>" arrays, and loads it from such a list. MSC_E_STATE
// if the list does not match the compared tensors and the samples.
enum msc_status msc_distill_save_reference(const struct msc_distill *d,
                                           struct msc_array_list *list);
enum msc_status msc_distill_load_reference(struct msc_distill *d,
                                           const struct msc_array_list *list);

// Evaluates n runs together. `done` (may be NULL) is called when a run ends, one call at a time.
enum msc_status msc_distill_run(struct msc_distill *d, struct msc_distill_run runs[], size_t n,
                                void (*done)(void *payload, size_t run), void *payload);

// Like msc_distill_run, but only over batches first ... end - 1. Another call with the same `terms`
// can continue a run from `end`. The final results are the same as those of msc_distill_run.
enum msc_status msc_distill_run_batches(struct msc_distill *d, struct msc_distill_run runs[],
                                        size_t n, size_t first, size_t end,
                                        void (*done)(void *payload, size_t run), void *payload);
// Fills the results of a run from the terms of its first `n_batches` batches, as if batches up to
// `end` had been run. If n_batches is less than `end` and no bound is exceeded, the caller must
// have set the run's status and message to the reason, and the call keeps both.
enum msc_status msc_distill_fold(struct msc_distill *d, struct msc_distill_run *run,
                                 size_t n_batches, size_t end);
size_t msc_distill_n_batches(const struct msc_distill *d);
size_t msc_distill_n_terms(const struct msc_distill *d); // number of terms of a run
// Terms are [n_sums][n_batches]: the sum over a batch's samples of the loss, then of each metric,
// then, for each metric with a drop, of the drop and of its square.
size_t msc_distill_n_sums(const struct msc_distill *d);
// The summed loss of the first batches divided by the number of all samples, from a run's terms.
double msc_distill_partial_loss(const struct msc_distill *d, const double terms[],
                                size_t n_batches);

// Runs the model with these edits (NULL: the float model) and adds each compared tensor by name,
// with a row for each sample. MSC_E_UNSUPPORTED if samples differ in shape.
enum msc_status msc_distill_outputs(struct msc_distill *d, const struct msc_edit *const edits[],
                                    struct msc_array_list *list);

// Whether `same` holds between the first sample and every other sample, for the reference values of
// a compared tensor. Needs the reference.
bool msc_distill_is_same(const struct msc_distill *d, size_t index,
                         bool (*same)(const float x[], const float y[], int64_t n));
// Whether tensors before an output are compared in place of the output.
bool msc_distill_is_part(const struct msc_distill *d);
// The compared tensors: their number, and their names in the model.
size_t msc_distill_n_compared(const struct msc_distill *d);
const char *msc_distill_compared_name(const struct msc_distill *d, size_t index);
// Fills the results of a run that was computed elsewhere. `outputs` [n_compared] are float32, with
// the samples in the order of the dataset. MSC_E_INVALID if an output does not have the expected
// number of elements.
enum msc_status msc_distill_judge(struct msc_distill *d, struct msc_distill_run *run,
                                  const struct msc_array *const outputs[]);

// A sample as seen by a metric: its compared tensors, which of them contains the class scores, and
// its label. Class scores are available only if the dataset has labels, or if the labels are the
// next tokens.
size_t msc_sample_n_tensors(const struct msc_sample *s);
struct msc_sample_tensor msc_sample_tensor(const struct msc_sample *s, size_t index);
struct msc_sample_tensor msc_sample_class_scores(const struct msc_sample *s);
int64_t msc_sample_label(const struct msc_sample *s);
// If labels are the next tokens: the id at a position of the sample. The class scores have a row
// for each position, along the axis of the loss `kl`.
int64_t msc_sample_token(const struct msc_sample *s, int64_t position);

MSC_PUBLIC_END

#endif
