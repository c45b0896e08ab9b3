// Writes FlatBuffers: vectors, strings and tables in one block of memory.
//
// A block is written from its end to its beginning, so what a table refers to is written before the
// table. Functions return a reference: the number of bytes from the written object's first byte to
// the end of the block. Format, all numbers little-endian:
//
//     vector   uint32 length, then the elements; a string is a vector of bytes, followed by 0
//     table    int32 distance back to its vtable, then the fields
//     vtable   uint16 bytes of the vtable, uint16 bytes of the table, then for each field a uint16,
//              its distance from the table's start, or 0 if it is absent
//     block    uint32 distance to the root table, 4 letters that identify the file
//
// Distances to vectors and tables are uint32, counted from the field that holds the distance.
//
//     struct msc_flat f = {0};
//     uint32_t name = msc_flat_string(&f, "image");
//     msc_flat_begin(&f);
//     msc_flat_put_ref(&f, 0, name);
//     msc_flat_put_i32(&f, 1, 8);
//     msc_flat_finish(&f, msc_flat_end(&f), "TFL3");
//     status = f.status;                       // the first failure of all calls
//     ... f.bytes + f.capacity - f.n_bytes has n_bytes bytes ...
//     msc_flat_free(&f);
#ifndef MSC_GRAPH_TFLITE_FLATBUFFER_H
#define MSC_GRAPH_TFLITE_FLATBUFFER_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

enum { MSC_FLAT_MOST_FIELDS = 16 };
// Vectors with this alignment can be read by vector instructions.
enum { MSC_FLAT_WIDE = 16 };

// Begin with a zeroed struct.
struct msc_flat {
    unsigned char *bytes; // [capacity]; the last n_bytes are written
    size_t capacity, n_bytes;
    enum msc_status status;
    size_t table;                        // n_bytes at the end of the open table
    size_t fields[MSC_FLAT_MOST_FIELDS]; // of the open table: reference of each field, or 0
};

// Writes `n` elements. `alignment` is a power of two from the element's size to MSC_FLAT_WIDE.
uint32_t msc_flat_vector(struct msc_flat *f, const void *elements, size_t n, size_t element_bytes,
                         size_t alignment);
uint32_t msc_flat_string(struct msc_flat *f, const char *text);
// Writes a vector of references to tables or strings.
uint32_t msc_flat_refs(struct msc_flat *f, const uint32_t refs[], size_t n);
// Opens a table; only one table may be open, and nothing but fields may be written until it ends.
void msc_flat_begin(struct msc_flat *f);
void msc_flat_put_i8(struct msc_flat *f, int field, int8_t value);
void msc_flat_put_i32(struct msc_flat *f, int field, int32_t value);
void msc_flat_put_f32(struct msc_flat *f, int field, float value);
void msc_flat_put_ref(struct msc_flat *f, int field, uint32_t ref);
uint32_t msc_flat_end(struct msc_flat *f);
// Writes the head of the block. Fails with MSC_E_UNSUPPORTED if the block has 2^31 bytes or more.
void msc_flat_finish(struct msc_flat *f, uint32_t root, const char identifier[]);
void msc_flat_free(struct msc_flat *f);

#endif
