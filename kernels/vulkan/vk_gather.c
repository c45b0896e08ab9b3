// Joints that move elements of any type: gathers, repeats, padding, depth to space. Each joint is
// described by the output's dims and the input stride of each dim.
#include "kernels/lowering/lowering.h"
#include "kernels/vulkan/vk_joint.h"

#include <string.h>

enum mode { FILL, NEAREST, MIRROR, REPEAT }; // see shaders/gather.comp

#define MAX_DIMS (2 * MSC_MAX_DIMS)

struct dim { // see shaders/gather.comp
    int32_t length, stride, index_stride, shift, in_length;
};

struct gather {
    int n_dims;
    struct dim dims[MAX_DIMS];
    int n_indices;
    int32_t indices[MSC_MAX_DIMS][2]; // stride and length of the axis that each index refers to
    enum mode mode;
    double fill;
    int fill_operand; // index of the operand that gives the fill value; 0: none
};

static void add_dim(struct gather *g, int64_t length, int64_t stride, int64_t index_stride) {
    g->dims[g->n_dims++] = (struct dim){.length = (int32_t)length,
                                        .stride = (int32_t)stride,
                                        .index_stride = (int32_t)index_stride};
}

static void add_index(struct gather *g, int64_t stride, int64_t length) {
    g->indices[g->n_indices][0] = (int32_t)stride;
    g->indices[g->n_indices++][1] = (int32_t)length;
}

// ---- Operators --------------------------------------------------------------------------------

typedef bool (*describe_fn)(struct gather *out, const struct msc_vk_joint_desc *d);

static bool describe_take(struct gather *g, const struct msc_vk_joint_desc *d) {
    int axis = msc_vk_joint_axis(d, "axis", d->x[0].n_dims);
    int32_t strides[MSC_MAX_DIMS], own[MSC_MAX_DIMS];
    const struct msc_view *x = &d->x[0], *indices = &d->x[1];
    if (axis < 0) {
        return false;
    }
    msc_vk_strides(strides, x->n_dims, x->dims);
    msc_vk_strides(own, indices->n_dims, indices->dims);
    for (int i = 0; i < x->n_dims; i++) {
        if (i != axis) {
            add_dim(g, x->dims[i], strides[i], 0);
            continue;
        }
        for (int k = 0; k < indices->n_dims; k++) {
            add_dim(g, indices->dims[k], 0, own[k]);
        }
    }
    add_index(g, strides[axis], x->dims[axis]);
    return true;
}

static bool describe_gather_elements(struct gather *g, const struct msc_vk_joint_desc *d) {
    int axis = msc_vk_joint_axis(d, "axis", d->x[0].n_dims);
    int32_t strides[MSC_MAX_DIMS], own[MSC_MAX_DIMS];
    const struct msc_view *x = &d->x[0], *indices = &d->x[1];
    if (axis < 0) {
        return false;
    }
    msc_vk_strides(strides, x->n_dims, x->dims);
    msc_vk_strides(own, indices->n_dims, indices->dims);
    for (int i = 0; i < x->n_dims; i++) {
        add_dim(g, indices->dims[i], i == axis ? 0 : strides[i], own[i]);
    }
    add_index(g, strides[axis], x->dims[axis]);
    return true;
}

static bool describe_gather_nd(struct gather *g, const struct msc_vk_joint_desc *d) {
    int32_t strides[MSC_MAX_DIMS], own[MSC_MAX_DIMS];
    const struct msc_view *x = &d->x[0], *indices = &d->x[1];
    int64_t n_batch_dims;
    if (!msc_vk_joint_i64(&n_batch_dims, d, "batch_dims") || indices->n_dims < 1) {
        return false;
    }
    int depth = (int)indices->dims[indices->n_dims - 1];
    msc_vk_strides(strides, x->n_dims, x->dims);
    msc_vk_strides(own, indices->n_dims, indices->dims);
    for (int i = 0; i + 1 < indices->n_dims; i++) {
        add_dim(g, indices->dims[i], i < n_batch_dims ? strides[i] : 0, own[i]);
    }
    for (int i = (int)n_batch_dims + depth; i < x->n_dims; i++) {
        add_dim(g, x->dims[i], strides[i], 0);
    }
    for (int k = 0; k < depth; k++) {
        add_index(g, strides[n_batch_dims + k], x->dims[n_batch_dims + k]);
    }
    return true;
}

static bool describe_broadcast(struct gather *g, const struct msc_vk_joint_desc *d) {
    int32_t strides[MSC_MAX_DIMS];
    const struct msc_view *y = &d->y[0];
    msc_vk_broadcast_strides(strides, &d->x[0], y->n_dims);
    for (int i = 0; i < y->n_dims; i++) {
        add_dim(g, y->dims[i], strides[i], 0);
    }
    return true;
}

// Adds dims whose input coordinates are the output coordinates minus `begins`. The mode determines
// the value of elements outside of the input.
static void add_shifted(struct gather *g, const struct msc_view *x, const struct msc_view *y,
                        const int64_t begins[]) {
    int32_t strides[MSC_MAX_DIMS];
    msc_vk_strides(strides, x->n_dims, x->dims);
    for (int i = 0; i < y->n_dims; i++) {
        add_dim(g, y->dims[i], strides[i], 0);
        g->dims[i].shift = (int32_t)-begins[i];
        g->dims[i].in_length = (int32_t)x->dims[i];
    }
}

static bool describe_tile(struct gather *g, const struct msc_vk_joint_desc *d) {
    static const int64_t begins[MSC_MAX_DIMS];
    g->mode = REPEAT;
    add_shifted(g, &d->x[0], &d->y[0], begins);
    return msc_view_n_elements(&d->x[0]) > 0;
}

