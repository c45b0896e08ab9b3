#include "model/track_left.h"

#include "base/alloc.h"
#include "graph/reshape.h"

// ---- One side ---------------------------------------------------------------------------------

enum msc_status msc_track__left_init(struct msc_track_left *out,
                                     const struct msc_track_side *side) {
    const struct msc_graph *g = side->model->graph;
    out->graph = g;
    if (!side->strategy || !msc_strategy_prunes(side->strategy)) {
        return MSC_OK;
    }
    MSC_TRY(msc_sites_find(&out->sites, g, NULL));
    MSC_TRY(msc_channels_find(&out->channels, g, &out->sites));
    out->is_gone = msc_alloc_zero((size_t)out->channels.n_units + 1, sizeof(out->is_gone[0]));
    return out->is_gone ? msc_strategy_mark(out->is_gone, side->strategy, &out->channels)
                        : MSC_FAIL(MSC_E_NOMEM, "out of memory");
}

void msc_track__left_finish(struct msc_track_left *left) {
    msc_free(left->is_gone);
    msc_channels_finish(&left->channels);
    msc_sites_finish(&left->sites);
    *left = (struct msc_track_left){0};
}

static bool stays(const struct msc_track_shape *s, int axis, int64_t index) {
    int32_t unit = s->left->is_gone ? msc_channels_unit(&s->left->channels, s->tensor, axis, index)
                                    : MSC_NO_ID;
    return unit == MSC_NO_ID || !s->left->is_gone[unit];
}

// ---- Both sides -------------------------------------------------------------------------------

static int64_t length_of(const struct msc_track_shape *s, int axis) {
    int64_t n = msc_graph_tensor(s->left->graph, s->tensor)->dims[axis];
    return n < 0 ? INT32_MAX : n;
}

// Walks along an axis of the unpruned tensor; false if an array has more or fewer elements than
// remain.
static bool pair_axis(struct msc_track_common *c, const struct msc_track_shape sides[2], int axis,
                      const int64_t strides[2]) {
    int64_t at[2] = {0, 0};
    const int64_t n[2] = {sides[0].dims[axis], sides[1].dims[axis]};
    const int64_t all[2] = {length_of(&sides[0], axis), length_of(&sides[1], axis)};
    for (int64_t i = 0; i < all[0] && i < all[1] && (at[0] < n[0] || at[1] < n[1]); i++) {
        bool has[2] = {stays(&sides[0], axis, i), stays(&sides[1], axis, i)};
        if ((has[0] && at[0] == n[0]) || (has[1] && at[1] == n[1])) {
            return false;
        }
        for (int k = 0; has[0] && has[1] && k < 2; k++) {
            c->offsets[axis][k][c->n[axis]] = at[k] * strides[k];
        }
        c->n[axis] += has[0] && has[1];
        at[0] += has[0];
        at[1] += has[1];
    }
    return at[0] == n[0] && at[1] == n[1];
}

enum msc_status msc_track__common_init(struct msc_track_common *out, bool *has_any,
                                       const struct msc_track_shape sides[2]) {
    int64_t strides[2] = {1, 1};
    *out = (struct msc_track_common){.n_dims = sides[0].n_dims};
    *has_any = sides[0].n_dims == sides[1].n_dims &&
               sides[0].n_dims == msc_graph_tensor(sides[0].left->graph, sides[0].tensor)->n_dims &&
               sides[1].n_dims == msc_graph_tensor(sides[1].left->graph, sides[1].tensor)->n_dims;
    for (int axis = out->n_dims - 1; *has_any && axis >= 0; axis--) {
        int64_t n[2] = {sides[0].dims[axis], sides[1].dims[axis]};
        size_t most = (size_t)(n[0] < n[1] ? n[0] : n[1]) + 1;
        for (int k = 0; k < 2; k++) {
            out->offsets[axis][k] = msc_alloc(most * sizeof(out->offsets[axis][k][0]));
            if (!out->offsets[axis][k]) {
                msc_track__common_finish(out);
                return MSC_FAIL(MSC_E_NOMEM, "out of memory");
            }
        }
        *has_any = pair_axis(out, sides, axis, strides);
        strides[0] *= n[0];
        strides[1] *= n[1];
    }
    return MSC_OK;
}

void msc_track__common_finish(struct msc_track_common *c) {
    for (int axis = 0; axis < MSC_MAX_DIMS; axis++) {
        msc_free(c->offsets[axis][0]);
        msc_free(c->offsets[axis][1]);
    }
    *c = (struct msc_track_common){0};
}

void msc_track__common_each(const struct msc_track_common *c, const float *y, const float *z,
                            void (*take)(void *payload, double y, double z), void *payload) {
    int64_t at[MSC_MAX_DIMS] = {0}, n = 1;
    for (int axis = 0; axis < c->n_dims; axis++) {
        n *= c->n[axis];
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t offsets[2] = {0, 0};
        for (int axis = 0; axis < c->n_dims; axis++) {
            offsets[0] += c->offsets[axis][0][at[axis]];
            offsets[1] += c->offsets[axis][1][at[axis]];
        }
        take(payload, y[offsets[0]], z[offsets[1]]);
        for (int axis = c->n_dims - 1; axis >= 0 && ++at[axis] == c->n[axis]; axis--) {
            at[axis] = 0;
        }
    }
}
