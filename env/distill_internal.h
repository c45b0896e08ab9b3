// What the distill loss's sources share.
#ifndef MSC_ENV_DISTILL_INTERNAL_H
#define MSC_ENV_DISTILL_INTERNAL_H

#include "base/alloc.h"
#include "env/distill.h"

#include <string.h>

// One batch of a tensor that is compared.
struct msc_distill_part {
    int64_t first;               // element of the reference where the batch begins
    int64_t n;                   // elements of a sample
    int64_t n_pieces;            // that a sample is in, where its axis is not the first; else 1
    struct msc_loss_shape shape; // of a sample
};

enum { MSC_DISTILL_NO_AXIS = -1 };

// What a run has lost so far, over batches that were compared without a gap.
struct msc_distill_sum {
    double losses; // of samples
    size_t n_batches;
    bool is_over; // the run's bound
};

struct msc_distill_tensor {
    int32_t tensor;
    const char *name;
    double weight;
    int axis;           // that has the samples of a batch; MSC_DISTILL_NO_AXIS: none is known
    double mean_square; // of the reference, over all elements of all samples
    struct msc_array *reference; // [n_elements] sample after sample
    int64_t n_elements;
    struct msc_distill_part *parts; // [n_batches] since samples may differ in shape
};

struct msc_distill {
    const struct msc_env_host *host;
    const struct msc_dataset *dataset;
    struct msc_distill_options options;
    struct msc_arena arena;
    struct msc_evaluator *evaluator;
    size_t n_compared;
    struct msc_distill_tensor *compared;
    bool is_part;        // what comes before an output is compared in its place
    size_t class_scores; // index in compared, SIZE_MAX without labels
    int64_t n_samples;
    bool has_reference;
    // Of the call at hand.
    size_t first_batch, end_batch;
    struct msc_distill_run *runs;
    struct msc_eval_trial *trials;
    double *terms;     // [n_runs][msc_distill_n_terms(d)], of runs that have no room of their own
    bool *is_compared; // [n_runs][n_batches]
    struct msc_distill_sum *sums; // [n_runs]
    size_t runs_capacity;
    void (*done)(void *payload, size_t run);
    void *payload;
};

struct msc_sample {
    const struct msc_distill *distill;
    const float *const *values; // [n_compared] of the batch, sample after sample
    size_t batch;
    int64_t row;    // of the batch
    int64_t sample; // of the dataset
};

// The reference of row `row` of a batch.
static inline float *msc_distill__reference(const struct msc_distill_tensor *c, size_t batch,
                                            int64_t row) {
    const struct msc_distill_part *p = &c->parts[batch];
    return (float *)msc_array_data(c->reference) + p->first + row * p->n;
}

// Copies a batch of `n_samples`, sample after sample.
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

// distill_axis.c: finds the axis of each compared tensor that has a batch's samples, once the
// evaluator is there.
enum msc_status msc_distill__find_axes(struct msc_distill *d);
// Has a compared tensor no axis for the samples of a batch that has several?
bool msc_distill__lacks_samples(const struct msc_distill *d, size_t index);

// distill_outputs.c: adds a tensor to what is compared.
void msc_distill__add_compared(struct msc_distill *d, int32_t tensor, double weight);
// Why an output has no part in the loss, or NULL.
const char *msc_distill__reason_to_leave_out(const struct msc_graph *g, int32_t tensor);
// Does an output feed an input in the next chunk?
bool msc_distill__is_state(const struct msc_distill *d, int32_t tensor);

// distill_before.c: compares outputs, or what comes before them.
enum msc_status msc_distill__compare_before(struct msc_distill *d);

// distill_compared.c: chooses what is compared and makes the evaluator of it; what `other` compares unless that is NULL.
enum msc_status msc_distill__compare(struct msc_distill *d, const struct msc_distill *other);

#endif
