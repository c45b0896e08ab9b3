// Positions that a resize reads: defines its modes, for the reference kernel and for faster ones.
//
// Along each axis, an output element is the weighted sum of a few input elements, its taps. Over
// several axes the sums are nested, with the last axis innermost. Float32 arithmetic in this
// order gives the same bits in all kernels.
#ifndef MSC_GRAPH_REFERENCE_REFERENCE_RESIZE_H
#define MSC_GRAPH_REFERENCE_REFERENCE_RESIZE_H

#include "graph/reference/reference.h"

// ---- Coordinates ------------------------------------------------------------------------------

struct msc_resize_axis {
    int64_t in, out;
    float scale;
    float begin, end; // region of interest, relative
    bool is_kept;     // coordinates equal the input's: the scale is 1, or no length changes at all
};
struct msc_resize_axes {
    float (*transform)(const struct msc_resize_axis *a, float x);
    bool is_cropping; // coordinates outside the input get the extrapolation value
    struct msc_resize_axis axes[MSC_MAX_DIMS];
};

// Reads only types and shapes of the call's views, and data of parameters that are operands.
enum msc_status msc_resize_axes_init(struct msc_resize_axes *r,
                                     const struct msc_reference_call *call);
// The input coordinate of output coordinate `o`.
float msc_resize_coordinate(const struct msc_resize_axes *r, int axis, int64_t o);
// True outside a cropped region.
bool msc_resize_is_outside(const struct msc_resize_axes *r, int axis, float coordinate);

// ---- Taps -------------------------------------------------------------------------------------

// The taps of one output coordinate: input coordinates and weights. A single tap is the element
// itself, whatever its weight; `n` is 0 outside a cropped region.
struct msc_resize_taps {
    int n;
    int64_t at[4];
    float weights[4];
};

// Finds taps for every output coordinate of each axis of an image.resize2d joint. by_axis[i]
// points into *out, which is owned by the caller (msc_free).
enum msc_status msc_resize_find_taps(struct msc_resize_taps **out,
                                     const struct msc_resize_taps *by_axis[MSC_MAX_DIMS],
                                     float *extrapolation, const struct msc_reference_call *call);

// ---- With an antialiasing filter --------------------------------------------------------------

// For an image.resize2d_antialias joint.
struct msc_resize_filter {
    struct msc_resize_axes axes;
    bool is_cubic, excludes_outside;
    bool rounds, is_byte; // sums of integers are rounded; outputs are bytes
    double alpha;         // of the cubic kernel
    float extrapolation;
};
enum msc_status msc_resize_filter_init(struct msc_resize_filter *f,
                                       const struct msc_reference_call *call);

// The input coordinates, first to last, that contribute to output coordinate `o` of an axis.
// Coordinates outside the input (of `length` elements) mean its first or last element. An axis
// that keeps its length is copied. The span is empty outside a cropped region.
struct msc_resize_span {
    int64_t length, first, last;
    bool is_copy; // one element is copied
    double centre, stretch, total;
};
struct msc_resize_span msc_resize_filter_span(const struct msc_resize_filter *f, int axis,
                                              int64_t o);
double msc_resize_filter_weight(const struct msc_resize_filter *f, const struct msc_resize_span *s,
                                int64_t i);

#endif
