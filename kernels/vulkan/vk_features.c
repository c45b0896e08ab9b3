// Checks required and optional features of a device, and creates the logical device with them.
#include "kernels/vulkan/vk.h"

#include "base/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum msc_status msc_vk_find_extension(bool *found, const struct msc_vk *vk, const char *name) {
    uint32_t n = 0;
    *found = false;
    MSC_TRY(msc_vk_check(vk->api.vkEnumerateDeviceExtensionProperties(vk->physical, NULL, &n, NULL),
                         "extensions"));
    VkExtensionProperties *list = msc_alloc_zero(n + 1, sizeof(*list));
    MSC_TRY(MSC_ALLOCATED(list));
    VkResult result = vk->api.vkEnumerateDeviceExtensionProperties(vk->physical, NULL, &n, list);
    for (uint32_t i = 0; i < n && result >= VK_SUCCESS; i++) {
        *found = *found || strcmp(list[i].extensionName, name) == 0;
    }
    msc_free(list);
    return MSC_OK;
}

// Sets has_dot and prefers_int. The instruction for dot products of bytes is used if the device
// reports that it is fast. For tests, MSC_VULKAN_DOT overrides this: 1 uses the instruction even if
// it is slow; 0 uses float sums if they are exact for any input; "emulate" uses integer sums
// without the instruction.
static enum msc_status find_dot(struct msc_vk *vk) {
    const char *wish = getenv("MSC_VULKAN_DOT");
    bool is_there;
    MSC_TRY(msc_vk_find_extension(&is_there, vk, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME));
    if (is_there) {
        VkPhysicalDeviceShaderIntegerDotProductFeatures has = {
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES};
        VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                              .pNext = &has};
        VkPhysicalDeviceShaderIntegerDotProductProperties is = {
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES};
        VkPhysicalDeviceProperties2 properties = {
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &is};
        vk->api.vkGetPhysicalDeviceFeatures2(vk->physical, &features);
        vk->api.vkGetPhysicalDeviceProperties2(vk->physical, &properties);
        bool is_fast = is.integerDotProduct4x8BitPackedSignedAccelerated;
        vk->has_dot = has.shaderIntegerDotProduct && (wish ? strcmp(wish, "1") == 0 : is_fast);
    }
    vk->prefers_int = vk->has_dot || (wish && strcmp(wish, "emulate") == 0);
    return MSC_OK;
}

// Sets tuning.slots to the number of multiprocessors, if the driver reports it (only NVIDIA's
// drivers do). Each multiprocessor runs one or two workgroups at a time.
static enum msc_status find_slots(struct msc_vk *vk) {
    bool is_there;
    MSC_TRY(msc_vk_find_extension(&is_there, vk, VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME));
    if (is_there) {
        VkPhysicalDeviceShaderSMBuiltinsPropertiesNV has = {
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV};
        VkPhysicalDeviceProperties2 properties = {
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &has};
        vk->api.vkGetPhysicalDeviceProperties2(vk->physical, &properties);
        vk->tuning.slots = has.shaderSMCount > 0 ? has.shaderSMCount : vk->tuning.slots;
    }
    return MSC_OK;
}

// The index of a queue family with compute support, or -1.
static int find_queue_family(const struct msc_vk_api *api, VkPhysicalDevice device) {
    VkQueueFamilyProperties families[16];
    uint32_t n = 16;
    api->vkGetPhysicalDeviceQueueFamilyProperties(device, &n, families);
    for (uint32_t i = 0; i < n; i++) {
        if ((families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) != 0) {
            return (int)i;
        }
    }
    return -1;
}

