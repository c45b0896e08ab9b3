// Computes the input positions that a resize reads. These functions define the resize modes for the
// reference kernel and for faster kernels.
//
// Along each axis, an output element is the weighted sum of a few input elements, its taps. Over
// several axes the sums are nested, with the last axis innermost. Float32 arithmetic in this order
// gives the same bits in all kernels.
#ifndef MSC_GRAPH_REFERENCE_REFERENCE_RESIZE_H
#define MSC_GRAPH_REFERENCE_REFERENCE_RESIZE_H

#include "graph/reference/reference.h"

// ---- Coordinates ------------------------------------------------------------------------------

struct msc_resize_axis {
    int64_t in, out;
    float scale;
    float begin, end; // region of interest, relative to the input length
    // true if output coordinate o is input coordinate o: the axis keeps its length, and its scale
    // is 1 or no axis changes its length
    bool is_kept;
};
struct msc_resize_axes {
    float (*transform)(const struct msc_resize_axis *a, float x);
    bool is_cropping; // coordinates outside the input get the extrapolation value
    struct msc_resize_axis axes[MSC_MAX_DIMS];
};

// Reads only types and shapes of the call's views, and data of parameters that are operands.
enum msc_status msc_resize_axes_init(struct msc_resize_axes *r,
                                     const struct msc_reference_call *call);
// The input coordinate that corresponds to output coordinate `o`.
float msc_resize_coordinate(const struct msc_resize_axes *r, int axis, int64_t o);
// True if the input coordinate is outside a cropped region.
bool msc_resize_is_outside(const struct msc_resize_axes *r, int axis, float coordinate);

// ---- Taps -------------------------------------------------------------------------------------

// The taps of one output coordinate: input coordinates and weights. If n is 1, the element is
// copied and the weight ignored. n is 0 outside a cropped region.
struct msc_resize_taps {
    int n;
    int64_t at[4];
    float weights[4];
};

// Finds the taps of every output coordinate along each axis of an image.resize2d joint. by_axis[i]
// points into *out, which the caller owns (msc_free).
enum msc_status msc_resize_find_taps(struct msc_resize_taps **out,
                                     const struct msc_resize_taps *by_axis[MSC_MAX_DIMS],
                                     float *extrapolation, const struct msc_reference_call *call);

// ---- With an antialiasing filter --------------------------------------------------------------

// Parameters of an image.resize2d_antialias joint.
struct msc_resize_filter {
    struct msc_resize_axes axes;
    bool is_cubic, excludes_outside;
    bool rounds, is_byte; // rounds: sums of integers are rounded; is_byte: outputs are bytes
    double alpha;         // parameter of the cubic kernel
    float extrapolation;
};
enum msc_status msc_resize_filter_init(struct msc_resize_filter *f,
                                       const struct msc_reference_call *call);

// The input coordinates, `first` to `last`, that contribute to output coordinate `o` of an axis.
// For a coordinate outside the input (of `length` elements), the input's first or last element is
// read. An axis that keeps its length is copied. The span is empty outside a cropped region.
struct msc_resize_span {
    int64_t length, first, last;
    bool is_copy; // copies a single element
    double centre, stretch, total;
};
struct msc_resize_span msc_resize_filter_span(const struct msc_resize_filter *f, int axis,
                                              int64_t o);
double msc_resize_filter_weight(const struct msc_resize_filter *f, const struct msc_resize_span *s,
                                int64_t i);

#endif
