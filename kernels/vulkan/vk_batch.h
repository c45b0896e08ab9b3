// Commands recorded together; shared by vk_commands.c, vk_dispatch.c and vk_copy.c, and by
// vk_memory.c, which waits for them.
//
// A batch is one command buffer with the staging memory, parameters and descriptors that its
// commands use. Several are in flight: while the device runs some, the host records the next. The
// timeline semaphore counts the batches that are done.
#ifndef MSC_KERNELS_VULKAN_VK_BATCH_H
#define MSC_KERNELS_VULKAN_VK_BATCH_H

#include "kernels/vulkan/vk_pipeline.h"

// Dispatches of a batch; then it is submitted.
#define MSC_VK_BATCH_DISPATCHES 256
// Operations of a batch, about. Drivers take a device for hung, and reset it, when a batch runs for
// some seconds: amdgpu two, of late, on any of its queues, i915 7.5. Slow integrated GPUs do some 10^11
// operations in a second, slow discrete ones ten times as many; a quick one has enough to do with
// either for a millisecond and more, while the host records the next.
#define MSC_VK_BATCH_WORK_DISCRETE 1e11
#define MSC_VK_BATCH_WORK_OTHERS 2e10
#define MSC_VK_STAGING_BYTES ((uint64_t)8 << 20)
#define MSC_VK_ROWS_BYTES ((uint64_t)512 << 10)

struct msc_vk_batch {
    VkCommandBuffer commands;
    VkDescriptorPool descriptors;
    uint64_t value;               // of the timeline once it is done
    struct msc_vk_arena *staging; // of uploads
    uint64_t staging_used;
    struct msc_vk_arena *rows; // parameters of calls
    uint64_t rows_used;
    int n_dispatches;
    double work;
    bool is_recording;
    bool is_timed; // its timestamps are still to be read
    VkQueryPool queries;
    enum msc_vk_shader shaders[MSC_VK_BATCH_DISPATCHES]; // of timed dispatches
};

// The batch to record into.
enum msc_status msc_vk_begin(struct msc_vk *vk, struct msc_vk_batch **out);
enum msc_status msc_vk_submit(struct msc_vk *vk);
// Submits what is recorded and waits for all that is, without the lock meanwhile.
enum msc_status msc_vk_submit_and_wait(struct msc_vk *vk);
// Nothing recorded, nothing running.
bool msc_vk_is_idle(struct msc_vk *vk);
// Notes what the next command touches, with a barrier before it where it needs one.
void msc_vk_touch(struct msc_vk *vk, struct msc_vk_batch *b, const struct msc_vk_range ranges[],
                  int n);
// After a dispatch: time stamps, and submission where it is time.
enum msc_status msc_vk_count_dispatch(struct msc_vk *vk, struct msc_vk_batch *b,
                                      enum msc_vk_shader shader);

// vk_copy.c
void msc_vk_returned_finish(struct msc_vk *vk);

#endif
