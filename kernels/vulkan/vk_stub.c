// Replaces the vulkan backend in builds without Vulkan.
#include "kernels/vulkan/vulkan.h"

static enum msc_status stub_open(struct msc_backend **out,
                                 const struct msc_backend_options *options) {
    (void)out;
    (void)options;
    return MSC_FAIL(MSC_E_DEVICE, "vulkan: this build has no Vulkan backend (MSC_VULKAN=OFF)");
}

const struct msc_backend_def msc_backend_vulkan = {.name = "vulkan", .open = stub_open};

enum msc_status msc_vulkan_loader(char out[], size_t n_bytes) {
    (void)out;
    (void)n_bytes;
    return MSC_FAIL(MSC_E_DEVICE, "vulkan: this build has no Vulkan backend (MSC_VULKAN=OFF)");
}

int msc_vulkan_list(struct msc_vulkan_device devices[], int max) {
    (void)devices;
    (void)max;
    return 0;
}

enum msc_status msc_vulkan_find(int *index, const char *name) {
    (void)name;
    *index = 0;
    return MSC_FAIL(MSC_E_DEVICE, "vulkan: this build has no Vulkan backend (MSC_VULKAN=OFF)");
}

int msc_vulkan_first_gpu(void) {
    return -1;
}

int msc_vulkan_n_messages(const struct msc_backend *b) {
    (void)b;
    return 0;
}

void msc_vulkan_matrix(char out[40], const struct msc_backend *b) {
    (void)b;
    out[0] = '\0';
}

enum msc_status msc_vulkan_tune(struct msc_backend *b, double seconds,
                                struct msc_vulkan_tuned rows[], int max, int *n) {
    (void)b;
    (void)seconds;
    (void)rows;
    (void)max;
    *n = 0;
    return MSC_FAIL(MSC_E_DEVICE, "vulkan: this build has no Vulkan backend (MSC_VULKAN=OFF)");
}
