// The Vulkan machine below the kernels: device, memory, pipelines, commands.
//
// Commands are recorded and run later: msc_vk_dispatch and msc_vk_upload return before anything is
// computed, msc_vk_download waits. What is recorded runs in order; barriers are put in where one
// command needs another's result, or overwrites what another reads. Memory may therefore be given
// back as soon as its last use is recorded. Where commands that were recorded will not run, as their
// batch is not taken or the device is lost, all that comes after fails: nothing there can be trusted
// until the device is opened anew.
//
// A dispatch takes any number of calls that differ in their blocks and in a row of parameters:
//
//     msc_vk_lock(vk);
//     struct msc_vk_dispatch d;
//     msc_vk_dispatch_init(&d, pipeline, 2, (const enum msc_vk_kind[]){MSC_VK_READ, MSC_VK_WRITE});
//     struct msc_vk_call *c = msc_vk_add_call(&d);
//     c->blocks[0] = x;
//     c->blocks[1] = y;
//     MSC_TRY(msc_vk_dispatch(vk, &d));
//     msc_vk_unlock(vk);
//
// Every function but open, close and the lock itself is called with the lock held.
#ifndef MSC_KERNELS_VULKAN_VK_H
#define MSC_KERNELS_VULKAN_VK_H

#include "kernels/backend.h"
#include "kernels/vulkan/vk_api.h"
#include "kernels/vulkan/vk_shaders.h"

struct msc_vk;
struct msc_vk_pipeline;
struct msc_vulkan_device;

// ---- Memory -----------------------------------------------------------------------------------

// One VkBuffer that blocks are cut from.
struct msc_vk_arena {
    VkBuffer buffer;
    VkDeviceMemory memory;
    VkBufferView quads; // of its elements as float32, four or one at a time; uniform texels
    VkBufferView floats;
    char *mapped; // NULL: not visible to the host
    uint64_t n_bytes;
    uint64_t touched_bytes; // from the beginning on: blocks have lain in no more
    struct msc_vk_hole {    // free ranges in order
        uint64_t offset, n_bytes;
    } * holes;
    size_t n_holes, hole_capacity;
    size_t n_blocks;
};

// Above every alignment that Vulkan lets a device ask for.
#define MSC_VK_BLOCK_ALIGNMENT 256

// Memory of the device. Offsets and sizes are multiples of the alignment.
struct msc_vk_block {
    struct msc_vk_arena *arena;
    uint64_t offset, n_bytes;
};

// NULL when memory is short or the size is above what a shader can address.
struct msc_vk_block *msc_vk_allocate(struct msc_vk *vk, uint64_t n_bytes);
void msc_vk_free(struct msc_vk *vk, struct msc_vk_block *block); // accepts NULL
void msc_vk_destroy_arenas(struct msc_vk *vk);

// vk_room.c: how much memory there is. Whether the device tells it is found once.
enum msc_status msc_vk_find_budget(struct msc_vk *vk);
void msc_vk_get_memory(struct msc_vk *vk, struct msc_backend_memory *out);

enum msc_vk_arena_kind {
    MSC_VK_ARENA_DEVICE,
    MSC_VK_ARENA_STAGING, // the host's
    MSC_VK_ARENA_ROWS,    // written by the host, read by shaders
};
// A buffer with memory of its own. `mapped` is NULL for device memory the host cannot see. Where
// memory is short, arenas of blocks that are empty are given back.
enum msc_status msc_vk_create_arena(struct msc_vk *vk, struct msc_vk_arena **out, uint64_t n_bytes,
                                    enum msc_vk_arena_kind kind);
void msc_vk_destroy_arena(struct msc_vk *vk, struct msc_vk_arena *arena); // accepts NULL

// ---- Pipelines --------------------------------------------------------------------------------

#define MSC_VK_MAX_CONSTANTS 72
#define MSC_VK_MAX_BINDINGS 12
#define MSC_VK_PUSH_BYTES 128 // the least that every device has

// A shader with its specialisation constants, made when first asked for. constants[i] is
// constant_id i (floats by their bits); id 0 is the number of invocations in a workgroup. There
// are as many as the shader's row says (MSC_VK_CHECK_CONSTANTS).
enum msc_status msc_vk_pipeline(struct msc_vk_pipeline **out, struct msc_vk *vk,
                                enum msc_vk_shader shader, const uint32_t constants[]);
enum msc_status msc_vk_pipelines_init(struct msc_vk *vk);
void msc_vk_pipelines_finish(struct msc_vk *vk);

// vk_controls.c: what a device can be asked to do with float32, and a copy of a shader's code, the
// caller's to free, that asks for it.
enum msc_vk_control {
    MSC_VK_KEEPS_DENORMALS = 1,
    MSC_VK_KEEPS_SPECIALS = 2, // NaN, infinite numbers, the sign of zero
    MSC_VK_ROUNDS_TO_EVEN = 4,
};
#define MSC_VK_ALL_CONTROLS 7u
void msc_vk_find_controls(struct msc_vk *vk);
enum msc_status msc_vk_add_controls(uint32_t **out, size_t *n_bytes,
                                    const struct msc_vk_shader_code *code, unsigned controls);

