// Files that the Vulkan backend keeps on disk, read without a device. The first byte is 't' for
// tuned tile sizes, 'c' for a pipeline cache file, or 's' for a pipeline cache after a valid
// header.
#include "base/hash.h"
#include "kernels/vulkan/vk.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <string.h>

#define TILES_NAME "vulkan-00000001-00000002-g.choices.json"
#define CACHE_NAME "vulkan-00000001-00000002.cache"

// Like the function in kernels/vulkan/vk_check.c, but sets no error message.
enum msc_status msc_vk_check(VkResult result, const char *what) {
    (void)what;
    return result == VK_SUCCESS ? MSC_OK : MSC_E_DEVICE;
}

static struct {
    uint8_t data[FUZZ_MAX_BYTES];
    size_t n;
} given; // the data given to the driver

static VkResult VKAPI_CALL take_cache(VkDevice device, const VkPipelineCacheCreateInfo *info,
                                      const VkAllocationCallbacks *callbacks,
                                      VkPipelineCache *cache) {
    (void)device;
    (void)callbacks;
    given.n = info->initialDataSize;
    if (given.n > 0) {
        memcpy(given.data, info->pInitialData, given.n);
    }
    *cache = VK_NULL_HANDLE;
    return VK_SUCCESS;
}

static void set_device(struct msc_vk *vk) {
    static char folder[4096];
    memset(vk, 0, sizeof *vk);
    snprintf(folder, sizeof folder, "%s", fuzz_path("."));
    vk->log = &fuzz_log;
    vk->cache_folder = folder;
    vk->api.vkCreatePipelineCache = take_cache;
    vk->properties.vendorID = 1;
    vk->properties.deviceID = 2;
    strcpy(vk->properties.deviceName, "fuzz");
    strcpy(vk->driver, "driver");
    vk->properties.limits.maxComputeWorkGroupInvocations = 256;
    vk->properties.limits.maxComputeWorkGroupSize[0] = 256;
    vk->properties.limits.maxComputeSharedMemorySize = 16384;
}

static void read_tiles(struct msc_vk *vk, const uint8_t *data, size_t n_bytes) {
    fuzz_write(TILES_NAME, data, n_bytes);
    msc_vk_tuned_load(vk);
    if (vk->n_tuned < 0 || vk->n_tuned > MSC_VK_MAX_TUNED) {
        fuzz_fail("more tiles than there is room for");
    }
    for (int i = 0; i < vk->n_tuned; i++) {
        if (vk->tuned[i].tile < 0 || vk->tuned[i].tile >= msc_vk_n_tiles(vk) ||
            !msc_vk_tile_is_possible(vk, vk->tuned[i].tile, vk->tuned[i].shape.is_integer)) {
            fuzz_fail("a tile that the device does not have");
        }
    }
    fuzz_remove(TILES_NAME);
}

// A header as written by kernels/vulkan/vk_cache.c, for this device and these bytes.
static size_t write_header(uint8_t *out, const uint8_t *data, size_t n_bytes) {
    const uint32_t numbers[] = {1, 88, 1, 2, 0, 0};
    const uint64_t length = n_bytes;
    const struct msc_hash hash = msc_hash_bytes(data, n_bytes);
    memset(out, 0, 88);
    memcpy(out, "mscvkpc", 8);
    memcpy(out + 8, numbers, sizeof numbers);
    memcpy(out + 64, &length, sizeof length);
    memcpy(out + 72, &hash, sizeof hash);
    return 88;
}

static void read_cache(struct msc_vk *vk, const uint8_t *data, size_t n_bytes, bool has_header) {
    static uint8_t file[FUZZ_MAX_BYTES + 88];
    size_t at = has_header ? write_header(file, data, n_bytes) : 0;
    memcpy(file + at, data, n_bytes);
    fuzz_write(CACHE_NAME, file, at + n_bytes);
    if (fuzz_check(msc_vk_cache_open(vk)) != MSC_OK) {
        fuzz_fail("a cache that cannot be opened for what stands on disk");
    }
    if (has_header ? given.n != n_bytes || memcmp(given.data, data, n_bytes) != 0
                   : given.n > n_bytes) {
        fuzz_fail("the driver is given other bytes than those on disk");
    }
    fuzz_remove(CACHE_NAME);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    struct msc_vk vk;
    if (n_bytes < 1 || n_bytes > FUZZ_MAX_BYTES || !strchr("tcs", data[0]) || !data[0]) {
        return -1;
    }
    set_device(&vk);
    if (data[0] == 't') {
        read_tiles(&vk, data + 1, n_bytes - 1);
    } else {
        read_cache(&vk, data + 1, n_bytes - 1, data[0] == 's');
    }
    return 0;
}
