// Activations with one scale per channel: converts them to bytes and back with the shader that also
// computes QuantizeLinear.
#include "kernels/vulkan/vk_joint.h"

#include "base/alloc.h"

enum { TO_BYTES, TO_FLOATS }; // numbered as in shaders/linear_quant.comp

struct push {
    uint32_t n, per_lane, channels, inner, unused[2];
    float low, high;
};

static enum msc_status get_pipeline(struct msc_vk_pipeline **out, struct msc_vk_backend *b,
                                    uint32_t which, enum msc_dtype bytes) {
    uint32_t real = msc_vk_element(MSC_DTYPE_F32), byte = msc_vk_element(bytes);
    const uint32_t constants[] = {b->vk->tuning.lanes,
                                  !b->vk->divides_exactly,
                                  which,
                                  which == TO_BYTES ? real : byte,
                                  real,
                                  msc_vk_element(MSC_DTYPE_I32),
                                  which == TO_BYTES ? byte : real,
                                  true};
    MSC_VK_CHECK_CONSTANTS(MSC_VK_LINEAR_QUANT, constants);
    return msc_vk_pipeline(out, b->vk, MSC_VK_LINEAR_QUANT, constants);
}

static enum msc_status run_shader(struct msc_vk_backend *b, uint32_t which, enum msc_dtype bytes,
                                  const struct msc_vk_block *const blocks[4], struct push *push) {
    static const enum msc_vk_kind kinds[] = {MSC_VK_READ, MSC_VK_READ, MSC_VK_READ, MSC_VK_WRITE};
    struct msc_vk_pipeline *pipeline;
    struct msc_vk_dispatch d;
    MSC_TRY(get_pipeline(&pipeline, b, which, bytes));
    msc_vk_dispatch_init(&d, pipeline, 4, kinds);
    struct msc_vk_call *call = msc_vk_add_call(&d);
    for (int i = 0; i < 4; i++) {
        call->blocks[i] = blocks[i];
    }
    d.groups[0] = msc_vk_spread(b->vk, push->n, 4, &push->per_lane);
    MSC_VK_CHECK_PUSH(MSC_VK_LINEAR_QUANT, *push);
    d.push = push;
    d.push_bytes = sizeof(*push);
    return msc_vk_dispatch(b->vk, &d);
}

// Converts a view into a block, in the direction `which`.
static enum msc_status convert(struct msc_vk_backend *b, uint32_t which, const struct msc_view *in,
                               const struct msc_vk_block *out, enum msc_dtype bytes,
                               const struct msc_quant *q) {
    struct msc_vk_block *numbers[2] = {NULL};
    int64_t outer, inner;
    enum msc_status status = MSC_OK;
    MSC_TRY(msc_quant_place(&outer, &inner, in, q));
    struct push push = {.n = (uint32_t)msc_view_n_elements(in),
                        .channels = (uint32_t)q->n,
                        .inner = (uint32_t)inner,
                        .low = (float)q->low,
                        .high = (float)q->high};
    uint64_t n_bytes = (uint64_t)q->n * sizeof(uint32_t);
    MSC_TRY_OUT(msc_vk_upload_new(b->vk, &numbers[0], q->scales, n_bytes));
    MSC_TRY_OUT(msc_vk_upload_new(b->vk, &numbers[1], q->zero_points, n_bytes));
    const struct msc_vk_block *const blocks[] = {msc_vk_block_of(in), numbers[0], numbers[1], out};
    status = run_shader(b, which, bytes, blocks, &push);
out:
    msc_vk_free(b->vk, numbers[0]);
    msc_vk_free(b->vk, numbers[1]);
    return status;
}

// Converts on the host: for devices without the 64-bit integers that the shader needs, and for
// variants stored as float32.
static enum msc_status convert_on_host(struct msc_vk_backend *b, const struct msc_view *in,
                                       const struct msc_view *out, const struct msc_quant *q) {
    size_t n_in = msc_view_n_bytes(in), n_out = msc_view_n_bytes(out);
    void *from = msc_alloc_aligned(n_in + 1), *to = msc_alloc_aligned(n_out + 1);
    const struct msc_vk_copy copy = {from, msc_vk_block_of(in), n_in};
    int64_t outer, inner;
    enum msc_status status = MSC_OK;
    if (!from || !to) {
        status = MSC_FAIL(MSC_E_NOMEM, "vulkan: not enough host memory to quantise channels");
        goto out;
    }
    MSC_TRY_OUT(msc_quant_place(&outer, &inner, in, q));
    MSC_TRY_OUT(msc_vk_download(b->vk, &copy, 1));
    if (in->quant) {
        msc_dequantize_channels(to, from, in->dtype, outer, inner, q);
    } else {
        msc_quantize_channels(to, out->dtype, from, outer, inner, q);
    }
    status = msc_vk_upload(b->vk, msc_vk_block_of(out), to, n_out);
out:
    msc_free_aligned(from);
    msc_free_aligned(to);
    return status;
}

enum msc_status msc_vk_quantize_channels(struct msc_vk_backend *b, const struct msc_view *in,
                                         const struct msc_view *out, const struct msc_quant *q) {
    if (!b->vk->has_int64 || out->dtype == MSC_DTYPE_F32) {
        return convert_on_host(b, in, out, q);
    }
    return convert(b, TO_BYTES, in, msc_vk_block_of(out), out->dtype, q);
}

enum msc_status msc_vk_expand_channels(struct msc_vk_backend *b, const struct msc_view *in,
                                       struct msc_vk_block *out, bool is_value) {
    struct msc_quant q = *in->quant;
    float *ones = msc_alloc((size_t)q.n * sizeof(ones[0]));
    MSC_TRY(MSC_ALLOCATED(ones));
    for (int32_t c = 0; c < q.n; c++) {
        ones[c] = 1.0f;
    }
    q.scales = is_value ? q.scales : ones;
    struct msc_view floats = *in;
    floats.data = out;
    floats.dtype = MSC_DTYPE_F32;
    floats.quant = NULL;
    enum msc_status status = b->vk->has_int64 ? convert(b, TO_FLOATS, in, out, in->dtype, &q)
                                              : convert_on_host(b, in, &floats, &q);
    msc_free(ones);
    return status;
}
