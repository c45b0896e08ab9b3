// The layer between Vulkan and the kernels: device, memory, pipelines, commands.
//
// Commands are recorded and run later: msc_vk_dispatch and msc_vk_upload return before anything is
// computed; msc_vk_download waits. Recorded commands run in order. A barrier is inserted before a
// command that reads the result of an earlier command or overwrites data that an earlier command
// reads or writes. So memory may be freed as soon as its last use is recorded. If recorded commands
// cannot run, because their batch is refused or the device is lost, all later calls fail: no data
// on the device can be trusted until the device is reopened.
//
// A dispatch takes up to MSC_VK_MAX_CALLS calls that differ in their blocks and in a row of
// parameters:
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
// All functions except open, close and the lock functions themselves require the lock.
#ifndef MSC_KERNELS_VULKAN_VK_H
#define MSC_KERNELS_VULKAN_VK_H

#include "kernels/choices.h"
#include "kernels/vulkan/vk_api.h"
#include "kernels/vulkan/vk_shaders.h"

struct msc_vk;
struct msc_vk_pipeline;
struct msc_vulkan_device;

// ---- Memory -----------------------------------------------------------------------------------

// A VkBuffer from which blocks are allocated.
struct msc_vk_arena {
    VkBuffer buffer;
    VkDeviceMemory memory;
    VkBufferView quads; // views of the buffer as texels of four or of one float32
    VkBufferView floats;
    char *mapped; // host address; NULL: not visible to the host
    uint64_t n_bytes;
    uint64_t touched_bytes; // highest end of any block allocated so far
    struct msc_vk_hole {    // free ranges, ordered by offset
        uint64_t offset, n_bytes;
    } * holes;
    size_t n_holes, hole_capacity;
    size_t n_blocks;
};

// Vulkan does not allow a device to require a larger alignment.
#define MSC_VK_BLOCK_ALIGNMENT 256

// A range of an arena. Offsets and sizes are multiples of MSC_VK_BLOCK_ALIGNMENT.
struct msc_vk_block {
    struct msc_vk_arena *arena;
    uint64_t offset, n_bytes;
};

// Allocates a block. NULL: there is not enough memory, or shaders cannot address a block of this
// size.
struct msc_vk_block *msc_vk_allocate(struct msc_vk *vk, uint64_t n_bytes);
void msc_vk_free(struct msc_vk *vk, struct msc_vk_block *block); // accepts NULL
void msc_vk_destroy_arenas(struct msc_vk *vk);

// vk_room.c: how much memory is used and available. msc_vk_find_budget checks whether the device
// can report the available memory; it is called once.
enum msc_status msc_vk_find_budget(struct msc_vk *vk);
void msc_vk_get_memory(struct msc_vk *vk, struct msc_backend_memory *out);

enum msc_vk_arena_kind {
    MSC_VK_ARENA_DEVICE,
    MSC_VK_ARENA_STAGING, // host memory for copies
    MSC_VK_ARENA_ROWS,    // parameters of calls: written by the host, read by shaders
};
// vk_arena.c: creates a buffer with its own memory. `mapped` is NULL for device memory that the
// host cannot access.
enum msc_status msc_vk_try_arena(struct msc_vk *vk, struct msc_vk_arena **out, uint64_t n_bytes,
                                 enum msc_vk_arena_kind kind);
void msc_vk_destroy_arena(struct msc_vk *vk, struct msc_vk_arena *arena); // accepts NULL
// Like msc_vk_try_arena, but if there is not enough memory, frees arenas without blocks and tries
// again.
enum msc_status msc_vk_create_arena(struct msc_vk *vk, struct msc_vk_arena **out, uint64_t n_bytes,
                                    enum msc_vk_arena_kind kind);

// ---- Pipelines --------------------------------------------------------------------------------

#define MSC_VK_MAX_CONSTANTS 72
#define MSC_VK_MAX_BINDINGS 12
#define MSC_VK_PUSH_BYTES 128 // the minimum that every device has

// Returns the pipeline of a shader with these specialisation constants; makes it when it is first
// requested. constants[i] is the value of constant_id i (floats as their bits). Id 0 is the number
// of invocations per workgroup. The number of constants is given in the shader's row of shaders.def
// (MSC_VK_CHECK_CONSTANTS).
enum msc_status msc_vk_pipeline(struct msc_vk_pipeline **out, struct msc_vk *vk,
                                enum msc_vk_shader shader, const uint32_t constants[]);
enum msc_status msc_vk_pipelines_init(struct msc_vk *vk);
void msc_vk_pipelines_finish(struct msc_vk *vk);

