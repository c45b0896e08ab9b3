#include "data/source.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "data/npy_format.h"
#include "data/safetensors.h"
#include "data/safetensors_format.h"
#include "data/tokens.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

// ---- Arrays by name ---------------------------------------------------------------------------

// True if the array is one of NAME/0, NAME/1, ..., which hold one sample each.
static bool is_part(const struct msc_input_spec *spec, const char *name) {
    size_t n = strlen(spec->name);
    if (strncmp(name, spec->name, n) != 0 || name[n] != '/' || name[n + 1] == '\0') {
        return false;
    }
    const char *number = name + n + 1;
    return number[strspn(number, "0123456789")] == '\0';
}

// True for the arrays of the inputs. The only array of a file is taken, whatever its name is.
static bool takes_array(const struct msc_array_pick *pick, const char *name) {
    const struct msc_source *source = pick->context;
    for (size_t i = 0; i < source->n_specs; i++) {
        if (strcmp(name, source->specs[i].name) == 0 || is_part(&source->specs[i], name)) {
            return true;
        }
    }
    return pick->n_names == 1;
}

// Takes samples of different shapes: the arrays NAME/0, NAME/1, ... up to the last one. *found is
// true if there is any.
static enum msc_status take_parts(bool *found, struct msc_samples *out,
                                  const struct msc_input_spec *spec,
                                  const struct msc_array_list *list, const char *path) {
    struct msc_str name = {0};
    enum msc_status status = MSC_OK;
    const char *last = NULL;
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++) {
        if (is_part(spec, list->names[i])) {
            last = list->names[i];
            n++;
        }
    }
    *found = n > 0;
    for (size_t i = 0; i < n; i++) {
        msc_str_clear(&name);
        msc_str_printf(&name, "%s/%zu", spec->name, i);
        MSC_TRY_OUT(msc_str_status(&name));
        const struct msc_array *array = msc_array_list_find(list, msc_str_text(&name));
        if (!array) {
            status = MSC_FAIL(MSC_E_NOT_FOUND,
                              "%s: no array \"%s\" among the %zu samples of input \"%s\", but "
                              "\"%s\" exists; number them from 0, without a gap or leading zeros",
                              path, msc_str_text(&name), n, spec->name, last);
            goto out;
        }
        MSC_TRY_OUT(msc_samples__add_part(out, spec, array, path));
    }
out:
    msc_str_finish(&name);
    return status;
}

