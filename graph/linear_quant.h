// Linear quantisation as in ONNX's QuantizeLinear and DequantizeLinear: the formulas, and the
// mapping from elements to scales. Used by constant folding and the reference kernels.
//
//     struct msc_linear_quant m;
//     MSC_TRY(msc_linear_quant_init(&m, joint, n_dims, dims, scale_n_dims, scale_dims));
//     for (int64_t i = 0, scale; i < n; i += length) {
//         length = msc_linear_quant_run(&m, i, n, &scale);
//         ... elements i to i + length - 1 have the scale scales[scale] ...
//     }
//
// A format (struct msc_quant_format) defines what a code is: an integer of the array's type, an
// integer of 4 or 2 bits in a byte, or a float of 8 or 4 bits.
#ifndef MSC_GRAPH_LINEAR_QUANT_H
#define MSC_GRAPH_LINEAR_QUANT_H

#include "graph/narrow_float.h"
#include "graph/graph.h"

#include <math.h>

// How scales map to a tensor seen as [outer, length, inner].
struct msc_linear_quant {
    // `length` is the length of the axis along which scales vary, or 0 if there is a single scale;
    // `inner` is the product of the lengths after this axis
    int64_t length, inner;
    // number of positions along the axis that share a scale; 0: one scale for each position
    int64_t block;
    int64_t n_blocks; // number of blocks along the axis
};

// Reads the attributes axis and block_size of the joint. The array of scales may have one element,
// a single dimension as long as the axis, or the tensor's shape with the length of the axis divided
// by block_size and rounded up. MSC_E_INVALID if it has none of these shapes.
enum msc_status msc_linear_quant_init(struct msc_linear_quant *out, const struct msc_joint *joint,
                                      int n_dims, const int64_t dims[], int n_scale_dims,
                                      const int64_t scale_dims[]);
// Returns how many consecutive elements, starting at element `i` of `n`, share a scale. *scale is
// the index of that scale.
int64_t msc_linear_quant_run(const struct msc_linear_quant *m, int64_t i, int64_t n,
                             int64_t *scale);

struct msc_quant_format {
    float low, high;                       // smallest and largest code of an integer format
    const struct msc_narrow_float *narrow; // NULL: codes are integers
    bool saturates; // only for 8-bit floats: clamp numbers that are too large
};

// Determines the format from the type of the array and the joint's attributes: `format` ("",
// "int4", "uint4", "int2", "uint2" or a name of graph/narrow_float.h) and, if present, `saturate`.
void msc_quant_format_init(struct msc_quant_format *out, const struct msc_joint *joint,
                           enum msc_dtype dtype);

static inline float msc_quant_format_value(const struct msc_quant_format *f, int64_t code) {
    return f->narrow ? msc_narrow_float_decode(f->narrow, (uint8_t)code) : (float)code;
}

// Quantises one number. `zero_point` is a value, not a code. NaN becomes the smallest integer.
static inline int64_t msc_quantize_number(const struct msc_quant_format *f, float x, float scale,
                                          float zero_point) {
    if (f->narrow) {
        return msc_narrow_float_encode(f->narrow, x / scale + zero_point, f->saturates);
    }
    float q = rintf(x / scale) + zero_point;
    return (int64_t)(q >= f->low ? (q <= f->high ? q : f->high) : f->low);
}

// Dequantises one code; `zero_point` is also a code. For integers, the difference of the codes is
// computed exactly and rounded to a float once.
static inline float msc_dequantize_number(const struct msc_quant_format *f, int64_t code,
                                          int64_t zero_point, float scale) {
    float value = f->narrow
                      ? msc_quant_format_value(f, code) - msc_quant_format_value(f, zero_point)
                      : (float)(code - zero_point);
    return value * scale;
}

#endif
