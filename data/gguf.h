// GGUF, the file format of llama.cpp, versions 2 and 3, little-endian:
//
//     "GGUF", u32 version, u64 number of tensors, u64 number of values
//     values    text key, u32 type, the value; an array is u32 type, u64 length and its elements
//     tensors   text name, u32 number of axes, u64 length of each axis (the last axis of the array
//               first), u32 type (data/gguf_block.h), u64 offset
//     data      at the next multiple of `general.alignment` (32 by default), where offset 0 is
//
// A text is a u64 length and its bytes; only texts in arrays may have the byte 0. The types of
// values are u8, i8, u16, i16, u32, i32, f32, bool, text, array, u64, i64, f64.
//
//     MSC_TRY(msc_gguf_open(&g, "model.gguf"));
//     if (msc_gguf_number(&n, g, "llama.block_count")) { ... }
//     MSC_TRY_OUT(msc_gguf_load(&weight, g, msc_gguf_find(g, "token_embd.weight")));
//     out: msc_gguf_close(g);
#ifndef MSC_DATA_GGUF_H
#define MSC_DATA_GGUF_H

#include "data/array.h"
#include "data/gguf_block.h"

struct msc_gguf;

struct msc_gguf_tensor {
    const char *name;
    int type; // the format's number; the tensor may have a type that this program does not know
    int n_dims;
    int64_t dims[MSC_MAX_DIMS]; // in the order of arrays: the last axis has contiguous elements
    // Bytes of the elements, which are in the file; NULL and 0 if the type is not known.
    const uint8_t *bytes;
    size_t n_bytes;
};

// Reads everything but the elements. The file stays mapped until msc_gguf_close. Elements of known
// types must be inside the file. MSC_E_FORMAT names the place; MSC_E_UNSUPPORTED: another version.
enum msc_status msc_gguf_open(struct msc_gguf **out, const char *path);
void msc_gguf_close(struct msc_gguf *g); // accepts NULL
const char *msc_gguf_path(const struct msc_gguf *g);
size_t msc_gguf_n_tensors(const struct msc_gguf *g);
const struct msc_gguf_tensor *msc_gguf_tensor(const struct msc_gguf *g, size_t index);
const struct msc_gguf_tensor *msc_gguf_find(const struct msc_gguf *g, const char *name); // or NULL
// The value of a key; false if the key is absent or its value is not a number or a truth value, or
// not a text. Texts are borrowed until the file is closed.
bool msc_gguf_number(double *out, const struct msc_gguf *g, const char *key);
bool msc_gguf_text(const char **out, const struct msc_gguf *g, const char *key);
bool msc_gguf_has_value(const struct msc_gguf *g, const char *key); // of any type
// The values in turn, for writing them to another file: their keys, and their bytes with key and
// type.
size_t msc_gguf_n_values(const struct msc_gguf *g);
const char *msc_gguf_value_key(const struct msc_gguf *g, size_t index);
const uint8_t *msc_gguf_value_bytes(size_t *n_bytes, const struct msc_gguf *g, size_t index);
size_t msc_gguf_alignment(const struct msc_gguf *g);

// The elements as float32. *out is owned by the caller. MSC_E_UNSUPPORTED: the type is not a float
// or block type that this program knows.
enum msc_status msc_gguf_load(struct msc_array **out, const struct msc_gguf *g,
                              const struct msc_gguf_tensor *tensor);

// Bytes of n elements; 0 if the type is not known, or its blocks do not fit rows of this length.
size_t msc_gguf_n_bytes(int type, int64_t n, int64_t row_length);
// The name of a type in upper case ("Q4_K"), as files and llama.cpp's listings have it.
const char *msc_gguf_type_name(char name[8], int type);

#endif
