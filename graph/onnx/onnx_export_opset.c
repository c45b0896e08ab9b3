// Finds the lowest opset that supports every node written, and converts the nodes to that opset.
//
// Writers write nodes as opset 21 defines them, which is valid in later opsets, too. Most operators
// have not changed since opset 13. MSC_OPSET in ops.def and the tables below list the operators
// that have changed. Once the model's opset is known, nodes that an older opset defines differently
// are rewritten.
#include "graph/onnx/onnx_export_form.h"
#include "graph/onnx/onnx_export_internal.h"

#include <stdio.h>
#include <string.h>

enum { LEAST_OPSET = 13, FORMS_OPSET = 21 };

// Attributes that are newer than their operator. For an older opset they are omitted if they have
// the default value. `op` NULL: any operator.
static const struct attribute {
    const char *op, *name;
    int opset;
    bool has_default;
    int64_t number;   // the default value, if it is a number
    const char *text; // the default value, if it is a string
} attributes[] = {
    {"AveragePool", "dilations", 19, false, 0, NULL},
    {"LpPool", "dilations", 18, false, 0, NULL},
    {"LpPool", "ceil_mode", 18, true, 0, NULL},
    {NULL, "layout", 14, true, 0, NULL}, // for recurrent layers
    {NULL, "block_size", 21, true, 0, NULL},
    {NULL, "output_dtype", 21, false, 0, NULL},
    {NULL, "allowzero", 14, true, 0, NULL},
    {NULL, "stash_type", 21, true, 1, NULL},
    {"Resize", "antialias", 18, true, 0, NULL},
    {"Resize", "axes", 18, false, 0, NULL},
    {"Resize", "keep_aspect_ratio_policy", 18, true, 0, "stretch"},
    {"RoiAlign", "coordinate_transformation_mode", 16, true, 0, "output_half_pixel"},
    {"ScatterElements", "reduction", 16, true, 0, "none"},
    {"ScatterND", "reduction", 16, true, 0, "none"},
    {"Shape", "start", 15, true, 0, NULL},
    {"Shape", "end", 15, false, 0, NULL},
    {"SpaceToDepth", "mode", 28, true, 0, "DCR"},
};

// Attribute values that were introduced later than the attribute.
static const struct {
    const char *op, *name, *text;
    int opset;
} values[] = {
    {"Pad", "mode", "wrap", 19},
    {"Resize", "coordinate_transformation_mode", "half_pixel_symmetric", 19},
    {"ScatterElements", "reduction", "max", 18},
    {"ScatterElements", "reduction", "min", 18},
    {"ScatterND", "reduction", "max", 18},
    {"ScatterND", "reduction", "min", 18},
};

