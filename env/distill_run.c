// Runs the model with edits and computes losses and metrics sample by sample. Losses are summed
// batch by batch in the order of the dataset, so results do not depend on threads or on the
// division into parts.
#include "env/distill.h"

#include "base/alloc.h"
#include "env/distill_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// The index of a batch's first sample; for the batch after the last one, the number of samples.
static int64_t first_sample(const struct msc_distill *d, size_t batch) {
    int64_t first = (int64_t)batch * msc_dataset_batch_size(d->dataset);
    return first < d->n_samples ? first : d->n_samples;
}

// ---- One sample -------------------------------------------------------------------------------

size_t msc_sample_n_tensors(const struct msc_sample *s) {
    return s->distill->n_compared;
}

struct msc_sample_tensor msc_sample_tensor(const struct msc_sample *s, size_t index) {
    const struct msc_distill_tensor *c = &s->distill->compared[index];
    int64_t n = c->parts[s->batch].n;
    return (struct msc_sample_tensor){.y = msc_distill__reference(c, s->batch, s->row),
                                      .z = s->values[index] + s->row * n,
                                      .n = n,
                                      .shape = c->parts[s->batch].shape};
}

struct msc_sample_tensor msc_sample_class_scores(const struct msc_sample *s) {
    return msc_sample_tensor(s, s->distill->class_scores);
}

int64_t msc_sample_label(const struct msc_sample *s) {
    return msc_dataset_label(s->distill->dataset, s->sample);
}

int64_t msc_sample_token(const struct msc_sample *s, int64_t position) {
    return msc_dataset_token(s->distill->dataset, s->sample, position);
}

// The index among a run's sums of the drop of a metric, if it has one; the square of the drop
// follows. For the number of metrics: the number of sums.
static size_t drop_sum(const struct msc_distill *d, size_t metric) {
    size_t sum = 1 + d->options.n_metrics;
    for (size_t m = 0; m < metric; m++) {
        sum += d->options.metrics[m].has_drop ? 2 : 0;
    }
    return sum;
}

static double tensor_loss(const struct msc_sample *s, size_t index) {
    const struct msc_distill *d = s->distill;
    const struct msc_distill_tensor *c = &d->compared[index];
    const struct msc_loss loss = {.kind = d->options.kind, .is_logits = d->options.kl_is_logits};
    if (s->squares) {
        return msc_loss_of_squares(s->squares[index][s->row], c->parts[s->batch].n, c->mean_square);
    }
    struct msc_sample_tensor t = msc_sample_tensor(s, index);
    return msc_loss_sample(&loss, t.y, t.z, t.shape, c->mean_square);
}

// Weighted mean over the compared tensors.
static double sample_loss(const struct msc_sample *s) {
    const struct msc_distill *d = s->distill;
    double sum = 0;
    double weights = 0;
    for (size_t i = 0; i < d->n_compared; i++) {
        sum += d->compared[i].weight * tensor_loss(s, i);
        weights += d->compared[i].weight;
    }
    return sum / weights;
}

size_t msc_distill_n_sums(const struct msc_distill *d) {
    return drop_sum(d, d->options.n_metrics);
}

size_t msc_distill_n_terms(const struct msc_distill *d) {
    return msc_distill_n_sums(d) * msc_distill_n_batches(d);
}

// The terms [n_batches] of one of a run's sums. Sum 0 is the loss; the next sums are the metrics.
static double *terms_of(const struct msc_distill *d, size_t run, size_t sum) {
    double *own = d->runs[run].terms;
    return (own ? own : d->terms + run * msc_distill_n_terms(d)) + sum * msc_distill_n_batches(d);
}

static bool has_metric(const struct msc_distill *d, size_t metric) {
    const struct msc_sample_metric *m = &d->options.metrics[metric];
    return (!m->needs_labels || msc_dataset_has_labels(d->dataset)) &&
           (!m->needs_next || msc_dataset_has_next(d->dataset));
}

// ---- Runs -------------------------------------------------------------------------------------

static void distill_begin_run(void *payload, size_t index) {
    struct msc_distill *d = payload;
    size_t n_batches = msc_dataset_n_batches(d->dataset);
    bool *is_compared = d->is_compared + index * n_batches;
    d->sums[index] = (struct msc_distill_sum){0};
    for (size_t b = 0; b < n_batches; b++) {
        is_compared[b] = b < d->first_batch; // earlier parts have compared these batches
    }
}

