// State and functions shared by the sources of the distill loss: distill.c (creation, reference),
// distill_run.c (runs), distill_compared.c, distill_before.c and distill_outputs.c (which tensors
// are compared), distill_axis.c (their axis of samples).
#ifndef MSC_ENV_DISTILL_INTERNAL_H
#define MSC_ENV_DISTILL_INTERNAL_H

#include "base/alloc.h"
#include "env/distill.h"

#include <string.h>

// One batch of a compared tensor.
struct msc_distill_part {
    int64_t first;               // index in the reference of the batch's first element
    int64_t n;                   // elements of a sample
    int64_t n_pieces;            // contiguous pieces of a sample; 1 if samples are the first axis
    struct msc_loss_shape shape; // of one sample
};

enum { MSC_DISTILL_NO_AXIS = -1 };

// The loss of a run so far, over its leading batches up to the first that is not compared yet.
struct msc_distill_sum {
    double losses; // summed over samples
    size_t n_batches;
    bool is_over; // the run's bound is exceeded
};

struct msc_distill_tensor {
    int32_t tensor;
    const char *name;
    double weight;
    int axis;                    // axis of the samples in a batch; MSC_DISTILL_NO_AXIS: unknown
    double mean_square;          // of the reference, over all elements of all samples
    struct msc_array *reference; // [n_elements] sample after sample
    int64_t n_elements;
    struct msc_distill_part *parts; // [n_batches], since samples may differ in shape
};

struct msc_distill {
    const struct msc_env_host *host;
    const struct msc_dataset *dataset;
    struct msc_distill_options options;
    struct msc_arena arena;
    struct msc_evaluator *evaluator;
    size_t n_compared;
    struct msc_distill_tensor *compared;
    bool is_part;        // tensors before an output are compared instead of the output
    size_t class_scores; // index in `compared`; SIZE_MAX if there are no labels
    int64_t n_samples;
    bool has_reference;
    uint64_t n_references; // references computed or loaded so far: the last one is current
    // The current call:
    size_t first_batch, end_batch;
    struct msc_distill_run *runs;
    struct msc_eval_trial *trials;
    double *terms;     // [n_runs][msc_distill_n_terms(d)], for runs whose `terms` is NULL
    bool *is_compared; // [n_runs][n_batches]
    struct msc_distill_sum *sums; // [n_runs]
    size_t runs_capacity;
    void (*done)(void *payload, size_t run);
    void *payload;
};

struct msc_sample {
    const struct msc_distill *distill;
    const float *const *values;   // [n_compared] tensors of the batch, sample after sample; NULL:
                                  // only the loss is measured, from `squares`
    const double *const *squares; // [n_compared][samples of the batch]; NULL: see `values`
    size_t batch;
    int64_t row;    // index in the batch
    int64_t sample; // index in the dataset
};

// The reference of sample `row` of a batch.
static inline float *msc_distill__reference(const struct msc_distill_tensor *c, size_t batch,
                                            int64_t row) {
    const struct msc_distill_part *p = &c->parts[batch];
    return (float *)msc_array_data(c->reference) + p->first + row * p->n;
}

// Copies a batch of `n_samples` so that each sample is contiguous.
static inline void msc_distill__gather(float to[], const float from[],
                                       const struct msc_distill_part *p, int64_t n_samples) {
    int64_t length = p->n_pieces > 0 ? p->n / p->n_pieces : 0;
    for (int64_t row = 0; row < n_samples; row++) {
        for (int64_t i = 0; i < p->n_pieces; i++) {
            memcpy(to + row * p->n + i * length, from + (i * n_samples + row) * length,
                   (size_t)length * sizeof(float));
        }
    }
}

// distill_axis.c: finds the axis of the samples in each compared tensor. Needs the evaluator.
enum msc_status msc_distill__find_axes(struct msc_distill *d);
// True if batches have several samples, but the compared tensor has no axis for them.
bool msc_distill__lacks_samples(const struct msc_distill *d, size_t index);

// distill_outputs.c: adds a tensor to the compared tensors.
void msc_distill__add_compared(struct msc_distill *d, int32_t tensor, double weight);
// Why an output cannot be part of the loss, or NULL.
const char *msc_distill__reason_to_leave_out(const struct msc_graph *g, int32_t tensor);
// Whether an output is a state: it feeds an input in the next chunk.
bool msc_distill__is_state(const struct msc_distill *d, int32_t tensor);

// distill_before.c: compares the outputs; with takes_before, the tensors before discontinuous
// operators.
enum msc_status msc_distill__compare_before(struct msc_distill *d);

// distill_compared.c: chooses the compared tensors and creates their evaluator. If `other` is not
// NULL, the tensors are those that `other` compares.
enum msc_status msc_distill__compare(struct msc_distill *d, const struct msc_distill *other);
// An evaluator of the tensors wanted [n_compared] of `g` on the loss's samples; *out is owned by
// the caller.
enum msc_status msc_distill__create_evaluator(struct msc_evaluator **out,
                                              const struct msc_distill *d,
                                              const struct msc_graph *g, const int32_t wanted[]);

#endif
