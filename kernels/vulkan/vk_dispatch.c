// Records dispatches: writes the rows of their calls, binds blocks, and records which ranges are
// accessed.
#include "kernels/vulkan/vk_batch.h"

#include <assert.h>
#include <string.h>

// Assumed operations of an invocation if a dispatch does not specify its work: an invocation then
// does little work for each of a few elements.
#define INVOCATION_WORK 256.0

void msc_vk_dispatch_init(struct msc_vk_dispatch *d, const struct msc_vk_pipeline *pipeline,
                          int n_bindings, const enum msc_vk_kind kinds[]) {
    d->pipeline = pipeline;
    d->n_bindings = n_bindings;
    memcpy(d->kinds, kinds, (size_t)n_bindings * sizeof(kinds[0]));
    d->n_calls = d->n_row = 0;
    d->push = NULL;
    d->push_bytes = 0;
    d->groups[0] = d->groups[1] = d->groups[2] = 1;
    d->work = 0;
}

// Part of a dispatch: indices of calls whose blocks are in the same arenas.
struct part {
    const struct msc_vk_dispatch *d;
    int n;
    int calls[MSC_VK_MAX_CALLS];
    struct msc_vk_range ranges[MSC_VK_MAX_BINDINGS]; // [binding] range from the first to the last
                                                     // block
};

static bool is_texel(enum msc_vk_kind kind) {
    return kind == MSC_VK_QUADS || kind == MSC_VK_FLOATS;
}

static bool are_together(const struct msc_vk_dispatch *d, int a, int b) {
    for (int i = 0; i < d->n_bindings; i++) {
        if (d->calls[a].blocks[i]->arena != d->calls[b].blocks[i]->arena) {
            return false;
        }
    }
    return true;
}

// The range that covers the blocks of all calls at one binding. Shaders can access the whole range,
// so all of it counts as accessed. Texel views cover a whole arena.
static struct msc_vk_range vk_dispatch_hull(const struct part *p, int binding) {
    const struct msc_vk_dispatch *d = p->d;
    const struct msc_vk_block *first = d->calls[p->calls[0]].blocks[binding];
    struct msc_vk_range r = {first->arena, first->offset, first->offset + first->n_bytes,
                             d->kinds[binding] == MSC_VK_WRITE ||
                                 d->kinds[binding] == MSC_VK_READ_WRITE};
    if (is_texel(d->kinds[binding])) {
        r.begin = 0;
        r.end = first->arena->n_bytes;
        return r;
    }
    for (int i = 1; i < p->n; i++) {
        const struct msc_vk_block *block = d->calls[p->calls[i]].blocks[binding];
        uint64_t end = block->offset + block->n_bytes;
        r.begin = block->offset < r.begin ? block->offset : r.begin;
        r.end = end > r.end ? end : r.end;
    }
    return r;
}

// ---- Rows -------------------------------------------------------------------------------------

// Approximate operations of one call.
static double work_of(const struct msc_vk_dispatch *d) {
    double invocations =
        (double)d->groups[0] * d->groups[1] * d->groups[2] * d->pipeline->constants[0];
    return d->work > 0 ? d->work : INVOCATION_WORK * invocations;
}

static uint64_t row_bytes(const struct msc_vk_dispatch *d) {
    return (uint64_t)(d->n_bindings + d->n_row) * sizeof(uint32_t);
}

// Writes the row of each call: first the offset of the block at each binding, in elements of that
// binding, then the parameters.
static void write_rows(const struct part *p, uint32_t *rows) {
    const struct msc_vk_dispatch *d = p->d;
    for (int i = 0; i < p->n; i++) {
        const struct msc_vk_call *c = &d->calls[p->calls[i]];
        for (int k = 0; k < d->n_bindings; k++) {
            uint64_t unit = d->kinds[k] == MSC_VK_QUADS ? 16 : 4;
            *rows++ = (uint32_t)((c->blocks[k]->offset - p->ranges[k].begin) / unit);
        }
        memcpy(rows, c->row, (size_t)d->n_row * sizeof(c->row[0]));
        rows += d->n_row;
    }
}

// Begins the next batch if the current batch has no room for a part's rows of parameters or work.
static enum msc_status take_room(struct msc_vk *vk, struct msc_vk_batch **b, uint64_t n_bytes,
                                 double work) {
    MSC_TRY(msc_vk_begin(vk, b));
    if ((*b)->rows_used + n_bytes > MSC_VK_ROWS_BYTES ||
        ((*b)->work > 0 && (*b)->work + work > vk->batch_work)) {
        MSC_TRY(msc_vk_submit(vk));
        MSC_TRY(msc_vk_begin(vk, b));
    }
    return MSC_OK;
}

// ---- Descriptors ------------------------------------------------------------------------------

