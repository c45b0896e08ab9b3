// Vulkan's functions, loaded at run time, so that the program also runs on machines without a
// Vulkan loader.
#ifndef MSC_KERNELS_VULKAN_VK_API_H
#define MSC_KERNELS_VULKAN_VK_API_H

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include "base/status.h"

#define MSC_VK_GLOBAL_LIST(X)                                                                      \
    X(vkCreateInstance)                                                                            \
    X(vkEnumerateInstanceVersion)                                                                  \
    X(vkEnumerateInstanceLayerProperties)

#define MSC_VK_INSTANCE_LIST(X)                                                                    \
    X(vkDestroyInstance)                                                                           \
    X(vkEnumeratePhysicalDevices)                                                                  \
    X(vkGetPhysicalDeviceProperties)                                                               \
    X(vkGetPhysicalDeviceProperties2)                                                              \
    X(vkGetPhysicalDeviceFeatures2)                                                                \
    X(vkGetPhysicalDeviceMemoryProperties)                                                         \
    X(vkGetPhysicalDeviceMemoryProperties2)                                                        \
    X(vkGetPhysicalDeviceQueueFamilyProperties)                                                    \
    X(vkEnumerateDeviceExtensionProperties)                                                        \
    X(vkCreateDevice)                                                                              \
    X(vkGetDeviceProcAddr)

#define MSC_VK_DEVICE_LIST(X)                                                                      \
    X(vkDestroyDevice)                                                                             \
    X(vkGetDeviceQueue)                                                                            \
    X(vkDeviceWaitIdle)                                                                            \
    X(vkCreateBuffer)                                                                              \
    X(vkDestroyBuffer)                                                                             \
    X(vkGetBufferMemoryRequirements)                                                               \
    X(vkAllocateMemory)                                                                            \
    X(vkFreeMemory)                                                                                \
    X(vkBindBufferMemory)                                                                          \
    X(vkMapMemory)                                                                                 \
    X(vkCreateBufferView)                                                                          \
    X(vkDestroyBufferView)                                                                         \
    X(vkCreateShaderModule)                                                                        \
    X(vkDestroyShaderModule)                                                                       \
    X(vkCreateDescriptorSetLayout)                                                                 \
    X(vkDestroyDescriptorSetLayout)                                                                \
    X(vkCreatePipelineLayout)                                                                      \
    X(vkDestroyPipelineLayout)                                                                     \
    X(vkCreateComputePipelines)                                                                    \
    X(vkDestroyPipeline)                                                                           \
    X(vkCreatePipelineCache)                                                                       \
    X(vkDestroyPipelineCache)                                                                      \
    X(vkGetPipelineCacheData)                                                                      \
    X(vkCreateDescriptorPool)                                                                      \
    X(vkDestroyDescriptorPool)                                                                     \
    X(vkResetDescriptorPool)                                                                       \
    X(vkAllocateDescriptorSets)                                                                    \
    X(vkUpdateDescriptorSets)                                                                      \
    X(vkCreateCommandPool)                                                                         \
    X(vkDestroyCommandPool)                                                                        \
    X(vkAllocateCommandBuffers)                                                                    \
    X(vkResetCommandBuffer)                                                                        \
    X(vkBeginCommandBuffer)                                                                        \
    X(vkEndCommandBuffer)                                                                          \
    X(vkCmdBindPipeline)                                                                           \
    X(vkCmdBindDescriptorSets)                                                                     \
    X(vkCmdPushConstants)                                                                          \
    X(vkCmdDispatch)                                                                               \
    X(vkCmdPipelineBarrier)                                                                        \
    X(vkCmdCopyBuffer)                                                                             \
    X(vkCmdResetQueryPool)                                                                         \
    X(vkCmdWriteTimestamp)                                                                         \
    X(vkCreateQueryPool)                                                                           \
    X(vkDestroyQueryPool)                                                                          \
    X(vkGetQueryPoolResults)                                                                       \
    X(vkCreateSemaphore)                                                                           \
    X(vkDestroySemaphore)                                                                          \
    X(vkWaitSemaphores)                                                                            \
    X(vkGetSemaphoreCounterValue)                                                                  \
    X(vkQueueSubmit)

// Each member has the name of its Vulkan function: api.vkCreateBuffer(...).
struct msc_vk_api {
    PFN_vkGetInstanceProcAddr vkGetInstanceProcAddr;
#define X(name) PFN_##name name;
    MSC_VK_GLOBAL_LIST(X)
    MSC_VK_INSTANCE_LIST(X)
    MSC_VK_DEVICE_LIST(X)
#undef X
};

// VK_KHR_cooperative_matrix, from its specification: the headers of Debian 12 are older.
#define MSC_VK_COOPERATIVE_MATRIX_EXTENSION "VK_KHR_cooperative_matrix"
#define MSC_VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_FEATURES ((VkStructureType)1000506000)
#define MSC_VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES ((VkStructureType)1000506001)
enum { MSC_VK_COMPONENT_SINT8 = 3, MSC_VK_COMPONENT_SINT32 = 5, MSC_VK_SCOPE_SUBGROUP = 3 };

struct msc_vk_cooperative_matrix_features {
    VkStructureType sType;
    void *pNext;
    VkBool32 cooperativeMatrix;
    VkBool32 cooperativeMatrixRobustBufferAccess;
};

struct msc_vk_cooperative_matrix {
    VkStructureType sType;
    void *pNext;
    uint32_t MSize, NSize, KSize;
    int32_t AType, BType, CType, ResultType; // VkComponentTypeKHR
    VkBool32 saturatingAccumulation;
    int32_t scope; // VkScopeKHR
};

typedef VkResult(VKAPI_PTR *PFN_msc_vk_cooperative_matrices)(VkPhysicalDevice device, uint32_t *n,
                                                             struct msc_vk_cooperative_matrix *out);

// The next three calls load all functions, in this order. MSC_E_DEVICE: a library or function is
// missing; the message names it.
enum msc_status msc_vk_api_load(struct msc_vk_api *api);
enum msc_status msc_vk_api_load_instance(struct msc_vk_api *api, VkInstance instance);
enum msc_status msc_vk_api_load_device(struct msc_vk_api *api, VkDevice device);

#endif