static bool has_any_metric(const struct msc_distill *d) {
    for (size_t m = 0; m < d->options.n_metrics; m++) {
        if (has_metric(d, m)) {
            return true;
        }
    }
    return false;
}

// Adds what a sample contributes to the sums of a metric. `of_float` is the same sample with the
// float model's values.
static void add_metric(struct msc_distill *d, size_t trial, size_t metric,
                       const struct msc_sample *s, const struct msc_sample *of_float) {
    const struct msc_sample_metric *m = &d->options.metrics[metric];
    double value = m->sample(s);
    terms_of(d, trial, 1 + metric)[s->batch] += value;
    if (m->has_drop) {
        double drop = m->sample(of_float) - value;
        size_t sum = drop_sum(d, metric);
        terms_of(d, trial, sum)[s->batch] += drop;
        terms_of(d, trial, sum + 1)[s->batch] += drop * drop;
    }
}

// `references` [n_compared] are the float model's values of the batch. `values` and `references`
// are NULL if `squares` is not, and the other way around.
static void compare_samples(struct msc_distill *d, size_t trial, size_t batch,
                            const float *const values[], const float *const references[],
                            const double *const squares[]) {
    int64_t n = msc_dataset_batch_samples(d->dataset, batch);
    for (size_t sum = 0; sum < msc_distill_n_sums(d); sum++) {
        terms_of(d, trial, sum)[batch] = 0;
    }
    for (int64_t row = 0; row < n; row++) {
        const struct msc_sample s = {.distill = d,
                                     .values = values,
                                     .squares = squares,
                                     .batch = batch,
                                     .row = row,
                                     .sample = first_sample(d, batch) + row};
        struct msc_sample of_float = s;
        of_float.values = references;
        terms_of(d, trial, 0)[batch] += sample_loss(&s);
        for (size_t m = 0; m < d->options.n_metrics; m++) {
            if (has_metric(d, m)) {
                add_metric(d, trial, m, &s, &of_float);
            }
        }
    }
    d->is_compared[trial * msc_dataset_n_batches(d->dataset) + batch] = true;
}

// The number of elements of a compared tensor in a batch if its samples are not contiguous, else 0.
static int64_t n_to_gather(const struct msc_distill *d, size_t index, size_t batch) {
    const struct msc_distill_part *p = &d->compared[index].parts[batch];
    return p->n_pieces != 1 ? p->n * msc_dataset_batch_samples(d->dataset, batch) : 0;
}

static enum msc_status distill_compare_batch(void *payload, size_t trial, size_t batch,
                                             const struct msc_view values[]) {
    struct msc_distill *d = payload;
    int64_t n_gathered = 0;
    for (size_t i = 0; i < d->n_compared; i++) {
        n_gathered += n_to_gather(d, i, batch);
    }
    const float **samples = msc_alloc_zero(2 * d->n_compared, sizeof(samples[0]));
    float *gathered = msc_alloc((size_t)n_gathered * sizeof(gathered[0]) + 1);
    enum msc_status status = MSC_ALLOCATED(samples && gathered);
    float *next = gathered;
    for (size_t i = 0; status == MSC_OK && i < d->n_compared; i++) {
        int64_t n = n_to_gather(d, i, batch);
        samples[i] = n > 0 ? next : values[i].data;
        samples[d->n_compared + i] = msc_distill__reference(&d->compared[i], batch, 0);
        if (n > 0) {
            msc_distill__gather(next, values[i].data, &d->compared[i].parts[batch],
                                msc_dataset_batch_samples(d->dataset, batch));
            next += n;
        }
    }
    if (status == MSC_OK) {
        compare_samples(d, trial, batch, samples, samples + d->n_compared, NULL);
    }
    msc_free(gathered);
    msc_free(samples);
    return status;
}

// The reference of a tensor, if only the loss is measured and follows from sums of squares.
static bool distill_refer(void *payload, size_t batch, int32_t index,
                          struct msc_eval_reference *out) {
    const struct msc_distill *d = payload;
    const struct msc_distill_tensor *c = &d->compared[index];
    if (d->options.kind != MSC_LOSS_MSE || has_any_metric(d) || c->parts[batch].n_pieces != 1) {
        return false;
    }
    struct msc_hash key = msc_hash_add_text(msc_hash_bytes(NULL, 0), "reference");
    key = msc_hash_add_u64(msc_hash_add_u64(key, d->n_references), (uint64_t)index);
    *out = (struct msc_eval_reference){.values = msc_distill__reference(c, batch, 0),
                                       .n_samples = msc_dataset_batch_samples(d->dataset, batch),
                                       .n = c->parts[batch].n,
                                       .key = key};
    return true;
}