static void write_descriptors(struct msc_vk *vk, VkDescriptorSet set, const struct part *p,
                              const VkDescriptorBufferInfo *rows) {
    VkWriteDescriptorSet writes[MSC_VK_MAX_BINDINGS + 1];
    VkDescriptorBufferInfo buffers[MSC_VK_MAX_BINDINGS];
    int n = p->d->n_bindings;
    for (int i = 0; i <= n; i++) {
        writes[i] = (VkWriteDescriptorSet){.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                           .dstSet = set,
                                           .dstBinding = (uint32_t)i,
                                           .descriptorCount = 1,
                                           .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                           .pBufferInfo = i < n ? &buffers[i] : rows};
        if (i == n) {
            break;
        }
        const struct msc_vk_range *r = &p->ranges[i];
        if (is_texel(p->d->kinds[i])) {
            writes[i].descriptorType = VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER;
            writes[i].pTexelBufferView =
                p->d->kinds[i] == MSC_VK_QUADS ? &r->arena->quads : &r->arena->floats;
        } else {
            buffers[i] = (VkDescriptorBufferInfo){r->arena->buffer, r->begin, r->end - r->begin};
        }
    }
    vk->api.vkUpdateDescriptorSets(vk->device, (uint32_t)n + 1, writes, 0, NULL);
}

// ---- Dispatching ------------------------------------------------------------------------------

static enum msc_status vk_dispatch_record(struct msc_vk *vk, struct part *p) {
    const struct msc_vk_dispatch *d = p->d;
    const struct msc_vk_layout *layout = d->pipeline->layout;
    struct msc_vk_batch *b;
    VkDescriptorSet set;
    uint64_t n_bytes = row_bytes(d) * (uint64_t)p->n;
    double work = work_of(d) * p->n;
    MSC_TRY(take_room(vk, &b, n_bytes, work));
    for (int i = 0; i < d->n_bindings; i++) {
        p->ranges[i] = vk_dispatch_hull(p, i);
    }
    msc_vk_touch(vk, b, p->ranges, d->n_bindings);
    write_rows(p, (uint32_t *)(void *)(b->rows->mapped + b->rows_used));
    VkDescriptorBufferInfo rows = {b->rows->buffer, b->rows_used, n_bytes};
    b->rows_used +=
        (n_bytes + MSC_VK_BLOCK_ALIGNMENT - 1) / MSC_VK_BLOCK_ALIGNMENT * MSC_VK_BLOCK_ALIGNMENT;
    VkDescriptorSetAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                            .descriptorPool = b->descriptors,
                                            .descriptorSetCount = 1,
                                            .pSetLayouts = &layout->set};
    MSC_TRY(
        msc_vk_check(vk->api.vkAllocateDescriptorSets(vk->device, &allocate, &set), "descriptors"));
    write_descriptors(vk, set, p, &rows);
    vk->api.vkCmdBindPipeline(b->commands, VK_PIPELINE_BIND_POINT_COMPUTE, d->pipeline->pipeline);
    vk->api.vkCmdBindDescriptorSets(b->commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout->pipeline,
                                    0, 1, &set, 0, NULL);
    vk->api.vkCmdPushConstants(b->commands, layout->pipeline, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                               d->push_bytes, d->push);
    vk->api.vkCmdDispatch(b->commands, d->groups[0], d->groups[1], d->groups[2] * (uint32_t)p->n);
    b->work += work;
    return msc_vk_count_dispatch(vk, b, d->pipeline->shader);
}

static enum msc_status check_groups(const struct msc_vk *vk, const struct msc_vk_dispatch *d) {
    for (int i = 0; i < 3; i++) {
        if (d->groups[i] > vk->properties.limits.maxComputeWorkGroupCount[i]) {
            return MSC_FAIL(
                MSC_E_UNSUPPORTED,
                "vulkan: a dispatch has %u workgroups along axis %d; the device allows %u",
                d->groups[i], i, vk->properties.limits.maxComputeWorkGroupCount[i]);
        }
    }
    return MSC_OK;
}

// The maximum number of calls in one dispatch.
static uint32_t most_calls(const struct msc_vk *vk, const struct msc_vk_dispatch *d) {
    uint32_t most = vk->properties.limits.maxComputeWorkGroupCount[2] / d->groups[2];
    double n_fit = vk->batch_work / work_of(d);
    return n_fit < 1 ? 1 : n_fit < most ? (uint32_t)n_fit : most;
}

enum msc_status msc_vk_dispatch(struct msc_vk *vk, const struct msc_vk_dispatch *d) {
    bool is_done[MSC_VK_MAX_CALLS] = {false};
    assert(d->n_bindings == (int)d->pipeline->layout->n_bindings);
    assert(d->push_bytes <= msc_vk_shader_info(d->pipeline->shader)->push_bytes);
    assert(d->n_calls <= MSC_VK_MAX_CALLS && d->n_row <= MSC_VK_MAX_ROW && d->push_bytes > 0);
    if (d->groups[0] == 0 || d->groups[1] == 0 || d->groups[2] == 0) {
        return MSC_OK;
    }
    MSC_TRY(check_groups(vk, d));
    uint32_t most = most_calls(vk, d);
    for (int first = 0; first < d->n_calls; first++) {
        struct part p;
        if (is_done[first]) {
            continue;
        }
        p.d = d;
        p.n = 0;
        for (int i = first; i < d->n_calls && p.n < (int)most; i++) {
            if (!is_done[i] && are_together(d, first, i)) {
                p.calls[p.n++] = i;
                is_done[i] = true;
            }
        }
        MSC_TRY(vk_dispatch_record(vk, &p));
    }
    return MSC_OK;
}
