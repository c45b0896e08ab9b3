// Array files. The first byte selects the format of the rest: 'n' .npy, 'z' .npz, 's'
// .safetensors, 'i' an image, 'l' an append-only log of arrays (data/array_log.h). Arrays that
// load are saved and loaded again, and read as a dataset.
#include "base/alloc.h"
#include "data/array_log.h"
#include "data/dataset.h"
#include "data/image.h"
#include "data/safetensors.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

enum { MAX_SIDE = 64 };

static const struct msc_input_spec spec = {
    .name = "x", .dtype = MSC_DTYPE_F32, .n_dims = 2, .dims = {-1, -1}, .is_batched = true};

static void check_same(const struct msc_array *a, const struct msc_array *b) {
    if (!msc_hash_equal(msc_array_hash(a), msc_array_hash(b))) {
        fuzz_fail("an array reads as another one than was saved");
    }
}

// Returns whether the format keeps the type; otherwise the array is saved as a wider type.
static bool is_kept(const struct msc_array *a) {
    return msc_array_dtype(a) != MSC_DTYPE_BF16;
}

static void read_dataset(const char *name) {
    struct msc_dataset_options options = MSC_DATASET_OPTIONS_INIT;
    struct msc_dataset *dataset = NULL;
    options.inputs = fuzz_path(name);
    options.batch = 2;
    fuzz_check(msc_dataset_load(&dataset, &options, &spec, 1));
    msc_dataset_destroy(dataset);
}

static void read_npy(const char *name) {
    struct msc_array *array = NULL, *again = NULL;
    if (fuzz_check(msc_npy_load(&array, fuzz_path(name))) != MSC_OK) {
        return;
    }
    if (fuzz_check(msc_npy_save(fuzz_path("saved"), array)) == MSC_OK) {
        if (fuzz_check(msc_npy_load(&again, fuzz_path("saved"))) != MSC_OK) {
            fuzz_fail("a .npy of our own is refused");
        }
        check_same(array, again);
    }
    msc_array_release(array);
    msc_array_release(again);
    struct msc_dataset_options labels = MSC_DATASET_OPTIONS_INIT;
    struct msc_dataset *dataset = NULL;
    labels.inputs = fuzz_path(name);
    labels.labels = fuzz_path(name);
    fuzz_check(msc_dataset_load(&dataset, &labels, &spec, 1));
    msc_dataset_destroy(dataset);
    read_dataset(name);
}

static void check_lists(const struct msc_array_list *a, const struct msc_array_list *b) {
    if (a->n != b->n) {
        fuzz_fail("an archive reads with more or fewer arrays than were saved");
    }
    for (size_t i = 0; i < a->n; i++) {
        const struct msc_array *other = msc_array_list_find(b, a->names[i]);
        if (!other) {
            fuzz_fail("a name was lost");
        } else if (is_kept(a->arrays[i])) {
            check_same(a->arrays[i], other);
        }
    }
}

static void read_npz(const char *name) {
    struct msc_array_list list = {0}, again = {0};
    if (fuzz_check(msc_npz_load(&list, fuzz_path(name))) == MSC_OK &&
        fuzz_check(msc_npz_save(fuzz_path("saved"), &list)) == MSC_OK) {
        if (fuzz_check(msc_npz_load(&again, fuzz_path("saved"))) != MSC_OK) {
            fuzz_fail("a .npz of our own is refused");
        }
        check_lists(&list, &again);
    }
    msc_array_list_finish(&list);
    msc_array_list_finish(&again);
    read_dataset(name);
}

static void read_safetensors(const char *name) {
    struct msc_array_list list = {0}, again = {0};
    static const char *const metadata[1][2] = {{"format", "fuzz"}};
    char *value = NULL;
    if (fuzz_check(msc_safetensors_metadata(&value, fuzz_path(name), "format")) == MSC_OK) {
        msc_free(value);
    }
    if (fuzz_check(msc_safetensors_load(&list, fuzz_path(name))) == MSC_OK &&
        fuzz_check(msc_safetensors_save(fuzz_path("saved"), &list, metadata, 1)) == MSC_OK) {
        if (fuzz_check(msc_safetensors_load(&again, fuzz_path("saved"))) != MSC_OK) {
            fuzz_fail("safetensors of our own are refused");
        }
        check_lists(&list, &again);
    }
    msc_array_list_finish(&list);
    msc_array_list_finish(&again);
    read_dataset(name);
}

static void read_image(const char *name) {
    for (int channels = 1; channels <= 4; channels += channels == 1 ? 2 : 1) {
        struct msc_array *pixels = NULL, *resized = NULL;
        if (fuzz_check(msc_image__decode(&pixels, fuzz_path(name), channels)) == MSC_OK &&
            msc_array_dim(pixels, 0) <= MAX_SIDE && msc_array_dim(pixels, 1) <= MAX_SIDE) {
            fuzz_check(msc_image__resize(&resized, pixels, 5, 70));
        }
        msc_array_release(resized);
        msc_array_release(pixels);
    }
}

// Opens a log of arrays and appends to it. Both the valid old arrays and the new one must be there
// when the log is opened again.
static void read_log(const char *name) {
    static const struct msc_hash identity = {.low = 1, .high = 2};
    static const int64_t dims[] = {2, 3};
    struct msc_array_log *log = NULL;
    struct msc_array *array = NULL, *more = NULL;
    size_t n = 0;
    if (fuzz_check(msc_array_log_open(&log, fuzz_path(name), identity, &fuzz_log)) != MSC_OK) {
        return;
    }
    n = msc_array_log_n(log);
    for (size_t i = 0; i < n; i++) {
        if (fuzz_check(msc_array_log_read(&array, log, msc_array_log_name(log, i))) == MSC_OK) {
            msc_array_release(array);
        }
    }
    if (msc_array_create(&more, MSC_DTYPE_F32, 2, dims) != MSC_OK ||
        fuzz_check(msc_array_log_add(log, "more", more)) != MSC_OK) {
        fuzz_fail("an array could not be added");
    }
    msc_array_release(more);
    msc_array_log_close(log);
    if (fuzz_check(msc_array_log_open(&log, fuzz_path(name), identity, &fuzz_log)) != MSC_OK ||
        msc_array_log_n(log) != n + 1) {
        fuzz_fail("arrays that counted are gone");
    }
    msc_array_log_close(log);
}

static const struct {
    char letter;
    const char *name;
    void (*read)(const char *name);
} readers[] = {
    {'n', "a.npy", read_npy},
    {'z', "a.npz", read_npz},
    {'s', "a.safetensors", read_safetensors},
    {'i', "a.png", read_image},
    {'l', "a.moments", read_log},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    if (n_bytes < 1 || n_bytes > FUZZ_MAX_BYTES) {
        return -1;
    }
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++) {
        if (readers[i].letter == (char)data[0]) {
            const char *const files[] = {readers[i].name, "saved", NULL};
            fuzz_write(readers[i].name, data + 1, n_bytes - 1);
            readers[i].read(readers[i].name);
            fuzz_check_files(files);
            fuzz_remove(readers[i].name);
            fuzz_remove("saved");
            return 0;
        }
    }
    return -1;
}
