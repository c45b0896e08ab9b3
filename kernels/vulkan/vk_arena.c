// Arenas: buffers, each with its own memory of a suitable type.
#include "kernels/vulkan/vk.h"

#include "base/alloc.h"

#include <stdio.h>

// Returns the index of the first memory type whose bit is set in `allowed` and which has all
// properties in `wanted`, or -1.
static int find_type(const struct msc_vk *vk, uint32_t allowed, VkMemoryPropertyFlags wanted) {
    const VkPhysicalDeviceMemoryProperties *p = &vk->memory_properties;
    for (uint32_t i = 0; i < p->memoryTypeCount; i++) {
        if ((allowed >> i & 1u) != 0 && (p->memoryTypes[i].propertyFlags & wanted) == wanted) {
            return (int)i;
        }
    }
    return -1;
}

// Chooses a memory type. On software drivers and integrated GPUs, device memory is visible to the
// host if possible. On discrete GPUs, the host can access only a small part of the device memory,
// so data is copied through staging buffers. Parameters of calls are an exception: the host writes
// them directly, and a shader reads them once.
static int choose_type(const struct msc_vk *vk, uint32_t allowed, enum msc_vk_arena_kind kind) {
    const VkMemoryPropertyFlags device = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    const VkMemoryPropertyFlags host =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    const VkMemoryPropertyFlags cached = host | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    if (kind != MSC_VK_ARENA_DEVICE) {
        int type = find_type(vk, allowed, kind == MSC_VK_ARENA_ROWS ? device | host : cached);
        return type >= 0 ? type : find_type(vk, allowed, host);
    }
    if (vk->properties.deviceType != VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU) {
        int type = find_type(vk, allowed, device | cached);
        if (type >= 0) {
            return type;
        }
    }
    int type = find_type(vk, allowed, device);
    return type >= 0 ? type : find_type(vk, allowed, 0);
}

static enum msc_status create_view(struct msc_vk *vk, VkBufferView *out,
                                   const struct msc_vk_arena *arena, VkFormat format,
                                   uint64_t element_bytes) {
    if (arena->n_bytes / element_bytes > vk->properties.limits.maxTexelBufferElements) {
        return MSC_OK;
    }
    VkBufferViewCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO,
                                   .buffer = arena->buffer,
                                   .format = format,
                                   .range = VK_WHOLE_SIZE};
    return msc_vk_check(vk->api.vkCreateBufferView(vk->device, &info, NULL, out), "a texel view");
}

static enum msc_status init_arena(struct msc_vk *vk, struct msc_vk_arena *arena,
                                  enum msc_vk_arena_kind kind) {
    VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = arena->n_bytes,
        .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                 VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT,
    };
    MSC_TRY(
        msc_vk_check(vk->api.vkCreateBuffer(vk->device, &info, NULL, &arena->buffer), "a buffer"));
    VkMemoryRequirements needs;
    vk->api.vkGetBufferMemoryRequirements(vk->device, arena->buffer, &needs);
    int type = choose_type(vk, needs.memoryTypeBits, kind);
    if (type < 0) {
        return MSC_FAIL(MSC_E_DEVICE, "vulkan: the device has no memory for buffers");
    }
    if (kind == MSC_VK_ARENA_DEVICE) {
        vk->heap = vk->memory_properties.memoryTypes[type].heapIndex;
    }
    char what[64];
    snprintf(what, sizeof(what), "a buffer of %llu bytes", (unsigned long long)arena->n_bytes);
    VkMemoryAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                     .allocationSize = needs.size,
                                     .memoryTypeIndex = (uint32_t)type};
    MSC_TRY(
        msc_vk_check(vk->api.vkAllocateMemory(vk->device, &allocate, NULL, &arena->memory), what));
    MSC_TRY(msc_vk_check(vk->api.vkBindBufferMemory(vk->device, arena->buffer, arena->memory, 0),
                         what));
    const VkMemoryPropertyFlags host = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                       VK_MEMORY_PROPERTY_HOST_COHERENT_BIT |
                                       VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    VkMemoryPropertyFlags has = vk->memory_properties.memoryTypes[type].propertyFlags;
    if (kind != MSC_VK_ARENA_DEVICE || (!vk->stages_all && (has & host) == host)) {
        void *mapped;
        MSC_TRY(msc_vk_check(
            vk->api.vkMapMemory(vk->device, arena->memory, 0, VK_WHOLE_SIZE, 0, &mapped),
            "a mapping"));
        arena->mapped = mapped;
    }
    if (kind != MSC_VK_ARENA_DEVICE) {
        return MSC_OK;
    }
    MSC_TRY(create_view(vk, &arena->quads, arena, VK_FORMAT_R32G32B32A32_SFLOAT, 16));
    return create_view(vk, &arena->floats, arena, VK_FORMAT_R32_SFLOAT, 4);
}

enum msc_status msc_vk_try_arena(struct msc_vk *vk, struct msc_vk_arena **out, uint64_t n_bytes,
                                 enum msc_vk_arena_kind kind) {
    struct msc_vk_arena *arena = msc_alloc_zero(1, sizeof(*arena));
    MSC_TRY(MSC_ALLOCATED(arena));
    arena->n_bytes = n_bytes;
    enum msc_status status = init_arena(vk, arena, kind);
    if (status != MSC_OK) {
        msc_vk_destroy_arena(vk, arena);
        return status;
    }
    *out = arena;
    return MSC_OK;
}

void msc_vk_destroy_arena(struct msc_vk *vk, struct msc_vk_arena *arena) {
    if (arena) {
        vk->api.vkDestroyBufferView(vk->device, arena->quads, NULL);
        vk->api.vkDestroyBufferView(vk->device, arena->floats, NULL);
        vk->api.vkDestroyBuffer(vk->device, arena->buffer, NULL);
        vk->api.vkFreeMemory(vk->device, arena->memory, NULL); // also unmaps it
        msc_free(arena->holes);
        msc_free(arena);
    }
}
