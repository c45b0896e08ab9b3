// Convolutions, linear layers and matrix products as one kernel: rows times columns, summed over
// taps and channels, in family U or G, or as depthwise convolution.
//
//     struct msc_vk_gemm_desc desc = {.n_rows = 8, .n_cols = 10, .depth = 64, .x_row = 64, ...};
//     MSC_TRY(msc_vk_gemm_create(&gemm, b, &desc));
//     struct msc_vk_gemm_call call = {.x = x, .w = w, .y = y};
//     MSC_TRY(msc_vk_gemm_run(gemm, b, MSC_VK_UNIT_FLOATS, &call, 1));
#ifndef MSC_KERNELS_VULKAN_VK_GEMM_H
#define MSC_KERNELS_VULKAN_VK_GEMM_H

#include "kernels/lowering/gemm.h"
#include "kernels/vulkan/vk_kernels.h"

// What is multiplied, and how.
enum msc_vk_unit {
    MSC_VK_UNIT_FLOATS,
    MSC_VK_UNIT_BYTES, // stored bytes by floats: integers, or what they stand for
    MSC_VK_UNIT_INT,   // stored bytes by signed bytes, sums as int32
    MSC_VK_UNIT_COUNT
};

struct msc_vk_gemm_desc {
    // A convolution's window, groups and channels; NULL for a plain product, whose rows of the
    // input are the rows of the output.
    const struct msc_gemm_desc *window;
    int64_t n_z;                    // products, or groups
    int64_t n_rows, n_cols, depth;  // of one of them; depth: channels of one tap
    int64_t x_row, y_row;           // elements between rows
    int64_t x_step, w_step, y_step; // elements between products
};

struct msc_vk_gemm;

// Shape of the weight that a product reads: [z][taps * channels][row], zero where padded. For
// MSC_VK_UNIT_INT four channels are the bytes of a word: [z][taps * channels / 4][row][4].
struct msc_vk_gemm_weight {
    int64_t channels;  // depth, rounded up
    int64_t row;       // n_cols, rounded up
    bool is_depthwise; // [taps][all channels] instead
};

// Describes a convolution or linear layer.
void msc_vk_gemm_describe(struct msc_vk_gemm_desc *out, const struct msc_gemm_desc *joint);
struct msc_vk_gemm_weight msc_vk_gemm_weight_shape(const struct msc_vk_gemm_desc *desc);

// MSC_E_UNSUPPORTED: sums of more products than an invocation may take turns.
enum msc_status msc_vk_gemm_create(struct msc_vk_gemm **out, struct msc_vk_backend *b,
                                   const struct msc_vk_gemm_desc *desc);
void msc_vk_gemm_destroy(struct msc_vk_gemm *g, struct msc_vk_backend *b); // accepts NULL
// Is there a shader for it? Floats always.
bool msc_vk_gemm_has(const struct msc_vk_gemm *g, const struct msc_vk_backend *b,
                     enum msc_vk_unit unit);

struct msc_vk_gemm_call {
    const struct msc_vk_block *x, *w;
    const struct msc_vk_block *y; // NULL: not written, its quantised variants are
    // Rows by output channel: scales, biases, for MSC_VK_UNIT_INT sums of the weights, for
    // MSC_VK_INTEGER_BIAS those. May be NULL.
    const struct msc_vk_block *tail;
    bool has_scales, has_one_scale, has_limits;
    enum msc_vk_bias bias; // MSC_VK_INTEGER_BIAS: sums of floats are whole and below 2^24
    float x_scale;
    struct msc_vk_bytes bytes;             // of x, for units but floats
    const struct msc_quantized *quantized; // variants of y (msc_vk_can_write)
    int32_t n_quantized;
};
// At most MSC_VK_MAX_CALLS.
enum msc_status msc_vk_gemm_run(struct msc_vk_gemm *g, struct msc_vk_backend *b,
                                enum msc_vk_unit unit, const struct msc_vk_gemm_call calls[],
                                int n);
// Limits behind the bias, for calls with has_limits.
void msc_vk_gemm_set_limits(struct msc_vk_gemm *g, float low, float high);

#endif