static bool describe_crop_pad(struct gather *g, const struct msc_vk_joint_desc *d) {
    int64_t begins[MSC_MAX_DIMS];
    if (msc_view_n_elements(&d->x[0]) == 0) {
        return false;
    }
    for (int i = 0; i < d->y[0].n_dims; i++) {
        int64_t extra = d->x[0].dims[i] - d->y[0].dims[i];
        begins[i] = extra >= 0 ? -(extra / 2) : -extra / 2;
    }
    add_shifted(g, &d->x[0], &d->y[0], begins);
    return true;
}

static bool find_mode(enum mode *out, const char *name) {
    static const char *const names[] = {"constant", "edge", "reflect", "wrap"};
    for (int i = 0; name && i < 4; i++) {
        if (strcmp(name, names[i]) == 0) {
            *out = (enum mode)i;
            return true;
        }
    }
    return false;
}

static bool describe_pad(struct gather *g, const struct msc_vk_joint_desc *d) {
    int64_t widths[2 * MSC_MAX_DIMS];
    float value = 0;
    int position = msc_joint_operand(d->joint, "pad_value");
    const struct msc_array *a =
        position > 0 ? msc_lowering_constant(d->plan->graph, d->joint, position) : NULL;
    if (!find_mode(&g->mode, msc_joint_attr(d->joint, "pad_mode")) ||
        msc_joint_attr_list(d->joint, "pad_width", widths, 2 * MSC_MAX_DIMS) !=
            2 * d->x[0].n_dims ||
        msc_view_n_elements(&d->x[0]) == 0) {
        return false;
    }
    if (a && msc_array_n_elements(a) == 1) {
        if (!msc_array_fits_float(a, 0)) {
            return false;
        }
        value = (float)msc_array_get_double(a, 0);
    } else if (!msc_joint_attr_float(d->joint, "pad_value", &value) && position > 0 &&
               position < d->n_x && d->x[position].dtype != MSC_DTYPE_NONE) {
        g->fill_operand = position;
        if (d->x[position].dtype != d->x[0].dtype || msc_view_n_elements(&d->x[position]) != 1) {
            return false;
        }
    }
    g->fill = (double)value;
    add_shifted(g, &d->x[0], &d->y[0], widths);
    return true;
}

static const struct {
    enum msc_op op;
    describe_fn describe;
} rows[] = {
    {MSC_OP_TAKE, describe_take},
    {MSC_OP_GATHER_ELEMENTS, describe_gather_elements},
    {MSC_OP_GATHER_ND, describe_gather_nd},
    {MSC_OP_BROADCAST_TO, describe_broadcast},
    {MSC_OP_TILE, describe_tile},
    {MSC_OP_CENTER_CROP_PAD, describe_crop_pad},
    {MSC_OP_PAD, describe_pad},
};

// ---- Kernels ----------------------------------------------------------------------------------

static bool vk_gather_describe(struct gather *g, const struct msc_vk_joint_desc *d) {
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].op == d->joint->op) {
            return rows[i].describe(g, d);
        }
    }
    return false;
}

// The bits of `value` as an element of type `dtype`.
static enum msc_status bits_of(uint32_t bits[2], enum msc_dtype dtype, double value) {
    struct msc_array *number = NULL, *array = NULL;
    enum msc_status status = msc_array_create_from(&number, MSC_DTYPE_F64, 0, NULL, &value);
    MSC_TRY_OUT(status);
    MSC_TRY_OUT(msc_array_convert(&array, number, dtype));
    memset(bits, 0, 2 * sizeof(bits[0]));
    memcpy(bits, msc_array_data(array), msc_array_n_bytes(array));
out:
    msc_array_release(number);
    msc_array_release(array);
    return status;
}

static enum msc_status vk_gather_init(struct msc_vk_joint *k, struct msc_vk_backend *b,
                                      const struct msc_vk_joint_desc *d) {
    struct gather g = {0};
    int32_t numbers[5 * MAX_DIMS + 2 * MSC_MAX_DIMS + 1] = {0};
    if (d->n_y != 1 || !msc_vk_joint_has_elements(b, d) || !vk_gather_describe(&g, d)) {
        return msc_vk_joint_refuse(d);
    }
    struct msc_vk_stage *s = msc_vk_joint_stage(k, (uint64_t)msc_view_n_elements(&d->y[0]), 2);
    memcpy(numbers, g.dims, sizeof(g.dims));
    memcpy(numbers + 5 * g.n_dims, g.indices, sizeof(g.indices));
    MSC_TRY(msc_vk_joint_numbers(s, b, numbers, sizeof(numbers)));
    MSC_TRY(bits_of(s->push, d->x[0].dtype, g.fill));
    s->n_push = 2;
    const uint32_t constants[] = {b->vk->tuning.lanes,
                                  0,
                                  msc_vk_element(d->x[0].dtype),
                                  g.n_indices > 0 ? msc_vk_element(d->x[1].dtype) : 0,
                                  (uint32_t)g.n_dims,
                                  (uint32_t)g.n_indices,
                                  (uint32_t)g.mode,
                                  g.fill_operand > 0};
    s->in[1] = g.fill_operand > 0 ? g.fill_operand : 1;
    MSC_VK_CHECK_CONSTANTS(MSC_VK_GATHER, constants);
    return msc_vk_pipeline(&s->pipeline, b->vk, MSC_VK_GATHER, constants);
}

const struct msc_vk_family msc_vk_gather = {
    .name = "gather", .init = vk_gather_init, MSC_VK_JOINT_FUNCTIONS};
