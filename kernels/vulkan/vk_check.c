// Helpers for all files that use an open device: they check results of Vulkan's functions, and take
// and release the lock.
#include "kernels/vulkan/vk.h"

#include <pthread.h>

enum msc_status msc_vk_check(VkResult result, const char *what) {
    switch (result) {
    case VK_SUCCESS:
        return MSC_OK;
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_OUT_OF_POOL_MEMORY:
        return MSC_FAIL(MSC_E_NOMEM, "vulkan: not enough memory for %s", what);
    case VK_ERROR_DEVICE_LOST:
        return MSC_FAIL(MSC_E_LOST, "vulkan: the device was lost while handling %s", what);
    default:
        return MSC_FAIL(MSC_E_DEVICE, "vulkan: %s failed with VkResult %d", what, (int)result);
    }
}

void msc_vk_lock(struct msc_vk *vk) {
    pthread_mutex_lock(vk->lock);
}

void msc_vk_unlock(struct msc_vk *vk) {
    pthread_mutex_unlock(vk->lock);
}
