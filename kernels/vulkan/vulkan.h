// The vulkan backend: what the rest of the program sees of it.
//
// A build without Vulkan has the same functions (vk_stub.c); they answer that there is none.
//
//     struct msc_vulkan_device devices[8];
//     int n = msc_vulkan_list(devices, 8);
#ifndef MSC_KERNELS_VULKAN_VULKAN_H
#define MSC_KERNELS_VULKAN_VULKAN_H

#include "kernels/backend.h"

struct msc_vulkan_device {
    int index; // of `vulkan:N`
    char name[256];
    char driver[512];
    char kind[32];  // "discrete gpu", "integrated gpu", "software", ...
    bool is_gpu;    // not a software driver
    bool is_usable; // it has what the backend needs: Vulkan 1.2, buffers of bytes, ...
    uint64_t memory_bytes;
    char uuid[40]; // "3f2c6a10-…": of a GPU of NVIDIA's what its tools have, too
    char pci[32];  // "0000:65:00.0"; "": it is on no such bus, or its driver does not say
};

extern const struct msc_backend_def msc_backend_vulkan;

// Writes the loader's version, "1.3.239", without loading a driver. MSC_E_DEVICE: no loader, or this
// build has no Vulkan.
enum msc_status msc_vulkan_loader(char out[], size_t n_bytes);
// Fills at most `max` devices; returns how many there are, 0 without a driver or a loader.
int msc_vulkan_list(struct msc_vulkan_device devices[], int max);
#define MSC_VULKAN_MAX_DEVICES 16 // more are not looked at
// The index of the device "uuid=…" (its beginning is enough, and GPU- may come before it) or "pci=…".
// MSC_E_INVALID: it is no such name; MSC_E_DEVICE: there is none, or several: the text lists all there are.
enum msc_status msc_vulkan_find(int *index, const char *name);
// Among these [n].
enum msc_status msc_vulkan_pick(int *index, const struct msc_vulkan_device devices[], int n,
                                const char *name);
// Index of the first usable device that is a GPU, or -1.
int msc_vulkan_first_gpu(void);
// Messages of the validation layer since the backend was opened. They are counted when
// MSC_VULKAN_VALIDATE=1 is in the environment; 0 otherwise.
int msc_vulkan_n_messages(const struct msc_backend *b);
// What tuning found for a product of rows x depth by depth x columns.
struct msc_vulkan_tuned {
    uint64_t rows, cols, depth;
    bool is_integer;
    char tile[40];         // "128x64x16 by 8x8"
    double gflops;         // 10^9 operations a second with it, a product and a sum being two
    double gflops_by_rule; // with the tile that would be taken untuned
};

// Measures the tiles of matrix products for about so many seconds, small shapes first, and keeps
// the best of each for this device in options.cache_folder; later backends read it there. Results
// do not depend on tiles. *n is the number of rows filled.
enum msc_status msc_vulkan_tune(struct msc_backend *b, double seconds,
                                struct msc_vulkan_tuned rows[], int max, int *n);

#endif
