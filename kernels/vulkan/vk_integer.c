// Convolutions and matrix products on bytes that models quantise themselves. The result is int32
// or, if the operator has scales, bytes.
#include "kernels/lowering/lowering.h"
#include "kernels/vulkan/vk_plain.h"

#include <string.h>

// The operands that shaders/integer.comp binds before y.
enum { A, SCALE_A, ZERO_A, B, SCALE_B, ZERO_B, SCALE_Y, ZERO_Y, BIAS, N_OPERANDS };

// The maximum number of products per sum: a sum of more might not fit int32.
#define MAX_COUNT (INT32_MAX / (255 * 255))

// [1 if the operator has scales, otherwise 0][operand] the operand's index in the joint
static const int positions[2][N_OPERANDS] = {
    {0, MSC_VK_JOINT_ABSENT, 2, 1, MSC_VK_JOINT_ABSENT, 3, MSC_VK_JOINT_ABSENT, MSC_VK_JOINT_ABSENT,
     MSC_VK_JOINT_ABSENT},
    {0, 1, 2, 3, 4, 5, 6, 7, 8},
};

static bool is_scaled(const struct msc_vk_joint_desc *d) {
    return d->joint->op == MSC_OP_QLINEAR_CONV || d->joint->op == MSC_OP_QLINEAR_MATMUL;
}

// The view of an operand; NULL if it is absent.
static const struct msc_view *vk_integer_find(const struct msc_vk_joint_desc *d, int operand) {
    int at = positions[is_scaled(d)][operand];
    return at < d->n_x && d->x[at].dtype != MSC_DTYPE_NONE ? &d->x[at] : NULL;
}

static bool is_byte(enum msc_dtype dtype) {
    return dtype == MSC_DTYPE_I8 || dtype == MSC_DTYPE_U8;
}

// True if the operands have a supported combination of types.
static bool vk_integer_is_possible(const struct msc_vk_backend *b,
                                   const struct msc_vk_joint_desc *d) {
    enum msc_dtype y = d->y[0].dtype;
    const struct msc_view *scale = vk_integer_find(d, SCALE_Y);
    enum msc_dtype scales = scale ? scale->dtype : MSC_DTYPE_NONE;
    enum msc_dtype wanted[N_OPERANDS] = {
        [SCALE_A] = scales, [ZERO_A] = d->x[0].dtype, [SCALE_B] = scales, [SCALE_Y] = scales,
        [ZERO_Y] = y,       [BIAS] = MSC_DTYPE_I32};
    if (d->n_y != 1 || !msc_vk_joint_has_elements(b, d) || !vk_integer_find(d, B) ||
        (is_scaled(d) ? !is_byte(y) || !scale || !msc_vk_is_real(scales) : y != MSC_DTYPE_I32)) {
        return false;
    }
    wanted[A] = d->x[0].dtype;
    wanted[B] = wanted[ZERO_B] = vk_integer_find(d, B)->dtype;
    for (int i = 0; i < N_OPERANDS; i++) {
        const struct msc_view *x = vk_integer_find(d, i);
        if ((x && x->dtype != wanted[i]) ||
            (!x && is_scaled(d) && i < ZERO_Y && i != ZERO_A && i != ZERO_B)) {
            return false;
        }
    }
    return is_byte(wanted[A]) && is_byte(wanted[B]);
}

// Adds the stage (dispatch) of the kernel; the caller sets its numbers.
static enum msc_status vk_integer_add_stage(struct msc_vk_stage **out, struct msc_vk_joint *k,
                                            struct msc_vk_backend *b,
                                            const struct msc_vk_joint_desc *d,
                                            enum msc_vk_shader shader, int n_stack) {
    uint32_t there = 0, many = 0;
    struct msc_vk_stage *s = msc_vk_joint_stage(k, (uint64_t)msc_view_n_elements(&d->y[0]), 0);
    s->n_in = N_OPERANDS;
    for (int i = 0; i < N_OPERANDS; i++) {
        const struct msc_view *x = vk_integer_find(d, i);
        s->in[i] = x ? positions[is_scaled(d)][i] : MSC_VK_JOINT_ABSENT;
        there |= x ? 1u << i : 0;
        many |= x && msc_view_n_elements(x) != 1 ? 1u << i : 0;
    }
    const struct msc_view *scale = vk_integer_find(d, SCALE_Y);
    const uint32_t constants[] = {b->vk->tuning.lanes,
                                  !b->vk->divides_exactly,
                                  msc_vk_element(d->x[0].dtype),
                                  msc_vk_element(vk_integer_find(d, B)->dtype),
                                  msc_vk_element(d->y[0].dtype),
                                  scale ? msc_vk_element(scale->dtype) : 0,
                                  there,
                                  many,
                                  (uint32_t)n_stack};
    *out = s;
    MSC_VK_CHECK_CONSTANTS(MSC_VK_INTEGER_CONV, constants);
    MSC_VK_CHECK_CONSTANTS(MSC_VK_INTEGER_MATMUL, constants);
    return msc_vk_pipeline(&s->pipeline, b->vk, shader, constants);
}

