// Shared by translators: reads a node's attributes and inputs, and adds joints for it.
#include "base/str.h"
#include "graph/onnx/onnx_import_internal.h"
#include "graph/op_attrs.h"

#include <assert.h>
#include <string.h>

static const Onnx__AttributeProto *find_attribute(Onnx__AttributeProto *const list[], size_t n,
                                                  const char *name) {
    for (size_t i = 0; i < n; i++) {
        if (list[i]->name != NULL && strcmp(list[i]->name, name) == 0) {
            return list[i];
        }
    }
    return NULL;
}

// Resolves an attribute that refers to an attribute of the function: returns the attribute of the
// call, or else the function's default, or NULL if neither exists. Returns an attribute without a
// reference unchanged.
static const Onnx__AttributeProto *resolve(const struct msc_onnx_call *call,
                                           const Onnx__AttributeProto *attribute) {
    while (attribute != NULL && call != NULL && attribute->ref_attr_name != NULL &&
           attribute->ref_attr_name[0] != '\0') {
        const char *name = attribute->ref_attr_name;
        const Onnx__FunctionProto *f = call->function;
        attribute = find_attribute(call->node->attribute, call->node->n_attribute, name);
        call = call->outer;
        if (attribute == NULL) {
            return find_attribute(f->attribute_proto, f->n_attribute_proto, name);
        }
    }
    return attribute;
}

const Onnx__AttributeProto *msc_onnx__attribute(const struct msc_onnx_node *n, const char *name) {
    const Onnx__NodeProto *p = n->proto;
    return resolve(n->import->call, find_attribute(p->attribute, p->n_attribute, name));
}

static enum msc_status wrong_type(const char *name, const char *expected) {
    return MSC_FAIL(MSC_E_FORMAT, "attribute %s is not %s", name, expected);
}

// Writers for protobuf 3 omit values of 0 and "". Only the type field shows that such a value is
// present.
static bool has_type(const Onnx__AttributeProto *a, Onnx__AttributeProto__AttributeType type) {
    return a->has_type && a->type == type;
}

enum msc_status msc_onnx__int(int64_t *out, const struct msc_onnx_node *n, const char *name,
                              int64_t otherwise) {
    const Onnx__AttributeProto *a = msc_onnx__attribute(n, name);
    *out = a == NULL ? otherwise : a->i;
    return a == NULL || a->has_i || has_type(a, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT)
               ? MSC_OK
               : wrong_type(name, "an integer");
}

enum msc_status msc_onnx__float(float *out, const struct msc_onnx_node *n, const char *name,
                                float otherwise) {
    const Onnx__AttributeProto *a = msc_onnx__attribute(n, name);
    *out = a == NULL ? otherwise : a->f;
    return a == NULL || a->has_f || has_type(a, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT)
               ? MSC_OK
               : wrong_type(name, "a number");
}

enum msc_status msc_onnx__text(const char **out, const struct msc_onnx_node *n, const char *name,
                               const char *otherwise) {
    const Onnx__AttributeProto *a = msc_onnx__attribute(n, name);
    *out = otherwise;
    if (a == NULL) {
        return MSC_OK;
    }
    if (!a->has_s && !has_type(a, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING)) {
        return wrong_type(name, "a string");
    }
    *out = msc_arena_strndup(&n->import->builder.arena,
                             a->s.len == 0 ? "" : (const char *)a->s.data, a->s.len);
    return MSC_ALLOCATED(*out);
}

enum msc_status msc_onnx__ints(const int64_t **out, int *count, const struct msc_onnx_node *n,
                               const char *name) {
    const Onnx__AttributeProto *a = msc_onnx__attribute(n, name);
    *out = NULL;
    *count = -1;
    if (a == NULL) {
        return MSC_OK;
    }
    if (a->n_ints > 4096 || (a->n_ints == 0 && (a->has_i || a->has_f || a->has_s))) {
        return wrong_type(name, "a list of at most 4096 integers");
    }
    *out = a->ints;
    *count = (int)a->n_ints;
    return MSC_OK;
}

