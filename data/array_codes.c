#include "data/array_codes.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

#define SCALES ":scales"
#define ZERO_POINTS ":zero_points"

// Adds an array as NAME ENDING, in a shape that broadcasts against that of `coded`. Does nothing if
// the name is taken.
static enum msc_status add_part(struct msc_array_list *list, const char *name, const char *ending,
                                const struct msc_array *array, const struct msc_array *coded,
                                int axis) {
    struct msc_arena arena = {0};
    struct msc_array *shaped = NULL;
    int64_t dims[MSC_MAX_DIMS];
    int64_t n = msc_array_n_elements(array);
    enum msc_status status = MSC_OK;
    for (int i = 0; i < msc_array_n_dims(coded); i++) {
        dims[i] = i == axis ? n : 1;
    }
    const char *whole = msc_arena_printf(&arena, "%s%s", name, ending);
    MSC_TRY_OUT(MSC_ALLOCATED(whole));
    if (msc_array_list_find(list, whole) != NULL) {
        goto out;
    }
    MSC_TRY_OUT(msc_array_create(&shaped, msc_array_dtype(array),
                                 n == 1 ? 0 : msc_array_n_dims(coded), dims));
    memcpy(msc_array_data(shaped), msc_array_data(array), msc_array_n_bytes(array));
    MSC_TRY_OUT(msc_array_list_add(list, whole, shaped));
out:
    msc_array_release(shaped);
    msc_arena_finish(&arena);
    return status;
}

enum msc_status msc_array_list_add_codes(struct msc_array_list *list, const char *name,
                                         const struct msc_array *array) {
    const struct msc_array_codes *codes = msc_array_codes_of(array);
    if (codes == NULL) {
        return MSC_OK;
    }
    MSC_TRY(add_part(list, name, SCALES, codes->scales, array, codes->axis));
    return codes->zero_points == NULL
               ? MSC_OK
               : add_part(list, name, ZERO_POINTS, codes->zero_points, array, codes->axis);
}

// Sets the axis of the scales. False if they do not broadcast along one axis of the array.
static bool find_axis(int *axis, const struct msc_array *scales, const struct msc_array *array) {
    int64_t n = msc_array_n_elements(scales);
    *axis = 0;
    if (n == 1) {
        return true;
    }
    if (msc_array_n_dims(scales) != msc_array_n_dims(array)) {
        return false;
    }
    while (*axis < msc_array_n_dims(scales) && msc_array_dims(scales)[*axis] == 1) {
        (*axis)++;
    }
    return msc_array_dims(scales)[*axis] == n && msc_array_dims(array)[*axis] == n;
}

static bool are_bytes(const struct msc_array *zeros) {
    return msc_array_dtype(zeros) == MSC_DTYPE_U8 || msc_array_dtype(zeros) == MSC_DTYPE_I8;
}

// Sets the smallest and the largest code. False if an element is not (code - zero point) * scale
// for an integer of a byte.
static bool find_range(struct msc_array_codes *codes, const struct msc_array *array) {
    const float *x = msc_array_data(array), *scales = msc_array_data(codes->scales);
    int64_t n = msc_array_n_elements(codes->scales), n_inner = 1;
    for (int i = codes->axis + 1; i < msc_array_n_dims(array); i++) {
        n_inner *= msc_array_dims(array)[i];
    }
    codes->low = INT32_MAX;
    codes->high = INT32_MIN;
    for (int64_t i = 0; i < msc_array_n_elements(array); i++) {
        int64_t c = n == 1 ? 0 : i / n_inner % n;
        double step = nearbyint((double)x[i] / (double)scales[c]);
        if (!(fabs(step) <= UINT8_MAX) || (float)step * scales[c] != x[i]) {
            return false;
        }
        int32_t zero = codes->zero_points ? (int32_t)msc_array_get_i64(codes->zero_points, c) : 0;
        int32_t code = (int32_t)step + zero;
        codes->low = code < codes->low ? code : codes->low;
        codes->high = code > codes->high ? code : codes->high;
    }
    return codes->low >= INT8_MIN && codes->high <= UINT8_MAX &&
           codes->high - codes->low <= UINT8_MAX;
}

// Borrows NAME ENDING of the list; NULL if absent.
static enum msc_status find_part(const struct msc_array **out, const struct msc_array_list *list,
                                 const char *name, const char *ending) {
    struct msc_arena arena = {0};
    const char *whole = msc_arena_printf(&arena, "%s%s", name, ending);
    enum msc_status status = MSC_ALLOCATED(whole);
    *out = whole == NULL ? NULL : msc_array_list_find(list, whole);
    msc_arena_finish(&arena);
    return status;
}

enum msc_status msc_array_list_set_codes(const struct msc_array_list *list, const char *name) {
    struct msc_array *array = msc_array_list_find(list, name);
    struct msc_array_codes codes = {0};
    MSC_TRY(find_part(&codes.scales, list, name, SCALES));
    MSC_TRY(find_part(&codes.zero_points, list, name, ZERO_POINTS));
    if (array == NULL || codes.scales == NULL || msc_array_codes_of(array) != NULL) {
        return MSC_OK;
    }
    const struct msc_array *zeros = codes.zero_points;
    bool fits =
        msc_array_dtype(array) == MSC_DTYPE_F32 && msc_array_dtype(codes.scales) == MSC_DTYPE_F32 &&
        (zeros == NULL ||
         (are_bytes(zeros) && msc_array_n_elements(zeros) == msc_array_n_elements(codes.scales)));
    return fits && find_axis(&codes.axis, codes.scales, array) && find_range(&codes, array)
               ? msc_array_set_codes(array, &codes)
               : MSC_OK;
}