static enum msc_status distill_take_squares(void *payload, size_t trial, size_t batch,
                                            const double *const squares[]) {
    compare_samples(payload, trial, batch, NULL, NULL, squares);
    return MSC_OK;
}

// Adds the terms of a sum batch by batch.
static double add_terms(const double terms[], size_t n_batches) {
    double sum = 0;
    for (size_t batch = 0; batch < n_batches; batch++) {
        sum += terms[batch];
    }
    return sum;
}

// Adds the losses of a run's leading batches, until a batch is not compared yet or the run's bound
// is exceeded. Losses are added batch by batch, so the sum does not depend on when the function is
// called.
static void add_up_losses(struct msc_distill *d, size_t index) {
    const struct msc_distill_run *run = &d->runs[index];
    struct msc_distill_sum *sum = &d->sums[index];
    const bool *is_compared = d->is_compared + index * msc_dataset_n_batches(d->dataset);
    while (!sum->is_over && sum->n_batches < msc_dataset_n_batches(d->dataset) &&
           is_compared[sum->n_batches]) {
        sum->losses += terms_of(d, index, 0)[sum->n_batches++];
        sum->is_over = run->is_bounded && sum->losses / (double)d->n_samples > run->bound;
    }
}

static bool is_run_over(void *payload, size_t index) {
    struct msc_distill *d = payload;
    add_up_losses(d, index);
    return d->sums[index].is_over;
}

static struct msc_sample_drop measure_drop(struct msc_distill *d, size_t index, size_t metric) {
    double n = (double)d->n_samples;
    size_t sum = drop_sum(d, metric), n_batches = msc_distill_n_batches(d);
    double mean = add_terms(terms_of(d, index, sum), n_batches) / n;
    double squares = add_terms(terms_of(d, index, sum + 1), n_batches);
    double variance = n > 1 ? fmax(squares - n * mean * mean, 0) / (n - 1) : NAN;
    return (struct msc_sample_drop){mean, sqrt(variance / n)};
}

static void measure_run(struct msc_distill *d, size_t index) {
    struct msc_distill_run *run = &d->runs[index];
    bool is_whole = run->status == MSC_OK && !run->was_stopped && !run->is_part;
    for (size_t m = 0; m < d->options.n_metrics; m++) {
        run->metrics[m] = NAN;
        run->drops[m] = (struct msc_sample_drop){NAN, NAN};
        if (is_whole && has_metric(d, m)) {
            double sum = add_terms(terms_of(d, index, 1 + m), msc_distill_n_batches(d));
            run->metrics[m] = sum / (double)d->n_samples;
            run->drops[m] =
                d->options.metrics[m].has_drop ? measure_drop(d, index, m) : run->drops[m];
        }
    }
}

// Fills a run's results. An error after the batch at which the run was stopped is ignored.
static void distill_finish_run(void *payload, size_t index) {
    struct msc_distill *d = payload;
    struct msc_distill_run *run = &d->runs[index];
    const struct msc_eval_trial *trial = &d->trials[index];
    add_up_losses(d, index);
    run->was_stopped = d->sums[index].is_over;
    run->is_part = d->end_batch < msc_dataset_n_batches(d->dataset);
    run->n_samples = first_sample(d, d->sums[index].n_batches);
    run->status = run->was_stopped ? MSC_OK : trial->status;
    run->reuse_ratio = trial->reuse_ratio;
    snprintf(run->message, sizeof(run->message), "%s", run->was_stopped ? "" : trial->message);
    run->loss = run->status == MSC_OK ? d->sums[index].losses / (double)d->n_samples : NAN;
    measure_run(d, index);
    if (d->done) {
        d->done(d->payload, index);
    }
}

