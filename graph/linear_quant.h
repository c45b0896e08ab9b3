// Linear quantisation as ONNX's QuantizeLinear and DequantizeLinear have it: numbers, and which
// scale an element takes. Constant folding and the reference kernels share it.
//
//     struct msc_linear_quant m;
//     MSC_TRY(msc_linear_quant_init(&m, joint, n_dims, dims, scale_n_dims, scale_dims));
//     for (int64_t i = 0, scale; i < n; i += length) {
//         length = msc_linear_quant_run(&m, i, n, &scale); // these take scales[scale]
//     }
//
// A format is what codes stand for: integers of the type, of 4 bits in a byte, or floats of 8 bits.
#ifndef MSC_GRAPH_LINEAR_QUANT_H
#define MSC_GRAPH_LINEAR_QUANT_H

#include "graph/float8.h"
#include "graph/graph.h"

#include <math.h>

// How scales lie over a tensor seen as [outer, length, inner].
struct msc_linear_quant {
    int64_t length, inner; // of the axis and behind it; length 0: one scale for all
    int64_t block;         // positions along the axis that share a scale; 0: per axis
    int64_t n_blocks;      // along the axis
};

// From the joint's attributes axis and block_size. One scale: of any shape with one element. Per
// axis: a list as long as the axis. In blocks: the tensor's shape with the axis divided by
// block_size, rounded up. MSC_E_INVALID when the scales fit none of these.
enum msc_status msc_linear_quant_init(struct msc_linear_quant *out, const struct msc_joint *joint,
                                      int n_dims, const int64_t dims[], int n_scale_dims,
                                      const int64_t scale_dims[]);
// How many elements from `i` on, of `n` in all, take the same scale, and which.
int64_t msc_linear_quant_run(const struct msc_linear_quant *m, int64_t i, int64_t n,
                             int64_t *scale);

struct msc_quant_format {
    float low, high;                 // least and greatest integer
    const struct msc_float8 *float8; // NULL: integers
    bool saturates;                  // of floats
};

// From the type of the codes and the joint's attributes format ("", "int4", "uint4" or a name of
// graph/float8.h) and, where it has one, saturate.
void msc_quant_format_init(struct msc_quant_format *out, const struct msc_joint *joint,
                           enum msc_dtype dtype);

static inline float msc_quant_format_value(const struct msc_quant_format *f, int64_t code) {
    return f->float8 ? msc_float8_decode(f->float8, (uint8_t)code) : (float)code;
}

// `zero_point` is a value, not its code. NaN becomes the least integer.
static inline int64_t msc_quantize_number(const struct msc_quant_format *f, float x, float scale,
                                          float zero_point) {
    if (f->float8) {
        return msc_float8_encode(f->float8, x / scale + zero_point, f->saturates);
    }
    float q = rintf(x / scale) + zero_point;
    return (int64_t)(q >= f->low ? (q <= f->high ? q : f->high) : f->low);
}

// Of two codes. Integers are exact before they are rounded to a float once.
static inline float msc_dequantize_number(const struct msc_quant_format *f, int64_t code,
                                          int64_t zero_point, float scale) {
    float value = f->float8
                      ? msc_quant_format_value(f, code) - msc_quant_format_value(f, zero_point)
                      : (float)(code - zero_point);
    return value * scale;
}

#endif
