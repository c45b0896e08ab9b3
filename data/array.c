#include "data/array.h"

#include "base/alloc.h"
#include "base/machine.h"
#include "data/array_codes.h"
#include "data/mapped.h"
#include "data/number.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

struct msc_array {
    atomic_int n_references;
    enum msc_dtype dtype;
    int n_dims;
    int64_t dims[MSC_MAX_DIMS];
    int64_t n_elements;
    size_t n_bytes;
    void *data;
    bool is_borrowed;              // the caller owns the elements
    struct msc_mapped *mapped;     // the elements are a part of a file; NULL: they are not
    struct msc_array_codes *codes; // NULL: none
};

// Thread-local, because kernels create and free arrays without knowing which meter counts them.
static _Thread_local struct msc_array_meter *thread_meter;

struct msc_array_meter *msc_array_measure(struct msc_array_meter *meter) {
    struct msc_array_meter *before = thread_meter;
    thread_meter = meter;
    return before;
}

static void count_bytes(int64_t n_bytes) {
    struct msc_array_meter *m = thread_meter;
    if (m) {
        m->held_bytes += n_bytes;
        m->peak_bytes = m->held_bytes > m->peak_bytes ? m->held_bytes : m->peak_bytes;
    }
}

// Reading the resident memory takes longer than creating a small array, so the memory is read only
// once per this many allocated bytes.
#define LOOK_BYTES (UINT64_C(8) << 20)

static enum msc_status check_limit(enum msc_dtype dtype, int n_dims, const int64_t dims[],
                                   size_t n_bytes) {
    struct msc_array_meter *m = thread_meter;
    if (!m || m->limit_bytes == 0) {
        return MSC_OK;
    }
    m->unseen_bytes += n_bytes + sizeof(struct msc_array);
    if (m->unseen_bytes < LOOK_BYTES) {
        return MSC_OK;
    }
    m->unseen_bytes = 0;
    uint64_t held = msc_machine_resident_bytes();
    if (n_bytes <= m->limit_bytes && held <= m->limit_bytes - n_bytes) {
        return MSC_OK;
    }
    char text[MSC_DIMS_TEXT_BYTES];
    return MSC_FAIL(
        MSC_E_NOMEM,
        "an array %s of %s (%.0f MB) in addition to the %.0f MB in use would exceed the "
        "memory limit (--memory), %.0f MB",
        msc_dims_format(text, n_dims, dims), msc_dtype_name(dtype), (double)n_bytes * 1e-6,
        (double)held * 1e-6, (double)m->limit_bytes * 1e-6);
}

int64_t msc_dims_product(int n_dims, const int64_t dims[]) {
    bool is_empty = false;
    int64_t product = 1;
    for (int i = 0; i < n_dims; i++) {
        int64_t length = dims[i] == 0 ? 1 : dims[i];
        is_empty = is_empty || dims[i] == 0;
        if (length < 0 || product > INT64_MAX / length) {
            return -1;
        }
        product *= length;
    }
    return is_empty ? 0 : product;
}

const char *msc_dims_format(char text[MSC_DIMS_TEXT_BYTES], int n_dims, const int64_t dims[]) {
    size_t at = 0;
    text[at++] = '[';
    for (int i = 0; i < n_dims && i < MSC_MAX_DIMS; i++) {
        at += (size_t)snprintf(text + at, MSC_DIMS_TEXT_BYTES - at, "%s%" PRId64, i ? "," : "",
                               dims[i]);
    }
    snprintf(text + at, MSC_DIMS_TEXT_BYTES - at, "]");
    return text;
}

