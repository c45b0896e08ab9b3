# Sources of the vulkan backend, in MSC_VULKAN_SOURCES; of its stub in builds without Vulkan.
if(NOT MSC_WITH_VULKAN)
    set(MSC_VULKAN_SOURCES vulkan/vk_stub.c)
    return()
endif()

include(msc_shaders)
msc_add_shader(conv_u_quads conv_u.comp QUADS)
msc_add_shader(conv_u_floats conv_u.comp)
msc_add_shader(conv_g conv_g.comp)
msc_add_shader(conv_g_bytes conv_g.comp BYTES)
msc_add_shader(conv_g_int conv_g.comp INTEGER)
msc_add_shader(conv_g_dot conv_g.comp INTEGER DOT)
msc_add_shader(depthwise_u depthwise.comp FAMILY_U)
msc_add_shader(depthwise_g depthwise.comp)
msc_add_shader(depthwise_g_bytes depthwise.comp BYTES)
msc_add_shader(ewise ewise.comp)
msc_add_shader(ewise_power ewise.comp HAS_POWER)
msc_add_shader(quantize quantize.comp)
msc_add_shader(expand expand.comp)
msc_add_shader(digits digits.comp)
msc_add_shader(move move.comp)
msc_add_shader(move_bytes move.comp BYTES)
msc_add_shader(pool pool.comp)
msc_add_shader(reduce reduce.comp)
msc_add_shader(softmax softmax.comp)
msc_add_shader(layer_norm layer_norm.comp)
msc_add_shader(resize resize.comp)
msc_add_shader(typed typed.comp)
msc_add_shader(gather gather.comp)
msc_add_shader(conv_plain conv_plain.comp)
msc_add_shader(pool_plain pool_plain.comp)
msc_add_shader(pool_plain_indices pool_plain.comp INDICES)
msc_add_shader(contract contract.comp)
msc_add_shader(along along.comp)
msc_add_shader(along_topk along.comp TOPK)
msc_add_shader(norm norm.comp)
msc_add_shader(lrn lrn.comp)
msc_add_shader(recurrent_1 recurrent.comp OUTPUTS=1)
msc_add_shader(recurrent_2 recurrent.comp OUTPUTS=2)
msc_add_shader(recurrent_3 recurrent.comp OUTPUTS=3)
msc_add_shader(scatter scatter.comp)
msc_add_shader(pick pick.comp)
msc_add_shader(grid_sample grid_sample.comp)
msc_add_shader(roi_align roi_align.comp)
msc_add_shader(linear_quant linear_quant.comp)
msc_add_shader(dynamic_quant dynamic_quant.comp)
msc_add_shader(integer_conv integer.comp CONV)
msc_add_shader(integer_matmul integer.comp)
msc_add_shader(resize_plain resize_plain.comp)
msc_add_shader(col2im col2im.comp)
msc_add_shader(affine_grid affine_grid.comp)
msc_add_shader(deform_conv deform_conv.comp)
msc_add_shader(fourier fourier.comp)
msc_add_shader(probe probe.comp)
msc_finish_shaders(shader_table)

set(MSC_VULKAN_SOURCES
    vulkan/vk_along.c
    vulkan/vk_api.c
    vulkan/vk_backend.c
    vulkan/vk_cache.c
    vulkan/vk_commands.c
    vulkan/vk_contract.c
    vulkan/vk_copy.c
    vulkan/vk_device.c
    vulkan/vk_dispatch.c
    vulkan/vk_ewise.c
    vulkan/vk_families.c
    vulkan/vk_features.c
    vulkan/vk_fourier.c
    vulkan/vk_gather.c
    vulkan/vk_gemm.c
    vulkan/vk_host.c
    vulkan/vk_image.c
    vulkan/vk_integer.c
    vulkan/vk_joint.c
    vulkan/vk_linear_quant.c
    vulkan/vk_matmul.c
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
    vulkan/vk_sample.c
    vulkan/vk_scatter.c
    vulkan/vk_tiles.c
    vulkan/vk_tune.c
    vulkan/vk_tuned.c
    vulkan/vk_typed.c
    vulkan/vk_conv_gemm.c
    vulkan/vk_window.c
    "${shader_table}")
