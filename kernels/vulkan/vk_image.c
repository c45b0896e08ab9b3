// Operators over images: col2im, affine grids, deformable convolutions.
#include "kernels/vulkan/vk_joint.h"

// True if all operands and outputs are float32.
static bool is_float(const struct msc_vk_joint_desc *d) {
    bool is = d->n_y == 1 && d->y[0].dtype == MSC_DTYPE_F32;
    for (int i = 0; i < d->n_x; i++) {
        is = is && (d->x[i].dtype == MSC_DTYPE_F32 || d->x[i].dtype == MSC_DTYPE_NONE);
    }
    return is;
}

// Reads a list attribute of n numbers. If the list is empty, sets all n numbers to `otherwise`.
static bool vk_image_read_list(int64_t out[], const struct msc_vk_joint_desc *d, const char *key,
                               int n, int64_t otherwise) {
    int found = msc_joint_attr_list(d->joint, key, out, n);
    for (int i = 0; found <= 0 && i < n; i++) {
        out[i] = otherwise;
    }
    return found <= 0 || found == n;
}

// ---- Columns ----------------------------------------------------------------------------------

#define MAX_AXES (MSC_MAX_DIMS - 2)

static enum msc_status columns_init(struct msc_vk_joint *k, struct msc_vk_backend *b,
                                    const struct msc_vk_joint_desc *d) {
    int64_t image[MAX_AXES], block[MAX_AXES], steps[MAX_AXES], dilations[MAX_AXES];
    int64_t pads[2 * MAX_AXES], taps = 1, places = 1;
    int32_t rows[MAX_AXES][8] = {{0}}; // see shaders/col2im.comp
    int n = msc_joint_attr_list(d->joint, "image_shape", image, MAX_AXES);
    if (!is_float(d) || n < 1 || n > MAX_AXES ||
        msc_joint_attr_list(d->joint, "block_shape", block, MAX_AXES) != n ||
        !vk_image_read_list(steps, d, "strides", n, 1) ||
        !vk_image_read_list(dilations, d, "dilations", n, 1) ||
        !vk_image_read_list(pads, d, "pads", 2 * n, 0)) {
        return msc_vk_joint_refuse(d);
    }
    for (int a = 0; a < n; a++) {
        int64_t extent = (block[a] - 1) * dilations[a] + 1;
        int64_t padded = image[a] + pads[a] + pads[n + a];
        int64_t count = steps[a] > 0 ? (padded - extent) / steps[a] + 1 : 0;
        const int64_t row[6] = {image[a], block[a], steps[a], dilations[a], pads[a], count};
        for (int i = 0; i < 6; i++) {
            rows[a][i] = (int32_t)row[i];
        }
        taps *= block[a];
        places *= count;
    }
    if (places != d->x[0].dims[2]) {
        return msc_vk_joint_refuse(d);
    }
    struct msc_vk_stage *s = msc_vk_joint_stage(k, (uint64_t)msc_view_n_elements(&d->y[0]), 1);
    s->push[0] = (uint32_t)msc_dims_product(n, image);
    s->push[1] = (uint32_t)taps;
    s->push[2] = (uint32_t)places;
    s->n_push = 3;
    s->turns = (uint64_t)(taps * (n + 1));
    MSC_TRY(msc_vk_joint_numbers(s, b, rows, sizeof(rows)));
    const uint32_t constants[] = {b->vk->tuning.lanes, 0, (uint32_t)n};
    MSC_VK_CHECK_CONSTANTS(MSC_VK_COL2IM, constants);
    return msc_vk_pipeline(&s->pipeline, b->vk, MSC_VK_COL2IM, constants);
}

// ---- Grids ------------------------------------------------------------------------------------

