// Reports how much memory there is, and how much of it is used.
#include "kernels/vulkan/vk.h"

#include "base/machine.h"

enum msc_status msc_vk_find_budget(struct msc_vk *vk) {
    return msc_vk_find_extension(&vk->has_budget, vk, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
}

// The memory still available in the memory heap of the arenas. If the device does not report a
// budget, the memory that other programs use is not known and not deducted.
static uint64_t left_of_heap(struct msc_vk *vk, uint64_t used_bytes) {
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, .pNext = &budget};
    uint64_t all = vk->memory_properties.memoryHeaps[vk->heap].size;
    if (vk->has_budget) {
        vk->api.vkGetPhysicalDeviceMemoryProperties2(vk->physical, &properties);
        all = budget.heapBudget[vk->heap];
        used_bytes = budget.heapUsage[vk->heap];
    }
    return all > used_bytes ? all - used_bytes : 0;
}

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

void msc_vk_get_memory(struct msc_vk *vk, struct msc_backend_memory *out) {
    uint64_t all = 0, touched = 0, free_bytes = msc_machine_free_bytes();
    VkPhysicalDeviceType type = vk->properties.deviceType;
    for (size_t i = 0; i < vk->n_arenas; i++) {
        all += vk->arenas[i]->n_bytes;
        touched += vk->arenas[i]->touched_bytes;
    }
    *out =
        (struct msc_backend_memory){.is_host = type == VK_PHYSICAL_DEVICE_TYPE_CPU ||
                                               type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU,
                                    .used_bytes = vk->block_bytes,
                                    .besides_bytes = vk->besides_bytes,
                                    .room_bytes = left_of_heap(vk, all) + (all - vk->block_bytes),
                                    .touched_bytes = touched};
    if (out->is_host && free_bytes > 0) { // 0: not known
        uint64_t again = touched > vk->block_bytes ? touched - vk->block_bytes : 0;
        out->room_bytes = smaller(out->room_bytes, free_bytes + again);
    }
}
