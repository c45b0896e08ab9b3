// What moves integers. Channel shuffles are Reshape, Transpose of five axes, Reshape: between
// layouts that the runtime turns these are slower than the rest of their block, one Gather of bytes
// is not. Padding is of bytes: there is no matching of floats. Images are resized before the runtime
// turns them.
#include "graph/onnx/onnx_export_form.h"

#include <string.h>

enum { IMAGE_DIMS = 4, CHANNEL_AXIS = 1 };

struct shuffle {
    const struct msc_joint *split, *turn, *merge; // in the order they come
    int64_t groups, size;                         // channels are [groups, size], then turned
};

// The joint of that kind that makes a tensor for one reader alone; NULL: none does.
static const struct msc_joint *sole_maker(const struct msc_graph *g, int32_t tensor,
                                          enum msc_op op) {
    const int32_t *readers;
    int32_t producer = msc_graph_producer(g, tensor);
    const struct msc_joint *j = producer == MSC_NO_ID ? NULL : msc_graph_joint(g, producer);
    bool is_sole = j != NULL && j->op == op && msc_graph_consumers(g, tensor, &readers) == 1 &&
                   !msc_graph_is_output(g, tensor);
    return is_sole ? j : NULL;
}

static bool is_same_dim(const struct msc_tensor *a, int i, const struct msc_tensor *b, int k) {
    return a->dims[i] == b->dims[k] && a->prims[i] == b->prims[k] &&
           (a->dims[i] >= 0 || a->prims[i] != MSC_NO_ID);
}

static bool has_shuffle_dims(struct shuffle *s, const struct msc_graph *g) {
    const struct msc_tensor *x = msc_graph_tensor(g, s->split->operands[0]);
    const struct msc_tensor *parts = msc_graph_tensor(g, s->split->outputs[0]);
    const struct msc_tensor *y = msc_graph_tensor(g, s->merge->outputs[0]);
    int64_t axes[MSC_MAX_DIMS];
    static const int64_t turned[] = {0, 2, 1, 3, 4};
    if (x->n_dims != IMAGE_DIMS || y->n_dims != IMAGE_DIMS || parts->n_dims != IMAGE_DIMS + 1 ||
        msc_joint_attr_list(s->turn, "axes", axes, MSC_MAX_DIMS) != IMAGE_DIMS + 1 ||
        memcmp(axes, turned, sizeof(turned)) != 0) {
        return false;
    }
    s->groups = parts->dims[1];
    s->size = parts->dims[2];
    int64_t channels = s->groups * s->size;
    return s->groups > 0 && s->size > 0 && x->dims[CHANNEL_AXIS] == channels &&
           y->dims[CHANNEL_AXIS] == channels && is_same_dim(x, 0, parts, 0) &&
           is_same_dim(x, 2, parts, 3) && is_same_dim(x, 3, parts, 4) && is_same_dim(x, 0, y, 0) &&
           is_same_dim(x, 2, y, 2) && is_same_dim(x, 3, y, 3);
}

// Is `merge` the last of three, between quantised tensors?
static bool find_shuffle(struct shuffle *s, const struct msc_onnx_export *e,
                         const struct msc_joint *merge) {
    *s = (struct shuffle){.merge = merge};
    if (merge->op != MSC_OP_RESHAPE) {
        return false;
    }
    s->turn = sole_maker(e->graph, merge->operands[0], MSC_OP_PERMUTE_DIMS);
    s->split = s->turn == NULL ? NULL : sole_maker(e->graph, s->turn->operands[0], MSC_OP_RESHAPE);
    return s->split != NULL && msc_onnx__byte_edit(e, s->split->id, 0) != NULL &&
           msc_onnx__byte_edit_of(e, merge->outputs[0]) != NULL && has_shuffle_dims(s, e->graph);
}

// The only joint that reads what `j` makes, or NULL.
static const struct msc_joint *sole_reader(const struct msc_graph *g, const struct msc_joint *j) {
    const int32_t *readers;
    bool is_sole = msc_graph_consumers(g, j->outputs[0], &readers) == 1;
    return is_sole ? msc_graph_joint(g, readers[0]) : NULL;
}

static bool is_inside_shuffle(const struct msc_onnx_export *e, const struct msc_joint *j) {
    struct shuffle s;
    const struct msc_joint *next = sole_reader(e->graph, j);
    if (next != NULL && j->op == MSC_OP_RESHAPE && next->op == MSC_OP_PERMUTE_DIMS) {
        const struct msc_joint *last = sole_reader(e->graph, next);
        return last != NULL && find_shuffle(&s, e, last) && s.split == j;
    }
    return next != NULL && find_shuffle(&s, e, next) && s.turn == j;
}