// Element types that operators accept only since a certain opset. `op` MSC_OP_COUNT: any operator.
static const struct {
    enum msc_op op;
    unsigned dtypes;
    int opset;
} element_types[] = {
#define TYPE(id) (1u << MSC_DTYPE_##id)
#define SMALL (TYPE(I8) | TYPE(U8) | TYPE(I16) | TYPE(U16))
#define HALF (TYPE(F16) | TYPE(BF16))
#define SIGNED (TYPE(I8) | TYPE(I16) | TYPE(I32) | TYPE(I64))
#define REAL (HALF | TYPE(F32) | TYPE(F64))
    {MSC_OP_COUNT, TYPE(BF16), 16},
    {MSC_OP_ADD, SMALL, 14},
    {MSC_OP_SUBTRACT, SMALL, 14},
    {MSC_OP_MULTIPLY, SMALL, 14},
    {MSC_OP_DIVIDE, SMALL, 14},
    {MSC_OP_RELU, SMALL | TYPE(I32) | TYPE(I64), 14},
    {MSC_OP_CUMSUM, HALF, 14},
    {MSC_OP_ISINF, HALF, 20},
    {MSC_OP_MAX, TYPE(BOOL), 20},
    {MSC_OP_MIN, TYPE(BOOL), 20},
    {MSC_OP_QUANTIZE, HALF, 19},
    {MSC_OP_QUANTIZE, TYPE(I16) | TYPE(U16), 21},
    {MSC_OP_DEQUANTIZE, HALF, 19},
    {MSC_OP_DEQUANTIZE, TYPE(I16) | TYPE(U16), 21},
    {MSC_OP_TOPK, TYPE(BF16), 24},
    {MSC_OP_ARANGE, HALF, 27},
    {MSC_OP_CELU, HALF | TYPE(F64), 28},
    {MSC_OP_COMPRESS, TYPE(BF16), 28},
    {MSC_OP_EINSUM, TYPE(BF16), 28},
    {MSC_OP_ONE_HOT, TYPE(BF16), 28},
    {MSC_OP_REVERSE_SEQUENCE, TYPE(BF16), 28},
    {MSC_OP_UNIQUE, TYPE(BF16), 28},
    {MSC_OP_LEFT_SHIFT, SIGNED, 28},
    {MSC_OP_RIGHT_SHIFT, SIGNED, 28},
    {MSC_OP_FLOOR_MOD, REAL, 28},
#undef REAL
#undef SIGNED
#undef HALF
#undef SMALL
#undef TYPE
};

// ONNX operators that accept bfloat16 only since opset 22, each between spaces.
static const char bfloat16_since_22[] =
    " Acos Acosh Asin Asinh Atan Atanh AveragePool Conv ConvTranspose Cos Cosh DeformConv Det Elu "
    "EyeLike GRU GlobalAveragePool GlobalMaxPool GridSample HardSigmoid HardSwish "
    "InstanceNormalization LSTM LpPool MaxPool MaxUnpool Mish Multinomial "
    "NegativeLogLikelihoodLoss RNN RandomUniform RoiAlign Round Selu Sin Sinh Softplus Softsign "
    "Tan ThresholdedRelu ";

static void require(struct msc_onnx_export *e, int opset) {
    e->opset = e->opset < opset ? opset : e->opset;
}

static void require_type(struct msc_onnx_export *e, enum msc_op op, int32_t tensor) {
    unsigned dtype = tensor == MSC_NO_ID ? 0u : 1u << e->graph->tensors[tensor]->tensor.dtype;
    for (size_t i = 0; i < sizeof(element_types) / sizeof(element_types[0]); i++) {
        bool is_meant = element_types[i].op == op || element_types[i].op == MSC_OP_COUNT;
        if (is_meant && (element_types[i].dtypes & dtype) != 0) {
            require(e, element_types[i].opset);
        }
    }
    char name[64]; // longer than any name of an operator
    snprintf(name, sizeof(name), " %s ", msc_op_info(op)->onnx);
    bool is_bfloat16 = dtype == 1u << MSC_DTYPE_BF16;
    require(e, is_bfloat16 && strstr(bfloat16_since_22, name) != NULL ? 22 : LEAST_OPSET);
}

// True if the pool omits a last window that begins in the padding. ONNX's shape inference omits
// such a window only since opset 22.
static bool lacks_window(const struct msc_graph *g, const struct msc_joint *j) {
    int64_t size[3], strides[3], dilation[3], padding[6];
    const struct msc_tensor *x = msc_graph_tensor(g, j->operands[0]);
    const struct msc_tensor *y = msc_graph_tensor(g, j->outputs[0]);
    int n = x->n_dims - 2;
    bool is_ceil = false;
    if (!msc_joint_attr_bool(j, "ceil_mode", &is_ceil) || !is_ceil || n < 1 || n > 3 ||
        msc_joint_attr_list(j, "pool_size", size, 3) != n ||
        msc_joint_attr_list(j, "strides", strides, 3) != n ||
        msc_joint_attr_list(j, "dilation", dilation, 3) != n ||
        msc_joint_attr_list(j, "padding", padding, 6) != 2 * n) {
        return false;
    }
    for (int i = 0; i < n; i++) {
        int64_t span = x->dims[2 + i] + padding[i] + padding[n + i] - dilation[i] * (size[i] - 1);
        int64_t n_windows = (span - 1 + strides[i] - 1) / strides[i] + 1;
        if (x->dims[2 + i] >= 0 && y->dims[2 + i] >= 0 && y->dims[2 + i] < n_windows) {
            return true;
        }
    }
    return false;
}

