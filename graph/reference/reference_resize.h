// Where a resize reads: the meaning of its modes, for the reference kernel and faster ones alike.
//
// Along each axis an output coordinate is the weighted sum of a few input coordinates, its taps;
// over several axes the sums nest, last axis inside. With float32 arithmetic in that order all
// kernels give the same bits.
#ifndef MSC_GRAPH_REFERENCE_REFERENCE_RESIZE_H
#define MSC_GRAPH_REFERENCE_REFERENCE_RESIZE_H

#include "graph/reference/reference.h"

// The taps of one output coordinate: input coordinates and their weights. One tap is the element
// itself, whatever its weight; `n` is 0 outside a cropped region.
struct msc_resize_taps {
    int n;
    int64_t at[4];
    float weights[4];
};

// Taps for every output coordinate of each axis of an image.resize2d joint. Of the call's views
// only types and shapes are read, and data of parameters that are operands. by_axis[i] points into
// *out, which is owned by the caller (msc_free).
enum msc_status msc_resize_find_taps(struct msc_resize_taps **out,
                                     const struct msc_resize_taps *by_axis[MSC_MAX_DIMS],
                                     float *extrapolation, const struct msc_reference_call *call);

// ---- With a filter ----------------------------------------------------------------------------

// Of an image.resize2d_antialias joint.
struct msc_resize_filter {
    bool is_cubic, excludes_outside;
    double alpha; // of the cubic kernel
    double scales[MSC_MAX_DIMS];
};
enum msc_status msc_resize_filter_init(struct msc_resize_filter *f,
                                       const struct msc_reference_call *call);

// The input coordinates, first to last, that output coordinate `o` of an axis is made of. Those
// outside of the input, which is `from` long, mean its first or last element.
struct msc_resize_span {
    int64_t length, first, last;
    double centre, stretch, total;
};
struct msc_resize_span msc_resize_filter_span(const struct msc_resize_filter *f, int axis,
                                              int64_t from, int64_t o);
double msc_resize_filter_weight(const struct msc_resize_filter *f, const struct msc_resize_span *s,
                                int64_t i);

#endif
