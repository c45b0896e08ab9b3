// Between floats and whole numbers.
#include "kernels/vulkan/vk_kernels.h"

#include <string.h>

// Parameters of quantize.comp and expand.comp, which differ in their last two.
struct push {
    uint32_t n, per_lane;
    float scale;
    int32_t zero;
    union {
        float limits[2];
        int32_t digit[2]; // shift, mask
    } u;
};

static enum msc_status dispatch(struct msc_vk_backend *b, enum msc_vk_shader shader,
                                const uint32_t constants[4], const struct msc_vk_block *in,
                                const struct msc_vk_block *out, struct push *push) {
    struct msc_vk_dispatch d = {.n_bindings = 2,
                                .bindings = {{in, MSC_VK_READ}, {out, MSC_VK_WRITE}},
                                .push = push,
                                .push_bytes = sizeof(*push),
                                .groups = {1, 1, 1}};
    struct msc_vk_pipeline *pipeline;
    MSC_TRY(msc_vk_pipeline(&pipeline, b->vk, shader, constants, 4));
    d.pipeline = pipeline;
    d.groups[0] = msc_vk_spread(b->vk, (push->n + 3) / 4, &push->per_lane);
    return msc_vk_dispatch(b->vk, &d);
}

enum msc_status msc_vk_quantize(struct msc_vk_backend *b, const struct msc_view *in,
                                const struct msc_view *out, const struct msc_quant *q) {
    if (q->n != 1) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "an activation quantised by channels");
    }
    bool is_float = out->dtype == MSC_DTYPE_F32;
    uint32_t constants[4] = {b->vk->tuning.lanes, !b->vk->divides_exactly, is_float ? 1 : 0, 0};
    struct push push = {
        .n = (uint32_t)msc_view_n_elements(in),
        .scale = q->scales[0],
        .zero = q->zero_points[0],
        .u.limits = {(float)(q->low - q->zero_points[0]), (float)(q->high - q->zero_points[0])}};
    return dispatch(b, MSC_VK_QUANTIZE, constants, msc_vk_block_of(in), msc_vk_block_of(out),
                    &push);
}

static enum msc_status expand(struct msc_vk_backend *b, const struct msc_view *in,
                              const struct msc_vk_block *out, uint32_t format, int shift,
                              int32_t mask) {
    uint32_t constants[4] = {b->vk->tuning.lanes, 0, format, in->dtype == MSC_DTYPE_I8};
    struct push push = {.n = (uint32_t)msc_view_n_elements(in),
                        .scale = in->quant->scales[0],
                        .zero = in->quant->zero_points[0],
                        .u.digit = {shift, mask}};
    return dispatch(b, MSC_VK_EXPAND, constants, msc_vk_block_of(in), out, &push);
}

enum msc_status msc_vk_expand(struct msc_vk_backend *b, const struct msc_view *in,
                              const struct msc_vk_block *out, int shift, int32_t mask) {
    return expand(b, in, out, 0, shift, mask);
}

enum msc_status msc_vk_dequantize(struct msc_vk_backend *b, const struct msc_view *in,
                                  const struct msc_vk_block *out) {
    return expand(b, in, out, 1, 0, -1);
}

static enum msc_status run_digits(struct msc_vk_backend *b, uint32_t stage, bool has_bias,
                                  const struct msc_vk_block *const blocks[3], uint64_t n,
                                  float scale, uint32_t channels, int shift, bool has_scales) {
    uint32_t constants[4] = {b->vk->tuning.lanes, 0, stage, has_bias};
    struct {
        uint32_t n, per_lane;
        float x_scale;
        uint32_t channels;
        int32_t shift;
        uint32_t n_scales;
    } push = {(uint32_t)n, 0, scale, channels, shift, has_scales};
    struct msc_vk_dispatch d = {.n_bindings = 3,
                                .bindings = {{blocks[0], MSC_VK_READ_WRITE},
                                             {blocks[1], MSC_VK_READ_WRITE},
                                             {blocks[2], MSC_VK_READ}},
                                .push = &push,
                                .push_bytes = sizeof(push),
                                .groups = {1, 1, 1}};
    struct msc_vk_pipeline *pipeline;
    MSC_TRY(msc_vk_pipeline(&pipeline, b->vk, MSC_VK_DIGITS, constants, 4));
    d.pipeline = pipeline;
    d.groups[0] = msc_vk_spread(b->vk, n, &push.per_lane);
    return msc_vk_dispatch(b->vk, &d);
}

enum msc_status msc_vk_add_digit(struct msc_vk_backend *b, const struct msc_vk_block *product,
                                 const struct msc_vk_block *sums, uint64_t n, int shift,
                                 bool is_first) {
    const struct msc_vk_block *blocks[3] = {product, sums, b->nothing};
    return run_digits(b, is_first ? 0 : 1, false, blocks, n, 0.0f, 1, shift, false);
}

enum msc_status msc_vk_finish_sums(struct msc_vk_backend *b, const struct msc_vk_block *out,
                                   const struct msc_vk_block *sums, uint64_t n,
                                   const struct msc_vk_finish *f) {
    const struct msc_vk_block *blocks[3] = {out, sums, f->tail ? f->tail : b->nothing};
    return run_digits(b, 2, f->has_bias, blocks, n, f->scale, f->channels, 0, f->tail != NULL);
}
