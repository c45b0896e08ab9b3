#include "tools/equalizer_internal.h"

#include "graph/wide.h"
#include "tools/strategy_internal.h"

#include <string.h>

// A tensor on the way from the maker to its readers.
struct place {
    int32_t tensor;
    int axis;      // of the channels
    int64_t inner; // elements along the axis for one channel
};

struct finder {
    const struct msc_graph *g;
    const struct msc_sites *sites;
    struct msc_arena *arena;
    struct msc_channel_link *link;      // being examined
    struct msc_channel_reader *readers; // [n_joints] room
    struct place *places;               // [n_joints + 1] room
    size_t n_places, n_seen;
    bool is_direct; // no joint between maker and readers
    bool of_linear; // no convolution makes or reads the channels
};

static bool is_conv(enum msc_op op) {
    return op == MSC_OP_CONV1D || op == MSC_OP_CONV2D || op == MSC_OP_CONV3D ||
           op == MSC_OP_CONV1D_BIAS || op == MSC_OP_CONV2D_BIAS || op == MSC_OP_CONV3D_BIAS;
}

static bool is_linear(enum msc_op op) {
    return op == MSC_OP_LINEAR || op == MSC_OP_LINEAR_BIAS;
}

static bool is_pool(enum msc_op op) {
    return op == MSC_OP_MAX_POOL1D || op == MSC_OP_MAX_POOL2D || op == MSC_OP_MAX_POOL3D ||
           op == MSC_OP_AVG_POOL1D || op == MSC_OP_AVG_POOL2D || op == MSC_OP_AVG_POOL3D ||
           op == MSC_OP_GLOBAL_AVG_POOL || op == MSC_OP_GLOBAL_MAX_POOL;
}

static bool has_letters(const struct msc_joint *j, const char *key, int at, const char *letters) {
    const char *text = msc_joint_attr(j, key);
    return text && strlen(text) >= (size_t)at + strlen(letters) &&
           memcmp(text + at, letters, strlen(letters)) == 0;
}

// True if the tensor is constant, of float32, and read by one joint only.
static bool is_own(const struct finder *f, int32_t tensor) {
    const int32_t *joints;
    const struct msc_tensor *t = msc_graph_tensor(f->g, tensor);
    return t->data && t->dtype == MSC_DTYPE_F32 && msc_graph_consumers(f->g, tensor, &joints) == 1;
}

// The joint's parameter with this role if no other joint reads it; else MSC_NO_ID.
static int32_t own_parameter(const struct finder *f, const struct msc_joint *j, const char *role) {
    int32_t tensor = msc_joint_weight(j, role);
    return tensor != MSC_NO_ID && is_own(f, tensor) ? tensor : MSC_NO_ID;
}

static bool has_elements(const struct finder *f, int32_t tensor, int64_t n) {
    return msc_tensor_n_elements(msc_graph_tensor(f->g, tensor)) == n;
}

static int weight_operand(const struct msc_joint *j) {
    return msc_joint_operand(j, "weight");
}

// True if the joint is a convolution or a linear layer whose weight belongs to it alone, with known
// axes.
static bool is_product(const struct finder *f, const struct msc_joint *j) {
    int32_t slot = msc_sites_find_slot(f->sites, j->id, weight_operand(j));
    if (slot == MSC_NO_ID || own_parameter(f, j, "weight") == MSC_NO_ID) {
        return false;
    }
    int axis = f->sites->slots[slot].channel_axis;
    if (is_conv(j->op)) {
        return axis == 0 && has_letters(j, "kernel_layout", 0, "OI") &&
               has_letters(j, "data_layout", 1, "C");
    }
    const struct msc_tensor *t = msc_graph_tensor(f->g, own_parameter(f, j, "weight"));
    return is_linear(j->op) && t->n_dims == 2 && (axis == 0 || axis == 1);
}

static bool has_bias(const struct msc_joint *j) {
    return msc_joint_operand(j, "bias") >= 0;
}

// ---- Makers -----------------------------------------------------------------------------------

// Sets the link's maker to a convolution or linear layer. False if its parameters are not its own.
static bool set_product(struct msc_channel_link *link, const struct finder *f,
                        const struct msc_joint *j) {
    if (!is_product(f, j)) {
        return false;
    }
    int32_t slot = msc_sites_find_slot(f->sites, j->id, weight_operand(j));
    int axis = f->sites->slots[slot].channel_axis;
    link->weight = own_parameter(f, j, "weight");
    link->bias = own_parameter(f, j, "bias");
    const struct msc_tensor *t = msc_graph_tensor(f->g, link->weight);
    link->n_channels = t->dims[axis];
    link->n_per_channel = msc_tensor_n_elements(t) / t->dims[axis];
    link->is_input_first = axis == 1;
    return link->bias == MSC_NO_ID ? !has_bias(j) : has_elements(f, link->bias, link->n_channels);
}

