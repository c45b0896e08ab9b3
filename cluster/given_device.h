// Finds the GPU that a worker opens: the one that its cluster assigned, or one of the equal GPUs
// that the workers of one machine take in turn. Clusters set an environment variable to a list:
// UUIDs or numbers in CUDA_VISIBLE_DEVICES (Ray, Slurm), numbers in GPU_DEVICE_ORDINAL (Slurm).
// Vulkan ignores these variables and lists all GPUs of a machine.
#ifndef MSC_CLUSTER_GIVEN_DEVICE_H
#define MSC_CLUSTER_GIVEN_DEVICE_H

#include "base/cancel.h"
#include "base/status.h"
#include "kernels/vulkan/vulkan.h"

#include <stddef.h>

struct msc_arena;

// Sets *out to the device to open: the first GPU of the list, or `device` itself if it is not a GPU
// or if no variable is set. The text is `device`, in the arena, or static. MSC_E_DEVICE: `device`
// requires a GPU but the list is empty, or the GPU cannot be identified.
enum msc_status msc_given_device(const char **out, struct msc_arena *arena, const char *device,
                                 const struct msc_cancel *cancel);

// The number of GPUs that workers on one machine take in turn: those equal to the GPU that `device`
// stands for. 1 if `device` is a particular one or no GPU. `devices` are all n of the machine, as
// msc_vulkan_list gives them.
size_t msc_place_count(const char *device, const struct msc_vulkan_device devices[], int n);
// Sets *out to the device of the worker at `place` (0, 1, 2, …) among the workers of one machine:
// one of those that msc_place_count counts, or `device` itself if that is 1. The text is `device`
// or in the arena.
enum msc_status msc_place_device(const char **out, struct msc_arena *arena, const char *device,
                                 size_t place, const struct msc_vulkan_device devices[], int n);

#endif
