// Converts a TensorProto to an array: raw bytes, typed fields or an external file.
#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "graph/narrow_float.h"
#include "graph/onnx/onnx_file_internal.h"

#include <stdio.h>
#include <string.h>

static const struct {
    int type;
    enum msc_dtype dtype; // MSC_DTYPE_NONE: MSC knows only the type's name
    const char *name;
} types[] = {
    {MSC_ONNX_FLOAT, MSC_DTYPE_F32, "float32"},
    {MSC_ONNX_UINT8, MSC_DTYPE_U8, "uint8"},
    {MSC_ONNX_INT8, MSC_DTYPE_I8, "int8"},
    {MSC_ONNX_UINT16, MSC_DTYPE_U16, "uint16"},
    {MSC_ONNX_INT16, MSC_DTYPE_I16, "int16"},
    {MSC_ONNX_INT32, MSC_DTYPE_I32, "int32"},
    {MSC_ONNX_INT64, MSC_DTYPE_I64, "int64"},
    {MSC_ONNX_STRING, MSC_DTYPE_NONE, "string"},
    {MSC_ONNX_BOOL, MSC_DTYPE_BOOL, "bool"},
    {MSC_ONNX_FLOAT16, MSC_DTYPE_F16, "float16"},
    {MSC_ONNX_DOUBLE, MSC_DTYPE_F64, "float64"},
    {MSC_ONNX_UINT32, MSC_DTYPE_U32, "uint32"},
    {MSC_ONNX_UINT64, MSC_DTYPE_U64, "uint64"},
    {14, MSC_DTYPE_NONE, "complex64"},
    {15, MSC_DTYPE_NONE, "complex128"},
    {MSC_ONNX_BFLOAT16, MSC_DTYPE_BF16, "bfloat16"},
    {17, MSC_DTYPE_NONE, "float8e4m3fn"},
    {18, MSC_DTYPE_NONE, "float8e4m3fnuz"},
    {19, MSC_DTYPE_NONE, "float8e5m2"},
    {20, MSC_DTYPE_NONE, "float8e5m2fnuz"},
    {MSC_ONNX_UINT4, MSC_DTYPE_NONE, "uint4"},
    {MSC_ONNX_INT4, MSC_DTYPE_NONE, "int4"},
    {MSC_ONNX_FLOAT4, MSC_DTYPE_NONE, "float4e2m1"},
    {24, MSC_DTYPE_NONE, "float8e8m0"},
    {MSC_ONNX_UINT2, MSC_DTYPE_NONE, "uint2"},
    {MSC_ONNX_INT2, MSC_DTYPE_NONE, "int2"},
    {27, MSC_DTYPE_NONE, "float6e2m3"},
    {28, MSC_DTYPE_NONE, "float6e3m2"},
};

// Bits of an element in a file if a byte has several elements, else 0.
static int packed_bits(int type) {
    bool has_4 = type == MSC_ONNX_UINT4 || type == MSC_ONNX_INT4 || type == MSC_ONNX_FLOAT4;
    return has_4 ? 4 : type == MSC_ONNX_UINT2 || type == MSC_ONNX_INT2 ? 2 : 0;
}

enum msc_dtype msc_onnx_dtype(int type) {
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (types[i].type == type) {
            return types[i].dtype;
        }
    }
    return MSC_DTYPE_NONE;
}

enum msc_dtype msc_onnx_storage(int type, const char **format) {
    enum msc_dtype dtype = msc_onnx_dtype(type);
    *format = "";
    if (packed_bits(type) != 0 || msc_narrow_float_find(msc_onnx_type_name(type)) != NULL) {
        bool is_signed = type == MSC_ONNX_INT4 || type == MSC_ONNX_INT2;
        *format = msc_onnx_type_name(type);
        dtype = is_signed ? MSC_DTYPE_I8 : MSC_DTYPE_U8;
    }
    return dtype;
}

