// Quantisations as plain data, and the functions that apply them.
//
// Fake quantisation in float32, as in ONNX:
//
//     q = clamp(rint(x / scale) + zero_point, low, high)
//     y = (q - zero_point) * scale
//
// For blocks of GGUF, y is what their bytes stand for (data/gguf_block.h).
//
// For a 16-bit float type, y is the nearest number of that type. Numbers beyond the type's largest
// finite number become that number. Ties are rounded to even in both cases.
//
// A dynamic quantisation takes scale and zero point from the elements of the tensor that it is
// applied to, as ONNX's DynamicQuantizeLinear does: q is a uint8, and the range of x is extended to
// contain 0,
//
//     scale = (max(x, 0) - min(x, 0)) / 255        (1 if the range is empty)
//     zero_point = clamp(rint(-min(x, 0) / scale), 0, 255)
#ifndef MSC_GRAPH_QUANT_H
#define MSC_GRAPH_QUANT_H

#include "base/hash.h"
#include "data/array.h"
#include "data/gguf_block.h"

MSC_PUBLIC_BEGIN

// The largest finite numbers of the 16-bit float types.
#define MSC_F16_MAX 65504.0f
#define MSC_BF16_MAX 0x1.fep127f

// A quantisation must not change once it is sealed. Equal quantisations have equal hashes.
struct msc_quant {
    // MSC_DTYPE_NONE: to integers. MSC_DTYPE_F16 or MSC_DTYPE_BF16: to 16-bit floats of that type;
    // then there is one scale of 1, and the other members are ignored.
    enum msc_dtype type;
    // Not NULL: to blocks of this type of GGUF, for weights only. Rows of blocks run along `axis`;
    // `integers` has their bytes, row after row (rows are in the order of the other axes). There is
    // one scale of 1; `group_size` is the number of elements of a block, and `group_axes` is 1.
    const struct msc_gguf_block_type *blocks;
    // Only for activations: scale and zero point follow from the elements. `bits`, `low` and `high`
    // are those of uint8; there is one scale of 1, which is not used.
    bool is_dynamic;
    int32_t bits;      // 2 to 16
    int32_t low, high; // inclusive range of q
    int32_t axis; // channel axis of per-channel parameters; -1: one scale and zero point for all
    int32_t n;    // number of scales: 1, the length of `axis`, or the number of groups
    // If group_size is positive, `group_axes` axes are merged into one, beginning with `axis`. Each
    // `group_size` elements along the merged axis share a scale; the last group may be shorter.
    // Scales are in the order of the groups' elements, like blocks in ONNX opset 21.
    int32_t group_size, group_axes;
    const float *scales;        // [n], positive
    const int32_t *zero_points; // [n]
    // NULL: q is computed from the weight's elements, by rounding to nearest. Else a quantisation
    // method has chosen the integers q of the weight: int8 if `low` is negative, else uint8, in the
    // order of the weight's elements.
    const struct msc_array *integers;
    // Correction of the bias of a weight's joint, float32 [output channels], or NULL. It is added
    // to the bias to undo the shift that rounding the weight causes in the means of the outputs
    // (tools/bias_edits.h turns it into edits).
    const struct msc_array *shifts;
    struct msc_hash hash;
};

// Computes `hash` from the other members.
void msc_quant_seal(struct msc_quant *q);
// Makes a copy that may outlive `q`. The copy owns its parameters and holds references to the
// arrays; msc_quant_finish frees the parameters and releases the references. After an error there
// is nothing to free.
enum msc_status msc_quant_copy(struct msc_quant *out, const struct msc_quant *q);
void msc_quant_finish(struct msc_quant *q); // `q` is a copy or all zero
// Checks that `integers`, if not NULL, has n elements, all in [low, high]; or, for blocks, the
// bytes of n elements. Otherwise fails with
// MSC_E_INVALID and a message that names the mismatch.
enum msc_status msc_quant_check_integers(const struct msc_quant *q, int64_t n);
// True if each channel along the axis has a scale of its own.
static inline bool msc_quant_is_by_channel(const struct msc_quant *q) {
    return q->axis >= 0 && q->group_size == 0;
}
// Returns a sealed quantisation to MSC_DTYPE_F16 or MSC_DTYPE_BF16. It borrows no memory.
struct msc_quant msc_quant_of_float(enum msc_dtype type);
// Returns a sealed quantisation to blocks. Borrows `bytes`, an array of uint8.
struct msc_quant msc_quant_of_blocks(const struct msc_gguf_block_type *type, int32_t axis,
                                     const struct msc_array *bytes);
// Returns a sealed dynamic quantisation. It borrows no memory.
struct msc_quant msc_quant_dynamic(void);
// Finds scale and zero point of a dynamic quantisation of n elements. NaN is ignored.
void msc_quant_find_dynamic(float *scale, int32_t *zero_point, const float x[], int64_t n);

// Maps elements to scales. The array is seen as [outer, length, inner], and `length` is divided
// into blocks of `size`. The scale of element (o, k, i) is
// scales[o * outer_step + k / size * block_step + i * inner_step].
struct msc_quant_split {
    int64_t outer, length, inner, size;
    int64_t outer_step, block_step, inner_step; // inner_step is 0 or 1
};
// False if the scales do not fit a tensor with these dimensions.
bool msc_quant_split(struct msc_quant_split *out, const struct msc_quant *q, int n_dims,
                     const int64_t dims[]);

// The formulas at the top of this file, for one value, and for n contiguous values with one scale
// and zero point.
int32_t msc_quantize_value(float x, float scale, int32_t zero_point, int32_t low, int32_t high);
void msc_quantize_run(int32_t out[], const float x[], int64_t n, float scale, int32_t zero_point,
                      int32_t low, int32_t high);
void msc_fake_quantize_run(float out[], const float x[], int64_t n, float scale, int32_t zero_point,
                           int32_t low, int32_t high);
// Dequantises 8-bit integers (MSC_DTYPE_U8, MSC_DTYPE_I8) with one scale: out = (q - zero_point) *
// scale.
void msc_dequantize_run(float out[], const void *q, enum msc_dtype dtype, int64_t n,
                        const struct msc_quant *quant);
// Quantise and dequantise per channel. Elements are laid out as [outer, channels, inner]. If `out`
// is float32, msc_quantize_channels fake-quantises.
void msc_quantize_channels(void *out, enum msc_dtype dtype, const float x[], int64_t outer,
                           int64_t inner, const struct msc_quant *q);
void msc_dequantize_channels(float out[], const void *q, enum msc_dtype dtype, int64_t outer,
                             int64_t inner, const struct msc_quant *quant);
// Fake-quantises, or rounds to a 16-bit float type, with one scale; out may equal x. A dynamic
// quantisation takes its scale from these n elements.
void msc_quant_apply_run(float out[], const float x[], int64_t n, const struct msc_quant *q);
// Fake-quantises a whole array with any quantisation. *out is a float32 array of the same shape.
enum msc_status msc_fake_quantize_array(struct msc_array **out, const struct msc_array *x,
                                        const struct msc_quant *q);
// Quantises a whole array to integers (int32), for export and integer kernels. MSC_E_INVALID if `q`
// is a quantisation to a float type.
enum msc_status msc_quantize_array(struct msc_array **out, const struct msc_array *x,
                                   const struct msc_quant *q);

MSC_PUBLIC_END

#endif