enum msc_status msc_onnx__floats(const float **out, int *count, const struct msc_onnx_node *n,
                                 const char *name) {
    const Onnx__AttributeProto *a = msc_onnx__attribute(n, name);
    *out = NULL;
    *count = -1;
    if (a == NULL) {
        return MSC_OK;
    }
    if (a->n_floats > 4096 || (a->n_floats == 0 && (a->has_i || a->has_f || a->has_s))) {
        return wrong_type(name, "a list of at most 4096 numbers");
    }
    *out = a->floats;
    *count = (int)a->n_floats;
    return MSC_OK;
}

enum msc_status msc_onnx__ints_of(int64_t out[], const struct msc_onnx_node *n, const char *name,
                                  int count, int64_t otherwise) {
    const int64_t *values;
    int found;
    MSC_TRY(msc_onnx__ints(&values, &found, n, name));
    if (found > 0 && found != count) {
        return MSC_FAIL(MSC_E_FORMAT, "attribute %s has %d numbers, expected %d", name, found,
                        count);
    }
    for (int i = 0; i < count; i++) {
        out[i] = found > 0 ? values[i] : otherwise;
    }
    return MSC_OK;
}

// The index of the joint's attribute, or n->n_attrs if it is not set.
static int find_set(const struct msc_onnx_node *n, const char *key) {
    int i = 0;
    while (i < n->n_attrs && strcmp(n->attrs[i].key, key) != 0) {
        i++;
    }
    return i;
}

void msc_onnx__set(struct msc_onnx_node *n, const char *key, const char *value) {
    int i = find_set(n, key);
    if (i < MSC_ONNX_MAX_ATTRS) {
        n->attrs[i] = (struct msc_attr){key, value};
        n->n_attrs += i == n->n_attrs;
    }
}

void msc_onnx__set_ints(struct msc_onnx_node *n, const char *key, const int64_t values[],
                        int count) {
    msc_onnx__set(n, key, msc_builder_ints(&n->import->builder, values, count));
}

void msc_onnx__set_int(struct msc_onnx_node *n, const char *key, int64_t value) {
    msc_onnx__set(n, key, msc_builder_int(&n->import->builder, value));
}

void msc_onnx__set_float(struct msc_onnx_node *n, const char *key, float value) {
    msc_onnx__set(n, key, msc_builder_float(&n->import->builder, value));
}

void msc_onnx__set_bool(struct msc_onnx_node *n, const char *key, bool value) {
    msc_onnx__set(n, key, value ? "1" : "0");
}

// Copies a list of strings, joined with commas.
static enum msc_status copy_texts(struct msc_onnx_node *n, const struct msc_op_attr *row) {
    const Onnx__AttributeProto *a = msc_onnx__attribute(n, row->onnx);
    struct msc_str text = {0};
    for (size_t i = 0; i < a->n_strings; i++) {
        if (i > 0) {
            msc_str_char(&text, ',');
        }
        msc_str_append_n(&text, (const char *)a->strings[i].data, a->strings[i].len);
    }
    enum msc_status status = msc_str_status(&text);
    if (status == MSC_OK) {
        msc_onnx__set(n, row->key,
                      msc_arena_strdup(&n->import->builder.arena, msc_str_text(&text)));
    }
    msc_str_finish(&text);
    return status;
}

static enum msc_status onnx_import_node_copy_list(struct msc_onnx_node *n,
                                                  const struct msc_op_attr *row) {
    const int64_t *integers;
    const float *reals;
    int count;
    if (row->type == MSC_ATTR_INTS) {
        MSC_TRY(msc_onnx__ints(&integers, &count, n, row->onnx));
        msc_onnx__set_ints(n, row->key, integers, count);
        return MSC_OK;
    }
    MSC_TRY(msc_onnx__floats(&reals, &count, n, row->onnx));
    msc_onnx__set(n, row->key, msc_builder_floats(&n->import->builder, reals, count));
    return MSC_OK;
}

