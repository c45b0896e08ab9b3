// Fourier transforms along an axis (DFT) and of the frames of a signal (STFT).
#include "base/alloc.h"
#include "graph/reference/reference_internal.h"
#include "kernels/vulkan/vk_joint.h"

#include <math.h>
#include <string.h>

struct fourier { // see shaders/fourier.comp
    int n_dims, k_dim;
    int64_t strides[MSC_MAX_DIMS];
    bool is_complex, is_inverse, has_window;
    int64_t length, available, stride;
};

// Reads a parameter that is absent or one constant number; *n is 0 or 1.
static bool read_number(int64_t *out, int *n, const struct msc_vk_joint_desc *d, const char *key) {
    int position = msc_joint_operand(d->joint, key);
    bool is_operand = position > 0 && position < d->n_x && d->x[position].dtype != MSC_DTYPE_NONE;
    return (!is_operand || d->x[position].data) &&
           msc_reference__param_ints(out, n, &d->call, key, key, 1) == MSC_OK;
}

static bool describe_lines(struct fourier *f, const struct msc_vk_joint_desc *d) {
    const struct msc_view *x = &d->x[0];
    int32_t strides[MSC_MAX_DIMS];
    int64_t axis = 1;
    int n_axes, n_lengths;
    bool is_half;
    if (!msc_joint_attr_bool(d->joint, "inverse", &f->is_inverse) ||
        !msc_joint_attr_bool(d->joint, "onesided", &is_half) || (f->is_inverse && is_half) ||
        !read_number(&axis, &n_axes, d, "axis") ||
        !read_number(&f->length, &n_lengths, d, "dft_length")) {
        return false;
    }
    axis += axis < 0 ? x->n_dims : 0;
    if (axis < 0 || axis >= x->n_dims - 1) {
        return false;
    }
    msc_vk_strides(strides, x->n_dims, x->dims);
    f->n_dims = x->n_dims - 1;
    f->k_dim = (int)axis;
    for (int i = 0; i < f->n_dims; i++) {
        f->strides[i] = i == axis ? 0 : strides[i];
    }
    f->is_complex = x->dims[x->n_dims - 1] == 2;
    f->available = x->dims[axis];
    f->length = n_lengths == 1 ? f->length : x->dims[axis];
    f->stride = strides[axis];
    return true;
}

static bool describe_frames(struct fourier *f, const struct msc_vk_joint_desc *d) {
    const struct msc_view *x = &d->x[0], *window = &d->x[2];
    int64_t step, length;
    int n_step, n_length;
    f->has_window = d->n_x > 2 && window->dtype != MSC_DTYPE_NONE;
    if (!read_number(&step, &n_step, d, "frame_step") || n_step != 1 ||
        !read_number(&length, &n_length, d, "frame_length")) {
        return false;
    }
    f->is_complex = x->n_dims == 3 && x->dims[2] == 2;
    f->stride = f->is_complex ? 2 : 1;
    f->length = n_length == 1   ? length
                : f->has_window ? window->dims[0]
                                : (d->y[0].dims[2] - 1) * 2;
    f->available = f->length;
    f->n_dims = 3;
    f->k_dim = 2;
    f->strides[0] = x->dims[1] * f->stride;
    f->strides[1] = step * f->stride;
    return true;
}

// Makes the shader's numbers: the dims, then cosine and sine of the angles 2 pi i / length. The
// caller frees *out (msc_free).
static enum msc_status make_numbers(int32_t **out, const struct fourier *f,
                                    const struct msc_view *y) {
    int32_t *numbers = msc_alloc_zero(2 * (size_t)(f->n_dims + f->length), sizeof(numbers[0]));
    MSC_TRY(MSC_ALLOCATED(numbers));
    for (int i = 0; i < f->n_dims; i++) {
        numbers[2 * i] = (int32_t)y->dims[i];
        numbers[2 * i + 1] = (int32_t)f->strides[i];
    }
    for (int64_t i = 0; i < f->length; i++) {
        double angle = 6.283185307179586 * (double)i / (double)f->length;
        const float part[2] = {(float)cos(angle), (float)sin(angle)};
        memcpy(numbers + 2 * (f->n_dims + i), part, sizeof(part));
    }
    *out = numbers;
    return MSC_OK;
}

static bool vk_fourier_is_possible(const struct msc_vk_joint_desc *d) {
    return d->n_y == 1 && d->x[0].dtype == MSC_DTYPE_F32 && d->y[0].dtype == MSC_DTYPE_F32 &&
           d->x[0].n_dims > 1 && msc_view_n_elements(&d->x[0]) > 0;
}

static enum msc_status vk_fourier_init(struct msc_vk_joint *k, struct msc_vk_backend *b,
                                       const struct msc_vk_joint_desc *d) {
    struct fourier f = {0};
    int32_t *numbers = NULL;
    bool is_frames = d->joint->op == MSC_OP_STFT;
    if (!vk_fourier_is_possible(d) ||
        !(is_frames ? describe_frames(&f, d) : describe_lines(&f, d)) || f.length < 1 ||
        (f.has_window && d->x[2].dtype != MSC_DTYPE_F32)) {
        return msc_vk_joint_refuse(d);
    }
    struct msc_vk_stage *s = msc_vk_joint_stage(k, (uint64_t)msc_view_n_elements(&d->y[0]) / 2, 2);
    s->in[1] = f.has_window ? 2 : MSC_VK_JOINT_ABSENT;
    s->turns = (uint64_t)f.length + MSC_MAX_DIMS;
    const int64_t push[3] = {f.length, f.available, f.stride};
    for (int i = 0; i < 3; i++) {
        s->push[i] = (uint32_t)push[i];
    }
    s->n_push = 3;
    MSC_TRY(make_numbers(&numbers, &f, &d->y[0]));
    enum msc_status status =
        msc_vk_joint_numbers(s, b, numbers, 2 * (size_t)(f.n_dims + f.length) * sizeof(numbers[0]));
    msc_free(numbers);
    MSC_TRY(status);
    const uint32_t constants[] = {b->vk->tuning.lanes, !b->vk->divides_exactly,
                                  (uint32_t)f.n_dims,  (uint32_t)f.k_dim,
                                  f.is_complex,        f.is_inverse,
                                  f.has_window};
    MSC_VK_CHECK_CONSTANTS(MSC_VK_FOURIER, constants);
    return msc_vk_pipeline(&s->pipeline, b->vk, MSC_VK_FOURIER, constants);
}

const struct msc_vk_family msc_vk_fourier = {
    .name = "Fourier transform", .init = vk_fourier_init, MSC_VK_JOINT_FUNCTIONS};
