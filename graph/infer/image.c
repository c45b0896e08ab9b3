// Infers the outputs of image operators: affine grids, crops, image-to-column conversions,
// deformable convolutions.
#include "graph/infer/infer_internal.h"

#include <string.h>

enum msc_status msc_infer__affine_grid(const struct msc_infer *call) {
    struct msc_infer_tensor *out = &call->outputs[0];
    struct msc_infer_list size;
    MSC_TRY(msc_infer__list(&size, call, "size"));
    MSC_TRY(msc_infer__require_rank(call, 0, 3));
    if (size.n != 4 && size.n != 5) {
        return msc_infer__fail(call, "size has %d numbers, expected 4 or 5", size.n);
    }
    out->dtype = call->operands[0]->dtype;
    out->n_dims = size.n;
    for (int i = 0; i < size.n - 1; i++) {
        int from = i == 0 ? 0 : i + 1; // skips the number of channels, size[1]
        if (size.state == MSC_INFER_KNOWN) {
            out->dims[i] = size.values[from];
        } else {
            MSC_TRY(msc_infer__fresh(&out->dims[i], call, 0, i));
        }
    }
    out->dims[size.n - 1] = msc_infer__number(size.n - 2);
    const struct msc_infer_tensor *theta = call->operands[0];
    if (!msc_infer__agree(theta->dims[0], out->dims[0]) ||
        !msc_infer__agree(theta->dims[1], msc_infer__number(size.n - 2)) ||
        !msc_infer__agree(theta->dims[2], msc_infer__number(size.n - 1))) {
        char text[MSC_INFER_TEXT_BYTES];
        return msc_infer__fail(call, "affine maps of %s do not match a size of %d numbers",
                               msc_infer__shape_text(text, call, theta), size.n);
    }
    return MSC_OK;
}

enum msc_status msc_infer__center_crop_pad(const struct msc_infer *call) {
    struct msc_infer_tensor *out = &call->outputs[0];
    struct msc_infer_list shape;
    int64_t axes[MSC_MAX_DIMS];
    int n = msc_joint_attr_list(call->joint, "axes", axes, MSC_MAX_DIMS);
    msc_infer__copy(out, call->operands[0]);
    MSC_TRY(msc_infer__list(&shape, call, "shape"));
    n = n > 0 ? n : out->n_dims;
    if (shape.n >= 0 && shape.n != n) {
        return msc_infer__fail(call, "shape has %d numbers for %d axes", shape.n, n);
    }
    bool are_given = msc_infer__text(call, "axes")[0] != '\0';
    for (int i = 0; i < n; i++) {
        int axis;
        MSC_TRY(msc_infer__check_axis(&axis, call, are_given ? axes[i] : i, out->n_dims));
        if (shape.state == MSC_INFER_KNOWN) {
            out->dims[axis] = shape.values[i];
        } else {
            MSC_TRY(msc_infer__fresh(&out->dims[axis], call, 0, axis));
        }
    }
    return MSC_OK;
}

enum msc_status msc_infer__col2im(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0];
    struct msc_infer_tensor *out = &call->outputs[0];
    struct msc_infer_list image, block;
    MSC_TRY(msc_infer__require_rank(call, 0, 3));
    MSC_TRY(msc_infer__list(&image, call, "image_shape"));
    MSC_TRY(msc_infer__list(&block, call, "block_shape"));
    if (image.n < 1 || image.n + 2 > MSC_MAX_DIMS) {
        return msc_infer__fail(call, "image has %d spatial dimensions, which is not supported",
                               image.n);
    }
    out->dtype = x->dtype;
    out->n_dims = image.n + 2;
    out->dims[0] = x->dims[0];
    for (int i = 0; i < image.n; i++) {
        if (image.state == MSC_INFER_KNOWN) {
            out->dims[i + 2] = image.values[i];
        } else {
            MSC_TRY(msc_infer__fresh(&out->dims[i + 2], call, 0, i + 2));
        }
    }
    if (block.state != MSC_INFER_KNOWN) {
        return msc_infer__fresh(&out->dims[1], call, 0, 1);
    }
    struct msc_dim taps, left;
    if (block.n != image.n) {
        return msc_infer__fail(call, "blocks have %d dimensions, but the image has %d", block.n,
                               image.n);
    }
    MSC_TRY(msc_infer__product(&taps, call, block.values, 0, block.n));
    MSC_TRY(msc_dim_binary(&left, call->graph, "FloorMod", x->dims[1], taps));
    if (msc_infer__is_number(left) && left.value != 0) {
        return msc_infer__fail(call, "%lld rows are not divisible into blocks of %lld",
                               (long long)x->dims[1].value, (long long)taps.value);
    }
    return msc_dim_binary(&out->dims[1], call->graph, "FloorDiv", x->dims[1], taps);
}

