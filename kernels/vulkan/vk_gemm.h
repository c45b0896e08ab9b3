// Convolutions, linear layers and matrix products as one kernel: rows times columns, summed over
// taps and channels, in family U or G, or as depthwise convolution.
//
//     struct msc_vk_gemm_desc desc = {.n_rows = 8, .n_cols = 10, .depth = 64, .x_row = 64, ...};
//     MSC_TRY(msc_vk_gemm_create(&gemm, b, &desc));
//     MSC_TRY(msc_vk_gemm_run(gemm, b, &(struct msc_vk_gemm_call){.x = x, .w = w, .y = y}));
#ifndef MSC_KERNELS_VULKAN_VK_GEMM_H
#define MSC_KERNELS_VULKAN_VK_GEMM_H

#include "kernels/cpu/dense.h"
#include "kernels/vulkan/vk_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

struct msc_vk_gemm_desc {
    // A convolution's window, groups and channels; NULL for a plain product, whose rows of the
    // input are the rows of the output.
    const struct msc_dense_desc *window;
    int64_t n_z;                    // products, or groups
    int64_t n_rows, n_cols, depth;  // of one of them; depth: channels of one tap
    int64_t x_row, y_row;           // floats between rows
    int64_t x_step, w_step, y_step; // floats between products
};

struct msc_vk_gemm;

// Shape of the weight that a product reads: [z][taps * channels][row], zero where padded.
struct msc_vk_gemm_weight {
    int64_t channels;  // depth, rounded up
    int64_t row;       // n_cols, rounded up
    bool is_depthwise; // [taps][all channels] instead
};

// Describes a convolution or linear layer.
void msc_vk_gemm_describe(struct msc_vk_gemm_desc *out, const struct msc_dense_desc *dense);
struct msc_vk_gemm_weight msc_vk_gemm_weight_shape(const struct msc_vk_gemm_desc *desc);

enum msc_status msc_vk_gemm_create(struct msc_vk_gemm **out, struct msc_vk_backend *b,
                                   const struct msc_vk_gemm_desc *desc);
void msc_vk_gemm_destroy(struct msc_vk_gemm *g, struct msc_vk_backend *b); // accepts NULL

struct msc_vk_gemm_call {
    const struct msc_vk_block *x, *w, *y;
    const struct msc_vk_block *tail; // scales, then biases, of all output channels; may be NULL
    bool has_scales, has_one_scale, has_bias, has_limits;
    float x_scale;
    float low, high;
};
enum msc_status msc_vk_gemm_run(const struct msc_vk_gemm *g, struct msc_vk_backend *b,
                                const struct msc_vk_gemm_call *call);

#ifdef __cplusplus
}
#endif

#endif
