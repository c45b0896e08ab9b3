// Batches of commands: recording, submitting, waiting.
#include "kernels/vulkan/vk_batch.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

// The host checks whether the device is idle once per this many dispatches.
#define LOOK_EVERY 8

// ---- Life cycle -------------------------------------------------------------------------------

static enum msc_status create_queries(struct msc_vk *vk, struct msc_vk_batch *b) {
    VkQueryPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                  .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                  .queryCount = MSC_VK_BATCH_DISPATCHES + 1};
    return msc_vk_check(vk->api.vkCreateQueryPool(vk->device, &info, NULL, &b->queries),
                        "timestamps");
}

static enum msc_status init_batch(struct msc_vk *vk, struct msc_vk_batch *b) {
    VkCommandBufferAllocateInfo commands = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                            .commandPool = vk->command_pool,
                                            .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                            .commandBufferCount = 1};
    MSC_TRY(msc_vk_check(vk->api.vkAllocateCommandBuffers(vk->device, &commands, &b->commands),
                         "a command buffer"));
    VkDescriptorPoolSize sizes[2] = {
        {VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER, MSC_VK_BATCH_DISPATCHES * 2},
        {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, MSC_VK_BATCH_DISPATCHES * (MSC_VK_MAX_BINDINGS + 1)}};
    VkDescriptorPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                       .maxSets = MSC_VK_BATCH_DISPATCHES,
                                       .poolSizeCount = 2,
                                       .pPoolSizes = sizes};
    MSC_TRY(msc_vk_check(vk->api.vkCreateDescriptorPool(vk->device, &pool, NULL, &b->descriptors),
                         "a descriptor pool"));
    if (vk->timings) {
        MSC_TRY(create_queries(vk, b));
    }
    MSC_TRY(msc_vk_try_arena(vk, &b->rows, MSC_VK_ROWS_BYTES, MSC_VK_ARENA_ROWS));
    return msc_vk_try_arena(vk, &b->staging, MSC_VK_STAGING_BYTES, MSC_VK_ARENA_STAGING);
}

static enum msc_status create_timeline(struct msc_vk *vk) {
    VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                      .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
    return msc_vk_check(vk->api.vkCreateSemaphore(vk->device, &info, NULL, &vk->timeline),
                        "a semaphore");
}

// Allocates the totals for timing dispatches, if MSC_VULKAN_TIME=1 is set and the device supports
// timestamps.
static enum msc_status create_timings(struct msc_vk *vk) {
    const char *value = getenv("MSC_VULKAN_TIME");
    if (value && strcmp(value, "1") == 0 && vk->properties.limits.timestampComputeAndGraphics) {
        vk->timings = msc_alloc_zero(MSC_VK_SHADER_COUNT, sizeof(vk->timings[0]));
        return MSC_ALLOCATED(vk->timings);
    }
    return MSC_OK;
}

enum msc_status msc_vk_commands_init(struct msc_vk *vk) {
    VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                    .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                    .queueFamilyIndex = vk->queue_family};
    MSC_TRY(msc_vk_check(vk->api.vkCreateCommandPool(vk->device, &pool, NULL, &vk->command_pool),
                         "a command pool"));
    bool is_discrete = vk->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    vk->batch_work = is_discrete ? MSC_VK_BATCH_WORK_DISCRETE : MSC_VK_BATCH_WORK_OTHERS;
    MSC_TRY(create_timeline(vk));
    MSC_TRY(create_timings(vk));
    vk->batches = msc_alloc_zero(MSC_VK_BATCHES, sizeof(vk->batches[0]));
    MSC_TRY(MSC_ALLOCATED(vk->batches));
    for (int i = 0; i < MSC_VK_BATCHES; i++) {
        MSC_TRY(init_batch(vk, &vk->batches[i]));
    }
    return MSC_OK;
}

void msc_vk_commands_finish(struct msc_vk *vk) {
    for (int i = 0; vk->batches && i < MSC_VK_BATCHES; i++) {
        struct msc_vk_batch *b = &vk->batches[i];
        msc_vk_destroy_arena(vk, b->staging);
        msc_vk_destroy_arena(vk, b->rows);
        vk->api.vkDestroyQueryPool(vk->device, b->queries, NULL);
        vk->api.vkDestroyDescriptorPool(vk->device, b->descriptors, NULL);
    }
    msc_free(vk->batches);
    vk->batches = NULL;
    msc_free(vk->timings);
    vk->timings = NULL;
    vk->api.vkDestroySemaphore(vk->device, vk->timeline, NULL);
    vk->api.vkDestroyCommandPool(vk->device, vk->command_pool, NULL);
}

// ---- Barriers ---------------------------------------------------------------------------------

static const VkPipelineStageFlags stages =
    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;

