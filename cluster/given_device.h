// Finds the GPU that a cluster assigned to this process. Clusters set an environment variable to a
// list: UUIDs or numbers in CUDA_VISIBLE_DEVICES (Ray, Slurm), numbers in GPU_DEVICE_ORDINAL
// (Slurm). Vulkan ignores these variables and lists all GPUs of a machine.
#ifndef MSC_CLUSTER_GIVEN_DEVICE_H
#define MSC_CLUSTER_GIVEN_DEVICE_H

#include "base/cancel.h"
#include "base/status.h"

struct msc_arena;

// Sets *out to the device to open: the first GPU of the list, or `device` itself if it is not a GPU
// or if no variable is set. The text is `device`, in the arena, or static. MSC_E_DEVICE: `device`
// requires a GPU but the list is empty, or the GPU cannot be identified.
enum msc_status msc_given_device(const char **out, struct msc_arena *arena, const char *device,
                                 const struct msc_cancel *cancel);

#endif
