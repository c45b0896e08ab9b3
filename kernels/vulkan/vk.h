// The Vulkan machine below the kernels: device, memory, pipelines, commands.
//
// Commands are recorded and run later: msc_vk_dispatch and msc_vk_upload return before anything is
// computed, msc_vk_download waits. What is recorded runs in order; barriers are put in where one
// command needs another's result, or overwrites what another reads. Memory may therefore be given
// back as soon as its last use is recorded.
//
//     msc_vk_lock(vk);
//     struct msc_vk_dispatch d = {.pipeline = p, .n_bindings = 2, .bindings = {
//         {.block = x, .kind = MSC_VK_READ}, {.block = y, .kind = MSC_VK_WRITE}}, ...};
//     MSC_TRY(msc_vk_dispatch(vk, &d));
//     msc_vk_unlock(vk);
//
// Every function but open, close and the lock itself is called with the lock held.
#ifndef MSC_KERNELS_VULKAN_VK_H
#define MSC_KERNELS_VULKAN_VK_H

#include "kernels/backend.h"
#include "kernels/vulkan/vk_api.h"
#include "kernels/vulkan/vk_shaders.h"

#ifdef __cplusplus
extern "C" {
#endif

struct msc_vk;
struct msc_vk_pipeline;

// ---- Memory -----------------------------------------------------------------------------------

// One VkBuffer that blocks are cut from.
struct msc_vk_arena {
    VkBuffer buffer;
    VkDeviceMemory memory;
    VkBufferView quads; // of its elements as float32, four or one at a time; uniform texels
    VkBufferView floats;
    char *mapped; // NULL: not visible to the host
    uint64_t n_bytes;
    struct msc_vk_hole { // free ranges in order
        uint64_t offset, n_bytes;
    } * holes;
    size_t n_holes, hole_capacity;
    size_t n_blocks;
};

// Memory of the device. Offsets are multiples of 256 bytes and so are sizes.
struct msc_vk_block {
    struct msc_vk_arena *arena;
    uint64_t offset, n_bytes;
};

// NULL when memory is short or the size is above what a shader can address.
struct msc_vk_block *msc_vk_allocate(struct msc_vk *vk, uint64_t n_bytes);
void msc_vk_free(struct msc_vk *vk, struct msc_vk_block *block); // accepts NULL
void msc_vk_destroy_arenas(struct msc_vk *vk);
// A buffer with memory of its own. `mapped` is NULL for device memory the host cannot see.
enum msc_status msc_vk_create_arena(struct msc_vk *vk, struct msc_vk_arena **out, uint64_t n_bytes,
                                    bool is_staging);
void msc_vk_destroy_arena(struct msc_vk *vk, struct msc_vk_arena *arena); // accepts NULL

// ---- Pipelines --------------------------------------------------------------------------------

#define MSC_VK_MAX_CONSTANTS 72
#define MSC_VK_MAX_BINDINGS 12
#define MSC_VK_PUSH_BYTES 128 // the least that every device has

// A shader with its specialisation constants, made when first asked for. constants[i] is
// constant_id i (floats by their bits); id 0 is the number of invocations in a workgroup.
enum msc_status msc_vk_pipeline(struct msc_vk_pipeline **out, struct msc_vk *vk,
                                enum msc_vk_shader shader, const uint32_t constants[], int n);
enum msc_status msc_vk_pipelines_init(struct msc_vk *vk);
void msc_vk_pipelines_finish(struct msc_vk *vk);

// vk_cache.c: the driver's compiled pipelines on disk.
enum msc_status msc_vk_cache_open(struct msc_vk *vk);
void msc_vk_cache_close(struct msc_vk *vk); // writes the file when something was added

// ---- Commands ---------------------------------------------------------------------------------

enum msc_vk_binding_kind {
    MSC_VK_READ,
    MSC_VK_WRITE,
    MSC_VK_READ_WRITE,
    MSC_VK_QUADS,  // uniform texels, 4 floats each: the whole arena
    MSC_VK_FLOATS, // uniform texels, 1 float each
};

struct msc_vk_binding {
    const struct msc_vk_block *block;
    enum msc_vk_binding_kind kind;
};

// Bindings are those of the shader in order: texels first, then storage buffers.
struct msc_vk_dispatch {
    const struct msc_vk_pipeline *pipeline;
    int n_bindings;
    struct msc_vk_binding bindings[MSC_VK_MAX_BINDINGS];
    const void *push;
    uint32_t push_bytes;
    uint32_t groups[3];
};

enum msc_status msc_vk_commands_init(struct msc_vk *vk);
void msc_vk_commands_finish(struct msc_vk *vk);
enum msc_status msc_vk_dispatch(struct msc_vk *vk, const struct msc_vk_dispatch *d);
enum msc_status msc_vk_upload(struct msc_vk *vk, const struct msc_vk_block *to, const void *from,
                              uint64_t n_bytes);
enum msc_status msc_vk_download(struct msc_vk *vk, void *to, const struct msc_vk_block *from,
                                uint64_t n_bytes);
// Runs what is recorded and waits for it.
enum msc_status msc_vk_flush(struct msc_vk *vk);
// A block with these bytes in it.
enum msc_status msc_vk_upload_new(struct msc_vk *vk, struct msc_vk_block **out, const void *from,
                                  uint64_t n_bytes);

// ---- Device -----------------------------------------------------------------------------------

// How heavy kernels divide their work; rows of a table by device (vk_device.c).
struct msc_vk_tuning {
    bool is_family_u;  // register tiles through uniform texels; else shared-memory tiles
    uint32_t lanes;    // invocations in a workgroup of simple kernels
    uint32_t per_lane; // elements for each of them
    uint32_t u_rows, u_quads, u_lanes; // family U: rows and quads of columns for each invocation
    uint32_t g_rows, g_cols, g_depth;  // family G: tile in shared memory
    uint32_t g_row, g_col;             // ... and each invocation's part of it
};

#define MSC_VK_BATCHES 3

struct msc_vk_batch; // commands recorded together

struct msc_vk_range {
    const struct msc_vk_arena *arena;
    uint64_t begin, end;
    bool is_write;
};
#define MSC_VK_MAX_RANGES 96

struct msc_vk {
    struct msc_vk_api api;
    const struct msc_log *log;
    const char *cache_folder;
    VkInstance instance;
    VkDebugUtilsMessengerEXT messenger;
    PFN_vkDestroyDebugUtilsMessengerEXT destroy_messenger;
    int n_messages; // atomic
    VkPhysicalDevice physical;
    VkPhysicalDeviceProperties properties;
    VkPhysicalDeviceMemoryProperties memory_properties;
    char driver[512];
    uint8_t driver_uuid[VK_UUID_SIZE];
    VkDevice device;
    VkQueue queue;
    uint32_t queue_family;
    struct msc_vk_tuning tuning;
    uint64_t block_limit; // bytes of the largest block
    bool divides_exactly; // `/` rounds correctly; else shaders correct it
    void *lock;

    struct msc_vk_arena **arenas;
    size_t n_arenas, arena_capacity;

    struct msc_vk_pipeline **pipelines;
    size_t n_pipelines, pipeline_capacity;
    struct msc_vk_layout *layouts; // [MSC_VK_SHADER_COUNT]
    VkPipelineCache cache;
    size_t cache_bytes; // as read

    VkCommandPool command_pool;
    struct msc_vk_batch *batches;                  // [MSC_VK_BATCHES]
    int batch;                                     // the one being recorded
    bool is_idle;                                  // nothing recorded, nothing running
    struct msc_vk_arena *returned;                 // staging of downloads
    struct msc_vk_range ranges[MSC_VK_MAX_RANGES]; // touched since the last barrier
    int n_ranges;
    VkQueryPool queries; // VK_NULL_HANDLE unless commands are timed
    double busy_seconds; // of timed batches
};

enum msc_status msc_vk_open(struct msc_vk **out, const struct msc_backend_options *options);
void msc_vk_close(struct msc_vk *vk); // accepts NULL
void msc_vk_lock(struct msc_vk *vk);
void msc_vk_unlock(struct msc_vk *vk);
// MSC_E_NOMEM or MSC_E_DEVICE with one line of text; MSC_OK for VK_SUCCESS.
enum msc_status msc_vk_check(VkResult result, const char *what);
// vk_probe.c: sets divides_exactly.
enum msc_status msc_vk_probe(struct msc_vk *vk);
// Workgroups that cover n elements, `each` to a group.
static inline uint32_t msc_vk_groups(uint64_t n, uint64_t each) {
    return (uint32_t)((n + each - 1) / each);
}

#ifdef __cplusplus
}
#endif

#endif
