#include "data/npy_format.h"

#include "base/alloc.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAGIC "\x93NUMPY"
#define MAGIC_BYTES 6
// Longest header that is accepted. Only arrays with named fields need more.
#define MAX_DICT_BYTES ((size_t)1 << 20)

// Reads magic number, version and header length. The dict comes next in the stream.
static enum msc_status read_prefix(size_t *dict_bytes, struct msc_stream *stream) {
    uint8_t prefix[MAGIC_BYTES + 2];
    MSC_TRY(msc_stream__read(stream, prefix, sizeof prefix, "the .npy magic number"));
    if (memcmp(prefix, MAGIC, MAGIC_BYTES) != 0) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s: byte 0: not a .npy array (no magic number); save it with numpy.save",
                        stream->name);
    }
    int major = prefix[MAGIC_BYTES], minor = prefix[MAGIC_BYTES + 1];
    if (major < 1 || major > 3 || minor != 0) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "%s: byte %d: .npy version %d.%d, expected 1.0, 2.0 or 3.0; write the file "
                        "again with numpy.save",
                        stream->name, MAGIC_BYTES, major, minor);
    }
    uint8_t length[4] = {0};
    MSC_TRY(msc_stream__read(stream, length, major == 1 ? 2 : 4, "the length of its header"));
    *dict_bytes = (size_t)length[0] | (size_t)length[1] << 8 | (size_t)length[2] << 16 |
                  (size_t)length[3] << 24;
    if (*dict_bytes > stream->n_bytes - stream->position) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s: byte 8: the header should have %zu bytes, but %" PRIu64
                        " are left; the "
                        "file is cut off or damaged, write it again",
                        stream->name, *dict_bytes, stream->n_bytes - stream->position);
    }
    if (*dict_bytes > MAX_DICT_BYTES) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "%s: byte 8: the header has %zu bytes, expected at most %zu", stream->name,
                        *dict_bytes, MAX_DICT_BYTES);
    }
    return MSC_OK;
}

static enum msc_status npy_read_header(struct msc_npy_header *header, struct msc_stream *stream) {
    size_t n = 0;
    MSC_TRY(read_prefix(&n, stream));
    size_t offset = (size_t)stream->position;
    char *text = msc_alloc(n + 1);
    if (!text) {
        return MSC_FAIL(MSC_E_NOMEM, "%s: not enough memory for a header of %zu bytes",
                        stream->name, n);
    }
    enum msc_status status = msc_stream__read(stream, text, n, "its header");
    if (status == MSC_OK) {
        status = msc_npy__parse_dict(header, text, n, offset, stream->name);
    }
    msc_free(text);
    return status;
}

static void swap_bytes(struct msc_array *array) {
    size_t n = msc_dtype_bytes(msc_array_dtype(array));
    uint8_t *element = msc_array_data(array);
    for (int64_t i = 0; i < msc_array_n_elements(array); i++, element += n) {
        for (size_t low = 0, high = n - 1; low < high; low++, high--) {
            uint8_t byte = element[low];
            element[low] = element[high];
            element[high] = byte;
        }
    }
}

// Converts elements in Fortran order (first axis fastest) to C order.
static enum msc_status reorder(struct msc_array **out, const struct msc_array *array) {
    int n_dims = msc_array_n_dims(array);
    const int64_t *dims = msc_array_dims(array);
    MSC_TRY(msc_array_create(out, msc_array_dtype(array), n_dims, dims));
    size_t n_bytes = msc_dtype_bytes(msc_array_dtype(array));
    const char *from = msc_array_data(array);
    char *to = msc_array_data(*out);
    int64_t strides[MSC_MAX_DIMS] = {0}, index[MSC_MAX_DIMS] = {0};
    int64_t stride = 1;
    for (int i = 0; i < n_dims && msc_array_n_elements(array) > 0; i++) {
        strides[i] = stride;
        stride *= dims[i];
    }
    int64_t place = 0;
    for (int64_t i = 0; i < msc_array_n_elements(array); i++) {
        memcpy(to + (size_t)i * n_bytes, from + (size_t)place * n_bytes, n_bytes);
        for (int axis = n_dims - 1; axis >= 0; axis--) {
            place += strides[axis];
            if (++index[axis] < dims[axis]) {
                break;
            }
            place -= strides[axis] * dims[axis];
            index[axis] = 0;
        }
    }
    return MSC_OK;
}

