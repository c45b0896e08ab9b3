// Linear quantisation as in ONNX's QuantizeLinear and DequantizeLinear: the formulas, and which
// scale each element uses. Constant folding and the reference kernels share it.
//
//     struct msc_linear_quant m;
//     MSC_TRY(msc_linear_quant_init(&m, joint, n_dims, dims, scale_n_dims, scale_dims));
//     for (int64_t i = 0, scale; i < n; i += length) {
//         length = msc_linear_quant_run(&m, i, n, &scale); // these take scales[scale]
//     }
//
// A format defines the codes: integers of the array's type, integers of 4 or 2 bits in a byte, or
// floats of 8 or 4 bits.
#ifndef MSC_GRAPH_LINEAR_QUANT_H
#define MSC_GRAPH_LINEAR_QUANT_H

#include "graph/narrow_float.h"
#include "graph/graph.h"

#include <math.h>

// How scales map to a tensor seen as [outer, length, inner].
struct msc_linear_quant {
    int64_t length, inner; // length of the axis, product of later axes; length 0: one scale for all
    int64_t block;         // positions along the axis that share a scale; 0: per axis
    int64_t n_blocks;      // number of blocks along the axis
};

// Reads the attributes axis and block_size. The scales can be one element of any shape (one
// scale), a list as long as the axis (per axis), or the tensor's shape with the axis divided by
// block_size, rounded up (blocks). MSC_E_INVALID if the scales fit none of these.
enum msc_status msc_linear_quant_init(struct msc_linear_quant *out, const struct msc_joint *joint,
                                      int n_dims, const int64_t dims[], int n_scale_dims,
                                      const int64_t scale_dims[]);
// Number of elements, starting at element `i` of `n`, that share a scale; *scale is the index of
// that scale.
int64_t msc_linear_quant_run(const struct msc_linear_quant *m, int64_t i, int64_t n,
                             int64_t *scale);

struct msc_quant_format {
    float low, high;                       // smallest and largest integer
    const struct msc_narrow_float *narrow; // NULL: integers
    bool saturates;                        // only for floats
};

// Reads the type of the codes and the joint's attributes format ("", "int4", "uint4", "int2",
// "uint2" or a name of graph/narrow_float.h) and, if it has one, saturate.
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

// Dequantises one code; `zero_point` is also a code. Integers are subtracted exactly and rounded
// to a float once.
static inline float msc_dequantize_number(const struct msc_quant_format *f, int64_t code,
                                          int64_t zero_point, float scale) {
    float value = f->narrow
                      ? msc_quant_format_value(f, code) - msc_quant_format_value(f, zero_point)
                      : (float)(code - zero_point);
    return value * scale;
}

#endif