static enum msc_status vk_image_grid_init(struct msc_vk_joint *k, struct msc_vk_backend *b,
                                          const struct msc_vk_joint_desc *d) {
    const struct msc_view *y = &d->y[0];
    int n = y->n_dims - 2;
    bool aligns;
    if (!is_float(d) || n < 1 || n > 3 ||
        !msc_joint_attr_bool(d->joint, "align_corners", &aligns)) {
        return msc_vk_joint_refuse(d);
    }
    int64_t points = msc_dims_product(n, y->dims + 1);
    struct msc_vk_stage *s = msc_vk_joint_stage(k, (uint64_t)(y->dims[0] * points), 1);
    s->push[0] = (uint32_t)points;
    for (int a = 0; a < n; a++) {
        s->push[1 + a] = (uint32_t)y->dims[1 + a];
    }
    s->n_push = 4;
    const uint32_t constants[] = {b->vk->tuning.lanes, !b->vk->divides_exactly, (uint32_t)n,
                                  aligns};
    MSC_VK_CHECK_CONSTANTS(MSC_VK_AFFINE_GRID, constants);
    return msc_vk_pipeline(&s->pipeline, b->vk, MSC_VK_AFFINE_GRID, constants);
}

// ---- Deformable windows -----------------------------------------------------------------------

static enum msc_status deform_init(struct msc_vk_joint *k, struct msc_vk_backend *b,
                                   const struct msc_vk_joint_desc *d) {
    const struct msc_view *x = &d->x[0], *w = &d->x[1], *y = &d->y[0];
    int64_t group, offset_group, steps[2], dilations[2], pads[4];
    if (!is_float(d) || d->n_x < 3 || x->n_dims != 4 || w->n_dims != 4 ||
        !msc_vk_joint_i64(&group, d, "group") || group < 1 ||
        !msc_vk_joint_i64(&offset_group, d, "offset_group") || offset_group < 1 ||
        !vk_image_read_list(steps, d, "strides", 2, 1) ||
        !vk_image_read_list(dilations, d, "dilations", 2, 1) ||
        !vk_image_read_list(pads, d, "pads", 4, 0)) {
        return msc_vk_joint_refuse(d);
    }
    const int64_t numbers[18] = {x->dims[1],
                                 x->dims[2],
                                 x->dims[3],
                                 y->dims[1],
                                 y->dims[2],
                                 y->dims[3],
                                 w->dims[2],
                                 w->dims[3],
                                 w->dims[1],
                                 w->dims[0] / group,
                                 x->dims[1] / offset_group,
                                 offset_group,
                                 steps[0],
                                 steps[1],
                                 dilations[0],
                                 dilations[1],
                                 pads[0],
                                 pads[1]};
    int32_t words[18];
    for (int i = 0; i < 18; i++) {
        words[i] = (int32_t)numbers[i];
    }
    struct msc_vk_stage *s = msc_vk_joint_stage(k, (uint64_t)msc_view_n_elements(y), 5);
    s->turns = (uint64_t)(w->dims[1] * (w->dims[2] * w->dims[3] * 7 + 1));
    MSC_TRY(msc_vk_joint_numbers(s, b, words, sizeof(words)));
    const uint32_t constants[] = {b->vk->tuning.lanes, 0,
                                  d->n_x > 3 && d->x[3].dtype != MSC_DTYPE_NONE,
                                  d->n_x > 4 && d->x[4].dtype != MSC_DTYPE_NONE};
    MSC_VK_CHECK_CONSTANTS(MSC_VK_DEFORM_CONV, constants);
    return msc_vk_pipeline(&s->pipeline, b->vk, MSC_VK_DEFORM_CONV, constants);
}

static const struct {
    enum msc_op op;
    msc_vk_joint_init init;
} rows[] = {
    {MSC_OP_COL2IM, columns_init},
    {MSC_OP_AFFINE_GRID, vk_image_grid_init},
    {MSC_OP_DEFORM_CONV, deform_init},
};

static enum msc_status vk_image_init(struct msc_vk_joint *k, struct msc_vk_backend *b,
                                     const struct msc_vk_joint_desc *d) {
    size_t i = 0;
    while (rows[i].op != d->joint->op) {
        i++;
    }
    return rows[i].init(k, b, d);
}

const struct msc_vk_family msc_vk_image = {
    .name = "images", .init = vk_image_init, MSC_VK_JOINT_FUNCTIONS};
