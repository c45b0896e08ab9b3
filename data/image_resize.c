#include "data/image.h"

#include "base/alloc.h"

#include <assert.h>
#include <math.h>

// One output pixel: the range of input pixels that it is computed from, and their weights.
struct tap {
    int64_t first;
    int64_t n;
    size_t weights; // index of the first weight in `weights` of struct taps
};

struct taps {
    struct tap *rows; // [new length]
    double *weights;
};

static void taps_finish(struct taps *taps) {
    msc_free(taps->rows);
    msc_free(taps->weights);
}

// Computes weights from a triangle around the centre of each output pixel. The triangle extends one
// input pixel to either side; if the image shrinks, the triangle is wider by the shrink factor.
// Weights outside the image are dropped, and the others are normalised to sum 1.
static enum msc_status taps_init(struct taps *taps, int64_t old_length, int64_t new_length) {
    double ratio = (double)old_length / (double)new_length;
    double support = fmax(ratio, 1.0);
    size_t most = (size_t)(2.0 * ceil(support)) + 2;
    taps->rows = msc_alloc_zero((size_t)new_length, sizeof taps->rows[0]);
    taps->weights = msc_alloc_zero((size_t)new_length * most, sizeof taps->weights[0]);
    if (!taps->rows || !taps->weights) {
        return MSC_FAIL(MSC_E_NOMEM, "not enough memory to resize an image");
    }
    for (int64_t i = 0; i < new_length; i++) {
        double centre = ((double)i + 0.5) * ratio;
        int64_t first = (int64_t)fmax(0.0, floor(centre - support));
        int64_t end = (int64_t)fmin((double)old_length, ceil(centre + support));
        double *weights = taps->weights + (size_t)i * most;
        assert(end > first && (size_t)(end - first) <= most);
        double sum = 0.0;
        for (int64_t k = first; k < end; k++) {
            double distance = fabs((double)k + 0.5 - centre) / support;
            weights[k - first] = fmax(0.0, 1.0 - distance);
            sum += weights[k - first];
        }
        for (int64_t k = first; k < end; k++) {
            weights[k - first] /= sum;
        }
        taps->rows[i] = (struct tap){first, end - first, (size_t)i * most};
    }
    return MSC_OK;
}

// Resizes the middle axis of [outer, length, inner], and rounds to uint8.
static void image_resize_apply(uint8_t *to, const uint8_t *from, const struct taps *taps,
                               int64_t outer, int64_t old_length, int64_t new_length,
                               int64_t inner) {
    for (int64_t o = 0; o < outer; o++) {
        const uint8_t *block = from + o * old_length * inner;
        for (int64_t i = 0; i < new_length; i++) {
            const struct tap *tap = &taps->rows[i];
            const double *weights = taps->weights + tap->weights;
            for (int64_t c = 0; c < inner; c++) {
                const uint8_t *pixel = block + tap->first * inner + c;
                double sum = 0.5;
                for (int64_t k = 0; k < tap->n; k++) {
                    sum += weights[k] * pixel[k * inner];
                }
                *to++ = (uint8_t)fmin(sum, 255.0);
            }
        }
    }
}

// Resizes axis 0 or 1 of [h, w, c].
static enum msc_status resize_axis(struct msc_array **out, const struct msc_array *pixels, int axis,
                                   int64_t length) {
    int64_t dims[3] = {msc_array_dim(pixels, 0), msc_array_dim(pixels, 1),
                       msc_array_dim(pixels, 2)};
    int64_t old_length = dims[axis];
    if (old_length == length) {
        *out = msc_array_retain(pixels);
        return MSC_OK;
    }
    dims[axis] = length;
    struct taps taps = {0};
    enum msc_status status = taps_init(&taps, old_length, length);
    if (status == MSC_OK) {
        status = msc_array_create(out, MSC_DTYPE_U8, 3, dims);
    }
    if (status == MSC_OK) {
        image_resize_apply(msc_array_data(*out), msc_array_data(pixels), &taps,
                           axis == 0 ? 1 : dims[0], old_length, length,
                           axis == 0 ? dims[1] * dims[2] : dims[2]);
    }
    taps_finish(&taps);
    return status;
}

enum msc_status msc_image__resize(struct msc_array **out, const struct msc_array *pixels,
                                  int64_t height, int64_t width) {
    assert(msc_array_dtype(pixels) == MSC_DTYPE_U8 && msc_array_n_dims(pixels) == 3);
    struct msc_array *wide = NULL;
    MSC_TRY(resize_axis(&wide, pixels, 1, width));
    enum msc_status status = resize_axis(out, wide, 0, height);
    msc_array_release(wide);
    return status;
}
