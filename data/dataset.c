#include "data/dataset_internal.h"

#include "base/alloc.h"
#include "data/mismatch.h"
#include "data/npy.h"
#include "data/source.h"
#include "data/tokens.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

void msc_dataset_destroy(struct msc_dataset *dataset) {
    if (!dataset) {
        return;
    }
    for (size_t i = 0; i < dataset->n_inputs; i++) {
        struct msc_dataset_input *input = &dataset->inputs[i];
        for (size_t b = 0; input->batches && b < dataset->n_batches; b++) {
            msc_array_release(input->batches[b]);
        }
        msc_free(input->batches);
        msc_free(input->name);
    }
    msc_free(dataset->inputs);
    msc_array_release(dataset->labels);
    msc_free(dataset);
}

static enum msc_status build_input(struct msc_dataset *dataset, size_t i,
                                   const struct msc_source *source, int64_t first) {
    struct msc_dataset_input *input = &dataset->inputs[i];
    input->is_batched = source->specs[i].is_batched;
    input->axis = source->specs[i].axis;
    input->name = msc_strdup(source->specs[i].name);
    input->batches = msc_alloc_zero(dataset->n_batches, sizeof input->batches[0]);
    if (!input->name || !input->batches) {
        return MSC_FAIL(MSC_E_NOMEM, "%s: not enough memory for %zu batches", source->path,
                        dataset->n_batches);
    }
    if (dataset->is_sequence) {
        bool is_shared = source->samples[i].form == MSC_SAMPLES_SHARED;
        input->state = source->specs[i].state;
        input->form = input->state ? MSC_INPUT_STATE
                      : is_shared  ? MSC_INPUT_SHARED
                                   : MSC_INPUT_CHUNKS;
        input->is_batched = false;
    }
    for (size_t b = 0; b < dataset->n_batches; b++) {
        int64_t from = first + (int64_t)b * dataset->batch;
        int64_t n = msc_dataset_batch_samples(dataset, b);
        MSC_TRY(dataset->is_sequence ? msc_source__chunks(&input->batches[b], source, i, from, n)
                                     : msc_source__batch(&input->batches[b], source, i, from, n));
    }
    return MSC_OK;
}

struct msc_dataset_sample msc_dataset__sample(const struct msc_dataset *dataset, size_t input,
                                              size_t b, int64_t index) {
    const struct msc_dataset_input *in = &dataset->inputs[input];
    const struct msc_array *batch = in->batches[b];
    struct msc_dataset_sample s = {batch, -1, msc_array_data(batch), 1, msc_array_n_bytes(batch),
                                   0};
    if (!in->is_batched) {
        return s;
    }
    s.axis = in->axis;
    for (int k = 0; k < s.axis; k++) {
        s.n_blocks *= (size_t)msc_array_dim(batch, k);
    }
    s.stride = s.n_blocks > 0 ? s.n_bytes / s.n_blocks : 0;
    s.n_bytes = s.stride / (size_t)msc_array_dim(batch, s.axis);
    s.data = s.data ? s.data + (size_t)index * s.n_bytes : NULL;
    return s;
}

// Hashes sample by sample, so that the hash does not depend on the batch size. The hash of
// sequences does depend on it, because their state restarts with each batch.
static struct msc_hash hash_input(const struct msc_dataset *dataset, size_t index,
                                  struct msc_hash h) {
    const struct msc_dataset_input *input = &dataset->inputs[index];
    h = msc_hash_add_text(h, input->name);
    h = msc_hash_add_text(h, msc_dtype_name(msc_array_dtype(input->batches[0])));
    h = input->state ? msc_hash_add_text(h, input->state) : h;
    for (size_t b = 0; b < dataset->n_batches; b++) {
        const struct msc_array *batch = input->batches[b];
        int64_t n = input->is_batched ? msc_array_dim(batch, input->axis) : 1;
        for (int64_t i = 0; i < n; i++) {
            struct msc_dataset_sample s = msc_dataset__sample(dataset, index, b, i);
            for (int axis = 0; axis < msc_array_n_dims(batch); axis++) {
                h = axis == s.axis ? h : msc_hash_add_u64(h, (uint64_t)msc_array_dim(batch, axis));
            }
            for (size_t k = 0; k < s.n_blocks; k++) {
                h = msc_hash_add_bytes(h, s.data ? s.data + k * s.stride : NULL, s.n_bytes);
            }
        }
    }
    return h;
}

