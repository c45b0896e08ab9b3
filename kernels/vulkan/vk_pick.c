// Operators that choose elements by their coordinates: triangles (Trilu), reversed sequences,
// one-hot.
#include "kernels/vulkan/vk_joint.h"

enum kind { LOWER, UPPER, REVERSE, ONE_HOT }; // numbered as in shaders/pick.comp

struct pick {
    int x, indices; // indices of operands
    int64_t numbers[4];
};

typedef bool (*describe_fn)(struct pick *out, const struct msc_vk_joint_desc *d);

static bool describe_triangle(struct pick *p, const struct msc_vk_joint_desc *d) {
    const struct msc_view *x = &d->x[0];
    bool has_operand = d->n_x > 1 && d->x[1].dtype != MSC_DTYPE_NONE;
    if (x->n_dims < 2 || (!has_operand && !msc_vk_joint_i64(&p->numbers[2], d, "k")) ||
        p->numbers[2] < INT32_MIN || p->numbers[2] > INT32_MAX) {
        return false;
    }
    p->numbers[0] = x->dims[x->n_dims - 1];
    p->numbers[1] = x->dims[x->n_dims - 2];
    p->indices = has_operand ? 1 : MSC_VK_JOINT_ABSENT;
    return true;
}

static bool describe_reverse(struct pick *p, const struct msc_vk_joint_desc *d) {
    const struct msc_view *x = &d->x[0];
    int axes[2] = {msc_vk_joint_axis(d, "time_axis", x->n_dims),
                   msc_vk_joint_axis(d, "batch_axis", x->n_dims)};
    int32_t strides[MSC_MAX_DIMS];
    msc_vk_strides(strides, x->n_dims, x->dims);
    for (int i = 0; i < 2; i++) {
        if (axes[i] < 0) {
            return false;
        }
        p->numbers[2 * i] = x->dims[axes[i]];
        p->numbers[2 * i + 1] = strides[axes[i]];
    }
    return d->n_x == 2;
}

static bool describe_one_hot(struct pick *p, const struct msc_vk_joint_desc *d) {
    const struct msc_view *y = &d->y[0];
    int axis = msc_vk_joint_axis(d, "axis", y->n_dims);
    if (axis < 0 || d->n_x != 3) {
        return false;
    }
    p->x = 2;
    p->indices = 0;
    p->numbers[0] = y->dims[axis];
    p->numbers[1] = msc_dims_product(y->n_dims - axis - 1, y->dims + axis + 1);
    return true;
}

static const struct {
    enum msc_op op;
    enum kind kind;
    describe_fn describe;
} rows[] = {
    {MSC_OP_TRIL, LOWER, describe_triangle},
    {MSC_OP_TRIU, UPPER, describe_triangle},
    {MSC_OP_REVERSE_SEQUENCE, REVERSE, describe_reverse},
    {MSC_OP_ONE_HOT, ONE_HOT, describe_one_hot},
};

static bool vk_pick_describe(struct pick *p, enum kind *kind, const struct msc_vk_joint_desc *d) {
    *p = (struct pick){.x = 0, .indices = 1};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].op == d->joint->op) {
            *kind = rows[i].kind;
            return rows[i].describe(p, d);
        }
    }
    return false;
}

static enum msc_status vk_pick_init(struct msc_vk_joint *k, struct msc_vk_backend *b,
                                    const struct msc_vk_joint_desc *d) {
    struct pick p;
    enum kind kind;
    if (d->n_y != 1 || !msc_vk_joint_has_elements(b, d) || !vk_pick_describe(&p, &kind, d)) {
        return msc_vk_joint_refuse(d);
    }
    bool has_indices = p.indices != MSC_VK_JOINT_ABSENT;
    struct msc_vk_stage *s = msc_vk_joint_stage(k, (uint64_t)msc_view_n_elements(&d->y[0]), 2);
    s->in[0] = p.x;
    s->in[1] = p.indices;
    for (int i = 0; i < 4; i++) {
        s->push[i] = (uint32_t)p.numbers[i];
    }
    s->n_push = 4;
    const uint32_t constants[] = {b->vk->tuning.lanes,
                                  0,
                                  (uint32_t)kind,
                                  msc_vk_element(d->y[0].dtype),
                                  has_indices ? msc_vk_element(d->x[p.indices].dtype) : 0,
                                  has_indices};
    MSC_VK_CHECK_CONSTANTS(MSC_VK_PICK, constants);
    return msc_vk_pipeline(&s->pipeline, b->vk, MSC_VK_PICK, constants);
}

const struct msc_vk_family msc_vk_pick = {
    .name = "picked elements", .init = vk_pick_init, MSC_VK_JOINT_FUNCTIONS};
