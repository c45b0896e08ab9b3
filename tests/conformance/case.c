// Loads one case of ONNX's backend tests and decides whether it is in scope, as declared in
// case.h.
#include "tests/conformance/case.h"

#include "base/alloc.h"
#include "base/file.h"
#include "graph/onnx/onnx.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- Scope ------------------------------------------------------------------------------------

static const struct {
    const char *op, *why;
} ops_outside[] = {
    {"Adagrad", "training"},
    {"Adam", "training"},
    {"Gradient", "training"},
    {"Momentum", "training"},
    {"ImageDecoder", "image decoding"},
    {"StringNormalizer", "string"},
    {"StringConcat", "string"},
    {"StringSplit", "string"},
    {"RegexFullMatch", "string"},
    {"LabelEncoder", "map"},
};

// Cases whose data contradict ONNX's definition. ONNX Runtime follows the definition.
static const struct {
    const char *name, *why;
} contradicting[] = {
    {"test_averagepool_3d_dilations_large_count_include_pad_is_1_ceil_mode_is_True",
     "expected outputs that count elements beyond the padding"},
    {"test_qlinearmatmul_2D_int8_float16", "expected outputs that wrap instead of saturating"},
    {"test_qlinearmatmul_2D_int8_float32", "expected outputs that wrap instead of saturating"},
    {"test_qlinearmatmul_3D_int8_float16", "expected outputs that wrap instead of saturating"},
    {"test_qlinearmatmul_3D_int8_float32", "expected outputs that wrap instead of saturating"},
};

static const char *const random_ops[] = {
    "Bernoulli",        "Multinomial",   "RandomNormal",
    "RandomNormalLike", "RandomUniform", "RandomUniformLike",
};

// Returns whether the operator may read and write narrow floats, and integers of 4 and 2 bits.
static bool is_quantizing(const char *op) {
    return strcmp(op, "QuantizeLinear") == 0 || strcmp(op, "DequantizeLinear") == 0;
}

