#include "env/distill.h"

#include "base/alloc.h"
#include "base/str.h"
#include "env/distill_internal.h"
#include "graph/wide.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

// ---- Creation ---------------------------------------------------------------------------------

// Splits the shape of a compared tensor's sample at the axis of the loss `kl`.
static enum msc_status shape_sample(const struct msc_distill *d, const struct msc_distill_tensor *c,
                                    size_t batch, const struct msc_tensor *v,
                                    struct msc_distill_part *out) {
    int64_t in_batch = msc_dataset_batch_samples(d->dataset, batch);
    bool has_samples = c->axis >= 0 && v->dims[c->axis] == in_batch;
    int axis = d->options.kl_axis < 0 ? d->options.kl_axis + v->n_dims : d->options.kl_axis;
    if (d->options.kind == MSC_LOSS_KL &&
        (axis < 0 || axis >= v->n_dims || (has_samples && axis == c->axis))) {
        return MSC_FAIL(
            MSC_E_INVALID,
            "env.kl_axis: %d is not an axis of a sample of %s; set it to the axis of classes",
            d->options.kl_axis, c->name);
    }
    out->shape = (struct msc_loss_shape){1, 1, 1};
    out->n_pieces = 1;
    for (int i = 0; i < v->n_dims; i++) {
        if (has_samples && i == c->axis) {
            continue;
        }
        out->n_pieces *= has_samples && i < c->axis ? v->dims[i] : 1;
        *(i < axis   ? &out->shape.outer
          : i > axis ? &out->shape.inner
                     : &out->shape.axis) *= v->dims[i];
    }
    out->n = out->shape.outer * out->shape.axis * out->shape.inner;
    return MSC_OK;
}

// Sets the position of each batch of a compared tensor in the reference, and the shape of its
// samples.
static enum msc_status shape_samples(struct msc_distill *d, size_t index) {
    struct msc_distill_tensor *c = &d->compared[index];
    size_t n_batches = msc_dataset_n_batches(d->dataset);
    c->parts = msc_arena_array(&d->arena, n_batches, sizeof(c->parts[0]));
    MSC_TRY(MSC_ALLOCATED(c->parts));
    for (size_t b = 0; b < n_batches; b++) {
        const struct msc_plan *plan = msc_evaluator_plan(d->evaluator, b);
        const struct msc_tensor *t = msc_graph_tensor(plan->graph, plan->wanted_tensors[index]);
        MSC_TRY(shape_sample(d, c, b, t, &c->parts[b]));
        c->parts[b].first = c->n_elements;
        c->n_elements += c->parts[b].n * msc_dataset_batch_samples(d->dataset, b);
    }
    return MSC_OK;
}

// Warns of labels that are not classes: such samples count as wrong in every trial.
static void warn_of_labels(const struct msc_distill *d) {
    int64_t sample = 0, n_outside = 0;
    if (!msc_dataset_has_labels(d->dataset)) {
        return;
    }
    const struct msc_distill_tensor *scores = &d->compared[d->class_scores];
    for (size_t b = 0; b < msc_dataset_n_batches(d->dataset); b++) {
        int64_t end = sample + msc_dataset_batch_samples(d->dataset, b);
        for (; sample < end; sample++) {
            int64_t label = msc_dataset_label(d->dataset, sample);
            n_outside += label < 0 || label >= scores->parts[b].n;
        }
    }
    if (n_outside > 0) {
        msc_log(d->host->log, MSC_LOG_WARNING,
                "%" PRId64 " of %" PRId64 " labels are not classes of %s, expected 0 to %" PRId64
                "; they count as wrong",
                n_outside, sample, scores->name, scores->parts[0].n - 1);
    }
}

// Checks that the class scores have a row for each token whose next one is a label.
static enum msc_status check_next(const struct msc_distill *d) {
    for (size_t b = 0; msc_dataset_has_next(d->dataset) && b < msc_dataset_n_batches(d->dataset);
         b++) {
        const struct msc_distill_tensor *scores = &d->compared[d->class_scores];
        const struct msc_loss_shape *shape = &scores->parts[b].shape;
        int64_t n =
            msc_dataset_n_tokens(d->dataset, (int64_t)b * msc_dataset_batch_size(d->dataset));
        if (shape->outer != n || shape->inner != 1) {
            return MSC_FAIL(MSC_E_INVALID,
                            "dataset.labels is \"" MSC_LABELS_NEXT "\", but %s is not [samples, "
                            "tokens, scores] for samples of %" PRId64 " tokens: name the scores in "
                            "env.loss_tensors and env.class_scores",
                            scores->name, n);
        }
    }
    return MSC_OK;
}