enum msc_onnx_type msc_onnx_type(enum msc_dtype dtype) {
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (types[i].dtype == dtype && dtype != MSC_DTYPE_NONE) {
            return (enum msc_onnx_type)types[i].type;
        }
    }
    return (enum msc_onnx_type)0;
}

const char *msc_onnx_type_name(int type) {
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (types[i].type == type) {
            return types[i].name;
        }
    }
    return "an unknown type";
}

static const char *name_of(const Onnx__TensorProto *t) {
    return t->name == NULL || t->name[0] == '\0' ? "(unnamed)" : t->name;
}

// Type, dims and size of the tensor, after checks.
struct header {
    enum msc_dtype dtype;
    int n_dims;
    int64_t dims[MSC_MAX_DIMS];
    int64_t n_elements;
    size_t n_bytes; // size in the file
    int bits;       // of an element, if a byte has several; else 0
};

static enum msc_status read_header(struct header *h, const Onnx__TensorProto *t) {
    const char *format;
    h->dtype = msc_onnx_storage(t->data_type, &format);
    h->bits = packed_bits(t->data_type);
    if (h->dtype == MSC_DTYPE_NONE) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "tensor '%s' has the unsupported type %s (%d)",
                        name_of(t), msc_onnx_type_name(t->data_type), (int)t->data_type);
    }
    if (t->n_dims > MSC_MAX_DIMS) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "tensor '%s' has %zu dimensions, at most %d are supported", name_of(t),
                        t->n_dims, MSC_MAX_DIMS);
    }
    h->n_dims = (int)t->n_dims;
    for (int i = 0; i < h->n_dims; i++) {
        h->dims[i] = t->dims[i];
    }
    h->n_elements = msc_dims_product(h->n_dims, h->dims);
    if (h->n_elements < 0 || h->n_elements > INT64_MAX / 16) {
        return MSC_FAIL(MSC_E_FORMAT, "tensor '%s' has dimensions that are negative or too large",
                        name_of(t));
    }
    h->n_bytes = h->bits != 0 ? ((size_t)h->n_elements * (size_t)h->bits + 7) / 8
                              : (size_t)h->n_elements * msc_dtype_bytes(h->dtype);
    if (t->segment != NULL) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "tensor '%s' is stored in segments, which is not supported", name_of(t));
    }
    return MSC_OK;
}

// Unpacks the elements of each byte, the first from the lowest bits.
static enum msc_status unpack(struct msc_array **out, const struct header *h,
                              const uint8_t bytes[]) {
    MSC_TRY(msc_array_create(out, h->dtype, h->n_dims, h->dims));
    uint8_t *to = msc_array_data(*out);
    for (int64_t i = 0; i < h->n_elements; i++) {
        int code = bytes[i * h->bits / 8] >> (i * h->bits % 8) & ((1 << h->bits) - 1);
        bool is_negative = h->dtype == MSC_DTYPE_I8 && code >> (h->bits - 1) != 0;
        to[i] = (uint8_t)(is_negative ? code - (1 << h->bits) : code);
    }
    return MSC_OK;
}

static enum msc_status from_bytes(struct msc_array **out, const struct header *h,
                                  const Onnx__TensorProto *t, const void *data, size_t n_bytes) {
    if (n_bytes != h->n_bytes) {
        char text[MSC_DIMS_TEXT_BYTES];
        return MSC_FAIL(MSC_E_FORMAT, "tensor '%s' of %s%s needs %zu bytes, found %zu", name_of(t),
                        msc_dtype_name(h->dtype), msc_dims_format(text, h->n_dims, h->dims),
                        h->n_bytes, n_bytes);
    }
    if (h->bits != 0) {
        return unpack(out, h, data);
    }
    MSC_TRY(msc_array_create_from(out, h->dtype, h->n_dims, h->dims, data));
    if (h->dtype == MSC_DTYPE_BOOL) {
        // In the file, any byte but 0 means true; arrays hold 0 or 1.
        uint8_t *flags = msc_array_data(*out);
        for (int64_t i = 0; i < h->n_elements; i++) {
            flags[i] = flags[i] != 0;
        }
    }
    return MSC_OK;
}