// The reason why tensors of this type are out of scope, or NULL if they are in scope.
static const char *type_outside(int elem_type) {
    static const struct {
        int first, last;
        const char *why;
    } rows[] = {
        {MSC_ONNX_STRING, MSC_ONNX_STRING, "string"},
        {14, 15, "complex elements"},
        {17, 20, "float8"},
        {MSC_ONNX_UINT4, MSC_ONNX_INT4, "4-bit elements"},
        {MSC_ONNX_FLOAT4, MSC_ONNX_FLOAT4, "float4"},
        {24, 24, "float8"},
        {MSC_ONNX_UINT2, MSC_ONNX_INT2, "2-bit elements"},
        {27, 28, "float6"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (elem_type >= rows[i].first && elem_type <= rows[i].last) {
            return rows[i].why;
        }
    }
    return NULL;
}

static const char *value_outside(const Onnx__ValueInfoProto *info) {
    const Onnx__TypeProto *type = info->type;
    if (type == NULL) {
        return NULL;
    }
    switch (type->value_case) {
    case ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE:
        return "sequence";
    case ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE:
        return "optional";
    case ONNX__TYPE_PROTO__VALUE_MAP_TYPE:
        return "map";
    case ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE:
        return type_outside(type->tensor_type->elem_type);
    default:
        return NULL;
    }
}

static const Onnx__AttributeProto *attribute(const Onnx__NodeProto *n, const char *name) {
    for (size_t i = 0; i < n->n_attribute; i++) {
        if (strcmp(n->attribute[i]->name, name) == 0) {
            return n->attribute[i];
        }
    }
    return NULL;
}

// Operators of ai.onnx.ml that are more than arithmetic.
static bool is_table(const Onnx__NodeProto *n) {
    static const char *const ops[] = {"LabelEncoder", "TreeEnsemble"};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        if (strncmp(n->op_type, ops[i], strlen(ops[i])) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_call(const Onnx__ModelProto *m, const Onnx__NodeProto *n) {
    for (size_t i = 0; i < m->n_functions; i++) {
        const Onnx__FunctionProto *f = m->functions[i];
        if (strcmp(f->name, n->op_type) == 0 && strcmp(f->domain, n->domain) == 0) {
            return true;
        }
    }
    return false;
}

static const char *domain_outside(const Onnx__ModelProto *m, const Onnx__NodeProto *n) {
    bool is_learned = strcmp(n->domain, "ai.onnx.ml") == 0;
    if (strstr(n->domain, "training") != NULL) {
        return "training";
    }
    if (is_learned && is_table(n)) {
        return "tables and trees";
    }
    bool is_contrib = strcmp(n->domain, "com.microsoft") == 0;
    return is_learned || is_contrib || is_call(m, n) ? NULL : "another operator domain";
}

static const char *node_outside(const Onnx__ModelProto *m, const Onnx__NodeProto *n) {
    const Onnx__AttributeProto *mode = attribute(n, "training_mode");
    if (n->domain != NULL && n->domain[0] != '\0') {
        return domain_outside(m, n);
    }
    if (mode != NULL && mode->i != 0) {
        return "training";
    }
    if (strcmp(n->op_type, "Dropout") == 0 && n->n_input > 2 && n->input[2][0] != '\0') {
        return "training";
    }
    // The word "Sequence" in the name ReverseSequence refers to an axis, not to ONNX's type.
    if (strstr(n->op_type, "Sequence") != NULL && strcmp(n->op_type, "ReverseSequence") != 0) {
        return "sequence";
    }
    if (strncmp(n->op_type, "Optional", 8) == 0) {
        return "optional";
    }
    for (size_t i = 0; i < sizeof ops_outside / sizeof ops_outside[0]; i++) {
        if (strcmp(n->op_type, ops_outside[i].op) == 0) {
            return ops_outside[i].why;
        }
    }
    return NULL;
}

static bool is_random(const Onnx__NodeProto *n) {
    for (size_t i = 0; i < sizeof random_ops / sizeof random_ops[0]; i++) {
        if (strcmp(n->op_type, random_ops[i]) == 0) {
            return true;
        }
    }
    return false;
}

static const char *graph_outside(struct conformance_case *c, const Onnx__GraphProto *g) {
    const char *why = NULL;
    for (size_t i = 0; why == NULL && i < g->n_node; i++) {
        const Onnx__NodeProto *n = g->node[i];
        c->has_any_values |= is_random(n);
        why = node_outside(c->model, n);
        for (size_t k = 0; why == NULL && k < n->n_attribute; k++) {
            why = n->attribute[k]->g == NULL ? NULL : graph_outside(c, n->attribute[k]->g);
        }
    }
    bool is_quantized = g->n_node == 1 && is_quantizing(g->node[0]->op_type);
    for (size_t i = 0; why == NULL && i < g->n_input; i++) {
        why = value_outside(g->input[i]);
        why = why != NULL && is_quantized ? NULL : why;
    }
    for (size_t i = 0; why == NULL && i < g->n_output; i++) {
        why = value_outside(g->output[i]);
        why = why != NULL && is_quantized ? NULL : why;
    }
    return why;
}

static const char *case_name(const struct conformance_case *c) {
    const char *slash = strrchr(c->folder, '/');
    return slash == NULL ? c->folder : slash + 1;
}

static const char *data_outside(const struct conformance_case *c) {
    for (size_t i = 0; i < sizeof contradicting / sizeof contradicting[0]; i++) {
        if (strcmp(case_name(c), contradicting[i].name) == 0) {
            return contradicting[i].why;
        }
    }
    return NULL;
}

// ---- The operator that a case is about --------------------------------------------------------

// Returns whether the case's name begins with the operator's name, comparing letters only:
// "gather_elements_1" begins with both "Gather" and "GatherElements".
static bool begins_with_op(const char *name, const char *op) {
    while (*op != '\0') {
        while (*name == '_') {
            name++;
        }
        if (tolower((unsigned char)*name) != tolower((unsigned char)*op)) {
            return false;
        }
        name++;
        op++;
    }
    return true;
}

static void find_op(struct conformance_case *c) {
    const Onnx__GraphProto *g = c->model->graph;
    const char *name = case_name(c);
    const char *best = g->n_node == 0 ? "" : g->node[0]->op_type;
    size_t length = 0;
    name += strncmp(name, "test_", 5) == 0 ? 5 : 0;
    for (size_t i = 0; i < g->n_node; i++) {
        const char *op = g->node[i]->op_type;
        if (begins_with_op(name, op) && strlen(op) > length) {
            best = op;
            length = strlen(op);
        }
    }
    snprintf(c->op, sizeof c->op, "%s", best);
}

// ---- Arrays -----------------------------------------------------------------------------------

static enum msc_status read_array(struct msc_array **out, const char *path, const char *folder) {
    char *bytes;
    size_t n_bytes;
    MSC_TRY(msc_file_read(&bytes, &n_bytes, path));
    Onnx__TensorProto *t = onnx__tensor_proto__unpack(NULL, n_bytes, (const uint8_t *)bytes);
    enum msc_status status = t == NULL ? MSC_FAIL(MSC_E_FORMAT, "%s: not a TensorProto", path)
                                       : msc_onnx_array(out, t, folder);
    if (t != NULL) {
        onnx__tensor_proto__free_unpacked(t, NULL);
    }
    msc_free(bytes);
    return status;
}

static enum msc_status read_arrays(struct msc_array *arrays[], int *n, const char *folder,
                                   const char *what) {
    char path[CONFORMANCE_PATH_BYTES];
    for (*n = 0; *n < CONFORMANCE_MAX_TENSORS; *n += 1) {
        snprintf(path, sizeof path, "%s/%s_%d.pb", folder, what, *n);
        if (!msc_file_exists(path)) {
            return MSC_OK;
        }
        MSC_TRY(read_array(&arrays[*n], path, folder));
    }
    return MSC_FAIL(MSC_E_UNSUPPORTED, "%s: more than %d arrays", folder, CONFORMANCE_MAX_TENSORS);
}

static enum msc_status read_sets(struct conformance_case *c) {
    char folder[CONFORMANCE_PATH_BYTES];
    for (c->n_sets = 0; c->n_sets < CONFORMANCE_MAX_SETS; c->n_sets++) {
        int n = snprintf(folder, sizeof folder, "%s/test_data_set_%d", c->folder, c->n_sets);
        struct conformance_set *set = &c->sets[c->n_sets];
        if (n >= (int)sizeof folder || !msc_file_exists(folder)) {
            break;
        }
        MSC_TRY(read_arrays(set->inputs, &set->n_inputs, folder, "input"));
        MSC_TRY(read_arrays(set->outputs, &set->n_outputs, folder, "output"));
    }
    return c->n_sets > 0 ? MSC_OK
                         : MSC_FAIL(MSC_E_FORMAT, "%s: has no folder test_data_set_0", c->folder);
}

// The reason why a model is out of scope (an ONNX opset newer than we support), or NULL.
static const char *model_outside(const Onnx__ModelProto *model) {
    for (size_t i = 0; i < model->n_opset_import; i++) {
        const Onnx__OperatorSetIdProto *opset = model->opset_import[i];
        if ((opset->domain == NULL || opset->domain[0] == '\0') &&
            opset->version > MSC_ONNX_NEWEST_OPSET) {
            return "newer opset";
        }
    }
    return NULL;
}

enum msc_status conformance_case_load(struct conformance_case *c, const char *folder) {
    *c = (struct conformance_case){.model = NULL};
    int n = snprintf(c->model_path, sizeof c->model_path, "%s/model.onnx", folder);
    if (n >= (int)sizeof c->model_path) {
        return MSC_FAIL(MSC_E_INVALID, "%s: the path is too long", folder);
    }
    snprintf(c->folder, sizeof c->folder, "%s", folder);
    MSC_TRY(msc_onnx_model_read(&c->model, c->model_path));
    find_op(c);
    c->why_out = model_outside(c->model);
    c->why_out = c->why_out == NULL ? graph_outside(c, c->model->graph) : c->why_out;
    c->why_out = c->why_out == NULL ? data_outside(c) : c->why_out;
    return c->why_out == NULL ? read_sets(c) : MSC_OK;
}

void conformance_case_finish(struct conformance_case *c) {
    for (int s = 0; s < CONFORMANCE_MAX_SETS; s++) {
        for (int i = 0; i < CONFORMANCE_MAX_TENSORS; i++) {
            msc_array_release(c->sets[s].inputs[i]);
            msc_array_release(c->sets[s].outputs[i]);
        }
    }
    msc_onnx_model_free(c->model);
}
