#include "tools/equalizer_pairs.h"

#include "tools/equalizer_internal.h"
#include "tools/equalizer_matrix.h"

#include <math.h>
#include <string.h>

enum { MOST_POSITIONS = 16384, LEVELS = 32767 };

// ---- Finding ----------------------------------------------------------------------------------

// A tensor on the way from a product back to the linear layer.
struct step {
    int32_t tensor;
    int axes[MSC_MAX_DIMS]; // the axis of the product's operand that each axis becomes; -1: unknown
};

// Does one joint read the elements? Joints that read only the lengths do not count.
static bool is_read_once(const struct msc_graph *g, int32_t tensor) {
    const int32_t *joints;
    int32_t n = msc_graph_consumers(g, tensor, &joints), n_readers = 0;
    for (int32_t i = 0; i < msc_graph_n_outputs(g); i++) {
        n_readers += msc_graph_output(g, i) == tensor;
    }
    for (int32_t i = 0; i < n; i++) {
        n_readers += msc_graph_joint(g, joints[i])->op != MSC_OP_SHAPE_OF;
    }
    return n_readers == 1;
}

static bool step_permute(struct step *s, const struct msc_graph *g, const struct msc_joint *j) {
    struct step before = {.tensor = j->operands[0]};
    int64_t axes[MSC_MAX_DIMS];
    int n = msc_graph_tensor(g, before.tensor)->n_dims;
    if (msc_joint_attr_list(j, "axes", axes, MSC_MAX_DIMS) != n) {
        return false;
    }
    for (int i = 0; i < n; i++) {
        before.axes[axes[i] < 0 ? axes[i] + n : axes[i]] = s->axes[i];
    }
    *s = before;
    return true;
}

// A reshape that keeps the last axis, or divides it into heads and their elements.
static bool step_reshape(struct step *s, struct msc_channel_pair *pair,
                         struct msc_channel_side *side, const struct msc_graph *g,
                         const struct msc_joint *j) {
    const struct msc_tensor *in = msc_graph_tensor(g, j->operands[0]);
    const struct msc_tensor *out = msc_graph_tensor(g, s->tensor);
    int last = out->n_dims - 1;
    if (in->n_dims < 1 || last < 0 || s->axes[last] != side->axis || side->head_axis >= 0 ||
        side->n_own > 0) {
        return false;
    }
    int64_t size = out->dims[last], n_all = in->dims[in->n_dims - 1];
    if (size <= 0 || n_all <= 0 ||
        (n_all != size && (last == 0 || n_all != out->dims[last - 1] * size))) {
        return false;
    }
    if (n_all != size) {
        pair->n_heads = out->dims[last - 1];
        side->head_axis = s->axes[last - 1];
    }
    bool is_known = n_all == size || side->head_axis >= 0;
    *s = (struct step){.tensor = j->operands[0]};
    for (int i = 0; i < in->n_dims; i++) {
        s->axes[i] = i == in->n_dims - 1 ? side->axis : -1;
    }
    return is_known;
}

// Goes on to a tensor of which this one is a part along the last axis.
static bool step_split(struct step *s, struct msc_channel_side *side, const struct msc_graph *g,
                       const struct msc_joint *j) {
    const struct msc_tensor *in = msc_graph_tensor(g, j->operands[0]);
    int last = in->n_dims - 1;
    int64_t axis;
    if (last < 0 || s->axes[last] != side->axis || !msc_joint_attr_i64(j, "axis", &axis) ||
        (axis != -1 && axis != last) || side->n_own > 0) {
        return false;
    }
    for (int32_t i = 0; msc_joint_output(j, i) != s->tensor; i++) {
        int64_t n = msc_graph_tensor(g, msc_joint_output(j, i))->dims[last];
        if (n <= 0) {
            return false;
        }
        side->first += n;
    }
    side->n_own = msc_graph_tensor(g, s->tensor)->dims[last];
    s->tensor = j->operands[0];
    return side->n_own > 0;
}

// Goes on to the operand that is multiplied or divided by one number.
static bool step_scale(struct step *s, const struct msc_graph *g, const struct msc_joint *j) {
    int own =
        j->op == MSC_OP_MULTIPLY && msc_tensor_n_elements(msc_graph_tensor(g, j->operands[0])) == 1;
    const struct msc_tensor *in = msc_graph_tensor(g, j->operands[own]);
    bool is_scalar = msc_tensor_n_elements(msc_graph_tensor(g, j->operands[1 - own])) == 1;
    s->tensor = j->operands[own];
    return is_scalar && in->n_dims == msc_graph_tensor(g, j->outputs[0])->n_dims;
}