struct msc_hash msc_dataset__hash(const struct msc_dataset *dataset) {
    struct msc_hash h = msc_hash_bytes(NULL, 0);
    h = msc_hash_add_u64(h, (uint64_t)dataset->n_samples);
    h = msc_hash_add_u64(h, dataset->n_inputs);
    for (size_t i = 0; i < dataset->n_inputs; i++) {
        h = hash_input(dataset, i, h);
    }
    return dataset->labels ? msc_hash_combine(h, msc_array_hash(dataset->labels)) : h;
}

static bool has_state(const struct msc_input_spec specs[], size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (specs[i].state) {
            return true;
        }
    }
    return false;
}

static bool is_one_by_one(const struct msc_input_spec specs[], size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (!specs[i].is_batched) {
            return true;
        }
    }
    return false;
}

// Takes the labels of samples [first, first + count). `labels` has one label per sample of the
// source.
static enum msc_status take_labels(struct msc_dataset *dataset, const struct msc_array *labels,
                                   const struct msc_source *source, int64_t first,
                                   const char *place) {
    if (!msc_dtype_is_integer(msc_array_dtype(labels)) || msc_array_n_dims(labels) != 1 ||
        msc_array_dim(labels, 0) != source->n) {
        char text[MSC_DIMS_TEXT_BYTES];
        return MSC_FAIL(MSC_E_INVALID,
                        "%s: labels: expected integers [%" PRId64 "], one for each sample of %s, "
                        "found %s %s; save them as int64 in that shape",
                        place, source->n, source->path,
                        msc_dims_format(text, msc_array_n_dims(labels), msc_array_dims(labels)),
                        msc_dtype_name(msc_array_dtype(labels)));
    }
    struct msc_array *taken = NULL;
    MSC_TRY(msc_array_rows(&taken, labels, first, dataset->n_samples));
    enum msc_status status = msc_array_convert(&dataset->labels, taken, MSC_DTYPE_I64);
    msc_array_release(taken);
    return status;
}

static enum msc_status dataset_build(struct msc_dataset **out, struct msc_source *source,
                                     int64_t first, int64_t count, int64_t batch,
                                     const struct msc_array *labels, const char *labels_place) {
    bool is_sequence = has_state(source->specs, source->n_specs);
    batch = is_sequence && batch == 0 ? count : batch;
    if (batch < 1) {
        return MSC_FAIL(MSC_E_INVALID, "%s: batch is %" PRId64 ", expected 1 or more", source->path,
                        batch);
    }
    struct msc_dataset *dataset = msc_alloc_zero(1, sizeof *dataset);
    if (!dataset) {
        return MSC_FAIL(MSC_E_NOMEM, "%s: not enough memory for a dataset", source->path);
    }
    enum msc_status status = MSC_OK;
    dataset->n_samples = count;
    dataset->is_sequence = is_sequence;
    dataset->batch = !is_sequence && is_one_by_one(source->specs, source->n_specs) ? 1 : batch;
    dataset->n_batches = (size_t)((count - 1) / dataset->batch + 1);
    dataset->inputs = msc_alloc_zero(source->n_specs, sizeof dataset->inputs[0]);
    if (!dataset->inputs) {
        status = MSC_FAIL(MSC_E_NOMEM, "%s: not enough memory for a dataset", source->path);
        goto out;
    }
    dataset->n_inputs = source->n_specs;
    if (labels) {
        MSC_TRY_OUT(take_labels(dataset, labels, source, first, labels_place));
    }
    MSC_TRY_OUT(msc_source__prepare(source, first, count));
    for (size_t i = 0; i < dataset->n_inputs; i++) {
        MSC_TRY_OUT(build_input(dataset, i, source, first));
    }
    dataset->hash = msc_dataset__hash(dataset);
    *out = dataset;
    dataset = NULL;
out:
    msc_dataset_destroy(dataset);
    return status;
}

