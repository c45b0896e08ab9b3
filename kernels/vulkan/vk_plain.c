// Convolutions and pools that the fast families do not support: with three spatial axes,
// transposed, groups of any size, half floats or other layouts. Each invocation computes one or
// more elements.
#include "kernels/vulkan/vk_plain.h"

#include <string.h>

// The rows of numbers that shaders/window.glsl reads.
enum {
    AXES_IN,
    AXES_OUT,
    AXES_KERNEL,
    AXES_STEP,
    AXES_DILATION,
    AXES_PAD,
    AXES_PAD_END,
    AXES_IN_STRIDES,
    AXES_OUT_STRIDES,
    AXES_KERNEL_STRIDES,
    N_AXES_ROWS,
    OTHERS = 3 * N_AXES_ROWS,
    N_OTHERS = 5 // the further numbers of a window; a convolution adds more
};

void msc_vk_put_window(int32_t numbers[MSC_VK_WINDOW_NUMBERS], const struct msc_window *w) {
    const int64_t *const rows[N_AXES_ROWS] = {
        w->in,        w->out,     w->kernel,     w->step,        w->dilation,
        w->pad_begin, w->pad_end, w->in_strides, w->out_strides, w->kernel_strides};
    const int64_t others[N_OTHERS] = {w->out_channels, w->in_batch_stride, w->in_channel_stride,
                                      w->out_batch_stride, w->out_channel_stride};
    for (int r = 0; r < N_AXES_ROWS; r++) {
        for (int a = 0; a < 3; a++) {
            numbers[3 * r + a] = (int32_t)rows[r][a];
        }
    }
    for (int i = 0; i < N_OTHERS; i++) {
        numbers[OTHERS + i] = (int32_t)others[i];
    }
}

void msc_vk_put_conv(int32_t numbers[MSC_VK_WINDOW_NUMBERS], const struct msc_conv *c) {
    const int64_t others[N_OTHERS] = {c->window.in_channels / c->groups,
                                      c->window.out_channels / c->groups, c->weight_out_stride,
                                      c->weight_in_stride, c->weight_group_stride};
    msc_vk_put_window(numbers, &c->window);
    for (int i = 0; i < N_OTHERS; i++) {
        numbers[OTHERS + N_OTHERS + i] = (int32_t)others[i];
    }
}

uint64_t msc_vk_conv_turns(const struct msc_conv *c) {
    const int64_t *kernel = c->window.kernel;
    return 4 * (uint64_t)(c->window.in_channels / c->groups * kernel[0] * kernel[1] * kernel[2]);
}

// ---- Convolutions -----------------------------------------------------------------------------

static enum msc_status conv_init(struct msc_vk_joint *k, struct msc_vk_backend *b,
                                 const struct msc_vk_joint_desc *d) {
    struct msc_conv c;
    int32_t numbers[MSC_VK_WINDOW_NUMBERS] = {0};
    enum msc_dtype dtype = d->x[0].dtype;
    if (d->n_y != 1 || !b->vk->has_int64 || !msc_vk_is_real(dtype) || d->y[0].dtype != dtype ||
        d->x[1].dtype != dtype) {
        return msc_vk_joint_refuse(d);
    }
    MSC_TRY(msc_reference__conv_init(&c, &d->call));
    struct msc_vk_stage *s = msc_vk_joint_stage(k, (uint64_t)msc_view_n_elements(&d->y[0]), 3);
    msc_vk_put_conv(numbers, &c);
    s->turns = msc_vk_conv_turns(&c);
    MSC_TRY(msc_vk_joint_numbers(s, b, numbers, sizeof(numbers)));
    const uint32_t constants[] = {b->vk->tuning.lanes, 0, c.is_transposed,
                                  msc_reference__has(&d->call, 2), msc_vk_element(dtype)};
    MSC_VK_CHECK_CONSTANTS(MSC_VK_CONV_PLAIN, constants);
    return msc_vk_pipeline(&s->pipeline, b->vk, MSC_VK_CONV_PLAIN, constants);
}

const struct msc_vk_family msc_vk_conv_plain = {
    .name = "plain convolution", .init = conv_init, MSC_VK_JOINT_FUNCTIONS};

// ---- Pools ------------------------------------------------------------------------------------

enum kind { MAXIMUM, MEAN, NORM }; // numbered as in shaders/pool_plain.comp

static enum kind vk_plain_kind_of(enum msc_op op) {
    switch (op) {
    case MSC_OP_AVG_POOL1D:
    case MSC_OP_AVG_POOL2D:
    case MSC_OP_AVG_POOL3D:
        return MEAN;
    case MSC_OP_LP_POOL:
        return NORM;
    default:
        return MAXIMUM;
    }
}

static enum msc_status pool_init(struct msc_vk_joint *k, struct msc_vk_backend *b,
                                 const struct msc_vk_joint_desc *d) {
    enum kind kind = vk_plain_kind_of(d->joint->op);
    enum msc_dtype dtype = d->x[0].dtype;
    struct msc_window w;
    int64_t kernel[3], p = 0;
    int32_t numbers[MSC_VK_WINDOW_NUMBERS] = {0};
    bool counts_padding = false, is_column_major = false;
    const char *layout = msc_joint_attr(d->joint, "layout");
    int n = msc_joint_attr_list(d->joint, "pool_size", kernel, 3);
    msc_joint_attr_bool(d->joint, "count_include_pad", &counts_padding);
    msc_joint_attr_bool(d->joint, "storage_order", &is_column_major);
    bool is_small = dtype == MSC_DTYPE_I8 || dtype == MSC_DTYPE_U8;
    if (!b->vk->has_int64 || n < 1 || !layout || d->n_y > 2 || d->y[0].dtype != dtype ||
        !(msc_vk_is_real(dtype) || (kind == MAXIMUM && is_small)) ||
        (kind == NORM && !msc_vk_joint_i64(&p, d, "p"))) {
        return msc_vk_joint_refuse(d);
    }
    MSC_TRY(msc_reference__window_init(&w, &d->call, layout, kernel, n));
    struct msc_vk_stage *s = msc_vk_joint_stage(k, (uint64_t)msc_view_n_elements(&d->y[0]), 1);
    float power = (float)p;
    msc_vk_put_window(numbers, &w);
    s->turns = 4 * (uint64_t)(w.kernel[0] * w.kernel[1] * w.kernel[2]);
    MSC_TRY(msc_vk_joint_numbers(s, b, numbers, sizeof(numbers)));
    memcpy(s->push, &power, sizeof(power));
    s->n_push = 1;
    const uint32_t constants[] = {b->vk->tuning.lanes,   !b->vk->divides_exactly, (uint32_t)kind,
                                  msc_vk_element(dtype), counts_padding,          is_column_major};
    MSC_VK_CHECK_CONSTANTS(MSC_VK_POOL_PLAIN_INDICES, constants);
    MSC_VK_CHECK_CONSTANTS(MSC_VK_POOL_PLAIN, constants);
    return msc_vk_pipeline(&s->pipeline, b->vk,
                           d->n_y == 2 ? MSC_VK_POOL_PLAIN_INDICES : MSC_VK_POOL_PLAIN, constants);
}

const struct msc_vk_family msc_vk_pool_plain = {
    .name = "plain pooling", .init = pool_init, MSC_VK_JOINT_FUNCTIONS};