static enum msc_status copy_attr(struct msc_onnx_node *n, const struct msc_op_attr *row) {
    int64_t integer;
    float real;
    const char *text;
    switch (row->type) {
    case MSC_ATTR_BOOL:
        MSC_TRY(msc_onnx__int(&integer, n, row->onnx, 0));
        msc_onnx__set_bool(n, row->key, integer != 0);
        return MSC_OK;
    case MSC_ATTR_INT:
        MSC_TRY(msc_onnx__int(&integer, n, row->onnx, 0));
        msc_onnx__set_int(n, row->key, integer);
        return MSC_OK;
    case MSC_ATTR_FLOAT:
        MSC_TRY(msc_onnx__float(&real, n, row->onnx, 0.0f));
        msc_onnx__set_float(n, row->key, real);
        return MSC_OK;
    case MSC_ATTR_INTS:
    case MSC_ATTR_FLOATS:
        return onnx_import_node_copy_list(n, row);
    case MSC_ATTR_TEXT:
        MSC_TRY(msc_onnx__text(&text, n, row->onnx, ""));
        msc_onnx__set(n, row->key, text);
        return MSC_OK;
    case MSC_ATTR_TEXTS:
        return copy_texts(n, row);
    case MSC_ATTR_DTYPE:
        return msc_onnx__set_dtype(n, row->key, row->onnx);
    }
    return MSC_OK;
}

enum msc_status msc_onnx__copy_attrs(struct msc_onnx_node *n, enum msc_op op) {
    int n_rows;
    const struct msc_op_attr *rows = msc_op_attrs(op, &n_rows);
    for (int i = 0; i < n_rows; i++) {
        if (rows[i].onnx[0] == '\0' || msc_op_is_parameter(op, rows[i].key) ||
            find_set(n, rows[i].key) < n->n_attrs) {
            continue;
        }
        if (msc_onnx__attribute(n, rows[i].onnx) != NULL) {
            MSC_TRY(copy_attr(n, &rows[i]));
        } else if (rows[i].onnx_value != NULL) {
            msc_onnx__set(n, rows[i].key, rows[i].onnx_value);
        }
    }
    return MSC_OK;
}

enum msc_status msc_onnx__require(const struct msc_onnx_node *n, unsigned inputs) {
    for (int i = 0; inputs >> i != 0; i++) {
        if ((inputs >> i & 1) != 0 && msc_onnx__input(n, i) == NULL) {
            return MSC_FAIL(MSC_E_FORMAT, "the required input %d is missing", i);
        }
    }
    return MSC_OK;
}

struct msc_onnx_shape msc_onnx__shape(const struct msc_onnx_node *n, const struct msc_value *v) {
    struct msc_onnx_shape s = {0};
    if (v->constant != NULL) {
        s.dtype = msc_array_dtype(v->constant);
        s.n_dims = msc_array_n_dims(v->constant);
        memcpy(s.dims, msc_array_dims(v->constant), (size_t)s.n_dims * sizeof(s.dims[0]));
        return s;
    }
    const struct msc_tensor *t = msc_graph_tensor(n->import->builder.graph, v->tensor);
    s.dtype = t->dtype;
    s.n_dims = t->n_dims;
    memcpy(s.dims, t->dims, sizeof(s.dims));
    return s;
}

enum msc_status msc_onnx__make_ints(struct msc_value **out, struct msc_onnx_node *n,
                                    const char *name, const int64_t values[], int count) {
    struct msc_array *array;
    int64_t dim = count;
    MSC_TRY(msc_array_create_from(&array, MSC_DTYPE_I64, 1, &dim, values));
    enum msc_status status = msc_builder_constant(out, &n->import->builder, name, array);
    msc_array_release(array);
    return status;
}

enum msc_status msc_onnx__list_param(struct msc_value **out, struct msc_onnx_node *n, int i,
                                     const char *name) {
    const int64_t *values;
    int count;
    *out = msc_onnx__input(n, i);
    MSC_TRY(msc_onnx__ints(&values, &count, n, name));
    return *out != NULL || count < 0 ? MSC_OK : msc_onnx__make_ints(out, n, name, values, count);
}

