// Linear quantisation as ONNX's QuantizeLinear and DequantizeLinear have it: numbers, and which
// scale an element takes. Constant folding and the reference kernels share it.
//
//     struct msc_linear_quant m;
//     MSC_TRY(msc_linear_quant_init(&m, joint, n_dims, dims, scale_n_dims, scale_dims));
//     for (int64_t i = 0, scale; i < n; i += length) {
//         length = msc_linear_quant_run(&m, i, n, &scale); // these take scales[scale]
//     }
#ifndef MSC_GRAPH_LINEAR_QUANT_H
#define MSC_GRAPH_LINEAR_QUANT_H

#include "graph/graph.h"

#include <math.h>

#ifdef __cplusplus
extern "C" {
#endif

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

// Least and greatest integer of the type, or of so many bits in it when `bits` is not 0.
void msc_linear_quant_limits(float *low, float *high, enum msc_dtype dtype, int64_t bits);

// NaN becomes `low`.
static inline float msc_quantize_number(float x, float scale, float zero_point, float low,
                                        float high) {
    float q = rintf(x / scale) + zero_point;
    return q >= low ? (q <= high ? q : high) : low;
}

static inline float msc_dequantize_number(int64_t q, int64_t zero_point, float scale) {
    return (float)(q - zero_point) * scale;
}

#ifdef __cplusplus
}
#endif

#endif
