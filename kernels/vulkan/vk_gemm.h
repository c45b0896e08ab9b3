// One kernel for convolutions, linear layers and matrix products: rows times columns, summed over
// taps and channels. It uses shaders of family U or G, or the shader for depthwise convolution.
//
//     struct msc_vk_gemm_desc desc = {.n_rows = 8, .n_cols = 10, .depth = 64, .x_row = 64, ...};
//     MSC_TRY(msc_vk_gemm_create(&gemm, b, &desc));
//     struct msc_vk_gemm_call call = {.x = x, .w = w, .y = y};
//     MSC_TRY(msc_vk_gemm_run(gemm, b, MSC_VK_UNIT_FLOATS, &call, 1));
#ifndef MSC_KERNELS_VULKAN_VK_GEMM_H
#define MSC_KERNELS_VULKAN_VK_GEMM_H

#include "kernels/lowering/gemm.h"
#include "kernels/vulkan/vk_kernels.h"

// The types of the factors: the activations, then the weights.
enum msc_vk_unit {
    MSC_VK_UNIT_FLOATS,
    MSC_VK_UNIT_BYTES, // activations: stored bytes, read as integers or dequantised; weights:
                       // floats
    MSC_VK_UNIT_INT,   // activations: stored bytes; weights: signed bytes; sums: int32
    MSC_VK_UNIT_COUNT
};

struct msc_vk_gemm_desc {
    // A convolution's window, groups and channels. NULL for a plain product, in which input row r
    // gives output row r.
    const struct msc_gemm_desc *window;
    int64_t n_z;                    // number of products or groups
    int64_t n_rows, n_cols, depth;  // size of one product; `depth` counts channels per tap
    int64_t x_row, y_row;           // elements from one row to the next
    int64_t x_step, w_step, y_step; // elements from one product to the next
};

struct msc_vk_gemm;

// The shape of the weight that a product reads: [z][taps * channels][row], padded with zeros. For
// MSC_VK_UNIT_INT, a word holds the bytes of four channels: [z][taps * channels / 4][row][4].
struct msc_vk_gemm_weight {
    int64_t channels;  // desc.depth, rounded up
    int64_t row;       // desc.n_cols, rounded up
    bool is_depthwise; // the weight's shape is [taps][all channels] instead
};

// Describes a convolution or linear layer.
void msc_vk_gemm_describe(struct msc_vk_gemm_desc *out, const struct msc_gemm_desc *joint);
struct msc_vk_gemm_weight msc_vk_gemm_weight_shape(const struct msc_vk_gemm_desc *desc);

// MSC_E_UNSUPPORTED: the sums need more loop iterations than the device allows per invocation.
enum msc_status msc_vk_gemm_create(struct msc_vk_gemm **out, struct msc_vk_backend *b,
                                   const struct msc_vk_gemm_desc *desc);
void msc_vk_gemm_destroy(struct msc_vk_gemm *g, struct msc_vk_backend *b); // accepts NULL
// True if the device has a shader for these types of the factors. Every device has one for
// MSC_VK_UNIT_FLOATS.
bool msc_vk_gemm_has(const struct msc_vk_gemm *g, const struct msc_vk_backend *b,
                     enum msc_vk_unit unit);

struct msc_vk_gemm_call {
    const struct msc_vk_block *x, *w;
    const struct msc_vk_block *y; // NULL: only the quantised variants of y are written
    // Four rows with one number per output channel each: scales, biases, sums of the weights (for
    // MSC_VK_UNIT_INT), integer biases (for MSC_VK_INTEGER_BIAS). May be NULL.
    const struct msc_vk_block *tail;
    bool has_scales, has_one_scale, has_limits;
    enum msc_vk_bias bias; // MSC_VK_INTEGER_BIAS: float sums must be integers below 2^24
    float x_scale;
    struct msc_vk_bytes bytes;             // how bytes of x are read (not for UNIT_FLOATS)
    const struct msc_quantized *quantized; // variants of y that msc_vk_can_write accepts
    int32_t n_quantized;
};
// The tiles that the last run could have taken, as variants of a step (kernels/backend.h). False:
// there was no run, or it takes no tiles.
bool msc_vk_gemm_variants(const struct msc_vk_gemm *g, const struct msc_vk *vk,
                          struct msc_variants *out);
// Takes a variant in later runs; -1: what is kept or by rule.
void msc_vk_gemm_choose_variant(struct msc_vk_gemm *g, const struct msc_vk *vk, int variant);
// Runs at most MSC_VK_MAX_CALLS calls.
enum msc_status msc_vk_gemm_run(struct msc_vk_gemm *g, struct msc_vk_backend *b,
                                enum msc_vk_unit unit, const struct msc_vk_gemm_call calls[],
                                int n);
// vk_tune.c: stops using matrix units if they are slower than other shaders, because some drivers
// emulate them. It knows from the tiles that `mscgym tune` stored, or measures a product with both.
// MSC_VULKAN_MATRIX=1 keeps them anyway.
enum msc_status msc_vk_compare_matrix(struct msc_vk_backend *b);
// Sets the limits applied after the bias, for calls with has_limits.
void msc_vk_gemm_set_limits(struct msc_vk_gemm *g, float low, float high);

#endif
