// Stores the driver's compiled pipelines on disk. A file is used only if its header matches the
// schema of this program, the device and the driver, and if its contents match the hash in the
// header. Any other file is ignored.
#include "kernels/vulkan/vk.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"

#include <stdio.h>
#include <string.h>

#define SCHEMA 1

struct header {
    char magic[8];
    uint32_t schema;
    uint32_t header_bytes;
    uint32_t vendor, device, driver_version, reserved;
    uint8_t cache_uuid[VK_UUID_SIZE];
    uint8_t driver_uuid[VK_UUID_SIZE];
    uint64_t n_bytes;
    struct msc_hash hash; // hash of the bytes after the header
};

static struct header header_of(const struct msc_vk *vk, const void *data, size_t n_bytes) {
    struct header h;
    memset(&h, 0, sizeof(h));
    memcpy(h.magic, "mscvkpc", 8);
    h.schema = SCHEMA;
    h.header_bytes = (uint32_t)sizeof(h);
    h.vendor = vk->properties.vendorID;
    h.device = vk->properties.deviceID;
    h.driver_version = vk->properties.driverVersion;
    memcpy(h.cache_uuid, vk->properties.pipelineCacheUUID, VK_UUID_SIZE);
    memcpy(h.driver_uuid, vk->driver_uuid, VK_UUID_SIZE);
    h.n_bytes = n_bytes;
    h.hash = msc_hash_bytes(data, n_bytes);
    return h;
}

static char *path_of(const struct msc_vk *vk, struct msc_arena *arena) {
    char *name = msc_arena_printf(arena, "vulkan-%08x-%08x.cache", vk->properties.vendorID,
                                  vk->properties.deviceID);
    return name ? msc_path_join(arena, vk->cache_folder, name) : NULL;
}

// Returns the driver's pipeline data inside the file; *n_bytes is 0 if the file cannot be used.
static const void *vk_cache_check(const struct msc_vk *vk, const char *file, size_t file_bytes,
                                  size_t *n_bytes) {
    struct header found;
    *n_bytes = 0;
    if (file_bytes < sizeof(found)) {
        return NULL;
    }
    memcpy(&found, file, sizeof(found));
    struct header expected = header_of(vk, file + sizeof(found), file_bytes - sizeof(found));
    if (memcmp(&found, &expected, sizeof(found)) != 0) {
        return NULL;
    }
    *n_bytes = file_bytes - sizeof(found);
    return file + sizeof(found);
}

enum msc_status msc_vk_cache_open(struct msc_vk *vk) {
    struct msc_arena arena = {0};
    char *file = NULL;
    size_t file_bytes = 0, n_bytes = 0;
    const void *data = NULL;
    if (vk->cache_folder) {
        char *path = path_of(vk, &arena);
        if (path && msc_file_exists(path) && msc_file_read(&file, &file_bytes, path) == MSC_OK) {
            data = vk_cache_check(vk, file, file_bytes, &n_bytes);
        }
    }
    VkPipelineCacheCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
                                      .initialDataSize = n_bytes,
                                      .pInitialData = data};
    enum msc_status status = msc_vk_check(
        vk->api.vkCreatePipelineCache(vk->device, &info, NULL, &vk->cache), "a pipeline cache");
    vk->cache_bytes = n_bytes;
    msc_free(file);
    msc_arena_finish(&arena);
    return status;
}

static enum msc_status write_file(const struct msc_vk *vk, const char *path, const void *data,
                                  size_t n_bytes) {
    struct header h = header_of(vk, data, n_bytes);
    struct msc_file_writer w = {0};
    enum msc_status status;
    MSC_TRY_OUT(msc_file_make_folders(vk->cache_folder));
    MSC_TRY_OUT(msc_file_writer_begin(&w, path));
    MSC_TRY_OUT(msc_file_writer_write(&w, &h, sizeof(h)));
    MSC_TRY_OUT(msc_file_writer_write(&w, data, n_bytes));
    MSC_TRY_OUT(msc_file_writer_commit(&w));
out:
    msc_file_writer_abort(&w);
    return status;
}

static void vk_cache_save(struct msc_vk *vk) {
    struct msc_arena arena = {0};
    size_t n_bytes = 0;
    if (vk->api.vkGetPipelineCacheData(vk->device, vk->cache, &n_bytes, NULL) == VK_SUCCESS &&
        n_bytes != vk->cache_bytes) {
        void *data = msc_arena_alloc(&arena, n_bytes);
        char *path = path_of(vk, &arena);
        if (data && path &&
            vk->api.vkGetPipelineCacheData(vk->device, vk->cache, &n_bytes, data) == VK_SUCCESS &&
            write_file(vk, path, data, n_bytes) != MSC_OK) {
            msc_log(vk->log, MSC_LOG_WARNING, "vulkan: the pipeline cache was not written: %s",
                    msc_status_message());
        }
    }
    msc_arena_finish(&arena);
}

void msc_vk_cache_close(struct msc_vk *vk) {
    if (vk->cache && vk->cache_folder) {
        vk_cache_save(vk);
    }
    vk->api.vkDestroyPipelineCache(vk->device, vk->cache, NULL);
    vk->cache = VK_NULL_HANDLE;
}
