// Instances and devices: lists them, opens one, and chooses the tuning of kernels for it.
#include "kernels/vulkan/vk.h"

#include "base/alloc.h"
#include "kernels/vulkan/vulkan.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEVICES MSC_VULKAN_MAX_DEVICES

// ---- Tuning -----------------------------------------------------------------------------------

// The tuning of a device is the first row that matches; vendor 0 matches any vendor. Numbers for
// GPUs follow common practice; numbers for software drivers were measured on lavapipe.
static const struct {
    uint32_t vendor;
    bool is_software;
    struct msc_vk_tuning tuning;
} rows[] = {
    // llvmpipe ends the loops of an invocation after 65,535 iterations in total. Drivers of GPUs
    // reset the device if one invocation takes seconds. The limit for GPUs takes less time than
    // that; with more iterations, the host is faster anyway.
    {0, true, {true, 64, 64, 4, MSC_VK_SMALL_TILES, 60000}},
    {0x10de, false, {false, 256, 4, 64, MSC_VK_ALL_TILES, 1 << 24}}, // NVIDIA
    {0, false, {false, 128, 4, 64, MSC_VK_MEDIUM_TILES, 1 << 24}},
};

static struct msc_vk_tuning tuning_of(const VkPhysicalDeviceProperties *p) {
    size_t i = 0;
    bool is_software = p->deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    while (rows[i].is_software != is_software ||
           (rows[i].vendor != 0 && rows[i].vendor != p->vendorID)) {
        i++;
    }
    struct msc_vk_tuning t = rows[i].tuning;
    const char *family = getenv("MSC_VULKAN_FAMILY");
    if (family && (strcmp(family, "u") == 0 || strcmp(family, "g") == 0)) {
        t.is_family_u = family[0] == 'u';
    }
    return t;
}

// ---- Messages ---------------------------------------------------------------------------------

static VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                 VkDebugUtilsMessageTypeFlagsEXT types,
                                                 const VkDebugUtilsMessengerCallbackDataEXT *data,
                                                 void *payload) {
    struct msc_vk *vk = payload;
    (void)severity;
    (void)types;
    __atomic_add_fetch(&vk->n_messages, 1, __ATOMIC_RELAXED);
    msc_log(vk->log, MSC_LOG_ERROR, "vulkan: %s", data->pMessage);
    return VK_FALSE;
}

// ---- Instance ---------------------------------------------------------------------------------

static const char layer[] = "VK_LAYER_KHRONOS_validation";

static bool wants_validation(void) {
    const char *value = getenv("MSC_VULKAN_VALIDATE");
    return value && strcmp(value, "1") == 0;
}

static enum msc_status check_layer(const struct msc_vk_api *api) {
    VkLayerProperties layers[64];
    uint32_t n = 64;
    VkResult result = api->vkEnumerateInstanceLayerProperties(&n, layers);
    for (uint32_t i = 0; i < n && (result == VK_SUCCESS || result == VK_INCOMPLETE); i++) {
        if (strcmp(layers[i].layerName, layer) == 0) {
            return MSC_OK;
        }
    }
    return MSC_FAIL(MSC_E_DEVICE, "vulkan: MSC_VULKAN_VALIDATE=1 needs the layer %s: install it",
                    layer);
}

static enum msc_status create_instance(struct msc_vk_api *api, VkInstance *out, bool validates) {
    static const char *const layers[] = {layer};
    static const char *const extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME};
    static const VkValidationFeatureEnableEXT enables[] = {
        VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
    uint32_t version = 0;
    MSC_TRY(msc_vk_check(api->vkEnumerateInstanceVersion(&version), "the version"));
    if (version < VK_API_VERSION_1_2) {
        return MSC_FAIL(MSC_E_DEVICE, "vulkan: the loader has version %u.%u, expected 1.2 or later",
                        VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version));
    }
    VkValidationFeaturesEXT features = {.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
                                        .enabledValidationFeatureCount = 1,
                                        .pEnabledValidationFeatures = enables};
    VkApplicationInfo app = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                             .pApplicationName = "mscgym",
                             .apiVersion = VK_API_VERSION_1_2};
    VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                 .pApplicationInfo = &app};
    if (validates) {
        MSC_TRY(check_layer(api));
        info.pNext = &features;
        info.enabledLayerCount = 1;
        info.ppEnabledLayerNames = layers;
        info.enabledExtensionCount = 1;
        info.ppEnabledExtensionNames = extensions;
    }
    VkResult result = api->vkCreateInstance(&info, NULL, out);
    if (result == VK_ERROR_INCOMPATIBLE_DRIVER) {
        return MSC_FAIL(MSC_E_DEVICE, "vulkan: no driver found: install one for the device");
    }
    MSC_TRY(msc_vk_check(result, "an instance"));
    return msc_vk_api_load_instance(api, *out);
}