static void put_barrier(struct msc_vk *vk, struct msc_vk_batch *b) {
    VkMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                         VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT};
    vk->api.vkCmdPipelineBarrier(b->commands, stages, stages, 0, 1, &barrier, 0, NULL, 0, NULL);
    vk->n_ranges = 0;
}

static bool vk_commands_conflicts(const struct msc_vk *vk, const struct msc_vk_range *r) {
    for (int i = 0; i < vk->n_ranges; i++) {
        const struct msc_vk_range *o = &vk->ranges[i];
        if (o->arena == r->arena && o->begin < r->end && r->begin < o->end &&
            (o->is_write || r->is_write)) {
            return true;
        }
    }
    return false;
}

void msc_vk_touch(struct msc_vk *vk, struct msc_vk_batch *b, const struct msc_vk_range ranges[],
                  int n) {
    bool needs_barrier = vk->n_ranges + n > MSC_VK_MAX_RANGES;
    for (int i = 0; i < n && !needs_barrier; i++) {
        needs_barrier = vk_commands_conflicts(vk, &ranges[i]);
    }
    if (needs_barrier) {
        put_barrier(vk, b);
    }
    memcpy(&vk->ranges[vk->n_ranges], ranges, (size_t)n * sizeof(ranges[0]));
    vk->n_ranges += n;
}

// ---- Lost batches -----------------------------------------------------------------------------

// Fails if a batch was lost. Recording its commands reported success, and later commands use their
// results. So no data on the device can be trusted.
static enum msc_status check_lost(const struct msc_vk *vk) {
    if (vk->lost == VK_SUCCESS || vk->lost == VK_ERROR_DEVICE_LOST) {
        return msc_vk_check(vk->lost, "a batch");
    }
    return MSC_FAIL(MSC_E_LOST, "vulkan: the device refused a batch of commands (VkResult %d)",
                    (int)vk->lost);
}

static enum msc_status lose(struct msc_vk *vk, VkResult result) {
    vk->lost = vk->lost == VK_SUCCESS ? result : vk->lost;
    return check_lost(vk);
}

// Checks the result of a query about batches. A query that ran out of memory does not lose the
// batch and may be repeated.
static enum msc_status check_batch(struct msc_vk *vk, VkResult result) {
    return result == VK_ERROR_DEVICE_LOST ? lose(vk, result) : msc_vk_check(result, "a batch");
}

// ---- Waiting ----------------------------------------------------------------------------------

static VkResult wait_until(const struct msc_vk *vk, uint64_t value) {
    VkSemaphoreWaitInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                .semaphoreCount = 1,
                                .pSemaphores = &vk->timeline,
                                .pValues = &value};
    return vk->api.vkWaitSemaphores(vk->device, &info, UINT64_MAX);
}

bool msc_vk_is_idle(struct msc_vk *vk) {
    uint64_t n_done = 0;
    return vk->lost == VK_SUCCESS && !vk->batches[vk->batch].is_recording &&
           vk->api.vkGetSemaphoreCounterValue(vk->device, vk->timeline, &n_done) == VK_SUCCESS &&
           n_done == vk->n_submitted;
}

// Adds the timestamps of a finished batch to the shaders' times.
static enum msc_status read_times(struct msc_vk *vk, struct msc_vk_batch *b) {
    uint64_t ticks[MSC_VK_BATCH_DISPATCHES + 1];
    if (!b->is_timed) {
        return MSC_OK;
    }
    b->is_timed = false;
    MSC_TRY(msc_vk_check(
        vk->api.vkGetQueryPoolResults(vk->device, b->queries, 0, (uint32_t)b->n_dispatches + 1,
                                      sizeof(ticks), ticks, sizeof(ticks[0]),
                                      VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT),
        "timestamps"));
    for (int i = 0; i < b->n_dispatches; i++) {
        struct msc_vk_timing *t = &vk->timings[b->shaders[i]];
        t->n++;
        t->seconds += (double)(ticks[i + 1] - ticks[i]) *
                      (double)vk->properties.limits.timestampPeriod * 1e-9;
    }
    return MSC_OK;
}

// ---- Recording and submitting -----------------------------------------------------------------

static void vk_commands_stamp(struct msc_vk *vk, struct msc_vk_batch *b, uint32_t index) {
    if (vk->timings) {
        vk->api.vkCmdWriteTimestamp(b->commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, b->queries,
                                    index);
    }
}

