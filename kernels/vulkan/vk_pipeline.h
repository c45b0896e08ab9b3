// A compute pipeline and its layout: made by vk_pipeline.c, used by the files that record commands
// (vk_batch.h).
#ifndef MSC_KERNELS_VULKAN_VK_PIPELINE_H
#define MSC_KERNELS_VULKAN_VK_PIPELINE_H

#include "kernels/vulkan/vk.h"

// The layout of a shader's pipelines, made when the shader is first used.
struct msc_vk_layout {
    VkShaderModule module;
    VkDescriptorSetLayout set;
    VkPipelineLayout pipeline;
    uint32_t n_texels, n_bindings;
};

struct msc_vk_pipeline {
    enum msc_vk_shader shader;
    const struct msc_vk_layout *layout;
    VkPipeline pipeline;
    uint32_t constants[MSC_VK_MAX_CONSTANTS];
};

#endif