// For numpy every byte except 0 is true; arrays here must hold 0 or 1.
static void normalise_bools(struct msc_array *array) {
    uint8_t *element = msc_array_data(array);
    for (int64_t i = 0; i < msc_array_n_elements(array); i++) {
        element[i] = element[i] != 0;
    }
}

static enum msc_status read_elements(struct msc_array **out, const struct msc_npy_header *header,
                                     struct msc_stream *stream) {
    uint64_t left = stream->n_bytes - stream->position;
    if (left != header->n_bytes) {
        char text[MSC_DIMS_TEXT_BYTES];
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s: byte %" PRIu64 ": %s of %s needs %zu bytes of elements, found %" PRIu64
                        "; the file is %s, copy or write it again",
                        stream->name, stream->position,
                        msc_dims_format(text, header->n_dims, header->dims),
                        msc_dtype_name(header->dtype), header->n_bytes, left,
                        left < header->n_bytes ? "cut off" : "longer than one array");
    }
    MSC_TRY(msc_array_create(out, header->dtype, header->n_dims, header->dims));
    return msc_stream__read(stream, msc_array_data(*out), header->n_bytes, "its elements");
}

enum msc_status msc_npy__read(struct msc_array **out, struct msc_stream *stream) {
    struct msc_npy_header header;
    MSC_TRY(npy_read_header(&header, stream));
    enum msc_status status = MSC_OK;
    struct msc_array *array = NULL;
    MSC_TRY_OUT(read_elements(&array, &header, stream));
    if (header.is_big_endian) {
        swap_bytes(array);
    }
    if (header.dtype == MSC_DTYPE_BOOL) {
        normalise_bools(array);
    }
    if (header.is_fortran_order && header.n_dims > 1) {
        struct msc_array *reordered = NULL;
        MSC_TRY_OUT(reorder(&reordered, array));
        msc_array_release(array);
        array = reordered;
    }
    *out = array;
    array = NULL;
out:
    msc_array_release(array);
    return status;
}

size_t msc_npy__format_header(char text[MSC_NPY_HEADER_BYTES], enum msc_dtype dtype, int n_dims,
                              const int64_t dims[]) {
    const char *code = msc_npy__code(dtype);
    assert(code);
    enum { PREFIX_BYTES = MAGIC_BYTES + 4 };
    size_t n = PREFIX_BYTES;
    n += (size_t)snprintf(text + n, MSC_NPY_HEADER_BYTES - n,
                          "{'descr': '%s', 'fortran_order': False, 'shape': (", code);
    for (int i = 0; i < n_dims; i++) {
        n += (size_t)snprintf(text + n, MSC_NPY_HEADER_BYTES - n, "%s%" PRId64, i ? ", " : "",
                              dims[i]);
    }
    n += (size_t)snprintf(text + n, MSC_NPY_HEADER_BYTES - n, "%s), }", n_dims == 1 ? "," : "");
    size_t end = (n + 1 + 63) / 64 * 64;
    assert(end <= MSC_NPY_HEADER_BYTES);
    memset(text + n, ' ', end - n - 1);
    text[end - 1] = '\n';
    size_t dict_bytes = end - PREFIX_BYTES;
    memcpy(text, MAGIC "\x01", MAGIC_BYTES + 2); // version 1.0; the 0 is the literal's NUL
    text[MAGIC_BYTES + 2] = (char)(uint8_t)(dict_bytes & 0xff);
    text[MAGIC_BYTES + 3] = (char)(uint8_t)(dict_bytes >> 8);
    return end;
}

enum msc_status msc_npy__known_to_numpy(struct msc_array **out, const struct msc_array *array) {
    if (msc_npy__code(msc_array_dtype(array))) {
        *out = msc_array_retain(array);
        return MSC_OK;
    }
    return msc_array_convert(out, array, MSC_DTYPE_F32);
}