static enum msc_status distill_init(struct msc_distill *d, const struct msc_distill *other) {
    d->n_samples = msc_dataset_n_samples(d->dataset);
    MSC_TRY(msc_distill__compare(d, other));
    for (size_t i = 0; i < d->n_compared; i++) {
        MSC_TRY(shape_samples(d, i));
    }
    if (!other) {
        warn_of_labels(d);
    }
    return check_next(d);
}

static enum msc_status distill_create(struct msc_distill **out, const struct msc_env_host *host,
                                      const struct msc_dataset *dataset,
                                      const struct msc_distill_options *options,
                                      const struct msc_distill *other) {
    struct msc_distill *d = msc_alloc_zero(1, sizeof(*d));
    MSC_TRY(MSC_ALLOCATED(d));
    d->host = host;
    d->dataset = dataset;
    d->options = *options;
    enum msc_status status = distill_init(d, other);
    if (status != MSC_OK) {
        msc_distill_destroy(d);
        return status;
    }
    *out = d;
    return MSC_OK;
}

enum msc_status msc_distill_create(struct msc_distill **out, const struct msc_env_host *host,
                                   const struct msc_dataset *dataset,
                                   const struct msc_distill_options *options) {
    return distill_create(out, host, dataset, options, NULL);
}

enum msc_status msc_distill_create_as(struct msc_distill **out, const struct msc_distill *other,
                                      const struct msc_dataset *dataset) {
    return distill_create(out, other->host, dataset, &other->options, other);
}

void msc_distill_destroy(struct msc_distill *d) {
    if (!d) {
        return;
    }
    for (size_t i = 0; i < d->n_compared; i++) {
        msc_array_release(d->compared[i].reference);
    }
    msc_evaluator_destroy(d->evaluator);
    msc_free(d->trials);
    msc_free(d->terms);
    msc_free(d->is_compared);
    msc_free(d->sums);
    msc_arena_finish(&d->arena);
    msc_free(d);
}

struct msc_evaluator *msc_distill_evaluator(struct msc_distill *d) {
    return d->evaluator;
}

// ---- Reference --------------------------------------------------------------------------------

static enum msc_status keep_reference(void *payload, size_t trial, size_t batch,
                                      const struct msc_view values[]) {
    struct msc_distill *d = payload;
    (void)trial;
    int64_t n = msc_dataset_batch_samples(d->dataset, batch);
    for (size_t i = 0; i < d->n_compared; i++) {
        const struct msc_distill_tensor *c = &d->compared[i];
        msc_distill__gather(msc_distill__reference(c, batch, 0), values[i].data, &c->parts[batch],
                            n);
    }
    return MSC_OK;
}

static enum msc_status create_reference(struct msc_distill_tensor *c) {
    msc_array_release(c->reference);
    c->reference = NULL;
    return msc_array_create(&c->reference, MSC_DTYPE_F32, 1, &c->n_elements);
}

// Sums the squares of the reference, sample by sample.
static double sum_squares(const struct msc_distill *d, const struct msc_distill_tensor *c) {
    double sum = 0;
    for (size_t b = 0; b < msc_dataset_n_batches(d->dataset); b++) {
        for (int64_t row = 0; row < msc_dataset_batch_samples(d->dataset, b); row++) {
            sum += msc_loss_sum_squares(msc_distill__reference(c, b, row), c->parts[b].n);
        }
    }
    return sum;
}

// The first sample whose tensor contains NaN or infinity; n_samples if there is none.
static int64_t first_infinite(const struct msc_distill *d, const struct msc_distill_tensor *c) {
    int64_t sample = 0;
    for (size_t b = 0; b < msc_dataset_n_batches(d->dataset); b++) {
        for (int64_t row = 0; row < msc_dataset_batch_samples(d->dataset, b); row++, sample++) {
            if (!isfinite(msc_loss_sum_squares(msc_distill__reference(c, b, row), c->parts[b].n))) {
                return sample;
            }
        }
    }
    return sample;
}

static enum msc_status refuse_reference(const struct msc_distill *d,
                                        const struct msc_distill_tensor *c) {
    return MSC_FAIL(MSC_E_INVALID,
                    "the float model's output %s contains NaN or infinity on this dataset, first "
                    "in sample %" PRId64 ": repair the sample, or compare other tensors "
                    "(env.loss_tensors)",
                    c->name, first_infinite(d, c));
}

// Computes the mean squares that normalise the loss, and refuses a reference that is not finite.
static enum msc_status finish_reference(struct msc_distill *d) {
    for (size_t i = 0; i < d->n_compared; i++) {
        struct msc_distill_tensor *c = &d->compared[i];
        if (c->n_elements == 0) {
            return MSC_FAIL(MSC_E_INVALID,
                            "tensor %s has no elements on this dataset: compare other tensors "
                            "(env.loss_tensors)",
                            c->name);
        }
        c->mean_square = sum_squares(d, c) / (double)c->n_elements;
        if (!isfinite(c->mean_square)) {
            return refuse_reference(d, c);
        }
    }
    d->has_reference = true;
    d->n_references++;
    return MSC_OK;
}

