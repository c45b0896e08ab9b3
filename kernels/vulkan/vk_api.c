#include "kernels/vulkan/vk_api.h"

#include "kernels/vulkan/vulkan.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const char loader[] = "libvulkan.so.1";

enum msc_status msc_vk_api_load(struct msc_vk_api *api) {
    // The loader is never closed, because threads and thread-local data of drivers may outlive its
    // last use.
    void *library = dlopen(loader, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
        return MSC_FAIL(MSC_E_DEVICE, "vulkan: cannot open the loader: %s", dlerror());
    }
    void *symbol = dlsym(library, "vkGetInstanceProcAddr");
    if (!symbol) {
        return MSC_FAIL(MSC_E_DEVICE, "vulkan: %s has no vkGetInstanceProcAddr", loader);
    }
    // ISO C has no conversion from a data pointer to a function pointer; POSIX guarantees it.
    memcpy(&api->vkGetInstanceProcAddr, &symbol, sizeof(symbol));
#define X(name)                                                                                    \
    api->name = (PFN_##name)api->vkGetInstanceProcAddr(NULL, #name);                               \
    if (!api->name) {                                                                              \
        return MSC_FAIL(MSC_E_DEVICE, "vulkan: the loader is too old: it lacks %s", #name);        \
    }
    MSC_VK_GLOBAL_LIST(X)
#undef X
    return MSC_OK;
}

enum msc_status msc_vulkan_loader(char out[], size_t n_bytes) {
    struct msc_vk_api api = {0};
    uint32_t version = 0;
    MSC_TRY(msc_vk_api_load(&api));
    if (api.vkEnumerateInstanceVersion(&version) != VK_SUCCESS) {
        return MSC_FAIL(MSC_E_DEVICE, "vulkan: %s does not report its version", loader);
    }
    snprintf(out, n_bytes, "%u.%u.%u", VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version),
             VK_API_VERSION_PATCH(version));
    return MSC_OK;
}

enum msc_status msc_vk_api_load_instance(struct msc_vk_api *api, VkInstance instance) {
#define X(name)                                                                                    \
    api->name = (PFN_##name)api->vkGetInstanceProcAddr(instance, #name);                           \
    if (!api->name) {                                                                              \
        return MSC_FAIL(MSC_E_DEVICE, "vulkan: the instance lacks the function %s", #name);        \
    }
    MSC_VK_INSTANCE_LIST(X)
#undef X
    return MSC_OK;
}

enum msc_status msc_vk_api_load_device(struct msc_vk_api *api, VkDevice device) {
#define X(name)                                                                                    \
    api->name = (PFN_##name)api->vkGetDeviceProcAddr(device, #name);                               \
    if (!api->name) {                                                                              \
        return MSC_FAIL(MSC_E_DEVICE, "vulkan: the device lacks the function %s", #name);          \
    }
    MSC_VK_DEVICE_LIST(X)
#undef X
    return MSC_OK;
}