static bool divides(int64_t n, struct msc_dim length) {
    return !msc_infer__is_number(length) || length.value % n == 0;
}

// Checks the shapes. For each position in the window and each offset group, the offsets have two
// channels and the mask has one channel.
static enum msc_status check_deform_conv(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0], *w = call->operands[1];
    const struct msc_infer_tensor *offset = call->operands[2];
    const struct msc_infer_tensor *mask = call->n_operands > 4 ? call->operands[4] : NULL;
    int64_t group, n_offsets;
    struct msc_dim taps, channels;
    MSC_TRY(msc_infer__int(&group, call, "group"));
    MSC_TRY(msc_infer__int(&n_offsets, call, "offset_group"));
    if (group < 1 || group > INT32_MAX || n_offsets < 1 || n_offsets > INT32_MAX) {
        return msc_infer__fail(call,
                               "%lld groups and %lld offset groups, expected 1 or more of each",
                               (long long)group, (long long)n_offsets);
    }
    MSC_TRY(msc_infer__product(&taps, call, w->dims, 2, 4));
    MSC_TRY(msc_dim_binary(&taps, call->graph, "Mul", taps, msc_infer__number(n_offsets)));
    MSC_TRY(msc_dim_binary(&channels, call->graph, "Mul", w->dims[1], msc_infer__number(group)));
    bool fits = msc_infer__agree(channels, x->dims[1]) &&
                msc_infer__agree(x->dims[0], offset->dims[0]) && divides(group, w->dims[0]) &&
                divides(n_offsets, x->dims[1]);
    if (fits && mask != NULL) {
        fits = mask->n_dims == 4 && msc_infer__agree(mask->dims[1], taps);
        for (int i = 0; fits && i < 4; i++) {
            fits = i == 1 || msc_infer__agree(mask->dims[i], offset->dims[i]);
        }
    }
    MSC_TRY(msc_dim_binary(&taps, call->graph, "Mul", taps, msc_infer__number(2)));
    if (!fits || !msc_infer__agree(offset->dims[1], taps)) {
        char a[MSC_INFER_TEXT_BYTES], b[MSC_INFER_TEXT_BYTES];
        return msc_infer__fail(call, "weight of %s, offsets of %s and mask do not match the input",
                               msc_infer__shape_text(a, call, w),
                               msc_infer__shape_text(b, call, offset));
    }
    bool has_bias = call->n_operands > 3 && call->operands[3] != NULL;
    if (has_bias && (call->operands[3]->n_dims != 1 ||
                     !msc_infer__agree(call->operands[3]->dims[0], w->dims[0]))) {
        return msc_infer__fail(call, "the bias needs one element for each output channel");
    }
    return MSC_OK;
}

enum msc_status msc_infer__deform_conv(const struct msc_infer *call) {
    const struct msc_infer_tensor *offset = call->operands[2];
    struct msc_infer_tensor *out = &call->outputs[0];
    for (int i = 0; i < 3; i++) {
        MSC_TRY(msc_infer__require_rank(call, i, 4));
    }
    MSC_TRY(check_deform_conv(call));
    // The output has the spatial shape of the offsets.
    msc_infer__copy(out, call->operands[0]);
    out->dims[1] = call->operands[1]->dims[0];
    out->dims[2] = offset->dims[2];
    out->dims[3] = offset->dims[3];
    return MSC_OK;
}
