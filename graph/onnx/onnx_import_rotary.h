// Rotates pairs of elements of each head by the angles of its position.
//
//     struct msc_rotary r = {.size = 64, .cosine = cosine, .sine = sine};
//     x = msc_compose_rotate(&c, &r, x);
#ifndef MSC_GRAPH_ONNX_ONNX_IMPORT_ROTARY_H
#define MSC_GRAPH_ONNX_ONNX_IMPORT_ROTARY_H

#include "graph/onnx/onnx_import_compose.h"

struct msc_rotary {
    bool is_interleaved;             // a pair is two neighbours; false: elements i and i + size / 2
    int64_t size;                    // number of elements rotated, at the start of a head; even
    struct msc_value *cosine, *sine; // broadcast to x's axes; [..., size / 2]
};

// x [b, s, h, d] or [b, h, s, d], with d known.
struct msc_value *msc_compose_rotate(struct msc_compose *c, const struct msc_rotary *r,
                                     struct msc_value *x);

#endif
