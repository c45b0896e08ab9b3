// Operators along lines of a tensor: reductions of any type, argmin and argmax, cumulative sums
// and products, softmax of half floats, top-k.
#include "kernels/vulkan/vk_joint.h"

#include <string.h>

// Numbered as in shaders/along.comp.
enum kind {
    SUM,
    MEAN,
    MAXIMUM,
    MINIMUM,
    PRODUCT,
    GREATEST_PLACE,
    LEAST_PLACE,
    RUNNING_SUM,
    HARDMAX,
    SOFTMAX,
    LOG_SOFTMAX,
    RUNNING_PRODUCT,
    TOP,
};
enum { TAKES_LAST = 1, IS_EXCLUSIVE = 2, IS_BACKWARDS = 4 };

static const struct {
    enum msc_op op;
    enum kind kind;
} rows[] = {
    {MSC_OP_SUM, SUM},
    {MSC_OP_MEAN, MEAN},
    {MSC_OP_MAX, MAXIMUM},
    {MSC_OP_MIN, MINIMUM},
    {MSC_OP_PROD, PRODUCT},
    {MSC_OP_ARGMAX, GREATEST_PLACE},
    {MSC_OP_ARGMIN, LEAST_PLACE},
    {MSC_OP_CUMSUM, RUNNING_SUM},
    {MSC_OP_CUMPROD, RUNNING_PRODUCT},
    {MSC_OP_HARDMAX, HARDMAX},
    {MSC_OP_SOFTMAX, SOFTMAX},
    {MSC_OP_LOG_SOFTMAX, LOG_SOFTMAX},
    {MSC_OP_TOPK, TOP},
};

static bool find_kind(enum kind *out, enum msc_op op) {
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].op == op) {
            *out = rows[i].kind;
            return true;
        }
    }
    return false;
}

// Reads the axes along which lines run: a list for reductions (an empty list means all axes),
// otherwise one axis.
static bool vk_along_read_axes(bool is_gone[MSC_MAX_DIMS], const struct msc_vk_joint_desc *d,
                               enum kind kind) {
    int n_dims = d->x[0].n_dims;
    int64_t axes[MSC_MAX_DIMS];
    int n = msc_joint_attr_list(d->joint, "axis", axes, MSC_MAX_DIMS);
    if (kind > PRODUCT) {
        axes[0] = msc_vk_joint_axis(d, "axis", n_dims);
        n = 1;
    } else if (n < 0 || n > MSC_MAX_DIMS || (d->n_x > 1 && d->x[1].dtype != MSC_DTYPE_NONE)) {
        return false;
    }
    for (int i = 0; i < n_dims; i++) {
        is_gone[i] = n == 0;
    }
    for (int i = 0; i < n; i++) {
        int64_t axis = axes[i] < 0 && kind <= PRODUCT ? axes[i] + n_dims : axes[i];
        if (axis < 0 || axis >= n_dims) {
            return false;
        }
        is_gone[axis] = true;
    }
    return true;
}

static uint32_t read_flags(const struct msc_vk_joint_desc *d) {
    static const struct {
        const char *key;
        uint32_t flag;
    } flags[] = {
        {"select_last_index", TAKES_LAST}, {"exclusive", IS_EXCLUSIVE}, {"reverse", IS_BACKWARDS}};
    uint32_t all = 0;
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        bool is_set;
        all |= msc_joint_attr_bool(d->joint, flags[i].key, &is_set) && is_set ? flags[i].flag : 0;
    }
    return all;
}

struct lines {
    int n_kept, n_gone;
    int32_t numbers[MSC_MAX_DIMS][3];
    int64_t n, count; // number of lines and of elements per line
};

// Finds the lengths and strides of lines and kept dims. If each line gives one number, the output
// has only the kept dims.
static struct lines cut_lines(const struct msc_view *x, const struct msc_view *y,
                              const bool is_gone[], bool is_one) {
    int32_t in[MSC_MAX_DIMS], out[MSC_MAX_DIMS];
    struct lines l = {.n = 1, .count = 1};
    int64_t stride = 1;
    msc_vk_strides(in, x->n_dims, x->dims);
    if (!is_one) {
        msc_vk_strides(out, y->n_dims, y->dims);
    }
    for (int i = x->n_dims - 1; is_one && i >= 0; i--) {
        out[i] = is_gone[i] ? 0 : (int32_t)stride;
        stride *= is_gone[i] ? 1 : x->dims[i];
    }
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < x->n_dims; i++) {
            if (is_gone[i] == (pass == 1)) {
                int32_t *row = l.numbers[l.n_kept + l.n_gone];
                row[0] = (int32_t)x->dims[i];
                row[1] = in[i];
                row[2] = out[i];
                *(pass == 1 ? &l.count : &l.n) *= x->dims[i];
                *(pass == 1 ? &l.n_gone : &l.n_kept) += 1;
            }
        }
    }
    return l;
}

static bool vk_along_is_possible(const struct msc_vk_backend *b, const struct msc_vk_joint_desc *d,
                                 enum kind kind) {
    bool is_real = msc_vk_is_real(d->x[0].dtype);
    bool needs_real = kind == SOFTMAX || kind == LOG_SOFTMAX || kind == HARDMAX;
    return msc_vk_joint_has_elements(b, d) && d->n_y == (kind == TOP ? 2 : 1) &&
           (is_real || !needs_real) && msc_view_n_elements(&d->x[0]) > 0;
}

static enum msc_status vk_along_init(struct msc_vk_joint *k, struct msc_vk_backend *b,
                                     const struct msc_vk_joint_desc *d) {
    enum kind kind;
    bool is_gone[MSC_MAX_DIMS], is_largest = true;
    if (!find_kind(&kind, d->joint->op) || !vk_along_is_possible(b, d, kind) ||
        !vk_along_read_axes(is_gone, d, kind)) {
        return msc_vk_joint_refuse(d);
    }
    msc_joint_attr_bool(d->joint, "largest", &is_largest);
    struct lines l = cut_lines(&d->x[0], &d->y[0], is_gone, kind <= LEAST_PLACE);
    struct msc_vk_stage *s = msc_vk_joint_stage(k, (uint64_t)l.n, 1);
    MSC_TRY(msc_vk_joint_numbers(s, b, l.numbers, sizeof(l.numbers)));
    s->push[0] = (uint32_t)l.count;
    s->push[1] = kind == TOP ? (uint32_t)(msc_view_n_elements(&d->y[0]) / l.n) : 0;
    s->n_push = 2;
    s->turns = (uint64_t)(l.count * (1 + l.n_gone)) * (kind == TOP ? s->push[1] : 3);
    const uint32_t constants[] = {b->vk->tuning.lanes,
                                  !b->vk->divides_exactly,
                                  kind == TOP ? !is_largest : (uint32_t)kind,
                                  msc_vk_element(d->x[0].dtype),
                                  msc_vk_element(d->y[0].dtype),
                                  (uint32_t)l.n_kept,
                                  (uint32_t)l.n_gone,
                                  !msc_vk_is_real(d->x[0].dtype),
                                  read_flags(d)};
    MSC_VK_CHECK_CONSTANTS(MSC_VK_ALONG, constants);
    MSC_VK_CHECK_CONSTANTS(MSC_VK_ALONG_TOPK, constants);
    return msc_vk_pipeline(&s->pipeline, b->vk, kind == TOP ? MSC_VK_ALONG_TOPK : MSC_VK_ALONG,
                           constants);
}

const struct msc_vk_family msc_vk_along = {
    .name = "lines", .init = vk_along_init, MSC_VK_JOINT_FUNCTIONS};
