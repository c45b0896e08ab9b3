// Resizing that the fast family does not support: along any axes, of any type, cropped, or with an
// antialiasing filter.
#include "base/alloc.h"
#include "graph/reference/reference_resize.h"
#include "kernels/vulkan/vk_joint.h"

#include <string.h>

// The lists that shaders/resize_plain.comp reads; built here step by step.
struct lists {
    int32_t *numbers;
    size_t n, capacity;
    int64_t most; // product over the axes of the maximum taps per coordinate
    float extrapolation;
};

static enum msc_status vk_resize_plain_add(struct lists *l, int32_t a, int32_t b) {
    MSC_TRY(msc_grow(&l->numbers, &l->capacity, l->n + 2, sizeof(l->numbers[0])));
    l->numbers[l->n++] = a;
    l->numbers[l->n++] = b;
    return MSC_OK;
}

static enum msc_status add_tap(struct lists *l, int64_t at, float weight) {
    int32_t bits;
    memcpy(&bits, &weight, sizeof(bits));
    return vk_resize_plain_add(l, (int32_t)at, bits);
}

// Adds one row per axis, and space for the head of each output coordinate: the number of its taps
// and the index of the first tap.
static enum msc_status add_heads(struct lists *l, const struct msc_view *x,
                                 const struct msc_view *y) {
    int32_t strides[MSC_MAX_DIMS];
    size_t n = 3 * (size_t)y->n_dims;
    msc_vk_strides(strides, x->n_dims, x->dims);
    for (int i = 0; i < y->n_dims; i++) {
        n += 2 * (size_t)y->dims[i];
    }
    MSC_TRY(msc_grow(&l->numbers, &l->capacity, n, sizeof(l->numbers[0])));
    l->n = n;
    for (int i = 0, begin = 3 * y->n_dims; i < y->n_dims; i++) {
        const int32_t row[3] = {(int32_t)y->dims[i], strides[i], begin};
        memcpy(l->numbers + 3 * i, row, sizeof(row));
        begin += 2 * (int)y->dims[i];
    }
    return MSC_OK;
}

// Sets the head of output coordinate o of the axis. The `count` taps that are added next belong to
// this coordinate.
static void begin_taps(struct lists *l, int axis, int64_t o, int64_t count) {
    int32_t *head = l->numbers + l->numbers[3 * axis + 2] + 2 * o;
    head[0] = (int32_t)count;
    head[1] = (int32_t)l->n;
}

// ---- Taps -------------------------------------------------------------------------------------

static enum msc_status add_filtered(struct lists *l, const struct msc_vk_joint_desc *d) {
    const struct msc_view *y = &d->y[0];
    struct msc_resize_filter f;
    MSC_TRY(msc_resize_filter_init(&f, &d->call));
    l->extrapolation = f.extrapolation;
    for (int a = 0; a < y->n_dims; a++) {
        int64_t from = d->x[0].dims[a], most = 1;
        for (int64_t o = 0; o < y->dims[a]; o++) {
            struct msc_resize_span s = msc_resize_filter_span(&f, a, o);
            begin_taps(l, a, o, s.last - s.first + 1);
            for (int64_t i = s.first; i <= s.last; i++) {
                int64_t at = i < 0 ? 0 : i >= from ? from - 1 : i;
                MSC_TRY(add_tap(l, at, (float)msc_resize_filter_weight(&f, &s, i)));
            }
            most = s.last - s.first + 1 > most ? s.last - s.first + 1 : most;
        }
        l->most *= most;
    }
    return MSC_OK;
}

static enum msc_status add_found(struct lists *l, const struct msc_vk_joint_desc *d) {
    const struct msc_view *y = &d->y[0];
    const struct msc_resize_taps *by_axis[MSC_MAX_DIMS];
    struct msc_resize_taps *found;
    enum msc_status status = MSC_OK;
    MSC_TRY(msc_resize_find_taps(&found, by_axis, &l->extrapolation, &d->call));
    for (int a = 0; a < y->n_dims; a++) {
        int most = 1;
        for (int64_t o = 0; o < y->dims[a]; o++) {
            const struct msc_resize_taps *t = &by_axis[a][o];
            begin_taps(l, a, o, t->n);
            for (int i = 0; i < t->n; i++) {
                MSC_TRY_OUT(add_tap(l, t->at[i], t->weights[i]));
            }
            most = t->n > most ? t->n : most;
        }
        l->most *= most;
    }
out:
    msc_free(found);
    return status;
}

// ---- Kernels ----------------------------------------------------------------------------------

// True if all parameters are constant and floats can represent all values of the element type.
static bool vk_resize_plain_is_possible(const struct msc_vk_backend *b,
                                        const struct msc_vk_joint_desc *d) {
    enum msc_dtype dtype = d->x[0].dtype;
    bool is_small = dtype == MSC_DTYPE_I8 || dtype == MSC_DTYPE_U8;
    bool is_filtered = d->joint->op == MSC_OP_RESIZE_ANTIALIAS;
    for (int i = 1; i < d->n_x; i++) {
        if (d->x[i].dtype != MSC_DTYPE_NONE && !d->x[i].data) {
            return false;
        }
    }
    return b->vk->has_int64 && d->n_y == 1 && d->y[0].n_dims > 0 && d->y[0].dtype == dtype &&
           (msc_vk_is_real(dtype) || (is_small && !is_filtered)) &&
           msc_view_n_elements(&d->x[0]) > 0;
}

static enum msc_status vk_resize_plain_add_stage(struct msc_vk_joint *k, struct msc_vk_backend *b,
                                                 const struct msc_vk_joint_desc *d,
                                                 struct lists *l) {
    const struct msc_view *y = &d->y[0];
    MSC_TRY(add_heads(l, &d->x[0], y));
    MSC_TRY(d->joint->op == MSC_OP_RESIZE_ANTIALIAS ? add_filtered(l, d) : add_found(l, d));
    struct msc_vk_stage *s = msc_vk_joint_stage(k, (uint64_t)msc_view_n_elements(y), 1);
    s->turns = (uint64_t)(l->most * (1 + 2 * y->n_dims) + 2 * y->n_dims);
    s->push[0] = (uint32_t)l->most;
    memcpy(&s->push[1], &l->extrapolation, sizeof(l->extrapolation));
    s->n_push = 2;
    MSC_TRY(msc_vk_joint_numbers(s, b, l->numbers, l->n * sizeof(l->numbers[0])));
    const uint32_t constants[] = {b->vk->tuning.lanes, 0, msc_vk_element(y->dtype),
                                  (uint32_t)y->n_dims};
    MSC_VK_CHECK_CONSTANTS(MSC_VK_RESIZE_PLAIN, constants);
    return msc_vk_pipeline(&s->pipeline, b->vk, MSC_VK_RESIZE_PLAIN, constants);
}

static enum msc_status vk_resize_plain_init(struct msc_vk_joint *k, struct msc_vk_backend *b,
                                            const struct msc_vk_joint_desc *d) {
    struct lists l = {.most = 1};
    if (!vk_resize_plain_is_possible(b, d)) {
        return msc_vk_joint_refuse(d);
    }
    enum msc_status status = vk_resize_plain_add_stage(k, b, d, &l);
    msc_free(l.numbers);
    return status;
}

const struct msc_vk_family msc_vk_resize_plain = {
    .name = "plain resize", .init = vk_resize_plain_init, MSC_VK_JOINT_FUNCTIONS};
