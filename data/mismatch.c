#include "data/mismatch.h"

#include "base/str.h"
#include "data/number.h"

#include <math.h>
#include <string.h>

void msc_range__scan(struct msc_range *out, const struct msc_array *array) {
    *out = (struct msc_range){0};
    enum msc_dtype dtype = msc_array_dtype(array);
    const void *data = msc_array_data(array);
    int64_t n = msc_array_n_elements(array);
    for (int64_t i = 0; i < n; i++) {
        double value = msc_number__to_double(msc_number__load(data, dtype, i));
        if (isnan(value)) {
            out->n_nan++;
        } else if (isinf(value)) {
            out->n_infinite++;
        } else {
            out->min = out->n_finite == 0 || value < out->min ? value : out->min;
            out->max = out->n_finite == 0 || value > out->max ? value : out->max;
            out->n_finite++;
        }
    }
}

// The dim of `axis` is written as N. -1: there is none.
static void write_dims(struct msc_str *text, int n_dims, const int64_t dims[], int axis) {
    msc_str_char(text, '[');
    for (int i = 0; i < n_dims; i++) {
        msc_str_append(text, i > 0 ? "," : "");
        if (i == axis) {
            msc_str_char(text, 'N');
        } else if (dims[i] < 0) {
            msc_str_append(text, "any");
        } else {
            msc_str_i64(text, dims[i]);
        }
    }
    msc_str_char(text, ']');
}

static void write_expected(struct msc_str *text, const struct msc_input_spec *spec) {
    if (spec->n_dims > 0 && (spec->is_batched || spec->dims[0] == 1)) {
        write_dims(text, spec->n_dims, spec->dims, spec->is_batched ? spec->axis : 0);
    } else {
        int64_t dims[MSC_MAX_DIMS + 1] = {0};
        memcpy(dims + 1, spec->dims, (size_t)spec->n_dims * sizeof dims[0]);
        write_dims(text, spec->n_dims + 1, dims, 0);
    }
    msc_str_printf(text, " %s", msc_dtype_name(spec->dtype));
}

static void write_found(struct msc_str *text, const struct msc_array *array) {
    write_dims(text, msc_array_n_dims(array), msc_array_dims(array), -1);
    msc_str_printf(text, " %s, ", msc_dtype_name(msc_array_dtype(array)));
    struct msc_range range;
    msc_range__scan(&range, array);
    if (range.n_finite > 0) {
        msc_str_append(text, "values ");
        msc_str_float(text, (float)range.min);
        msc_str_append(text, " to ");
        msc_str_float(text, (float)range.max);
    } else {
        msc_str_append(text, "no finite values");
    }
    if (range.n_nan > 0) {
        msc_str_append(text, " and ");
        msc_str_i64(text, range.n_nan);
        msc_str_append(text, " NaN");
    }
}

// True if the array would fit with its axes in this order.
static bool fits_transposed(const struct msc_input_spec *spec, const struct msc_array *array,
                            const int order[4]) {
    if (spec->n_dims != 4 || msc_array_n_dims(array) != 4) {
        return false;
    }
    for (int i = 1; i < 4; i++) {
        if (spec->dims[i] >= 0 && spec->dims[i] != msc_array_dim(array, order[i])) {
            return false;
        }
    }
    return true;
}

// True if the array would fit if the model's first axis could have any length.
static bool fits_behind_first(const struct msc_input_spec *spec, const struct msc_array *array) {
    bool fits = !spec->is_batched && spec->n_dims > 1 && spec->dims[0] > 1 &&
                msc_array_n_dims(array) == spec->n_dims;
    for (int i = 1; fits && i < spec->n_dims; i++) {
        fits = spec->dims[i] < 0 || spec->dims[i] == msc_array_dim(array, i);
    }
    return fits;
}

// True if the array would fit if its first axis, which counts the samples, moved to the model's
// axis of samples.
static bool fits_moved(const struct msc_input_spec *spec, const struct msc_array *array) {
    bool fits = spec->is_batched && spec->axis > 0 && msc_array_n_dims(array) == spec->n_dims;
    for (int i = 0; fits && i < spec->n_dims; i++) {
        int64_t found = i == spec->axis ? -1 : msc_array_dim(array, i < spec->axis ? i + 1 : i);
        fits = i == spec->axis || spec->dims[i] < 0 || spec->dims[i] == found;
    }
    return fits;
}