enum msc_status msc_onnx__make_scalar(struct msc_value **out, struct msc_onnx_node *n,
                                      enum msc_dtype dtype, double value) {
    struct msc_array *wide, *array;
    MSC_TRY(msc_array_create_from(&wide, MSC_DTYPE_F64, 0, NULL, &value));
    enum msc_status status = msc_array_convert(&array, wide, dtype);
    msc_array_release(wide);
    MSC_TRY(status);
    status = msc_builder_constant(out, &n->import->builder, "", array);
    msc_array_release(array);
    return status;
}

enum msc_status msc_onnx__set_dtype(struct msc_onnx_node *n, const char *key, const char *name) {
    int64_t type;
    if (msc_onnx__attribute(n, name) == NULL) {
        return MSC_OK;
    }
    MSC_TRY(msc_onnx__int(&type, n, name, 0));
    int number = type < 0 || type > 1000 ? 0 : (int)type;
    enum msc_dtype dtype = msc_onnx_dtype(number);
    if (dtype == MSC_DTYPE_NONE) {
        return MSC_ONNX_UNSUPPORTED("conversion to %s (%lld) is not supported",
                                    msc_onnx_type_name(number), (long long)type);
    }
    msc_onnx__set(n, key, msc_dtype_name(dtype));
    return MSC_OK;
}

bool msc_onnx__scalar(double *out, const struct msc_value *v) {
    if (v == NULL || v->constant == NULL || msc_array_n_elements(v->constant) < 1) {
        return false;
    }
    *out = msc_array_get_double(v->constant, 0);
    return true;
}

// The path of the node's module; NULL: the default scope.
static const char *find_scope(const struct msc_onnx_node *n) {
    const char *path = n->import->modules[n->import->node].path;
    return path != NULL && path[0] != '\0' ? path : NULL;
}

const char *msc_onnx__joint_name(const struct msc_onnx_node *n) {
    const char *name = msc_onnx__full_name(n->import, n->proto);
    if (name == NULL || name[0] == '\0' ||
        msc_graph__names_find(&n->import->node_names, name) != 1) {
        return NULL;
    }
    return name;
}

enum msc_status msc_onnx__add_helpers(struct msc_value *outputs[], int n_outputs,
                                      struct msc_onnx_node *n, enum msc_op op,
                                      struct msc_value *const operands[], int n_operands) {
    static const char *const unnamed[] = {"", "", "", ""};
    struct msc_builder_joint joint = {
        .op = op,
        .scope = find_scope(n),
        .n_operands = n_operands,
        .operands = operands,
        .n_attrs = n->n_attrs,
        .attrs = n->attrs,
        .n_outputs = n_outputs,
        .aliases = unnamed,
    };
    assert(n_outputs <= (int)(sizeof(unnamed) / sizeof(unnamed[0])));
    n->n_attrs = 0;
    return msc_builder_add(outputs, &n->import->builder, &joint);
}

enum msc_status msc_onnx__add_helper(struct msc_value **out, struct msc_onnx_node *n,
                                     enum msc_op op, struct msc_value *const operands[],
                                     int n_operands) {
    struct msc_value *result;
    MSC_TRY(msc_onnx__add_helpers(&result, 1, n, op, operands, n_operands));
    *out = result; // set last, because it may be one of the operands
    return MSC_OK;
}

// Marks the outputs from `first` on as not available, except for those that are defined.
static enum msc_status define_unavailable(struct msc_onnx_node *n, size_t first) {
    for (size_t i = first; i < n->proto->n_output; i++) {
        struct msc_onnx_value value = {.unavailable = n->proto};
        if (i >= 32 || (n->extra_outputs >> i & 1) == 0) {
            MSC_TRY(msc_onnx__define(n->import, n->proto->output[i], value));
        }
    }
    return MSC_OK;
}