// Allocates memory for n runs, which is kept between calls.
static enum msc_status distill_make_room(struct msc_distill *d, size_t n) {
    if (n <= d->runs_capacity) {
        return MSC_OK;
    }
    msc_free(d->trials);
    msc_free(d->terms);
    msc_free(d->is_compared);
    msc_free(d->sums);
    d->runs_capacity = 0;
    d->trials = msc_alloc_zero(n, sizeof(d->trials[0]));
    d->terms = msc_alloc_zero(n, msc_distill_n_terms(d) * sizeof(d->terms[0]));
    d->is_compared =
        msc_alloc_zero(n * msc_dataset_n_batches(d->dataset), sizeof(d->is_compared[0]));
    d->sums = msc_alloc_zero(n, sizeof(d->sums[0]));
    MSC_TRY(MSC_ALLOCATED(d->trials && d->terms && d->is_compared && d->sums));
    d->runs_capacity = n;
    return MSC_OK;
}

size_t msc_distill_n_batches(const struct msc_distill *d) {
    return msc_dataset_n_batches(d->dataset);
}

double msc_distill_partial_loss(const struct msc_distill *d, const double terms[],
                                size_t n_batches) {
    return add_terms(terms, n_batches) / (double)d->n_samples;
}

enum msc_status msc_distill_run_batches(struct msc_distill *d, struct msc_distill_run runs[],
                                        size_t n, size_t first, size_t end,
                                        void (*done)(void *payload, size_t run), void *payload) {
    struct msc_sink sink = {.begin = distill_begin_run,
                            .batch = distill_compare_batch,
                            .end = distill_finish_run,
                            .reference = distill_refer,
                            .squares = distill_take_squares,
                            .payload = d};
    if (!d->has_reference) {
        return MSC_FAIL(MSC_E_STATE, "the float model's outputs have not been computed yet");
    }
    MSC_TRY(distill_make_room(d, n));
    d->first_batch = first;
    d->end_batch = end;
    d->runs = runs;
    d->done = done;
    d->payload = payload;
    for (size_t i = 0; i < n; i++) {
        d->trials[i] =
            (struct msc_eval_trial){.edits = runs[i].edits, .noise_seed = runs[i].noise_seed};
        sink.is_over = runs[i].is_bounded ? is_run_over : sink.is_over;
    }
    return msc_evaluator_run_batches(d->evaluator, d->trials, n, first, end, &sink);
}

enum msc_status msc_distill_run(struct msc_distill *d, struct msc_distill_run runs[], size_t n,
                                void (*done)(void *payload, size_t run), void *payload) {
    return msc_distill_run_batches(d, runs, n, 0, msc_distill_n_batches(d), done, payload);
}

enum msc_status msc_distill_fold(struct msc_distill *d, struct msc_distill_run *run,
                                 size_t n_batches, size_t end) {
    MSC_TRY(distill_make_room(d, 1));
    d->first_batch = n_batches;
    d->end_batch = end;
    d->runs = run;
    d->done = NULL;
    d->trials[0] = (struct msc_eval_trial){.status = run->status, .reuse_ratio = run->reuse_ratio};
    snprintf(d->trials[0].message, sizeof d->trials[0].message, "%s", run->message);
    distill_begin_run(d, 0);
    distill_finish_run(d, 0);
    return MSC_OK;
}

// ---- Outputs ----------------------------------------------------------------------------------

struct output_rows {
    const struct msc_distill *distill;
    struct msc_array **arrays; // [n_compared]
};

static enum msc_status create_rows(struct msc_array **out, const struct msc_distill *d,
                                   size_t index) {
    const struct msc_distill_tensor *c = &d->compared[index];
    const struct msc_plan *plan = msc_evaluator_plan(d->evaluator, 0);
    const struct msc_tensor *t = msc_graph_tensor(plan->graph, plan->wanted_tensors[index]);
    int64_t in_batch = msc_dataset_batch_samples(d->dataset, 0);
    bool has_samples = c->axis >= 0 && t->dims[c->axis] == in_batch;
    int n_dims = 1;
    int64_t dims[MSC_MAX_DIMS + 1] = {d->n_samples};
    for (size_t b = 0; b < msc_dataset_n_batches(d->dataset); b++) {
        if (c->parts[b].n != c->parts[0].n || t->n_dims + !has_samples > MSC_MAX_DIMS) {
            return MSC_FAIL(MSC_E_UNSUPPORTED,
                            "samples of %s differ in shape, expected equal shapes for one array",
                            c->name);
        }
    }
    for (int i = 0; i < t->n_dims; i++) {
        if (!has_samples || i != c->axis) {
            dims[n_dims++] = t->dims[i];
        }
    }
    return msc_array_create(out, MSC_DTYPE_F32, n_dims, dims);
}

