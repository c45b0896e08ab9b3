// Image operators: affine grids, crops, col2im (the inverse of im2col), deformable convolutions.
#include "graph/reference/reference_internal.h"

#include <math.h>
#include <string.h>

// ---- Grids and crops --------------------------------------------------------------------------

// Points of a regular grid over [-1, 1], transformed by each batch's matrix.
enum msc_status msc_reference__affine_grid(const struct msc_reference_call *call) {
    const struct msc_view *theta = &call->operands[0], *out = &call->outputs[0];
    int n = out->n_dims - 2;
    bool align_corners;
    MSC_TRY(msc_reference__get_bool(&align_corners, call, "align_corners"));
    int64_t points = msc_dims_product(n, out->dims + 1);
    for (int64_t i = 0; i < out->dims[0] * points; i++) {
        double at[4] = {0, 0, 0, 0};
        int64_t rest = i % points;
        for (int a = n - 1; a >= 0; a--) { // a point's coordinates begin with the last axis
            int64_t length = out->dims[a + 1], k = rest % length;
            double span = align_corners ? (double)(length - 1) : (double)length;
            double first = align_corners ? -1 : -1 + 1 / (double)length;
            at[n - 1 - a] = span > 0 ? first + 2 * (double)k / span : 0;
            rest /= length;
        }
        at[n] = 1;
        for (int r = 0; r < n; r++) {
            double sum = 0;
            for (int c = 0; c <= n; c++) {
                sum +=
                    at[c] * msc_reference__get_double_at(theta, (i / points * n + r) * (n + 1) + c);
            }
            msc_reference__set_double_at(out, i * n + r, sum);
        }
    }
    return MSC_OK;
}

// Crops longer axes to their middle, and pads shorter axes with zeros on both sides.
enum msc_status msc_reference__center_crop_pad(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0], *out = &call->outputs[0];
    int64_t strides[MSC_MAX_DIMS], shifts[MSC_MAX_DIMS], n = msc_view_n_elements(out);
    size_t bytes = msc_dtype_bytes(x->dtype);
    msc_reference__strides(strides, x->n_dims, x->dims);
    for (int d = 0; d < x->n_dims; d++) {
        int64_t extra = x->dims[d] - out->dims[d];
        shifts[d] = extra >= 0 ? extra / 2 : -(-extra / 2);
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = i, from = 0;
        bool is_inside = true;
        for (int d = x->n_dims - 1; d >= 0; d--) {
            int64_t at = rest % out->dims[d] + shifts[d];
            is_inside = is_inside && at >= 0 && at < x->dims[d];
            from += at * strides[d];
            rest /= out->dims[d];
        }
        char *to = (char *)out->data + (size_t)i * bytes;
        if (is_inside) {
            memcpy(to, (const char *)x->data + (size_t)from * bytes, bytes);
        } else {
            memset(to, 0, bytes);
        }
    }
    return MSC_OK;
}

// ---- Columns ----------------------------------------------------------------------------------

struct columns {
    int n_axes;
    // counts: number of window positions
    int64_t image[MSC_MAX_DIMS], block[MSC_MAX_DIMS], counts[MSC_MAX_DIMS];
    int64_t steps[MSC_MAX_DIMS], dilations[MSC_MAX_DIMS], pads[2 * MSC_MAX_DIMS];
    int64_t n_taps, n_places;
};

// Reads a list attribute of n numbers. If the list is empty, all n are `otherwise`.
static enum msc_status reference_image_read_list(int64_t out[],
                                                 const struct msc_reference_call *call,
                                                 const char *key, int n, int64_t otherwise) {
    int found = msc_joint_attr_list(call->joint, key, out, n);
    for (int i = 0; found <= 0 && i < n; i++) {
        out[i] = otherwise;
    }
    return found <= 0 || found == n
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID, "joint %s: %s has %d numbers, expected %d",
                          call->joint->name, key, found, n);
}

static enum msc_status columns_init(struct columns *c, const struct msc_reference_call *call) {
    int n_block;
    MSC_TRY(msc_reference__param_ints(c->image, &c->n_axes, call, "image_shape", "image_shape",
                                      MSC_MAX_DIMS - 2));
    MSC_TRY(msc_reference__param_ints(c->block, &n_block, call, "block_shape", "block_shape",
                                      MSC_MAX_DIMS - 2));
    MSC_TRY(reference_image_read_list(c->steps, call, "strides", c->n_axes, 1));
    MSC_TRY(reference_image_read_list(c->dilations, call, "dilations", c->n_axes, 1));
    MSC_TRY(reference_image_read_list(c->pads, call, "pads", 2 * c->n_axes, 0));
    c->n_taps = c->n_places = 1;
    for (int a = 0; a < c->n_axes; a++) {
        int64_t extent = (c->block[a] - 1) * c->dilations[a] + 1;
        int64_t padded = c->image[a] + c->pads[a] + c->pads[c->n_axes + a];
        c->counts[a] = c->steps[a] > 0 ? (padded - extent) / c->steps[a] + 1 : 0;
        c->n_taps *= c->block[a];
        c->n_places *= c->counts[a];
    }
    if (n_block != c->n_axes || c->n_places != call->operands[0].dims[2]) {
        return MSC_FAIL(MSC_E_INVALID, "joint %s: the input has %lld columns, expected %lld",
                        call->joint->name, (long long)call->operands[0].dims[2],
                        (long long)c->n_places);
    }
    return MSC_OK;
}

