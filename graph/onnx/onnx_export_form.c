// Which forms a joint is written in, what its edits are, and the small ones: limits, shapes,
// shields. What is matched was measured with ONNX Runtime 1.32.
#include "graph/onnx/onnx_export_form.h"

#include "graph/target.h"

#include <math.h>
#include <string.h>

typedef enum msc_status (*form_fn)(bool *is_written, struct msc_onnx_joint *j);

bool msc_onnx__has_forms(const struct msc_onnx_export *e) {
    const struct msc_sites *sites = e->options->sites;
    return e->options->slot_edits != NULL && sites->scheme.target != NULL &&
           sites->scheme.target->has_forms;
}

static enum msc_target_role role_of(const struct msc_onnx_export *e, const struct msc_joint *j) {
    return msc_target_role(e->options->sites->scheme.target, e->graph, j);
}

static const struct msc_edit *edit_at(const struct msc_onnx_export *e, int32_t joint,
                                      int32_t operand) {
    int32_t slot = msc_sites_find_slot(e->options->sites, joint, operand);
    return slot == MSC_NO_ID ? NULL : e->options->slot_edits[slot];
}

bool msc_onnx__is_byte(const struct msc_edit *edit) {
    return edit != NULL && edit->kind == MSC_EDIT_QUANTIZE && edit->next == NULL &&
           edit->quant.type == MSC_DTYPE_NONE && edit->quant.bits <= 8 &&
           edit->quant.group_size == 0;
}

const struct msc_edit *msc_onnx__byte_edit(const struct msc_onnx_export *e, int32_t joint,
                                           int32_t operand) {
    const struct msc_edit *edit = edit_at(e, joint, operand);
    return msc_onnx__is_byte(edit) ? edit : NULL;
}

// Adds the edit of one use; false when it differs from those before.
static bool add_use(const struct msc_edit **all, const struct msc_edit *edit) {
    if (edit == NULL || edit->quant.axis >= 0 ||
        (*all != NULL && !msc_hash_equal((*all)->hash, edit->hash))) {
        return false;
    }
    *all = edit;
    return true;
}

const struct msc_edit *msc_onnx__byte_edit_of(const struct msc_onnx_export *e, int32_t tensor) {
    const int32_t *readers;
    const struct msc_edit *edit = NULL;
    int32_t n = msc_graph_consumers(e->graph, tensor, &readers);
    for (int32_t i = 0; i < n; i++) {
        const struct msc_joint *j = msc_graph_joint(e->graph, readers[i]);
        for (int32_t k = 0; k < j->n_operands && j->op != MSC_OP_SHAPE_OF; k++) {
            if (j->operands[k] == tensor && !add_use(&edit, msc_onnx__byte_edit(e, j->id, k))) {
                return NULL;
            }
        }
    }
    for (int32_t i = 0; i < msc_graph_n_outputs(e->graph); i++) {
        if (msc_graph_output(e->graph, i) == tensor &&
            !add_use(&edit, msc_onnx__byte_edit(e, MSC_NO_ID, i))) {
            return NULL;
        }
    }
    return edit;
}

// Factors have to be integers of a byte, and biases, where there are any, are rounded then.
bool msc_onnx__computes_integers(const struct msc_onnx_export *e, const struct msc_joint *j) {
    if (!msc_onnx__has_forms(e) || !msc_target_is_integer(role_of(e, j))) {
        return false;
    }
    for (int32_t k = 0; k < j->n_operands; k++) {
        struct msc_op_role role;
        bool is_factor = j->operands[k] != MSC_NO_ID && msc_op_role(j->op, k, &role) &&
                         !role.is_attribute && !role.is_bias_slot;
        if (is_factor && msc_onnx__byte_edit(e, j->id, k) == NULL) {
            return false;
        }
    }
    return true;
}