bool msc_equalizer__set_linear(struct msc_channel_link *link, const struct msc_graph *g,
                               const struct msc_sites *sites, const struct msc_joint *j) {
    const struct finder f = {.g = g, .sites = sites};
    return is_linear(j->op) && set_product(link, &f, j);
}

// Sets the link's maker to a product with a constant that has one element for each index of one
// axis, such as the last step of an RMS normalisation. False if it is none.
static bool set_scale(struct msc_channel_link *link, struct finder *f, const struct msc_joint *j) {
    const struct msc_tensor *out = msc_graph_tensor(f->g, j->outputs[0]);
    int of_scale = msc_graph_weight_of(f->g, j->operands[0]) == MSC_NO_ID ? 1 : 0, axis = -1;
    int32_t operand = j->operands[of_scale], weight = msc_graph_weight_of(f->g, operand);
    const struct msc_tensor *t = msc_graph_tensor(f->g, operand);
    const int32_t *joints;
    for (int i = 0; i < t->n_dims; i++) {
        if (t->dims[i] != 1 && axis >= 0) {
            return false;
        }
        axis = t->dims[i] != 1 ? i : axis;
    }
    if (axis < 0 || t->n_dims > out->n_dims || weight == MSC_NO_ID || !is_own(f, weight) ||
        msc_graph_consumers(f->g, operand, &joints) != 1) {
        return false;
    }
    link->weight = weight;
    link->n_channels = t->dims[axis];
    link->n_per_channel = 1;
    f->places[0].axis = axis + out->n_dims - t->n_dims;
    return out->dims[f->places[0].axis] == link->n_channels;
}

// Sets the link's maker. False if the joint's channels cannot be rescaled.
static bool make_link(struct finder *f, const struct msc_joint *j) {
    struct msc_channel_link *link = f->link;
    const struct msc_tensor *out = msc_graph_tensor(f->g, j->outputs[0]);
    bool is_norm = j->op == MSC_OP_LAYER_NORM;
    int64_t axes[2];
    if (f->of_linear && is_conv(j->op)) {
        return false;
    }
    *link = (struct msc_channel_link){.bias = MSC_NO_ID};
    f->places[0] = (struct place){j->outputs[0], out->n_dims - 1, 1};
    f->n_places = 1;
    if (is_norm) {
        link->weight = own_parameter(f, j, "gamma");
        link->bias = own_parameter(f, j, "beta");
        bool is_last = msc_joint_attr_list(j, "axes", axes, 2) == 1 &&
                       (axes[0] == -1 || axes[0] == out->n_dims - 1);
        link->n_per_channel = 1;
        if (!is_last || link->weight == MSC_NO_ID ||
            (msc_joint_operand(j, "beta") >= 0 && link->bias == MSC_NO_ID)) {
            return false;
        }
        link->n_channels = msc_tensor_n_elements(msc_graph_tensor(f->g, link->weight));
    } else if (j->op == MSC_OP_MULTIPLY) {
        if (!set_scale(link, f, j)) {
            return false;
        }
    } else if (set_product(link, f, j)) {
        f->places[0].axis = is_conv(j->op) ? 1 : out->n_dims - 1;
    } else {
        return false;
    }
    return link->n_channels > 1 &&
           (link->bias == MSC_NO_ID || has_elements(f, link->bias, link->n_channels));
}

// ---- Readers ----------------------------------------------------------------------------------