// Offset in the image of tap `tap` of the window at position `place`; -1 outside the image.
static int64_t column_target(const struct columns *c, int64_t tap, int64_t place) {
    int64_t target = 0, stride = 1;
    for (int a = c->n_axes - 1; a >= 0; a--) {
        int64_t at =
            place % c->counts[a] * c->steps[a] + tap % c->block[a] * c->dilations[a] - c->pads[a];
        if (at < 0 || at >= c->image[a]) {
            return -1;
        }
        target += at * stride;
        stride *= c->image[a];
        tap /= c->block[a];
        place /= c->counts[a];
    }
    return target;
}

enum msc_status msc_reference__col2im(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0], *out = &call->outputs[0];
    struct columns c;
    MSC_TRY(columns_init(&c, call));
    int64_t area = msc_dims_product(c.n_axes, c.image), planes = out->dims[0] * out->dims[1];
    for (int64_t p = 0; p < planes; p++) {
        for (int64_t i = 0; i < area; i++) {
            msc_reference__set_double_at(out, p * area + i, 0);
        }
        for (int64_t i = 0; i < c.n_taps * c.n_places; i++) {
            int64_t to = column_target(&c, i / c.n_places, i % c.n_places);
            if (to >= 0) {
                double sum = msc_reference__get_double_at(out, p * area + to) +
                             msc_reference__get_double_at(x, p * c.n_taps * c.n_places + i);
                msc_reference__set_double_at(out, p * area + to, sum);
            }
        }
    }
    return MSC_OK;
}

// ---- Deformable convolution -------------------------------------------------------------------

struct deform {
    int64_t group, offset_group, steps[2], dilations[2], pads[4];
};

// Bilinear sample; elements outside the image are zero.
static double reference_image_sample(const struct msc_view *x, int64_t base, double row,
                                     double column) {
    row = msc_reference__within_reach(row);
    column = msc_reference__within_reach(column);
    double below[2] = {floor(row), floor(column)}, sum = 0;
    for (int i = 0; i < 4; i++) {
        int64_t r = (int64_t)below[0] + i / 2, c = (int64_t)below[1] + i % 2;
        double weight = (i / 2 ? row - below[0] : 1 - (row - below[0])) *
                        (i % 2 ? column - below[1] : 1 - (column - below[1]));
        if (r >= 0 && r < x->dims[2] && c >= 0 && c < x->dims[3]) {
            sum += weight * msc_reference__get_double_at(x, base + r * x->dims[3] + c);
        }
    }
    return sum;
}

// The contribution of one tap (kernel position) of one input channel to the output at position
// `at`.
static double deform_tap(const struct msc_reference_call *call, const struct deform *d,
                         int64_t batch, int64_t channel, const int64_t at[2], const int64_t k[2]) {
    const struct msc_view *x = &call->operands[0], *w = &call->operands[1];
    const struct msc_view *offset = &call->operands[2];
    int64_t taps = w->dims[2] * w->dims[3], tap = k[0] * w->dims[3] + k[1];
    int64_t area = offset->dims[2] * offset->dims[3], place = at[0] * offset->dims[3] + at[1];
    int64_t group = channel / (x->dims[1] / d->offset_group);
    int64_t first = ((batch * d->offset_group + group) * taps + tap) * 2 * area + place;
    double position[2];
    for (int a = 0; a < 2; a++) {
        position[a] = (double)(at[a] * d->steps[a] - d->pads[a] + k[a] * d->dilations[a]) +
                      msc_reference__get_double_at(offset, first + a * area);
    }
    double value = reference_image_sample(
        x, (batch * x->dims[1] + channel) * x->dims[2] * x->dims[3], position[0], position[1]);
    if (msc_reference__has(call, 4)) {
        int64_t mask = ((batch * d->offset_group + group) * taps + tap) * area + place;
        value *= msc_reference__get_double_at(&call->operands[4], mask);
    }
    return value;
}

static double deform_sum(const struct msc_reference_call *call, const struct deform *d,
                         int64_t batch, int64_t out_channel, const int64_t at[2]) {
    const struct msc_view *x = &call->operands[0], *w = &call->operands[1];
    int64_t in = x->dims[1] / d->group, out = w->dims[0] / d->group;
    double sum = 0;
    for (int64_t c = 0; c < in; c++) {
        for (int64_t tap = 0; tap < w->dims[2] * w->dims[3]; tap++) {
            int64_t k[2] = {tap / w->dims[3], tap % w->dims[3]};
            double weight = msc_reference__get_double_at(
                w, (out_channel * in + c) * w->dims[2] * w->dims[3] + tap);
            sum += weight * deform_tap(call, d, batch, out_channel / out * in + c, at, k);
        }
    }
    return sum;
}

enum msc_status msc_reference__deform_conv(const struct msc_reference_call *call) {
    const struct msc_view *out = &call->outputs[0];
    struct deform d;
    MSC_TRY(msc_reference__get_i64(&d.group, call, "group"));
    MSC_TRY(msc_reference__get_i64(&d.offset_group, call, "offset_group"));
    MSC_TRY(reference_image_read_list(d.steps, call, "strides", 2, 1));
    MSC_TRY(reference_image_read_list(d.dilations, call, "dilations", 2, 1));
    MSC_TRY(reference_image_read_list(d.pads, call, "pads", 4, 0));
    int64_t n = msc_view_n_elements(out);
    for (int64_t i = 0; i < n; i++) {
        int64_t at[2] = {i / out->dims[3] % out->dims[2], i % out->dims[3]};
        int64_t c = i / (out->dims[2] * out->dims[3]) % out->dims[1];
        double sum = deform_sum(call, &d, i / (out->dims[1] * out->dims[2] * out->dims[3]), c, at);
        if (msc_reference__has(call, 3)) {
            sum += msc_reference__get_double_at(&call->operands[3], c);
        }
        msc_reference__set_double_at(out, i, sum);
    }
    return MSC_OK;
}
