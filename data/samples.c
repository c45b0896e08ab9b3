#include "data/samples.h"

#include "base/alloc.h"
#include "data/mismatch.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

// Do all dims fit, except the one of `skip`? -1: none is skipped.
static bool dims_fit(int n_dims, const int64_t expected[], const int64_t found[], int skip) {
    for (int i = 0; i < n_dims; i++) {
        if (i != skip && expected[i] >= 0 && expected[i] != found[i]) {
            return false;
        }
    }
    return true;
}

// Finds how the array holds samples. False if the shape does not fit.
static bool find_form(enum msc_samples_form *out, const struct msc_input_spec *spec,
                      const struct msc_array *array) {
    int n_dims = msc_array_n_dims(array);
    const int64_t *dims = msc_array_dims(array);
    if (spec->state && n_dims == spec->n_dims) { // a single value for all sequences
        *out = MSC_SAMPLES_SHARED;
        return dims_fit(n_dims, spec->dims, dims, -1);
    }
    bool has_rows = spec->n_dims > 0 && (spec->is_batched || spec->dims[0] == 1);
    if (n_dims == spec->n_dims && has_rows) {
        *out = MSC_SAMPLES_ROWS;
        return dims_fit(n_dims, spec->dims, dims, spec->is_batched ? spec->axis : 0);
    }
    if (n_dims == spec->n_dims && !spec->is_batched) {
        *out = MSC_SAMPLES_SHARED;
        return dims_fit(n_dims, spec->dims, dims, -1);
    }
    if (n_dims == spec->n_dims + 1 && !spec->is_batched) {
        *out = MSC_SAMPLES_STACKED;
        return dims_fit(spec->n_dims, spec->dims, dims + 1, -1);
    }
    return false;
}

static bool part_fits(const struct msc_input_spec *spec, const struct msc_array *array) {
    if (msc_array_n_dims(array) != spec->n_dims) {
        return false;
    }
    const int64_t *dims = msc_array_dims(array);
    if (!spec->is_batched) {
        return dims_fit(spec->n_dims, spec->dims, dims, -1);
    }
    return dims[spec->axis] == 1 && dims_fit(spec->n_dims, spec->dims, dims, spec->axis);
}

static enum msc_status check_values(const struct msc_array *converted,
                                    const struct msc_array *array,
                                    const struct msc_input_spec *spec, const char *place) {
    if (!msc_dtype_is_float(spec->dtype)) {
        return MSC_OK;
    }
    struct msc_range range, before;
    msc_range__scan(&range, converted);
    if (converted != array && range.n_infinite > 0) {
        msc_range__scan(&before, array);
        if (before.n_infinite != range.n_infinite) {
            return msc_mismatch__fail(spec, array, place,
                                      "some values are too large for the input; scale them as in "
                                      "training");
        }
    }
    return MSC_OK;
}

// Converts `array` to the input's element type and stores it.
static enum msc_status add_array(struct msc_samples *samples, const struct msc_input_spec *spec,
                                 const struct msc_array *array, const char *place) {
    struct msc_array *converted = NULL;
    MSC_TRY(msc_mismatch__convert(&converted, spec, array, place));
    enum msc_status status = check_values(converted, array, spec, place);
    if (status == MSC_OK) {
        status = msc_grow(&samples->arrays, &samples->capacity, samples->n_arrays + 1,
                          sizeof samples->arrays[0]);
    }
    if (status != MSC_OK) {
        msc_array_release(converted);
        return status;
    }
    samples->arrays[samples->n_arrays++] = converted;
    return MSC_OK;
}

enum msc_status msc_samples__from_array(struct msc_samples *out, const struct msc_input_spec *spec,
                                        const struct msc_array *array, const char *place) {
    if (!find_form(&out->form, spec, array)) {
        return msc_mismatch__fail(spec, array, place, NULL);
    }
    MSC_TRY(add_array(out, spec, array, place));
    out->axis = out->form == MSC_SAMPLES_ROWS && spec->is_batched ? spec->axis : 0;
    out->n = out->form == MSC_SAMPLES_SHARED ? 1 : msc_array_dim(array, out->axis);
    return MSC_OK;
}

