// Strided copies on the device.
#ifndef MSC_KERNELS_VULKAN_VK_MOVEMENT_H
#define MSC_KERNELS_VULKAN_VK_MOVEMENT_H

#include "kernels/lowering/movement.h"
#include "kernels/vulkan/vk_kernels.h"

// One dim of the output; dims are listed outermost first. The input index is the output index plus
// `shift`. If the input index is outside of [0, in_length), the element is `fill`; if in_length is
// 0, the input index is not checked.
struct msc_vk_movement_dim {
    int32_t length, in, out, shift, in_length; // in, out: strides in words or bytes
};

struct msc_vk_movement {
    struct msc_vk_pipeline *pipeline;
    struct msc_vk_block *dims;
    uint64_t n;
    int32_t in_base, out_base; // offsets of the first element
    float fill;
};

enum msc_status msc_vk_movement_init(struct msc_vk_movement *m, struct msc_vk_backend *b,
                                     const struct msc_vk_movement_dim dims[], int n_dims);
// Converts a movement of kernels/lowering/, with elements of any size. in_base and out_base are
// offsets in elements.
enum msc_status msc_vk_movement_init_from(struct msc_vk_movement *m, struct msc_vk_backend *b,
                                          const struct msc_movement *from, int64_t in_base,
                                          int64_t out_base);
// Accepts a zeroed *m.
void msc_vk_movement_finish(struct msc_vk_movement *m, struct msc_vk_backend *b);
enum msc_status msc_vk_movement_run(const struct msc_vk_movement *m, struct msc_vk_backend *b,
                                    const struct msc_vk_block *const out[],
                                    const struct msc_vk_block *const in[], int n);

#endif