static enum msc_status write_shuffle(struct msc_onnx_joint *j, const struct shuffle *s) {
    const char *inputs[2], *output = j->e->names[s->merge->outputs[0]];
    size_t n = (size_t)(s->groups * s->size);
    int64_t *channels = msc_arena_array(&j->e->arena, n, sizeof(channels[0]));
    if (channels == NULL) {
        return msc_onnx__no_memory(j->e);
    }
    for (int64_t c = 0; c < (int64_t)n; c++) {
        channels[c] = c % s->groups * s->size + c / s->groups;
    }
    MSC_TRY(msc_onnx__operand(&inputs[0], j->e, s->split, 0));
    MSC_TRY(msc_onnx__int64s(&inputs[1], j, "channels", channels, n));
    MSC_TRY(msc_onnx__add_node(&j->node, j->e, "Gather", j->joint->name, inputs, 2, &output, 1));
    return msc_onnx__put_int(j->e, j->node, "axis", CHANNEL_AXIS);
}

enum msc_status msc_onnx__form_move(bool *is_written, struct msc_onnx_joint *j) {
    struct shuffle s;
    if (is_inside_shuffle(j->e, j->joint)) {
        *is_written = true;
        return MSC_OK;
    }
    if (!find_shuffle(&s, j->e, j->joint)) {
        return MSC_OK;
    }
    *is_written = true;
    return write_shuffle(j, &s);
}

bool msc_onnx__is_read(const struct msc_onnx_export *e, const struct msc_joint *j,
                       int32_t operand) {
    struct shuffle s;
    bool is_turned = j->op == MSC_OP_RESHAPE && operand > 0;
    return !is_turned || (!is_inside_shuffle(e, j) && !find_shuffle(&s, e, j));
}

static bool is_without_effect(const struct msc_joint *j) {
    int64_t widths[2 * MSC_MAX_DIMS];
    int n = msc_joint_attr_list(j, "pad_width", widths, 2 * MSC_MAX_DIMS);
    for (int i = 0; i < n; i++) {
        if (widths[i] != 0) {
            return false;
        }
    }
    return n > 0;
}

// What is padded with zeros is so with the bytes that stand for 0.
enum msc_status msc_onnx__form_pad(bool *is_written, struct msc_onnx_joint *j) {
    struct msc_onnx_export *e = j->e;
    const char *value, *inputs[4], *parts[3];
    const char *padded = msc_arena_printf(&e->arena, "%s.bytes", j->joint->name);
    const char **output = &e->names[j->joint->outputs[0]];
    if (msc_onnx__byte_edit(e, j->joint->id, 0) == NULL ||
        msc_onnx__byte_edit_of(e, j->joint->outputs[0]) == NULL) {
        return MSC_OK;
    }
    MSC_TRY(msc_onnx__operand(&value, e, j->joint, 0));
    *is_written = true;
    if (is_without_effect(j->joint)) {
        *output = value;
        return MSC_OK;
    }
    const Onnx__NodeProto *pair = msc_onnx__pair_of(e, value);
    const char *mode = msc_joint_attr(j->joint, "pad_mode");
    bool is_constant = mode == NULL || strcmp(mode, "constant") == 0;
    for (size_t i = 0; i < 3; i++) {
        parts[i] = pair->input[i];
    }
    inputs[0] = parts[0];
    inputs[2] = is_constant ? parts[2] : "";
    MSC_TRY(msc_onnx__list_input(&inputs[1], j, "pad_width"));
    MSC_TRY(msc_onnx__list_input(&inputs[3], j, "axes"));
    MSC_TRY(msc_onnx__add_step(&parts[0], e, "Pad", padded, inputs, 4));
    j->node = e->nodes[e->n_nodes - 1];
    MSC_TRY(msc_onnx__put_attrs(j, "pad_mode"));
    return msc_onnx__add_node(&j->node, e, "DequantizeLinear", j->joint->name, parts, 3, output, 1);
}

bool msc_onnx__resizes_image(const struct msc_onnx_joint *j) {
    const struct msc_tensor *x, *y;
    if (j->joint->op != MSC_OP_RESIZE || msc_onnx__byte_edit(j->e, j->joint->id, 0) == NULL) {
        return false;
    }
    x = msc_graph_tensor(j->e->graph, j->joint->operands[0]);
    y = msc_graph_tensor(j->e->graph, j->joint->outputs[0]);
    return x->n_dims == IMAGE_DIMS && is_same_dim(x, CHANNEL_AXIS, y, CHANNEL_AXIS);
}

enum msc_status msc_onnx__keep_layout(struct msc_onnx_joint *j) {
    static const int64_t as_before[IMAGE_DIMS] = {0, 0, 0, 0};
    const char *inputs[2] = {j->inputs[0]};
    const char *name = msc_arena_printf(&j->e->arena, "%s.kept", j->joint->name);
    MSC_TRY(msc_onnx__int64s(&inputs[1], j, "kept", as_before, IMAGE_DIMS));
    return msc_onnx__add_step(&j->inputs[0], j->e, "Reshape", name, inputs, 2);
}
