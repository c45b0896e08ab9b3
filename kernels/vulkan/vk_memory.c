// Device memory: a few large buffers (arenas). Blocks are allocated from them by first fit.
#include "kernels/vulkan/vk_batch.h"

#include "base/alloc.h"

#include <assert.h>
#include <string.h>

// The minimum size of an arena, even if little memory is left. With smaller arenas, more calls
// would have blocks in different arenas and could not share a dispatch; devices also limit the
// number of allocations.
#define LEAST_ARENA_BYTES ((uint64_t)1 << 20)

// ---- Arenas -----------------------------------------------------------------------------------

// Frees arenas without blocks. First waits for recorded commands, which may still use the arenas.
// Holds the lock while waiting, so that other threads do not allocate blocks in these arenas.
static bool drop_empty_arenas(struct msc_vk *vk) {
    size_t n_kept = 0, n = vk->n_arenas;
    bool has_empty = false;
    for (size_t i = 0; i < n; i++) {
        has_empty = has_empty || vk->arenas[i]->n_blocks == 0;
    }
    if (!has_empty || msc_vk_submit(vk) != MSC_OK ||
        vk->api.vkDeviceWaitIdle(vk->device) != VK_SUCCESS) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (vk->arenas[i]->n_blocks == 0) {
            msc_vk_destroy_arena(vk, vk->arenas[i]);
        } else {
            vk->arenas[n_kept++] = vk->arenas[i];
        }
    }
    vk->n_arenas = n_kept;
    vk->last_arena = 0;
    return true;
}

enum msc_status msc_vk_create_arena(struct msc_vk *vk, struct msc_vk_arena **out, uint64_t n_bytes,
                                    enum msc_vk_arena_kind kind) {
    enum msc_status status = msc_vk_try_arena(vk, out, n_bytes, kind);
    return status == MSC_E_NOMEM && drop_empty_arenas(vk) ? msc_vk_try_arena(vk, out, n_bytes, kind)
                                                          : status;
}

void msc_vk_destroy_arenas(struct msc_vk *vk) {
    for (size_t i = 0; i < vk->n_arenas; i++) {
        msc_vk_destroy_arena(vk, vk->arenas[i]);
    }
    msc_free(vk->arenas);
    vk->arenas = NULL;
    vk->n_arenas = 0;
}

static enum msc_status add_arena(struct msc_vk *vk, uint64_t n_bytes) {
    struct msc_vk_arena *arena = NULL;
    MSC_TRY(msc_grow(&vk->arenas, &vk->arena_capacity, vk->n_arenas + 1, sizeof(vk->arenas[0])));
    MSC_TRY(msc_vk_try_arena(vk, &arena, n_bytes, MSC_VK_ARENA_DEVICE));
    enum msc_status status =
        msc_grow(&arena->holes, &arena->hole_capacity, 1, sizeof(arena->holes[0]));
    if (status != MSC_OK) {
        msc_vk_destroy_arena(vk, arena);
        return status;
    }
    arena->holes[0] = (struct msc_vk_hole){0, n_bytes};
    arena->n_holes = 1;
    vk->arenas[vk->n_arenas++] = arena;
    return MSC_OK;
}

// ---- Blocks -----------------------------------------------------------------------------------

static bool vk_memory_cut(struct msc_vk_arena *arena, uint64_t n_bytes, uint64_t *offset) {
    for (size_t i = 0; i < arena->n_holes; i++) {
        struct msc_vk_hole *h = &arena->holes[i];
        if (h->n_bytes >= n_bytes) {
            *offset = h->offset;
            h->offset += n_bytes;
            h->n_bytes -= n_bytes;
            if (h->n_bytes == 0) {
                arena->n_holes--;
                memmove(h, h + 1, (arena->n_holes - i) * sizeof(*h));
            }
            return true;
        }
    }
    return false;
}

// Takes n_bytes from a hole. There is at most one hole after each block, and one at the start of
// the arena. Memory to record these holes is reserved when a block is allocated, so that freeing a
// block cannot fail.
static bool cut_from(struct msc_vk_arena *arena, uint64_t n_bytes, uint64_t *offset) {
    if (msc_grow(&arena->holes, &arena->hole_capacity, arena->n_blocks + 2,
                 sizeof(arena->holes[0])) != MSC_OK ||
        !vk_memory_cut(arena, n_bytes, offset)) {
        return false;
    }
    uint64_t end = *offset + n_bytes;
    arena->touched_bytes = end > arena->touched_bytes ? end : arena->touched_bytes;
    arena->n_blocks++;
    return true;
}

