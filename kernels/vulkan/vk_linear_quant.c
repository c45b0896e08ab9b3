// Quantisation operators of models: QuantizeLinear, DequantizeLinear, and DynamicQuantizeLinear,
// which takes the scale from the range of the data.
#include "graph/linear_quant.h"
#include "kernels/vulkan/vk_joint.h"

#include <string.h>

static bool is_code(enum msc_dtype dtype) {
    return dtype == MSC_DTYPE_I8 || dtype == MSC_DTYPE_U8 || dtype == MSC_DTYPE_I16 ||
           dtype == MSC_DTYPE_U16;
}

static bool vk_linear_quant_is_possible(const struct msc_vk_backend *b,
                                        const struct msc_vk_joint_desc *d, bool is_back) {
    enum msc_dtype x = d->x[0].dtype, y = d->y[0].dtype;
    if (d->n_x < 2 || d->n_y != 1 || !msc_vk_joint_has_elements(b, d)) {
        return false;
    }
    return is_back ? msc_vk_is_real(y) && !msc_dtype_is_float(x) : is_code(y);
}

// Finds the position of the quantisation axis in memory; merges the dims before it and after it.
// False for blocked quantisation in NHWC.
static bool vk_linear_quant_set_layout(struct msc_linear_quant *m,
                                       const struct msc_vk_joint_desc *d) {
    const struct msc_view *x = &d->x[0];
    int64_t dims[MSC_MAX_DIMS];
    int axes[MSC_MAX_DIMS], at = 0;
    if (x->layout != d->y[0].layout || d->x[1].layout != MSC_LAYOUT_NCHW) {
        return false;
    }
    if (x->layout == MSC_LAYOUT_NCHW || m->length == 0) {
        return true;
    }
    msc_view_physical(x, dims, axes);
    int axis = msc_vk_joint_axis(d, "axis", x->n_dims);
    while (axes[at] != axis) {
        at++;
    }
    m->inner = msc_dims_product(x->n_dims - at - 1, dims + at + 1);
    return m->block == 0;
}

static enum msc_status linear_init(struct msc_vk_joint *k, struct msc_vk_backend *b,
                                   const struct msc_vk_joint_desc *d) {
    bool is_back = d->joint->op == MSC_OP_DEQUANTIZE;
    bool has_zero = d->n_x > 2 && d->x[2].dtype != MSC_DTYPE_NONE;
    const struct msc_view *x = &d->x[0], *y = &d->y[0], *scales = &d->x[1];
    struct msc_quant_format format;
    struct msc_linear_quant m;
    if (!vk_linear_quant_is_possible(b, d, is_back)) {
        return msc_vk_joint_refuse(d);
    }
    msc_quant_format_init(&format, d->joint, is_back ? x->dtype : y->dtype);
    if (format.narrow) {
        return msc_vk_joint_refuse(d);
    }
    MSC_TRY(msc_linear_quant_init(&m, d->joint, x->n_dims, x->dims, scales->n_dims, scales->dims));
    if (!vk_linear_quant_set_layout(&m, d)) {
        return msc_vk_joint_refuse(d);
    }
    struct msc_vk_stage *s = msc_vk_joint_stage(k, (uint64_t)msc_view_n_elements(y), 3);
    const int64_t numbers[4] = {m.length, m.inner, m.block, m.n_blocks};
    for (int i = 0; i < 4; i++) {
        s->push[i] = (uint32_t)numbers[i];
    }
    memcpy(&s->push[4], &format.low, sizeof(format.low));
    memcpy(&s->push[5], &format.high, sizeof(format.high));
    s->n_push = 6;
    const uint32_t constants[] = {b->vk->tuning.lanes,
                                  !b->vk->divides_exactly,
                                  is_back,
                                  msc_vk_element(x->dtype),
                                  msc_vk_element(scales->dtype),
                                  has_zero ? msc_vk_element(d->x[2].dtype) : 0,
                                  msc_vk_element(y->dtype),
                                  has_zero};
    MSC_VK_CHECK_CONSTANTS(MSC_VK_LINEAR_QUANT, constants);
    return msc_vk_pipeline(&s->pipeline, b->vk, MSC_VK_LINEAR_QUANT, constants);
}