static enum msc_status check_shape(size_t *out_bytes, int64_t *out_elements, enum msc_dtype dtype,
                                   int n_dims, const int64_t dims[]) {
    if (dtype <= MSC_DTYPE_NONE || dtype >= MSC_DTYPE_COUNT) {
        return MSC_FAIL(MSC_E_INVALID, "array: element type %d does not exist", (int)dtype);
    }
    if (n_dims < 0 || n_dims > MSC_MAX_DIMS) {
        return MSC_FAIL(MSC_E_INVALID, "array: %d dims, at most %d are supported", n_dims,
                        MSC_MAX_DIMS);
    }
    int64_t n_elements = msc_dims_product(n_dims, dims);
    size_t element_bytes = msc_dtype_bytes(dtype);
    if (n_elements < 0 || (uint64_t)n_elements > (uint64_t)PTRDIFF_MAX / element_bytes) {
        char text[MSC_DIMS_TEXT_BYTES];
        return MSC_FAIL(MSC_E_INVALID, "array: shape %s of %s has a negative dim or overflows",
                        msc_dims_format(text, n_dims, dims), msc_dtype_name(dtype));
    }
    *out_elements = n_elements;
    *out_bytes = (size_t)n_elements * element_bytes;
    return MSC_OK;
}

// Creates an array over `borrowed`. If `borrowed` is NULL, allocates elements and does not
// initialise them.
static enum msc_status array_create(struct msc_array **out, enum msc_dtype dtype, int n_dims,
                                    const int64_t dims[], void *borrowed) {
    size_t n_bytes = 0;
    int64_t n_elements = 0;
    MSC_TRY(check_shape(&n_bytes, &n_elements, dtype, n_dims, dims));
    MSC_TRY(check_limit(dtype, n_dims, dims, borrowed ? 0 : n_bytes));
    struct msc_array *array = msc_alloc_zero(1, sizeof *array);
    void *own = borrowed ? NULL : msc_alloc_aligned(n_bytes);
    if (!array || (!borrowed && !own)) {
        msc_free(array);
        msc_free_aligned(own);
        char text[MSC_DIMS_TEXT_BYTES];
        return MSC_FAIL(MSC_E_NOMEM, "not enough memory for an array %s of %s (%zu bytes)",
                        msc_dims_format(text, n_dims, dims), msc_dtype_name(dtype), n_bytes);
    }
    atomic_init(&array->n_references, 1);
    array->dtype = dtype;
    array->n_dims = n_dims;
    if (n_dims > 0) {
        memcpy(array->dims, dims, (size_t)n_dims * sizeof dims[0]);
    }
    array->n_elements = n_elements;
    array->n_bytes = n_bytes;
    array->data = borrowed ? borrowed : own;
    array->is_borrowed = borrowed != NULL;
    count_bytes(borrowed ? 0 : (int64_t)n_bytes);
    *out = array;
    return MSC_OK;
}

enum msc_status msc_array_create_unset(struct msc_array **out, enum msc_dtype dtype, int n_dims,
                                       const int64_t dims[]) {
    return array_create(out, dtype, n_dims, dims, NULL);
}

enum msc_status msc_array_create_over(struct msc_array **out, enum msc_dtype dtype, int n_dims,
                                      const int64_t dims[], void *data) {
    return array_create(out, dtype, n_dims, dims, data);
}

enum msc_status msc_array_create_mapped(struct msc_array **out, enum msc_dtype dtype, int n_dims,
                                        const int64_t dims[], const char *path, uint64_t offset) {
    size_t n_bytes = 0;
    int64_t n_elements = 0;
    struct msc_mapped *mapped = NULL;
    MSC_TRY(check_shape(&n_bytes, &n_elements, dtype, n_dims, dims));
    if (n_bytes == 0) {
        return msc_array_create(out, dtype, n_dims, dims);
    }
    assert(offset % msc_dtype_bytes(dtype) == 0);
    MSC_TRY(msc_mapped_create(&mapped, path, offset, n_bytes));
    enum msc_status status =
        array_create(out, dtype, n_dims, dims, (void *)(uintptr_t)msc_mapped_data(mapped));
    if (status != MSC_OK) {
        msc_mapped_destroy(mapped);
        return status;
    }
    (*out)->mapped = mapped;
    return MSC_OK;
}

enum msc_status msc_array_create(struct msc_array **out, enum msc_dtype dtype, int n_dims,
                                 const int64_t dims[]) {
    return msc_array_create_from(out, dtype, n_dims, dims, NULL);
}

