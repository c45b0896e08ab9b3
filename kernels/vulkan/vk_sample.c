// Sampling between elements: at positions of a grid (GridSample), and over regions (RoiAlign).
#include "kernels/vulkan/vk_joint.h"

#include <string.h>

enum { NEAREST, LINEAR, CUBIC }; // numbered as in shaders/grid_sample.comp

// True if x, the sampling positions and the output have one type.
static bool vk_sample_is_possible(const struct msc_vk_backend *b, const struct msc_vk_joint_desc *d,
                                  int n) {
    enum msc_dtype dtype = d->x[0].dtype;
    return d->n_x == n && d->n_y == 1 && msc_vk_joint_has_elements(b, d) && msc_vk_is_real(dtype) &&
           d->x[1].dtype == dtype && d->y[0].dtype == dtype && msc_view_n_elements(&d->x[0]) > 0;
}

static enum msc_status vk_sample_grid_init(struct msc_vk_joint *k, struct msc_vk_backend *b,
                                           const struct msc_vk_joint_desc *d) {
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    const char *mode = msc_joint_attr(d->joint, "mode");
    const char *padding = msc_joint_attr(d->joint, "padding_mode");
    const struct msc_view *x = &d->x[0], *y = &d->y[0];
    int n_axes = x->n_dims - 2;
    bool aligns;
    uint32_t padded = 0;
    if (!vk_sample_is_possible(b, d, 2) || n_axes < 1 || n_axes > 3 || !mode || !padding ||
        !msc_joint_attr_bool(d->joint, "align_corners", &aligns)) {
        return msc_vk_joint_refuse(d);
    }
    // "bilinear" and "bicubic" before opset 20, "linear" and "cubic" since.
    uint32_t method = strstr(mode, "cubic") != NULL  ? CUBIC
                      : strcmp(mode, "nearest") == 0 ? NEAREST
                                                     : LINEAR;
    for (uint32_t i = 0; i < 3; i++) {
        padded = strcmp(padding, paddings[i]) == 0 ? i : padded;
    }
    struct msc_vk_stage *s = msc_vk_joint_stage(k, (uint64_t)msc_view_n_elements(y), 2);
    s->turns = 4 * 64 + 16;
    s->push[0] = (uint32_t)x->dims[1];
    s->push[1] = (uint32_t)msc_dims_product(n_axes, y->dims + 2);
    for (int a = 0; a < n_axes; a++) {
        s->push[2 + a] = (uint32_t)x->dims[2 + a];
    }
    s->n_push = 5;
    const uint32_t constants[] = {
        b->vk->tuning.lanes,     !b->vk->divides_exactly, (uint32_t)n_axes, method, padded, aligns,
        msc_vk_element(x->dtype)};
    MSC_VK_CHECK_CONSTANTS(MSC_VK_GRID_SAMPLE, constants);
    return msc_vk_pipeline(&s->pipeline, b->vk, MSC_VK_GRID_SAMPLE, constants);
}

const struct msc_vk_family msc_vk_grid_sample = {
    .name = "grid sampling", .init = vk_sample_grid_init, MSC_VK_JOINT_FUNCTIONS};

// ---- Regions ----------------------------------------------------------------------------------

static enum msc_status roi_init(struct msc_vk_joint *k, struct msc_vk_backend *b,
                                const struct msc_vk_joint_desc *d) {
    const struct msc_view *x = &d->x[0], *y = &d->y[0];
    const char *mode = msc_joint_attr(d->joint, "mode");
    const char *transform = msc_joint_attr(d->joint, "coordinate_transformation_mode");
    float numbers[2] = {1.0f, 0.0f}; // scale and shift of the regions' coordinates
    int64_t sampling;
    if (!vk_sample_is_possible(b, d, 3) || x->n_dims != 4 || !mode || !transform ||
        !msc_joint_attr_float(d->joint, "spatial_scale", &numbers[0]) ||
        !msc_vk_joint_i64(&sampling, d, "sampling_ratio")) {
        return msc_vk_joint_refuse(d);
    }
    numbers[1] = strcmp(transform, "half_pixel") == 0 ? 0.5f : 0.0f;
    struct msc_vk_stage *s = msc_vk_joint_stage(k, (uint64_t)msc_view_n_elements(y), 3);
    const int64_t push[7] = {x->dims[1],
                             x->dims[0],
                             x->dims[3],
                             x->dims[2],
                             y->dims[3],
                             y->dims[2],
                             sampling > 0 ? sampling : 0};
    // If sampling_ratio is 0, a bin of a region has about one sample per element of the image. Only
    // samples inside the image are computed, so there are hardly more samples than the image has
    // elements.
    int64_t down = sampling > 0 ? sampling : x->dims[2] + 6;
    int64_t across = sampling > 0 ? sampling : x->dims[3] + 6;
    s->turns = 8 * (uint64_t)(down * across) + 16;
    for (int i = 0; i < 7; i++) {
        s->push[i] = (uint32_t)push[i];
    }
    memcpy(&s->push[7], numbers, sizeof(numbers));
    s->n_push = 9;
    const uint32_t constants[] = {b->vk->tuning.lanes, !b->vk->divides_exactly,
                                  msc_vk_element(d->x[2].dtype), strcmp(mode, "max") == 0,
                                  msc_vk_element(x->dtype)};
    MSC_VK_CHECK_CONSTANTS(MSC_VK_ROI_ALIGN, constants);
    return msc_vk_pipeline(&s->pipeline, b->vk, MSC_VK_ROI_ALIGN, constants);
}

const struct msc_vk_family msc_vk_roi_align = {
    .name = "pooled regions", .init = roi_init, MSC_VK_JOINT_FUNCTIONS};