const struct msc_vk_family msc_vk_linear_quant = {.name = "linear quantisation",
                                                  .init = linear_init,
                                                  .takes_layouts = true,
                                                  MSC_VK_JOINT_FUNCTIONS};

// ---- Over the range of the data ---------------------------------------------------------------

enum { CLEAR, FIND, QUANTIZE, DYNAMIC_STAGES }; // stages of shaders/dynamic_quant.comp

static enum msc_status dynamic_pipeline(struct msc_vk_pipeline **out, struct msc_vk *vk,
                                        uint32_t stage) {
    const uint32_t constants[] = {vk->tuning.lanes, !vk->divides_exactly, stage};
    MSC_VK_CHECK_CONSTANTS(MSC_VK_DYNAMIC_QUANT, constants);
    return msc_vk_pipeline(out, vk, MSC_VK_DYNAMIC_QUANT, constants);
}

static enum msc_status dynamic_init(struct msc_vk_joint *k, struct msc_vk_backend *b,
                                    const struct msc_vk_joint_desc *d) {
    uint64_t n = (uint64_t)msc_view_n_elements(&d->x[0]);
    if (d->n_x != 1 || d->n_y != 3 || d->x[0].dtype != MSC_DTYPE_F32 || n == 0) {
        return msc_vk_joint_refuse(d);
    }
    k->scratch_bytes = 2 * sizeof(uint32_t);
    for (uint32_t i = 0; i < DYNAMIC_STAGES; i++) {
        struct msc_vk_stage *s = msc_vk_joint_stage(k, i == CLEAR ? 1 : n, 1);
        MSC_TRY(dynamic_pipeline(&s->pipeline, b->vk, i));
    }
    return MSC_OK;
}

const struct msc_vk_family msc_vk_dynamic_quant = {
    .name = "dynamic quantisation", .init = dynamic_init, MSC_VK_JOINT_FUNCTIONS};

// Records one of the stages that do not quantise.
static enum msc_status run_range_stage(struct msc_vk_backend *b, uint32_t stage,
                                       const struct msc_vk_block *x, uint64_t n,
                                       const struct msc_vk_block *range) {
    static const enum msc_vk_kind kinds[] = {MSC_VK_READ, MSC_VK_READ, MSC_VK_READ, MSC_VK_READ,
                                             MSC_VK_READ_WRITE};
    uint32_t push[2] = {(uint32_t)n, 1};
    struct msc_vk_pipeline *pipeline;
    struct msc_vk_dispatch d;
    MSC_TRY(dynamic_pipeline(&pipeline, b->vk, stage));
    msc_vk_dispatch_init(&d, pipeline, 5, kinds);
    struct msc_vk_call *c = msc_vk_add_call(&d);
    c->blocks[0] = x;
    c->blocks[1] = c->blocks[2] = c->blocks[3] = b->nothing; // not written by these stages
    c->blocks[4] = range;
    MSC_VK_CHECK_PUSH(MSC_VK_DYNAMIC_QUANT, push);
    d.groups[0] = msc_vk_spread(b->vk, n, 1, &push[1]);
    d.push = push;
    d.push_bytes = sizeof(push);
    return msc_vk_dispatch(b->vk, &d);
}

enum msc_status msc_vk_range(float *least, float *greatest, struct msc_vk_backend *b,
                             const struct msc_view *in) {
    const uint64_t n = (uint64_t)msc_view_n_elements(in);
    struct msc_vk_block *range = NULL;
    float ends[2]; // the greatest element, and the least one without its sign
    enum msc_status status;
    if (n == 0 || !b->vk->keeps_denormals || !msc_vk_can_spread(b->vk, n, 1)) {
        return MSC_E_UNSUPPORTED;
    }
    MSC_TRY(msc_vk_take(&range, b, 1, sizeof(ends)));
    MSC_TRY_OUT(run_range_stage(b, CLEAR, msc_vk_block_of(in), 1, range));
    MSC_TRY_OUT(run_range_stage(b, FIND, msc_vk_block_of(in), n, range));
    const struct msc_vk_copy copy = {ends, range, sizeof(ends)};
    MSC_TRY_OUT(msc_vk_download(b->vk, &copy, 1));
    *greatest = ends[0];
    *least = 0.0f - ends[1];
out:
    msc_vk_free(b->vk, range);
    return status;
}