static bool has_known_dims(const struct msc_graph *g, int32_t tensor) {
    const struct msc_tensor *t = msc_graph_tensor(g, tensor);
    for (int i = 0; i < t->n_dims; i++) {
        if (t->dims[i] < 0) {
            return false;
        }
    }
    return true;
}

// A product and an addition become one integer kernel only where dims are known; else the addition
// is one of floats.
static bool adds_floats(const struct msc_graph *g, const struct msc_slot *slot) {
    const struct msc_joint *j = msc_graph_joint(g, slot->joint);
    return slot->kind == MSC_SITE_BIAS && j->op == MSC_OP_LINEAR_BIAS &&
           msc_graph_tensor(g, j->operands[0])->n_dims != 2 && !has_known_dims(g, j->operands[0]);
}

bool msc_onnx__is_folded(const struct msc_onnx_export *e, int32_t constant) {
    const struct msc_sites *sites = e->options->sites;
    for (int32_t i = 0; msc_onnx__has_forms(e) && i < sites->n_slots; i++) {
        const struct msc_slot *slot = &sites->slots[i];
        if (slot->tensor == constant && slot->joint != MSC_NO_ID &&
            (!msc_onnx__computes_integers(e, msc_graph_joint(e->graph, slot->joint)) ||
             adds_floats(e->graph, slot))) {
            return true;
        }
    }
    return false;
}

const Onnx__NodeProto *msc_onnx__pair_of(const struct msc_onnx_export *e, const char *value) {
    for (size_t i = e->n_nodes; i-- > 0;) {
        if (strcmp(e->nodes[i]->output[0], value) == 0) {
            return strcmp(e->nodes[i]->op_type, "DequantizeLinear") == 0 ? e->nodes[i] : NULL;
        }
    }
    return NULL;
}

static bool has_known_limits(const struct msc_joint *j) {
    bool is_known = true;
    for (int32_t k = 1; k < j->n_operands && j->op == MSC_OP_CLIP; k++) {
        is_known = is_known && j->operands[k] == MSC_NO_ID;
    }
    return is_known;
}

// Of a joint that saturates.
static void read_limits(float limits[2], const struct msc_graph *g, const struct msc_joint *j) {
    bool is_given = j->op == MSC_OP_MAXIMUM || j->op == MSC_OP_MINIMUM;
    int32_t constant = is_given ? msc_graph_weight_of(g, j->operands[1]) : MSC_NO_ID;
    float value = 0; // of Relu
    if (is_given) {
        value = *(const float *)msc_array_data(msc_graph_tensor(g, constant)->data);
    }
    limits[0] = j->op == MSC_OP_MINIMUM ? -INFINITY : value;
    limits[1] = j->op == MSC_OP_MINIMUM ? value : INFINITY;
    if (j->op == MSC_OP_CLIP && !msc_joint_attr_float(j, "min", &limits[0])) {
        limits[0] = -INFINITY;
    }
    if (j->op == MSC_OP_CLIP && !msc_joint_attr_float(j, "max", &limits[1])) {
        limits[1] = INFINITY;
    }
}

bool msc_onnx__is_dropped(const struct msc_onnx_export *e, const struct msc_joint *j) {
    const int32_t *readers;
    if (!msc_onnx__has_forms(e) || role_of(e, j) != MSC_TARGET_SATURATES || !has_known_limits(j) ||
        edit_at(e, j->id, 0) != NULL ||
        msc_graph_weight_of(e->graph, j->operands[0]) != MSC_NO_ID) {
        return false;
    }
    int32_t between = j->operands[0];
    const struct msc_joint *maker =
        msc_graph_joint(e->graph, msc_graph_producer(e->graph, between));
    return msc_target_is_integer(role_of(e, maker)) &&
           msc_graph_consumers(e->graph, between, &readers) == 1 &&
           !msc_graph_is_output(e->graph, between) &&
           msc_onnx__byte_edit_of(e, j->outputs[0]) != NULL;
}