// Finds the range of samples that the options select out of n.
static enum msc_status select_samples(int64_t *first, int64_t *count,
                                      const struct msc_dataset_options *o, int64_t n) {
    if (o->samples < 0 || o->skip_last < 0 || o->take_last < 0) {
        return MSC_FAIL(MSC_E_INVALID, "%s: samples, skip_last and take_last must not be negative",
                        o->inputs);
    }
    if (o->skip_last > 0 && o->take_last > 0) {
        return MSC_FAIL(MSC_E_INVALID, "%s: skip_last and take_last cannot both be set", o->inputs);
    }
    if (o->skip_last >= n || o->take_last > n) {
        return MSC_FAIL(MSC_E_INVALID,
                        "%s: %" PRId64
                        " samples cannot be %s the end, because the file has %" PRId64
                        "; add samples or make the validation part smaller",
                        o->inputs, o->skip_last > 0 ? o->skip_last : o->take_last,
                        o->skip_last > 0 ? "set aside at" : "taken from", n);
    }
    *first = o->take_last > 0 ? n - o->take_last : 0;
    *count = o->take_last > 0 ? o->take_last : n - o->skip_last;
    if (o->samples > 0 && o->samples < *count) {
        *count = o->samples;
    }
    return MSC_OK;
}

enum msc_status msc_dataset_count(int64_t *out, const struct msc_dataset_options *options,
                                  const struct msc_input_spec specs[], size_t n_specs) {
    struct msc_source source;
    enum msc_status status = msc_source__open(&source, options, specs, n_specs);
    *out = source.n;
    msc_source__finish(&source);
    return status;
}

bool msc_labels_are_next(const char *labels) {
    return labels && strcmp(labels, MSC_LABELS_NEXT) == 0;
}

// Makes the next token the label of each token.
static enum msc_status take_next(struct msc_dataset *dataset, const struct msc_source *source) {
    dataset->ids = msc_tokens__find(source->specs, source->n_specs);
    dataset->has_next = dataset->ids != MSC_TOKENS_NO_INPUT && !dataset->is_sequence;
    return dataset->has_next
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID,
                          "%s: labels \"" MSC_LABELS_NEXT "\" need a model without state that has "
                          "one input of token ids, integers of two axes",
                          source->path);
}

enum msc_status msc_dataset_load(struct msc_dataset **out,
                                 const struct msc_dataset_options *options,
                                 const struct msc_input_spec specs[], size_t n_specs) {
    struct msc_array *labels = NULL;
    struct msc_source source;
    struct msc_dataset *dataset = NULL;
    int64_t first = 0, count = 0;
    bool has_next = msc_labels_are_next(options->labels);
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_source__open(&source, options, specs, n_specs));
    MSC_TRY_OUT(select_samples(&first, &count, options, source.n));
    if (options->labels && !has_next) {
        MSC_TRY_OUT(msc_npy_load(&labels, options->labels));
    }
    MSC_TRY_OUT(
        dataset_build(&dataset, &source, first, count, options->batch, labels, options->labels));
    MSC_TRY_OUT(has_next ? take_next(dataset, &source) : MSC_OK);
    *out = dataset;
    dataset = NULL;
out:
    msc_dataset_destroy(dataset);
    msc_array_release(labels);
    msc_source__finish(&source);
    return status;
}

