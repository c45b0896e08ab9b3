// Helpers for all kernels: temporary memory; division of work into workgroups.
#include "kernels/vulkan/vk_kernels.h"

void msc_vk_give(struct msc_vk_block *blocks[], struct msc_vk_backend *b, int n) {
    for (int i = 0; i < n; i++) {
        msc_vk_free(b->vk, blocks[i]);
        blocks[i] = NULL;
    }
}

enum msc_status msc_vk_take(struct msc_vk_block *out[], struct msc_vk_backend *b, int n,
                            uint64_t n_bytes) {
    for (int i = 0; i < n; i++) {
        out[i] = msc_vk_allocate(b->vk, n_bytes);
        if (!out[i]) {
            msc_vk_give(out, b, i);
            return MSC_FAIL(MSC_E_NOMEM, "vulkan: not enough memory for %llu bytes",
                            (unsigned long long)n_bytes);
        }
    }
    return MSC_OK;
}

enum msc_status msc_vk_simple_run(const struct msc_vk_simple *s, struct msc_vk_backend *b,
                                  const struct msc_call calls[], int n) {
    static const enum msc_vk_kind kinds[] = {MSC_VK_READ, MSC_VK_READ_WRITE, MSC_VK_READ};
    struct msc_vk_dispatch d;
    msc_vk_dispatch_init(&d, s->pipeline, s->numbers ? 3 : 2, kinds);
    for (int i = 0; i < n; i++) {
        struct msc_vk_call *c = msc_vk_add_call(&d);
        c->blocks[0] = msc_vk_block_of(&calls[i].inputs[s->input]);
        c->blocks[1] = msc_vk_block_of(&calls[i].outputs[0]);
        c->blocks[2] = s->numbers;
    }
    d.push = s->push;
    d.push_bytes = s->push_bytes;
    d.groups[0] = s->groups;
    d.work = msc_vk_turns_work(s->turns);
    return msc_vk_dispatch(b->vk, &d);
}

bool msc_vk_can_turn(const struct msc_vk *vk, uint64_t turns) {
    return turns <= vk->tuning.turns;
}

uint32_t msc_vk_spread(const struct msc_vk *vk, uint64_t n, uint64_t turns, uint32_t *per_lane) {
    uint64_t lanes = vk->tuning.lanes;
    uint64_t most = vk->properties.limits.maxComputeWorkGroupCount[0];
    *per_lane = vk->tuning.per_lane;
    while (*per_lane > 1 && !msc_vk_can_turn(vk, (turns + 1) * *per_lane)) {
        *per_lane /= 2;
    }
    if (n > lanes * *per_lane * most) {
        *per_lane = (uint32_t)((n + lanes * most - 1) / (lanes * most));
    }
    return msc_vk_groups(n, lanes * *per_lane);
}

bool msc_vk_can_spread(const struct msc_vk *vk, uint64_t n, uint64_t turns) {
    uint32_t per_lane;
    msc_vk_spread(vk, n, turns, &per_lane);
    return msc_vk_can_turn(vk, (turns + 1) * per_lane);
}