// Runs a model of float16 or bfloat16 in these types.
static enum msc_status run_rounded(struct msc_eval_trial *trial, const struct msc_distill *d,
                                   const struct msc_sink *sink) {
    const struct msc_graph *g = d->host->graph;
    struct msc_graph *rounded = NULL;
    struct msc_evaluator *evaluator = NULL;
    int32_t *map = msc_alloc_zero((size_t)msc_graph_n_tensors(g) + 1, sizeof(map[0]));
    int32_t *wanted = msc_alloc_zero(d->n_compared + 1, sizeof(wanted[0]));
    enum msc_status status = MSC_ALLOCATED(map && wanted);
    MSC_TRY_OUT(status);
    MSC_TRY_OUT(msc_graph_round(&rounded, map, g));
    for (size_t i = 0; i < d->n_compared; i++) {
        wanted[i] = map[d->compared[i].tensor];
    }
    MSC_TRY_OUT(msc_distill__create_evaluator(&evaluator, d, rounded, wanted));
    status = msc_evaluator_run(evaluator, trial, 1, sink, 0);
out:
    msc_evaluator_destroy(evaluator);
    msc_graph_destroy(rounded);
    msc_free(wanted);
    msc_free(map);
    return status;
}

enum msc_status msc_distill_compute_reference(struct msc_distill *d) {
    struct msc_sink sink = {.batch = keep_reference, .payload = d};
    struct msc_eval_trial trial = {.edits = NULL};
    for (size_t i = 0; i < d->n_compared; i++) {
        MSC_TRY(create_reference(&d->compared[i]));
    }
    bool is_wide = msc_graph_own(d->host->graph) != d->host->graph;
    MSC_TRY(is_wide ? run_rounded(&trial, d, &sink)
                    : msc_evaluator_run(d->evaluator, &trial, 1, &sink, 0));
    if (trial.status != MSC_OK) {
        return msc_status_restore(trial.status, trial.message);
    }
    return finish_reference(d);
}

static enum msc_status set_reference_name(struct msc_str *name,
                                          const struct msc_distill_tensor *compared) {
    msc_str_clear(name);
    msc_str_printf(name, "reference/%s", compared->name);
    return msc_str_status(name);
}

enum msc_status msc_distill_save_reference(const struct msc_distill *d,
                                           struct msc_array_list *list) {
    struct msc_str name = {0};
    enum msc_status status = MSC_OK;
    for (size_t i = 0; status == MSC_OK && i < d->n_compared; i++) {
        status = set_reference_name(&name, &d->compared[i]);
        if (status == MSC_OK) {
            status = msc_array_list_add(list, msc_str_text(&name), d->compared[i].reference);
        }
    }
    msc_str_finish(&name);
    return status;
}

static enum msc_status load_one(struct msc_distill_tensor *c, const struct msc_array *array) {
    if (!array || msc_array_dtype(array) != MSC_DTYPE_F32 ||
        msc_array_n_elements(array) != c->n_elements) {
        return MSC_FAIL(MSC_E_STATE, "the file has no reference output of %s with %lld elements",
                        c->name, (long long)c->n_elements);
    }
    msc_array_release(c->reference);
    c->reference = msc_array_retain(array);
    return MSC_OK;
}

enum msc_status msc_distill_load_reference(struct msc_distill *d,
                                           const struct msc_array_list *list) {
    struct msc_str name = {0};
    enum msc_status status = MSC_OK;
    for (size_t i = 0; status == MSC_OK && i < d->n_compared; i++) {
        status = set_reference_name(&name, &d->compared[i]);
        if (status == MSC_OK) {
            status = load_one(&d->compared[i], msc_array_list_find(list, msc_str_text(&name)));
        }
    }
    msc_str_finish(&name);
    return status == MSC_OK ? finish_reference(d) : status;
}

bool msc_distill_is_same(const struct msc_distill *d, size_t index,
                         bool (*same)(const float x[], const float y[], int64_t n)) {
    const struct msc_distill_tensor *c = &d->compared[index];
    const float *first = msc_distill__reference(c, 0, 0);
    for (size_t b = 0; b < msc_dataset_n_batches(d->dataset); b++) {
        for (int64_t row = 0; row < msc_dataset_batch_samples(d->dataset, b); row++) {
            if (c->parts[b].n != c->parts[0].n ||
                !same(first, msc_distill__reference(c, b, row), c->parts[b].n)) {
                return false;
            }
        }
    }
    return true;
}
