// Writes the forms of moves. A channel shuffle is Reshape, Transpose of five axes, Reshape. Around
// these nodes ONNX Runtime changes the layout, which takes longer than the rest of the block; one
// Gather of bytes avoids that. Bytes are padded instead of floats, because padding of floats is not
// matched. Images are resized before the runtime changes the layout.
#include "graph/onnx/onnx_export_form.h"
#include "graph/shuffle.h"

#include <string.h>

enum { IMAGE_DIMS = 4, CHANNEL_AXIS = 1 };

static bool is_same_dim(const struct msc_tensor *a, int i, const struct msc_tensor *b, int k) {
    return a->dims[i] == b->dims[k] && a->prims[i] == b->prims[k] &&
           (a->dims[i] >= 0 || a->prims[i] != MSC_NO_ID);
}

// True if the shuffle exchanges channels of images between quantised tensors.
static bool is_for_bytes(const struct msc_onnx_export *e, const struct msc_shuffle *s) {
    return s->axis == CHANNEL_AXIS &&
           msc_graph_tensor(e->graph, s->merge->outputs[0])->n_dims == IMAGE_DIMS &&
           msc_onnx__byte_edit(e, s->split->id, 0) != NULL &&
           msc_onnx__byte_edit_of(e, s->merge->outputs[0]) != NULL;
}

static bool find_shuffle(struct msc_shuffle *s, const struct msc_onnx_export *e,
                         const struct msc_joint *merge) {
    return msc_shuffle_find(s, e->graph, merge) && is_for_bytes(e, s);
}

static bool is_inside_shuffle(const struct msc_onnx_export *e, const struct msc_joint *j) {
    struct msc_shuffle s;
    return msc_shuffle_around(&s, e->graph, j) && is_for_bytes(e, &s);
}

static enum msc_status write_shuffle(struct msc_onnx_joint *j, const struct msc_shuffle *s) {
    const char *inputs[2], *output = j->e->names[s->merge->outputs[0]];
    size_t n = (size_t)msc_graph_tensor(j->e->graph, s->merge->outputs[0])->dims[CHANNEL_AXIS];
    int64_t *channels = msc_arena_array(&j->e->arena, n, sizeof(channels[0]));
    MSC_TRY(MSC_ALLOCATED(channels));
    for (int64_t c = 0; c < (int64_t)n; c++) {
        channels[c] = msc_shuffle_from(s, c);
    }
    MSC_TRY(msc_onnx__operand(&inputs[0], j->e, s->split, 0));
    MSC_TRY(msc_onnx__int64s(&inputs[1], j, "channels", channels, n));
    MSC_TRY(msc_onnx__add_node(&j->node, j->e, "Gather", j->joint->name, inputs, 2, &output, 1));
    return msc_onnx__put_int(j->e, j->node, "axis", CHANNEL_AXIS);
}

enum msc_status msc_onnx__form_move(bool *is_written, struct msc_onnx_joint *j) {
    struct msc_shuffle s;
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
    struct msc_shuffle s;
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

// Pads the bytes; zeros become the byte that represents 0.
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

bool msc_onnx__shrinks_by_cubes(const struct msc_onnx_joint *j) {
    const struct msc_tensor *x, *y;
    const char *method = msc_joint_attr(j->joint, "method");
    bool grows = true;
    if (!msc_onnx__has_forms(j->e) || j->joint->op != MSC_OP_RESIZE || method == NULL ||
        strcmp(method, "cubic") != 0) {
        return false;
    }
    x = msc_graph_tensor(j->e->graph, j->joint->operands[0]);
    y = msc_graph_tensor(j->e->graph, j->joint->outputs[0]);
    for (int d = CHANNEL_AXIS + 1; d < x->n_dims; d++) {
        grows = grows && x->dims[d] >= 0 && y->dims[d] >= x->dims[d];
    }
    return x->n_dims == IMAGE_DIMS && !grows && is_same_dim(x, CHANNEL_AXIS, y, CHANNEL_AXIS);
}

enum msc_status msc_onnx__keep_layout(struct msc_onnx_joint *j) {
    static const int64_t as_before[IMAGE_DIMS] = {0, 0, 0, 0};
    const char *inputs[2] = {j->inputs[0]};
    const char *name = msc_arena_printf(&j->e->arena, "%s.kept", j->joint->name);
    MSC_TRY(msc_onnx__int64s(&inputs[1], j, "kept", as_before, IMAGE_DIMS));
    return msc_onnx__add_step(&j->inputs[0], j->e, "Reshape", name, inputs, 2);
}
