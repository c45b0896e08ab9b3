// Programs that find a function of their own where Vulkan's loader has vkGetInstanceProcAddr. They are
// linked with -Wl,--wrap=dlsym and wrap_loader.c, and have the function:
//
//     static PFN_vkVoidFunction get_some(VkInstance instance, const char *name) {
//         return is_hidden(name) ? NULL : wrapped_loader(instance, name);
//     }
//     const PFN_vkGetInstanceProcAddr wrapping_loader = get_some;
#ifndef MSC_TESTS_WRAP_LOADER_H
#define MSC_TESTS_WRAP_LOADER_H

#include "kernels/vulkan/vk_api.h"

extern PFN_vkGetInstanceProcAddr wrapped_loader; // the loader's; NULL until the program asks for it
extern const PFN_vkGetInstanceProcAddr wrapping_loader;

#endif