// Searches the arena of the last block first: blocks allocated together are usually in one arena,
// so that the calls that use them can share a dispatch.
static bool find_room(struct msc_vk *vk, struct msc_vk_block *block) {
    for (size_t k = 0; k < vk->n_arenas; k++) {
        size_t i = (vk->last_arena + k) % vk->n_arenas;
        if (vk->arenas[i]->n_bytes >= block->n_bytes &&
            cut_from(vk->arenas[i], block->n_bytes, &block->offset)) {
            block->arena = vk->arenas[i];
            vk->last_arena = i;
            return true;
        }
    }
    return false;
}

static uint64_t aligned_half(uint64_t n_bytes) {
    return n_bytes / 2 / MSC_VK_BLOCK_ALIGNMENT * MSC_VK_BLOCK_ALIGNMENT;
}

// Adds an arena of the usual size. While the driver refuses, halves the size. After a refusal, the
// first attempt for the next arena has twice the size that the driver granted, not the refused
// size.
static bool add_arena_within(struct msc_vk *vk, uint64_t n_bytes) {
    uint64_t bytes = vk->refused_bytes > 0 ? aligned_half(vk->refused_bytes) : vk->arena_bytes;
    uint64_t least = vk->arena_bytes < LEAST_ARENA_BYTES ? vk->arena_bytes : LEAST_ARENA_BYTES;
    least = n_bytes > least ? n_bytes : least;
    for (; bytes > least; bytes = aligned_half(bytes)) {
        if (add_arena(vk, bytes) == MSC_OK) {
            vk->refused_bytes = bytes < vk->arena_bytes / 4 ? bytes * 4 : 0;
            return true;
        }
        vk->refused_bytes = bytes;
    }
    return add_arena(vk, least) == MSC_OK;
}

static bool add_arena_for(struct msc_vk *vk, uint64_t n_bytes) {
    if (add_arena_within(vk, n_bytes)) {
        return true;
    }
    if (!drop_empty_arenas(vk)) {
        return false;
    }
    vk->refused_bytes = 0;
    return add_arena_within(vk, n_bytes);
}

struct msc_vk_block *msc_vk_allocate(struct msc_vk *vk, uint64_t n_bytes) {
    uint64_t limit = vk->block_limit;
    uint64_t size =
        (n_bytes + MSC_VK_BLOCK_ALIGNMENT - 1) / MSC_VK_BLOCK_ALIGNMENT * MSC_VK_BLOCK_ALIGNMENT;
    size = size > 0 ? size : MSC_VK_BLOCK_ALIGNMENT;
    if (size > limit) {
        (void)MSC_FAIL(MSC_E_NOMEM,
                       "vulkan: a tensor has %llu bytes; the device supports at most %llu",
                       (unsigned long long)n_bytes, (unsigned long long)limit);
        return NULL;
    }
    struct msc_vk_block *block = msc_alloc_zero(1, sizeof(*block));
    if (!block) {
        return NULL;
    }
    block->n_bytes = size;
    if (!find_room(vk, block) && !(add_arena_for(vk, size) && find_room(vk, block))) {
        msc_free(block);
        return NULL;
    }
    vk->block_bytes += size;
    vk->block_peak = vk->block_bytes > vk->block_peak ? vk->block_bytes : vk->block_peak;
    return block;
}

void msc_vk_free(struct msc_vk *vk, struct msc_vk_block *block) {
    if (!block) {
        return;
    }
    vk->block_bytes -= block->n_bytes;
    struct msc_vk_arena *a = block->arena;
    size_t i = 0;
    while (i < a->n_holes && a->holes[i].offset < block->offset) {
        i++;
    }
    bool joins_before = i > 0 && a->holes[i - 1].offset + a->holes[i - 1].n_bytes == block->offset;
    bool joins_after = i < a->n_holes && block->offset + block->n_bytes == a->holes[i].offset;
    if (joins_before) {
        a->holes[i - 1].n_bytes += block->n_bytes + (joins_after ? a->holes[i].n_bytes : 0);
        if (joins_after) {
            a->n_holes--;
            memmove(&a->holes[i], &a->holes[i + 1], (a->n_holes - i) * sizeof(a->holes[0]));
        }
    } else if (joins_after) {
        a->holes[i].offset = block->offset;
        a->holes[i].n_bytes += block->n_bytes;
    } else {
        assert(a->n_holes < a->hole_capacity);
        memmove(&a->holes[i + 1], &a->holes[i], (a->n_holes - i) * sizeof(a->holes[0]));
        a->holes[i] = (struct msc_vk_hole){block->offset, block->n_bytes};
        a->n_holes++;
    }
    a->n_blocks--;
    msc_free(block);
}
