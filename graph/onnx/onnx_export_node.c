// Adds nodes, attributes and initialisers to the model that is being assembled.
#include "graph/onnx/onnx_export_internal.h"
#include "graph/op_attrs.h"

#include <assert.h>
#include <string.h>

const char *msc_onnx__free_name(struct msc_onnx_export *e, struct msc_graph_names *names,
                                const char *wanted) {
    const char *name = wanted;
    for (int n = 1; name != NULL && msc_graph__names_find(names, name) != MSC_NO_ID; n++) {
        name = msc_arena_printf(&e->arena, "%s_%d", wanted, n);
    }
    return name == NULL || msc_graph__names_put(names, name, 0) != MSC_OK ? NULL : name;
}

enum msc_status msc_onnx__add_node(Onnx__NodeProto **out, struct msc_onnx_export *e,
                                   const char *op_type, const char *name,
                                   const char *const inputs[], size_t n_inputs,
                                   const char *const outputs[], size_t n_outputs) {
    while (n_inputs > 0 && inputs[n_inputs - 1][0] == '\0') {
        n_inputs--;
    }
    Onnx__NodeProto *node = msc_arena_alloc(&e->arena, sizeof(*node));
    char **copies = msc_arena_array(&e->arena, n_inputs + n_outputs, sizeof(copies[0]));
    const char *own = msc_onnx__free_name(e, &e->node_names, name);
    MSC_TRY(MSC_ALLOCATED(node && copies && own));
    MSC_TRY(msc_grow(&e->nodes, &e->nodes_capacity, e->n_nodes + 1, sizeof(e->nodes[0])));
    onnx__node_proto__init(node);
    for (size_t i = 0; i < n_inputs; i++) {
        copies[i] = (char *)inputs[i];
    }
    for (size_t i = 0; i < n_outputs; i++) {
        copies[n_inputs + i] = (char *)outputs[i];
    }
    node->op_type = (char *)op_type;
    node->name = (char *)own;
    node->n_input = n_inputs;
    node->input = copies;
    node->n_output = n_outputs;
    node->output = copies + n_inputs;
    e->nodes[e->n_nodes++] = node;
    *out = node;
    return MSC_OK;
}

enum msc_status msc_onnx__add_own(struct msc_onnx_joint *j, const char *const inputs[],
                                  size_t n_inputs) {
    size_t n = (size_t)j->joint->n_outputs;
    const char **outputs = msc_arena_array(&j->e->arena, n, sizeof(outputs[0]));
    MSC_TRY(MSC_ALLOCATED(outputs));
    for (size_t i = 0; i < n; i++) {
        outputs[i] = j->e->names[j->joint->outputs[i]];
    }
    return msc_onnx__add_node(&j->node, j->e, msc_op_info(j->joint->op)->onnx, j->joint->name,
                              inputs, n_inputs, outputs, n);
}

// More attributes than any operator has.
#define MAX_ATTRIBUTES 16

// Returns NULL if memory is short.
static Onnx__AttributeProto *add_attribute(struct msc_onnx_export *e, Onnx__NodeProto *node,
                                           const char *name,
                                           Onnx__AttributeProto__AttributeType type) {
    if (node->attribute == NULL) {
        node->attribute = msc_arena_array(&e->arena, MAX_ATTRIBUTES, sizeof(node->attribute[0]));
    }
    Onnx__AttributeProto *a = msc_arena_alloc(&e->arena, sizeof(*a));
    if (node->attribute == NULL || a == NULL) {
        return NULL;
    }
    assert(node->n_attribute < MAX_ATTRIBUTES);
    onnx__attribute_proto__init(a);
    a->name = (char *)name;
    a->has_type = true;
    a->type = type;
    node->attribute[node->n_attribute++] = a;
    return a;
}

