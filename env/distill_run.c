// Runs and their losses, sample by sample.
#include "env/distill.h"

#include "base/alloc.h"
#include "env/distill_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int64_t first_sample(const struct msc_distill *d, size_t batch) {
    return (int64_t)batch * msc_dataset_batch_size(d->dataset);
}

static int64_t greatest(const float x[], int64_t n) {
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++) {
        best = x[i] > x[best] ? i : best;
    }
    return best;
}

// Weighted mean over what is compared, of one sample.
static double sample_loss(const struct msc_distill *d, const struct msc_view values[], size_t batch,
                          int64_t row) {
    double sum = 0;
    double weights = 0;
    for (size_t i = 0; i < d->n_compared; i++) {
        const struct msc_distill_tensor *c = &d->compared[i];
        const struct msc_distill_part *p = &c->parts[batch];
        const float *z = (const float *)values[i].data + row * p->n;
        sum += c->weight * msc_loss_sample(d->options.kind, d->options.kl_is_logits,
                                           msc_distill__reference(c, batch, row), z, p->shape,
                                           c->mean_square);
        weights += c->weight;
    }
    return sum / weights;
}

static void begin_run(void *payload, size_t index) {
    struct msc_distill *d = payload;
    size_t n_batches = msc_dataset_n_batches(d->dataset);
    d->sums[index] = (struct msc_distill_sum){0};
    memset(d->is_compared + index * n_batches, 0, n_batches * sizeof(d->is_compared[0]));
}

static enum msc_status compare_batch(void *payload, size_t trial, size_t batch,
                                     const struct msc_view values[]) {
    struct msc_distill *d = payload;
    int64_t n = msc_dataset_batch_samples(d->dataset, batch);
    for (int64_t row = 0; row < n; row++) {
        int64_t sample = first_sample(d, batch) + row;
        size_t at = trial * (size_t)d->n_samples + (size_t)sample;
        d->losses[at] = sample_loss(d, values, batch, row);
        if (d->class_scores != SIZE_MAX) {
            int64_t classes = d->compared[d->class_scores].parts[batch].n;
            const float *scores = (const float *)values[d->class_scores].data + row * classes;
            d->correct[at] = greatest(scores, classes) == msc_dataset_label(d->dataset, sample);
        }
    }
    d->is_compared[trial * msc_dataset_n_batches(d->dataset) + batch] = true;
    return MSC_OK;
}

// Adds up the losses of a run as far as its batches were compared without a gap, and no further
// than its bound: sample by sample, so that the sum is the same whenever it is looked at.
static void add_up(struct msc_distill *d, size_t index) {
    const struct msc_distill_run *run = &d->runs[index];
    struct msc_distill_sum *sum = &d->sums[index];
    const bool *is_compared = d->is_compared + index * msc_dataset_n_batches(d->dataset);
    const double *losses = d->losses + index * (size_t)d->n_samples;
    while (!sum->is_over && sum->n_batches < msc_dataset_n_batches(d->dataset) &&
           is_compared[sum->n_batches]) {
        int64_t end = sum->n_samples + msc_dataset_batch_samples(d->dataset, sum->n_batches++);
        while (sum->n_samples < end) {
            sum->losses += losses[sum->n_samples++];
        }
        sum->is_over = run->is_bounded && sum->losses / (double)d->n_samples > run->bound;
    }
}

static bool is_run_over(void *payload, size_t index) {
    struct msc_distill *d = payload;
    add_up(d, index);
    return d->sums[index].is_over;
}

// What went wrong after the batch that a run was stopped at is nothing to it.
static void finish_run(void *payload, size_t index) {
    struct msc_distill *d = payload;
    struct msc_distill_run *run = &d->runs[index];
    const struct msc_eval_trial *trial = &d->trials[index];
    size_t n = (size_t)d->n_samples;
    size_t n_correct = 0;
    add_up(d, index);
    run->was_stopped = d->sums[index].is_over;
    run->n_samples = d->sums[index].n_samples;
    run->status = run->was_stopped ? MSC_OK : trial->status;
    run->reuse_ratio = trial->reuse_ratio;
    snprintf(run->message, sizeof(run->message), "%s", run->was_stopped ? "" : trial->message);
    run->loss = run->status == MSC_OK ? d->sums[index].losses / (double)n : NAN;
    bool is_whole = run->status == MSC_OK && !run->was_stopped;
    for (size_t s = 0; s < n && is_whole; s++) {
        n_correct += d->correct[index * n + s];
    }
    run->accuracy = is_whole && d->class_scores != SIZE_MAX ? (double)n_correct / (double)n : NAN;
    if (d->done) {
        d->done(d->payload, index);
    }
}

// Room for n runs, kept from call to call.
static enum msc_status make_room(struct msc_distill *d, size_t n) {
    size_t samples = (size_t)d->n_samples;
    if (n <= d->runs_capacity) {
        return MSC_OK;
    }
    msc_free(d->trials);
    msc_free(d->losses);
    msc_free(d->correct);
    msc_free(d->is_compared);
    msc_free(d->sums);
    d->runs_capacity = 0;
    d->trials = msc_alloc_zero(n, sizeof(d->trials[0]));
    d->losses = msc_alloc_zero(n * samples, sizeof(d->losses[0]));
    d->correct = msc_alloc_zero(n * samples, sizeof(d->correct[0]));
    d->is_compared =
        msc_alloc_zero(n * msc_dataset_n_batches(d->dataset), sizeof(d->is_compared[0]));
    d->sums = msc_alloc_zero(n, sizeof(d->sums[0]));
    if (!d->trials || !d->losses || !d->correct || !d->is_compared || !d->sums) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for %zu trials", n);
    }
    d->runs_capacity = n;
    return MSC_OK;
}

enum msc_status msc_distill_run(struct msc_distill *d, struct msc_distill_run runs[], size_t n,
                                void (*done)(void *payload, size_t run), void *payload) {
    struct msc_sink sink = {
        .begin = begin_run, .batch = compare_batch, .end = finish_run, .payload = d};
    if (!d->has_reference) {
        return MSC_FAIL(MSC_E_STATE, "the float model's outputs are not there yet");
    }
    MSC_TRY(make_room(d, n));
    d->runs = runs;
    d->done = done;
    d->payload = payload;
    for (size_t i = 0; i < n; i++) {
        d->trials[i] =
            (struct msc_eval_trial){.edits = runs[i].edits, .noise_seed = runs[i].noise_seed};
        sink.is_over = runs[i].is_bounded ? is_run_over : sink.is_over;
    }
    return msc_evaluator_run(d->evaluator, d->trials, n, &sink, 0);
}