enum msc_status msc_samples__add_part(struct msc_samples *samples,
                                      const struct msc_input_spec *spec,
                                      const struct msc_array *array, const char *place) {
    samples->form = MSC_SAMPLES_PARTS;
    samples->axis = spec->is_batched ? spec->axis : 0;
    if (!part_fits(spec, array)) {
        return msc_mismatch__fail(spec, array, place, NULL);
    }
    MSC_TRY(add_array(samples, spec, array, place));
    samples->n++;
    return MSC_OK;
}

void msc_samples__finish(struct msc_samples *samples) {
    for (size_t i = 0; i < samples->n_arrays; i++) {
        msc_array_release(samples->arrays[i]);
    }
    msc_free(samples->arrays);
    *samples = (struct msc_samples){0};
}

static enum msc_status unstack(struct msc_array **out, const struct msc_array *array, int64_t i) {
    size_t sample_bytes = msc_array_n_bytes(array) / (size_t)msc_array_dim(array, 0);
    const char *data = msc_array_data(array);
    return msc_array_create_from(out, msc_array_dtype(array), msc_array_n_dims(array) - 1,
                                 msc_array_dims(array) + 1,
                                 data ? data + (size_t)i * sample_bytes : NULL);
}

// Joins parts of equal shape along the axis of samples.
static enum msc_status join_parts(struct msc_array **out, const struct msc_samples *samples,
                                  int64_t first, int64_t count, const struct msc_input_spec *spec,
                                  const char *place) {
    struct msc_array *const *parts = samples->arrays;
    const struct msc_array *model = parts[first];
    int n_dims = msc_array_n_dims(model);
    int64_t dims[MSC_MAX_DIMS];
    memcpy(dims, msc_array_dims(model), sizeof dims);
    for (int64_t i = first + 1; i < first + count; i++) {
        if (memcmp(msc_array_dims(parts[i]), dims, (size_t)n_dims * sizeof dims[0]) != 0) {
            char a[MSC_DIMS_TEXT_BYTES], b[MSC_DIMS_TEXT_BYTES];
            return MSC_FAIL(MSC_E_INVALID,
                            "%s: input \"%s\": sample %" PRId64 " is %s, sample %" PRId64 " is %s; "
                            "set \"batch\" to 1 for samples of different shapes, or give them one "
                            "size",
                            place, spec->name, first, msc_dims_format(a, n_dims, dims), i,
                            msc_dims_format(b, n_dims, msc_array_dims(parts[i])));
        }
    }
    dims[samples->axis] = count;
    MSC_TRY(msc_array_create(out, msc_array_dtype(model), n_dims, dims));
    for (int64_t i = 0; i < count; i++) {
        msc_array_place(*out, i, parts[first + i], samples->axis, 0, 1);
    }
    return MSC_OK;
}

enum msc_status msc_samples__batch(struct msc_array **out, const struct msc_samples *samples,
                                   int64_t first, int64_t count, const struct msc_input_spec *spec,
                                   const char *place) {
    switch (samples->form) {
    case MSC_SAMPLES_ROWS:
        return msc_array_slice(out, samples->arrays[0], samples->axis, first, count);
    case MSC_SAMPLES_STACKED:
        assert(count == 1);
        return unstack(out, samples->arrays[0], first);
    case MSC_SAMPLES_SHARED:
        *out = msc_array_retain(samples->arrays[0]);
        return MSC_OK;
    case MSC_SAMPLES_PARTS:
        break;
    }
    if (count == 1) {
        *out = msc_array_retain(samples->arrays[first]);
        return MSC_OK;
    }
    return join_parts(out, samples, first, count, spec, place);
}