static const char *find_fix(const struct msc_input_spec *spec, const struct msc_array *array) {
    enum msc_dtype found = msc_array_dtype(array);
    if (fits_moved(spec, array)) {
        return "put the samples on the model's own axis, which is not the first, with "
               "numpy.moveaxis";
    }
    bool fits = fits_transposed(spec, array, (const int[]){0, 1, 2, 3});
    if (!fits && fits_transposed(spec, array, (const int[]){0, 3, 1, 2})) {
        return "put the channels first with array.transpose(0, 3, 1, 2), and use the type and "
               "scale of training";
    }
    if (!fits && fits_transposed(spec, array, (const int[]){0, 2, 3, 1})) {
        return "put the channels last with array.transpose(0, 2, 3, 1), and use the type and "
               "scale of training";
    }
    if (msc_array_n_dims(array) + 1 == spec->n_dims) {
        return "add a first axis that counts the samples";
    }
    if (msc_dtype_is_float(spec->dtype) && !msc_dtype_is_float(found)) {
        return "save it as floats, scaled as in training";
    }
    if (found != spec->dtype && !(msc_dtype_is_float(spec->dtype) && msc_dtype_is_float(found))) {
        return "save it in the input's shape and type with array.astype";
    }
    if (fits_behind_first(spec, array)) {
        return "the model's first axis has a fixed length: if it counts samples, export the model "
               "for any number of them (torch.onnx.export: dynamic_shapes, or dynamic_axes), else "
               "save it in the input's shape";
    }
    return "save it in the input's shape";
}

static bool is_same_integer(struct msc_number a, struct msc_number b) {
    bool a_is_negative = a.kind == MSC_NUMBER_SIGNED && a.i < 0;
    bool b_is_negative = b.kind == MSC_NUMBER_SIGNED && b.i < 0;
    uint64_t a_bits = a.kind == MSC_NUMBER_SIGNED ? (uint64_t)a.i : a.u;
    uint64_t b_bits = b.kind == MSC_NUMBER_SIGNED ? (uint64_t)b.i : b.u;
    return a_is_negative == b_is_negative && a_bits == b_bits;
}

// Fails if a value does not fit the input's type. Conversion saturates, so it changes such a value.
static enum msc_status check_integers(const struct msc_input_spec *spec,
                                      const struct msc_array *converted,
                                      const struct msc_array *array, const char *place) {
    enum msc_dtype from = msc_array_dtype(array);
    for (int64_t i = 0; i < msc_array_n_elements(array); i++) {
        struct msc_number number = msc_number__load(msc_array_data(array), from, i);
        if (is_same_integer(number, msc_number__load(msc_array_data(converted), spec->dtype, i))) {
            continue;
        }
        struct msc_str fix = {0};
        if (number.kind == MSC_NUMBER_SIGNED) {
            msc_str_i64(&fix, number.i);
        } else {
            msc_str_u64(&fix, number.u);
        }
        msc_str_printf(&fix, " does not fit into %s", msc_dtype_name(spec->dtype));
        enum msc_status status = msc_mismatch__fail(spec, array, place, msc_str_text(&fix));
        msc_str_finish(&fix);
        return status;
    }
    return MSC_OK;
}

static enum msc_status convert_to(struct msc_array **out, const struct msc_input_spec *spec,
                                  const struct msc_array *array, enum msc_dtype to,
                                  const char *place) {
    enum msc_dtype from = msc_array_dtype(array);
    bool is_integer = msc_dtype_is_integer(from) && msc_dtype_is_integer(to);
    struct msc_array *converted = NULL;
    if (from == to) {
        *out = msc_array_retain(array);
        return MSC_OK;
    }
    if (!is_integer && !(msc_dtype_is_float(from) && msc_dtype_is_float(to))) {
        return msc_mismatch__fail(spec, array, place, NULL);
    }
    MSC_TRY(msc_array_convert(&converted, array, to));
    enum msc_status status = is_integer ? check_integers(spec, converted, array, place) : MSC_OK;
    if (status != MSC_OK) {
        msc_array_release(converted);
        return status;
    }
    *out = converted;
    return MSC_OK;
}

enum msc_status msc_mismatch__convert(struct msc_array **out, const struct msc_input_spec *spec,
                                      const struct msc_array *array, const char *place) {
    struct msc_array *rounded;
    if (spec->rounded == MSC_DTYPE_NONE) {
        return convert_to(out, spec, array, spec->dtype, place);
    }
    MSC_TRY(convert_to(&rounded, spec, array, spec->rounded, place));
    enum msc_status status = msc_array_convert(out, rounded, spec->dtype);
    msc_array_release(rounded);
    return status;
}

enum msc_status msc_mismatch__fail(const struct msc_input_spec *spec, const struct msc_array *array,
                                   const char *place, const char *fix) {
    struct msc_str expected = {0}, found = {0};
    write_expected(&expected, spec);
    write_found(&found, array);
    enum msc_status status =
        MSC_FAIL(MSC_E_INVALID, "%s: input \"%s\": expected %s, found %s; %s", place, spec->name,
                 msc_str_text(&expected), msc_str_text(&found), fix ? fix : find_fix(spec, array));
    msc_str_finish(&expected);
    msc_str_finish(&found);
    return status;
}