enum msc_status msc_array_create_from(struct msc_array **out, enum msc_dtype dtype, int n_dims,
                                      const int64_t dims[], const void *data) {
    MSC_TRY(msc_array_create_unset(out, dtype, n_dims, dims));
    struct msc_array *array = *out;
    if (data) {
        memcpy(array->data, data, array->n_bytes);
    } else {
        memset(array->data, 0, array->n_bytes);
    }
    return MSC_OK;
}

static bool is_half(enum msc_dtype dtype) {
    return dtype == MSC_DTYPE_F16 || dtype == MSC_DTYPE_BF16;
}

enum msc_status msc_array_convert(struct msc_array **out, const struct msc_array *array,
                                  enum msc_dtype dtype) {
    if (dtype == array->dtype) {
        return msc_array_create_from(out, dtype, array->n_dims, array->dims, msc_array_data(array));
    }
    MSC_TRY(msc_array_create_unset(out, dtype, array->n_dims, array->dims));
    const void *from = msc_array_data(array);
    if (array->dtype == MSC_DTYPE_F32 && is_half(dtype)) {
        msc_f32_narrow((*out)->data, dtype, from, array->n_elements);
        return MSC_OK;
    }
    if (dtype == MSC_DTYPE_F32 && is_half(array->dtype)) {
        msc_f32_widen((*out)->data, from, array->dtype, array->n_elements);
        return MSC_OK;
    }
    for (int64_t i = 0; i < array->n_elements; i++) {
        msc_number__store((*out)->data, dtype, i, msc_number__load(from, array->dtype, i));
    }
    return MSC_OK;
}

enum msc_status msc_array_rows(struct msc_array **out, const struct msc_array *array, int64_t first,
                               int64_t count) {
    if (array->n_dims == 0) {
        return MSC_FAIL(MSC_E_INVALID, "array: a scalar has no rows");
    }
    if (first < 0 || count < 0 || first > array->dims[0] || count > array->dims[0] - first) {
        return MSC_FAIL(MSC_E_INVALID,
                        "array: %" PRId64 " rows from row %" PRId64
                        " on: out of range, the array has %" PRId64,
                        count, first, array->dims[0]);
    }
    int64_t dims[MSC_MAX_DIMS];
    memcpy(dims, array->dims, sizeof dims);
    dims[0] = count;
    size_t row_bytes = array->dims[0] > 0 ? array->n_bytes / (size_t)array->dims[0] : 0;
    const char *rows = (const char *)msc_array_data(array) + (size_t)first * row_bytes;
    return msc_array_create_from(out, array->dtype, array->n_dims, dims, rows);
}

// An array along an axis: n_blocks blocks, each with one run of n_bytes per index of the axis.
static void split_at(const struct msc_array *array, int axis, size_t *n_blocks, size_t *n_bytes) {
    *n_blocks = 1;
    *n_bytes = msc_dtype_bytes(array->dtype);
    for (int i = 0; i < array->n_dims; i++) {
        *n_blocks *= i < axis ? (size_t)array->dims[i] : 1;
        *n_bytes *= i > axis ? (size_t)array->dims[i] : 1;
    }
}

void msc_array_place(struct msc_array *to, int64_t at, const struct msc_array *from, int axis,
                     int64_t first, int64_t count) {
    size_t n_blocks, n_bytes;
    char *target = msc_array_data(to);
    const char *source = msc_array_data(from);
    split_at(from, axis, &n_blocks, &n_bytes);
    for (size_t i = 0; i < n_blocks && count > 0 && n_bytes > 0; i++) {
        memcpy(target + (i * (size_t)to->dims[axis] + (size_t)at) * n_bytes,
               source + (i * (size_t)from->dims[axis] + (size_t)first) * n_bytes,
               (size_t)count * n_bytes);
    }
}

enum msc_status msc_array_slice(struct msc_array **out, const struct msc_array *array, int axis,
                                int64_t first, int64_t count) {
    int64_t dims[MSC_MAX_DIMS];
    assert(axis >= 0 && axis < array->n_dims && first >= 0 && first + count <= array->dims[axis]);
    memcpy(dims, array->dims, sizeof dims);
    dims[axis] = count;
    MSC_TRY(msc_array_create(out, array->dtype, array->n_dims, dims));
    msc_array_place(*out, 0, array, axis, first, count);
    return MSC_OK;
}