void msc_onnx__require_types(struct msc_onnx_export *e, const struct msc_joint *j) {
    for (int32_t i = 0; i < j->n_operands; i++) {
        require_type(e, j->op, j->operands[i]);
    }
    for (int32_t i = 0; i < j->n_outputs; i++) {
        require_type(e, j->op, j->outputs[i]);
    }
    bool is_pool = j->n_operands > 0 && j->operands[0] != MSC_NO_ID;
    require(e, is_pool && lacks_window(e->graph, j) ? 22 : LEAST_OPSET);
    // Before opset 23, input and scale of QuantizeLinear must have the same type.
    bool is_mixed = j->op == MSC_OP_QUANTIZE &&
                    msc_dtype_is_float(e->graph->tensors[j->operands[0]]->tensor.dtype) &&
                    e->graph->tensors[j->operands[0]]->tensor.dtype !=
                        e->graph->tensors[j->operands[1]]->tensor.dtype;
    require(e, is_mixed ? 23 : LEAST_OPSET);
    bool is_volume =
        j->op == MSC_OP_GRID_SAMPLE && e->graph->tensors[j->operands[0]]->tensor.n_dims > 4;
    require(e, is_volume ? 20 : LEAST_OPSET);
}

// ---- Requirements of nodes and initialisers ---------------------------------------------------

// The enclosing graphs of a node, innermost first.
struct scope {
    const struct scope *around;
    Onnx__TensorProto *const *initializers;
    size_t n_initializers;
    struct msc_graph_names names; // maps names to indices of the initialisers
};

static enum msc_status scope_init(struct scope *s, const struct scope *around,
                                  Onnx__TensorProto *const initializers[], size_t n) {
    *s = (struct scope){.around = around, .initializers = initializers, .n_initializers = n};
    for (size_t i = 0; i < n; i++) {
        MSC_TRY(msc_graph__names_put(&s->names, initializers[i]->name, (int32_t)i));
    }
    return MSC_OK;
}

static const Onnx__TensorProto *scope_find(const struct scope *s, const char *name) {
    for (; s != NULL; s = s->around) {
        int32_t i = msc_graph__names_find(&s->names, name);
        if (i != MSC_NO_ID) {
            return s->initializers[i];
        }
    }
    return NULL;
}

static bool text_equals(const Onnx__AttributeProto *a, const char *text) {
    return a->has_s && a->s.len == strlen(text) && memcmp(a->s.data, text, a->s.len) == 0;
}

static const struct attribute *find_attribute(const Onnx__NodeProto *node,
                                              const Onnx__AttributeProto *a) {
    for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
        bool is_meant = attributes[i].op == NULL || strcmp(attributes[i].op, node->op_type) == 0;
        if (is_meant && strcmp(attributes[i].name, a->name) == 0) {
            return &attributes[i];
        }
    }
    return NULL;
}

static bool has_default(const struct attribute *row, const Onnx__AttributeProto *a) {
    return row->has_default &&
           (row->text != NULL ? text_equals(a, row->text) : a->has_i && a->i == row->number);
}