// Typed fields of TensorProto, one number per element. 16-bit floats are stored as bits in
// int32_data.
struct fields {
    const float *floats;
    const double *doubles;
    const int32_t *int32s;
    const int64_t *int64s;
    const uint64_t *uint64s;
    size_t n;
};

static struct fields pick_fields(const Onnx__TensorProto *t, enum msc_dtype dtype) {
    switch (dtype) {
    case MSC_DTYPE_F32:
        return (struct fields){.floats = t->float_data, .n = t->n_float_data};
    case MSC_DTYPE_F64:
        return (struct fields){.doubles = t->double_data, .n = t->n_double_data};
    case MSC_DTYPE_I64:
        return (struct fields){.int64s = t->int64_data, .n = t->n_int64_data};
    case MSC_DTYPE_U32:
    case MSC_DTYPE_U64:
        return (struct fields){.uint64s = t->uint64_data, .n = t->n_uint64_data};
    default:
        return (struct fields){.int32s = t->int32_data, .n = t->n_int32_data};
    }
}

static void copy_int32s(void *to, const struct header *h, const int32_t *from) {
    for (int64_t i = 0; i < h->n_elements; i++) {
        if (h->dtype == MSC_DTYPE_BOOL) {
            ((uint8_t *)to)[i] = from[i] != 0;
        } else if (msc_dtype_bytes(h->dtype) == 1) {
            ((uint8_t *)to)[i] = (uint8_t)from[i];
        } else if (msc_dtype_bytes(h->dtype) == 2) {
            ((uint16_t *)to)[i] = (uint16_t)from[i];
        } else {
            ((int32_t *)to)[i] = from[i];
        }
    }
}

// Reads packed elements from a typed field, in which each number holds one byte.
static enum msc_status packed_from_fields(struct msc_array **out, const struct header *h,
                                          const int32_t from[]) {
    uint8_t *bytes = msc_alloc(h->n_bytes + 1);
    MSC_TRY(MSC_ALLOCATED(bytes));
    for (size_t i = 0; i < h->n_bytes; i++) {
        bytes[i] = (uint8_t)from[i];
    }
    enum msc_status status = unpack(out, h, bytes);
    msc_free(bytes);
    return status;
}

static enum msc_status from_fields(struct msc_array **out, const struct header *h,
                                   const Onnx__TensorProto *t) {
    struct fields f = pick_fields(t, h->dtype);
    if ((int64_t)f.n != (h->bits != 0 ? (int64_t)h->n_bytes : h->n_elements)) {
        char text[MSC_DIMS_TEXT_BYTES];
        return MSC_FAIL(MSC_E_FORMAT, "tensor '%s' is %s%s, but has %zu elements", name_of(t),
                        msc_dtype_name(h->dtype), msc_dims_format(text, h->n_dims, h->dims), f.n);
    }
    if (h->bits != 0) {
        return packed_from_fields(out, h, f.int32s);
    }
    MSC_TRY(msc_array_create(out, h->dtype, h->n_dims, h->dims));
    void *to = msc_array_data(*out);
    if (h->n_elements == 0) {
        return MSC_OK;
    }
    if (f.int32s != NULL) {
        copy_int32s(to, h, f.int32s);
    } else if (h->dtype == MSC_DTYPE_U32) {
        for (int64_t i = 0; i < h->n_elements; i++) {
            ((uint32_t *)to)[i] = (uint32_t)f.uint64s[i];
        }
    } else {
        const void *from = f.floats != NULL    ? (const void *)f.floats
                           : f.doubles != NULL ? (const void *)f.doubles
                           : f.int64s != NULL  ? (const void *)f.int64s
                                               : (const void *)f.uint64s;
        memcpy(to, from, h->n_bytes);
    }
    return MSC_OK;
}

