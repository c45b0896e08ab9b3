// Vulkan submissions that fail on request; inject.c explains how. Calls of the kind "device" are
// submitted batches. ENOMEM means out of device memory; any other error means that the device is
// lost, for the rest of the process.
#include "tests/faults/inject.h"
#include "tests/wrap_loader.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

static PFN_vkGetDeviceProcAddr find_of_device;
static PFN_vkQueueSubmit submit;
static PFN_vkWaitSemaphores wait;
static PFN_vkGetSemaphoreCounterValue ask;
static atomic_bool is_lost;

static VKAPI_ATTR VkResult VKAPI_CALL submit_or_not(VkQueue queue, uint32_t n,
                                                    const VkSubmitInfo *infos, VkFence fence) {
    bool is_bad = !atomic_load(&is_lost) && is_refused(DEVICE);
    if (is_bad && errno == ENOMEM) {
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    }
    if (is_bad) {
        atomic_store(&is_lost, true);
    }
    return atomic_load(&is_lost) ? VK_ERROR_DEVICE_LOST : submit(queue, n, infos, fence);
}

static VKAPI_ATTR VkResult VKAPI_CALL wait_or_not(VkDevice device, const VkSemaphoreWaitInfo *info,
                                                  uint64_t timeout_ns) {
    return atomic_load(&is_lost) ? VK_ERROR_DEVICE_LOST : wait(device, info, timeout_ns);
}

static VKAPI_ATTR VkResult VKAPI_CALL ask_or_not(VkDevice device, VkSemaphore semaphore,
                                                 uint64_t *value) {
    return atomic_load(&is_lost) ? VK_ERROR_DEVICE_LOST : ask(device, semaphore, value);
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL find_on_device(VkDevice device, const char *name) {
    PFN_vkVoidFunction found = find_of_device(device, name);
    if (strcmp(name, "vkQueueSubmit") == 0) {
        submit = (PFN_vkQueueSubmit)found;
        return (PFN_vkVoidFunction)submit_or_not;
    }
    if (strcmp(name, "vkWaitSemaphores") == 0) {
        wait = (PFN_vkWaitSemaphores)found;
        return (PFN_vkVoidFunction)wait_or_not;
    }
    if (strcmp(name, "vkGetSemaphoreCounterValue") == 0) {
        ask = (PFN_vkGetSemaphoreCounterValue)found;
        return (PFN_vkVoidFunction)ask_or_not;
    }
    return found;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL find_on_instance(VkInstance instance,
                                                                 const char *name) {
    PFN_vkVoidFunction found = wrapped_loader(instance, name);
    if (strcmp(name, "vkGetDeviceProcAddr") == 0) {
        find_of_device = (PFN_vkGetDeviceProcAddr)found;
        return (PFN_vkVoidFunction)find_on_device;
    }
    return found;
}

const PFN_vkGetInstanceProcAddr wrapping_loader = find_on_instance;
