// Steps without a shader: the fallback backend runs them between a download and an upload.
#ifndef MSC_KERNELS_VULKAN_VK_HOST_H
#define MSC_KERNELS_VULKAN_VK_HOST_H

#include "kernels/vulkan/vk_kernels.h"

struct msc_vk_host_step;

// Prepares a step for the host. `step` is borrowed until msc_vk_host_release.
enum msc_status msc_vk_host_prepare(struct msc_vk_host_step **out, struct msc_vk_backend *b,
                                    const struct msc_plan *plan, const struct msc_step *step);
void msc_vk_host_release(struct msc_vk_host_step *h, struct msc_vk_backend *b); // accepts NULL
struct msc_placement msc_vk_host_place(const struct msc_vk_host_step *h,
                                       const struct msc_vk_backend *b);
enum msc_status msc_vk_host_weights(struct msc_vk_host_step *h, struct msc_vk_backend *b,
                                    const struct msc_edit *const edits[], void **out,
                                    size_t *n_bytes);
void msc_vk_host_release_weights(struct msc_vk_host_step *h, struct msc_vk_backend *b,
                                 void *weights);
// Called without the device's lock: takes the lock for copies and releases it while computing.
enum msc_status msc_vk_host_run(struct msc_vk_host_step *h, struct msc_vk_backend *b,
                                const struct msc_call *call, int thread);

#endif