static enum msc_status fail_missing(const struct msc_input_spec *spec,
                                    const struct msc_array_pick *pick, const char *path) {
    const char *near = msc_suggest(spec->name, pick->names, pick->n_names);
    struct msc_str names = {0};
    for (size_t i = 0; i < pick->n_names && i < 8; i++) {
        msc_str_printf(&names, "%s\"%s\"", i ? ", " : "", pick->names[i]);
    }
    msc_str_append(&names, pick->n_names > 8 ? ", ..." : "");
    enum msc_status status =
        MSC_FAIL(MSC_E_NOT_FOUND,
                 "%s: no array for input \"%s\"; found %s%s%s%s; name each array after "
                 "its input",
                 path, spec->name, pick->n_names ? msc_str_text(&names) : "none",
                 near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
    msc_str_finish(&names);
    return status;
}

// The number of inputs for which samples must be given.
static size_t count_given(const struct msc_source *source) {
    size_t n = 0;
    for (size_t i = 0; i < source->n_specs; i++) {
        n += source->specs[i].state == NULL && !msc_tokens__is_made(source, i);
    }
    return n;
}

static enum msc_status take_list(struct msc_source *source, const struct msc_array_list *list,
                                 const struct msc_array_pick *pick) {
    size_t ids = msc_tokens__find(source->specs, source->n_specs);
    for (size_t i = 0; i < source->n_specs; i++) {
        const struct msc_input_spec *spec = &source->specs[i];
        const struct msc_array *array = msc_array_list_find(list, spec->name);
        if (!array) {
            bool found;
            MSC_TRY(take_parts(&found, &source->samples[i], spec, list, source->path));
            if (found) {
                continue;
            }
            if (msc_tokens__is_made(source, i)) {
                continue;
            }
            if (pick->n_names == 1 && count_given(source) == 1 && !spec->state) {
                array = list->arrays[0];
            }
        }
        if (!array && spec->state) {
            MSC_TRY(msc_samples__zero_state(&source->samples[i], spec));
            continue;
        }
        if (!array) {
            return fail_missing(spec, pick, source->path);
        }
        MSC_TRY(i == ids ? msc_tokens__take(source, i, array)
                         : msc_samples__from_array(&source->samples[i], spec, array, source->path));
    }
    return ids == MSC_TOKENS_NO_INPUT ? MSC_OK : msc_tokens__make(source, ids);
}

static enum msc_status open_named(struct msc_source *source,
                                  enum msc_status (*load)(struct msc_array_list *out,
                                                          struct msc_array_pick *pick,
                                                          const char *path)) {
    struct msc_array_list list = {0};
    struct msc_arena arena = {0};
    struct msc_array_pick pick = {.takes = takes_array, .context = source, .arena = &arena};
    enum msc_status status = load(&list, &pick, source->path);
    if (status == MSC_OK) {
        status = take_list(source, &list, &pick);
    }
    msc_array_list_finish(&list);
    msc_arena_finish(&arena);
    return status;
}

static enum msc_status open_npz(struct msc_source *source) {
    return open_named(source, msc_npz__load);
}

static enum msc_status open_safetensors(struct msc_source *source) {
    return open_named(source, msc_safetensors__load);
}

// ---- Files and folders ------------------------------------------------------------------------

static enum msc_status fail_single(const struct msc_source *source, const char *what) {
    return MSC_FAIL(MSC_E_INVALID,
                    "%s: the model has %zu inputs (\"%s\", \"%s\"%s), but %s holds samples for "
                    "one; save a .npz with an array for each input, named after it",
                    source->path, source->n_specs, source->specs[0].name, source->specs[1].name,
                    source->n_specs > 2 ? ", ..." : "", what);
}

static enum msc_status open_npy(struct msc_source *source) {
    size_t ids = msc_tokens__find(source->specs, source->n_specs);
    if (source->n_specs != 1 && ids == MSC_TOKENS_NO_INPUT) {
        return fail_single(source, "a .npy");
    }
    struct msc_array *array = NULL;
    MSC_TRY(msc_npy_load(&array, source->path));
    enum msc_status status =
        ids == MSC_TOKENS_NO_INPUT
            ? msc_samples__from_array(&source->samples[0], &source->specs[0], array, source->path)
            : msc_tokens__take(source, ids, array);
    if (status == MSC_OK && ids != MSC_TOKENS_NO_INPUT) {
        status = msc_tokens__make(source, ids);
    }
    msc_array_release(array);
    return status;
}

static enum msc_status open_images(struct msc_source *source) {
    if (source->n_specs != 1) {
        return fail_single(source, "a folder of images");
    }
    MSC_TRY(msc_image__check(source->image, &source->specs[0], source->path));
    MSC_TRY(msc_image__list(&source->images, source->path));
    source->n = (int64_t)source->images.n;
    return MSC_OK;
}

struct format_row {
    const char *suffix;
    enum msc_status (*open)(struct msc_source *source);
};

static const struct format_row formats[] = {
    {".npz", open_npz},
    {".npy", open_npy},
    {".safetensors", open_safetensors},
    {".jsonl", msc_tokens__open_lines},
};

static enum msc_status open_any(struct msc_source *source) {
    struct stat info;
    if (stat(source->path, &info) == 0 && S_ISDIR(info.st_mode)) {
        return open_images(source);
    }
    size_t n = strlen(source->path);
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        size_t n_suffix = strlen(formats[i].suffix);
        if (n > n_suffix && strcmp(source->path + n - n_suffix, formats[i].suffix) == 0) {
            return formats[i].open(source);
        }
    }
    if (!msc_file_exists(source->path)) {
        return MSC_FAIL(MSC_E_NOT_FOUND, "cannot open %s: No such file or directory", source->path);
    }
    return MSC_FAIL(MSC_E_INVALID,
                    "%s: expected a .npz, .npy, .safetensors or .jsonl file or a folder of images",
                    source->path);
}

// Checks that all inputs have the same number of samples. A shared array fits any number.
static enum msc_status count_samples(struct msc_source *source) {
    const struct msc_input_spec *counted = NULL;
    source->n = 1;
    for (size_t i = 0; i < source->n_specs; i++) {
        const struct msc_samples *samples = &source->samples[i];
        if (samples->form == MSC_SAMPLES_SHARED) {
            continue;
        }
        if (counted && samples->n != source->n) {
            return MSC_FAIL(MSC_E_INVALID,
                            "%s: input \"%s\": expected %" PRId64 " samples as for \"%s\", found "
                            "%" PRId64 "; give every input the same samples, or bind the symbol of "
                            "an axis that counts something else",
                            source->specs[i].place ? source->specs[i].place : source->path,
                            source->specs[i].name, source->n, counted->name, samples->n);
        }
        counted = &source->specs[i];
        source->n = samples->n;
    }
    return MSC_OK;
}

