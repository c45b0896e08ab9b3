#include "cluster/given_device.h"

#include "base/alloc.h"
#include "base/process.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

#define ASK_S 60.0 // for nvidia-smi, which may first have to wake many GPUs

static const char *const variables[] = {"CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"};

// The list of GPUs in an environment variable.
struct given {
    const char *variable; // NULL: no variable is set
    const char *first;    // first element of the list; "": the list is empty
};

static enum msc_status read_given(struct given *out, struct msc_arena *arena) {
    *out = (struct given){0};
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *list = getenv(variables[i]);
        if (!list) {
            continue;
        }
        out->variable = variables[i];
        out->first = msc_arena_printf(arena, "%.*s", (int)strcspn(list, ","), list);
        // CUDA ignores negative numbers. Slurm writes NoDevFiles for a job without GPUs.
        if (out->first && (out->first[0] == '-' || strcmp(out->first, "NoDevFiles") == 0)) {
            out->first = "";
        }
        return MSC_ALLOCATED(out->first);
    }
    return MSC_OK;
}

static enum msc_status take_none(const char **out, const struct given *given, const char *device) {
    bool is_auto = strcmp(device, "auto") == 0;
    if (!is_auto && msc_vulkan_first_gpu() >= 0) {
        return MSC_FAIL(MSC_E_DEVICE,
                        "device '%s': this worker was assigned no GPU (%s is empty); request one, "
                        "or use another device",
                        device, given->variable);
    }
    *out = is_auto ? "cpu" : device; // `device` is a software driver
    return MSC_OK;
}

static enum msc_status take_uuid(const char **out, struct msc_arena *arena, const char *uuid) {
    *out = msc_arena_printf(arena, "vulkan:uuid=%s", uuid);
    return MSC_ALLOCATED(*out);
}

// Numbers are indices into the list of nvidia-smi, which has only the GPUs that the job may use. If
// nvidia-smi does not report the UUID, Vulkan must list only one GPU.
static enum msc_status take_number(const char **out, struct msc_arena *arena,
                                   const struct given *given, const struct msc_cancel *cancel) {
    const char *const argv[] = {"nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader",
                                msc_arena_printf(arena, "--id=%s", given->first), NULL};
    struct msc_vulkan_device devices[MSC_VULKAN_MAX_DEVICES];
    struct msc_str uuid = {0};
    int n_gpus = 0, gpu = 0;
    MSC_TRY(MSC_ALLOCATED(argv[3]));
    enum msc_status status = msc_process_run(&uuid, argv, NULL, ASK_S, cancel, 1);
    if (status == MSC_OK && strncmp(msc_str_text(&uuid), "GPU-", 4) == 0) {
        status = take_uuid(out, arena, msc_str_text(&uuid));
        msc_str_finish(&uuid);
        return status;
    }
    msc_str_finish(&uuid);
    if (status == MSC_E_CANCELLED) {
        return status;
    }
    int n = msc_vulkan_list(devices, MSC_VULKAN_MAX_DEVICES);
    for (int i = 0; i < n; i++) {
        if (devices[i].is_gpu && devices[i].is_usable) {
            gpu = i;
            n_gpus++;
        }
    }
    if (n_gpus != 1) {
        return MSC_FAIL(MSC_E_DEVICE,
                        "%s is %s: cannot identify it among %d GPUs, because nvidia-smi reports no "
                        "UUID for it; list UUIDs in place of numbers",
                        given->variable, given->first, n_gpus);
    }
    *out = msc_arena_printf(arena, "vulkan:%d", gpu);
    return MSC_ALLOCATED(*out);
}

enum msc_status msc_given_device(const char **out, struct msc_arena *arena, const char *device,
                                 const struct msc_cancel *cancel) {
    struct given given;
    *out = device;
    if (strcmp(device, "auto") != 0 && strncmp(device, "vulkan", strlen("vulkan")) != 0) {
        return MSC_OK;
    }
    MSC_TRY(read_given(&given, arena));
    if (!given.variable) {
        return MSC_OK;
    }
    if (!given.first[0]) {
        return take_none(out, &given, device);
    }
    if (strncmp(given.first, "GPU-", 4) == 0) {
        return take_uuid(out, arena, given.first);
    }
    if (strspn(given.first, "0123456789") == strlen(given.first)) {
        return take_number(out, arena, &given, cancel);
    }
    return MSC_FAIL(MSC_E_DEVICE,
                    "%s is %s, expected a number or the UUID of a whole GPU: Vulkan cannot open a "
                    "part of a GPU",
                    given.variable, given.first);
}

// ---- Workers of one machine -------------------------------------------------------------------

// Index in `devices` of the one that `device` stands for; -1: it names a particular device, or
// there is none.
static int find_meant(const char *device, const struct msc_vulkan_device devices[], int n) {
    bool is_auto = strcmp(device, "auto") == 0;
    if (!is_auto && strcmp(device, "vulkan") != 0) {
        return -1;
    }
    for (int i = 0; i < n; i++) {
        if (is_auto ? devices[i].is_gpu && devices[i].is_usable : devices[i].index == 0) {
            return i;
        }
    }
    return -1;
}

static bool are_equal(const struct msc_vulkan_device *a, const struct msc_vulkan_device *b) {
    return a->is_usable && b->is_usable && strcmp(a->name, b->name) == 0 &&
           strcmp(a->driver, b->driver) == 0;
}

size_t msc_place_count(const char *device, const struct msc_vulkan_device devices[], int n) {
    int meant = find_meant(device, devices, n);
    size_t n_equal = 0;
    for (int i = 0; meant >= 0 && i < n; i++) {
        n_equal += are_equal(&devices[i], &devices[meant]);
    }
    return n_equal > 0 ? n_equal : 1;
}

enum msc_status msc_place_device(const char **out, struct msc_arena *arena, const char *device,
                                 size_t place, const struct msc_vulkan_device devices[], int n) {
    size_t n_equal = msc_place_count(device, devices, n), turn = 0;
    int meant = find_meant(device, devices, n);
    *out = device;
    for (int i = 0; n_equal > 1 && i < n; i++) {
        if (are_equal(&devices[i], &devices[meant]) && turn++ == place % n_equal) {
            *out = msc_arena_printf(arena, "vulkan:%d", devices[i].index);
        }
    }
    return MSC_ALLOCATED(*out);
}