// Follows an operand of a product back to its linear layer.
static bool find_side(struct msc_channel_pair *pair, int side, const struct msc_graph *g,
                      const struct msc_sites *sites, const struct msc_joint *product) {
    struct msc_channel_side *out = &pair->sides[side];
    struct step s = {.tensor = product->operands[side]};
    int n_dims = msc_graph_tensor(g, s.tensor)->n_dims;
    *out = (struct msc_channel_side){.slot = msc_sites_find_slot(sites, product->id, side),
                                     .axis = side == 0 ? n_dims - 1 : n_dims - 2,
                                     .head_axis = -1};
    pair->n_heads = 1;
    if (n_dims < 2 || out->slot == MSC_NO_ID ||
        sites->slots[out->slot].kind != MSC_SITE_ACTIVATION) {
        return false;
    }
    for (int i = 0; i < n_dims; i++) {
        s.axes[i] = i;
    }
    for (bool is_good = true; is_good;) {
        const struct msc_tensor *t = msc_graph_tensor(g, s.tensor);
        if (t->producer == MSC_NO_ID || t->data || !is_read_once(g, s.tensor)) {
            return false;
        }
        const struct msc_joint *j = msc_graph_joint(g, t->producer);
        if (j->op == MSC_OP_LINEAR || j->op == MSC_OP_LINEAR_BIAS) {
            struct msc_channel_link maker = {.weight = MSC_NO_ID};
            is_good = msc_equalizer__set_linear(&maker, g, sites, j);
            out->weight = maker.weight;
            out->bias = maker.bias;
            out->is_input_first = maker.is_input_first;
            out->n_inputs = maker.n_per_channel;
            out->n_outputs = maker.n_channels;
            pair->size = (out->n_own > 0 ? out->n_own : maker.n_channels) / pair->n_heads;
            return is_good && s.axes[t->n_dims - 1] == out->axis;
        }
        is_good = j->op == MSC_OP_PERMUTE_DIMS ? step_permute(&s, g, j)
                  : j->op == MSC_OP_SPLIT      ? step_split(&s, out, g, j)
                  : j->op == MSC_OP_RESHAPE    ? step_reshape(&s, pair, out, g, j)
                  : j->op == MSC_OP_MULTIPLY || j->op == MSC_OP_DIVIDE ? step_scale(&s, g, j)
                                                                       : false;
    }
    return false;
}

static bool find_pair(struct msc_channel_pair *pair, const struct msc_graph *g,
                      const struct msc_sites *sites, const struct msc_joint *j) {
    struct msc_channel_pair second;
    if (j->op != MSC_OP_MATMUL || !find_side(pair, 0, g, sites, j) ||
        !find_side(&second, 1, g, sites, j)) {
        return false;
    }
    pair->sides[1] = second.sides[1];
    const struct msc_channel_side *a = &pair->sides[0], *b = &pair->sides[1];
    int n_a = msc_graph_tensor(g, j->operands[0])->n_dims;
    int n_b = msc_graph_tensor(g, j->operands[1])->n_dims;
    bool is_same_axis = a->head_axis < 0 || n_a - a->head_axis == n_b - b->head_axis;
    return pair->n_heads == second.n_heads && pair->size == second.size && pair->size > 1 &&
           pair->size <= MSC_EQUALIZER_MOST_SIZE && (a->head_axis < 0) == (b->head_axis < 0) &&
           is_same_axis && (a->weight != b->weight || a->first != b->first);
}

enum msc_status msc_equalizer__find_pairs(struct msc_channel_pair **pairs, size_t *n,
                                          const struct msc_graph *g, const struct msc_sites *sites,
                                          struct msc_arena *arena) {
    int32_t n_joints = msc_graph_n_joints(g);
    *n = 0;
    *pairs = msc_arena_array(arena, (size_t)n_joints + 1, sizeof((*pairs)[0]));
    MSC_TRY(MSC_ALLOCATED(*pairs));
    for (int32_t i = 0; i < n_joints; i++) {
        struct msc_channel_pair *pair = &(*pairs)[*n];
        if (!find_pair(pair, g, sites, msc_graph_joint(g, i))) {
            continue;
        }
        size_t n_elements = (size_t)(pair->n_heads * pair->size * pair->size);
        for (int k = 0; k < 2; k++) {
            struct msc_channel_side *side = &pair->sides[k];
            side->sums = msc_arena_array(arena, 2 * n_elements, sizeof(side->sums[0]));
            pair->matrices[k] = msc_arena_array(arena, n_elements, sizeof(double));
            MSC_TRY(MSC_ALLOCATED(side->sums && pair->matrices[k]));
            side->held_sums = side->sums + n_elements;
        }
        (*n)++;
    }
    return MSC_OK;
}

