// ONNX files: checks and unpacks the protobuf message, and converts its tensors to arrays. Only
// graph/onnx/*.c includes this header.
#ifndef MSC_GRAPH_ONNX_ONNX_FILE_INTERNAL_H
#define MSC_GRAPH_ONNX_ONNX_FILE_INTERNAL_H

#include "data/array.h"

#include "onnx.pb-c.h"

// Element types of TensorProto, as numbers, because the bundled proto file lacks the newer types.
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
    MSC_ONNX_FLOAT4 = 23,
    MSC_ONNX_UINT2 = 25,
    MSC_ONNX_INT2 = 26,
};

enum msc_dtype msc_onnx_dtype(int type); // MSC_DTYPE_NONE if MSC has no such type
// Like msc_onnx_dtype, but with the type of the stored bytes: int8 or uint8 for 4-bit integers (one
// element per byte), uint8 for 8-bit floats. *format is then the type's name, else "".
enum msc_dtype msc_onnx_storage(int type, const char **format);
enum msc_onnx_type msc_onnx_type(enum msc_dtype dtype);
const char *msc_onnx_type_name(int type); // such as "float8e4m3fn"; "type 99" if unknown

// Reads and unpacks a file; *out is owned by the caller (msc_onnx_model_free). The message of
// MSC_E_FORMAT gives the byte at which the file is invalid.
enum msc_status msc_onnx_model_read(Onnx__ModelProto **out, const char *path);
void msc_onnx_model_free(Onnx__ModelProto *model); // accepts NULL
// Checks the bytes of a message before it is unpacked: its fields, its strings, and that it is not
// nested so deeply that unpacking would overflow the stack. `name` begins error messages.
enum msc_status msc_onnx__check_message(const void *data, size_t n_bytes,
                                        const ProtobufCMessageDescriptor *type, const char *name);

// Reads the elements of a tensor from the field that holds them; 4-bit elements become bytes.
// External data must be in `folder`. *out is owned by the caller. Error messages begin with the
// tensor's name.
enum msc_status msc_onnx_array(struct msc_array **out, const Onnx__TensorProto *tensor,
                               const char *folder);

#endif
