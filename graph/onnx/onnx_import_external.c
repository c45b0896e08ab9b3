// Imports nodes whose operator mscgym does not know as external joints (graph/external.h).
#include "graph/onnx/onnx_import_internal.h"

#include "base/str.h"
#include "graph/external_internal.h"
#include "graph/onnx/onnx_external.h"
#include "graph/operators_internal.h"

#include <stdio.h>
#include <string.h>

// ---- Types of outputs -------------------------------------------------------------------------

static const Onnx__ValueInfoProto *find_info(Onnx__ValueInfoProto *const list[], size_t n,
                                             const char *name) {
    for (size_t i = 0; i < n; i++) {
        if (list[i]->name != NULL && strcmp(list[i]->name, name) == 0) {
            return list[i];
        }
    }
    return NULL;
}

static const Onnx__TypeProto__Tensor *stated_type(const struct msc_onnx_import *im,
                                                  const char *value) {
    const Onnx__GraphProto *g = im->proto;
    const Onnx__ValueInfoProto *info = find_info(g->value_info, g->n_value_info, value);
    info = info == NULL ? find_info(g->output, g->n_output, value) : info;
    const Onnx__TypeProto *type = info == NULL ? NULL : info->type;
    bool is_tensor = type != NULL && type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE &&
                     type->tensor_type->shape != NULL;
    return is_tensor ? type->tensor_type : NULL;
}

static enum msc_status read_length(struct msc_external_type *type, int axis,
                                   const struct msc_onnx_import *im, const char *value,
                                   const Onnx__TensorShapeProto__Dimension *d) {
    if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE &&
        d->dim_value >= 0) {
        type->dims[axis] = d->dim_value;
        return MSC_OK;
    }
    const char *name =
        d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM ? d->dim_param : NULL;
    type->dims[axis] = name == NULL ? -1 : msc_onnx__length_of(im, name);
    if (type->dims[axis] < 0) {
        char made[MSC_EXTERNAL_NAME_BYTES];
        snprintf(made, sizeof made, "%.40s.%d", value, axis);
        msc_external__clean_name(type->names[axis], name == NULL || !name[0] ? made : name);
    }
    return MSC_OK;
}

static enum msc_status read_type(struct msc_external_type *type, const struct msc_onnx_import *im,
                                 const char *value, const Onnx__TypeProto__Tensor *from) {
    const char *format;
    *type = (struct msc_external_type){.dtype = msc_onnx_storage(from->elem_type, &format)};
    if (type->dtype == MSC_DTYPE_NONE || format[0] != '\0' || from->shape->n_dim > MSC_MAX_DIMS) {
        return MSC_ONNX_UNSUPPORTED("output '%s' is of type %s with %zu dimensions, which is not "
                                    "supported",
                                    value, msc_onnx_type_name(from->elem_type), from->shape->n_dim);
    }
    type->n_dims = (int)from->shape->n_dim;
    for (int i = 0; i < type->n_dims; i++) {
        MSC_TRY(read_length(type, i, im, value, from->shape->dim[i]));
    }
    return MSC_OK;
}

// The number of outputs, without absent ones at the end.
static size_t count_outputs(const Onnx__NodeProto *p) {
    size_t n = p->n_output;
    while (n > 0 && p->output[n - 1][0] == '\0') {
        n--;
    }
    return n;
}

// Appends the types of the outputs to the signature. If the plug-in infers them, it needs no types.
// msc_onnx__is_external has checked that they are stated otherwise.
static enum msc_status write_outputs(struct msc_str *out, const struct msc_onnx_node *n,
                                     const struct msc_operators_entry *entry) {
    const Onnx__NodeProto *p = n->proto;
    for (size_t i = 0; i < count_outputs(p) && !(entry != NULL && entry->infers); i++) {
        struct msc_external_type type;
        const Onnx__TypeProto__Tensor *stated = stated_type(n->import, p->output[i]);
        MSC_TRY(read_type(&type, n->import, p->output[i], stated));
        msc_str_append(out, i > 0 ? ", " : " ");
        msc_external__write_type(out, &type);
    }
    return MSC_OK;
}

