// Finds the elements that two tensors have in common after a strategy has removed channels from one
// or both of them.
#ifndef MSC_MODEL_TRACK_LEFT_H
#define MSC_MODEL_TRACK_LEFT_H

#include "graph/channels.h"
#include "model/track.h"

// The channels that remain on a side, in terms of its model's graph. If `is_gone` is NULL, all
// channels remain.
struct msc_track_left {
    const struct msc_graph *graph;
    struct msc_sites sites;
    struct msc_channels channels;
    bool *is_gone; // [channels.n_units]
};
enum msc_status msc_track__left_init(struct msc_track_left *out, const struct msc_track_side *side);
void msc_track__left_finish(struct msc_track_left *left); // accepts a zeroed struct

// The shape of the array that a side computes for a tensor of its model's graph.
struct msc_track_shape {
    const struct msc_track_left *left;
    int32_t tensor;
    int n_dims;
    const int64_t *dims;
};

// For each axis, the indices that both sides have, as offsets of elements on each side.
struct msc_track_common {
    int n_dims;
    int64_t n[MSC_MAX_DIMS];
    int64_t *offsets[MSC_MAX_DIMS][2];
};
// *has_any is set to false if a shape does not match what remains of the tensor. *out is owned by
// the caller.
enum msc_status msc_track__common_init(struct msc_track_common *out, bool *has_any,
                                       const struct msc_track_shape sides[2]);
void msc_track__common_finish(struct msc_track_common *c); // accepts a zeroed struct
// Calls `take` for each pair of elements, in the order of the tensor.
void msc_track__common_each(const struct msc_track_common *c, const float *y, const float *z,
                            void (*take)(void *payload, double y, double z), void *payload);

#endif