// ---- Sequences --------------------------------------------------------------------------------

// With MSC_SAMPLES_ROWS, a sample keeps its first axis of length 1.
enum msc_status msc_samples__chunks(struct msc_array **out, const struct msc_samples *samples,
                                    int64_t first, int64_t count, const struct msc_input_spec *spec,
                                    const char *place) {
    if (samples->form == MSC_SAMPLES_SHARED) {
        *out = msc_array_retain(samples->arrays[0]);
        return MSC_OK;
    }
    bool is_parts = samples->form == MSC_SAMPLES_PARTS;
    const struct msc_array *model = samples->arrays[is_parts ? first : 0];
    int skip = samples->form == MSC_SAMPLES_STACKED ? 1 : 0;
    int n_dims = msc_array_n_dims(model) + 1 - skip;
    int64_t dims[MSC_MAX_DIMS + 1] = {count};
    memcpy(dims + 1, msc_array_dims(model) + skip, (size_t)(n_dims - 1) * sizeof dims[0]);
    if (samples->form == MSC_SAMPLES_ROWS) {
        dims[1] = 1;
    }
    MSC_TRY(msc_array_create(out, msc_array_dtype(model), n_dims, dims));
    size_t n_bytes = msc_array_n_bytes(*out) / (size_t)count;
    for (int64_t i = 0; i < count && n_bytes > 0; i++) {
        const struct msc_array *part = samples->arrays[is_parts ? first + i : 0];
        bool fits = !is_parts || (msc_array_n_dims(part) == n_dims - 1 &&
                                  memcmp(msc_array_dims(part), dims + 1,
                                         (size_t)(n_dims - 1) * sizeof dims[0]) == 0);
        if (!fits) {
            char a[MSC_DIMS_TEXT_BYTES], b[MSC_DIMS_TEXT_BYTES];
            msc_array_release(*out);
            *out = NULL;
            return MSC_FAIL(MSC_E_INVALID,
                            "%s: input \"%s\": chunk %" PRId64 " is %s, chunk %" PRId64
                            " is %s; all chunks of a sequence need one shape",
                            place, spec->name, first, msc_dims_format(a, n_dims - 1, dims + 1),
                            first + i,
                            msc_dims_format(b, msc_array_n_dims(part), msc_array_dims(part)));
        }
        memcpy((char *)msc_array_data(*out) + (size_t)i * n_bytes,
               (const char *)msc_array_data(part) + (is_parts ? 0 : (size_t)(first + i) * n_bytes),
               n_bytes);
    }
    return MSC_OK;
}

enum msc_status msc_samples__state(struct msc_array **out, const struct msc_samples *samples,
                                   int64_t first) {
    switch (samples->form) {
    case MSC_SAMPLES_ROWS:
        return msc_array_rows(out, samples->arrays[0], first, 1);
    case MSC_SAMPLES_STACKED:
        return unstack(out, samples->arrays[0], first);
    case MSC_SAMPLES_SHARED:
        *out = msc_array_retain(samples->arrays[0]);
        return MSC_OK;
    case MSC_SAMPLES_PARTS:
        break;
    }
    *out = msc_array_retain(samples->arrays[first]);
    return MSC_OK;
}

enum msc_status msc_samples__zero_state(struct msc_samples *out,
                                        const struct msc_input_spec *spec) {
    int64_t dims[MSC_MAX_DIMS];
    for (int i = 0; i < spec->n_dims; i++) {
        dims[i] = spec->dims[i] < 0 ? 1 : spec->dims[i];
    }
    MSC_TRY(msc_grow(&out->arrays, &out->capacity, 1, sizeof out->arrays[0]));
    MSC_TRY(msc_array_create(&out->arrays[0], spec->dtype, spec->n_dims, dims));
    out->n_arrays = 1;
    out->n = 1;
    out->form = MSC_SAMPLES_SHARED;
    return MSC_OK;
}
