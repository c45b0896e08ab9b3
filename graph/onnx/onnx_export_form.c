// Selects the form of a joint, and writes the small forms: clips, shapes, shields. ONNX Runtime
// 1.32 was found to match these patterns.
#include "graph/onnx/onnx_export_form.h"

#include "graph/target.h"

#include <math.h>
#include <string.h>

typedef enum msc_status (*form_fn)(bool *is_written, struct msc_onnx_joint *j);

static enum msc_status form_limit(bool *is_written, struct msc_onnx_joint *j) {
    if (msc_onnx__is_dropped(j->e, j->joint)) {
        int32_t before = msc_graph__passed_on(j->e->graph, j->joint);
        MSC_TRY(msc_onnx__value(&j->e->names[j->joint->outputs[0]], j->e, before));
        *is_written = true;
    }
    return MSC_OK;
}

// Takes the shape from the quantised tensor instead of the float tensor. A consumer of the floats
// would prevent the runtime from matching the node that produces them.
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

// True for operators with weights. If such a joint is between QDQ pairs but has float weights, the
// runtime would quantise the weights at load, with a single scale.
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

static bool needs_shield(const struct msc_onnx_export *e, const struct msc_joint *j) {
    return msc_onnx__has_forms(e) && is_weighted(j->op) && msc_onnx__edit_at(e, j->id, 0) != NULL &&
           !msc_onnx__computes_integers(e, j);
}

// The Relu between a joint and a QDQ pair, if this Relu is the joint's only consumer; else NULL.
static const struct msc_joint *relu_behind(const struct msc_onnx_export *e,
                                           const struct msc_joint *j) {
    const int32_t *readers;
    if (!msc_graph__is_between(e->graph, j->outputs[0])) {
        return NULL;
    }
    (void)msc_graph_consumers(e->graph, j->outputs[0], &readers);
    const struct msc_joint *reader = msc_graph_joint(e->graph, readers[0]);
    bool is_kept =
        msc_onnx__byte_edit_of(e, reader->outputs[0]) != NULL && !msc_onnx__is_dropped(e, reader);
    return reader->op == MSC_OP_RELU && is_kept ? reader : NULL;
}

// Writes the Relu between a joint and a QDQ pair as a LeakyRelu of slope 0. The runtime then does
// not match the joint with an integer kernel.
static enum msc_status form_relu(bool *is_written, struct msc_onnx_joint *j) {
    const char *input, *output = j->e->names[j->joint->outputs[0]];
    int32_t before = j->joint->operands[0];
    int32_t producer = msc_graph_producer(j->e->graph, before);
    MSC_TRY(form_limit(is_written, j));
    if (*is_written || producer == MSC_NO_ID) {
        return MSC_OK;
    }
    const struct msc_joint *maker = msc_graph_joint(j->e->graph, producer);
    if (!needs_shield(j->e, maker) || relu_behind(j->e, maker) != j->joint) {
        return MSC_OK;
    }
    *is_written = true;
    MSC_TRY(msc_onnx__operand(&input, j->e, j->joint, 0));
    MSC_TRY(msc_onnx__add_node(&j->node, j->e, "LeakyRelu", j->joint->name, &input, 1, &output, 1));
    return msc_onnx__put_float(j->e, j->node, "alpha", 0);
}

static enum msc_status form_number(bool *is_written, struct msc_onnx_joint *j) {
    MSC_TRY(form_limit(is_written, j));
    return *is_written ? MSC_OK : msc_onnx__form_sum(is_written, j);
}

// True for a float square whose only consumer is a mean, as in a normalisation.
static bool is_mean_square(const struct msc_onnx_export *e, const struct msc_joint *j) {
    const int32_t *readers;
    if (j->operands[0] != j->operands[1] || msc_onnx__edit_at(e, j->id, 0) != NULL ||
        !msc_graph__is_between(e->graph, j->outputs[0])) {
        return false;
    }
    (void)msc_graph_consumers(e->graph, j->outputs[0], &readers);
    return msc_graph_joint(e->graph, readers[0])->op == MSC_OP_MEAN;
}

// Writes a square as a power: the runtime finds the normalisation by the root mean square by it.
static enum msc_status form_product(bool *is_written, struct msc_onnx_joint *j) {
    static const float two = 2.0f;
    const char *inputs[2], *output = j->e->names[j->joint->outputs[0]];
    const char *name = msc_arena_printf(&j->e->arena, "%s.exponent", j->joint->name);
    MSC_TRY(form_number(is_written, j));
    if (*is_written || !is_mean_square(j->e, j->joint)) {
        return MSC_OK;
    }
    *is_written = true;
    MSC_TRY(MSC_ALLOCATED(name));
    MSC_TRY(msc_onnx__operand(&inputs[0], j->e, j->joint, 0));
    MSC_TRY(msc_onnx__add_initializer(&inputs[1], j->e, name, MSC_ONNX_FLOAT, 0, NULL, &two,
                                      sizeof(two)));
    return msc_onnx__add_node(&j->node, j->e, "Pow", j->joint->name, inputs, 2, &output, 1);
}

