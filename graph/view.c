#include "graph/view.h"

#include <assert.h>

int64_t msc_view_n_elements(const struct msc_view *v) {
    return msc_dims_product(v->n_dims, v->dims);
}

size_t msc_view_n_bytes(const struct msc_view *v) {
    return (size_t)msc_view_n_elements(v) * msc_dtype_bytes(v->dtype);
}

struct msc_view msc_view_of_array(const struct msc_array *array) {
    struct msc_view v = {
        .data = msc_array_data(array),
        .dtype = msc_array_dtype(array),
        .layout = MSC_LAYOUT_NCHW,
        .n_dims = msc_array_n_dims(array),
    };
    const int64_t *dims = msc_array_dims(array);
    for (int i = 0; i < v.n_dims; i++) {
        v.dims[i] = dims[i];
    }
    return v;
}

void msc_view_physical(const struct msc_view *v, int64_t dims[MSC_MAX_DIMS],
                       int axes[MSC_MAX_DIMS]) {
    assert(v->layout == MSC_LAYOUT_NCHW || v->n_dims >= 3);
    for (int i = 0; i < v->n_dims; i++) {
        int axis = i;
        if (v->layout == MSC_LAYOUT_NHWC && i > 0) {
            axis = i == v->n_dims - 1 ? 1 : i + 1;
        }
        axes[i] = axis;
        dims[i] = v->dims[axis];
    }
}

void msc_view_split(int64_t *outer, int64_t *inner, const struct msc_view *v, int axis) {
    int64_t dims[MSC_MAX_DIMS];
    int axes[MSC_MAX_DIMS], at = 0;
    msc_view_physical(v, dims, axes);
    while (axes[at] != axis) {
        at++;
    }
    *outer = msc_dims_product(at, dims);
    *inner = msc_dims_product(v->n_dims - at - 1, dims + at + 1);
}

void msc_view_dequantize(float out[], const struct msc_view *v) {
    int64_t outer, inner;
    if (!msc_quant_is_by_channel(v->quant)) {
        msc_dequantize_run(out, v->data, v->dtype, msc_view_n_elements(v), v->quant);
        return;
    }
    msc_view_split(&outer, &inner, v, v->quant->axis);
    msc_dequantize_channels(out, v->data, v->dtype, outer, inner, v->quant);
}
