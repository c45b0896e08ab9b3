// Normalisation over groups of channels, and local response normalisation (over neighbouring
// channels).
#include "kernels/vulkan/vk_joint.h"

#include <string.h>

static bool vk_norm_is_possible(const struct msc_vk_backend *b, const struct msc_vk_joint_desc *d) {
    bool is_same = b->vk->has_int64 && d->n_y == 1 && msc_vk_is_real(d->x[0].dtype);
    for (int i = 1; i < d->n_x; i++) {
        is_same = is_same && d->x[i].dtype == d->x[0].dtype;
    }
    return is_same && d->x[0].n_dims >= 2 && msc_view_n_elements(&d->x[0]) > 0;
}

static enum msc_status norm_init(struct msc_vk_joint *k, struct msc_vk_backend *b,
                                 const struct msc_vk_joint_desc *d) {
    const struct msc_view *x = &d->x[0];
    int64_t n_groups = x->dims[1];
    float epsilon;
    if (!vk_norm_is_possible(b, d) || d->n_x != 3 ||
        !msc_joint_attr_float(d->joint, "epsilon", &epsilon) ||
        (d->joint->op == MSC_OP_GROUP_NORM && !msc_vk_joint_i64(&n_groups, d, "num_groups")) ||
        x->dims[0] * n_groups > b->vk->properties.limits.maxComputeWorkGroupCount[0]) {
        return msc_vk_joint_refuse(d);
    }
    int64_t n_spatial = msc_dims_product(x->n_dims - 2, x->dims + 2);
    int64_t channels = x->dims[1] / n_groups;
    struct msc_vk_stage *s = msc_vk_joint_stage(k, (uint64_t)(x->dims[0] * n_groups), 3);
    bool is_last = x->layout == MSC_LAYOUT_NHWC;
    const int64_t push[4] = {channels * n_spatial, n_spatial, n_groups, channels};
    for (int i = 0; i < 4; i++) {
        s->push[i] = (uint32_t)push[i];
    }
    memcpy(&s->push[4], &epsilon, sizeof(epsilon));
    s->n_push = 5;
    s->is_by_groups = true;
    s->turns = 3 * (uint64_t)(channels * n_spatial / b->vk->tuning.lanes + 1);
    const uint32_t constants[] = {b->vk->tuning.lanes, !b->vk->divides_exactly,
                                  msc_vk_element(x->dtype), d->x[1].dims[0] == x->dims[1], is_last};
    MSC_VK_CHECK_CONSTANTS(MSC_VK_NORM, constants);
    return msc_vk_pipeline(&s->pipeline, b->vk, MSC_VK_NORM, constants);
}

const struct msc_vk_family msc_vk_norm = {.name = "group normalisation",
                                          .init = norm_init,
                                          .takes_layouts = true,
                                          MSC_VK_JOINT_FUNCTIONS};

static enum msc_status lrn_init(struct msc_vk_joint *k, struct msc_vk_backend *b,
                                const struct msc_vk_joint_desc *d) {
    const struct msc_view *x = &d->x[0];
    float numbers[3];
    int64_t size;
    if (!vk_norm_is_possible(b, d) || !msc_joint_attr_float(d->joint, "alpha", &numbers[0]) ||
        !msc_joint_attr_float(d->joint, "beta", &numbers[1]) ||
        !msc_joint_attr_float(d->joint, "bias", &numbers[2]) ||
        !msc_vk_joint_i64(&size, d, "size") || size < 1 || size > INT32_MAX / 2) {
        return msc_vk_joint_refuse(d);
    }
    struct msc_vk_stage *s = msc_vk_joint_stage(k, (uint64_t)msc_view_n_elements(x), 1);
    s->turns = 1 + (uint64_t)(size < x->dims[1] ? size : x->dims[1]);
    s->push[0] = (uint32_t)x->dims[1];
    s->push[1] = (uint32_t)msc_dims_product(x->n_dims - 2, x->dims + 2);
    s->push[2] = (uint32_t)size;
    memcpy(&s->push[3], numbers, sizeof(numbers));
    s->n_push = 6;
    const uint32_t constants[] = {b->vk->tuning.lanes, !b->vk->divides_exactly,
                                  msc_vk_element(x->dtype)};
    MSC_VK_CHECK_CONSTANTS(MSC_VK_LRN, constants);
    return msc_vk_pipeline(&s->pipeline, b->vk, MSC_VK_LRN, constants);
}

const struct msc_vk_family msc_vk_lrn = {
    .name = "neighbour normalisation", .init = lrn_init, MSC_VK_JOINT_FUNCTIONS};