static enum msc_status vk_device_listen(struct msc_vk *vk) {
    PFN_vkCreateDebugUtilsMessengerEXT create =
        (PFN_vkCreateDebugUtilsMessengerEXT)vk->api.vkGetInstanceProcAddr(
            vk->instance, "vkCreateDebugUtilsMessengerEXT");
    vk->destroy_messenger = (PFN_vkDestroyDebugUtilsMessengerEXT)vk->api.vkGetInstanceProcAddr(
        vk->instance, "vkDestroyDebugUtilsMessengerEXT");
    if (!create || !vk->destroy_messenger) {
        return MSC_FAIL(
            MSC_E_DEVICE,
            "vulkan: MSC_VULKAN_VALIDATE=1 needs VK_EXT_debug_utils, which the loader lacks");
    }
    VkDebugUtilsMessengerCreateInfoEXT info = {
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
        .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                           VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
        .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                       VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
        .pfnUserCallback = on_message,
        .pUserData = vk};
    return msc_vk_check(create(vk->instance, &info, NULL, &vk->messenger), "a messenger");
}

// ---- Physical devices -------------------------------------------------------------------------

static uint32_t vk_device_enumerate(const struct msc_vk_api *api, VkInstance instance,
                                    VkPhysicalDevice devices[MAX_DEVICES]) {
    uint32_t n = MAX_DEVICES;
    VkResult result = api->vkEnumeratePhysicalDevices(instance, &n, devices);
    return result == VK_SUCCESS || result == VK_INCOMPLETE ? n : 0;
}

static const char *vk_device_kind_of(VkPhysicalDeviceType type) {
    static const char *const names[] = {"other", "integrated gpu", "discrete gpu", "virtual gpu",
                                        "software"};
    return (size_t)type < sizeof(names) / sizeof(names[0]) ? names[type] : names[0];
}

static void write_uuid(char text[40], const uint8_t uuid[VK_UUID_SIZE]) {
    size_t n = 0;
    for (size_t i = 0; i < VK_UUID_SIZE; i++) {
        bool is_apart = i == 4 || i == 6 || i == 8 || i == 10;
        n += (size_t)snprintf(text + n, 40 - n, "%s%02x", is_apart ? "-" : "", uuid[i]);
    }
}

static bool has_extension(const struct msc_vk_api *api, VkPhysicalDevice device, const char *name) {
    uint32_t n = 0;
    bool is_there = false;
    if (api->vkEnumerateDeviceExtensionProperties(device, NULL, &n, NULL) != VK_SUCCESS) {
        return false;
    }
    VkExtensionProperties *list = msc_alloc_zero(n + 1, sizeof *list);
    if (list && api->vkEnumerateDeviceExtensionProperties(device, NULL, &n, list) == VK_SUCCESS) {
        for (uint32_t i = 0; i < n; i++) {
            is_there = is_there || strcmp(list[i].extensionName, name) == 0;
        }
    }
    msc_free(list);
    return is_there;
}

// Sets the UUID and PCI address, which other tools use to name the device.
static void describe_place(const struct msc_vk_api *api, VkPhysicalDevice device,
                           struct msc_vulkan_device *out) {
    VkPhysicalDevicePCIBusInfoPropertiesEXT bus = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT};
    bool has_bus = has_extension(api, device, VK_EXT_PCI_BUS_INFO_EXTENSION_NAME);
    VkPhysicalDeviceIDProperties id = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES,
                                       .pNext = has_bus ? &bus : NULL};
    VkPhysicalDeviceProperties2 p = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                     .pNext = &id};
    api->vkGetPhysicalDeviceProperties2(device, &p);
    write_uuid(out->uuid, id.deviceUUID);
    if (has_bus) {
        snprintf(out->pci, sizeof out->pci, "%04x:%02x:%02x.%x", bus.pciDomain, bus.pciBus,
                 bus.pciDevice, bus.pciFunction);
    }
}

static void describe_driver(const struct msc_vk_api *api, VkPhysicalDevice device, char text[512],
                            uint8_t uuid[VK_UUID_SIZE]) {
    VkPhysicalDeviceDriverProperties driver = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
    VkPhysicalDeviceIDProperties id = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES,
                                       .pNext = &driver};
    VkPhysicalDeviceProperties2 p = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                     .pNext = &id};
    api->vkGetPhysicalDeviceProperties2(device, &p);
    snprintf(text, 512, "%.200s %.200s", driver.driverName, driver.driverInfo);
    memcpy(uuid, id.driverUUID, VK_UUID_SIZE);
}

