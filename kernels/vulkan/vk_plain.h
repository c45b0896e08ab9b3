// Describes sliding windows as numbers for shaders (shaders/window.glsl, shaders/taps.glsl).
#ifndef MSC_KERNELS_VULKAN_VK_PLAIN_H
#define MSC_KERNELS_VULKAN_VK_PLAIN_H

#include "graph/reference/reference_internal.h"
#include "kernels/vulkan/vk_joint.h"

#define MSC_VK_WINDOW_NUMBERS 40

// Writes the numbers of a window for window.glsl, or of a convolution for window.glsl and
// taps.glsl.
void msc_vk_put_window(int32_t numbers[MSC_VK_WINDOW_NUMBERS], const struct msc_window *w);
void msc_vk_put_conv(int32_t numbers[MSC_VK_WINDOW_NUMBERS], const struct msc_conv *c);
// The approximate number of loop iterations per output element of a convolution.
uint64_t msc_vk_conv_turns(const struct msc_conv *c);

#endif
