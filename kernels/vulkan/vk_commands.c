#include "base/alloc.h"
#include "kernels/vulkan/vk_pipeline.h"

#include <assert.h>
#include <string.h>

// Dispatches of a batch; then it is submitted.
#define BATCH_DISPATCHES 256
#define STAGING_BYTES ((uint64_t)8 << 20)

struct msc_vk_batch {
    VkCommandBuffer commands;
    VkDescriptorPool descriptors;
    VkFence fence;
    struct msc_vk_arena *staging;
    uint64_t staging_used;
    int n_dispatches;
    bool is_recording, is_running;
};

// ---- Batches ----------------------------------------------------------------------------------

static enum msc_status init_batch(struct msc_vk *vk, struct msc_vk_batch *b) {
    VkCommandBufferAllocateInfo commands = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                            .commandPool = vk->command_pool,
                                            .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                            .commandBufferCount = 1};
    MSC_TRY(msc_vk_check(vk->api.vkAllocateCommandBuffers(vk->device, &commands, &b->commands),
                         "a command buffer"));
    VkDescriptorPoolSize sizes[2] = {
        {VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER, BATCH_DISPATCHES * 2},
        {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, BATCH_DISPATCHES * MSC_VK_MAX_BINDINGS}};
    VkDescriptorPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                       .maxSets = BATCH_DISPATCHES,
                                       .poolSizeCount = 2,
                                       .pPoolSizes = sizes};
    MSC_TRY(msc_vk_check(vk->api.vkCreateDescriptorPool(vk->device, &pool, NULL, &b->descriptors),
                         "a descriptor pool"));
    VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    MSC_TRY(msc_vk_check(vk->api.vkCreateFence(vk->device, &fence, NULL, &b->fence), "a fence"));
    return msc_vk_create_arena(vk, &b->staging, STAGING_BYTES, true);
}

enum msc_status msc_vk_commands_init(struct msc_vk *vk) {
    VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                    .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                    .queueFamilyIndex = vk->queue_family};
    MSC_TRY(msc_vk_check(vk->api.vkCreateCommandPool(vk->device, &pool, NULL, &vk->command_pool),
                         "a command pool"));
    vk->batches = msc_alloc_zero(MSC_VK_BATCHES, sizeof(vk->batches[0]));
    if (!vk->batches) {
        return MSC_FAIL(MSC_E_NOMEM, "vulkan: out of memory");
    }
    for (int i = 0; i < MSC_VK_BATCHES; i++) {
        MSC_TRY(init_batch(vk, &vk->batches[i]));
    }
    vk->is_idle = true;
    return msc_vk_create_arena(vk, &vk->returned, STAGING_BYTES, true);
}

