// Batches of commands; shared by vk_commands.c, vk_dispatch.c, vk_copy.c and vk_memory.c (which
// waits for batches).
//
// A batch is one command buffer with the staging memory, parameters and descriptors of its
// commands. Several batches are in flight: while the device runs some, the host records the next.
// The timeline semaphore counts finished batches.
#ifndef MSC_KERNELS_VULKAN_VK_BATCH_H
#define MSC_KERNELS_VULKAN_VK_BATCH_H

#include "kernels/vulkan/vk_pipeline.h"

// Dispatches per batch; a full batch is submitted.
#define MSC_VK_BATCH_DISPATCHES 256
// Maximum approximate operations per batch. Drivers consider a device hung and reset it if a batch
// runs for some seconds: amdgpu after 2 s, i915 after 7.5 s. Slow integrated GPUs do about 10^11
// operations per second, slow discrete GPUs ten times as many. A batch keeps a fast GPU busy for at
// least a millisecond, while the host records the next batch.
#define MSC_VK_BATCH_WORK_DISCRETE 1e11
#define MSC_VK_BATCH_WORK_OTHERS 2e10
#define MSC_VK_STAGING_BYTES ((uint64_t)8 << 20)
#define MSC_VK_ROWS_BYTES ((uint64_t)512 << 10)

struct msc_vk_batch {
    VkCommandBuffer commands;
    VkDescriptorPool descriptors;
    uint64_t value;               // value of the timeline when the batch is done
    struct msc_vk_arena *staging; // host memory for uploads
    uint64_t staging_used;
    struct msc_vk_arena *rows; // parameters of calls
    uint64_t rows_used;
    int n_dispatches;
    double work;
    bool is_recording;
    bool is_timed; // the batch has timestamps that are not read yet
    VkQueryPool queries;
    enum msc_vk_shader shaders[MSC_VK_BATCH_DISPATCHES]; // shader of each timed dispatch
};

// Returns the batch to record into.
enum msc_status msc_vk_begin(struct msc_vk *vk, struct msc_vk_batch **out);
enum msc_status msc_vk_submit(struct msc_vk *vk);
// Submits the recorded commands and waits for all batches; the lock is released meanwhile.
enum msc_status msc_vk_submit_and_wait(struct msc_vk *vk);
// True if no commands are recorded and none are running.
bool msc_vk_is_idle(struct msc_vk *vk);
// Records the ranges that the next command accesses; inserts a barrier before the command if
// needed.
void msc_vk_touch(struct msc_vk *vk, struct msc_vk_batch *b, const struct msc_vk_range ranges[],
                  int n);
// Called after a dispatch: writes timestamps; submits the batch if the device is idle or the batch
// is full.
enum msc_status msc_vk_count_dispatch(struct msc_vk *vk, struct msc_vk_batch *b,
                                      enum msc_vk_shader shader);

#endif
