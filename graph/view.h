// A view: one tensor's value as a kernel sees it.
//
// `dims` are in the graph's axis order in every layout; the layout defines how elements are
// stored. All views are dense. Example: dims [2,3,4,5] ("NCHW"), MSC_LAYOUT_NHWC: element
// (n,c,h,w) is at ((n*4 + h)*5 + w)*3 + c.
#ifndef MSC_GRAPH_VIEW_H
#define MSC_GRAPH_VIEW_H

#include "data/array.h"
#include "graph/quant.h"

MSC_PUBLIC_BEGIN

enum msc_layout {
    MSC_LAYOUT_NCHW, // C order of dims: channels first; also for tensors without channels
    MSC_LAYOUT_NHWC, // axis 1 moved to the end: channels last; for 3 or more dims
};

struct msc_view {
    void *data; // an address of the backend: a host pointer on `cpu`
    enum msc_dtype dtype;
    enum msc_layout layout;
    int n_dims;
    int64_t dims[MSC_MAX_DIMS];
    // If not NULL, the elements are integers q (uint8 or int8) that represent (q - z) * s, with
    // one scale and zero point, or one for each channel along its axis.
    const struct msc_quant *quant;
};

int64_t msc_view_n_elements(const struct msc_view *v);
size_t msc_view_n_bytes(const struct msc_view *v);
// A plain view of an array's elements.
struct msc_view msc_view_of_array(const struct msc_array *array);
// The dims in storage order, and the graph axis of each.
void msc_view_physical(const struct msc_view *v, int64_t dims[MSC_MAX_DIMS],
                       int axes[MSC_MAX_DIMS]);
// Splits the storage order around an axis: [outer, dims[axis], inner].
void msc_view_split(int64_t *outer, int64_t *inner, const struct msc_view *v, int axis);
// Dequantises integers on the host to float32.
void msc_view_dequantize(float out[], const struct msc_view *v);

MSC_PUBLIC_END

#endif
