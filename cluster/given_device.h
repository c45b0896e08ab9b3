// The GPU that a cluster has given to this process, by what it sets in the environment: a list of UUIDs or
// numbers in CUDA_VISIBLE_DEVICES (Ray, Slurm), or of numbers in GPU_DEVICE_ORDINAL (Slurm). Vulkan sees all
// GPUs of a machine whatever these say.
#ifndef MSC_CLUSTER_GIVEN_DEVICE_H
#define MSC_CLUSTER_GIVEN_DEVICE_H

#include "base/cancel.h"
#include "base/status.h"

struct msc_arena;

// The device to open in place of `device`, a text of the arena's or static: the first GPU of the list, or what it
// was where it is no GPU or nothing is said. MSC_E_DEVICE: a GPU is asked for and none was given, or it cannot be
// told which.
enum msc_status msc_given_device(const char **out, struct msc_arena *arena, const char *device,
                                 const struct msc_cancel *cancel);

#endif
