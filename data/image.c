#include "data/image.h"

#include "base/alloc.h"
#include "base/str.h"
#include "data/number.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define MAX_SIDE 32768

struct suffix_row {
    const char *suffix;
    bool can_read;
};

static const struct suffix_row suffixes[] = {
    {".png", true},  {".jpg", true},  {".jpeg", true},  {".bmp", true},   {".webp", false},
    {".tif", false}, {".gif", false}, {".tiff", false}, {".heic", false}, {".avif", false},
    {".jp2", false}, {".ppm", false}, {".pgm", false},  {".tga", false},
};

static const struct suffix_row *find_suffix(const char *name) {
    const char *dot = strrchr(name, '.');
    if (!dot || dot == name || name[0] == '.') {
        return NULL;
    }
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        if (strcasecmp(suffixes[i].suffix, dot) == 0) {
            return &suffixes[i];
        }
    }
    return NULL;
}

static enum msc_status add_path(struct msc_image_list *list, const char *folder, const char *name) {
    struct msc_str path = {0};
    msc_str_printf(&path, "%s/%s", folder, name);
    struct stat info;
    if (stat(msc_str_text(&path), &info) == 0 && S_ISDIR(info.st_mode)) {
        msc_str_finish(&path);
        return MSC_OK;
    }
    char *text = NULL;
    enum msc_status status =
        msc_grow(&list->paths, &list->capacity, list->n + 1, sizeof list->paths[0]);
    if (status == MSC_OK) {
        status = msc_str_take(&text, &path);
    }
    if (status == MSC_OK) {
        list->paths[list->n++] = text;
    }
    msc_str_finish(&path);
    return status;
}

static int compare_paths(const void *left, const void *right) {
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static enum msc_status read_folder(struct msc_image_list *out, DIR *handle, const char *folder) {
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(handle);
        if (!entry) {
            break;
        }
        const struct suffix_row *row = find_suffix(entry->d_name);
        if (row && !row->can_read) {
            return MSC_FAIL(MSC_E_UNSUPPORTED,
                            "%s/%s: this image format is not supported; save it as PNG, or move it "
                            "out of the folder",
                            folder, entry->d_name);
        }
        if (row) {
            MSC_TRY(add_path(out, folder, entry->d_name));
        }
    }
    if (errno != 0) {
        return MSC_FAIL(MSC_E_IO, "%s: cannot read the folder: %s", folder, strerror(errno));
    }
    if (out->n == 0) {
        return MSC_FAIL(MSC_E_INVALID,
                        "%s: no .png, .jpg or .bmp file in this folder; put the images directly "
                        "into it",
                        folder);
    }
    qsort(out->paths, out->n, sizeof out->paths[0], compare_paths);
    return MSC_OK;
}

enum msc_status msc_image__list(struct msc_image_list *out, const char *folder) {
    DIR *handle = opendir(folder);
    if (!handle) {
        return MSC_FAIL(errno == ENOENT ? MSC_E_NOT_FOUND : MSC_E_IO,
                        "%s: cannot open the folder: %s", folder, strerror(errno));
    }
    enum msc_status status = read_folder(out, handle, folder);
    closedir(handle);
    if (status != MSC_OK) {
        msc_image__list_finish(out);
    }
    return status;
}

void msc_image__list_finish(struct msc_image_list *list) {
    for (size_t i = 0; i < list->n; i++) {
        msc_free(list->paths[i]);
    }
    msc_free(list->paths);
    *list = (struct msc_image_list){0};
}

static enum msc_status check_options(const struct msc_image_options *o, const char *folder) {
    if (o->channels != 1 && o->channels != 3 && o->channels != 4) {
        return MSC_FAIL(MSC_E_INVALID, "%s: %d image channels, expected 1, 3 or 4", folder,
                        o->channels);
    }
    if (o->height < 0 || o->height > MAX_SIDE || o->width < 0 || o->width > MAX_SIDE) {
        return MSC_FAIL(MSC_E_INVALID,
                        "%s: image size %" PRId64 " x %" PRId64 ", expected 0 to %d each", folder,
                        o->height, o->width, MAX_SIDE);
    }
    for (int i = 0; i < o->channels; i++) {
        if (!isfinite(o->mean[i]) || !isfinite(o->std[i]) || o->std[i] == 0.0) {
            return MSC_FAIL(MSC_E_INVALID,
                            "%s: image mean %g, std %g of channel %d, expected finite numbers and "
                            "a std that is not 0",
                            folder, o->mean[i], o->std[i], i);
        }
    }
    if (!isfinite(o->scale)) {
        return MSC_FAIL(MSC_E_INVALID, "%s: image scale is not a finite number", folder);
    }
    return MSC_OK;
}

