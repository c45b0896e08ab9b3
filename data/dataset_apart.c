// Finds samples of one dataset that another dataset lacks, and datasets whose samples are all
// equal.
#include "data/dataset_internal.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

// ---- One sample, or sequence ------------------------------------------------------------------

// A unit is a sample, or a whole batch if samples form sequences.
static size_t n_units(const struct msc_dataset *d) {
    return d->is_sequence ? d->n_batches : (size_t)d->n_samples;
}

static int64_t unit_samples(const struct msc_dataset *d, size_t unit) {
    return d->is_sequence ? msc_dataset_batch_samples(d, unit) : 1;
}

// The part of an input that belongs to one unit. Inputs of sequences are not batched.
static struct msc_dataset_sample piece_of(const struct msc_dataset *d, size_t input, size_t unit) {
    size_t b = d->is_sequence ? unit : unit / (size_t)d->batch;
    return msc_dataset__sample(d, input, b,
                               d->is_sequence ? 0 : (int64_t)(unit % (size_t)d->batch));
}

// Hashes floats; positive and negative zero have equal hashes.
static struct msc_hash hash_floats(struct msc_hash h, const float x[], size_t n) {
    float block[256];
    for (size_t i = 0; i < n; i += 256) {
        size_t count = n - i < 256 ? n - i : 256;
        for (size_t k = 0; k < count; k++) {
            block[k] = x[i + k] == 0.0f ? 0.0f : x[i + k];
        }
        h = msc_hash_add_bytes(h, block, count * sizeof block[0]);
    }
    return h;
}

static struct msc_hash hash_unit(const struct msc_dataset *d, size_t unit) {
    struct msc_hash h = msc_hash_bytes(NULL, 0);
    for (size_t i = 0; i < d->n_inputs; i++) {
        struct msc_dataset_sample p = piece_of(d, i, unit);
        h = msc_hash_add_text(h, msc_dtype_name(msc_array_dtype(p.batch)));
        for (int axis = 0; axis < msc_array_n_dims(p.batch); axis++) {
            h = axis == p.axis ? h : msc_hash_add_u64(h, (uint64_t)msc_array_dim(p.batch, axis));
        }
        for (size_t k = 0; k < p.n_blocks; k++) {
            const char *data = p.data ? p.data + k * p.stride : NULL;
            h = msc_array_dtype(p.batch) == MSC_DTYPE_F32
                    ? hash_floats(h, (const float *)data, p.n_bytes / sizeof(float))
                    : msc_hash_add_bytes(h, data, p.n_bytes);
        }
    }
    return h;
}

static int compare_hashes(const void *a, const void *b) {
    const struct msc_hash *x = a, *y = b;
    return x->high != y->high ? (x->high > y->high) - (x->high < y->high)
                              : (x->low > y->low) - (x->low < y->low);
}

bool msc_dataset_is_constant(const struct msc_dataset *d) {
    struct msc_hash first = hash_unit(d, 0);
    bool is_constant = n_units(d) > 1;
    for (size_t u = 1; is_constant && u < n_units(d); u++) {
        is_constant = msc_hash_equal(first, hash_unit(d, u));
    }
    return is_constant;
}

// ---- The remaining units ----------------------------------------------------------------------

// True if all remaining units have the shapes of the first one.
static bool are_shapes_equal(const struct msc_dataset *from, const size_t left[], size_t n) {
    for (size_t i = 0; i < from->n_inputs; i++) {
        struct msc_dataset_sample first = piece_of(from, i, left[0]);
        for (size_t u = 1; u < n; u++) {
            struct msc_dataset_sample p = piece_of(from, i, left[u]);
            if (msc_array_n_dims(p.batch) != msc_array_n_dims(first.batch)) {
                return false;
            }
            for (int k = 0; k < msc_array_n_dims(p.batch); k++) {
                if (k != p.axis && msc_array_dim(p.batch, k) != msc_array_dim(first.batch, k)) {
                    return false;
                }
            }
        }
    }
    return true;
}

// Joins units left[0 … n - 1] of an input into one batch. If the input has no rows, keeps its
// single array.
static enum msc_status join_units(struct msc_array **out, const struct msc_dataset *from,
                                  size_t input, const size_t left[], size_t n) {
    struct msc_dataset_sample first = piece_of(from, input, left[0]);
    int64_t dims[MSC_MAX_DIMS];
    if (first.axis < 0) {
        *out = msc_array_retain(first.batch);
        return MSC_OK;
    }
    memcpy(dims, msc_array_dims(first.batch),
           (size_t)msc_array_n_dims(first.batch) * sizeof dims[0]);
    dims[first.axis] = (int64_t)n;
    MSC_TRY(
        msc_array_create(out, msc_array_dtype(first.batch), msc_array_n_dims(first.batch), dims));
    for (size_t u = 0; u < n; u++) {
        struct msc_dataset_sample p = piece_of(from, input, left[u]);
        msc_array_place(*out, (int64_t)u, p.batch, p.axis, (int64_t)(left[u] % (size_t)from->batch),
                        1);
    }
    return MSC_OK;
}