// ---- Types of operands ------------------------------------------------------------------------

static void write_operand(struct msc_str *out, const struct msc_onnx_node *n,
                          const struct msc_value *v, bool is_first) {
    struct msc_external_type type = {.dtype = MSC_DTYPE_NONE};
    if (v != NULL && v->constant != NULL) {
        type.dtype = msc_array_dtype(v->constant);
        type.n_dims = msc_array_n_dims(v->constant);
        memcpy(type.dims, msc_array_dims(v->constant), (size_t)type.n_dims * sizeof type.dims[0]);
    } else if (v != NULL) {
        const struct msc_graph *g = n->import->builder.graph;
        struct msc_infer_tensor t;
        msc_graph__infer_tensor(&t, g, v->tensor);
        msc_external__type_of(&type, g, t.dtype, t.n_dims, t.dims);
    }
    msc_str_append(out, is_first ? "" : ", ");
    msc_external__write_type(out, &type);
}

static enum msc_status make_signature(const char **out, const struct msc_onnx_node *n,
                                      const struct msc_operators_entry *entry) {
    struct msc_str text = {0};
    for (int i = 0; i < n->n_inputs; i++) {
        write_operand(&text, n, n->inputs[i], i == 0);
    }
    msc_str_append(&text, n->n_inputs > 0 ? " ->" : "->");
    enum msc_status status = write_outputs(&text, n, entry);
    status = status == MSC_OK ? msc_str_status(&text) : status;
    *out = status == MSC_OK ? msc_str_keep(&text, &n->import->builder.arena) : "";
    msc_str_finish(&text);
    return status == MSC_OK ? MSC_ALLOCATED(*out) : status;
}

// Writes the types that a plug-in inferred to the signature, so that saved forms need no plug-in.
static enum msc_status complete_signature(struct msc_onnx_node *n, const char *signature) {
    struct msc_graph *g = n->import->builder.graph;
    struct msc_value *first;
    MSC_TRY(msc_onnx__lookup(&first, n->import, n->proto->output[0]));
    struct msc_joint *j = &g->joints[g->tensors[first->tensor]->tensor.producer]->joint;
    struct msc_str text = {0};
    msc_str_append(&text, signature);
    for (int32_t i = 0; i < j->n_outputs; i++) {
        struct msc_external_type type;
        struct msc_infer_tensor t;
        msc_graph__infer_tensor(&t, g, j->outputs[i]);
        msc_external__type_of(&type, g, t.dtype, t.n_dims, t.dims);
        msc_str_append(&text, i > 0 ? ", " : " ");
        msc_external__write_type(&text, &type);
    }
    struct msc_attr *attrs = (struct msc_attr *)j->attrs;
    const char *kept = msc_str_keep(&text, &g->arena);
    for (int32_t i = 0; kept != NULL && i < j->n_attrs; i++) {
        attrs[i].value = strcmp(attrs[i].key, "signature") == 0 ? kept : attrs[i].value;
    }
    return MSC_ALLOCATED(kept);
}

// ---- Graphs in attributes ---------------------------------------------------------------------

// What the graphs in a node's attributes need from outside.
struct needs {
    struct msc_onnx_node *n;
    struct msc_str captures, imports; // names; DOMAIN=VERSION
    struct msc_value **operands;
    size_t n_operands, capacity;
};

// True if a list separated by commas has the entry.
static bool is_listed(const char *list, const char *entry) {
    size_t length = strlen(entry);
    for (const char *c = list; *c != '\0'; c += strcspn(c, ","), c += *c == ',') {
        if (strncmp(c, entry, length) == 0 && (c[length] == ',' || c[length] == '\0')) {
            return true;
        }
    }
    return false;
}

