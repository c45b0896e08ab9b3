#include "kernels/lowering/movement.h"

#include "kernels/lowering/lowering.h"

#include <assert.h>
#include <string.h>

void msc_movement_init(struct msc_movement *m, size_t element_bytes) {
    *m = (struct msc_movement){.bytes = element_bytes, .n = 1};
}

void msc_movement_add(struct msc_movement *m, int64_t length, int64_t in, int64_t out) {
    m->n *= length;
    if (length == 1) {
        return;
    }
    assert(m->n_dims < MSC_MAX_DIMS);
    m->dims[m->n_dims] = length;
    m->in[m->n_dims] = in;
    m->out[m->n_dims] = out;
    m->n_dims++;
}

void msc_movement_finish(struct msc_movement *m) {
    int n = 0;
    for (int d = 0; d < m->n_dims; d++) {
        if (n > 0 && m->in[n - 1] == m->in[d] * m->dims[d] &&
            m->out[n - 1] == m->out[d] * m->dims[d]) {
            m->dims[n - 1] *= m->dims[d];
        } else {
            m->dims[n++] = m->dims[d];
        }
        m->in[n - 1] = m->in[d];
        m->out[n - 1] = m->out[d];
    }
    m->n_dims = n;
}

void msc_movement_set(struct msc_movement *m, size_t element_bytes, int n_dims,
                      const int64_t dims[], enum msc_layout layout, const int64_t in[],
                      const int64_t out[]) {
    int positions[MSC_MAX_DIMS], axes[MSC_MAX_DIMS];
    msc_lowering_positions(positions, n_dims, layout);
    for (int i = 0; i < n_dims; i++) {
        axes[positions[i]] = i;
    }
    msc_movement_init(m, element_bytes);
    for (int i = 0; i < n_dims; i++) {
        msc_movement_add(m, dims[axes[i]], in[axes[i]], out[axes[i]]);
    }
    msc_movement_finish(m);
}

// ---- Depth to space and back ------------------------------------------------------------------

enum { BLOCK_DIMS = 6 };

static bool read_block(int64_t *block, bool *is_crd, const struct msc_joint *joint) {
    const char *mode = msc_joint_attr(joint, "mode");
    *is_crd = mode != NULL && strcmp(mode, "CRD") == 0;
    return msc_joint_attr_i64(joint, "blocksize", block) && *block > 0;
}

// The depth tensor has many channels; the space tensor has blocks of positions instead. Both are
// viewed with six common dims: images, channels of the space tensor, rows of blocks, rows of a
// block, columns of blocks, columns of a block. Computes the strides of these dims in the space
// tensor.
static void split_space(int64_t out[BLOCK_DIMS], const struct msc_value *space, int64_t block) {
    int64_t s[MSC_MAX_DIMS];
    msc_lowering_strides(s, 4, space->dims, space->layout);
    const int64_t strides[BLOCK_DIMS] = {s[0], s[1], s[2] * block, s[2], s[3] * block, s[3]};
    memcpy(out, strides, sizeof(strides));
}

// Computes the strides of the six common dims in the depth tensor. If is_crd, neighbouring channels
// of the depth tensor are the elements of one block; otherwise they are different channels of the
// space tensor.
static void split_depth(int64_t out[BLOCK_DIMS], const struct msc_value *depth, int64_t block,
                        bool is_crd) {
    int64_t s[MSC_MAX_DIMS];
    msc_lowering_strides(s, 4, depth->dims, depth->layout);
    int64_t element = is_crd ? s[1] : s[1] * (depth->dims[1] / (block * block));
    int64_t channel = is_crd ? s[1] * block * block : s[1];
    const int64_t strides[BLOCK_DIMS] = {s[0], channel, s[2], element * block, s[3], element};
    memcpy(out, strides, sizeof(strides));
}

bool msc_movement_set_depth_space(struct msc_movement *m, const struct msc_joint *joint,
                                  const struct msc_value *x, const struct msc_value *y) {
    // The common dims in the output's memory order. Indices: whether the output is the space
    // tensor, and whether the output is NHWC.
    static const int orders[2][2][BLOCK_DIMS] = {{{0, 3, 5, 1, 2, 4}, {0, 2, 4, 3, 5, 1}},
                                                 {{0, 1, 2, 3, 4, 5}, {0, 2, 3, 4, 5, 1}}};
    bool to_space = joint->op == MSC_OP_DEPTH_TO_SPACE, is_crd;
    const struct msc_value *depth = to_space ? x : y, *space = to_space ? y : x;
    int64_t block, in_space[BLOCK_DIMS], in_depth[BLOCK_DIMS];
    if (!read_block(&block, &is_crd, joint)) {
        return false;
    }
    const int64_t lengths[BLOCK_DIMS] = {depth->dims[0], space->dims[1], depth->dims[2],
                                         block,          depth->dims[3], block};
    split_space(in_space, space, block);
    split_depth(in_depth, depth, block, is_crd);
    msc_movement_init(m, msc_dtype_bytes(y->dtype));
    for (int i = 0; i < BLOCK_DIMS; i++) {
        int d = orders[to_space][y->layout == MSC_LAYOUT_NHWC][i];
        msc_movement_add(m, lengths[d], to_space ? in_depth[d] : in_space[d],
                         to_space ? in_space[d] : in_depth[d]);
    }
    msc_movement_finish(m);
    return true;
}