// Between bytes x = (q - z) * s this is what an addition of (q - z) * (alpha * s) and beta gives.
static bool is_saturated_sum(const struct msc_onnx_export *e, const struct msc_joint *j) {
    float alpha, beta;
    return j->op == MSC_OP_HARD_SIGMOID && msc_onnx__byte_edit(e, j->id, 0) != NULL &&
           msc_onnx__byte_edit_of(e, j->outputs[0]) != NULL &&
           msc_joint_attr_float(j, "alpha", &alpha) && msc_joint_attr_float(j, "beta", &beta) &&
           alpha > 0 && beta > 0;
}

bool msc_onnx__limits_of(float limits[2], const struct msc_onnx_export *e, int32_t tensor) {
    int32_t producer = msc_graph_producer(e->graph, tensor);
    const struct msc_joint *j = producer == MSC_NO_ID ? NULL : msc_graph_joint(e->graph, producer);
    limits[0] = 0;
    limits[1] = 1;
    if (!msc_onnx__has_forms(e) || j == NULL) {
        return false;
    }
    if (is_saturated_sum(e, j)) {
        return true;
    }
    if (!msc_onnx__is_dropped(e, j)) {
        return false;
    }
    read_limits(limits, e->graph, j);
    return true;
}

static enum msc_status form_limit(bool *is_written, struct msc_onnx_joint *j) {
    if (msc_onnx__is_dropped(j->e, j->joint)) {
        j->e->names[j->joint->outputs[0]] = j->e->names[j->joint->operands[0]];
        *is_written = true;
    }
    return MSC_OK;
}

// A number behind DequantizeLinear, as the byte 1 of that scale, with as many axes as what it is
// added to: these let the kernel stay between convolutions of its layout.
static enum msc_status add_number(const char **out, struct msc_onnx_joint *j, float value) {
    static const int64_t ones[MSC_MAX_DIMS] = {1, 1, 1, 1, 1, 1, 1, 1};
    int n_dims = msc_graph_tensor(j->e->graph, j->joint->operands[0])->n_dims;
    const char *inputs[3];
    uint8_t *bytes = msc_arena_alloc(&j->e->arena, 2);
    float *scale = msc_arena_alloc(&j->e->arena, sizeof(*scale));
    const char *name = msc_arena_printf(&j->e->arena, "%s.beta", j->joint->name);
    if (bytes == NULL || scale == NULL || name == NULL) {
        return msc_onnx__no_memory(j->e);
    }
    bytes[0] = 1;
    bytes[1] = 0;
    *scale = value;
    MSC_TRY(
        msc_onnx__add_initializer(&inputs[0], j->e, name, MSC_ONNX_UINT8, n_dims, ones, bytes, 1));
    MSC_TRY(msc_onnx__add_initializer(&inputs[1], j->e, name, MSC_ONNX_FLOAT, 0, NULL, scale,
                                      sizeof(*scale)));
    MSC_TRY(
        msc_onnx__add_initializer(&inputs[2], j->e, name, MSC_ONNX_UINT8, 0, NULL, bytes + 1, 1));
    return msc_onnx__add_step(out, j->e, "DequantizeLinear", name, inputs, 3);
}