static enum msc_status add_capture(void *payload, char **name) {
    struct needs *needs = payload;
    const char *list = msc_str_text(&needs->captures);
    if (strchr(*name, ',') != NULL) {
        return MSC_ONNX_UNSUPPORTED("a graph in an attribute reads the value '%s', whose name has "
                                    "a comma",
                                    *name);
    }
    if (is_listed(list, *name)) {
        return MSC_OK;
    }
    MSC_TRY(msc_grow(&needs->operands, &needs->capacity, needs->n_operands + 1,
                     sizeof needs->operands[0]));
    MSC_TRY(msc_onnx__lookup(&needs->operands[needs->n_operands++], needs->n->import, *name));
    msc_str_append(&needs->captures, list[0] == '\0' ? "" : ",");
    msc_str_append(&needs->captures, *name);
    return MSC_OK;
}

static int64_t version_of(const struct msc_onnx_import *im, const char *domain) {
    if (domain[0] == '\0') {
        return im->opset;
    }
    for (size_t i = 0; i < im->model->n_opset_import; i++) {
        const Onnx__OperatorSetIdProto *set = im->model->opset_import[i];
        if (set->domain != NULL && strcmp(set->domain, domain) == 0) {
            return set->version;
        }
    }
    return 1;
}

static enum msc_status add_import(void *payload, const Onnx__NodeProto *node) {
    struct needs *needs = payload;
    const char *domain = node->domain == NULL ? "" : node->domain;
    if (msc_onnx__find_function(needs->n->import, node) != NULL) {
        return MSC_ONNX_UNSUPPORTED("a graph in an attribute calls the model's function '%s'; "
                                    "inline the model's functions (onnx.inliner)",
                                    node->op_type);
    }
    if (domain[0] == '\0' || strcmp(domain, "ai.onnx") == 0) {
        return MSC_OK;
    }
    char entry[512];
    snprintf(entry, sizeof entry, "%.400s=%lld", domain,
             (long long)version_of(needs->n->import, domain));
    if (!is_listed(msc_str_text(&needs->imports), entry)) {
        msc_str_append(&needs->imports, needs->imports.length == 0 ? "" : ",");
        msc_str_append(&needs->imports, entry);
    }
    return MSC_OK;
}

static enum msc_status append_captures(struct needs *needs) {
    struct msc_onnx_node *n = needs->n;
    size_t n_all = (size_t)n->n_inputs + needs->n_operands;
    struct msc_value **inputs =
        msc_arena_array(&n->import->builder.arena, n_all + 1, sizeof inputs[0]);
    MSC_TRY(MSC_ALLOCATED(inputs));
    for (size_t i = 0; i < n_all; i++) {
        size_t k = i - (size_t)n->n_inputs;
        inputs[i] = i < (size_t)n->n_inputs ? n->inputs[i] : needs->operands[k];
    }
    n->inputs = inputs;
    n->n_inputs = (int)n_all;
    return MSC_OK;
}

// ---- Attributes -------------------------------------------------------------------------------

static void add_attr(struct msc_onnx_node *n, const char *key, const char *value) {
    n->own_attrs[n->n_own_attrs++] = (struct msc_attr){key, value};
}

static enum msc_status copy_attributes(struct needs *needs) {
    struct msc_onnx_node *n = needs->n;
    struct msc_arena *arena = &n->import->builder.arena;
    const struct msc_onnx_graph_visit visit = {
        .visit = add_capture, .visit_node = add_import, .payload = needs};
    for (size_t i = 0; i < n->proto->n_attribute; i++) {
        const char *name = n->proto->attribute[i]->name, *value;
        const Onnx__AttributeProto *a = name == NULL ? NULL : msc_onnx__attribute(n, name);
        if (a == NULL) {
            continue; // a function's attribute that the call leaves out
        }
        // The copy has the node's name for the attribute, and refers to no other attribute.
        Onnx__AttributeProto copy = *a;
        copy.name = (char *)name;
        copy.ref_attr_name = NULL;
        MSC_TRY(msc_onnx__attr_to_text(&value, &copy, arena));
        const char *key = msc_arena_printf(arena, "%s%s", MSC_EXTERNAL_ATTR, name);
        MSC_TRY(MSC_ALLOCATED(key));
        add_attr(n, key, value);
        MSC_TRY(msc_onnx__visit_graphs(&visit, &copy));
    }
    return MSC_OK;
}

