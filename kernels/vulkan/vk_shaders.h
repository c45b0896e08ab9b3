// The list of shaders (shaders.def) and their bindings. CMake compiles their code (msc_add_shaders)
// and writes the table msc_vk_shader_codes.
//
//     const uint32_t constants[] = {lanes, ...};
//     MSC_VK_CHECK_CONSTANTS(MSC_VK_SOFTMAX, constants);
//     MSC_TRY(msc_vk_pipeline(&pipeline, vk, MSC_VK_SOFTMAX, constants));
#ifndef MSC_KERNELS_VULKAN_VK_SHADERS_H
#define MSC_KERNELS_VULKAN_VK_SHADERS_H

#include <stddef.h>
#include <stdint.h>

enum msc_vk_shader {
#define MSC_SHADER(id, source, texels, buffers, push_bytes, constants) MSC_VK_##id,
#include "kernels/vulkan/shaders.def"
    MSC_VK_SHADER_COUNT
};

// The numbers of constants and the push bytes of each shader, for the checks below.
enum {
#define MSC_SHADER(id, source, texels, buffers, push_bytes, constants)                             \
    MSC_VK_##id##_PUSH_BYTES = push_bytes, MSC_VK_##id##_CONSTANTS = constants,
#include "kernels/vulkan/shaders.def"
};

// Fails to compile unless the array has as many constants as the shader's row states.
// MSC_VK_CHECK_PUSH does the same for the size of push constants.
#define MSC_VK_CHECK_CONSTANTS(shader, array)                                                      \
    _Static_assert(sizeof(array) == sizeof(uint32_t) * shader##_CONSTANTS,                         \
                   "shaders.def lists another number of constants")
#define MSC_VK_CHECK_PUSH(shader, push)                                                            \
    _Static_assert(sizeof(push) <= shader##_PUSH_BYTES, "shaders.def lists fewer push bytes")

struct msc_vk_shader_info {
    uint32_t n_texels, n_buffers;
    uint32_t push_bytes;
    int n_constants;
};

const struct msc_vk_shader_info *msc_vk_shader_info(enum msc_vk_shader shader);
const char *msc_vk_shader_name(enum msc_vk_shader shader);

struct msc_vk_shader_code {
    const char *name;
    const uint32_t *words;
    size_t n_bytes;
};

// The code of each shader; the last row is NULL.
extern const struct msc_vk_shader_code msc_vk_shader_codes[MSC_VK_SHADER_COUNT + 1];

#endif