static bool add_reader(struct finder *f, const struct msc_joint *j, const struct place *p) {
    const struct msc_tensor *x = msc_graph_tensor(f->g, p->tensor);
    int32_t slot = msc_sites_find_slot(f->sites, j->id, 0);
    int axis = is_conv(j->op) ? 1 : x->n_dims - 1;
    if ((f->of_linear && is_conv(j->op)) || !is_product(f, j) || slot == MSC_NO_ID ||
        j->operands[0] != p->tensor || axis != p->axis ||
        f->sites->slots[slot].kind != MSC_SITE_ACTIVATION) {
        return false;
    }
    const struct msc_slot *of_weight =
        &f->sites->slots[msc_sites_find_slot(f->sites, j->id, weight_operand(j))];
    struct msc_channel_reader r = {.weight = own_parameter(f, j, "weight"),
                                   .bias =
                                       is_linear(j->op) ? own_parameter(f, j, "bias") : MSC_NO_ID,
                                   .slot = slot,
                                   .axis = axis,
                                   .is_input_first = of_weight->channel_axis == 1,
                                   .inner = p->inner};
    const struct msc_tensor *w = msc_graph_tensor(f->g, r.weight);
    int64_t n_groups = 1;
    if (is_conv(j->op) && !msc_joint_attr_i64(j, "groups", &n_groups)) {
        return false;
    }
    r.n_rows = w->dims[of_weight->channel_axis];
    r.n_columns = msc_tensor_n_elements(w) / r.n_rows;
    r.rows_per_group = r.n_rows / n_groups;
    r.channels_per_group = f->link->n_channels / n_groups;
    r.repeat = r.n_columns / r.channels_per_group;
    if (r.bias != MSC_NO_ID && !has_elements(f, r.bias, r.n_rows)) {
        r.bias = MSC_NO_ID;
    }
    f->readers[f->link->n_readers++] = r;
    return r.channels_per_group * n_groups == f->link->n_channels &&
           r.repeat * r.channels_per_group == r.n_columns && (!is_conv(j->op) || p->inner == 1);
}

// Sets *out to the place of the channels after a reshape of [n, channels, …] to [n, rest].
static bool flatten(struct place *out, const struct finder *f, const struct place *p) {
    const struct msc_tensor *x = msc_graph_tensor(f->g, p->tensor);
    const struct msc_tensor *y = msc_graph_tensor(f->g, out->tensor);
    int64_t inner = 1;
    for (int i = 2; i < x->n_dims; i++) {
        inner *= x->dims[i] > 0 ? x->dims[i] : 0;
    }
    out->axis = 1;
    out->inner = p->inner * inner;
    return p->axis == 1 && y->n_dims == 2 && x->n_dims > 1 && inner > 0 &&
           y->dims[1] == x->dims[1] * inner;
}

// True if an elementwise product or quotient of the channels and another tensor keeps their axis.
// The other tensor may be anything that does not depend on the channels.
static bool is_gate(const struct finder *f, const struct msc_joint *j, const struct place *p) {
    const struct msc_tensor *x = msc_graph_tensor(f->g, p->tensor);
    const struct msc_tensor *y = msc_graph_tensor(f->g, j->outputs[0]);
    bool is_first = j->operands[0] == p->tensor;
    return j->operands[0] != j->operands[1] && (is_first || j->op == MSC_OP_MULTIPLY) &&
           x->n_dims == y->n_dims && x->dims[p->axis] > 1 && x->dims[p->axis] == y->dims[p->axis];
}

// Follows the channels through a joint. False if the joint does not commute with a rescaling.
static bool pass(struct place *out, const struct finder *f, const struct msc_joint *j,
                 const struct place *p) {
    *out = (struct place){j->outputs[0], p->axis, p->inner};
    if (j->op == MSC_OP_RELU || j->op == MSC_OP_LEAKY_RELU) {
        return true;
    }
    if (j->op == MSC_OP_MULTIPLY || j->op == MSC_OP_DIVIDE) {
        return is_gate(f, j, p);
    }
    if (j->op == MSC_OP_RESHAPE || j->op == MSC_OP_FLATTEN) {
        return flatten(out, f, p);
    }
    return is_pool(j->op) && p->axis == 1 && has_letters(j, "layout", 1, "C");
}

// True if the channels reach a tensor on two ways, as in a product of the channels with themselves.
static bool is_place(const struct finder *f, int32_t tensor) {
    for (size_t i = 0; i < f->n_places; i++) {
        if (f->places[i].tensor == tensor) {
            return true;
        }
    }
    return false;
}

// Finds all readers of the maker. False if anything else reads the channels.
static bool find_readers(struct finder *f) {
    f->is_direct = true;
    for (f->n_seen = 0; f->n_seen < f->n_places; f->n_seen++) {
        const struct place p = f->places[f->n_seen];
        const int32_t *joints;
        int32_t n = msc_graph_consumers(f->g, p.tensor, &joints);
        if (msc_graph_is_output(f->g, p.tensor)) {
            return false;
        }
        for (int32_t i = 0; i < n; i++) {
            const struct msc_joint *j = msc_graph_joint(f->g, joints[i]);
            struct place next;
            if (j->op == MSC_OP_SHAPE_OF) {
                continue; // reads no elements
            }
            if (is_conv(j->op) || is_linear(j->op)) {
                if (!add_reader(f, j, &p)) {
                    return false;
                }
            } else if (j->n_operands > 0 && pass(&next, f, j, &p) && !is_place(f, next.tensor)) {
                f->is_direct = false;
                f->places[f->n_places++] = next;
            } else {
                return false;
            }
        }
    }
    return f->link->n_readers > 0;
}