enum msc_status msc_dataset_create(struct msc_dataset **out, const struct msc_input_spec specs[],
                                   struct msc_array *const arrays[], size_t n_specs,
                                   const struct msc_array *labels, int64_t batch) {
    struct msc_source source;
    enum msc_status status = msc_source__from_arrays(&source, specs, arrays, n_specs);
    if (status == MSC_OK) {
        status = dataset_build(out, &source, 0, source.n, batch, labels, source.path);
    }
    msc_source__finish(&source);
    return status;
}

static enum msc_status take_whole(struct msc_array **out, const struct msc_input_spec *spec,
                                  const struct msc_array *array) {
    bool fits = array && msc_array_n_dims(array) == spec->n_dims;
    for (int i = 0; fits && i < spec->n_dims; i++) {
        fits = spec->dims[i] < 0 || msc_array_dim(array, i) == spec->dims[i];
    }
    const char *place = spec->place ? spec->place : "dataset";
    return fits ? msc_mismatch__convert(out, spec, array, place)
                : msc_mismatch__fail(spec, array, place, NULL);
}

static enum msc_status build_whole(struct msc_dataset *dataset, const struct msc_input_spec specs[],
                                   const struct msc_array *const arrays[], size_t n_specs) {
    dataset->inputs = msc_alloc_zero(n_specs + 1, sizeof dataset->inputs[0]);
    if (!dataset->inputs) {
        return MSC_FAIL(MSC_E_NOMEM, "not enough memory for a dataset");
    }
    dataset->n_batches = 1;
    dataset->n_samples = 1;
    for (size_t i = 0; i < n_specs; i++) {
        struct msc_dataset_input *input = &dataset->inputs[dataset->n_inputs++];
        input->is_batched = specs[i].is_batched;
        input->axis = specs[i].axis;
        input->name = msc_strdup(specs[i].name);
        input->batches = msc_alloc_zero(1, sizeof input->batches[0]);
        if (!input->name || !input->batches) {
            return MSC_FAIL(MSC_E_NOMEM, "not enough memory for a dataset");
        }
        MSC_TRY(take_whole(&input->batches[0], &specs[i], arrays[i]));
        if (input->is_batched && msc_array_dim(arrays[i], input->axis) > dataset->n_samples) {
            dataset->n_samples = msc_array_dim(arrays[i], input->axis);
        }
    }
    dataset->batch = dataset->n_samples;
    return MSC_OK;
}

enum msc_status msc_dataset_create_whole(struct msc_dataset **out,
                                         const struct msc_input_spec specs[],
                                         const struct msc_array *const arrays[], size_t n_specs) {
    struct msc_dataset *dataset = msc_alloc_zero(1, sizeof *dataset);
    if (!dataset) {
        return MSC_FAIL(MSC_E_NOMEM, "not enough memory for a dataset");
    }
    enum msc_status status = build_whole(dataset, specs, arrays, n_specs);
    if (status != MSC_OK) {
        msc_dataset_destroy(dataset);
        return status;
    }
    *out = dataset;
    return MSC_OK;
}

// ---- Parts ------------------------------------------------------------------------------------

// Joins samples [first, first + n) of an input. The samples may span several batches.
static enum msc_status join_samples(struct msc_array **out, const struct msc_dataset *from,
                                    const struct msc_dataset_input *input, int64_t first,
                                    int64_t n) {
    const struct msc_array *like = input->batches[first / from->batch];
    int64_t dims[MSC_MAX_DIMS];
    memcpy(dims, msc_array_dims(like), (size_t)msc_array_n_dims(like) * sizeof dims[0]);
    dims[input->axis] = n;
    MSC_TRY(msc_array_create(out, msc_array_dtype(like), msc_array_n_dims(like), dims));
    for (int64_t i = first; i < first + n; i++) {
        msc_array_place(*out, i - first, input->batches[i / from->batch], input->axis,
                        i % from->batch, 1);
    }
    return MSC_OK;
}