static enum msc_status form_linear(bool *is_written, struct msc_onnx_joint *j) {
    MSC_TRY(msc_onnx__form_block_product(is_written, j));
    return *is_written ? MSC_OK : msc_onnx__form_dynamic(is_written, j);
}

static enum msc_status form_take(bool *is_written, struct msc_onnx_joint *j) {
    MSC_TRY(msc_onnx__form_block_table(is_written, j));
    return *is_written ? MSC_OK : msc_onnx__form_take(is_written, j);
}

static const form_fn forms[MSC_OP_COUNT] = {
    [MSC_OP_LINEAR] = form_linear,
    [MSC_OP_LINEAR_BIAS] = form_linear,
    [MSC_OP_ADD] = form_number,
    [MSC_OP_MULTIPLY] = form_product,
    [MSC_OP_SUBTRACT] = form_limit,
    [MSC_OP_DIVIDE] = form_limit,
    [MSC_OP_RELU] = form_relu,
    [MSC_OP_CLIP] = form_limit,
    [MSC_OP_MAXIMUM] = form_limit,
    [MSC_OP_MINIMUM] = form_limit,
    [MSC_OP_HARD_SIGMOID] = msc_onnx__form_hard_sigmoid,
    [MSC_OP_HARD_SWISH] = msc_onnx__form_hard_swish,
    [MSC_OP_SHAPE_OF] = form_shape,
    [MSC_OP_TAKE] = form_take,
    [MSC_OP_AVG_POOL2D] = msc_onnx__form_pool,
    [MSC_OP_BATCH_NORM] = msc_onnx__form_batch_norm,
    [MSC_OP_MEAN] = msc_onnx__form_mean,
    [MSC_OP_PAD] = msc_onnx__form_pad,
    [MSC_OP_RESHAPE] = msc_onnx__form_move,
    [MSC_OP_PERMUTE_DIMS] = msc_onnx__form_move,
};