// vk_controls.c: guarantees of float32 behaviour that a device supports. msc_vk_add_controls copies
// a shader's code and makes the copy request them; the caller frees the copy.
enum msc_vk_control {
    MSC_VK_KEEPS_DENORMALS = 1,
    MSC_VK_KEEPS_SPECIALS = 2, // NaN, infinity, the sign of zero
    MSC_VK_ROUNDS_TO_EVEN = 4,
};
#define MSC_VK_ALL_CONTROLS 7u
void msc_vk_find_controls(struct msc_vk *vk);
// True if a shader that requests controls of float32 may use doubles.
bool msc_vk_can_mix_widths(const struct msc_vk *vk);
enum msc_status msc_vk_add_controls(uint32_t **out, size_t *n_bytes,
                                    const struct msc_vk_shader_code *code, unsigned controls);

// vk_cache.c: loads and stores the driver's compiled pipelines on disk.
enum msc_status msc_vk_cache_open(struct msc_vk *vk);
void msc_vk_cache_close(struct msc_vk *vk); // writes the file if pipelines were added

// ---- Commands ---------------------------------------------------------------------------------

enum msc_vk_kind {
    MSC_VK_READ,
    MSC_VK_WRITE,
    MSC_VK_READ_WRITE,
    MSC_VK_QUADS,  // uniform texels of 4 floats; binds the whole arena
    MSC_VK_FLOATS, // uniform texels of 1 float; binds the whole arena
};

#define MSC_VK_MAX_CALLS 64 // per dispatch
#define MSC_VK_MAX_ROW 32   // words of parameters per call

struct msc_vk_call {
    const struct msc_vk_block *blocks[MSC_VK_MAX_BINDINGS];
    uint32_t row[MSC_VK_MAX_ROW];
    struct msc_vk_block quantized; // set by msc_vk_put_quantized: one block that covers all
                                   // variants
};

// Bindings have the order of the shader: texel buffers first, then storage buffers, then the rows
// of the calls (shaders/call.glsl).
struct msc_vk_dispatch {
    const struct msc_vk_pipeline *pipeline;
    int n_bindings;
    enum msc_vk_kind kinds[MSC_VK_MAX_BINDINGS];
    int n_calls;
    int n_row;        // words per row
    const void *push; // shared by all calls
    uint32_t push_bytes;
    uint32_t groups[3]; // workgroups per call
    // Approximate operations per call (msc_vk_turns_work); 0: the default estimate per invocation.
    double work;
    struct msc_vk_call calls[MSC_VK_MAX_CALLS];
};

// The number of operations that `turns` loop iterations count as. Each iteration reads from an
// arbitrary address, which takes a slow device as long as 128 additions.
static inline double msc_vk_turns_work(double turns) {
    return 128.0 * turns;
}

// Initialises a dispatch of one workgroup that has no calls, parameters or push constants yet.
void msc_vk_dispatch_init(struct msc_vk_dispatch *d, const struct msc_vk_pipeline *pipeline,
                          int n_bindings, const enum msc_vk_kind kinds[]);
// Adds a call; there are at most MSC_VK_MAX_CALLS. The caller fills all its blocks and its row.
static inline struct msc_vk_call *msc_vk_add_call(struct msc_vk_dispatch *d) {
    return &d->calls[d->n_calls++];
}
// Records the calls. They may be split over several dispatches and batches.
enum msc_status msc_vk_dispatch(struct msc_vk *vk, const struct msc_vk_dispatch *d);

enum msc_status msc_vk_commands_init(struct msc_vk *vk);
void msc_vk_commands_finish(struct msc_vk *vk);
void msc_vk_returned_finish(struct msc_vk *vk); // vk_copy.c: frees staging buffers of downloads
enum msc_status msc_vk_upload(struct msc_vk *vk, const struct msc_vk_block *to, const void *from,
                              uint64_t n_bytes);
// Allocates a block and uploads n_bytes from host memory to it.
enum msc_status msc_vk_upload_new(struct msc_vk *vk, struct msc_vk_block **out, const void *from,
                                  uint64_t n_bytes);

struct msc_vk_copy {
    void *to;
    const struct msc_vk_block *from;
    uint64_t n_bytes;
};
// Waits for the copies. Releases the lock while waiting, so that other threads can record commands.
enum msc_status msc_vk_download(struct msc_vk *vk, const struct msc_vk_copy copies[], size_t n);
// Submits the recorded commands and waits for them.
enum msc_status msc_vk_flush(struct msc_vk *vk);

// ---- Device -----------------------------------------------------------------------------------

// Sets of tiles of family G (shaders that keep tiles in shared memory): bit i is tile i
// (vk_tiles.c).
#define MSC_VK_ALL_TILES 0xffu
#define MSC_VK_MEDIUM_TILES 0xf8u
#define MSC_VK_SMALL_TILES 0x80u