static bool is_reduction(const Onnx__NodeProto *node) {
    static const char *const names[] = {"ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd",
                                        "ReduceL2"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(node->op_type, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool has_input(const Onnx__NodeProto *node, size_t i) {
    return node->n_input > i && node->input[i][0] != '\0';
}

static void require_quantizer(struct msc_onnx_export *e, const Onnx__NodeProto *node,
                              const struct scope *s) {
    for (size_t i = 0; i < node->n_input; i++) {
        const Onnx__TensorProto *t = scope_find(s, node->input[i]);
        int type = t == NULL ? 0 : t->data_type;
        require(e, type == MSC_ONNX_INT16 || type == MSC_ONNX_UINT16 ? 21 : LEAST_OPSET);
        require(e, type == MSC_ONNX_FLOAT16 || type == MSC_ONNX_BFLOAT16 ? 19 : LEAST_OPSET);
    }
}

static void require_node(struct msc_onnx_export *e, const Onnx__NodeProto *node,
                         const struct scope *s) {
    for (int op = 0; op < MSC_OP_COUNT; op++) {
        bool is_same = strcmp(msc_op_info((enum msc_op)op)->onnx, node->op_type) == 0;
        require(e, is_same ? msc_op_opset((enum msc_op)op) : LEAST_OPSET);
    }
    for (size_t k = 0; k < node->n_attribute; k++) {
        const Onnx__AttributeProto *a = node->attribute[k];
        const struct attribute *row = find_attribute(node, a);
        require(e, row != NULL && !has_default(row, a) ? row->opset : LEAST_OPSET);
        for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
            bool is_meant = strcmp(values[i].op, node->op_type) == 0 &&
                            strcmp(values[i].name, a->name) == 0 && text_equals(a, values[i].text);
            require(e, is_meant ? values[i].opset : LEAST_OPSET);
        }
    }
    require(e, strcmp(node->op_type, "Pad") == 0 && has_input(node, 3) ? 18 : LEAST_OPSET);
    bool is_computed =
        is_reduction(node) && has_input(node, 1) && scope_find(s, node->input[1]) == NULL;
    require(e, is_computed ? 18 : LEAST_OPSET);
    if (strstr(node->op_type, "quantizeLinear") != NULL ||
        strcmp(node->op_type, "QuantizeLinear") == 0) {
        require_quantizer(e, node, s);
    }
}

static void require_initializers(struct msc_onnx_export *e, const struct scope *s) {
    for (size_t i = 0; i < s->n_initializers; i++) {
        int type = s->initializers[i]->data_type;
        bool is_float8 = type > MSC_ONNX_BFLOAT16 && type < MSC_ONNX_UINT4;
        require(e, is_float8 ? 19 : type >= MSC_ONNX_UINT4 ? 21 : LEAST_OPSET);
    }
}

// ---- Older forms ------------------------------------------------------------------------------

static void drop_attribute(Onnx__NodeProto *node, size_t at) {
    node->n_attribute--;
    for (size_t i = at; i < node->n_attribute; i++) {
        node->attribute[i] = node->attribute[i + 1];
    }
}

static void drop_newer_attributes(Onnx__NodeProto *node, int64_t opset) {
    for (size_t k = node->n_attribute; k-- > 0;) {
        const struct attribute *row = find_attribute(node, node->attribute[k]);
        // Before opset 18, a Split without lengths defaults to equal parts.
        bool is_parts = strcmp(node->op_type, "Split") == 0 &&
                        strcmp(node->attribute[k]->name, "num_outputs") == 0 && opset < 18;
        if (is_parts || (row != NULL && opset < row->opset)) {
            drop_attribute(node, k);
        }
    }
}

// Before opset 18, the axes of a reduction are an attribute.
static enum msc_status move_axes(bool *is_moved, struct msc_onnx_export *e, Onnx__NodeProto *node,
                                 const struct scope *s) {
    if (!is_reduction(node) || !has_input(node, 1)) {
        return MSC_OK;
    }
    const Onnx__TensorProto *axes = scope_find(s, node->input[1]);
    size_t n = axes->raw_data.len / sizeof(int64_t);
    node->n_input = 1;
    *is_moved = true;
    return n == 0 ? MSC_OK
                  : msc_onnx__put_ints(e, node, "axes",
                                       (const int64_t *)(void *)axes->raw_data.data, n);
}

// Before opset 20, modes of GridSample have other names.
static void rename_modes(Onnx__NodeProto *node) {
    static const char *const older[][2] = {{"linear", "bilinear"}, {"cubic", "bicubic"}};
    for (size_t k = 0; strcmp(node->op_type, "GridSample") == 0 && k < node->n_attribute; k++) {
        Onnx__AttributeProto *a = node->attribute[k];
        for (size_t i = 0; i < 2 && strcmp(a->name, "mode") == 0; i++) {
            if (text_equals(a, older[i][0])) {
                a->s.data = (uint8_t *)older[i][1];
                a->s.len = strlen(older[i][1]);
            }
        }
    }
}

static enum msc_status lower_node(bool *is_moved, struct msc_onnx_export *e, Onnx__NodeProto *node,
                                  const struct scope *s) {
    drop_newer_attributes(node, e->opset);
    if (e->opset < 20) {
        rename_modes(node);
    }
    return e->opset < 18 ? move_axes(is_moved, e, node, s) : MSC_OK;
}

// ---- Whole models -----------------------------------------------------------------------------

// The first pass finds the opset that the nodes require. The second (`is_moved` is not NULL)
// converts the nodes to that opset.
static enum msc_status visit(bool *is_moved, struct msc_onnx_export *e, const struct scope *around,
                             Onnx__TensorProto *const initializers[], size_t n_initializers,
                             Onnx__NodeProto *const nodes[], size_t n_nodes) {
    struct scope s;
    enum msc_status status = scope_init(&s, around, initializers, n_initializers);
    if (status == MSC_OK && is_moved == NULL) {
        require_initializers(e, &s);
    }
    for (size_t i = 0; status == MSC_OK && i < n_nodes; i++) {
        if (is_moved == NULL) {
            require_node(e, nodes[i], &s);
        } else {
            status = lower_node(is_moved, e, nodes[i], &s);
        }
        for (size_t k = 0; status == MSC_OK && k < nodes[i]->n_attribute; k++) {
            const Onnx__GraphProto *body = nodes[i]->attribute[k]->g;
            status = body == NULL ? MSC_OK
                                  : visit(is_moved, e, &s, body->initializer, body->n_initializer,
                                          body->node, body->n_node);
        }
    }
    msc_graph__names_finish(&s.names);
    return status;
}

void msc_onnx__begin_opset(struct msc_onnx_export *e) {
    e->opset = LEAST_OPSET;
    int64_t opset = msc_graph_notes(e->graph)->opset;
    require(e, opset > FORMS_OPSET ? FORMS_OPSET : (int)opset);
}

static enum msc_status visit_all(bool *is_moved, struct msc_onnx_export *e) {
    for (size_t i = 0; i < e->n_functions; i++) {
        const Onnx__GraphProto *body = msc_onnx__function_body(e, i);
        MSC_TRY(visit(is_moved, e, NULL, body->initializer, body->n_initializer, body->node,
                      body->n_node));
    }
    return visit(is_moved, e, NULL, e->initializers, e->n_initializers, e->nodes, e->n_nodes);
}

enum msc_status msc_onnx__settle_opset(struct msc_onnx_export *e) {
    bool is_moved = false;
    MSC_TRY(visit_all(NULL, e));
    MSC_TRY(visit_all(&is_moved, e));
    return is_moved ? msc_onnx__drop_initializers(e) : MSC_OK;
}

int64_t msc_onnx__ir_version(int64_t opset) {
    static const struct {
        int opset, version;
    } rows[] = {{28, 14}, {25, 13}, {24, 12}, {23, 11}, {21, 10}, {19, 9}, {15, 8}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (opset >= rows[i].opset) {
            return rows[i].version;
        }
    }
    return 7;
}
