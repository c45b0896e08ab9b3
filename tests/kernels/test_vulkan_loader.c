// Vulkan loaders that lack a function, as old ones do. All other functions come from the real
// loader; without a real loader, all tests are skipped.
#include "kernels/vulkan/vk_api.h"
#include "kernels/vulkan/vulkan.h"

#include "tests/kernels/vulkan_kept.h"
#include "tests/wrap_loader.h"

#include <string.h>

static PFN_vkCreateInstance create_real;
static PFN_vkDestroyInstance destroy_real;
static const char *hidden; // the function that the loader lacks; NULL: none
static int n_instances;    // instances not yet destroyed

static VKAPI_ATTR VkResult VKAPI_CALL create_counted(const VkInstanceCreateInfo *info,
                                                     const VkAllocationCallbacks *callbacks,
                                                     VkInstance *out) {
    VkResult result = create_real(info, callbacks, out);
    n_instances += result == VK_SUCCESS;
    return result;
}

static VKAPI_ATTR void VKAPI_CALL destroy_counted(VkInstance instance,
                                                  const VkAllocationCallbacks *callbacks) {
    destroy_real(instance, callbacks);
    n_instances--;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_some(VkInstance instance, const char *name) {
    if (hidden && strcmp(name, hidden) == 0) {
        return NULL;
    }
    PFN_vkVoidFunction found = wrapped_loader(instance, name);
    if (strcmp(name, "vkCreateInstance") == 0) {
        create_real = (PFN_vkCreateInstance)found;
        return (PFN_vkVoidFunction)create_counted;
    }
    if (strcmp(name, "vkDestroyInstance") == 0) {
        destroy_real = (PFN_vkDestroyInstance)found;
        return (PFN_vkVoidFunction)destroy_counted;
    }
    return found;
}

const PFN_vkGetInstanceProcAddr wrapping_loader = get_some;

// If the loader lacks a function, an instance that was already created is destroyed again.
static void test_kernels_vulkan_loader__lacks_a_function(void **state) {
    static const char *const names[] = {"vkEnumeratePhysicalDevices", "vkGetDeviceProcAddr",
                                        "vkCreateInstance"};
    struct msc_vulkan_device devices[MSC_VULKAN_MAX_DEVICES];
    (void)state;
    skip_without_device();
    assert_int_equal(n_instances, 1); // the instance of the kept backend
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        hidden = names[i];
        assert_int_equal(msc_vulkan_list(devices, MSC_VULKAN_MAX_DEVICES), 0);
        assert_int_equal(msc_vulkan_first_gpu(), -1);
        assert_int_equal(n_instances, 1);
    }
    hidden = NULL;
    assert_true(msc_vulkan_list(devices, MSC_VULKAN_MAX_DEVICES) > 0);
    assert_int_equal(n_instances, 1);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_vulkan_loader__lacks_a_function),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, open_kept, NULL);
}