// ---- Convolutions -----------------------------------------------------------------------------

// Sets the strides of x and y if they are NHWC. By default, a window has NCHW strides.
static bool set_layouts(struct msc_window *w, const struct msc_vk_joint_desc *d) {
    const struct msc_view *x = &d->x[0], *y = &d->y[0];
    const char *layout = msc_joint_attr(d->joint, "data_layout");
    int64_t strides[MSC_MAX_DIMS];
    bool is_plain = x->layout == MSC_LAYOUT_NCHW && y->layout == MSC_LAYOUT_NCHW;
    if (is_plain || !layout || strncmp(layout, "NC", 2) != 0) {
        return is_plain;
    }
    msc_lowering_strides(strides, x->n_dims, x->dims, x->layout);
    w->in_batch_stride = strides[0];
    w->in_channel_stride = strides[1];
    memcpy(w->in_strides + 3 - w->n_axes, strides + 2, (size_t)w->n_axes * sizeof(strides[0]));
    msc_lowering_strides(strides, y->n_dims, y->dims, y->layout);
    w->out_batch_stride = strides[0];
    w->out_channel_stride = strides[1];
    memcpy(w->out_strides + 3 - w->n_axes, strides + 2, (size_t)w->n_axes * sizeof(strides[0]));
    return true;
}

static enum msc_status conv_init(struct msc_vk_joint *k, struct msc_vk_backend *b,
                                 const struct msc_vk_joint_desc *d) {
    struct msc_conv c;
    struct msc_vk_stage *s;
    int32_t numbers[MSC_VK_WINDOW_NUMBERS] = {0};
    if (!vk_integer_is_possible(b, d)) {
        return msc_vk_joint_refuse(d);
    }
    struct msc_view operands[2] = {d->x[0], *vk_integer_find(d, B)};
    struct msc_reference_call call = d->call;
    call.operands = operands;
    call.n_operands = 2;
    MSC_TRY(msc_reference__conv_init(&c, &call));
    if (!set_layouts(&c.window, d) || msc_vk_conv_turns(&c) > 4 * MAX_COUNT) {
        return msc_vk_joint_refuse(d);
    }
    msc_vk_put_conv(numbers, &c);
    MSC_TRY(vk_integer_add_stage(&s, k, b, d, MSC_VK_INTEGER_CONV, 0));
    s->turns = msc_vk_conv_turns(&c);
    s->n_push = 3; // the other push constants are only for matrices
    return msc_vk_joint_numbers(s, b, numbers, sizeof(numbers));
}

// ---- Products of matrices ---------------------------------------------------------------------

static enum msc_status matmul_init(struct msc_vk_joint *k, struct msc_vk_backend *b,
                                   const struct msc_vk_joint_desc *d) {
    int32_t strides[2][MSC_MAX_DIMS], numbers[MSC_MAX_DIMS][4] = {{0}};
    struct msc_vk_stage *s;
    if (!vk_integer_is_possible(b, d)) {
        return msc_vk_joint_refuse(d);
    }
    const struct msc_view *x[2] = {&d->x[0], vk_integer_find(d, B)}, *y = &d->y[0];
    int64_t rows = x[0]->n_dims > 1 ? x[0]->dims[x[0]->n_dims - 2] : 1;
    int64_t columns = x[1]->n_dims > 1 ? x[1]->dims[x[1]->n_dims - 1] : 1;
    int64_t count = x[0]->dims[x[0]->n_dims - 1];
    int n_stack = y->n_dims - (x[0]->n_dims > 1) - (x[1]->n_dims > 1);
    if (count > MAX_COUNT) {
        return msc_vk_joint_refuse(d);
    }
    for (int f = 0; f < 2; f++) {
        struct msc_view stack = *x[f];
        stack.n_dims = stack.n_dims > 2 ? stack.n_dims - 2 : 0;
        msc_vk_broadcast_strides(strides[f], &stack, n_stack);
    }
    for (int i = 0; i < n_stack; i++) {
        numbers[i][0] = (int32_t)y->dims[i];
        numbers[i][1] = (int32_t)(strides[0][i] * rows * count);
        numbers[i][2] = (int32_t)(strides[1][i] * columns * count);
    }
    MSC_TRY(vk_integer_add_stage(&s, k, b, d, MSC_VK_INTEGER_MATMUL, n_stack));
    s->turns = (uint64_t)(count + n_stack + 1);
    const int64_t push[3] = {rows, columns, count};
    for (int i = 0; i < 3; i++) {
        s->push[i] = (uint32_t)push[i];
    }
    s->n_push = 3;
    return msc_vk_joint_numbers(s, b, numbers, sizeof(numbers));
}

const struct msc_vk_family msc_vk_integer_conv = {
    .name = "products of bytes", .init = conv_init, .takes_layouts = true, MSC_VK_JOINT_FUNCTIONS};

const struct msc_vk_family msc_vk_integer_matmul = {
    .name = "products of bytes", .init = matmul_init, MSC_VK_JOINT_FUNCTIONS};
