#include "kernels/vulkan/vk_movement.h"

#include <assert.h>
#include <string.h>

static enum msc_status vk_movement_init(struct msc_vk_movement *m, struct msc_vk_backend *b,
                                        enum msc_vk_shader shader,
                                        const struct msc_vk_movement_dim dims[], int n_dims) {
    bool has_outside = false;
    *m = (struct msc_vk_movement){.n = 1};
    assert(n_dims >= 1 && n_dims <= MSC_MAX_DIMS + 1);
    for (int d = 0; d < n_dims; d++) {
        m->n *= (uint64_t)dims[d].length;
        has_outside = has_outside || dims[d].in_length > 0;
    }
    const uint32_t constants[] = {b->vk->tuning.lanes, 0, (uint32_t)n_dims, has_outside};
    MSC_VK_CHECK_CONSTANTS(MSC_VK_MOVE, constants);
    MSC_VK_CHECK_CONSTANTS(MSC_VK_MOVE_BYTES, constants);
    MSC_TRY(msc_vk_pipeline(&m->pipeline, b->vk, shader, constants));
    return msc_vk_upload_new(b->vk, &m->dims, dims, (uint64_t)n_dims * sizeof(dims[0]));
}

enum msc_status msc_vk_movement_init(struct msc_vk_movement *m, struct msc_vk_backend *b,
                                     const struct msc_vk_movement_dim dims[], int n_dims) {
    return vk_movement_init(m, b, MSC_VK_MOVE, dims, n_dims);
}

enum msc_status msc_vk_movement_init_from(struct msc_vk_movement *m, struct msc_vk_backend *b,
                                          const struct msc_movement *from, int64_t in_base,
                                          int64_t out_base) {
    struct msc_vk_movement_dim dims[MSC_MAX_DIMS + 1];
    int n = from->n_dims;
    bool is_bytes = from->bytes % 4 != 0;
    int32_t units = (int32_t)(is_bytes ? from->bytes : from->bytes / 4);
    for (int d = 0; d < n; d++) {
        dims[d] = (struct msc_vk_movement_dim){.length = (int32_t)from->dims[d],
                                               .in = (int32_t)from->in[d] * units,
                                               .out = (int32_t)from->out[d] * units};
    }
    if (units > 1 || n == 0) {
        dims[n++] = (struct msc_vk_movement_dim){.length = units, .in = 1, .out = 1};
    }
    MSC_TRY(vk_movement_init(m, b, is_bytes ? MSC_VK_MOVE_BYTES : MSC_VK_MOVE, dims, n));
    m->n = from->n == 0 ? 0 : m->n;
    m->in_base = (int32_t)in_base * units;
    m->out_base = (int32_t)out_base * units;
    return MSC_OK;
}

void msc_vk_movement_finish(struct msc_vk_movement *m, struct msc_vk_backend *b) {
    msc_vk_free(b->vk, m->dims);
    m->dims = NULL;
}

enum msc_status msc_vk_movement_run(const struct msc_vk_movement *m, struct msc_vk_backend *b,
                                    const struct msc_vk_block *const out[],
                                    const struct msc_vk_block *const in[], int n) {
    static const enum msc_vk_kind kinds[] = {MSC_VK_READ, MSC_VK_WRITE, MSC_VK_READ};
    struct {
        uint32_t n, per_lane;
        int32_t in_base, out_base;
        float fill;
    } push = {(uint32_t)m->n, 0, m->in_base, m->out_base, m->fill};
    struct msc_vk_dispatch d;
    if (m->n == 0) {
        return MSC_OK;
    }
    msc_vk_dispatch_init(&d, m->pipeline, 3, kinds);
    for (int i = 0; i < n; i++) {
        struct msc_vk_call *c = msc_vk_add_call(&d);
        c->blocks[0] = in[i];
        c->blocks[1] = out[i];
        c->blocks[2] = m->dims;
    }
    d.groups[0] = msc_vk_spread(b->vk, m->n, MSC_MAX_DIMS + 1, &push.per_lane);
    MSC_VK_CHECK_PUSH(MSC_VK_MOVE, push);
    MSC_VK_CHECK_PUSH(MSC_VK_MOVE_BYTES, push);
    d.push = &push;
    d.push_bytes = sizeof(push);
    return msc_vk_dispatch(b->vk, &d);
}