enum msc_status msc_onnx__add_some(struct msc_onnx_node *n, enum msc_op op,
                                   struct msc_value *const operands[], int n_operands,
                                   int n_outputs) {
    struct msc_builder *b = &n->import->builder;
    n_outputs = n->result != NULL ? 1 : n_outputs;
    struct msc_value **outputs = msc_arena_array(&b->arena, (size_t)n_outputs, sizeof(*outputs));
    const char **aliases = msc_arena_array(&b->arena, (size_t)n_outputs, sizeof(*aliases));
    MSC_TRY(MSC_ALLOCATED(outputs && aliases));
    for (int i = 0; i < n_outputs; i++) {
        aliases[i] = n->result != NULL ? "" : msc_onnx__alias(n->import, n->proto->output[i]);
        MSC_TRY(MSC_ALLOCATED(aliases[i]));
    }
    struct msc_builder_joint joint = {
        .op = op,
        .name = msc_onnx__joint_name(n),
        .scope = find_scope(n),
        .n_operands = n_operands,
        .operands = operands,
        .n_attrs = n->own_attrs != NULL ? n->n_own_attrs : n->n_attrs,
        .attrs = n->own_attrs != NULL ? n->own_attrs : n->attrs,
        .n_outputs = n_outputs,
        .aliases = aliases,
        .stays = n->stays,
        .n_graphs = n->n_graphs,
        .graphs = n->graphs,
    };
    n->n_attrs = 0;
    MSC_TRY(msc_builder_add(outputs, b, &joint));
    if (n->result != NULL) {
        *n->result = outputs[0];
        return MSC_OK;
    }
    for (int i = 0; i < n_outputs; i++) {
        struct msc_onnx_value value = {.value = outputs[i]};
        MSC_TRY(msc_onnx__define(n->import, n->proto->output[i], value));
    }
    return define_unavailable(n, (size_t)n_outputs);
}

enum msc_status msc_onnx__define_extra(struct msc_onnx_node *n, int i, struct msc_value *v) {
    struct msc_onnx_value value = {.value = v};
    if ((size_t)i >= n->proto->n_output) {
        return MSC_OK;
    }
    n->extra_outputs |= 1u << i;
    return msc_onnx__define(n->import, n->proto->output[i], value);
}

enum msc_status msc_onnx__add_last(struct msc_onnx_node *n, enum msc_op op,
                                   struct msc_value *const operands[], int n_operands) {
    return msc_onnx__add_some(n, op, operands, n_operands, 1);
}

enum msc_status msc_onnx__set_output(struct msc_onnx_node *n, struct msc_value *v) {
    struct msc_onnx_value value = {.value = v};
    struct msc_graph *g = n->import->builder.graph;
    if (!msc_value_is_constant(v) && g->tensors[v->tensor]->tensor.alias[0] == '\0') {
        const char *alias = msc_onnx__alias(n->import, n->proto->output[0]);
        MSC_TRY(MSC_ALLOCATED(alias));
        MSC_TRY(msc_graph_set_alias(g, v->tensor, alias));
    }
    MSC_TRY(msc_onnx__define(n->import, n->proto->output[0], value));
    return define_unavailable(n, 1);
}

static enum msc_status check_attrs(const struct msc_onnx_node *n) {
    int n_rows;
    const struct msc_op_attr *rows = msc_op_attrs(n->rule.op, &n_rows);
    for (int i = 0; i < n_rows; i++) {
        if (rows[i].value == NULL && !msc_op_is_parameter(n->rule.op, rows[i].key) &&
            msc_onnx__attribute(n, rows[i].onnx) == NULL) {
            return MSC_FAIL(MSC_E_FORMAT, "required attribute %s is missing", rows[i].onnx);
        }
    }
    return MSC_OK;
}

enum msc_status msc_onnx__direct(struct msc_onnx_node *n) {
    int n_outputs = msc_op_n_outputs(n->rule.op);
    if ((size_t)n_outputs > n->proto->n_output) {
        n_outputs = (int)n->proto->n_output;
    }
    MSC_TRY(check_attrs(n));
    MSC_TRY(msc_onnx__copy_attrs(n, n->rule.op));
    return msc_onnx__add_some(n, n->rule.op, n->inputs, n->n_inputs, n_outputs);
}

