#include "model/runtime_samples.h"

#include "data/npy.h"
#include "graph/graph.h"

#include <string.h>

// Batches [first, end) that go into one file.
struct span {
    size_t first, end;
};

// True if an axis of the input counts samples.
static bool has_rows(const struct msc_input_spec *spec) {
    return spec->is_batched;
}

// True if both batches fit in one array: their samples have the same shapes.
static bool can_follow(const struct msc_dataset *d, const struct msc_input_spec specs[], size_t a,
                       size_t b) {
    for (size_t i = 0; i < msc_dataset_n_inputs(d); i++) {
        const struct msc_array *x = msc_dataset_batch(d, a, i);
        const struct msc_array *y = msc_dataset_batch(d, b, i);
        if (msc_array_n_dims(y) != msc_array_n_dims(x)) {
            return false;
        }
        for (int k = 0; k < msc_array_n_dims(x); k++) {
            bool is_samples = has_rows(&specs[i]) && k == specs[i].axis;
            if (!is_samples && msc_array_dim(x, k) != msc_array_dim(y, k)) {
                return false;
            }
        }
    }
    return true;
}

// Batches from `first` on that fit in one file; only the last may be shorter than the batch size.
static struct span next_span(const struct msc_dataset *d, const struct msc_input_spec specs[],
                             size_t first) {
    struct span span = {first, first + 1};
    while (span.end < msc_dataset_n_batches(d) &&
           msc_dataset_batch_samples(d, span.end - 1) == msc_dataset_batch_size(d) &&
           can_follow(d, specs, first, span.end)) {
        span.end++;
    }
    return span;
}

// Joins the batches of an input along its sample axis, or along a new first axis.
static enum msc_status join_batches(struct msc_array **out, const struct msc_dataset *d,
                                    const struct msc_input_spec *spec, size_t input,
                                    struct span span) {
    const struct msc_array *first = msc_dataset_batch(d, span.first, input);
    int64_t dims[MSC_MAX_DIMS + 1];
    int n_dims = msc_array_n_dims(first);
    int n_new = has_rows(spec) ? 0 : 1;
    int axis = n_new ? 0 : spec->axis;
    int64_t n_rows = 0, at = 0;
    for (size_t b = span.first; b < span.end; b++) {
        n_rows += n_new ? 1 : msc_array_dim(msc_dataset_batch(d, b, input), axis);
    }
    if (n_dims + n_new > MSC_MAX_DIMS) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "input %s has too many dimensions for a list of samples",
                        spec->name);
    }
    for (int i = 0; i < n_dims; i++) {
        dims[n_new + i] = msc_array_dims(first)[i];
    }
    dims[axis] = n_rows;
    MSC_TRY(msc_array_create(out, msc_array_dtype(first), n_dims + n_new, dims));
    char *to = msc_array_data(*out);
    for (size_t b = span.first; b < span.end; b++) {
        const struct msc_array *part = msc_dataset_batch(d, b, input);
        if (n_new) {
            memcpy(to, msc_array_data(part), msc_array_n_bytes(part));
            to += msc_array_n_bytes(part);
        } else {
            int64_t n = msc_array_dim(part, axis);
            msc_array_place(*out, at, part, axis, 0, n);
            at += n;
        }
    }
    return MSC_OK;
}

static enum msc_status take_input(struct msc_array **out, const struct msc_dataset *d,
                                  const struct msc_input_spec *spec, size_t input,
                                  struct span span) {
    return msc_dataset_is_sequence(d) ? msc_dataset_chunk(out, d, span.first, input, 0)
                                      : join_batches(out, d, spec, input, span);
}

static enum msc_status write_span(const char *path, const struct msc_dataset *d,
                                  const struct msc_input_spec specs[], struct span span) {
    struct msc_array_list list = {0};
    enum msc_status status = MSC_OK;
    for (size_t i = 0; status == MSC_OK && i < msc_dataset_n_inputs(d); i++) {
        struct msc_array *array = NULL;
        status = take_input(&array, d, &specs[i], i, span);
        if (status == MSC_OK) {
            status = msc_array_list_add(&list, specs[i].name, array);
        }
        msc_array_release(array);
    }
    if (status == MSC_OK) {
        status = msc_npz_save(path, &list);
    }
    msc_array_list_finish(&list);
    return status;
}

static enum msc_status write_next(struct msc_runtime_samples *out, struct msc_arena *arena,
                                  const struct msc_dataset *d, const struct msc_input_spec specs[],
                                  const char *folder, const char *name, struct span span) {
    const char *path = msc_arena_printf(arena, "%s/%s_%zu.npz", folder, name, out->n);
    MSC_TRY(MSC_ALLOCATED(path));
    out->paths[out->n++] = path;
    return write_span(path, d, specs, span);
}

static enum msc_status begin_samples(struct msc_runtime_samples *out, struct msc_arena *arena,
                                     const struct msc_dataset *d,
                                     const struct msc_input_spec specs[], size_t most) {
    size_t n_inputs = msc_dataset_n_inputs(d);
    *out = (struct msc_runtime_samples){
        .paths = msc_arena_array(arena, most, sizeof out->paths[0]),
        .batch = msc_dataset_batch_size(d),
        .axes = msc_arena_array(arena, n_inputs + 1, sizeof out->axes[0]),
    };
    MSC_TRY(MSC_ALLOCATED(out->paths && out->axes));
    for (size_t i = 0; i < n_inputs && !msc_dataset_is_sequence(d); i++) {
        if (has_rows(&specs[i])) {
            out->axes[out->n_axes++] = (struct msc_binding){specs[i].name, specs[i].axis};
        }
    }
    return MSC_OK;
}

enum msc_status msc_runtime_samples_write(struct msc_runtime_samples *out, struct msc_arena *arena,
                                          const struct msc_dataset *dataset,
                                          const struct msc_input_spec specs[], const char *folder,
                                          const char *name) {
    size_t n_batches = msc_dataset_n_batches(dataset);
    MSC_TRY(begin_samples(out, arena, dataset, specs, n_batches));
    for (struct span span = {0, 0}; span.end < n_batches;) {
        span = next_span(dataset, specs, span.end);
        MSC_TRY(write_next(out, arena, dataset, specs, folder, name, span));
    }
    return MSC_OK;
}

enum msc_status msc_runtime_samples_write_first(struct msc_runtime_samples *out,
                                                struct msc_arena *arena,
                                                const struct msc_dataset *dataset,
                                                const struct msc_input_spec specs[],
                                                const char *folder, const char *name) {
    MSC_TRY(begin_samples(out, arena, dataset, specs, 1));
    return write_next(out, arena, dataset, specs, folder, name, (struct span){0, 1});
}
