// A view: a tensor's elements as a kernel reads or writes them.
//
// `dims` are in the graph's axis order, whatever the layout; the layout defines the order in which
// elements are stored. All views are contiguous. Example: with dims [2,3,4,5] ("NCHW") and
// MSC_LAYOUT_NHWC, element (n,c,h,w) is at ((n*4 + h)*5 + w)*3 + c.
#ifndef MSC_GRAPH_VIEW_H
#define MSC_GRAPH_VIEW_H

#include "data/array.h"
#include "graph/quant.h"

MSC_PUBLIC_BEGIN

enum msc_layout {
    MSC_LAYOUT_NCHW, // row-major: channels first; also for tensors without channels
    MSC_LAYOUT_NHWC, // axis 1 is stored last: channels last; for 3 or more dims
};

struct msc_view {
    void *data; // address in the backend's memory; on `cpu`, a host pointer
    enum msc_dtype dtype;
    enum msc_layout layout;
    int n_dims;
    int64_t dims[MSC_MAX_DIMS];
    // If not NULL, the elements are integers q (uint8 or int8) that represent (q - zero point) *
    // scale. There is one scale and zero point, or one for each channel along quant->axis.
    const struct msc_quant *quant;
};

int64_t msc_view_n_elements(const struct msc_view *v);
size_t msc_view_n_bytes(const struct msc_view *v);
// A view of an array's elements, in row-major order.
struct msc_view msc_view_of_array(const struct msc_array *array);
// Gives the dims in storage order, and for each of them the axis in the graph's order.
void msc_view_physical(const struct msc_view *v, int64_t dims[MSC_MAX_DIMS],
                       int axes[MSC_MAX_DIMS]);
// Computes *outer, the product of the lengths before the axis in storage order, and *inner, the
// product of the lengths after the axis.
void msc_view_split(int64_t *outer, int64_t *inner, const struct msc_view *v, int axis);
// Converts a view of integers in host memory to float32.
void msc_view_dequantize(float out[], const struct msc_view *v);

MSC_PUBLIC_END

#endif
