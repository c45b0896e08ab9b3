// The instructions of element-wise programs: vectorised loops over contiguous blocks.
#ifndef MSC_KERNELS_CPU_EWISE_LOOPS_H
#define MSC_KERNELS_CPU_EWISE_LOOPS_H

#include "kernels/cpu/simd.h"

#ifdef __cplusplus
extern "C" {
#endif

enum msc_ewise_op {
    MSC_EWISE_ADD,
    MSC_EWISE_SUBTRACT,
    MSC_EWISE_MULTIPLY,
    MSC_EWISE_DIVIDE,
    MSC_EWISE_MAXIMUM,
    MSC_EWISE_MINIMUM,
    MSC_EWISE_POWER,
    MSC_EWISE_FINISH_I32, // as FINISH_F32, of (float)(sum - offset); x: sum, scale, bias, offset
    MSC_EWISE_RELU,
    MSC_EWISE_LEAKY_RELU,   // p[0]: slope below 0
    MSC_EWISE_CLIP,         // p[0] ... p[1]
    MSC_EWISE_HARD_SIGMOID, // p[0] * a + p[1], limited to 0 ... 1
    MSC_EWISE_HARD_SWISH,
    MSC_EWISE_SIGMOID,
    MSC_EWISE_TANH,
    MSC_EWISE_ERF,
    MSC_EWISE_EXP,
    MSC_EWISE_LOG,
    MSC_EWISE_SQRT,
    MSC_EWISE_SQUARE_ROOT_POWER, // a to the power 0.5
    MSC_EWISE_ABS,
    MSC_EWISE_NEGATIVE,
    MSC_EWISE_RECIPROCAL,
    MSC_EWISE_FLOOR,
    MSC_EWISE_CEIL,
    MSC_EWISE_ROUND,
    MSC_EWISE_ELU_TAIL,      // a is x, b is exp(x), p[0] alpha
    MSC_EWISE_GELU_TAIL,     // a is x, b erf(x / sqrt(2)) or the tangent that stands for it
    MSC_EWISE_TANH_ARGUMENT, // of gelu's tangent
    MSC_EWISE_SCALE,         // p[0] * a
    MSC_EWISE_COPY,
    MSC_EWISE_FINISH_F32, // scale * sum + bias, limited to p[0] ... p[1]; x: sum, scale, bias
    MSC_EWISE_OP_COUNT
};

// out[i] = f(x[0][i], x[1][i], ...) for n elements; out may equal any x. Unused ones are NULL.
#define MSC_EWISE_MAX_X 4
typedef void (*msc_ewise_fn)(float *out, const float *const x[MSC_EWISE_MAX_X], const float p[2],
                             int64_t n);

msc_ewise_fn msc_ewise_op_fn(enum msc_ewise_op op);

#ifdef __cplusplus
}
#endif

#endif