static enum msc_status take_part(struct msc_dataset *part, size_t i, const struct msc_dataset *from,
                                 int64_t first) {
    const struct msc_dataset_input *source = &from->inputs[i];
    struct msc_dataset_input *input = &part->inputs[i];
    *input = (struct msc_dataset_input){.is_batched = source->is_batched,
                                        .axis = source->axis,
                                        .form = source->form,
                                        .state = source->state};
    input->name = msc_strdup(source->name);
    input->batches = msc_alloc_zero(part->n_batches, sizeof input->batches[0]);
    if (!input->name || !input->batches) {
        return MSC_FAIL(MSC_E_NOMEM, "not enough memory for a part of a dataset");
    }
    for (size_t b = 0; b < part->n_batches; b++) {
        int64_t at = first + (int64_t)b * part->batch;
        int64_t n = msc_dataset_batch_samples(part, b);
        size_t whole = (size_t)(at / from->batch);
        if (at % from->batch == 0 && n == msc_dataset_batch_samples(from, whole)) {
            input->batches[b] = msc_array_retain(source->batches[whole]);
        } else {
            MSC_TRY(join_samples(&input->batches[b], from, source, at, n));
        }
    }
    return MSC_OK;
}

enum msc_status msc_dataset_create_part(struct msc_dataset **out, const struct msc_dataset *from,
                                        int64_t first, int64_t n) {
    bool cuts = from->is_sequence &&
                (first % from->batch != 0 || (n % from->batch != 0 && first + n < from->n_samples));
    if (first < 0 || n < 1 || first + n > from->n_samples || cuts) {
        return MSC_FAIL(MSC_E_INVALID,
                        "samples %" PRId64 " to %" PRId64 " cannot be taken from %" PRId64
                        " in %s of %" PRId64,
                        first, first + n, from->n_samples,
                        from->is_sequence ? "sequences" : "batches", from->batch);
    }
    struct msc_dataset *part = msc_alloc_zero(1, sizeof *part);
    if (!part) {
        return MSC_FAIL(MSC_E_NOMEM, "not enough memory for a part of a dataset");
    }
    enum msc_status status = MSC_OK;
    part->n_samples = n;
    part->batch = from->batch;
    part->is_sequence = from->is_sequence;
    part->has_next = from->has_next;
    part->ids = from->ids;
    part->n_batches = (size_t)((n - 1) / from->batch + 1);
    part->inputs = msc_alloc_zero(from->n_inputs + 1, sizeof part->inputs[0]);
    if (!part->inputs) {
        status = MSC_FAIL(MSC_E_NOMEM, "not enough memory for a part of a dataset");
        goto out;
    }
    part->n_inputs = from->n_inputs;
    for (size_t i = 0; i < part->n_inputs; i++) {
        MSC_TRY_OUT(take_part(part, i, from, first));
    }
    if (from->labels) {
        MSC_TRY_OUT(msc_array_rows(&part->labels, from->labels, first, n));
    }
    part->hash = msc_dataset__hash(part);
    *out = part;
    part = NULL;
out:
    msc_dataset_destroy(part);
    return status;
}

int64_t msc_dataset_n_samples(const struct msc_dataset *dataset) {
    return dataset->n_samples;
}

int64_t msc_dataset_batch_size(const struct msc_dataset *dataset) {
    return dataset->batch;
}

size_t msc_dataset_n_inputs(const struct msc_dataset *dataset) {
    return dataset->n_inputs;
}

size_t msc_dataset_n_batches(const struct msc_dataset *dataset) {
    return dataset->n_batches;
}

int64_t msc_dataset_batch_samples(const struct msc_dataset *dataset, size_t b) {
    assert(b < dataset->n_batches);
    int64_t left = dataset->n_samples - (int64_t)b * dataset->batch;
    return left < dataset->batch ? left : dataset->batch;
}