// Does a link rescale what this slot reads?
static bool is_linked(const struct msc_channel_link links[], size_t n, int32_t slot) {
    for (size_t i = 0; i < n; i++) {
        for (int32_t k = 0; k < links[i].n_readers; k++) {
            if (links[i].readers[k].slot == slot) {
                return true;
            }
        }
    }
    return false;
}

// Is what a reader of this link reads rescaled by an earlier link, which shares it by a product?
static bool shares_reader(const struct msc_channel_link *link,
                          const struct msc_channel_link links[], size_t n) {
    bool found = false;
    for (int32_t i = 0; i < link->n_readers; i++) {
        found = found || is_linked(links, n, link->readers[i].slot);
    }
    return found;
}

static enum msc_status keep_link(struct finder *f) {
    struct msc_channel_link *link = f->link;
    size_t n = (size_t)link->n_readers;
    link->readers = msc_arena_array(f->arena, n, sizeof(link->readers[0]));
    MSC_TRY(MSC_ALLOCATED(link->readers));
    memcpy(link->readers, f->readers, n * sizeof(link->readers[0]));
    link->takes_shift = f->is_direct && link->bias != MSC_NO_ID;
    for (size_t i = 0; i < n; i++) {
        link->takes_shift = link->takes_shift && link->readers[i].bias != MSC_NO_ID;
    }
    return MSC_OK;
}

// ---- Multiplications --------------------------------------------------------------------------

// Sets the link of all convolutions and linear layers that read a tensor, without a maker. False if
// there are none, if the weight of one is not its own, or if one of the first n links rescales it.
static bool find_multiplied(struct finder *f, const struct msc_joint *j,
                            const struct msc_channel_link links[], size_t n) {
    const int32_t *joints;
    int32_t tensor = j->outputs[0], n_joints = msc_graph_consumers(f->g, tensor, &joints);
    const struct msc_tensor *t = msc_graph_tensor(f->g, tensor);
    if (j->op == MSC_OP_INPUT || j->op == MSC_OP_CONSTANT || n_joints == 0 ||
        t->dtype != MSC_DTYPE_F32 || t->n_dims < 2) {
        return false;
    }
    *f->link =
        (struct msc_channel_link){.weight = MSC_NO_ID, .bias = MSC_NO_ID, .multiplied = tensor};
    for (int32_t i = 0; i < n_joints; i++) {
        const struct msc_joint *reader = msc_graph_joint(f->g, joints[i]);
        const struct place place = {tensor, is_conv(reader->op) ? 1 : t->n_dims - 1, 1};
        if (!msc_strategy__is_multiplied(reader, tensor)) {
            continue;
        }
        f->link->n_channels = t->dims[place.axis];
        if (f->link->n_channels < 2 || !add_reader(f, reader, &place) ||
            is_linked(links, n, f->readers[f->link->n_readers - 1].slot) ||
            f->readers[0].axis != place.axis) {
            return false;
        }
    }
    f->is_direct = false; // takes no shift
    return f->link->n_readers > 0;
}

enum msc_status msc_equalizer__find(struct msc_channel_link **links, size_t *n,
                                    const struct msc_graph *g, const struct msc_sites *sites,
                                    const struct msc_equalize_bits *bits, struct msc_arena *arena) {
    size_t n_joints = (size_t)msc_graph_n_joints(g);
    struct finder f = {.g = g, .sites = sites, .arena = arena, .of_linear = bits->of_linear};
    *links = msc_arena_array(arena, 2 * n_joints + 1, sizeof((*links)[0]));
    f.readers = msc_arena_array(arena, n_joints + 1, sizeof(f.readers[0]));
    f.places = msc_arena_array(arena, n_joints + 1, sizeof(f.places[0]));
    MSC_TRY(MSC_ALLOCATED(*links && f.readers && f.places));
    *n = 0;
    for (size_t i = 0; i < n_joints; i++) {
        const struct msc_joint *j = msc_graph_joint(g, (int32_t)i);
        f.link = &(*links)[*n];
        if (!make_link(&f, j) || !find_readers(&f)) {
            continue;
        }
        MSC_TRY(keep_link(&f));
        *n += !shares_reader(f.link, *links, *n);
    }
    size_t n_made = *n;
    for (size_t i = 0; bits->multiplies && msc_graph_own(g) == g && i < n_joints; i++) {
        f.link = &(*links)[*n];
        if (find_multiplied(&f, msc_graph_joint(g, (int32_t)i), *links, n_made)) {
            MSC_TRY(keep_link(&f));
            (*n)++;
        }
    }
    return MSC_OK;
}