static enum msc_status form_hard_sigmoid(bool *is_written, struct msc_onnx_joint *j) {
    const char *value, *scaled[3], *terms[2], *output = j->e->names[j->joint->outputs[0]];
    float alpha = 0, beta = 0, *scale = msc_arena_alloc(&j->e->arena, sizeof(*scale));
    const char *name = msc_arena_printf(&j->e->arena, "%s.alpha", j->joint->name);
    if (!is_saturated_sum(j->e, j->joint)) {
        return MSC_OK;
    }
    MSC_TRY(msc_onnx__operand(&value, j->e, j->joint, 0));
    const Onnx__NodeProto *pair = msc_onnx__pair_of(j->e, value);
    if (scale == NULL || name == NULL) {
        return msc_onnx__no_memory(j->e);
    }
    (void)msc_joint_attr_float(j->joint, "alpha", &alpha);
    (void)msc_joint_attr_float(j->joint, "beta", &beta);
    *scale = alpha * msc_onnx__byte_edit(j->e, j->joint->id, 0)->quant.scales[0];
    scaled[0] = pair->input[0];
    scaled[2] = pair->input[2];
    MSC_TRY(msc_onnx__add_initializer(&scaled[1], j->e, name, MSC_ONNX_FLOAT, 0, NULL, scale,
                                      sizeof(*scale)));
    MSC_TRY(msc_onnx__add_step(&terms[0], j->e, "DequantizeLinear", name, scaled, 3));
    MSC_TRY(add_number(&terms[1], j, beta));
    *is_written = true;
    return msc_onnx__add_node(&j->node, j->e, "Add", j->joint->name, terms, 2, &output, 1);
}

// The shape of a tensor is that of its bytes: a reader of the floats would keep what makes them from
// being matched.
static enum msc_status form_shape(bool *is_written, struct msc_onnx_joint *j) {
    const int32_t *readers;
    int32_t tensor = j->joint->operands[0];
    int32_t n = msc_graph_consumers(j->e->graph, tensor, &readers);
    if (msc_graph_weight_of(j->e->graph, tensor) != MSC_NO_ID ||
        msc_onnx__byte_edit_of(j->e, tensor) == NULL) {
        return MSC_OK;
    }
    for (int32_t i = 0; i < n; i++) {
        const struct msc_joint *reader = msc_graph_joint(j->e->graph, readers[i]);
        for (int32_t k = 0; k < reader->n_operands && reader->op != MSC_OP_SHAPE_OF; k++) {
            const char *value = "";
            if (reader->operands[k] == tensor) {
                MSC_TRY(msc_onnx__edited_input(&value, j->e, reader, k));
            }
            const Onnx__NodeProto *pair = msc_onnx__pair_of(j->e, value);
            if (pair != NULL) {
                const char *bytes = pair->input[0];
                j->inputs = &bytes;
                *is_written = true;
                return msc_onnx__write_direct(j);
            }
        }
    }
    return MSC_OK;
}

static const form_fn forms[MSC_OP_COUNT] = {
    [MSC_OP_RELU] = form_limit,
    [MSC_OP_CLIP] = form_limit,
    [MSC_OP_MAXIMUM] = form_limit,
    [MSC_OP_MINIMUM] = form_limit,
    [MSC_OP_HARD_SIGMOID] = form_hard_sigmoid,
    [MSC_OP_SHAPE_OF] = form_shape,
    [MSC_OP_TAKE] = msc_onnx__form_take,
    [MSC_OP_AVG_POOL2D] = msc_onnx__form_pool,
    [MSC_OP_BATCH_NORM] = msc_onnx__form_batch_norm,
    [MSC_OP_MEAN] = msc_onnx__form_mean,
    [MSC_OP_PAD] = msc_onnx__form_pad,
    [MSC_OP_RESHAPE] = msc_onnx__form_move,
    [MSC_OP_PERMUTE_DIMS] = msc_onnx__form_move,
};