void msc_vk_describe(const struct msc_vk_api *api, VkPhysicalDevice device, int index,
                     struct msc_vulkan_device *out) {
    VkPhysicalDeviceProperties p;
    char lack[MSC_VK_LACK_BYTES];
    uint32_t queue_family;
    VkPhysicalDeviceMemoryProperties memory;
    uint8_t uuid[VK_UUID_SIZE];
    memset(out, 0, sizeof(*out));
    api->vkGetPhysicalDeviceProperties(device, &p);
    api->vkGetPhysicalDeviceMemoryProperties(device, &memory);
    out->index = index;
    snprintf(out->name, sizeof(out->name), "%s", p.deviceName);
    snprintf(out->kind, sizeof(out->kind), "%s", vk_device_kind_of(p.deviceType));
    out->is_gpu = p.deviceType != VK_PHYSICAL_DEVICE_TYPE_CPU &&
                  p.deviceType != VK_PHYSICAL_DEVICE_TYPE_OTHER;
    out->is_usable = msc_vk_has_all(lack, &queue_family, api, device);
    if (p.apiVersion >= VK_API_VERSION_1_2) {
        describe_driver(api, device, out->driver, uuid);
        describe_place(api, device, out);
    }
    for (uint32_t i = 0; i < memory.memoryHeapCount; i++) {
        if ((memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0) {
            out->memory_bytes += memory.memoryHeaps[i].size;
        }
    }
}

int msc_vulkan_list(struct msc_vulkan_device devices[], int max) {
    struct msc_vk_api api = {0};
    VkInstance instance = VK_NULL_HANDLE;
    VkPhysicalDevice physical[MAX_DEVICES];
    uint32_t n = 0;
    if (msc_vk_api_load(&api) == MSC_OK && create_instance(&api, &instance, false) == MSC_OK) {
        n = vk_device_enumerate(&api, instance, physical);
    }
    for (uint32_t i = 0; i < n && i < (uint32_t)max; i++) {
        msc_vk_describe(&api, physical[i], (int)i, &devices[i]);
    }
    if (instance && api.vkDestroyInstance) {
        api.vkDestroyInstance(instance, NULL);
    }
    return (int)n;
}

int msc_vulkan_first_gpu(void) {
    struct msc_vulkan_device devices[MAX_DEVICES];
    int n = msc_vulkan_list(devices, MAX_DEVICES);
    for (int i = 0; i < n; i++) {
        if (devices[i].is_gpu && devices[i].is_usable) {
            return i;
        }
    }
    return -1;
}

// Chooses the size of arenas. It is large, so that the blocks of one dispatch are usually in one
// arena.
static uint64_t choose_arena_bytes(const struct msc_vk *vk) {
    const VkPhysicalDeviceMemoryProperties *m = &vk->memory_properties;
    uint64_t heap = 0;
    for (uint32_t i = 0; i < m->memoryHeapCount; i++) {
        bool is_local = (m->memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0;
        heap = is_local && m->memoryHeaps[i].size > heap ? m->memoryHeaps[i].size : heap;
    }
    const uint64_t least = (uint64_t)64 << 20, most = (uint64_t)1 << 31;
    uint64_t bytes = heap / 16 < least ? least : heap / 16 < most ? heap / 16 : most;
    uint64_t range = vk->block_limit / MSC_VK_BLOCK_ALIGNMENT * MSC_VK_BLOCK_ALIGNMENT;
    return bytes < range ? bytes / MSC_VK_BLOCK_ALIGNMENT * MSC_VK_BLOCK_ALIGNMENT : range;
}

// Limits the size of blocks to what shaders can read. Shaders index with 31 bits, and family U
// reads blocks as texels of one float, whose number is limited by the device.
static void limit_blocks(struct msc_vk *vk) {
    const VkPhysicalDeviceLimits *l = &vk->properties.limits;
    uint64_t texels = (uint64_t)l->maxTexelBufferElements * sizeof(float);
    vk->block_limit = l->maxStorageBufferRange < INT32_MAX ? l->maxStorageBufferRange : INT32_MAX;
    if (vk->tuning.is_family_u && texels < (uint64_t)1 << 26) {
        vk->tuning.is_family_u = false;
    }
    if (vk->tuning.is_family_u && texels < vk->block_limit) {
        vk->block_limit = texels;
    }
    vk->arena_bytes = choose_arena_bytes(vk);
}

// For tests: MSC_VULKAN_GROUPS limits the number of workgroups along each axis.
static void limit_groups(VkPhysicalDeviceLimits *l) {
    const char *wish = getenv("MSC_VULKAN_GROUPS");
    unsigned long most = wish ? strtoul(wish, NULL, 10) : 0;
    for (int i = 0; most > 0 && i < 3; i++) {
        uint32_t *limit = &l->maxComputeWorkGroupCount[i];
        *limit = most < *limit ? (uint32_t)most : *limit;
    }
}

static enum msc_status choose_device(struct msc_vk *vk, int index) {
    VkPhysicalDevice physical[MAX_DEVICES];
    char lack[MSC_VK_LACK_BYTES];
    int n = (int)vk_device_enumerate(&vk->api, vk->instance, physical);
    if (index < 0 || index >= n) {
        return MSC_FAIL(MSC_E_DEVICE, "vulkan: no device %d: there %s %d, counted from 0", index,
                        n == 1 ? "is" : "are", n);
    }
    vk->physical = physical[index];
    vk->api.vkGetPhysicalDeviceProperties(vk->physical, &vk->properties);
    vk->api.vkGetPhysicalDeviceMemoryProperties(vk->physical, &vk->memory_properties);
    if (!msc_vk_has_all(lack, &vk->queue_family, &vk->api, vk->physical)) {
        return MSC_FAIL(MSC_E_DEVICE, "vulkan: %s %s", vk->properties.deviceName, lack);
    }
    vk->tuning = tuning_of(&vk->properties);
    limit_groups(&vk->properties.limits);
    limit_blocks(vk);
    describe_driver(&vk->api, vk->physical, vk->driver, vk->driver_uuid);
    return MSC_OK;
}

// ---- Opening and closing ----------------------------------------------------------------------

static enum msc_status vk_device_init(struct msc_vk *vk,
                                      const struct msc_backend_options *options) {
    pthread_mutex_t *lock = msc_alloc_zero(1, sizeof(*lock));
    if (!lock || pthread_mutex_init(lock, NULL) != 0) {
        msc_free(lock);
        return MSC_FAIL(MSC_E_NOMEM, "vulkan: out of memory");
    }
    vk->lock = lock;
    MSC_TRY(msc_vk_api_load(&vk->api));
    MSC_TRY(create_instance(&vk->api, &vk->instance, wants_validation()));
    if (wants_validation()) {
        MSC_TRY(vk_device_listen(vk));
    }
    MSC_TRY(choose_device(vk, options->device));
    MSC_TRY(msc_vk_create_device(vk));
    MSC_TRY(msc_vk_cache_open(vk));
    MSC_TRY(msc_vk_pipelines_init(vk));
    msc_vk_tuned_load(vk);
    MSC_TRY(msc_vk_commands_init(vk));
    msc_vk_lock(vk);
    enum msc_status status = msc_vk_probe(vk);
    msc_vk_unlock(vk);
    return status;
}

enum msc_status msc_vk_open(struct msc_vk **out, const struct msc_backend_options *options) {
    struct msc_vk *vk = msc_alloc_zero(1, sizeof(*vk));
    MSC_TRY(MSC_ALLOCATED(vk));
    vk->log = options->log;
    vk->forced_tile = -1;
    vk->cache_folder = options->cache_folder;
    enum msc_status status = vk_device_init(vk, options);
    if (status != MSC_OK) {
        msc_vk_close(vk);
        return status;
    }
    *out = vk;
    return MSC_OK;
}

static void close_device(struct msc_vk *vk) {
    if (vk->batches) {
        msc_vk_lock(vk);
        (void)msc_vk_flush(vk);
        msc_vk_unlock(vk);
    }
    vk->api.vkDeviceWaitIdle(vk->device);
    for (int i = 0; vk->timings && i < MSC_VK_SHADER_COUNT; i++) {
        if (vk->timings[i].n > 0) {
            msc_log(vk->log, MSC_LOG_INFO, "vulkan: %s: %.6f s in %llu dispatches",
                    msc_vk_shader_name((enum msc_vk_shader)i), vk->timings[i].seconds,
                    (unsigned long long)vk->timings[i].n);
        }
    }
    msc_vk_commands_finish(vk);
    msc_vk_returned_finish(vk);
    msc_vk_pipelines_finish(vk);
    msc_vk_cache_close(vk);
    msc_vk_destroy_arenas(vk);
    vk->api.vkDestroyDevice(vk->device, NULL);
}

void msc_vk_close(struct msc_vk *vk) {
    if (!vk) {
        return;
    }
    if (vk->device && vk->api.vkDestroyDevice) {
        close_device(vk);
    }
    if (vk->messenger) {
        vk->destroy_messenger(vk->instance, vk->messenger, NULL);
    }
    if (vk->instance && vk->api.vkDestroyInstance) {
        vk->api.vkDestroyInstance(vk->instance, NULL);
    }
    if (vk->lock) {
        pthread_mutex_destroy(vk->lock);
    }
    msc_free(vk->lock);
    msc_free(vk);
}