const struct msc_array *msc_dataset_batch(const struct msc_dataset *dataset, size_t b,
                                          size_t input) {
    assert(b < dataset->n_batches && input < dataset->n_inputs);
    return dataset->inputs[input].batches[b];
}

void msc_dataset_range(double *min, double *max, const struct msc_dataset *dataset, size_t input) {
    assert(input < dataset->n_inputs);
    bool is_first = true;
    *min = 0.0;
    *max = 0.0;
    for (size_t b = 0; b < dataset->n_batches; b++) {
        struct msc_range range;
        msc_range__scan(&range, dataset->inputs[input].batches[b]);
        if (range.n_finite > 0) {
            *min = is_first || range.min < *min ? range.min : *min;
            *max = is_first || range.max > *max ? range.max : *max;
            is_first = false;
        }
    }
}

enum msc_input_form msc_dataset_form(const struct msc_dataset *dataset, size_t input) {
    assert(input < dataset->n_inputs);
    return dataset->inputs[input].form;
}

bool msc_dataset_is_sequence(const struct msc_dataset *dataset) {
    return dataset->is_sequence;
}

const char *msc_dataset_state(const struct msc_dataset *dataset, size_t input) {
    assert(input < dataset->n_inputs);
    return dataset->inputs[input].state;
}

enum msc_status msc_dataset_chunk(struct msc_array **out, const struct msc_dataset *dataset,
                                  size_t b, size_t input, int64_t chunk) {
    const struct msc_array *batch = msc_dataset_batch(dataset, b, input);
    if (msc_dataset_form(dataset, input) != MSC_INPUT_CHUNKS) {
        *out = msc_array_retain(batch);
        return MSC_OK;
    }
    assert(chunk < msc_array_dim(batch, 0));
    size_t n_bytes = msc_array_n_bytes(batch) / (size_t)msc_array_dim(batch, 0);
    const char *data = msc_array_data(batch);
    return msc_array_create_from(out, msc_array_dtype(batch), msc_array_n_dims(batch) - 1,
                                 msc_array_dims(batch) + 1,
                                 data ? data + (size_t)chunk * n_bytes : NULL);
}

enum msc_status msc_dataset_first_sample(struct msc_array **out, const struct msc_dataset *dataset,
                                         size_t b, size_t input) {
    const struct msc_array *rows = msc_dataset_batch(dataset, b, input);
    if (msc_dataset_is_sequence(dataset) || msc_dataset_batch_samples(dataset, b) == 1) {
        return msc_dataset_chunk(out, dataset, b, input, 0);
    }
    return msc_array_slice(out, rows, dataset->inputs[input].axis, 0, 1);
}

bool msc_dataset_has_labels(const struct msc_dataset *dataset) {
    return dataset->labels != NULL;
}

int64_t msc_dataset_label(const struct msc_dataset *dataset, int64_t sample) {
    assert(dataset->labels);
    return msc_array_get_i64(dataset->labels, sample);
}

bool msc_dataset_has_next(const struct msc_dataset *dataset) {
    return dataset->has_next;
}

// The batch of token ids that has a sample, [samples, ids].
static const struct msc_array *token_batch(const struct msc_dataset *dataset, int64_t sample) {
    assert(dataset->has_next);
    return msc_dataset_batch(dataset, (size_t)(sample / dataset->batch), dataset->ids);
}

int64_t msc_dataset_n_tokens(const struct msc_dataset *dataset, int64_t sample) {
    return msc_array_dim(token_batch(dataset, sample), 1);
}

int64_t msc_dataset_token(const struct msc_dataset *dataset, int64_t sample, int64_t position) {
    int64_t row = sample % dataset->batch;
    return msc_array_get_i64(token_batch(dataset, sample),
                             row * msc_dataset_n_tokens(dataset, sample) + position);
}

struct msc_hash msc_dataset_hash(const struct msc_dataset *dataset) {
    return dataset->hash;
}