// Joints of shapes that were for others than their forms.
enum msc_status msc_onnx__find_unread(struct msc_onnx_export *e) {
    const struct msc_graph *g = e->graph;
    if (!msc_onnx__has_forms(e)) {
        return MSC_OK;
    }
    bool *is_read = msc_arena_array(&e->arena, (size_t)msc_graph_n_tensors(g) + 1, sizeof(bool));
    e->is_unread = msc_arena_array(&e->arena, (size_t)msc_graph_n_joints(g) + 1, sizeof(bool));
    if (is_read == NULL || e->is_unread == NULL) {
        return msc_onnx__no_memory(e);
    }
    for (int32_t i = 0; i < msc_graph_n_outputs(g); i++) {
        is_read[msc_graph_output(g, i)] = true;
    }
    for (int32_t i = msc_graph_n_joints(g); i-- > 0;) {
        const struct msc_joint *j = msc_graph_joint(g, i);
        e->is_unread[i] = true;
        for (int32_t o = 0; o < j->n_outputs; o++) {
            e->is_unread[i] = e->is_unread[i] && !is_read[j->outputs[o]];
        }
        for (int32_t k = 0; k < j->n_operands && !e->is_unread[i]; k++) {
            if (j->operands[k] != MSC_NO_ID && msc_onnx__is_read(e, j, k)) {
                is_read[j->operands[k]] = true;
            }
        }
    }
    return MSC_OK;
}

enum msc_status msc_onnx__write_form(bool *is_written, struct msc_onnx_joint *j) {
    form_fn form = msc_onnx__has_forms(j->e) ? forms[j->joint->op] : NULL;
    *is_written = j->e->is_unread != NULL && j->e->is_unread[j->joint->id];
    return *is_written || form == NULL ? MSC_OK : form(is_written, j);
}

// Joints that are left float, but have an integer kernel which would be matched.
static bool has_slower_kernel(enum msc_op op) {
    return op == MSC_OP_SOFTMAX || op == MSC_OP_WHERE || op == MSC_OP_AVG_POOL1D ||
           op == MSC_OP_AVG_POOL2D || op == MSC_OP_AVG_POOL3D;
}

enum msc_status msc_onnx__shield_input(struct msc_onnx_joint *j) {
    const char *shielded = msc_arena_printf(&j->e->arena, "%s.float", j->joint->name);
    bool is_needed = msc_onnx__has_forms(j->e) && has_slower_kernel(j->joint->op) &&
                     !msc_target_is_integer(role_of(j->e, j->joint));
    for (int32_t k = 0; is_needed && k < j->joint->n_operands; k++) {
        if (msc_onnx__byte_edit(j->e, j->joint->id, k) != NULL) {
            return msc_onnx__add_step(&j->inputs[k], j->e, "Clip", shielded, &j->inputs[k], 1);
        }
    }
    return MSC_OK;
}

// Float weights between pairs would be quantised at load, one scale for all of them.
static bool is_weighted(enum msc_op op) {
    switch (op) {
    case MSC_OP_CONV1D:
    case MSC_OP_CONV2D:
    case MSC_OP_CONV3D:
    case MSC_OP_CONV1D_BIAS:
    case MSC_OP_CONV2D_BIAS:
    case MSC_OP_CONV3D_BIAS:
    case MSC_OP_LINEAR:
    case MSC_OP_LINEAR_BIAS:
    case MSC_OP_GEMM:
        return true;
    default:
        return msc_op_is_conv_transpose(op);
    }
}

// A leaky limit of slope 1 is part of the kernel that makes what it reads.
enum msc_status msc_onnx__shield_output(struct msc_onnx_joint *j) {
    if (!msc_onnx__has_forms(j->e) || !is_weighted(j->joint->op) ||
        edit_at(j->e, j->joint->id, 0) == NULL || msc_onnx__computes_integers(j->e, j->joint)) {
        return MSC_OK;
    }
    const char *inner = msc_arena_printf(&j->e->arena, "%s.float", j->joint->name);
    const char *output = j->node->output[0];
    inner = inner == NULL ? NULL : msc_onnx__free_name(j->e, &j->e->value_names, inner);
    if (inner == NULL) {
        return msc_onnx__no_memory(j->e);
    }
    Onnx__NodeProto *node;
    j->node->output[0] = (char *)inner;
    MSC_TRY(msc_onnx__add_node(&node, j->e, "LeakyRelu", j->joint->name, &inner, 1, &output, 1));
    return msc_onnx__put_float(j->e, node, "alpha", 1.0f);
}