bool msc_vk_has_all(char lack[MSC_VK_LACK_BYTES], uint32_t *queue_family,
                    const struct msc_vk_api *api, VkPhysicalDevice device) {
    VkPhysicalDeviceProperties p;
    // Not all devices have timeline semaphores and buffers of bytes.
    VkPhysicalDeviceVulkan12Features has = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    VkPhysicalDeviceFeatures2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                     .pNext = &has};
    const uint32_t buffers = MSC_VK_MAX_BINDINGS + 1;
    int family = -1;
    api->vkGetPhysicalDeviceProperties(device, &p);
    if (p.apiVersion < VK_API_VERSION_1_2) {
        snprintf(lack, MSC_VK_LACK_BYTES, "has version %u.%u, expected 1.2",
                 VK_API_VERSION_MAJOR(p.apiVersion), VK_API_VERSION_MINOR(p.apiVersion));
        return false;
    }
    family = find_queue_family(api, device);
    api->vkGetPhysicalDeviceFeatures2(device, &all);
    if (family < 0) {
        snprintf(lack, MSC_VK_LACK_BYTES, "has no queue with compute support");
    } else if (p.limits.maxPerStageDescriptorStorageBuffers < buffers) {
        snprintf(lack, MSC_VK_LACK_BYTES, "binds %u buffers at a time, expected %u",
                 p.limits.maxPerStageDescriptorStorageBuffers, buffers);
    } else if (!has.timelineSemaphore || !has.storageBuffer8BitAccess) {
        snprintf(lack, MSC_VK_LACK_BYTES, "has no %s",
                 has.timelineSemaphore ? "buffers of bytes" : "timeline semaphores");
    } else {
        *queue_family = (uint32_t)family;
        return true;
    }
    return false;
}

// The optional features that a logical device is created with.
struct wanted {
    VkPhysicalDeviceShaderIntegerDotProductFeatures dot;
    VkPhysicalDeviceSubgroupSizeControlFeatures subgroup;
    struct msc_vk_cooperative_matrix_features matrix;
    VkPhysicalDeviceVulkan12Features always; // the head of the chain
    const char *extensions[3];
    uint32_t n_extensions;
};

static void want(struct wanted *w, const char *extension, void *features, void **next) {
    *next = w->always.pNext;
    w->always.pNext = features;
    w->extensions[w->n_extensions++] = extension;
}

static void choose_features(struct wanted *w, const struct msc_vk *vk) {
    *w = (struct wanted){
        .dot = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES,
                .shaderIntegerDotProduct = VK_TRUE},
        .subgroup = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES,
                     .subgroupSizeControl = VK_TRUE,
                     .computeFullSubgroups = VK_TRUE},
        .matrix = {.sType = MSC_VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_FEATURES,
                   .cooperativeMatrix = VK_TRUE},
        .always = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                   .storageBuffer8BitAccess = VK_TRUE,
                   .timelineSemaphore = VK_TRUE}};
    if (vk->has_dot) {
        want(w, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME, &w->dot, &w->dot.pNext);
    }
    if (vk->has_matrix) {
        want(w, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME, &w->subgroup, &w->subgroup.pNext);
        want(w, MSC_VK_COOPERATIVE_MATRIX_EXTENSION, &w->matrix, &w->matrix.pNext);
        w->always.shaderInt8 = w->always.vulkanMemoryModel = VK_TRUE;
    }
}

enum msc_status msc_vk_create_device(struct msc_vk *vk) {
    float priority = 1.0f;
    struct wanted optional;
    VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                     .queueFamilyIndex = vk->queue_family,
                                     .queueCount = 1,
                                     .pQueuePriorities = &priority};
    VkPhysicalDeviceFeatures2 has = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    VkPhysicalDeviceFeatures wanted = {0};
    const char *staging = getenv("MSC_VULKAN_STAGE"); // for tests: copy as on discrete GPUs
    vk->stages_all = staging && strcmp(staging, "1") == 0;
    MSC_TRY(find_dot(vk));
    MSC_TRY(msc_vk_find_matrix(vk));
    MSC_TRY(find_slots(vk));
    msc_vk_find_controls(vk);
    vk->api.vkGetPhysicalDeviceFeatures2(vk->physical, &has);
    vk->has_int64 = has.features.shaderInt64;
    wanted.shaderInt64 = has.features.shaderInt64;
    vk->has_float64 = has.features.shaderFloat64 && msc_vk_can_mix_widths(vk);
    wanted.shaderFloat64 = vk->has_float64;
    choose_features(&optional, vk);
    VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                               .pNext = &optional.always,
                               .queueCreateInfoCount = 1,
                               .pQueueCreateInfos = &queue,
                               .enabledExtensionCount = optional.n_extensions,
                               .ppEnabledExtensionNames = optional.extensions,
                               .pEnabledFeatures = &wanted};
    MSC_TRY(
        msc_vk_check(vk->api.vkCreateDevice(vk->physical, &info, NULL, &vk->device), "a device"));
    MSC_TRY(msc_vk_api_load_device(&vk->api, vk->device));
    vk->api.vkGetDeviceQueue(vk->device, vk->queue_family, 0, &vk->queue);
    return MSC_OK;
}