// ---- Measuring --------------------------------------------------------------------------------

void msc_equalizer__begin_pairs(struct msc_channel_pair pairs[], size_t n, bool is_counting) {
    for (size_t i = 0; i < n; i++) {
        for (int k = 0; k < 2; k++) {
            struct msc_channel_side *side = &pairs[i].sides[k];
            int64_t n_elements = pairs[i].n_heads * pairs[i].size * pairs[i].size;
            memset(side->sums, 0, 2 * (size_t)n_elements * sizeof(side->sums[0]));
            side->n_summed = side->n_held = 0;
            if (!is_counting) {
                side->n_seen = 0;
                side->greatest = 0;
            }
        }
    }
}

// Adds the products of the elements x[0], x[stride], … of a head at one position.
static void add_products(struct msc_channel_side *side, int64_t head, int64_t size, const float *x,
                         int64_t stride, bool is_held) {
    int32_t levels[MSC_EQUALIZER_MOST_SIZE];
    double unit = side->greatest > 0 ? LEVELS / (double)side->greatest : 0;
    for (int64_t i = 0; i < size; i++) {
        levels[i] = (int32_t)lround((double)x[i * stride] * unit);
    }
    for (int64_t i = 0; i < size; i++) {
        int64_t at = (head * size + i) * size;
        for (int64_t k = 0; k < size; k++) {
            int64_t product = (int64_t)levels[i] * levels[k];
            side->sums[at + k] += product;
            side->held_sums[at + k] += is_held ? product : 0;
        }
    }
}

static void see_head(struct msc_channel_side *side, int64_t head, int64_t size, const float *x,
                     int64_t stride, bool is_counting, bool is_held) {
    float greatest = 0;
    for (int64_t i = 0; i < size; i++) {
        if (!isfinite(x[i * stride])) {
            return;
        }
        greatest = fmaxf(greatest, fabsf(x[i * stride]));
    }
    if (is_counting) {
        add_products(side, head, size, x, stride, is_held);
    } else {
        side->greatest = fmaxf(side->greatest, greatest);
    }
}

// Goes on to the next position: axes other than those of the elements and of the heads are counted.
static void go_on(int64_t index[], const struct msc_view *value,
                  const struct msc_channel_side *side) {
    for (int i = value->n_dims - 1; i >= 0; i--) {
        if (i == side->axis || i == side->head_axis) {
            continue;
        }
        if (++index[i] < value->dims[i]) {
            return;
        }
        index[i] = 0;
    }
}

// The distances between neighbours along each axis in memory; returns the number of elements.
static int64_t find_strides(int64_t strides[], const struct msc_view *value) {
    int64_t dims[MSC_MAX_DIMS], stride = 1;
    int axes[MSC_MAX_DIMS];
    msc_view_physical(value, dims, axes);
    for (int i = value->n_dims - 1; i >= 0; i--) {
        strides[axes[i]] = stride;
        stride *= dims[i];
    }
    return stride;
}

// Draws one of `every` positions, in an order that does not repeat with a length of the operand.
static bool is_drawn(int64_t position, int64_t every) {
    return ((uint64_t)position * 0x9E3779B97F4A7C15u >> 32) % (uint64_t)every == 0;
}

void msc_equalizer__see_pair(struct msc_channel_pair *pair, int of, const struct msc_view *value,
                             bool is_counting, int one_of) {
    struct msc_channel_side *side = &pair->sides[of];
    int64_t strides[MSC_MAX_DIMS], index[MSC_MAX_DIMS] = {0}, n = value->dims[0];
    int64_t n_positions = find_strides(strides, value) / (pair->n_heads * pair->size);
    bool has_rows = side->axis != 0 && side->head_axis != 0 && n > 1;
    int64_t first_held = has_rows ? n - (n + one_of - 1) / one_of : n;
    int64_t every = is_counting ? (int64_t)(side->n_seen / MOST_POSITIONS) + 1 : 1;
    for (int64_t p = 0; p < n_positions; p++, go_on(index, value, side)) {
        int64_t at = 0;
        bool is_held = has_rows && index[0] >= first_held;
        if (!is_drawn(p, every)) {
            continue;
        }
        for (int i = 0; i < value->n_dims; i++) {
            at += index[i] * strides[i];
        }
        for (int64_t h = 0; h < pair->n_heads; h++) {
            int64_t of_head = side->head_axis < 0 ? 0 : h * strides[side->head_axis];
            see_head(side, h, pair->size, (const float *)value->data + at + of_head,
                     strides[side->axis], is_counting, is_held);
        }
        side->n_summed += is_counting;
        side->n_held += is_counting && is_held;
    }
    side->n_seen += is_counting ? 0 : (uint64_t)n_positions;
}

