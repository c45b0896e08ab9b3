// Operators that write updates at positions given by indices: scatters and max unpooling.
#include "kernels/vulkan/vk_joint.h"

#include <string.h>

#define MAX_ROWS (3 * MSC_MAX_DIMS)

struct scatter { // see shaders/scatter.comp
    int n_dims, n_listed, n_indices;
    int32_t rows[MAX_ROWS][4];
    int x, indices, updates; // indices of operands
    uint32_t reduction;
};

static void vk_scatter_add_row(struct scatter *s, int64_t a, int64_t b, int64_t c, int64_t d) {
    const int64_t row[4] = {a, b, c, d};
    for (int i = 0; i < 4; i++) {
        s->rows[s->n_dims + s->n_indices][i] = (int32_t)row[i];
    }
}

static void add_dim(struct scatter *s, int64_t length, int64_t y, int64_t indices,
                    int64_t updates) {
    vk_scatter_add_row(s, length, y, indices, updates);
    s->n_dims++;
}

// Adds the row of an index. All dims must be added first.
static void add_index(struct scatter *s, int64_t stride, int64_t length, int64_t divisor,
                      int64_t step) {
    vk_scatter_add_row(s, stride, length, divisor, step);
    s->n_indices++;
}

static bool find_reduction(struct scatter *s, const struct msc_vk_joint_desc *d) {
    static const char *const names[] = {"none", "add", "mul", "max", "min"};
    const char *name = msc_joint_attr(d->joint, "reduction");
    for (uint32_t i = 0; name && i < 5; i++) {
        if (strcmp(name, names[i]) == 0) {
            s->reduction = i;
            return true;
        }
    }
    return false;
}

// ---- Operators --------------------------------------------------------------------------------

typedef bool (*describe_fn)(struct scatter *out, const struct msc_vk_joint_desc *d);

// ScatterElements: two updates can write the same element only if all their coordinates except the
// one along the axis are equal.
static bool describe_elements(struct scatter *s, const struct msc_vk_joint_desc *d) {
    const struct msc_view *y = &d->y[0], *indices = &d->x[1];
    int axis = msc_vk_joint_axis(d, "axis", y->n_dims);
    int32_t strides[MSC_MAX_DIMS], own[MSC_MAX_DIMS];
    if (axis < 0 || d->n_x != 3) {
        return false;
    }
    msc_vk_strides(strides, y->n_dims, y->dims);
    msc_vk_strides(own, indices->n_dims, indices->dims);
    for (int i = 0; i < y->n_dims; i++) {
        if (i != axis) {
            add_dim(s, indices->dims[i], strides[i], own[i], own[i]);
        }
    }
    add_dim(s, indices->dims[axis], 0, own[axis], own[axis]);
    s->n_listed = 1;
    add_index(s, strides[axis], y->dims[axis], 0, 1);
    return find_reduction(s, d);
}

// ScatterND: any two index tuples can refer to the same position.
static bool describe_nd(struct scatter *s, const struct msc_vk_joint_desc *d) {
    const struct msc_view *y = &d->y[0], *indices = &d->x[1], *updates = &d->x[2];
    int32_t strides[MSC_MAX_DIMS], own[MSC_MAX_DIMS], of_updates[MSC_MAX_DIMS];
    if (indices->n_dims < 1 || d->n_x != 3) {
        return false;
    }
    int depth = (int)indices->dims[indices->n_dims - 1];
    s->n_listed = indices->n_dims - 1;
    msc_vk_strides(strides, y->n_dims, y->dims);
    msc_vk_strides(own, indices->n_dims, indices->dims);
    msc_vk_strides(of_updates, updates->n_dims, updates->dims);
    for (int i = depth; i < y->n_dims; i++) {
        add_dim(s, y->dims[i], strides[i], 0, of_updates[s->n_listed + i - depth]);
    }
    for (int i = 0; i < s->n_listed; i++) {
        add_dim(s, indices->dims[i], 0, own[i], of_updates[i]);
    }
    for (int k = 0; k < depth; k++) {
        add_index(s, strides[k], y->dims[k], 0, 1);
    }
    return find_reduction(s, d);
}