enum msc_status msc_onnx__put_int(struct msc_onnx_export *e, Onnx__NodeProto *node,
                                  const char *name, int64_t value) {
    Onnx__AttributeProto *a =
        add_attribute(e, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    MSC_TRY(MSC_ALLOCATED(a));
    a->has_i = true;
    a->i = value;
    return MSC_OK;
}

enum msc_status msc_onnx__put_float(struct msc_onnx_export *e, Onnx__NodeProto *node,
                                    const char *name, float value) {
    Onnx__AttributeProto *a =
        add_attribute(e, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    MSC_TRY(MSC_ALLOCATED(a));
    a->has_f = true;
    a->f = value;
    return MSC_OK;
}

enum msc_status msc_onnx__put_text(struct msc_onnx_export *e, Onnx__NodeProto *node,
                                   const char *name, const char *value) {
    Onnx__AttributeProto *a =
        add_attribute(e, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
    MSC_TRY(MSC_ALLOCATED(a));
    a->has_s = true;
    a->s.data = (uint8_t *)value;
    a->s.len = strlen(value);
    return MSC_OK;
}

enum msc_status msc_onnx__put_ints(struct msc_onnx_export *e, Onnx__NodeProto *node,
                                   const char *name, const int64_t values[], size_t n) {
    Onnx__AttributeProto *a =
        add_attribute(e, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    MSC_TRY(MSC_ALLOCATED(a));
    a->n_ints = n;
    a->ints = msc_arena_array(&e->arena, n, sizeof(a->ints[0]));
    MSC_TRY(MSC_ALLOCATED(a->ints));
    memcpy(a->ints, values, n * sizeof(values[0]));
    return MSC_OK;
}

enum msc_status msc_onnx__put_floats(struct msc_onnx_export *e, Onnx__NodeProto *node,
                                     const char *name, const float values[], size_t n) {
    Onnx__AttributeProto *a =
        add_attribute(e, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS);
    MSC_TRY(MSC_ALLOCATED(a));
    a->n_floats = n;
    a->floats = msc_arena_array(&e->arena, n, sizeof(a->floats[0]));
    MSC_TRY(MSC_ALLOCATED(a->floats));
    memcpy(a->floats, values, n * sizeof(values[0]));
    return MSC_OK;
}

enum msc_status msc_onnx__put_graph(struct msc_onnx_export *e, Onnx__NodeProto *node,
                                    const char *name, Onnx__GraphProto *graph) {
    Onnx__AttributeProto *a =
        add_attribute(e, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH);
    MSC_TRY(MSC_ALLOCATED(a));
    a->g = graph;
    return MSC_OK;
}

enum msc_status msc_onnx__put_texts(struct msc_onnx_export *e, Onnx__NodeProto *node,
                                    const char *name, const char *text) {
    Onnx__AttributeProto *a =
        add_attribute(e, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS);
    MSC_TRY(MSC_ALLOCATED(a));
    a->strings = msc_arena_array(&e->arena, strlen(text) + 1, sizeof(a->strings[0]));
    MSC_TRY(MSC_ALLOCATED(a->strings));
    while (*text != '\0') {
        size_t length = strcspn(text, ",");
        ProtobufCBinaryData *part = &a->strings[a->n_strings++];
        part->data = (uint8_t *)text;
        part->len = length;
        text += length + (text[length] == ',');
    }
    return MSC_OK;
}

enum msc_status msc_onnx__put_initializer(struct msc_onnx_export *e, const char *name,
                                          enum msc_onnx_type type, int n_dims, const int64_t dims[],
                                          const void *data, size_t n_bytes) {
    struct msc_onnx_initializer *made = msc_arena_alloc(&e->arena, sizeof(*made));
    int64_t *own_dims = msc_arena_array(&e->arena, (size_t)n_dims + 1, sizeof(own_dims[0]));
    MSC_TRY(MSC_ALLOCATED(made && own_dims));
    MSC_TRY(msc_grow(&e->initializers, &e->initializers_capacity, e->n_initializers + 1,
                     sizeof(e->initializers[0])));
    for (int i = 0; i < n_dims; i++) {
        own_dims[i] = dims[i];
    }
    Onnx__TensorProto *t = &made->tensor;
    made->source = NULL;
    onnx__tensor_proto__init(t);
    t->name = (char *)name;
    t->has_data_type = true;
    t->data_type = (int32_t)type;
    t->n_dims = (size_t)n_dims;
    t->dims = own_dims;
    t->has_raw_data = true;
    t->raw_data.data = (uint8_t *)data;
    t->raw_data.len = n_bytes;
    e->initializers[e->n_initializers++] = t;
    return MSC_OK;
}

// Finds an equal initialiser whose name begins with `wanted`; NULL if there is none.
static const char *find_initializer(const struct msc_onnx_export *e, const char *wanted,
                                    enum msc_onnx_type type, int n_dims, const int64_t dims[],
                                    const void *data, size_t n_bytes) {
    size_t length = strlen(wanted);
    for (size_t i = 0; i < e->n_initializers; i++) {
        const Onnx__TensorProto *t = e->initializers[i];
        if (strncmp(t->name, wanted, length) == 0 && t->data_type == (int32_t)type &&
            t->n_dims == (size_t)n_dims && t->raw_data.len == n_bytes &&
            (n_dims == 0 || memcmp(t->dims, dims, t->n_dims * sizeof(dims[0])) == 0) &&
            (n_bytes == 0 || memcmp(t->raw_data.data, data, n_bytes) == 0)) {
            return t->name;
        }
    }
    return NULL;
}

enum msc_status msc_onnx__add_initializer(const char **out, struct msc_onnx_export *e,
                                          const char *wanted, enum msc_onnx_type type, int n_dims,
                                          const int64_t dims[], const void *data, size_t n_bytes) {
    if (wanted != NULL && msc_graph__names_find(&e->value_names, wanted) != MSC_NO_ID) {
        *out = find_initializer(e, wanted, type, n_dims, dims, data, n_bytes);
        if (*out != NULL) {
            return MSC_OK;
        }
    }
    *out = msc_onnx__free_name(e, &e->value_names, wanted);
    return *out == NULL ? MSC_FAIL(MSC_E_NOMEM, "out of memory")
                        : msc_onnx__put_initializer(e, *out, type, n_dims, dims, data, n_bytes);
}

// Adds a 1-D initialiser with a copy of the elements.
static enum msc_status add_list(const char **out, struct msc_onnx_joint *j, const char *role,
                                enum msc_onnx_type type, const void *values, size_t n,
                                size_t element_bytes) {
    struct msc_onnx_export *e = j->e;
    const char *name = msc_arena_printf(&e->arena, "%s.%s", j->joint->name, role);
    void *copy = msc_arena_array(&e->arena, n + 1, element_bytes);
    int64_t dim = (int64_t)n;
    MSC_TRY(MSC_ALLOCATED(name && copy));
    if (n > 0) {
        memcpy(copy, values, n * element_bytes);
    }
    return msc_onnx__add_initializer(out, e, name, type, 1, &dim, copy, n * element_bytes);
}

enum msc_status msc_onnx__int64s(const char **out, struct msc_onnx_joint *j, const char *role,
                                 const int64_t values[], size_t n) {
    return add_list(out, j, role, MSC_ONNX_INT64, values, n, sizeof(values[0]));
}

enum msc_status msc_onnx__floats32(const char **out, struct msc_onnx_joint *j, const char *role,
                                   const float values[], size_t n) {
    return add_list(out, j, role, MSC_ONNX_FLOAT, values, n, sizeof(values[0]));
}

enum msc_status msc_onnx__list_input(const char **out, struct msc_onnx_joint *j, const char *role) {
    int operand = msc_joint_operand(j->joint, role);
    *out = "";
    if (operand >= 0 && j->inputs[operand][0] != '\0') {
        *out = j->inputs[operand];
        return MSC_OK;
    }
    const char *text = msc_joint_attr(j->joint, role);
    const struct msc_op_attr *row = msc_op_attr_find(j->joint->op, role);
    if (text == NULL || row == NULL || (text[0] == '\0' && row->value != NULL)) {
        return MSC_OK;
    }
    size_t most = strlen(text) / 2 + 1;
    if (row->type == MSC_ATTR_FLOATS) {
        float *values = msc_arena_array(&j->e->arena, most, sizeof(values[0]));
        int n = values == NULL ? -1 : msc_attr_read_floats(values, (int)most, text);
        return n < 0 ? MSC_FAIL(MSC_E_NOMEM, "out of memory")
                     : msc_onnx__floats32(out, j, role, values, (size_t)n);
    }
    int64_t *values = msc_arena_array(&j->e->arena, most, sizeof(values[0]));
    int n = values == NULL ? -1 : msc_attr_read_ints(values, (int)most, text);
    return n < 0 ? MSC_FAIL(MSC_E_NOMEM, "out of memory")
                 : msc_onnx__int64s(out, j, role, values, (size_t)n);
}

enum msc_status msc_onnx__add_step(const char **out, struct msc_onnx_export *e, const char *op_type,
                                   const char *wanted, const char *const inputs[],
                                   size_t n_inputs) {
    Onnx__NodeProto *node;
    const char *name = wanted == NULL ? NULL : msc_onnx__free_name(e, &e->value_names, wanted);
    MSC_TRY(MSC_ALLOCATED(name));
    MSC_TRY(msc_onnx__add_node(&node, e, op_type, wanted, inputs, n_inputs, &name, 1));
    *out = name; // set last, because it may be one of the inputs
    return MSC_OK;
}
