// Operators over images: grids, crops, columns, deformable windows.
#include "graph/infer_internal.h"

#include <string.h>

enum msc_status msc_infer__affine_grid(const struct msc_infer *call) {
    struct msc_infer_tensor *out = &call->outputs[0];
    struct msc_infer_list size;
    MSC_TRY(msc_infer__list(&size, call, "size"));
    MSC_TRY(msc_infer__require_rank(call, 0, 3));
    if (size.n != 4 && size.n != 5) {
        return msc_infer__fail(call, "a size of %d numbers, expected 4 or 5", size.n);
    }
    out->dtype = call->operands[0]->dtype;
    out->n_dims = size.n;
    for (int i = 0; i < size.n - 1; i++) {
        int from = i == 0 ? 0 : i + 1; // without the channels
        if (size.state == MSC_INFER_KNOWN) {
            out->dims[i] = size.values[from];
        } else {
            MSC_TRY(msc_infer__fresh(&out->dims[i], call, 0, i));
        }
    }
    out->dims[size.n - 1] = msc_infer__number(size.n - 2);
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
        return msc_infer__fail(call, "a shape of %d numbers for %d axes", shape.n, n);
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
        return msc_infer__fail(call, "an image of %d dimensions", image.n);
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
    struct msc_dim taps;
    MSC_TRY(msc_infer__product(&taps, call, block.values, 0, block.n));
    return msc_dim_binary(&out->dims[1], call->graph, "FloorDiv", x->dims[1], taps);
}

enum msc_status msc_infer__deform_conv(const struct msc_infer *call) {
    const struct msc_infer_tensor *offset = call->operands[2];
    struct msc_infer_tensor *out = &call->outputs[0];
    for (int i = 0; i < 3; i++) {
        MSC_TRY(msc_infer__require_rank(call, i, 4));
    }
    // There is an offset for every output position.
    msc_infer__copy(out, call->operands[0]);
    out->dims[1] = call->operands[1]->dims[0];
    out->dims[2] = offset->dims[2];
    out->dims[3] = offset->dims[3];
    return MSC_OK;
}