// Keeps an Identity from a constant to an output of the graph, because a joint must produce every
// output.
enum msc_status msc_onnx__identity(struct msc_onnx_node *n) {
    const Onnx__GraphProto *g = n->import->proto;
    for (size_t i = 0; i < g->n_output; i++) {
        const char *name = g->output[i]->name;
        n->stays |= name != NULL && strcmp(name, n->proto->output[0]) == 0;
    }
    return msc_onnx__direct(n);
}

static enum msc_status constant_from_numbers(struct msc_array **out,
                                             const struct msc_onnx_node *n) {
    const Onnx__AttributeProto *a = NULL;
    int64_t dim;
    if ((a = msc_onnx__attribute(n, "value_float")) != NULL) {
        return msc_array_create_from(out, MSC_DTYPE_F32, 0, NULL, &a->f);
    }
    if ((a = msc_onnx__attribute(n, "value_int")) != NULL) {
        return msc_array_create_from(out, MSC_DTYPE_I64, 0, NULL, &a->i);
    }
    if ((a = msc_onnx__attribute(n, "value_floats")) != NULL) {
        dim = (int64_t)a->n_floats;
        return msc_array_create_from(out, MSC_DTYPE_F32, 1, &dim, a->floats);
    }
    if ((a = msc_onnx__attribute(n, "value_ints")) != NULL) {
        dim = (int64_t)a->n_ints;
        return msc_array_create_from(out, MSC_DTYPE_I64, 1, &dim, a->ints);
    }
    return MSC_ONNX_UNSUPPORTED("the constant is neither a tensor nor numbers");
}

enum msc_status msc_onnx__constant(struct msc_onnx_node *n) {
    struct msc_array *array;
    struct msc_value *value;
    const Onnx__AttributeProto *a = msc_onnx__attribute(n, "value");
    if (a != NULL && a->t != NULL) {
        MSC_TRY(msc_onnx_array(&array, a->t, n->import->folder));
    } else {
        MSC_TRY(constant_from_numbers(&array, n));
    }
    enum msc_status status =
        msc_builder_constant(&value, &n->import->builder, n->proto->output[0], array);
    msc_array_release(array);
    MSC_TRY(status);
    value->joint_name = msc_onnx__joint_name(n);
    if (a != NULL && a->t != NULL) {
        msc_onnx_storage(a->t->data_type, &value->format);
    }
    return msc_onnx__set_output(n, value);
}

// Reads the fill value, a list of one element, as a scalar. A scalar also fits a shape without
// dimensions.
static enum msc_status read_fill(struct msc_array **out, const struct msc_onnx_node *n,
                                 const Onnx__TensorProto *source) {
    struct msc_array *list;
    MSC_TRY(msc_onnx_array(&list, source, n->import->folder));
    enum msc_status status =
        msc_array_n_elements(list) == 1
            ? msc_array_create_from(out, msc_array_dtype(list), 0, NULL, msc_array_data(list))
            : MSC_FAIL(MSC_E_FORMAT, "the value has %lld elements, expected 1",
                       (long long)msc_array_n_elements(list));
    msc_array_release(list);
    return status;
}

// Broadcasts one element to the shape; this is folded if the shape is constant.
enum msc_status msc_onnx__constant_of_shape(struct msc_onnx_node *n) {
    static const float zero = 0.0f;
    struct msc_array *array = NULL;
    struct msc_value *element;
    const Onnx__AttributeProto *a = msc_onnx__attribute(n, "value");
    if (a != NULL && a->t != NULL) {
        MSC_TRY(read_fill(&array, n, a->t));
    } else {
        MSC_TRY(msc_array_create_from(&array, MSC_DTYPE_F32, 0, NULL, &zero));
    }
    enum msc_status status = msc_builder_constant(&element, &n->import->builder, "", array);
    msc_array_release(array);
    MSC_TRY(status);
    struct msc_value *operands[] = {element, n->inputs[0]};
    return msc_onnx__add_last(n, MSC_OP_BROADCAST_TO, operands, 2);
}
