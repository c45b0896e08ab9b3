// The distill loss of trials on one dataset: the float model's outputs are kept, and every trial's
// outputs are compared with them, sample by sample. Other metrics of samples are measured beside it.
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
struct msc_sample; // of a run, for a metric

// One tensor of a sample, in C order: what the float model gives, and what the run gives.
struct msc_sample_tensor {
    const float *y, *z; // [n]
    int64_t n;
};

// A metric that is measured sample by sample.
struct msc_sample_metric {
    // Of one sample; the metric is the mean of all. Called from the evaluator's threads, for several
    // samples at once.
    double (*sample)(const struct msc_sample *s);
    bool needs_labels; // not measured where the dataset has none
};

struct msc_distill_options {
    enum msc_loss_kind kind;
    int kl_axis; // of the whole output; negative counts from the end
    bool kl_is_logits;
    const char *const *tensors; // names or aliases of what is compared; n_tensors 0: the outputs
    size_t n_tensors;
    const double *weights;    // [n_tensors], or NULL: equal
    bool takes_before;        // n_tensors 0: in place of outputs that jump, what comes before them
    const char *class_scores; // output whose greatest entry is the class; NULL: the first compared
    const struct msc_sample_metric *metrics; // [n_metrics], borrowed until destroy
    size_t n_metrics;                        // at most MSC_MAX_METRICS
    const struct msc_target *target;         // of the evaluator's slots; may be NULL
};

struct msc_distill_run {
    const struct msc_edit *const *edits; // [n_slots]
    uint64_t noise_seed;                 // 0: none; else inputs of quantisations are perturbed
    // Stopped at the first batch, in the order of the dataset, after which the losses of its
    // samples so far, over the number of all samples, exceed `bound`.
    bool is_bounded;
    double bound;
    // For a run in parts: what its samples add to the sums, of which those of earlier parts are there
    // and those of this one are filled; [msc_distill_n_terms], the caller's. Else NULL.
    double *terms;
    // Results
    enum msc_status status;
    char message[200];
    bool was_stopped;  // at its bound: the whole loss is not below `loss`, which it had come to
    bool is_part;      // batches are left: as well
    int64_t n_samples; // that `loss` is of
    double loss;
    double metrics[MSC_MAX_METRICS]; // [n_metrics]; NaN: not measured, stopped, or a part
    double reuse_ratio;
};

// Everything given is borrowed until destroy. Logs a warning for each output that is left out
// (integers) or that lies behind a discontinuous operator. *out is owned by the caller.
enum msc_status msc_distill_create(struct msc_distill **out, const struct msc_env_host *host,
                                   const struct msc_dataset *dataset,
                                   const struct msc_distill_options *options);
// The same loss on other samples: of the tensors that `other` compares, which must outlive it.
// MSC_E_INVALID where one of them is as long as the data say on these.
enum msc_status msc_distill_create_as(struct msc_distill **out, const struct msc_distill *other,
                                      const struct msc_dataset *dataset);
void msc_distill_destroy(struct msc_distill *d); // accepts NULL

struct msc_evaluator *msc_distill_evaluator(struct msc_distill *d);

// Runs the float model and keeps what it gives.
enum msc_status msc_distill_compute_reference(struct msc_distill *d);
// Appends the kept outputs as "reference/<tensor>" arrays, and takes them from such a list.
// MSC_E_STATE when the list does not fit.
enum msc_status msc_distill_save_reference(const struct msc_distill *d,
                                           struct msc_array_list *list);
enum msc_status msc_distill_load_reference(struct msc_distill *d,
                                           const struct msc_array_list *list);

// Evaluates n runs together. `done` (may be NULL) is told each as it ends, one call at a time.
enum msc_status msc_distill_run(struct msc_distill *d, struct msc_distill_run runs[], size_t n,
                                void (*done)(void *payload, size_t run), void *payload);

// The same over the batches from `first` to before `end` alone, after which a run may go on from
// there by another call, with the same `terms`. In the end it has the results that it has at once.
enum msc_status msc_distill_run_batches(struct msc_distill *d, struct msc_distill_run runs[],
                                        size_t n, size_t first, size_t end,
                                        void (*done)(void *payload, size_t run), void *payload);
// Fills the results of a run whose terms are there: of `n_batches` from the first one on, of those to
// before `end`. Where these are fewer, and no bound is exceeded by then, the run's status and message
// say why, and stay.
enum msc_status msc_distill_fold(struct msc_distill *d, struct msc_distill_run *run,
                                 size_t n_batches, size_t end);
size_t msc_distill_n_batches(const struct msc_distill *d);
size_t msc_distill_n_terms(const struct msc_distill *d); // of a run
// Terms are [n_sums][n_batches]: the sums of the losses, then of each metric, over a batch's samples.
size_t msc_distill_n_sums(const struct msc_distill *d);
// The losses of the samples of the first batches, over the number of all samples, by a run's terms.
double msc_distill_partial_loss(const struct msc_distill *d, const double terms[],
                                size_t n_batches);

// Adds what is compared of a run with these edits (NULL: of the float model), by name, with a row for
// each sample. MSC_E_UNSUPPORTED where samples differ in shape.
enum msc_status msc_distill_outputs(struct msc_distill *d, const struct msc_edit *const edits[],
                                    struct msc_array_list *list);

// Is a compared tensor the same for all samples, by `same`? The reference is there.
bool msc_distill_is_same(const struct msc_distill *d, size_t index,
                         bool (*same)(const float x[], const float y[], int64_t n));
// Is what comes before an output compared in its place?
bool msc_distill_is_part(const struct msc_distill *d);
// What is compared: as many tensors, by their names in the model.
size_t msc_distill_n_compared(const struct msc_distill *d);
const char *msc_distill_compared_name(const struct msc_distill *d, size_t index);
// Fills the results of a run that was computed elsewhere: outputs [n_compared] float32, sample after
// sample of the dataset. MSC_E_INVALID where one has another number of elements.
enum msc_status msc_distill_judge(struct msc_distill *d, struct msc_distill_run *run,
                                  const struct msc_array *const outputs[]);

// What a metric sees of a sample: the tensors that the loss compares, that of the class scores among
// them, and the label. The last two only where the dataset has labels.
size_t msc_sample_n_tensors(const struct msc_sample *s);
struct msc_sample_tensor msc_sample_tensor(const struct msc_sample *s, size_t index);
struct msc_sample_tensor msc_sample_class_scores(const struct msc_sample *s);
int64_t msc_sample_label(const struct msc_sample *s);

MSC_PUBLIC_END

#endif