// ---- Balancing --------------------------------------------------------------------------------

enum part { ALL, HELD, OTHERS };

static uint64_t count_of(const struct msc_channel_side *side, enum part part) {
    return part == ALL    ? side->n_summed
           : part == HELD ? side->n_held
                          : side->n_summed - side->n_held;
}

// The second moments of a head [size, size].
static void moments(double out[], const struct msc_channel_pair *pair, int of, int64_t head,
                    enum part part) {
    const struct msc_channel_side *side = &pair->sides[of];
    double unit = (double)side->greatest / LEVELS, n = (double)count_of(side, part);
    int64_t n_elements = pair->size * pair->size, first = head * n_elements;
    for (int64_t i = 0; i < n_elements; i++) {
        int64_t held = side->held_sums[first + i], all = side->sums[first + i];
        int64_t sum = part == ALL ? all : part == HELD ? held : all - held;
        out[i] = n > 0 ? (double)sum * unit * unit / n : 0;
    }
}

// The greatest mean square of an element of a side, and the sum over all elements; `m` is room for
// a head.
static void spread(double *greatest, double *sum, const struct msc_channel_pair *pair, int of,
                   enum part part, bool with_matrices, double m[]) {
    int64_t size = pair->size;
    *greatest = *sum = 0;
    for (int64_t h = 0; h < pair->n_heads; h++) {
        const double *t = pair->matrices[of] + h * size * size;
        moments(m, pair, of, h, part);
        for (int64_t i = 0; i < size; i++) {
            double own = with_matrices ? msc_equalizer__quadratic(m, t + i * size, (size_t)size)
                                       : m[i * size + i];
            *greatest = fmax(*greatest, own);
            *sum += own;
        }
    }
}

// The expected squared error of the products, up to a factor: steps are in proportion to the root
// of the greatest mean square.
static double error_of(const struct msc_channel_pair *pair, enum part part, bool with_matrices,
                       double m[]) {
    double greatest[2], sums[2];
    for (int k = 0; k < 2; k++) {
        spread(&greatest[k], &sums[k], pair, k, part, with_matrices, m);
    }
    return greatest[0] * sums[1] + greatest[1] * sums[0];
}

static void set_matrices(struct msc_channel_pair *pair, enum part part, double room[]) {
    size_t size = (size_t)pair->size, n = size * size;
    for (int64_t h = 0; h < pair->n_heads; h++) {
        moments(room, pair, 0, h, part);
        moments(room + n, pair, 1, h, part);
        msc_equalizer__balance(pair->matrices[0] + h * (int64_t)n,
                               pair->matrices[1] + h * (int64_t)n, room, room + n, size,
                               room + 2 * n);
    }
}

enum msc_status msc_equalizer__balance_pair(bool *pays, struct msc_channel_pair *pair,
                                            struct msc_arena *arena) {
    double *room = msc_arena_array(arena, (size_t)(6 * pair->size * pair->size), sizeof(room[0]));
    MSC_TRY(MSC_ALLOCATED(room));
    *pays = count_of(&pair->sides[0], OTHERS) > 0 && count_of(&pair->sides[1], OTHERS) > 0;
    if (*pays && count_of(&pair->sides[0], HELD) > 0 && count_of(&pair->sides[1], HELD) > 0) {
        set_matrices(pair, OTHERS, room);
        *pays = error_of(pair, HELD, true, room) < error_of(pair, HELD, false, room);
    }
    if (*pays) {
        set_matrices(pair, ALL, room);
        *pays = error_of(pair, ALL, true, room) < error_of(pair, ALL, false, room);
    }
    return MSC_OK;
}

void msc_equalizer__multiply_side(const struct msc_channel_pair *pair, int of, float weight[],
                                  float bias[]) {
    const struct msc_channel_side *side = &pair->sides[of];
    int64_t size = pair->size, n_inputs = side->n_inputs;
    int64_t out_stride = side->is_input_first ? 1 : n_inputs;
    int64_t in_stride = side->is_input_first ? side->n_outputs : 1;
    for (int64_t h = 0; h < pair->n_heads; h++) {
        const double *t = pair->matrices[of] + h * size * size;
        for (int64_t k = 0; k < n_inputs; k++) {
            msc_equalizer__transform(weight + (side->first + h * size) * out_stride + k * in_stride,
                                     out_stride, t, (size_t)size);
        }
        if (bias) {
            msc_equalizer__transform(bias + side->first + h * size, 1, t, (size_t)size);
        }
    }
}
