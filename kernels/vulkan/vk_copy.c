// Copies between host and device.
#include "kernels/vulkan/vk_batch.h"

#include "base/alloc.h"

#include <assert.h>
#include <string.h>

// Size of a staging buffer for downloads; each download in progress has one.
#define RETURNED_BYTES ((uint64_t)32 << 20)

struct msc_vk_returned {
    struct msc_vk_arena *arena;
    bool is_taken;
};

static struct msc_vk_range range_of(const struct msc_vk_block *block, bool is_write) {
    return (struct msc_vk_range){block->arena, block->offset, block->offset + block->n_bytes,
                                 is_write};
}

// ---- To the device ----------------------------------------------------------------------------

// Uploads one piece through the batch's staging buffer.
static enum msc_status upload_piece(struct msc_vk *vk, const struct msc_vk_block *to,
                                    uint64_t offset, const char *from, uint64_t n_bytes) {
    struct msc_vk_batch *b;
    MSC_TRY(msc_vk_begin(vk, &b));
    if (b->staging_used + n_bytes > MSC_VK_STAGING_BYTES) {
        MSC_TRY(msc_vk_submit(vk));
        MSC_TRY(msc_vk_begin(vk, &b));
    }
    memcpy(b->staging->mapped + b->staging_used, from, n_bytes);
    struct msc_vk_range range = range_of(to, true);
    msc_vk_touch(vk, b, &range, 1);
    VkBufferCopy copy = {b->staging_used, to->offset + offset, n_bytes};
    vk->api.vkCmdCopyBuffer(b->commands, b->staging->buffer, to->arena->buffer, 1, &copy);
    b->staging_used += (n_bytes + 15) / 16 * 16;
    return MSC_OK;
}

enum msc_status msc_vk_upload(struct msc_vk *vk, const struct msc_vk_block *to, const void *from,
                              uint64_t n_bytes) {
    assert(n_bytes <= to->n_bytes);
    vk->uploaded_bytes += n_bytes;
    if (to->arena->mapped && msc_vk_is_idle(vk)) {
        memcpy(to->arena->mapped + to->offset, from, n_bytes);
        return MSC_OK;
    }
    for (uint64_t at = 0; at < n_bytes; at += MSC_VK_STAGING_BYTES) {
        uint64_t n = n_bytes - at < MSC_VK_STAGING_BYTES ? n_bytes - at : MSC_VK_STAGING_BYTES;
        MSC_TRY(upload_piece(vk, to, at, (const char *)from + at, n));
    }
    return MSC_OK;
}

enum msc_status msc_vk_upload_new(struct msc_vk *vk, struct msc_vk_block **out, const void *from,
                                  uint64_t n_bytes) {
    struct msc_vk_block *block = msc_vk_allocate(vk, n_bytes);
    if (!block) {
        return MSC_FAIL(MSC_E_NOMEM, "vulkan: not enough memory for %llu bytes",
                        (unsigned long long)n_bytes);
    }
    enum msc_status status = msc_vk_upload(vk, block, from, n_bytes);
    if (status != MSC_OK) {
        msc_vk_free(vk, block);
        return status;
    }
    *out = block;
    return MSC_OK;
}

// ---- To the host ------------------------------------------------------------------------------

static enum msc_status take_returned(struct msc_vk *vk, struct msc_vk_arena **out) {
    for (size_t i = 0; i < vk->n_returned; i++) {
        if (!vk->returned[i].is_taken) {
            vk->returned[i].is_taken = true;
            *out = vk->returned[i].arena;
            return MSC_OK;
        }
    }
    MSC_TRY(msc_grow(&vk->returned, &vk->returned_capacity, vk->n_returned + 1,
                     sizeof(vk->returned[0])));
    struct msc_vk_returned *r = &vk->returned[vk->n_returned];
    r->arena = NULL;
    MSC_TRY(msc_vk_create_arena(vk, &r->arena, RETURNED_BYTES, MSC_VK_ARENA_STAGING));
    r->is_taken = true;
    vk->n_returned++;
    *out = r->arena;
    return MSC_OK;
}

static void give_returned(struct msc_vk *vk, const struct msc_vk_arena *arena) {
    for (size_t i = 0; i < vk->n_returned; i++) {
        vk->returned[i].is_taken = vk->returned[i].is_taken && vk->returned[i].arena != arena;
    }
}

void msc_vk_returned_finish(struct msc_vk *vk) {
    for (size_t i = 0; i < vk->n_returned; i++) {
        msc_vk_destroy_arena(vk, vk->returned[i].arena);
    }
    msc_free(vk->returned);
    vk->returned = NULL;
    vk->n_returned = 0;
}

// A position in a list of copies.
struct place {
    size_t copy;
    uint64_t at; // bytes of this copy that are done
};

// Goes through the copies from position `p` until the staging buffer is full. The first pass
// records the copies. The second pass, when they are done, copies the data out of the staging
// buffer.
static enum msc_status vk_copy_pass(struct msc_vk *vk, struct place *p,
                                    struct msc_vk_arena *through, const struct msc_vk_copy copies[],
                                    size_t n, bool is_recording) {
    uint64_t used = 0;
    while (p->copy < n && used < RETURNED_BYTES) {
        const struct msc_vk_copy *c = &copies[p->copy];
        uint64_t room = RETURNED_BYTES - used, rest = c->n_bytes - p->at;
        uint64_t n_bytes = rest < room ? rest : room;
        if (is_recording && n_bytes > 0) {
            struct msc_vk_batch *b;
            MSC_TRY(msc_vk_begin(vk, &b));
            struct msc_vk_range range = range_of(c->from, false);
            msc_vk_touch(vk, b, &range, 1);
            VkBufferCopy copy = {c->from->offset + p->at, used, n_bytes};
            vk->api.vkCmdCopyBuffer(b->commands, c->from->arena->buffer, through->buffer, 1, &copy);
        } else if (n_bytes > 0) {
            memcpy((char *)c->to + p->at, through->mapped + used, n_bytes);
        }
        used += (n_bytes + 15) / 16 * 16;
        p->at += n_bytes;
        if (p->at == c->n_bytes) {
            p->copy++;
            p->at = 0;
        }
    }
    return MSC_OK;
}

static enum msc_status download_staged(struct msc_vk *vk, const struct msc_vk_copy copies[],
                                       size_t n) {
    struct place done = {0, 0};
    struct msc_vk_arena *through;
    enum msc_status status = MSC_OK;
    MSC_TRY(take_returned(vk, &through));
    while (done.copy < n) {
        struct place recorded = done;
        MSC_TRY_OUT(vk_copy_pass(vk, &recorded, through, copies, n, true));
        MSC_TRY_OUT(msc_vk_submit_and_wait(vk));
        MSC_TRY_OUT(vk_copy_pass(vk, &done, through, copies, n, false));
    }
out:
    give_returned(vk, through);
    return status;
}

enum msc_status msc_vk_download(struct msc_vk *vk, const struct msc_vk_copy copies[], size_t n) {
    bool is_mapped = true;
    for (size_t i = 0; i < n; i++) {
        assert(copies[i].n_bytes <= copies[i].from->n_bytes);
        vk->downloaded_bytes += copies[i].n_bytes;
        is_mapped = is_mapped && copies[i].from->arena->mapped;
    }
    if (!is_mapped) {
        return download_staged(vk, copies, n);
    }
    MSC_TRY(msc_vk_submit_and_wait(vk));
    for (size_t i = 0; i < n; i++) {
        memcpy(copies[i].to, copies[i].from->arena->mapped + copies[i].from->offset,
               copies[i].n_bytes);
    }
    return MSC_OK;
}
