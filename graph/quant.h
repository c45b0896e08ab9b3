// Quantisations, as plain data.
//
// Fake quantisation (ONNX convention): q = clamp(rint(x / scale) + zero_point, low, high), then
// x' = (q - zero_point) * scale, in float32, rounding half to even. Or a narrower float type: x' is
// the nearest number of that type, half to even; what lies beyond its greatest number becomes that.
#ifndef MSC_GRAPH_QUANT_H
#define MSC_GRAPH_QUANT_H

#include "base/hash.h"
#include "data/array.h"

MSC_PUBLIC_BEGIN

// The greatest numbers of the float types.
#define MSC_F16_MAX 65504.0f
#define MSC_BF16_MAX 0x1.fep127f

// Constant once made; equal content has equal `hash`.
struct msc_quant {
    // MSC_DTYPE_NONE: integers. MSC_DTYPE_F16, MSC_DTYPE_BF16: floats of that type, of 16 bits;
    // then there is one scale of 1 and nothing else counts.
    enum msc_dtype type;
    int32_t bits;      // 2 … 16
    int32_t low, high; // inclusive range of q
    int32_t axis;      // channel axis of per-channel parameters in the tensor's shape; -1: one pair
    int32_t n;         // number of scales: 1, or the length of that axis, or that of groups
    // Groups, where group_size is positive: the `group_axes` axes from `axis` on are taken as one,
    // and each `group_size` elements along them have a scale, what is left at the end too; scales
    // lie as those elements do. (Blocks of ONNX's opset 21, but for the axes taken as one.)
    int32_t group_size, group_axes;
    const float *scales;        // [n], positive
    const int32_t *zero_points; // [n]
    // Of a weight whose q are chosen, not rounded to nearest: these, int8 where `low` is negative,
    // else uint8, in the order of its elements; what the weight holds counts no more. NULL: rounded.
    const struct msc_array *integers;
    // Of a weight whose rounding moves the means of its joint's outputs: what the joint's bias is
    // raised by, float32 [output channels] (tools/bias_edits.h makes edits of it). NULL: nothing.
    const struct msc_array *shifts;
    struct msc_hash hash;
};

// Fills `hash` from the other members.
void msc_quant_seal(struct msc_quant *q);
// A copy with parameters of its own and references to the arrays, which outlives `q`;
// msc_quant_finish frees these. After an error there is nothing to free.
enum msc_status msc_quant_copy(struct msc_quant *out, const struct msc_quant *q);
void msc_quant_finish(struct msc_quant *q); // of a copy, or all zero
// Are the integers, if there are any, so many, and do they lie from low to high? MSC_E_INVALID says
// what is wrong.
enum msc_status msc_quant_check_integers(const struct msc_quant *q, int64_t n);
// Has it a scale for each channel along its axis?
static inline bool msc_quant_is_by_channel(const struct msc_quant *q) {
    return q->axis >= 0 && q->group_size == 0;
}
// Rounding to MSC_DTYPE_F16 or MSC_DTYPE_BF16, sealed; it needs no memory of the caller's.
struct msc_quant msc_quant_of_float(enum msc_dtype type);

// Which scale an element has: the array is [outer, length, inner] and `length` falls into blocks of
// `size`; element (o, k, i) has scale o * outer_step + k / size * block_step + i * inner_step.
struct msc_quant_split {
    int64_t outer, length, inner, size;
    int64_t outer_step, block_step, inner_step; // inner_step is 0 or 1
};
// False when the scales do not fit a tensor of these dims.
bool msc_quant_split(struct msc_quant_split *out, const struct msc_quant *q, int n_dims,
                     const int64_t dims[]);

// The formula, for one value and for a contiguous run with one scale and zero point.
int32_t msc_quantize_value(float x, float scale, int32_t zero_point, int32_t low, int32_t high);
void msc_quantize_run(int32_t out[], const float x[], int64_t n, float scale, int32_t zero_point,
                      int32_t low, int32_t high);
void msc_fake_quantize_run(float out[], const float x[], int64_t n, float scale, int32_t zero_point,
                           int32_t low, int32_t high);
// (q - zero_point) * scale of integers of a byte (MSC_DTYPE_U8, MSC_DTYPE_I8), one scale for all.
void msc_dequantize_run(float out[], const void *q, enum msc_dtype dtype, int64_t n,
                        const struct msc_quant *quant);
// The same by channel, of elements that lie as [outer, quant->n, inner] around the channels.
void msc_quantize_channels(void *out, enum msc_dtype dtype, const float x[], int64_t outer,
                           int64_t inner, const struct msc_quant *q);
void msc_dequantize_channels(float out[], const void *q, enum msc_dtype dtype, int64_t outer,
                             int64_t inner, const struct msc_quant *quant);
// Any edit with one scale; out may equal x.
void msc_quant_apply_run(float out[], const float x[], int64_t n, const struct msc_quant *q);
// A whole array, per channel or group where q says so. *out is float32 of the same shape.
enum msc_status msc_fake_quantize_array(struct msc_array **out, const struct msc_array *x,
                                        const struct msc_quant *q);
// The integers themselves (int32) for export and integer kernels. MSC_E_INVALID for float types.
enum msc_status msc_quantize_array(struct msc_array **out, const struct msc_array *x,
                                   const struct msc_quant *q);

MSC_PUBLIC_END

#endif
