// Rotates pairs of elements of each head by the angles of its position.
//
//     struct msc_rotary r = {.size = 64, .cosine = cosine, .sine = sine};
//     x = msc_compose_rotate(&c, &r, x);
#ifndef MSC_GRAPH_ONNX_ONNX_IMPORT_ROTARY_H
#define MSC_GRAPH_ONNX_ONNX_IMPORT_ROTARY_H

#include "graph/onnx/onnx_import_compose.h"

struct msc_rotary {
    bool is_interleaved;             // pairs are neighbours, else elements of the two halves
    int64_t size;                    // the first elements of a head, which are rotated; even
    struct msc_value *cosine, *sine; // broadcast to x's axes; [..., size / 2]
};

// x [b, s, h, d] or [b, h, s, d], with d known.
struct msc_value *msc_compose_rotate(struct msc_compose *c, const struct msc_rotary *r,
                                     struct msc_value *x);

#endif
