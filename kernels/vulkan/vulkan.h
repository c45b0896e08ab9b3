// The vulkan backend: its interface to the rest of the program.
//
// In a build without Vulkan, the same functions (vk_stub.c) report that the backend does not exist.
//
//     struct msc_vulkan_device devices[8];
//     int n = msc_vulkan_list(devices, 8);
#ifndef MSC_KERNELS_VULKAN_VULKAN_H
#define MSC_KERNELS_VULKAN_VULKAN_H

#include "kernels/backend.h"

struct msc_vulkan_device {
    int index; // N in the name `vulkan:N`
    char name[256];
    char driver[512];
    char kind[32];  // "discrete gpu", "integrated gpu", "software", ...
    bool is_gpu;    // not a software driver
    bool is_usable; // has what the backend needs: Vulkan 1.2, byte buffers, ...
    uint64_t memory_bytes;
    char uuid[40]; // "3f2c6a10-…"; NVIDIA's tools show the same UUID
    char pci[32];  // "0000:65:00.0"; "" if the device has no known PCI address
};

extern const struct msc_backend_def msc_backend_vulkan;

// Writes the loader's version, "1.3.239", without loading a driver. MSC_E_DEVICE: there is no
// loader, or this build has no Vulkan.
enum msc_status msc_vulkan_loader(char out[], size_t n_bytes);
#define MSC_VULKAN_MAX_DEVICES 16 // further devices are ignored
// Lists up to `max` devices. Returns the number of all devices, at most MSC_VULKAN_MAX_DEVICES; 0
// if there is no driver or loader.
int msc_vulkan_list(struct msc_vulkan_device devices[], int max);
// Finds a device by "uuid=…" (a prefix of the UUID is enough; it may begin with "GPU-") or "pci=…".
// MSC_E_INVALID: the name has another form. MSC_E_DEVICE: no device or more than one matches; the
// message lists all devices.
enum msc_status msc_vulkan_find(int *index, const char *name);
// Like msc_vulkan_find, but searches the n devices given.
enum msc_status msc_vulkan_pick(int *index, const struct msc_vulkan_device devices[], int n,
                                const char *name);
// Index of the first usable device that is a GPU, or -1.
int msc_vulkan_first_gpu(void);
// The number of messages of the validation layer since the backend was opened. They are counted
// only if MSC_VULKAN_VALIDATE=1 is set in the environment.
int msc_vulkan_n_messages(const struct msc_backend *b);
// The size of the products of matrices of bytes that the device's matrix units compute, "16x16x32":
// rows, columns, depth. "" if shaders use no matrix units.
void msc_vulkan_matrix(char out[40], const struct msc_backend *b);
// The tuning result for a product of rows x depth by depth x columns.
struct msc_vulkan_tuned {
    uint64_t rows, cols, depth;
    bool is_integer;
    char tile[40]; // "128x64x16 by 8x8", "128x64x16 by 32x32 matrix"
    // 10^9 operations per second with `tile`; a multiplication and an addition count as two.
    double gflops;
    double gflops_by_rule; // the same, with the tile that is chosen without tuning
};

// Measures the tiles of matrix products for about `seconds`, small shapes first. Stores the best
// tile of each shape for this device in options.cache_folder; backends opened later read it from
// there. Results of kernels do not depend on tiles. *n is the number of rows filled.
enum msc_status msc_vulkan_tune(struct msc_backend *b, double seconds,
                                struct msc_vulkan_tuned rows[], int max, int *n);

#endif
