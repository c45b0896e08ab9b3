# Sets MSC_VULKAN_SOURCES: the sources of the vulkan backend or, in builds without Vulkan, its stub.
if(NOT MSC_WITH_VULKAN)
    set(MSC_VULKAN_SOURCES vulkan/vk_stub.c)
    return()
endif()

include(msc_shaders)
msc_add_shaders(shader_table "${CMAKE_CURRENT_SOURCE_DIR}/vulkan/shaders.def")

set(MSC_VULKAN_SOURCES
    vulkan/vk_along.c
    vulkan/vk_api.c
    vulkan/vk_arena.c
    vulkan/vk_backend.c
    vulkan/vk_cache.c
    vulkan/vk_channels.c
    vulkan/vk_check.c
    vulkan/vk_commands.c
    vulkan/vk_compare.c
    vulkan/vk_contract.c
    vulkan/vk_controls.c
    vulkan/vk_copy.c
    vulkan/vk_device.c
    vulkan/vk_dispatch.c
    vulkan/vk_ewise.c
    vulkan/vk_families.c
    vulkan/vk_features.c
    vulkan/vk_find.c
    vulkan/vk_fourier.c
    vulkan/vk_gather.c
    vulkan/vk_gemm.c
    vulkan/vk_host.c
    vulkan/vk_image.c
    vulkan/vk_integer.c
    vulkan/vk_joint.c
    vulkan/vk_kernels.c
    vulkan/vk_linear_quant.c
    vulkan/vk_mask.c
    vulkan/vk_matmul.c
    vulkan/vk_matrix.c
    vulkan/vk_memory.c
    vulkan/vk_movement.c
    vulkan/vk_norm.c
    vulkan/vk_pack.c
    vulkan/vk_pick.c
    vulkan/vk_pipeline.c
    vulkan/vk_plain.c
    vulkan/vk_probe.c
    vulkan/vk_quantize.c
    vulkan/vk_rearrange.c
    vulkan/vk_recurrent.c
    vulkan/vk_reduce.c
    vulkan/vk_resize_plain.c
    vulkan/vk_room.c
    vulkan/vk_sample.c
    vulkan/vk_scatter.c
    vulkan/vk_tiles.c
    vulkan/vk_tune.c
    vulkan/vk_tuned.c
    vulkan/vk_typed.c
    vulkan/vk_conv_gemm.c
    vulkan/vk_window.c
    "${shader_table}")
