// The block types of GGUF, the file format of llama.cpp: a row of a weight is cut into blocks of 32
// or 256 elements, and each block has the codes of its elements and the numbers that they stand
// for. Bytes and values are those of the format, bit for bit.
//
// The elements of a part of 16 or 32 share a scale and a minimum. With the block's numbers d and m
// (float16), element e of part p has the value
//
//     scale[p] * (code[e] - zero) - minimum[p]        all in float32
//
//     type         block  bytes  part  codes   scale[p]            minimum[p]
//     Q8_0            32     34    32  8 bits  d                   0
//     Q4_0, Q5_0      32  18,22    32  4, 5    d                   0
//     Q4_1, Q5_1      32  20,24    32  4, 5    d                   -m
//     Q3_K, Q6_K     256 110,210   16  3, 6    d * factor[p]       0
//     Q2_K           256     84    16  2       d * factor[p]       m * lift[p]
//     Q4_K, Q5_K     256 144,176   32  4, 5    d * factor[p]       m * lift[p]
//
// `factor` and `lift` are integers of 4, 6 or 8 bits. `zero` is 0 for types with a minimum, else
// half the number of codes.
#ifndef MSC_DATA_GGUF_BLOCK_H
#define MSC_DATA_GGUF_BLOCK_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

MSC_PUBLIC_BEGIN

#define MSC_GGUF_MAX_BLOCK 256
#define MSC_GGUF_MAX_PARTS 16
#define MSC_GGUF_MAX_BYTES 210

// The numbers of the format. The block types are the types that msc_gguf_block_type accepts.
enum msc_gguf_type {
    MSC_GGUF_F32 = 0,
    MSC_GGUF_F16 = 1,
    MSC_GGUF_Q4_0 = 2,
    MSC_GGUF_Q4_1 = 3,
    MSC_GGUF_Q5_0 = 6,
    MSC_GGUF_Q5_1 = 7,
    MSC_GGUF_Q8_0 = 8,
    MSC_GGUF_Q2_K = 10,
    MSC_GGUF_Q3_K = 11,
    MSC_GGUF_Q4_K = 12,
    MSC_GGUF_Q5_K = 13,
    MSC_GGUF_Q6_K = 14,
    MSC_GGUF_BF16 = 30,
    MSC_GGUF_NO_TYPE = -1,
};

// How a block type stores its integers.
struct msc_gguf_block_type {
    enum msc_gguf_type type;
    const char *name; // "q4_k", as llama.cpp's tools write it
    int n, n_bytes;   // elements and bytes of a block
    int n_in_part;    // elements that share a scale
    int bits, zero;   // of the codes
    bool has_minimums;
    // Bounds of `factor` and `lift`; 0 and 0 if the block has neither.
    int least_factor, most_factor;
};

// NULL if the type is not a block type that this program knows.
const struct msc_gguf_block_type *msc_gguf_block_type(int type);
// NULL if no block type has this name.
const struct msc_gguf_block_type *msc_gguf_block_type_named(const char *name);
// The block types in turn, in the order of the format's numbers; NULL after the last.
const struct msc_gguf_block_type *msc_gguf_block_type_at(int index);

// A block whose integers are unpacked.
struct msc_gguf_block {
    uint16_t d, m; // float16
    int16_t factors[MSC_GGUF_MAX_PARTS];
    uint8_t lifts[MSC_GGUF_MAX_PARTS];
    uint8_t codes[MSC_GGUF_MAX_BLOCK];
};

void msc_gguf_unpack(struct msc_gguf_block *out, const uint8_t bytes[],
                     const struct msc_gguf_block_type *type);
// All integers must be in their ranges. Writes type->n_bytes.
void msc_gguf_pack(uint8_t bytes[], const struct msc_gguf_block *block,
                   const struct msc_gguf_block_type *type);
// Fills scale and minimum of each part.
void msc_gguf_scales(float scales[], float minimums[], const struct msc_gguf_block *block,
                     const struct msc_gguf_block_type *type);
// Decodes n_blocks blocks, one after another.
void msc_gguf_decode(float out[], const uint8_t bytes[], int64_t n_blocks,
                     const struct msc_gguf_block_type *type);

MSC_PUBLIC_END

#endif