enum msc_status msc_vk_begin(struct msc_vk *vk, struct msc_vk_batch **out) {
    struct msc_vk_batch *b = &vk->batches[vk->batch];
    *out = b;
    MSC_TRY(check_lost(vk));
    if (b->is_recording) {
        return MSC_OK;
    }
    MSC_TRY(check_batch(vk, wait_until(vk, b->value)));
    MSC_TRY(read_times(vk, b));
    MSC_TRY(
        msc_vk_check(vk->api.vkResetDescriptorPool(vk->device, b->descriptors, 0), "descriptors"));
    MSC_TRY(msc_vk_check(vk->api.vkResetCommandBuffer(b->commands, 0), "a command buffer"));
    VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                     .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
    MSC_TRY(msc_vk_check(vk->api.vkBeginCommandBuffer(b->commands, &info), "a command buffer"));
    b->staging_used = b->rows_used = 0;
    b->n_dispatches = 0;
    b->work = 0;
    b->is_recording = true;
    if (vk->timings) {
        vk->api.vkCmdResetQueryPool(b->commands, b->queries, 0, MSC_VK_BATCH_DISPATCHES + 1);
    }
    vk_commands_stamp(vk, b, 0);
    // This batch must see the writes of earlier batches.
    put_barrier(vk, b);
    return MSC_OK;
}

static VkResult submit_batch(struct msc_vk *vk, struct msc_vk_batch *b) {
    uint64_t value = vk->n_submitted + 1;
    VkTimelineSemaphoreSubmitInfo timeline = {.sType =
                                                  VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                              .signalSemaphoreValueCount = 1,
                                              .pSignalSemaphoreValues = &value};
    VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                         .pNext = &timeline,
                         .commandBufferCount = 1,
                         .pCommandBuffers = &b->commands,
                         .signalSemaphoreCount = 1,
                         .pSignalSemaphores = &vk->timeline};
    VkResult result = vk->api.vkQueueSubmit(vk->queue, 1, &info, VK_NULL_HANDLE);
    bool is_short =
        result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_OUT_OF_DEVICE_MEMORY;
    // If there was not enough memory, wait for earlier batches, which release their memory when
    // they are done.
    if (is_short && wait_until(vk, vk->n_submitted) == VK_SUCCESS) {
        result = vk->api.vkQueueSubmit(vk->queue, 1, &info, VK_NULL_HANDLE);
    }
    if (result == VK_SUCCESS) {
        vk->n_submitted = b->value = value;
        b->is_timed = vk->timings != NULL;
        vk->batch = (vk->batch + 1) % MSC_VK_BATCHES;
    }
    return result;
}

enum msc_status msc_vk_submit(struct msc_vk *vk) {
    struct msc_vk_batch *b = &vk->batches[vk->batch];
    MSC_TRY(check_lost(vk));
    if (!b->is_recording) {
        return MSC_OK;
    }
    VkMemoryBarrier to_host = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                               .srcAccessMask =
                                   VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
                               .dstAccessMask = VK_ACCESS_HOST_READ_BIT};
    vk->api.vkCmdPipelineBarrier(b->commands, stages, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &to_host, 0,
                                 NULL, 0, NULL);
    b->is_recording = false;
    VkResult result = vk->api.vkEndCommandBuffer(b->commands);
    if (result == VK_SUCCESS) {
        result = submit_batch(vk, b);
    }
    return result == VK_SUCCESS ? MSC_OK : lose(vk, result);
}

enum msc_status msc_vk_submit_and_wait(struct msc_vk *vk) {
    MSC_TRY(msc_vk_submit(vk));
    uint64_t value = vk->n_submitted;
    vk->n_waits++;
    msc_vk_unlock(vk);
    VkResult result = wait_until(vk, value);
    msc_vk_lock(vk);
    return check_batch(vk, result);
}

enum msc_status msc_vk_flush(struct msc_vk *vk) {
    MSC_TRY(msc_vk_submit_and_wait(vk));
    for (int i = 0; i < MSC_VK_BATCHES; i++) {
        struct msc_vk_batch *b = &vk->batches[i];
        if (!b->is_recording && b->is_timed) {
            MSC_TRY(read_times(vk, b));
        }
    }
    return MSC_OK;
}

// Submits the batch if the device is idle, or if the batch is full.
enum msc_status msc_vk_count_dispatch(struct msc_vk *vk, struct msc_vk_batch *b,
                                      enum msc_vk_shader shader) {
    uint64_t n_done;
    b->shaders[b->n_dispatches++] = shader;
    vk_commands_stamp(vk, b, (uint32_t)b->n_dispatches);
    bool is_full = b->n_dispatches == MSC_VK_BATCH_DISPATCHES || b->work >= vk->batch_work;
    if (!is_full && b->n_dispatches % LOOK_EVERY == 0) {
        MSC_TRY(
            check_batch(vk, vk->api.vkGetSemaphoreCounterValue(vk->device, vk->timeline, &n_done)));
        is_full = n_done == vk->n_submitted;
    }
    return is_full ? msc_vk_submit(vk) : MSC_OK;
}