static enum msc_status fill_apart_input(struct msc_dataset *d, size_t i,
                                        const struct msc_dataset *from, const size_t left[],
                                        size_t n) {
    const struct msc_dataset_input *source = &from->inputs[i];
    struct msc_dataset_input *input = &d->inputs[i];
    *input = (struct msc_dataset_input){.is_batched = source->is_batched,
                                        .axis = source->axis,
                                        .form = source->form,
                                        .state = source->state};
    input->name = msc_strdup(source->name);
    input->batches = msc_alloc_zero(d->n_batches, sizeof(input->batches[0]));
    MSC_TRY(MSC_ALLOCATED(input->name && input->batches));
    size_t in_batch = d->is_sequence ? 1 : (size_t)d->batch;
    for (size_t b = 0; b < d->n_batches; b++) {
        size_t at = b * in_batch, count = n - at < in_batch ? n - at : in_batch;
        MSC_TRY(join_units(&input->batches[b], from, i, left + at, count));
    }
    return MSC_OK;
}

static enum msc_status take_apart_labels(struct msc_dataset *d, const struct msc_dataset *from,
                                         const size_t left[], size_t n) {
    if (!from->labels) {
        return MSC_OK;
    }
    MSC_TRY(msc_array_create(&d->labels, MSC_DTYPE_I64, 1, &d->n_samples));
    int64_t *to = msc_array_data(d->labels);
    for (size_t u = 0; u < n; u++) {
        int64_t first = (int64_t)left[u] * (d->is_sequence ? from->batch : 1);
        for (int64_t k = 0; k < unit_samples(from, left[u]); k++) {
            *to++ = msc_dataset_label(from, first + k);
        }
    }
    return MSC_OK;
}

static enum msc_status build_apart(struct msc_dataset **out, const struct msc_dataset *from,
                                   const size_t left[], size_t n) {
    struct msc_dataset *d = msc_alloc_zero(1, sizeof *d);
    enum msc_status status = MSC_ALLOCATED(d);
    MSC_TRY(status);
    for (size_t u = 0; u < n; u++) {
        d->n_samples += unit_samples(from, left[u]);
    }
    d->is_sequence = from->is_sequence;
    d->has_next = from->has_next;
    d->ids = from->ids;
    d->batch = from->is_sequence || are_shapes_equal(from, left, n) ? from->batch : 1;
    d->n_batches = (size_t)((d->n_samples - 1) / d->batch + 1);
    d->inputs = msc_alloc_zero(from->n_inputs + 1, sizeof d->inputs[0]);
    MSC_TRY_OUT(MSC_ALLOCATED(d->inputs));
    d->n_inputs = from->n_inputs;
    for (size_t i = 0; i < d->n_inputs; i++) {
        MSC_TRY_OUT(fill_apart_input(d, i, from, left, n));
    }
    MSC_TRY_OUT(take_apart_labels(d, from, left, n));
    d->hash = msc_dataset__hash(d);
    *out = d;
    d = NULL;
out:
    msc_dataset_destroy(d);
    return status;
}

enum msc_status msc_dataset_create_apart(struct msc_dataset **out, int64_t *n_shared,
                                         const struct msc_dataset *from,
                                         const struct msc_dataset *other) {
    size_t n_other = n_units(other), n_left = 0;
    struct msc_hash *hashes = msc_alloc_zero(n_other + 1, sizeof hashes[0]);
    size_t *left = msc_alloc_zero(n_units(from) + 1, sizeof left[0]);
    enum msc_status status = MSC_ALLOCATED(hashes && left);
    *out = NULL;
    *n_shared = 0;
    for (size_t u = 0; status == MSC_OK && u < n_other; u++) {
        hashes[u] = hash_unit(other, u);
    }
    if (status == MSC_OK) {
        qsort(hashes, n_other, sizeof hashes[0], compare_hashes);
    }
    for (size_t u = 0; status == MSC_OK && u < n_units(from); u++) {
        struct msc_hash h = hash_unit(from, u);
        bool is_shared = bsearch(&h, hashes, n_other, sizeof hashes[0], compare_hashes) != NULL;
        *n_shared += is_shared ? unit_samples(from, u) : 0;
        left[n_left] = u;
        n_left += !is_shared;
    }
    if (status == MSC_OK && *n_shared > 0 && n_left > 0) {
        status = build_apart(out, from, left, n_left);
    }
    msc_free(hashes);
    msc_free(left);
    return status;
}