struct axes {
    int channel, height, width;
};

static struct axes axes_of(const struct msc_image_options *options) {
    return options->channels_last ? (struct axes){3, 1, 2} : (struct axes){1, 2, 3};
}

// True if an option and the spec's dim allow the same size. An option of 0 or a dim of -1 allows
// any size.
static bool sizes_agree(int64_t option, int64_t dim) {
    return option == 0 || dim < 0 || option == dim;
}

enum msc_status msc_image__check(const struct msc_image_options *options,
                                 const struct msc_input_spec *spec, const char *folder) {
    MSC_TRY(check_options(options, folder));
    char text[MSC_DIMS_TEXT_BYTES];
    msc_dims_format(text, spec->n_dims, spec->dims);
    if (spec->dtype != MSC_DTYPE_U8 && !msc_dtype_is_float(spec->dtype)) {
        return MSC_FAIL(
            MSC_E_INVALID,
            "%s: input \"%s\" expects %s, but images give floats or uint8; save the samples "
            "in a .npz",
            folder, spec->name, msc_dtype_name(spec->dtype));
    }
    if (spec->n_dims != 4 || (spec->is_batched ? spec->axis != 0 : spec->dims[0] != 1)) {
        return MSC_FAIL(
            MSC_E_INVALID,
            "%s: input \"%s\" is %s, but images need 4 axes with the samples first; save "
            "the samples in a .npz",
            folder, spec->name, text);
    }
    struct axes a = axes_of(options);
    if (!sizes_agree(options->channels, spec->dims[a.channel]) ||
        !sizes_agree(options->height, spec->dims[a.height]) ||
        !sizes_agree(options->width, spec->dims[a.width])) {
        return MSC_FAIL(
            MSC_E_INVALID,
            "%s: input \"%s\" expects %s, but images are read with %d channels %s, height "
            "%" PRId64 " and width %" PRId64 " (0: the input's size); set "
            "dataset.image in a configuration, or save the samples in a .npz",
            folder, spec->name, text, options->channels, options->channels_last ? "last" : "first",
            options->height, options->width);
    }
    return MSC_OK;
}

// The target size: the option, else the spec, else the image's own size.
static int64_t choose_size(int64_t option, int64_t dim, int64_t own) {
    if (option > 0) {
        return option;
    }
    return dim > 0 ? dim : own;
}

// Writes pixels [h, w, c] in the sample's layout, normalised through one lookup table per channel.
static void image_normalise(struct msc_array *sample, const struct msc_array *pixels,
                            const struct msc_image_options *options) {
    enum msc_dtype dtype = msc_array_dtype(sample);
    int channels = options->channels;
    int64_t area = msc_array_dim(pixels, 0) * msc_array_dim(pixels, 1);
    struct msc_number table[4][256];
    for (int c = 0; c < channels; c++) {
        for (int v = 0; v < 256; v++) {
            double value = (v * options->scale - options->mean[c]) / options->std[c];
            table[c][v] = (struct msc_number){.kind = MSC_NUMBER_REAL,
                                              .real = dtype == MSC_DTYPE_U8 ? (double)v : value};
        }
    }
    const uint8_t *pixel = msc_array_data(pixels);
    void *to = msc_array_data(sample);
    for (int64_t i = 0; i < area; i++) {
        for (int c = 0; c < channels; c++) {
            int64_t place = options->channels_last ? i * channels + c : c * area + i;
            msc_number__store(to, dtype, place, table[c][*pixel++]);
        }
    }
}

enum msc_status msc_image__load(struct msc_array **out, const char *path,
                                const struct msc_image_options *options,
                                const struct msc_input_spec *spec) {
    enum msc_status status = MSC_OK;
    struct msc_array *decoded = NULL, *resized = NULL;
    struct axes a = axes_of(options);
    MSC_TRY_OUT(msc_image__decode(&decoded, path, options->channels));
    int64_t height = choose_size(options->height, spec->dims[a.height], msc_array_dim(decoded, 0));
    int64_t width = choose_size(options->width, spec->dims[a.width], msc_array_dim(decoded, 1));
    MSC_TRY_OUT(msc_image__resize(&resized, decoded, height, width));
    int64_t dims[4] = {1};
    dims[a.channel] = options->channels;
    dims[a.height] = height;
    dims[a.width] = width;
    MSC_TRY_OUT(msc_array_create(out, spec->dtype, 4, dims));
    image_normalise(*out, resized, options);
out:
    msc_array_release(resized);
    msc_array_release(decoded);
    return status;
}