static const char *external_entry(const Onnx__TensorProto *t, const char *key) {
    for (size_t i = 0; i < t->n_external_data; i++) {
        const Onnx__StringStringEntryProto *entry = t->external_data[i];
        if (entry->key != NULL && entry->value != NULL && strcmp(entry->key, key) == 0) {
            return entry->value;
        }
    }
    return NULL;
}

static enum msc_status external_number(uint64_t *out, const Onnx__TensorProto *t, const char *key,
                                       uint64_t otherwise) {
    const char *text = external_entry(t, key);
    *out = otherwise;
    if (text != NULL && !msc_parse_u64(out, text)) {
        return MSC_FAIL(MSC_E_FORMAT, "tensor '%s': external %s is '%s', expected a number",
                        name_of(t), key, text);
    }
    return MSC_OK;
}

// Smaller tensors are copied: a mapping takes whole pages.
#define LEAST_MAPPED_BYTES ((uint64_t)64 << 10)

// True if the elements can stay in the file: they are stored as arrays hold them.
static bool is_mappable(const struct header *h, uint64_t offset, uint64_t length) {
    return length == h->n_bytes && length >= LEAST_MAPPED_BYTES && h->bits == 0 &&
           h->dtype != MSC_DTYPE_BOOL && offset % msc_dtype_bytes(h->dtype) == 0;
}

static enum msc_status read_external(struct msc_array **out, const struct header *h,
                                     const Onnx__TensorProto *t, const char *path) {
    uint64_t offset, length, end;
    const void *data = NULL;
    MSC_TRY(external_number(&offset, t, "offset", 0));
    MSC_TRY(external_number(&length, t, "length", h->n_bytes));
    MSC_TRY(msc_file_size(&end, path));
    if (offset > end || length > end - offset) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "tensor '%s': bytes %llu to %llu are outside %s, which has %llu bytes",
                        name_of(t), (unsigned long long)offset,
                        (unsigned long long)(offset + length), path, (unsigned long long)end);
    }
    if (is_mappable(h, offset, length)) {
        return msc_array_create_mapped(out, h->dtype, h->n_dims, h->dims, path, offset);
    }
    if (length == 0) {
        return from_bytes(out, h, t, NULL, 0);
    }
    MSC_TRY(msc_file_map_part(&data, path, offset, (size_t)length));
    enum msc_status status = from_bytes(out, h, t, data, (size_t)length);
    msc_file_unmap_part(data, (size_t)length);
    return status;
}

static enum msc_status from_external(struct msc_array **out, const struct header *h,
                                     const Onnx__TensorProto *t, const char *folder) {
    const char *location = external_entry(t, "location");
    struct msc_arena arena = {0};
    char *path = NULL;
    enum msc_status status =
        msc_path_resolve_inside(&path, &arena, folder, location == NULL ? "" : location);
    if (status == MSC_E_INVALID) {
        status = MSC_FAIL(MSC_E_INVALID,
                          "tensor '%s': its data file '%s' must be in the model's own folder%s",
                          name_of(t), location == NULL ? "" : location,
                          location != NULL && msc_path_is_inside(location)
                              ? ", but a link leads out of it: copy the file there"
                              : "");
    }
    if (status == MSC_OK) {
        status = read_external(out, h, t, path);
    }
    msc_arena_finish(&arena);
    return status;
}

enum msc_status msc_onnx_array(struct msc_array **out, const Onnx__TensorProto *tensor,
                               const char *folder) {
    struct header h;
    MSC_TRY(read_header(&h, tensor));
    if (tensor->has_data_location &&
        tensor->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL) {
        return from_external(out, &h, tensor, folder);
    }
    if (tensor->has_raw_data) {
        return from_bytes(out, &h, tensor, tensor->raw_data.data, tensor->raw_data.len);
    }
    return from_fields(out, &h, tensor);
}