struct msc_array *msc_array_retain(const struct msc_array *array) {
    struct msc_array *shared = (struct msc_array *)(uintptr_t)array;
    atomic_fetch_add_explicit(&shared->n_references, 1, memory_order_relaxed);
    return shared;
}

static void release_codes(struct msc_array_codes *codes) {
    if (codes) {
        msc_array_release((struct msc_array *)codes->scales);
        msc_array_release((struct msc_array *)codes->zero_points);
        msc_free(codes);
    }
}

void msc_array_release(struct msc_array *array) {
    if (!array) {
        return;
    }
    if (atomic_fetch_sub_explicit(&array->n_references, 1, memory_order_acq_rel) == 1) {
        if (!array->is_borrowed) {
            count_bytes(-(int64_t)array->n_bytes);
            msc_free_aligned(array->data);
        }
        msc_mapped_destroy(array->mapped);
        release_codes(array->codes);
        msc_free(array);
    }
}

enum msc_status msc_array_set_codes(struct msc_array *array, const struct msc_array_codes *codes) {
    struct msc_array_codes *own = msc_alloc_zero(1, sizeof(*own));
    MSC_TRY(MSC_ALLOCATED(own));
    *own = *codes;
    msc_array_retain(own->scales);
    if (own->zero_points) {
        msc_array_retain(own->zero_points);
    }
    release_codes(array->codes);
    array->codes = own;
    return MSC_OK;
}

const struct msc_array_codes *msc_array_codes_of(const struct msc_array *array) {
    return array->codes;
}

enum msc_dtype msc_array_dtype(const struct msc_array *array) {
    return array->dtype;
}

int msc_array_n_dims(const struct msc_array *array) {
    return array->n_dims;
}

const int64_t *msc_array_dims(const struct msc_array *array) {
    return array->dims;
}

int64_t msc_array_dim(const struct msc_array *array, int axis) {
    int index = axis < 0 ? axis + array->n_dims : axis;
    assert(index >= 0 && index < array->n_dims);
    return array->dims[index];
}

int64_t msc_array_n_elements(const struct msc_array *array) {
    return array->n_elements;
}

size_t msc_array_n_bytes(const struct msc_array *array) {
    return array->n_bytes;
}

void *msc_array_data(const struct msc_array *array) {
    if (array->mapped) {
        msc_mapped_touch(array->mapped);
    }
    return array->data;
}

double msc_array_get_double(const struct msc_array *array, int64_t index) {
    assert(index >= 0 && index < array->n_elements);
    return msc_number__to_double(msc_number__load(array->data, array->dtype, index));
}

int64_t msc_array_get_i64(const struct msc_array *array, int64_t index) {
    assert(index >= 0 && index < array->n_elements);
    return msc_number__to_i64(msc_number__load(array->data, array->dtype, index), INT64_MIN,
                              INT64_MAX);
}

bool msc_array_fits_float(const struct msc_array *array, int64_t index) {
    if (msc_dtype_is_integer(array->dtype)) {
        int64_t value = msc_array_get_i64(array, index);
        float rounded = (float)value;
        return rounded < 0x1p63f && (int64_t)rounded == value;
    }
    double value = msc_array_get_double(array, index);
    return isnan(value) || (double)(float)value == value;
}

struct msc_hash msc_array_hash(const struct msc_array *array) {
    struct msc_hash h = array->mapped ? msc_mapped_hash(array->mapped)
                                      : msc_hash_bytes(array->data, array->n_bytes);
    h = msc_hash_add_text(h, msc_dtype_name(array->dtype));
    h = msc_hash_add_u64(h, (uint64_t)array->n_dims);
    for (int i = 0; i < array->n_dims; i++) {
        h = msc_hash_add_u64(h, (uint64_t)array->dims[i]);
    }
    return h;
}