static enum msc_status source_init(struct msc_source *source, const char *path,
                                   const struct msc_input_spec specs[], size_t n_specs) {
    *source = (struct msc_source){.path = path, .specs = specs};
    if (n_specs == 0) {
        return MSC_FAIL(MSC_E_INVALID, "%s: the model has no input that needs samples", path);
    }
    for (size_t i = 0; i < n_specs; i++) {
        if (specs[i].n_dims < 0 || specs[i].n_dims >= MSC_MAX_DIMS ||
            (specs[i].is_batched && specs[i].n_dims == 0)) {
            return MSC_FAIL(MSC_E_INVALID,
                            "%s: input \"%s\" has %d dims, expected fewer than %d, "
                            "and at least one to hold samples",
                            path, specs[i].name, specs[i].n_dims, MSC_MAX_DIMS);
        }
    }
    source->samples = msc_alloc_zero(n_specs, sizeof source->samples[0]);
    if (!source->samples) {
        return MSC_FAIL(MSC_E_NOMEM, "%s: not enough memory for %zu inputs", path, n_specs);
    }
    source->n_specs = n_specs;
    return MSC_OK;
}

static enum msc_status source_check_count(struct msc_source *source) {
    if (source->images.n == 0) {
        MSC_TRY(count_samples(source));
    }
    return source->n > 0
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID, "%s: no samples; save at least one", source->path);
}

enum msc_status msc_source__open(struct msc_source *out, const struct msc_dataset_options *options,
                                 const struct msc_input_spec specs[], size_t n_specs) {
    MSC_TRY(source_init(out, options->inputs, specs, n_specs));
    out->image = &options->image;
    out->sequence = options->sequence;
    MSC_TRY(open_any(out));
    return source_check_count(out);
}

enum msc_status msc_source__from_arrays(struct msc_source *out, const struct msc_input_spec specs[],
                                        struct msc_array *const arrays[], size_t n_specs) {
    MSC_TRY(source_init(out, "dataset", specs, n_specs));
    for (size_t i = 0; i < n_specs; i++) {
        const char *place = specs[i].place ? specs[i].place : out->path;
        if (!arrays[i] && specs[i].state) {
            MSC_TRY(msc_samples__zero_state(&out->samples[i], &specs[i]));
            continue;
        }
        MSC_TRY(msc_samples__from_array(&out->samples[i], &specs[i], arrays[i], place));
    }
    return source_check_count(out);
}

enum msc_status msc_source__prepare(struct msc_source *source, int64_t first, int64_t count) {
    if (source->images.n == 0) {
        return MSC_OK;
    }
    source->first = first;
    for (int64_t i = first; i < first + count; i++) {
        const char *path = source->images.paths[i];
        struct msc_array *image = NULL;
        MSC_TRY(msc_image__load(&image, path, source->image, &source->specs[0]));
        enum msc_status status =
            msc_samples__add_part(&source->samples[0], &source->specs[0], image, path);
        msc_array_release(image);
        MSC_TRY(status);
    }
    return MSC_OK;
}

enum msc_status msc_source__batch(struct msc_array **out, const struct msc_source *source,
                                  size_t input, int64_t first, int64_t count) {
    return msc_samples__batch(out, &source->samples[input], first - source->first, count,
                              &source->specs[input], source->path);
}

enum msc_status msc_source__chunks(struct msc_array **out, const struct msc_source *source,
                                   size_t input, int64_t first, int64_t count) {
    const struct msc_input_spec *spec = &source->specs[input];
    first -= source->first;
    return spec->state ? msc_samples__state(out, &source->samples[input], first)
                       : msc_samples__chunks(out, &source->samples[input], first, count, spec,
                                             source->path);
}

void msc_source__finish(struct msc_source *source) {
    for (size_t i = 0; i < source->n_specs; i++) {
        msc_samples__finish(&source->samples[i]);
    }
    msc_free(source->samples);
    msc_image__list_finish(&source->images);
    *source = (struct msc_source){0};
}