void msc_vk_commands_finish(struct msc_vk *vk) {
    for (int i = 0; vk->batches && i < MSC_VK_BATCHES; i++) {
        struct msc_vk_batch *b = &vk->batches[i];
        msc_vk_destroy_arena(vk, b->staging);
        vk->api.vkDestroyFence(vk->device, b->fence, NULL);
        vk->api.vkDestroyDescriptorPool(vk->device, b->descriptors, NULL);
    }
    msc_free(vk->batches);
    vk->batches = NULL;
    msc_vk_destroy_arena(vk, vk->returned);
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

static bool conflicts(const struct msc_vk *vk, const struct msc_vk_range *r) {
    for (int i = 0; i < vk->n_ranges; i++) {
        const struct msc_vk_range *o = &vk->ranges[i];
        if (o->arena == r->arena && o->begin < r->end && r->begin < o->end &&
            (o->is_write || r->is_write)) {
            return true;
        }
    }
    return false;
}

// Notes what the next command touches, with a barrier before it where it needs one.
static void touch(struct msc_vk *vk, struct msc_vk_batch *b, const struct msc_vk_range ranges[],
                  int n) {
    bool needs_barrier = vk->n_ranges + n > MSC_VK_MAX_RANGES;
    for (int i = 0; i < n && !needs_barrier; i++) {
        needs_barrier = conflicts(vk, &ranges[i]);
    }
    if (needs_barrier) {
        put_barrier(vk, b);
    }
    memcpy(&vk->ranges[vk->n_ranges], ranges, (size_t)n * sizeof(ranges[0]));
    vk->n_ranges += n;
}

static struct msc_vk_range range_of(const struct msc_vk_block *block, bool is_write) {
    return (struct msc_vk_range){block->arena, block->offset, block->offset + block->n_bytes,
                                 is_write};
}

// Texel views are of a whole arena; what the shader may read through them is counted as read.
static struct msc_vk_range range_of_binding(const struct msc_vk_binding *b) {
    if (b->kind == MSC_VK_QUADS || b->kind == MSC_VK_FLOATS) {
        return (struct msc_vk_range){b->block->arena, 0, b->block->arena->n_bytes, false};
    }
    return range_of(b->block, b->kind != MSC_VK_READ);
}

// ---- Recording and submitting -----------------------------------------------------------------

static enum msc_status wait_for(struct msc_vk *vk, struct msc_vk_batch *b) {
    if (!b->is_running) {
        return MSC_OK;
    }
    MSC_TRY(msc_vk_check(vk->api.vkWaitForFences(vk->device, 1, &b->fence, VK_TRUE, UINT64_MAX),
                         "a batch"));
    b->is_running = false;
    MSC_TRY(msc_vk_check(vk->api.vkResetFences(vk->device, 1, &b->fence), "a fence"));
    if (vk->queries) {
        uint64_t ticks[2];
        uint32_t first = 2 * (uint32_t)(b - vk->batches);
        MSC_TRY(msc_vk_check(vk->api.vkGetQueryPoolResults(vk->device, vk->queries, first, 2,
                                                           sizeof(ticks), ticks, sizeof(ticks[0]),
                                                           VK_QUERY_RESULT_64_BIT),
                             "timestamps"));
        vk->busy_seconds +=
            (double)(ticks[1] - ticks[0]) * (double)vk->properties.limits.timestampPeriod * 1e-9;
    }
    return MSC_OK;
}

static enum msc_status begin(struct msc_vk *vk, struct msc_vk_batch **out) {
    struct msc_vk_batch *b = &vk->batches[vk->batch];
    *out = b;
    if (b->is_recording) {
        return MSC_OK;
    }
    MSC_TRY(wait_for(vk, b));
    MSC_TRY(
        msc_vk_check(vk->api.vkResetDescriptorPool(vk->device, b->descriptors, 0), "descriptors"));
    MSC_TRY(msc_vk_check(vk->api.vkResetCommandBuffer(b->commands, 0), "a command buffer"));
    VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                     .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
    MSC_TRY(msc_vk_check(vk->api.vkBeginCommandBuffer(b->commands, &info), "a command buffer"));
    b->staging_used = 0;
    b->n_dispatches = 0;
    b->is_recording = true;
    vk->is_idle = false;
    if (vk->queries) {
        uint32_t first = 2 * (uint32_t)vk->batch;
        vk->api.vkCmdResetQueryPool(b->commands, vk->queries, first, 2);
        vk->api.vkCmdWriteTimestamp(b->commands, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, vk->queries,
                                    first);
    }
    // What an earlier batch wrote is seen by this one.
    put_barrier(vk, b);
    return MSC_OK;
}

static enum msc_status submit(struct msc_vk *vk) {
    struct msc_vk_batch *b = &vk->batches[vk->batch];
    if (!b->is_recording) {
        return MSC_OK;
    }
    if (vk->queries) {
        vk->api.vkCmdWriteTimestamp(b->commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, vk->queries,
                                    2 * (uint32_t)vk->batch + 1);
    }
    VkMemoryBarrier to_host = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                               .srcAccessMask =
                                   VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
                               .dstAccessMask = VK_ACCESS_HOST_READ_BIT};
    vk->api.vkCmdPipelineBarrier(b->commands, stages, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &to_host, 0,
                                 NULL, 0, NULL);
    b->is_recording = false;
    MSC_TRY(msc_vk_check(vk->api.vkEndCommandBuffer(b->commands), "a command buffer"));
    VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                         .commandBufferCount = 1,
                         .pCommandBuffers = &b->commands};
    MSC_TRY(msc_vk_check(vk->api.vkQueueSubmit(vk->queue, 1, &info, b->fence), "a batch"));
    b->is_running = true;
    vk->batch = (vk->batch + 1) % MSC_VK_BATCHES;
    return MSC_OK;
}

enum msc_status msc_vk_flush(struct msc_vk *vk) {
    if (vk->is_idle) {
        return MSC_OK;
    }
    MSC_TRY(submit(vk));
    for (int i = 0; i < MSC_VK_BATCHES; i++) {
        MSC_TRY(wait_for(vk, &vk->batches[i]));
    }
    vk->is_idle = true;
    return MSC_OK;
}

// ---- Dispatching ------------------------------------------------------------------------------

static void write_descriptors(struct msc_vk *vk, VkDescriptorSet set,
                              const struct msc_vk_dispatch *d) {
    VkWriteDescriptorSet writes[MSC_VK_MAX_BINDINGS];
    VkDescriptorBufferInfo buffers[MSC_VK_MAX_BINDINGS];
    for (int i = 0; i < d->n_bindings; i++) {
        const struct msc_vk_binding *b = &d->bindings[i];
        const struct msc_vk_arena *arena = b->block->arena;
        bool is_texel = b->kind == MSC_VK_QUADS || b->kind == MSC_VK_FLOATS;
        writes[i] = (VkWriteDescriptorSet){.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                           .dstSet = set,
                                           .dstBinding = (uint32_t)i,
                                           .descriptorCount = 1,
                                           .descriptorType =
                                               is_texel ? VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER
                                                        : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER};
        if (is_texel) {
            writes[i].pTexelBufferView = b->kind == MSC_VK_QUADS ? &arena->quads : &arena->floats;
        } else {
            buffers[i] =
                (VkDescriptorBufferInfo){arena->buffer, b->block->offset, b->block->n_bytes};
            writes[i].pBufferInfo = &buffers[i];
        }
    }
    vk->api.vkUpdateDescriptorSets(vk->device, (uint32_t)d->n_bindings, writes, 0, NULL);
}