// MaxUnpool: an index counts the elements of a tensor of the default output size, which follows
// from windows and strides. This tensor may be smaller than the output, so the index is split into
// coordinates of the default size.
static bool describe_unpool(struct scatter *s, const struct msc_vk_joint_desc *d) {
    const struct msc_view *x = &d->x[0], *y = &d->y[0];
    int64_t kernel[3], steps[3], pads[6], dims[MSC_MAX_DIMS];
    int32_t strides[MSC_MAX_DIMS], own[MSC_MAX_DIMS], of_indices[MSC_MAX_DIMS];
    int spatial = y->n_dims - 2;
    if (spatial < 1 || spatial > 3 ||
        msc_joint_attr_list(d->joint, "kernel_shape", kernel, 3) != spatial ||
        msc_joint_attr_list(d->joint, "strides", steps, 3) != spatial ||
        msc_joint_attr_list(d->joint, "pads", pads, 6) != 2 * spatial) {
        return false;
    }
    for (int i = 0; i < y->n_dims; i++) {
        int a = i - 2;
        dims[i] = i < 2 ? x->dims[i]
                        : (x->dims[i] - 1) * steps[a] + kernel[a] - pads[a] - pads[spatial + a];
        if (dims[i] < 1 || dims[i] > y->dims[i]) {
            return false;
        }
    }
    msc_vk_strides(strides, y->n_dims, y->dims);
    msc_vk_strides(own, x->n_dims, x->dims);
    msc_vk_strides(of_indices, y->n_dims, dims);
    for (int i = 0; i < x->n_dims; i++) {
        add_dim(s, x->dims[i], 0, own[i], own[i]);
    }
    for (int i = 0; i < y->n_dims; i++) {
        add_index(s, strides[i], dims[i], of_indices[i], 0);
    }
    s->n_listed = s->n_dims;
    s->x = MSC_VK_JOINT_ABSENT;
    s->updates = 0;
    return true;
}

static const struct {
    enum msc_op op;
    describe_fn describe;
} rows[] = {
    {MSC_OP_SCATTER_ELEMENTS, describe_elements},
    {MSC_OP_SCATTER_ND, describe_nd},
    {MSC_OP_MAX_UNPOOL, describe_unpool},
};

// ---- Kernels ----------------------------------------------------------------------------------

static bool vk_scatter_describe(struct scatter *s, const struct msc_vk_joint_desc *d) {
    *s = (struct scatter){.x = 0, .indices = 1, .updates = 2};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].op == d->joint->op) {
            return rows[i].describe(s, d);
        }
    }
    return false;
}

static enum msc_status vk_scatter_add_stage(struct msc_vk_joint *k, struct msc_vk_backend *b,
                                            const struct msc_vk_joint_desc *d,
                                            const struct scatter *s, uint64_t n, int64_t n_listed) {
    uint32_t number = (uint32_t)k->n_stages;
    bool may_meet = number == 2 && s->reduction > 0;
    struct msc_vk_stage *stage = msc_vk_joint_stage(k, n, 3);
    stage->in[0] = s->x;
    stage->in[1] = s->indices;
    stage->in[2] = s->updates;
    stage->turns =
        (uint64_t)(s->n_dims + s->n_indices + 1) * (may_meet ? (uint64_t)n_listed + 1 : 1);
    stage->push[0] = (uint32_t)n_listed;
    stage->n_push = 1;
    MSC_TRY(msc_vk_joint_numbers(stage, b, s->rows, sizeof(s->rows)));
    const uint32_t constants[] = {b->vk->tuning.lanes,
                                  0,
                                  msc_vk_element(d->y[0].dtype),
                                  msc_vk_element(d->x[s->indices].dtype),
                                  (uint32_t)s->n_dims,
                                  (uint32_t)s->n_indices,
                                  s->reduction,
                                  (uint32_t)s->n_listed,
                                  number,
                                  s->x != MSC_VK_JOINT_ABSENT};
    MSC_VK_CHECK_CONSTANTS(MSC_VK_SCATTER, constants);
    return msc_vk_pipeline(&stage->pipeline, b->vk, MSC_VK_SCATTER, constants);
}

static enum msc_status vk_scatter_init(struct msc_vk_joint *k, struct msc_vk_backend *b,
                                       const struct msc_vk_joint_desc *d) {
    struct scatter s;
    if (d->n_y != 1 || !msc_vk_joint_has_elements(b, d) || !vk_scatter_describe(&s, d)) {
        return msc_vk_joint_refuse(d);
    }
    uint64_t n_out = (uint64_t)msc_view_n_elements(&d->y[0]), n = 1;
    int64_t n_listed = 1;
    for (int i = 0; i < s.n_dims; i++) {
        n *= (uint64_t)s.rows[i][0];
        n_listed *= i < s.n_dims - s.n_listed ? 1 : s.rows[i][0];
    }
    if (n_out == 0 && n > 0) { // there are updates but no positions
        return msc_vk_joint_refuse(d);
    }
    k->scratch_bytes = 2 * sizeof(uint32_t) * (n_out + 1);
    MSC_TRY(vk_scatter_add_stage(k, b, d, &s, n_out, n_listed));
    MSC_TRY(vk_scatter_add_stage(k, b, d, &s, n, n_listed));
    return vk_scatter_add_stage(k, b, d, &s, n, n_listed);
}

const struct msc_vk_family msc_vk_scatter = {
    .name = "scatter", .init = vk_scatter_init, MSC_VK_JOINT_FUNCTIONS};
