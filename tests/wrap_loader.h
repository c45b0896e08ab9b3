// Programs that replace vkGetInstanceProcAddr of the Vulkan loader by a function of their own. They
// are linked with -Wl,--wrap=dlsym and wrap_loader.c, and define the function:
//
//     static PFN_vkVoidFunction get_some(VkInstance instance, const char *name) {
//         return is_hidden(name) ? NULL : wrapped_loader(instance, name);
//     }
//     const PFN_vkGetInstanceProcAddr wrapping_loader = get_some;
#ifndef MSC_TESTS_WRAP_LOADER_H
#define MSC_TESTS_WRAP_LOADER_H

#include "kernels/vulkan/vk_api.h"

// the loader's function; NULL until the program looks it up
extern PFN_vkGetInstanceProcAddr wrapped_loader;
extern const PFN_vkGetInstanceProcAddr wrapping_loader;

#endif