enum msc_status msc_vk_dispatch(struct msc_vk *vk, const struct msc_vk_dispatch *d) {
    const struct msc_vk_layout *layout = d->pipeline->layout;
    struct msc_vk_range ranges[MSC_VK_MAX_BINDINGS];
    struct msc_vk_batch *b;
    VkDescriptorSet set;
    assert(d->n_bindings == (int)layout->n_bindings);
    for (int i = 0; i < 3; i++) {
        if (d->groups[i] == 0) {
            return MSC_OK;
        }
        if (d->groups[i] > vk->properties.limits.maxComputeWorkGroupCount[i]) {
            return MSC_FAIL(MSC_E_UNSUPPORTED, "vulkan: %u workgroups along axis %d, at most %u",
                            d->groups[i], i, vk->properties.limits.maxComputeWorkGroupCount[i]);
        }
    }
    MSC_TRY(begin(vk, &b));
    for (int i = 0; i < d->n_bindings; i++) {
        ranges[i] = range_of_binding(&d->bindings[i]);
    }
    touch(vk, b, ranges, d->n_bindings);
    VkDescriptorSetAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                            .descriptorPool = b->descriptors,
                                            .descriptorSetCount = 1,
                                            .pSetLayouts = &layout->set};
    MSC_TRY(
        msc_vk_check(vk->api.vkAllocateDescriptorSets(vk->device, &allocate, &set), "descriptors"));
    write_descriptors(vk, set, d);
    vk->api.vkCmdBindPipeline(b->commands, VK_PIPELINE_BIND_POINT_COMPUTE, d->pipeline->pipeline);
    vk->api.vkCmdBindDescriptorSets(b->commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout->pipeline,
                                    0, 1, &set, 0, NULL);
    vk->api.vkCmdPushConstants(b->commands, layout->pipeline, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                               d->push_bytes, d->push);
    vk->api.vkCmdDispatch(b->commands, d->groups[0], d->groups[1], d->groups[2]);
    return ++b->n_dispatches < BATCH_DISPATCHES ? MSC_OK : submit(vk);
}

// ---- Copying ----------------------------------------------------------------------------------

// One piece through the batch's staging buffer.
static enum msc_status upload_piece(struct msc_vk *vk, const struct msc_vk_block *to,
                                    uint64_t offset, const char *from, uint64_t n_bytes) {
    struct msc_vk_batch *b;
    MSC_TRY(begin(vk, &b));
    if (b->staging_used + n_bytes > STAGING_BYTES) {
        MSC_TRY(submit(vk));
        MSC_TRY(begin(vk, &b));
    }
    memcpy(b->staging->mapped + b->staging_used, from, n_bytes);
    struct msc_vk_range range = range_of(to, true);
    touch(vk, b, &range, 1);
    VkBufferCopy copy = {b->staging_used, to->offset + offset, n_bytes};
    vk->api.vkCmdCopyBuffer(b->commands, b->staging->buffer, to->arena->buffer, 1, &copy);
    b->staging_used += (n_bytes + 15) / 16 * 16;
    return MSC_OK;
}

enum msc_status msc_vk_upload(struct msc_vk *vk, const struct msc_vk_block *to, const void *from,
                              uint64_t n_bytes) {
    assert(n_bytes <= to->n_bytes);
    if (vk->is_idle && to->arena->mapped) {
        memcpy(to->arena->mapped + to->offset, from, n_bytes);
        return MSC_OK;
    }
    for (uint64_t at = 0; at < n_bytes; at += STAGING_BYTES) {
        uint64_t n = n_bytes - at < STAGING_BYTES ? n_bytes - at : STAGING_BYTES;
        MSC_TRY(upload_piece(vk, to, at, (const char *)from + at, n));
    }
    return MSC_OK;
}

enum msc_status msc_vk_download(struct msc_vk *vk, void *to, const struct msc_vk_block *from,
                                uint64_t n_bytes) {
    assert(n_bytes <= from->n_bytes);
    if (from->arena->mapped) {
        MSC_TRY(msc_vk_flush(vk));
        memcpy(to, from->arena->mapped + from->offset, n_bytes);
        return MSC_OK;
    }
    for (uint64_t at = 0; at < n_bytes; at += STAGING_BYTES) {
        uint64_t n = n_bytes - at < STAGING_BYTES ? n_bytes - at : STAGING_BYTES;
        struct msc_vk_batch *b;
        MSC_TRY(begin(vk, &b));
        struct msc_vk_range range = range_of(from, false);
        touch(vk, b, &range, 1);
        VkBufferCopy copy = {from->offset + at, 0, n};
        vk->api.vkCmdCopyBuffer(b->commands, from->arena->buffer, vk->returned->buffer, 1, &copy);
        MSC_TRY(msc_vk_flush(vk));
        memcpy((char *)to + at, vk->returned->mapped, n);
    }
    return MSC_OK;
}
