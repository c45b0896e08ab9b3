// Quantisations, as plain data.
//
// Fake quantisation (ONNX convention): q = clamp(rint(x / scale) + zero_point, low, high), then
// x' = (q - zero_point) * scale, in float32, rounding half to even. For a narrower float type, x'
// is the nearest number of that type, half to even; numbers beyond its largest become the
// largest.
#ifndef MSC_GRAPH_QUANT_H
#define MSC_GRAPH_QUANT_H

#include "base/hash.h"
#include "data/array.h"

MSC_PUBLIC_BEGIN

// The largest numbers of the float types.
#define MSC_F16_MAX 65504.0f
#define MSC_BF16_MAX 0x1.fep127f

// Must not change once sealed; equal content has equal `hash`.
struct msc_quant {
    // MSC_DTYPE_NONE: integers. MSC_DTYPE_F16, MSC_DTYPE_BF16: 16-bit floats of that type; then
    // there is one scale of 1, and the other members are ignored.
    enum msc_dtype type;
    int32_t bits;      // 2 … 16
    int32_t low, high; // inclusive range of q
    int32_t axis; // channel axis of per-channel parameters; -1: one scale and zero point for all
    int32_t n;    // number of scales: 1, or the length of that axis, or the number of groups
    // Groups, if group_size is positive: the `group_axes` axes from `axis` on count as one axis.
    // Each `group_size` elements along it share a scale; the last group may be shorter. Scales
    // are in the order of the groups' elements. (As blocks in ONNX opset 21, except for the
    // merged axes.)
    int32_t group_size, group_axes;
    const float *scales;        // [n], positive
    const int32_t *zero_points; // [n]
    // The q of a weight, if they are chosen rather than rounded to nearest: int8 if `low` is
    // negative, else uint8, in the order of the weight's elements, which are then ignored. NULL:
    // q are rounded.
    const struct msc_array *integers;
    // If a weight's rounding shifts the means of its joint's outputs: the summands of the joint's
    // bias that correct this, float32 [output channels] (tools/bias_edits.h makes edits of them).
    // NULL: none.
    const struct msc_array *shifts;
    struct msc_hash hash;
};

// Fills `hash` from the other members.
void msc_quant_seal(struct msc_quant *q);
// A copy that outlives `q`: it owns its parameters and holds references to the arrays;
// msc_quant_finish frees both. After an error there is nothing to free.
enum msc_status msc_quant_copy(struct msc_quant *out, const struct msc_quant *q);
void msc_quant_finish(struct msc_quant *q); // accepts a copy, or all zero
// Checks that the chosen integers, if any, are n integers within [low, high]. MSC_E_INVALID names
// the mismatch.
enum msc_status msc_quant_check_integers(const struct msc_quant *q, int64_t n);
// True if each channel along its axis has a scale.
static inline bool msc_quant_is_by_channel(const struct msc_quant *q) {
    return q->axis >= 0 && q->group_size == 0;
}
// Rounding to MSC_DTYPE_F16 or MSC_DTYPE_BF16, sealed; borrows no memory.
struct msc_quant msc_quant_of_float(enum msc_dtype type);

// Maps elements to scales. The array is [outer, length, inner], and `length` is divided into
// blocks of `size`. Element (o, k, i) has scale o * outer_step + k / size * block_step + i *
// inner_step.
struct msc_quant_split {
    int64_t outer, length, inner, size;
    int64_t outer_step, block_step, inner_step; // inner_step is 0 or 1
};
// False if the scales do not fit a tensor of these dims.
bool msc_quant_split(struct msc_quant_split *out, const struct msc_quant *q, int n_dims,
                     const int64_t dims[]);

// The formula, for one value and for a contiguous run with one scale and zero point.
int32_t msc_quantize_value(float x, float scale, int32_t zero_point, int32_t low, int32_t high);
void msc_quantize_run(int32_t out[], const float x[], int64_t n, float scale, int32_t zero_point,
                      int32_t low, int32_t high);
void msc_fake_quantize_run(float out[], const float x[], int64_t n, float scale, int32_t zero_point,
                           int32_t low, int32_t high);
// (q - zero_point) * scale for 8-bit integers (MSC_DTYPE_U8, MSC_DTYPE_I8) with one scale for
// all.
void msc_dequantize_run(float out[], const void *q, enum msc_dtype dtype, int64_t n,
                        const struct msc_quant *quant);
// Quantise and dequantise per channel. Elements are laid out as [outer, quant->n, inner]. For
// float32 `out`, msc_quantize_channels fake-quantises.
void msc_quantize_channels(void *out, enum msc_dtype dtype, const float x[], int64_t outer,
                           int64_t inner, const struct msc_quant *q);
void msc_dequantize_channels(float out[], const void *q, enum msc_dtype dtype, int64_t outer,
                             int64_t inner, const struct msc_quant *quant);
// Any quantisation with one scale; out may equal x.
void msc_quant_apply_run(float out[], const float x[], int64_t n, const struct msc_quant *q);
// Quantises a whole array, per channel or group if q says so. *out is float32 of the same shape.
enum msc_status msc_fake_quantize_array(struct msc_array **out, const struct msc_array *x,
                                        const struct msc_quant *q);
// The integers (int32), for export and integer kernels. MSC_E_INVALID for float types.
enum msc_status msc_quantize_array(struct msc_array **out, const struct msc_array *x,
                                   const struct msc_quant *q);

MSC_PUBLIC_END

#endif