// vk_cache.c: the driver's compiled pipelines on disk.
enum msc_status msc_vk_cache_open(struct msc_vk *vk);
void msc_vk_cache_close(struct msc_vk *vk); // writes the file when something was added

// ---- Commands ---------------------------------------------------------------------------------

enum msc_vk_kind {
    MSC_VK_READ,
    MSC_VK_WRITE,
    MSC_VK_READ_WRITE,
    MSC_VK_QUADS,  // uniform texels, 4 floats each: the whole arena
    MSC_VK_FLOATS, // uniform texels, 1 float each
};

#define MSC_VK_MAX_CALLS 64 // of one dispatch
#define MSC_VK_MAX_ROW 32   // words of parameters of one call

struct msc_vk_call {
    const struct msc_vk_block *blocks[MSC_VK_MAX_BINDINGS];
    uint32_t row[MSC_VK_MAX_ROW];
    struct msc_vk_block quantized; // room for a block that covers several (msc_vk_put_quantized)
};

// Bindings are those of the shader in order: texels first, then storage buffers. Behind them the
// shader finds the calls' rows (shaders/call.glsl).
struct msc_vk_dispatch {
    const struct msc_vk_pipeline *pipeline;
    int n_bindings;
    enum msc_vk_kind kinds[MSC_VK_MAX_BINDINGS];
    int n_calls;
    int n_row;        // words of a row
    const void *push; // the same for all calls
    uint32_t push_bytes;
    uint32_t groups[3]; // of one call
    // Operations of one call, about (msc_vk_turns_work); 0: a few for each of its invocations.
    double work;
    struct msc_vk_call calls[MSC_VK_MAX_CALLS];
};

// What so many turns of loops count as. One reads what may lie anywhere, which slow devices take as
// long for as for many sums.
static inline double msc_vk_turns_work(double turns) {
    return 128.0 * turns;
}

// Without calls, parameters and push constants; one workgroup.
void msc_vk_dispatch_init(struct msc_vk_dispatch *d, const struct msc_vk_pipeline *pipeline,
                          int n_bindings, const enum msc_vk_kind kinds[]);
// The next of at most MSC_VK_MAX_CALLS. The caller fills all its blocks and its row.
static inline struct msc_vk_call *msc_vk_add_call(struct msc_vk_dispatch *d) {
    return &d->calls[d->n_calls++];
}
// Calls may be divided among several dispatches and batches.
enum msc_status msc_vk_dispatch(struct msc_vk *vk, const struct msc_vk_dispatch *d);

enum msc_status msc_vk_commands_init(struct msc_vk *vk);
void msc_vk_commands_finish(struct msc_vk *vk);
enum msc_status msc_vk_upload(struct msc_vk *vk, const struct msc_vk_block *to, const void *from,
                              uint64_t n_bytes);
// A block with these bytes in it.
enum msc_status msc_vk_upload_new(struct msc_vk *vk, struct msc_vk_block **out, const void *from,
                                  uint64_t n_bytes);

struct msc_vk_copy {
    void *to;
    const struct msc_vk_block *from;
    uint64_t n_bytes;
};
// Lets go of the lock while it waits: others may record meanwhile.
enum msc_status msc_vk_download(struct msc_vk *vk, const struct msc_vk_copy copies[], size_t n);
// Runs what is recorded and waits for it.
enum msc_status msc_vk_flush(struct msc_vk *vk);

// ---- Device -----------------------------------------------------------------------------------

// Sets of tiles of family G, by their numbers (vk_tiles.c).
#define MSC_VK_ALL_TILES 0xffu
#define MSC_VK_MEDIUM_TILES 0xf8u
#define MSC_VK_SMALL_TILES 0x80u

// How kernels divide their work; rows of a table by device (vk_device.c).
struct msc_vk_tuning {
    bool is_family_u;  // register tiles through uniform texels; else shared-memory tiles
    uint32_t lanes;    // invocations in a workgroup of simple kernels
    uint32_t per_lane; // elements for each of them
    uint32_t slots;    // workgroups that run at full speed at a time, about
    uint32_t tiles;    // which of its family's tiles may be taken: one bit each (vk_tiles.c)
    uint32_t turns;    // of loops that an invocation may take in all
};

// How a product is divided. Family G: a workgroup's tile in shared memory, `depth` steps of k
// deep, of which each invocation takes `row` x `col`. Family U: each invocation takes
// `row` x `col`, and a workgroup has as many of them as in family G.
struct msc_vk_tile {
    uint32_t rows, cols, depth, row, col;
};
#define MSC_VK_MAX_TILES 12

struct msc_vk_shape { // of a product, of all calls together
    uint64_t rows, cols, depth;
    bool is_integer;
};

struct msc_vk_tuned {
    struct msc_vk_shape shape;
    int tile;
};
#define MSC_VK_MAX_TUNED 48

#define MSC_VK_BATCHES 8