// How kernels divide their work on a device: a row of the table in vk_device.c.
struct msc_vk_tuning {
    bool is_family_u;  // products use family U (struct msc_vk_tile), which reads factors from
                       // uniform texel buffers; false: family G
    uint32_t lanes;    // invocations per workgroup of simple kernels
    uint32_t per_lane; // elements per invocation of simple kernels
    uint32_t slots;    // approximate number of workgroups that run at full speed at a time
    uint32_t tiles;    // allowed tiles of the device's family, one bit each (vk_tiles.c)
    uint32_t turns;    // maximum number of loop iterations of an invocation, over all loops
};

// How a product is divided. Family G: a workgroup computes a tile from factors in shared memory,
// `depth` terms of the sums at a time; each invocation computes `row` x `col` outputs of the tile.
// Family U: each invocation computes `row` x `col` outputs in registers; `rows` and `cols`
// determine only the number of invocations per workgroup.
//
// With matrix units (family G): each subgroup computes `row` x `col` outputs of the tile; `depth`
// counts words of four terms, as in other products of bytes.
struct msc_vk_tile {
    uint32_t rows, cols, depth, row, col;
    bool is_matrix;
};
#define MSC_VK_MAX_TILES 12

struct msc_vk_shape { // shape of a product; `rows` is the total over all calls
    uint64_t rows, cols, depth;
    bool is_integer;
};

struct msc_vk_tuned {
    struct msc_vk_shape shape;
    int tile;
};
#define MSC_VK_MAX_TUNED MSC_MOST_CHOICES

// A product of matrices of bytes, [rows][depth] by [depth][cols], that a subgroup computes at a
// time; `subgroup` is the number of its invocations.
struct msc_vk_matrix {
    uint32_t rows, cols, depth, subgroup;
};

#define MSC_VK_BATCHES 8

struct msc_vk_batch;    // commands recorded together
struct msc_vk_returned; // a staging buffer of downloads (vk_copy.c)

struct msc_vk_timing { // totals over all dispatches of a shader
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
    int n_messages; // messages of the validation layer; accessed atomically
    VkPhysicalDevice physical;
    VkPhysicalDeviceProperties properties;
    VkPhysicalDeviceMemoryProperties memory_properties;
    char driver[512];
    uint8_t driver_uuid[VK_UUID_SIZE];
    VkDevice device;
    VkQueue queue;
    uint32_t queue_family;
    struct msc_vk_tuning tuning;
    uint64_t block_limit; // largest size of a block
    uint64_t arena_bytes; // usual size of an arena, if there is enough memory
    bool divides_exactly; // quotients and roots are rounded correctly; otherwise shaders correct
                          // them
    bool keeps_denormals; // denormals (below 2^-126) are not flushed to zero
    bool stages_all;      // device memory is never mapped, even if that is possible
    unsigned controls;    // flags of enum msc_vk_control that all shaders request
    bool has_int64;       // shaders have 64-bit integers
    bool has_float64;     // shaders have doubles
    bool has_dot;         // shaders use the instruction for dot products of bytes
    bool has_matrix;      // shaders use matrix units
    bool prefers_int;     // shaders multiply bytes as integers, even without matrix units
    struct msc_vk_matrix matrix; // zero unless the device has matrix units
    void *lock;

    struct msc_vk_arena **arenas;
    size_t n_arenas, arena_capacity;
    size_t last_arena;                // index of the arena of the last allocated block
    uint64_t block_bytes, block_peak; // total size of blocks: now, peak during a run
    uint64_t besides_bytes;           // peak of temporary memory of one run
    uint32_t heap;                    // memory heap of the arenas
    bool has_budget;                  // the device reports how much of the heap is left
    uint64_t refused_bytes;           // the next arena must be smaller than this; 0: no limit

    struct msc_vk_pipeline **pipelines;
    size_t n_pipelines, pipeline_capacity;
    struct msc_vk_layout *layouts; // [MSC_VK_SHADER_COUNT]
    VkPipelineCache cache;
    size_t cache_bytes; // size of the pipeline cache when it was read from the file

    VkCommandPool command_pool;
    struct msc_vk_batch *batches; // [MSC_VK_BATCHES]
    int batch;                    // index of the batch being recorded
    double batch_work;            // maximum operations per batch, unless one call has more
    VkSemaphore timeline;         // counts finished batches
    uint64_t n_submitted;         // number of submitted batches
    uint64_t n_waits;             // number of waits for submitted batches
    uint64_t uploaded_bytes, downloaded_bytes;
    VkResult lost;                    // error because of which a batch was lost; VK_SUCCESS: none
    struct msc_vk_returned *returned; // staging buffers of downloads
    size_t n_returned, returned_capacity;
    struct msc_vk_range ranges[MSC_VK_MAX_RANGES]; // memory accessed since the last barrier
    int n_ranges;
    struct msc_vk_tuned tuned[MSC_VK_MAX_TUNED];
    int n_tuned;
    int forced_tile; // index of the tile that tuning measures; otherwise -1

