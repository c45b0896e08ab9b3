// The shaders: which there are and what they bind. Their code is compiled by CMake
// (msc_add_shader), which also writes the table msc_vk_shader_codes.
//
// To add a shader: 1 write shaders/<name>.comp, 2 add it to kernels/vulkan/vulkan.cmake, 3 add a
// row here and in vk_pipeline.c.
#ifndef MSC_KERNELS_VULKAN_VK_SHADERS_H
#define MSC_KERNELS_VULKAN_VK_SHADERS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum msc_vk_shader {
    MSC_VK_CONV_U_QUADS,  // family U, input read four channels at a time
    MSC_VK_CONV_U_FLOATS, // ... one at a time, for other numbers of channels
    MSC_VK_CONV_G,        // over floats
    MSC_VK_CONV_G_BYTES,  // over stored bytes as floats
    MSC_VK_CONV_G_INT,    // over bytes as such
    MSC_VK_CONV_G_DOT,    // ... by the device's instruction
    MSC_VK_DEPTHWISE_U,
    MSC_VK_DEPTHWISE_G,
    MSC_VK_DEPTHWISE_G_BYTES,
    MSC_VK_EWISE,
    MSC_VK_EWISE_POWER, // with powers among the instructions
    MSC_VK_QUANTIZE,
    MSC_VK_EXPAND,
    MSC_VK_DIGITS,
    MSC_VK_MOVE,
    MSC_VK_MOVE_BYTES,
    MSC_VK_POOL,
    MSC_VK_REDUCE,
    MSC_VK_SOFTMAX,
    MSC_VK_LAYER_NORM,
    MSC_VK_RESIZE,
    MSC_VK_TYPED,
    MSC_VK_GATHER,
    MSC_VK_CONV_PLAIN,
    MSC_VK_POOL_PLAIN,
    MSC_VK_POOL_PLAIN_INDICES,
    MSC_VK_CONTRACT,
    MSC_VK_ALONG,
    MSC_VK_ALONG_TOPK,
    MSC_VK_NORM,
    MSC_VK_LRN,
    MSC_VK_RECURRENT_1,
    MSC_VK_RECURRENT_2,
    MSC_VK_RECURRENT_3,
    MSC_VK_SCATTER,
    MSC_VK_PICK,
    MSC_VK_GRID_SAMPLE,
    MSC_VK_ROI_ALIGN,
    MSC_VK_LINEAR_QUANT,
    MSC_VK_DYNAMIC_QUANT,
    MSC_VK_INTEGER_CONV,
    MSC_VK_INTEGER_MATMUL,
    MSC_VK_RESIZE_PLAIN,
    MSC_VK_COL2IM,
    MSC_VK_AFFINE_GRID,
    MSC_VK_DEFORM_CONV,
    MSC_VK_FOURIER,
    MSC_VK_PROBE,
    MSC_VK_SHADER_COUNT
};

const char *msc_vk_shader_name(enum msc_vk_shader shader);

struct msc_vk_shader_code {
    const char *name;
    const uint32_t *words;
    size_t n_bytes;
};

// Ends with a row of NULL.
extern const struct msc_vk_shader_code msc_vk_shader_codes[];

#ifdef __cplusplus
}
#endif

#endif
