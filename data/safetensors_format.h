// What reading and writing safetensors have in common. Internal to data/.
#ifndef MSC_DATA_SAFETENSORS_FORMAT_H
#define MSC_DATA_SAFETENSORS_FORMAT_H

#include "data/dtype.h"

// The header's length, little-endian, comes first.
#define MSC_SAFETENSORS_LENGTH_BYTES 8u

// "F32", "BOOL", ...; never NULL for a type that arrays can have.
const char *msc_safetensors__code(enum msc_dtype dtype);

#endif
