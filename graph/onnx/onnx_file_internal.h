// ONNX files: checks and unpacks the protobuf message, and converts its tensors to arrays. Only
// graph/onnx*.c includes this header.
#ifndef MSC_GRAPH_ONNX_ONNX_FILE_INTERNAL_H
#define MSC_GRAPH_ONNX_ONNX_FILE_INTERNAL_H

#include "data/array.h"

#include "onnx.pb-c.h"

// Element types of TensorProto as numbers, because the proto file does not have the newer ones.
enum msc_onnx_type {
    MSC_ONNX_FLOAT = 1,
    MSC_ONNX_UINT8 = 2,
    MSC_ONNX_INT8 = 3,
    MSC_ONNX_UINT16 = 4,
    MSC_ONNX_INT16 = 5,
    MSC_ONNX_INT32 = 6,
    MSC_ONNX_INT64 = 7,
    MSC_ONNX_STRING = 8,
    MSC_ONNX_BOOL = 9,
    MSC_ONNX_FLOAT16 = 10,
    MSC_ONNX_DOUBLE = 11,
    MSC_ONNX_UINT32 = 12,
    MSC_ONNX_UINT64 = 13,
    MSC_ONNX_BFLOAT16 = 16,
    MSC_ONNX_UINT4 = 21,
    MSC_ONNX_INT4 = 22,
};

enum msc_dtype msc_onnx_dtype(int type); // MSC_DTYPE_NONE if MSC has no such type
// The same, but int8 or uint8 for 4-bit integers (one element in each byte) and uint8 for 8-bit
// floats; *format is then the type's name, else "".
enum msc_dtype msc_onnx_storage(int type, const char **format);
enum msc_onnx_type msc_onnx_type(enum msc_dtype dtype);
const char *msc_onnx_type_name(int type); // "float8e4m3fn", ...; "type 99"

// Reads and unpacks a file; *out is owned by the caller (msc_onnx_model_free). MSC_E_FORMAT names
// the byte at which the file is invalid.
enum msc_status msc_onnx_model_read(Onnx__ModelProto **out, const char *path);
void msc_onnx_model_free(Onnx__ModelProto *model); // accepts NULL

// Reads the elements (4-bit ones as bytes) from the field that holds them. External data must be
// in `folder`. *out is owned by the caller. The error message begins with the tensor's name.
enum msc_status msc_onnx_array(struct msc_array **out, const Onnx__TensorProto *tensor,
                               const char *folder);

#endif