struct msc_vk_batch;    // commands recorded together
struct msc_vk_returned; // vk_copy.c

struct msc_vk_timing { // of a shader's dispatches
    uint64_t n;
    double seconds;
};

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
    uint64_t arena_bytes; // of an arena, where there is memory enough
    bool divides_exactly; // quotients and roots round correctly; else shaders mend them
    bool keeps_denormals; // results below 2^-126 are not taken for zero
    bool stages_all;      // device memory is not mapped even where it could be
    unsigned controls;    // enum msc_vk_control: what shaders ask of its floats
    bool has_int64;       // integers of 64 bits in shaders
    bool has_dot;         // products of bytes by an instruction
    bool prefers_int;     // ... that is faster than floats
    void *lock;

    struct msc_vk_arena **arenas;
    size_t n_arenas, arena_capacity;
    size_t last_arena;                // that the last block was cut from
    uint64_t block_bytes, block_peak; // of all blocks
    uint64_t besides_bytes;           // that a run has taken besides, at most
    uint32_t heap;                    // that arenas come from
    bool has_budget;                  // the device says how much of it is left
    uint64_t refused_bytes; // the smallest arena that there was no memory for of late; 0: none

    struct msc_vk_pipeline **pipelines;
    size_t n_pipelines, pipeline_capacity;
    struct msc_vk_layout *layouts; // [MSC_VK_SHADER_COUNT]
    VkPipelineCache cache;
    size_t cache_bytes; // as read

    VkCommandPool command_pool;
    struct msc_vk_batch *batches; // [MSC_VK_BATCHES]
    int batch;                    // the one being recorded
    double batch_work;            // operations that a batch has at most, unless one call has more
    VkSemaphore timeline;         // counts batches that are done
    uint64_t n_submitted;         // batches
    VkResult lost;                // by which batches were lost; VK_SUCCESS: none
    struct msc_vk_returned *returned; // staging of downloads
    size_t n_returned, returned_capacity;
    struct msc_vk_range ranges[MSC_VK_MAX_RANGES]; // touched since the last barrier
    int n_ranges;
    struct msc_vk_tuned tuned[MSC_VK_MAX_TUNED];
    int n_tuned;
    int forced_tile; // while tiles are measured; else -1

    struct msc_vk_timing *timings; // [MSC_VK_SHADER_COUNT]; NULL unless commands are timed
};

// As msc_vulkan_list says of each.
void msc_vk_describe(const struct msc_vk_api *api, VkPhysicalDevice device, int index,
                     struct msc_vulkan_device *out);
enum msc_status msc_vk_open(struct msc_vk **out, const struct msc_backend_options *options);
void msc_vk_close(struct msc_vk *vk); // accepts NULL
void msc_vk_lock(struct msc_vk *vk);
void msc_vk_unlock(struct msc_vk *vk);
// MSC_E_NOMEM, MSC_E_LOST or MSC_E_DEVICE with one line of text; MSC_OK for VK_SUCCESS.
enum msc_status msc_vk_check(VkResult result, const char *what);
// vk_features.c: has the device an extension of this name?
enum msc_status msc_vk_find_extension(bool *found, const struct msc_vk *vk, const char *name);
// vk_features.c: has a device all that opening it needs? Else what it lacks: "has no …".
#define MSC_VK_LACK_BYTES 80
bool msc_vk_has_all(char lack[MSC_VK_LACK_BYTES], uint32_t *queue_family,
                    const struct msc_vk_api *api, VkPhysicalDevice device);
// vk_features.c: the logical device; sets what it may use.
enum msc_status msc_vk_create_device(struct msc_vk *vk);
// vk_probe.c: sets divides_exactly and keeps_denormals.
enum msc_status msc_vk_probe(struct msc_vk *vk);
// Workgroups that cover n elements, `each` to a group.
static inline uint32_t msc_vk_groups(uint64_t n, uint64_t each) {
    return (uint32_t)((n + each - 1) / each);
}

// ---- Tiles (vk_tiles.c) -----------------------------------------------------------------------

// The tiles of a device's family, and whether the device can run one.
int msc_vk_n_tiles(const struct msc_vk *vk);
const struct msc_vk_tile *msc_vk_tile(const struct msc_vk *vk, int index);
bool msc_vk_tile_is_possible(const struct msc_vk *vk, int index);
const char *msc_vk_tile_text(char text[40], const struct msc_vk_tile *t); // "64x64x16 by 8x4"

// The tile for a shape: that of the nearest tuned one, or by rule.
int msc_vk_choose_tile(const struct msc_vk *vk, const struct msc_vk_shape *shape);
int msc_vk_choose_by_rule(const struct msc_vk *vk, const struct msc_vk_shape *shape);

// vk_tuned.c: what `mscgym tune` found for this device, driver and family, beside the pipelines.
// Without a file, or with one of another device, driver or program, there is none.
void msc_vk_tuned_load(struct msc_vk *vk);
enum msc_status msc_vk_tuned_save(const struct msc_vk *vk);

#endif