// ---- Permuting --------------------------------------------------------------------------------

bool msc_movement_read_axes(int64_t axes[MSC_MAX_DIMS], const struct msc_joint *joint, int n_dims) {
    if (msc_joint_attr_list(joint, "axes", axes, MSC_MAX_DIMS) != n_dims) {
        return false;
    }
    unsigned seen = 0;
    for (int i = 0; i < n_dims; i++) {
        axes[i] += axes[i] < 0 ? n_dims : 0;
        if (axes[i] < 0 || axes[i] >= n_dims || (seen >> axes[i] & 1u) != 0) {
            return false;
        }
        seen |= 1u << axes[i];
    }
    return true;
}

void msc_movement_set_permute(struct msc_movement *m, const struct msc_joint *joint,
                              const struct msc_value *x, const struct msc_value *y) {
    int64_t own[MSC_MAX_DIMS], in[MSC_MAX_DIMS], to[MSC_MAX_DIMS];
    int64_t axes[MSC_MAX_DIMS] = {0, 1, 2, 3, 4, 5, 6, 7};
    if (joint) {
        msc_movement_read_axes(axes, joint, x->n_dims);
    }
    msc_lowering_strides(own, x->n_dims, x->dims, x->layout);
    msc_lowering_strides(to, y->n_dims, y->dims, y->layout);
    for (int i = 0; i < y->n_dims; i++) {
        in[i] = own[axes[i]];
    }
    msc_movement_set(m, msc_dtype_bytes(y->dtype), y->n_dims, y->dims, y->layout, in, to);
}

// ---- Joining and splitting --------------------------------------------------------------------

int64_t msc_movement_set_part(struct msc_movement *m, const struct msc_value *whole,
                              const struct msc_value *part, int axis, int64_t at, bool is_joined) {
    int64_t in_whole[MSC_MAX_DIMS], in_part[MSC_MAX_DIMS];
    msc_lowering_strides(in_whole, whole->n_dims, whole->dims, whole->layout);
    msc_lowering_strides(in_part, part->n_dims, part->dims, part->layout);
    msc_movement_set(m, msc_dtype_bytes(whole->dtype), part->n_dims, part->dims,
                     is_joined ? whole->layout : part->layout, is_joined ? in_part : in_whole,
                     is_joined ? in_whole : in_part);
    return at * in_whole[axis];
}

// ---- Slices and padding -----------------------------------------------------------------------

bool msc_movement_read_slice(struct msc_slice *s, const struct msc_joint *joint, int n_dims) {
    s->n = msc_joint_attr_list(joint, "begin", s->begin, MSC_MAX_DIMS);
    int n_axes = msc_joint_attr_list(joint, "axes", s->axes, MSC_MAX_DIMS);
    int n_steps = msc_joint_attr_list(joint, "strides", s->steps, MSC_MAX_DIMS);
    if (s->n < 1 || s->n > n_dims || (n_axes > 0 && n_axes != s->n) ||
        (n_steps > 0 && n_steps != s->n)) {
        return false;
    }
    for (int i = 0; i < s->n; i++) {
        s->axes[i] = n_axes > 0 ? s->axes[i] : i;
        s->axes[i] += s->axes[i] < 0 ? n_dims : 0;
        s->steps[i] = n_steps > 0 ? s->steps[i] : 1;
        if (s->axes[i] < 0 || s->axes[i] >= n_dims || s->steps[i] == 0) {
            return false;
        }
    }
    return true;
}

int64_t msc_movement_set_slice(struct msc_movement *m, const struct msc_joint *joint,
                               const struct msc_value *x, const struct msc_value *y) {
    int64_t in[MSC_MAX_DIMS], to[MSC_MAX_DIMS], first = 0;
    struct msc_slice s;
    msc_movement_read_slice(&s, joint, x->n_dims);
    msc_lowering_strides(in, x->n_dims, x->dims, x->layout);
    msc_lowering_strides(to, y->n_dims, y->dims, y->layout);
    for (int i = 0; i < s.n; i++) {
        int64_t axis = s.axes[i], length = x->dims[axis];
        int64_t last = s.steps[i] < 0 ? length - 1 : length;
        int64_t begin = s.begin[i] < 0 ? s.begin[i] + length : s.begin[i];
        begin = begin < 0 ? 0 : begin > last ? last : begin;
        first += begin * in[axis];
        in[axis] *= y->dims[axis] > 1 ? s.steps[i] : 0; // stride 0 if the length is 1
    }
    msc_movement_set(m, msc_dtype_bytes(y->dtype), y->n_dims, y->dims, y->layout, in, to);
    return first;
}

bool msc_movement_read_pad(int64_t widths[2 * MSC_MAX_DIMS], float *value,
                           const struct msc_joint *joint, int n_dims) {
    const char *mode = msc_joint_attr(joint, "pad_mode");
    if (!mode || strcmp(mode, "constant") != 0 ||
        msc_joint_attr_list(joint, "pad_width", widths, 2 * MSC_MAX_DIMS) != 2 * n_dims ||
        !msc_joint_attr_float(joint, "pad_value", value)) {
        return false;
    }
    for (int i = 0; i < 2 * n_dims; i++) {
        if (widths[i] < 0) {
            return false;
        }
    }
    return true;
}
