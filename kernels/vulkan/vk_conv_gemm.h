// Convolutions and linear layers: shared by vk_conv_gemm.c, which runs them, and vk_pack.c, which
// packs weights.
#ifndef MSC_KERNELS_VULKAN_VK_CONV_GEMM_H
#define MSC_KERNELS_VULKAN_VK_CONV_GEMM_H

#include "kernels/lowering/bias.h"
#include "kernels/lowering/gemm.h"
#include "kernels/vulkan/vk_gemm.h"

struct msc_vk_conv_gemm {
    const char *name;
    int32_t input;
    struct msc_gemm_spec spec;
    struct msc_vk_gemm_desc desc; // desc.window is &spec.desc
    const struct msc_array *weight;
    const struct msc_array *bias;   // may be NULL
    int32_t weight_slot, bias_slot; // slots of the edits of weight and bias; MSC_NO_ID: none
    struct msc_vk_gemm *gemm;
    bool has_limits;
    struct msc_vk_program *epilogues[2]; // the joints after the anchor (the convolution or linear
                                         // layer); the joints after anchor and clip
};

// The form in which a weight is packed.
enum msc_vk_pack_kind {
    MSC_VK_AS_FLOATS,
    MSC_VK_AS_INTEGERS, // q - zero point, stored as floats
    MSC_VK_AS_BYTES,    // q - zero point, stored as bytes
    MSC_VK_PACK_KINDS
};

struct msc_vk_pack {
    struct msc_vk_block *weight;
    struct msc_vk_block *tail; // rows of numbers per channel, see msc_vk_gemm_call
    int64_t largest;           // maximum over output channels of the sum of |q - zero point|; 0 for
                               // floats
};

// Weights and bias under edits.
struct msc_vk_variant {
    const struct msc_vk_conv_gemm *kernel;
    struct msc_array *elements; // the weight before it is quantised
    struct msc_quant quant;     // copied from the edit; bits is 0 for float weights
    struct msc_bias bias;
    bool is_integer, fits_bytes;
    enum msc_vk_pack_kind integers;              // the kind packed first, for integer weights
    struct msc_vk_pack packs[MSC_VK_PACK_KINDS]; // made when first needed
};

enum msc_status msc_vk_get_pack(const struct msc_vk_pack **out, struct msc_vk_backend *b,
                                struct msc_vk_variant *v, enum msc_vk_pack_kind kind);
// Makes a tail like msc_vk_pack.tail, but multiplies the scale of each channel by the input's scale
// for that channel. The caller frees the tail.
enum msc_status msc_vk_tail_by_channel(struct msc_vk_block **out, struct msc_vk_backend *b,
                                       const struct msc_vk_variant *v,
                                       const struct msc_quant *input);
// The next two functions implement the members of msc_vk_family that pack and release weights.
enum msc_status msc_vk_conv_gemm_weights(void *kernel, struct msc_vk_backend *b,
                                         const struct msc_edit *const edits[], void **out,
                                         size_t *n_bytes);
void msc_vk_conv_gemm_release_weights(void *weights, struct msc_vk_backend *b);

#endif