static enum msc_status take_rows(void *payload, size_t trial, size_t batch,
                                 const struct msc_view values[]) {
    const struct output_rows *rows = payload;
    const struct msc_distill *d = rows->distill;
    int64_t n = msc_dataset_batch_samples(d->dataset, batch);
    (void)trial;
    for (size_t i = 0; i < d->n_compared; i++) {
        const struct msc_distill_part *part = &d->compared[i].parts[batch];
        msc_distill__gather((float *)msc_array_data(rows->arrays[i]) + part->first, values[i].data,
                            part, n);
    }
    return MSC_OK;
}

enum msc_status msc_distill_outputs(struct msc_distill *d, const struct msc_edit *const edits[],
                                    struct msc_array_list *list) {
    struct output_rows rows = {
        .distill = d, .arrays = msc_alloc_zero(d->n_compared + 1, sizeof(struct msc_array *))};
    struct msc_sink sink = {.batch = take_rows, .payload = &rows};
    struct msc_eval_trial trial = {.edits = edits};
    enum msc_status status = MSC_ALLOCATED(rows.arrays);
    for (size_t i = 0; status == MSC_OK && i < d->n_compared; i++) {
        status = create_rows(&rows.arrays[i], d, i);
    }
    if (status == MSC_OK) {
        status = msc_evaluator_run(d->evaluator, &trial, 1, &sink, 0);
    }
    if (status == MSC_OK && trial.status != MSC_OK) {
        status = msc_status_restore(trial.status, trial.message);
    }
    for (size_t i = 0; rows.arrays && i < d->n_compared; i++) {
        if (status == MSC_OK) {
            status = msc_array_list_add(list, d->compared[i].name, rows.arrays[i]);
        }
        msc_array_release(rows.arrays[i]);
    }
    msc_free(rows.arrays);
    return status;
}

// ---- Runs computed elsewhere ------------------------------------------------------------------

bool msc_distill_is_part(const struct msc_distill *d) {
    return d->is_part;
}

size_t msc_distill_n_compared(const struct msc_distill *d) {
    return d->n_compared;
}

const char *msc_distill_compared_name(const struct msc_distill *d, size_t index) {
    return d->compared[index].name;
}

static enum msc_status check_output(const struct msc_distill_tensor *c,
                                    const struct msc_array *output) {
    if (msc_array_dtype(output) != MSC_DTYPE_F32 || msc_array_n_elements(output) != c->n_elements) {
        return MSC_FAIL(MSC_E_INVALID,
                        "output %s has %lld elements of %s, expected %lld of float32", c->name,
                        (long long)msc_array_n_elements(output),
                        msc_dtype_name(msc_array_dtype(output)), (long long)c->n_elements);
    }
    return MSC_OK;
}

enum msc_status msc_distill_judge(struct msc_distill *d, struct msc_distill_run *run,
                                  const struct msc_array *const outputs[]) {
    for (size_t i = 0; i < d->n_compared; i++) {
        MSC_TRY(check_output(&d->compared[i], outputs[i]));
    }
    struct msc_view *views = msc_alloc_zero(d->n_compared, sizeof(views[0]));
    MSC_TRY(MSC_ALLOCATED(views));
    enum msc_status status = distill_make_room(d, 1);
    if (status == MSC_OK) {
        d->first_batch = 0;
        d->end_batch = msc_distill_n_batches(d);
        d->runs = run;
        d->done = NULL;
        d->trials[0] = (struct msc_eval_trial){.edits = NULL};
        distill_begin_run(d, 0);
    }
    for (size_t b = 0; status == MSC_OK && b < msc_dataset_n_batches(d->dataset); b++) {
        for (size_t i = 0; i < d->n_compared; i++) {
            views[i] = msc_view_of_array(outputs[i]);
            views[i].data = (float *)msc_array_data(outputs[i]) + d->compared[i].parts[b].first;
        }
        status = distill_compare_batch(d, 0, b, views);
    }
    if (status == MSC_OK) {
        distill_finish_run(d, 0);
    }
    msc_free(views);
    return status;
}