    struct msc_vk_timing *timings; // [MSC_VK_SHADER_COUNT]; NULL unless commands are timed
};

// Fills in what msc_vulkan_list returns about a device.
void msc_vk_describe(const struct msc_vk_api *api, VkPhysicalDevice device, int index,
                     struct msc_vulkan_device *out);
enum msc_status msc_vk_open(struct msc_vk **out, const struct msc_backend_options *options);
void msc_vk_close(struct msc_vk *vk); // accepts NULL
void msc_vk_lock(struct msc_vk *vk);
void msc_vk_unlock(struct msc_vk *vk);
// vk_check.c: MSC_OK for VK_SUCCESS, otherwise MSC_E_NOMEM, MSC_E_LOST or MSC_E_DEVICE with a
// message.
enum msc_status msc_vk_check(VkResult result, const char *what);
// vk_features.c: sets *found if the device has an extension of this name.
enum msc_status msc_vk_find_extension(bool *found, const struct msc_vk *vk, const char *name);
// vk_features.c: true if a device has all required features. If not, `lack` names a missing one:
// "has no …".
#define MSC_VK_LACK_BYTES 80
bool msc_vk_has_all(char lack[MSC_VK_LACK_BYTES], uint32_t *queue_family,
                    const struct msc_vk_api *api, VkPhysicalDevice device);
// vk_features.c: creates the logical device and records which optional features it has.
enum msc_status msc_vk_create_device(struct msc_vk *vk);
// vk_matrix.c: sets has_matrix and matrix. For tests, MSC_VULKAN_MATRIX overrides this: 1 uses
// matrix units of software drivers, too; 0 uses none.
enum msc_status msc_vk_find_matrix(struct msc_vk *vk);
// vk_probe.c: sets divides_exactly and keeps_denormals.
enum msc_status msc_vk_probe(struct msc_vk *vk);
// True if shaders multiply bytes as integers instead of floats.
static inline bool msc_vk_prefers_int(const struct msc_vk *vk) {
    return vk->prefers_int || vk->has_matrix;
}
// The number of workgroups that cover n elements with `each` elements per workgroup.
static inline uint32_t msc_vk_groups(uint64_t n, uint64_t each) {
    return (uint32_t)((n + each - 1) / each);
}

// ---- Tiles (vk_tiles.c) -----------------------------------------------------------------------

// The tiles of the device's family (U or G). msc_vk_tile_is_possible: true if the device can run
// this tile, for products of bytes (is_integer) or of floats.
int msc_vk_n_tiles(const struct msc_vk *vk);
const struct msc_vk_tile *msc_vk_tile(const struct msc_vk *vk, int index);
bool msc_vk_tile_is_possible(const struct msc_vk *vk, int index, bool is_integer);
// "64x64x16 by 8x4", "128x128x16 by 32x64 matrix"
const char *msc_vk_tile_text(char text[40], const struct msc_vk_tile *t);
// The number of invocations per workgroup.
uint32_t msc_vk_tile_lanes(const struct msc_vk *vk, const struct msc_vk_tile *t);
// True if the tiles for matrix units can be divided into matrices of this size.
bool msc_vk_matrix_fits_tiles(const struct msc_vk_matrix *size);

// Chooses the tile for a shape: the tile of the most similar tuned shape or, if no tuned shape is
// similar, the fastest tile according to a cost model (msc_vk_choose_by_rule).
int msc_vk_choose_tile(const struct msc_vk *vk, const struct msc_vk_shape *shape);
int msc_vk_choose_by_rule(const struct msc_vk *vk, const struct msc_vk_shape *shape);
// The tile kept for the most similar shape; -1: none is similar enough.
int msc_vk_kept_tile(const struct msc_vk *vk, const struct msc_vk_shape *shape);
// True if tuning measures the tile.
bool msc_vk_tile_is_tried(const struct msc_vk *vk, int index);
struct msc_work msc_vk_work_of(const struct msc_vk_shape *shape);

// vk_tuned.c: loads the tiles kept for this device, driver and family (kernels/choices.h). The file
// is in the folder of the pipeline cache.
void msc_vk_tuned_load(struct msc_vk *vk);
// Keeps choices besides those of the file, and loads them all. MSC_E_INVALID: there is no folder.
enum msc_status msc_vk_tuned_keep(struct msc_vk *vk, const struct msc_kept_choice choices[],
                                  size_t n);
// Keeps the tuned tiles.
enum msc_status msc_vk_tuned_save(struct msc_vk *vk);
// The index of the tile with this text, if the device can run it; otherwise -1.
int msc_vk_find_tile(const struct msc_vk *vk, const char *text, bool is_integer);

#endif