static enum msc_status add_joint(struct needs *needs, const char *domain) {
    struct msc_onnx_node *n = needs->n;
    struct msc_arena *arena = &n->import->builder.arena;
    const struct msc_operators_entry *entry =
        msc_operators__find(n->import->options->operators, domain, n->proto->op_type);
    const char *signature;
    n->own_attrs = msc_arena_array(arena, n->proto->n_attribute + 6, sizeof n->own_attrs[0]);
    MSC_TRY(MSC_ALLOCATED(n->own_attrs));
    MSC_TRY(copy_attributes(needs));
    MSC_TRY(msc_str_status(&needs->captures));
    MSC_TRY(msc_str_status(&needs->imports));
    MSC_TRY(append_captures(needs));
    MSC_TRY(make_signature(&signature, n, entry));
    const char *version = msc_builder_int(&n->import->builder, version_of(n->import, domain));
    const char *captures = msc_arena_strdup(arena, msc_str_text(&needs->captures));
    const char *imports = msc_arena_strdup(arena, msc_str_text(&needs->imports));
    MSC_TRY(MSC_ALLOCATED(version && captures && imports));
    if (captures[0] != '\0') {
        add_attr(n, "captures", captures);
    }
    if (imports[0] != '\0') {
        add_attr(n, "imports", imports);
    }
    add_attr(n, "domain", domain);
    add_attr(n, "op", n->proto->op_type);
    add_attr(n, "signature", signature);
    add_attr(n, "version", version);
    MSC_TRY(msc_onnx__add_some(n, MSC_OP_EXTERNAL, n->inputs, n->n_inputs,
                               (int)count_outputs(n->proto)));
    return entry != NULL && entry->infers ? complete_signature(n, signature) : MSC_OK;
}

static enum msc_status check_node(const struct msc_onnx_node *n) {
    for (int i = 0; i < n->n_inputs; i++) {
        const char *format = n->inputs[i] == NULL ? "" : n->inputs[i]->format;
        if (format[0] != '\0') {
            return MSC_ONNX_UNSUPPORTED("input %d of an external operator is %s, which is not "
                                        "supported",
                                        i, format);
        }
    }
    for (size_t i = 0; i < count_outputs(n->proto); i++) {
        if (n->proto->output[i][0] == '\0') {
            return MSC_ONNX_UNSUPPORTED("output %zu of an external operator has no name", i);
        }
    }
    return MSC_OK;
}

enum msc_status msc_onnx__external(struct msc_onnx_node *n) {
    const char *domain = n->proto->domain == NULL ? "" : n->proto->domain;
    struct needs needs = {.n = n};
    MSC_TRY(check_node(n));
    enum msc_status status = add_joint(&needs, strcmp(domain, "ai.onnx") == 0 ? "" : domain);
    msc_str_finish(&needs.captures);
    msc_str_finish(&needs.imports);
    msc_free(needs.operands);
    return status;
}

bool msc_onnx__is_external(const struct msc_onnx_import *im, const Onnx__NodeProto *p) {
    const char *domain = p->domain == NULL || strcmp(p->domain, "ai.onnx") == 0 ? "" : p->domain;
    const char *op = p->op_type == NULL ? "" : p->op_type;
    const struct msc_operators_entry *entry =
        msc_operators__find(im->options->operators, domain, op);
    // Nodes that ONNX Runtime wrote for one machine are refused with advice.
    bool is_stated = op[0] != '\0' && count_outputs(p) > 0 &&
                     strcmp(domain, "com.microsoft.nchwc") != 0 &&
                     strcmp(domain, "com.ms.internal.nhwc") != 0;
    for (size_t i = 0; i < count_outputs(p) && is_stated; i++) {
        is_stated = p->output[i][0] == '\0' || stated_type(im, p->output[i]) != NULL;
    }
    return is_stated || (entry != NULL && entry->infers && count_outputs(p) > 0);
}
