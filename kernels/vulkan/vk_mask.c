// Masks an activation: sets the channels that the mask does not keep to 0. Uses the shader of the
// selection operator (Where): one number per channel selects the activation or 0.
#include "kernels/vulkan/vk_joint.h"

#include "base/alloc.h"

// Operator codes of shaders/typed.comp.
enum {
#define TYPED(code, name, op, operands) name = (code),
#include "kernels/vulkan/shaders/typed.def"
};
enum { AT_INDEX, BY_STRIDES, ONE_NUMBER }; // how shaders/typed.comp reads an operand

struct push {
    uint32_t n, per_lane, unused[6];
};

// The shader's numbers: the lengths of the dims, and the strides of the mask.
struct dims {
    int32_t lengths[3], strides[3];
};

static enum msc_status get_pipeline(struct msc_vk_pipeline **out, struct msc_vk_backend *b) {
    uint32_t word = msc_vk_element(MSC_DTYPE_I32), real = msc_vk_element(MSC_DTYPE_F32);
    const uint32_t constants[] = {
        b->vk->tuning.lanes, 0,        WHERE,     0, word, real, real, real, 3,
        BY_STRIDES,          AT_INDEX, ONE_NUMBER};
    MSC_VK_CHECK_CONSTANTS(MSC_VK_TYPED, constants);
    return msc_vk_pipeline(out, b->vk, MSC_VK_TYPED, constants);
}

static enum msc_status run_shader(struct msc_vk_backend *b, const struct msc_view *in,
                                  const struct msc_view *out, const struct msc_vk_block *mask,
                                  const struct msc_vk_block *dims) {
    static const enum msc_vk_kind kinds[] = {MSC_VK_READ, MSC_VK_READ, MSC_VK_READ,
                                             MSC_VK_READ_WRITE, MSC_VK_READ};
    struct push push = {.n = (uint32_t)msc_view_n_elements(in)};
    struct msc_vk_pipeline *pipeline;
    struct msc_vk_dispatch d;
    MSC_TRY(get_pipeline(&pipeline, b));
    msc_vk_dispatch_init(&d, pipeline, 5, kinds);
    struct msc_vk_call *call = msc_vk_add_call(&d);
    call->blocks[0] = mask;
    call->blocks[1] = msc_vk_block_of(in);
    call->blocks[2] = b->nothing;
    call->blocks[3] = msc_vk_block_of(out);
    call->blocks[4] = dims;
    d.groups[0] = msc_vk_spread(b->vk, push.n, 16, &push.per_lane);
    d.push = &push;
    d.push_bytes = sizeof(push);
    return msc_vk_dispatch(b->vk, &d);
}

// Applies the mask on the host: for devices without 64-bit integers, which the shader needs.
static enum msc_status run_on_host(struct msc_vk_backend *b, const struct msc_view *in,
                                   const struct msc_view *out, int64_t outer, int64_t inner,
                                   const struct msc_channel_mask *mask) {
    size_t n_bytes = msc_view_n_bytes(in);
    float *host = msc_alloc_aligned(n_bytes + 1);
    if (!host) {
        return MSC_FAIL(MSC_E_NOMEM, "vulkan: not enough host memory to mask channels");
    }
    const struct msc_vk_copy copy = {host, msc_vk_block_of(in), n_bytes};
    enum msc_status status = msc_vk_download(b->vk, &copy, 1);
    if (status == MSC_OK) {
        msc_mask_run(host, host, outer, inner, mask);
        status = msc_vk_upload(b->vk, msc_vk_block_of(out), host, n_bytes);
    }
    msc_free_aligned(host);
    return status;
}

enum msc_status msc_vk_mask(struct msc_vk_backend *b, const struct msc_view *in,
                            const struct msc_view *out, const struct msc_channel_mask *mask) {
    struct msc_vk_block *blocks[2] = {NULL};
    int64_t outer, inner;
    enum msc_status status = MSC_OK;
    MSC_TRY(msc_mask_place(&outer, &inner, in, mask));
    if (!b->vk->has_int64) {
        return run_on_host(b, in, out, outer, inner, mask);
    }
    const struct dims dims = {{(int32_t)outer, mask->n, (int32_t)inner}, {0, 1, 0}};
    int32_t *words = msc_alloc((size_t)mask->n * sizeof(words[0]) + 1);
    if (!words) {
        return MSC_FAIL(MSC_E_NOMEM, "vulkan: not enough host memory for a mask");
    }
    for (int32_t c = 0; c < mask->n; c++) {
        words[c] = mask->is_kept[c];
    }
    MSC_TRY_OUT(msc_vk_upload_new(b->vk, &blocks[0], words, (uint64_t)mask->n * sizeof(words[0])));
    MSC_TRY_OUT(msc_vk_upload_new(b->vk, &blocks[1], &dims, sizeof(dims)));
    status = run_shader(b, in, out, blocks[0], blocks[1]);
out:
    msc_vk_free(b->vk, blocks[0]);
    msc_vk_free(b->vk, blocks[1]);
    msc_free(words);
    return status;
}