// Omits joints whose outputs nothing reads, such as the computation of a shape that the consumer's
// form does not read.
enum msc_status msc_onnx__find_unread(struct msc_onnx_export *e) {
    const struct msc_graph *g = e->graph;
    if (!msc_onnx__has_forms(e)) {
        return MSC_OK;
    }
    bool *is_read = msc_arena_array(&e->arena, (size_t)msc_graph_n_tensors(g) + 1, sizeof(bool));
    e->is_unread = msc_arena_array(&e->arena, (size_t)msc_graph_n_joints(g) + 1, sizeof(bool));
    MSC_TRY(MSC_ALLOCATED(is_read && e->is_unread));
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

// Forms compute in float32. A joint of another float type has a form only if the form computes
// nothing: it drops a joint of a tail, replaces a Relu or reads a shape.
static form_fn find_form(const struct msc_onnx_joint *j) {
    form_fn form = forms[j->joint->op];
    form = msc_onnx__has_forms(j->e) || form == form_linear ? form : NULL;
    bool is_any_type = form == form_limit || form == form_relu || form == form_shape;
    return !msc_onnx__is_narrow(j->e) || is_any_type     ? form
           : form == form_number || form == form_product ? form_limit
                                                         : NULL;
}

enum msc_status msc_onnx__write_form(bool *is_written, struct msc_onnx_joint *j) {
    form_fn form = find_form(j);
    *is_written = j->e->is_unread != NULL && j->e->is_unread[j->joint->id];
    return *is_written || form == NULL ? MSC_OK : form(is_written, j);
}

// True for operators that remain float although the runtime would match an integer kernel, because
// that kernel is slower.
static bool has_slower_kernel(enum msc_op op) {
    return op == MSC_OP_SOFTMAX || op == MSC_OP_WHERE || op == MSC_OP_AVG_POOL1D ||
           op == MSC_OP_AVG_POOL2D || op == MSC_OP_AVG_POOL3D;
}

enum msc_status msc_onnx__shield_input(struct msc_onnx_joint *j) {
    bool has_forms = msc_onnx__has_forms(j->e);
    enum msc_target_role role = has_forms ? msc_onnx__role_of(j->e, j->joint) : MSC_TARGET_FLOAT;
    if ((role == MSC_TARGET_MOVES && msc_onnx__resizes_image(j)) || msc_onnx__shrinks_by_cubes(j)) {
        return msc_onnx__keep_layout(j);
    }
    const char *shielded = msc_arena_printf(&j->e->arena, "%s.float", j->joint->name);
    bool is_needed = has_forms && has_slower_kernel(j->joint->op) && !msc_target_is_integer(role);
    for (int32_t k = 0; is_needed && k < j->joint->n_operands; k++) {
        if (msc_onnx__byte_edit(j->e, j->joint->id, k) != NULL) {
            return msc_onnx__add_step(&j->inputs[k], j->e, "Clip", shielded, &j->inputs[k], 1);
        }
    }
    return MSC_OK;
}

// Adds a LeakyRelu of slope 1 after the joint, so that the runtime does not match the joint with an
// integer kernel. It costs nothing: the runtime fuses it into the joint's float kernel.
enum msc_status msc_onnx__shield_output(struct msc_onnx_joint *j) {
    bool is_needed = needs_shield(j->e, j->joint) && relu_behind(j->e, j->joint) == NULL;
    if (!is_needed && !msc_onnx__has_limited_blocks(j->e, j->joint)) {
        return MSC_OK;
    }
    const char *inner = msc_arena_printf(&j->e->arena, "%s.float", j->joint->name);
    const char *output = j->node->output[0];
    inner = inner == NULL ? NULL : msc_onnx__free_name(j->e, &j->e->value_names, inner);
    MSC_TRY(MSC_ALLOCATED(inner));
    Onnx__NodeProto *node;
    j->node->output[0] = (char *)inner;
    MSC_TRY(msc_onnx__add_node(&node, j->e, "LeakyRelu", j->joint->name, &inner, 1, &output, 1));
    return msc_onnx__put_float(j->e, node, "alpha", 1.0f);
}

static enum msc_status note_inputs(struct msc_graph_names *read, Onnx__NodeProto *const nodes[],
                                   size_t n_nodes) {
    for (size_t i = 0; i < n_nodes; i++) {
        for (size_t k = 0; k < nodes[i]->n_input; k++) {
            MSC_TRY(msc_graph__names_put(read, nodes[i]->input[k], 0));
        }
        for (size_t k = 0; k < nodes[i]->n_attribute; k++) {
            const Onnx__GraphProto *body = nodes[i]->attribute[k]->g;
            MSC_TRY(body == NULL ? MSC_OK : note_inputs(read, body->node, body->n_node));
        }
    }
    return MSC_OK;
}

static enum msc_status note_outputs(struct msc_graph_names *read, const struct msc_onnx_export *e) {
    for (int32_t i = 0; i < msc_graph_n_outputs(e->graph); i++) {
        int32_t t = msc_graph_output(e->graph, i);
        const char *seen = e->outputs_seen[t];
        MSC_TRY(msc_graph__names_put(read, seen == NULL ? e->names[t] : seen, 0));
    }
    return MSC_OK;
}

enum msc_status msc_onnx__drop_initializers(struct msc_onnx_export *e) {
    struct msc_graph_names read = {0};
    size_t n = 0;
    enum msc_status status = note_inputs(&read, e->nodes, e->n_nodes);
    status = status == MSC_OK ? note_outputs(&read, e) : status;
    for (size_t i = 0; status == MSC_OK && i < e->n_initializers; i++) {
        bool is_read = msc_graph__names_find(&read, e->initializers[i]->name) != MSC_NO_ID;
        e->initializers[n] = e->initializers[i];
        n += is_read;
    }
    e->n_initializers = status == MSC_OK ? n : e->n_initializers;
    msc_graph__names_finish(&read);
    return status;
}

static bool has_dynamic(const struct msc_onnx_export *e) {
    for (size_t i = 0; i < e->n_nodes; i++) {
        if (e->options->slot_edits != NULL &&
            strcmp(e->nodes[i]->op_type, "DynamicQuantizeLinear") == 0) {
            return true;
        }
    }
    return false;
}

enum msc_status msc_onnx__drop_unread_pairs(struct msc_onnx_export *e) {
    struct msc_graph_names read = {0};
    size_t n = 0;
    if (!msc_onnx__has_forms(e) && !has_dynamic(e)) {
        return MSC_OK;
    }
    enum msc_status status = note_inputs(&read, e->nodes, e->n_nodes);
    status = status == MSC_OK ? note_outputs(&read, e) : status;
    for (size_t i = 0; status == MSC_OK && i < e->n_nodes; i++) {
        Onnx__NodeProto *node = e->nodes[i];
        bool is_kept = strcmp(node->op_type, "DequantizeLinear") != 0 ||
                       msc_graph__names_find(&read, node->output[0]) != MSC_NO_ID;
        e->nodes[n] = node;
        n += is_kept;
    }
    e->n_nodes = status == MSC_OK ? n : e->n_nodes;
    msc_graph__names_finish(&read);
    return status == MSC_OK ? msc_onnx__drop_initializers(e) : status;
}
