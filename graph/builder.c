#include "graph/builder_internal.h"

#include "graph/op_attrs.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void msc_builder_finish(struct msc_builder *b) {
    for (size_t i = 0; i < b->n_arrays; i++) {
        msc_array_release(b->arrays[i]);
    }
    msc_free(b->arrays);
    msc_graph__names_finish(&b->reserved);
    msc_arena_finish(&b->arena);
    *b = (struct msc_builder){0};
}

enum msc_status msc_builder_reserve(struct msc_builder *b, const char *name) {
    return msc_graph__names_put(&b->reserved, name, 0);
}

static enum msc_status new_value(struct msc_value **out, struct msc_builder *b, const char *name) {
    struct msc_value *v = msc_arena_alloc(&b->arena, sizeof(*v));
    MSC_TRY(MSC_ALLOCATED(v));
    *v = (struct msc_value){.name = name,
                            .alias = "",
                            .layout = "",
                            .format = "",
                            .tensor = MSC_NO_ID,
                            .weight = MSC_NO_ID};
    *out = v;
    return MSC_OK;
}

enum msc_status msc_builder_activation(struct msc_value **out, struct msc_builder *b,
                                       const char *name, int32_t tensor) {
    MSC_TRY(new_value(out, b, name));
    (*out)->alias = name;
    (*out)->tensor = tensor;
    return MSC_OK;
}

enum msc_status msc_builder_constant(struct msc_value **out, struct msc_builder *b,
                                     const char *name, const struct msc_array *array) {
    MSC_TRY(new_value(out, b, name));
    MSC_TRY(msc_grow(&b->arrays, &b->arrays_capacity, b->n_arrays + 1, sizeof(b->arrays[0])));
    b->arrays[b->n_arrays++] = msc_array_retain(array);
    (*out)->constant = array;
    return MSC_OK;
}

// A default name for a joint: the operator's hint, followed by a number from the second name on.
// Reserved names are skipped. NULL if out of memory.
static const char *hinted_name(struct msc_builder *b, enum msc_op op) {
    const char *hint = msc_op_info(op)->hint;
    for (;;) {
        int32_t number = b->hints[op]++;
        const char *name = number == 0 ? hint : msc_arena_printf(&b->arena, "%s_%d", hint, number);
        if (name == NULL || msc_graph__names_find(&b->reserved, name) == MSC_NO_ID) {
            return name;
        }
    }
}

// An unused name for a joint: the wanted name if possible, else a default name. A name is unused if
// no joint has it and no tensor is called "name:0", as the joint's first output will be. NULL if
// out of memory.
static const char *joint_name(struct msc_builder *b, const char *wanted, enum msc_op op) {
    const char *name = wanted != NULL && wanted[0] != '\0' ? wanted : hinted_name(b, op);
    for (;;) {
        const char *output = name == NULL ? NULL : msc_arena_printf(&b->arena, "%s:0", name);
        if (output == NULL) {
            return NULL;
        }
        if (msc_graph__live_joint(b->graph, name) == MSC_NO_ID &&
            msc_graph__live_tensor(b->graph, output) == MSC_NO_ID) {
            return name;
        }
        name = hinted_name(b, op);
    }
}

// True if the value's name is its joint's name followed by ":0". TensorFlow's exporters write such
// names. MSC reserves "node:0" for the output of joint "node", so a weight made from the value is
// called "node".
static bool is_called_as_output(const struct msc_value *v) {
    size_t n = v->joint_name == NULL ? 0 : strlen(v->joint_name);
    return n > 0 && strncmp(v->name, v->joint_name, n) == 0 && strcmp(v->name + n, ":0") == 0;
}

static const char *builder_wanted_name(const struct msc_value *v) {
    return v->name[0] == '\0' ? "const" : is_called_as_output(v) ? v->joint_name : v->name;
}

// A name for a weight: the wanted name. If it is taken, the first free number is appended.
static const char *weight_name(struct msc_builder *b, const struct msc_value *v) {
    const char *base = builder_wanted_name(v);
    const char *name = base;
    int32_t of_this = 0;
    int32_t *number = v->name[0] == '\0' ? &b->n_unnamed : &of_this;
    while (name != NULL && msc_graph__live_tensor(b->graph, name) != MSC_NO_ID) {
        name = msc_arena_printf(&b->arena, "%s_%d", base, ++*number);
    }
    return name;
}

// An existing weight with the value's name, elements and layout; MSC_NO_ID if there is none.
static int32_t find_weight(const struct msc_builder *b, const struct msc_value *v,
                           const char *layout) {
    int32_t id = msc_graph__live_tensor(b->graph, builder_wanted_name(v));
    if (id == MSC_NO_ID) {
        return MSC_NO_ID;
    }
    const struct msc_tensor *t = &b->graph->tensors[id]->tensor;
    bool is_same =
        t->producer == MSC_NO_ID && t->data == v->constant && strcmp(t->layout, layout) == 0;
    return is_same ? id : MSC_NO_ID;
}

// Sets *is_shared to whether an existing weight can serve a joint that needs the axis letters
// `layout` ("": any). A weight that has no layout yet gets this one.
static enum msc_status share_weight(bool *is_shared, struct msc_builder *b, int32_t weight,
                                    const char *layout) {
    struct msc_tensor *t = &b->graph->tensors[weight]->tensor;
    if (t->layout[0] == '\0' && layout[0] != '\0' && strlen(layout) == (size_t)t->n_dims) {
        t->layout = msc_arena_strdup(&b->graph->arena, layout);
        MSC_TRY(MSC_ALLOCATED(t->layout));
    }
    *is_shared = layout[0] == '\0' || strcmp(t->layout, layout) == 0;
    return MSC_OK;
}

static enum msc_status make_weight(int32_t *out, struct msc_builder *b, struct msc_value *v,
                                   const char *layout) {
    bool is_same = false;
    if (v->weight != MSC_NO_ID) {
        MSC_TRY(share_weight(&is_same, b, v->weight, layout));
    }
    if (!is_same && v->constant != NULL) {
        if (strlen(layout) != (size_t)msc_array_n_dims(v->constant)) {
            layout = "";
        }
        v->weight = find_weight(b, v, layout);
        if (v->weight == MSC_NO_ID) {
            const char *name = weight_name(b, v);
            MSC_TRY(MSC_ALLOCATED(name));
            MSC_TRY(msc_graph_add_weight(&v->weight, b->graph, name, NULL, layout, v->constant));
        }
    }
    *out = v->weight;
    return MSC_OK;
}

enum msc_status msc_builder_tensor(int32_t *out, struct msc_builder *b, struct msc_value *v) {
    if (v->tensor == MSC_NO_ID) {
        const char *name = joint_name(b, v->joint_name, MSC_OP_CONSTANT);
        MSC_TRY(MSC_ALLOCATED(name));
        struct msc_weight_spec weight = {.role = "const"};
        MSC_TRY(make_weight(&weight.tensor, b, v, v->layout));
        struct msc_joint_spec spec = {
            .op = MSC_OP_CONSTANT,
            .name = name,
            .n_weights = 1,
            .weights = &weight,
            .aliases = &v->alias,
        };
        int32_t joint;
        MSC_TRY(msc_graph_add_joint(&joint, b->graph, &spec));
        v->tensor = b->graph->joints[joint]->outputs[0];
    }
    *out = v->tensor;
    return MSC_OK;
}

// The parts of a joint while it is assembled.
struct assembly {
    struct msc_builder *b;
    const struct msc_builder_joint *from;
    struct msc_attr *attrs;
    int32_t n_attrs;
    int32_t *inputs;
    int32_t n_inputs;
    struct msc_weight_spec *weights;
    int32_t n_weights;
};

static const char *find_attr(const struct assembly *a, const char *key) {
    for (int32_t i = 0; i < a->n_attrs; i++) {
        if (strcmp(a->attrs[i].key, key) == 0) {
            return a->attrs[i].value;
        }
    }
    return "";
}

static void set_attr(struct assembly *a, const char *key, const char *value) {
    int32_t i = 0;
    while (i < a->n_attrs && strcmp(a->attrs[i].key, key) != 0) {
        i++;
    }
    a->attrs[i] = (struct msc_attr){key, value};
    a->n_attrs += i == a->n_attrs;
}

// The length of the axis that the attribute `axis` names, or -1 if the length is not known yet.
static int64_t axis_length(const struct assembly *a) {
    const struct msc_value *x = a->from->operands[0];
    const struct msc_op_attr *row = msc_op_attr_find(a->from->op, "axis");
    const char *text = find_attr(a, "axis");
    int64_t axis;
    if (msc_attr_read_ints(&axis, 1, text[0] == '\0' ? row->value : text) != 1) {
        return -1;
    }
    const struct msc_tensor *t = x->constant != NULL || x->tensor == MSC_NO_ID
                                     ? NULL
                                     : &a->b->graph->tensors[x->tensor]->tensor;
    int n_dims = x->constant != NULL ? msc_array_n_dims(x->constant) : t == NULL ? 0 : t->n_dims;
    axis = axis < 0 ? axis + n_dims : axis;
    if (axis < 0 || axis >= n_dims) {
        return -1;
    }
    return x->constant != NULL ? msc_array_dim(x->constant, (int)axis) : t->dims[axis];
}

// Converts the sizes of the parts of an axis to the positions where the axis is cut.
static enum msc_status cut_points(const char **out, const struct assembly *a,
                                  const struct msc_array *sizes) {
    int n = (int)msc_array_n_elements(sizes);
    int64_t *cuts = msc_arena_array(&a->b->arena, (size_t)n + 1, sizeof(cuts[0]));
    int64_t total = 0, length = axis_length(a);
    for (int i = 0; cuts != NULL && i < n; i++) {
        int64_t size = msc_array_get_i64(sizes, i);
        if (size < 0) {
            return MSC_FAIL(MSC_E_INVALID,
                            "part %d of the axis has length %lld, expected 0 or more", i,
                            (long long)size);
        }
        if (__builtin_add_overflow(total, size, &total)) {
            return MSC_FAIL(MSC_E_INVALID, "the sizes of the parts add up to more than 2^63 - 1");
        }
        cuts[i] = total;
    }
    if (length >= 0 && total != length) {
        return MSC_FAIL(MSC_E_INVALID, "parts add up to %lld, but the axis has length %lld",
                        (long long)total, (long long)length);
    }
    *out = cuts == NULL ? NULL : msc_builder_ints(a->b, cuts, n > 0 ? n - 1 : 0);
    return MSC_OK;
}

static const char *ints_text(struct msc_builder *b, const struct msc_array *array) {
    int n = (int)msc_array_n_elements(array);
    int64_t *values = msc_arena_array(&b->arena, (size_t)n + 1, sizeof(values[0]));
    for (int i = 0; values != NULL && i < n; i++) {
        values[i] = msc_array_get_i64(array, i);
    }
    return values == NULL ? NULL : msc_builder_ints(b, values, n);
}

static const char *floats_text(struct msc_builder *b, const struct msc_array *array) {
    int n = (int)msc_array_n_elements(array);
    float *values = msc_arena_array(&b->arena, (size_t)n + 1, sizeof(values[0]));
    for (int i = 0; values != NULL && i < n; i++) {
        values[i] = (float)msc_array_get_double(array, i);
    }
    return values == NULL ? NULL : msc_builder_floats(b, values, n);
}

// Text of a bound; "" if the bound is infinite or absent.
static const char *float_text(struct msc_builder *b, const struct msc_array *array) {
    if (msc_array_n_elements(array) != 1) {
        return "";
    }
    float value = (float)msc_array_get_double(array, 0);
    return isinf(value) ? "" : msc_builder_float(b, value);
}

static const char *int_text(struct msc_builder *b, const struct msc_array *array) {
    bool is_one = msc_array_n_elements(array) == 1;
    return is_one ? msc_builder_int(b, msc_array_get_i64(array, 0)) : "";
}

static enum msc_status add_attribute(struct assembly *a, const struct msc_op_role *role,
                                     const struct msc_value *v) {
    struct msc_builder *b = a->b;
    enum msc_op op = a->from->op;
    const char *key = msc_arena_strndup(&b->arena, role->name, (size_t)role->length);
    MSC_TRY(MSC_ALLOCATED(key));
    if (v->constant == NULL || msc_array_n_elements(v->constant) > 4096) {
        return MSC_FAIL(MSC_E_INVALID, "parameter %s must be a constant with at most 4096 elements",
                        key);
    }
    const char *text = NULL;
    if (op == MSC_OP_SPLIT) {
        key = "indices_or_sections";
        MSC_TRY(cut_points(&text, a, v->constant));
    } else {
        const struct msc_op_attr *row = msc_op_attr_find(op, key);
        assert(row != NULL);
        bool is_single = row->type == MSC_ATTR_FLOAT || row->type == MSC_ATTR_INT;
        if (is_single && msc_array_n_elements(v->constant) > 1) {
            return MSC_FAIL(MSC_E_INVALID, "%s has %lld elements, expected one", key,
                            (long long)msc_array_n_elements(v->constant));
        }
        text = row->type == MSC_ATTR_FLOAT    ? float_text(b, v->constant)
               : row->type == MSC_ATTR_INT    ? int_text(b, v->constant)
               : row->type == MSC_ATTR_FLOATS ? floats_text(b, v->constant)
                                              : ints_text(b, v->constant);
    }
    MSC_TRY(MSC_ALLOCATED(text));
    set_attr(a, key, text);
    return MSC_OK;
}

static enum msc_status add_weight(struct assembly *a, const struct msc_op_role *role,
                                  struct msc_value *v) {
    const char *layout = v->layout[0] != '\0'
                             ? v->layout
                             : msc_graph__role_layout(a->from->op, a->attrs, a->n_attrs, role->name,
                                                      (size_t)role->length);
    struct msc_weight_spec *weight = &a->weights[a->n_weights++];
    weight->role = msc_arena_strndup(&a->b->arena, role->name, (size_t)role->length);
    MSC_TRY(MSC_ALLOCATED(weight->role));
    return make_weight(&weight->tensor, a->b, v, layout);
}

// True if the constant can become an attribute. Attributes hold floats: an integer or double that
// does not fit in a float remains an operand.
static bool fits_attribute(const struct assembly *a, const struct msc_op_role *role,
                           const struct msc_value *v) {
    char key[32];
    snprintf(key, sizeof(key), "%.*s", (int)role->length, role->name);
    const struct msc_op_attr *row = msc_op_attr_find(a->from->op, key);
    return row == NULL || row->type != MSC_ATTR_FLOAT || msc_array_n_elements(v->constant) != 1 ||
           msc_array_fits_float(v->constant, 0);
}

// Makes one operand a weight, an attribute or an input of the joint. For an absent operand, the
// input is MSC_NO_ID.
static enum msc_status builder_deal(struct assembly *a, const struct msc_op_role *role,
                                    struct msc_value *v) {
    bool is_input = strncmp(role->name, "input", (size_t)role->length) == 0;
    if (v != NULL && msc_value_is_constant(v) && !is_input && !role->is_attribute) {
        return add_weight(a, role, v);
    }
    int32_t tensor = MSC_NO_ID;
    if (v != NULL && v->constant != NULL && role->is_attribute && fits_attribute(a, role, v)) {
        MSC_TRY(add_attribute(a, role, v));
    } else if (v != NULL) {
        MSC_TRY(msc_builder_tensor(&tensor, a->b, v));
    }
    if (tensor != MSC_NO_ID || !msc_graph__is_given_as_attr(a->attrs, a->n_attrs, role)) {
        a->inputs[a->n_inputs++] = tensor;
    }
    return MSC_OK;
}

static enum msc_status builder_assemble(struct assembly *a) {
    const struct msc_builder_joint *from = a->from;
    size_t n = (size_t)from->n_operands;
    // Each operand may add one attribute; broadcasting may add two more.
    a->attrs = msc_arena_array(&a->b->arena, (size_t)from->n_attrs + n + 2, sizeof(a->attrs[0]));
    a->inputs = msc_arena_array(&a->b->arena, n, sizeof(a->inputs[0]));
    a->weights = msc_arena_array(&a->b->arena, n, sizeof(a->weights[0]));
    MSC_TRY(MSC_ALLOCATED(a->attrs && a->inputs && a->weights));
    for (int32_t i = 0; i < from->n_attrs; i++) {
        MSC_TRY(MSC_ALLOCATED(from->attrs[i].value));
        set_attr(a, from->attrs[i].key, from->attrs[i].value);
    }
    for (int32_t i = 0; i < from->n_operands; i++) {
        struct msc_op_role role;
        if (!msc_op_role(from->op, i, &role)) {
            return MSC_FAIL(MSC_E_INVALID, "%s takes %d operands, found %d",
                            msc_op_info(from->op)->name, (int)i, (int)from->n_operands);
        }
        MSC_TRY(builder_deal(a, &role, from->operands[i]));
    }
    MSC_TRY(msc_builder__broadcast(a->b, from->op, a->attrs, &a->n_attrs,
                                   from->n_operands > 0 ? from->operands[0] : NULL));
    while (a->n_inputs > 0 && a->inputs[a->n_inputs - 1] == MSC_NO_ID) {
        a->n_inputs--;
    }
    return MSC_OK;
}

// Records which operands already have a tensor. If the joint is folded, the `constant` joints made
// for the other operands are removed.
struct marks {
    int32_t hint;
    bool *had_tensor;
};

static enum msc_status set_marks(struct marks *m, struct msc_builder *b,
                                 const struct msc_builder_joint *joint) {
    m->hint = b->hints[MSC_OP_CONSTANT];
    m->had_tensor = msc_arena_array(&b->arena, (size_t)joint->n_operands, sizeof(bool));
    MSC_TRY(MSC_ALLOCATED(m->had_tensor));
    for (int32_t i = 0; i < joint->n_operands; i++) {
        const struct msc_value *v = joint->operands[i];
        m->had_tensor[i] = v == NULL || v->tensor != MSC_NO_ID;
    }
    return MSC_OK;
}

static enum msc_status remove_new_constants(struct msc_builder *b, const struct marks *m,
                                            const struct msc_builder_joint *joint) {
    for (int32_t i = 0; i < joint->n_operands; i++) {
        struct msc_value *v = joint->operands[i];
        if (!m->had_tensor[i] && v->tensor != MSC_NO_ID) {
            MSC_TRY(
                msc_graph_remove_joint(b->graph, b->graph->tensors[v->tensor]->tensor.producer));
            v->tensor = MSC_NO_ID;
        }
    }
    b->hints[MSC_OP_CONSTANT] = m->hint;
    return MSC_OK;
}

// Replaces a joint by constants: its outputs [n_outputs] become constants that hold `arrays`, and
// the joint is removed.
static enum msc_status builder_fold(struct msc_value *outputs[], struct msc_builder *b,
                                    int32_t joint, struct msc_array *arrays[]) {
    const struct msc_joint *j = &b->graph->joints[joint]->joint;
    for (int32_t i = 0; i < j->n_outputs; i++) {
        const char *alias = b->graph->tensors[j->outputs[i]]->tensor.alias;
        MSC_TRY(
            msc_builder_constant(&outputs[i], b, alias[0] == '\0' ? j->name : alias, arrays[i]));
        outputs[i]->alias = alias;
        outputs[i]->joint_name = i == 0 ? j->name : NULL;
    }
    return msc_graph_remove_joint(b->graph, joint);
}

static enum msc_status make_outputs(struct msc_value *outputs[], bool *is_folded,
                                    struct msc_builder *b, int32_t joint, bool stays) {
    const struct msc_joint *j = &b->graph->joints[joint]->joint;
    size_t n = (size_t)j->n_outputs;
    struct msc_array **arrays = msc_arena_array(&b->arena, n, sizeof(arrays[0]));
    MSC_TRY(MSC_ALLOCATED(arrays));
    *is_folded = false;
    if (!stays && b->evaluate) {
        MSC_TRY(b->evaluate(arrays, is_folded, b->graph, joint));
    }
    enum msc_status status = MSC_OK;
    if (*is_folded) {
        status = builder_fold(outputs, b, joint, arrays);
    }
    for (size_t i = 0; i < n; i++) {
        const char *alias = b->graph->tensors[j->outputs[i]]->tensor.alias;
        if (!*is_folded && status == MSC_OK) {
            status = msc_builder_activation(&outputs[i], b, alias, j->outputs[i]);
        }
        msc_array_release(arrays[i]);
    }
    return status;
}

// If the joint transposes a constant matrix, records the matrix. Consumers can then read the matrix
// in place of its transpose.
static void mark_turned(struct msc_value *output, const struct msc_builder_joint *joint,
                        const struct msc_joint *j) {
    int64_t axes[MSC_MAX_DIMS];
    if (joint->op == MSC_OP_PERMUTE_DIMS && msc_array_n_dims(output->constant) == 2 &&
        msc_joint_attr_list(j, "axes", axes, MSC_MAX_DIMS) == 2 && axes[0] == 1 && axes[1] == 0) {
        output->turned = joint->operands[0];
    }
}

enum msc_status msc_builder_add(struct msc_value *outputs[], struct msc_builder *b,
                                const struct msc_builder_joint *joint) {
    struct assembly a = {.b = b, .from = joint};
    struct marks marks;
    int32_t hint = b->hints[joint->op];
    MSC_TRY(set_marks(&marks, b, joint));
    MSC_TRY(builder_assemble(&a));
    struct msc_joint_spec spec = {
        .op = joint->op,
        .name = joint_name(b, joint->name, joint->op),
        .scope = joint->scope,
        .n_inputs = a.n_inputs,
        .inputs = a.inputs,
        .n_weights = a.n_weights,
        .weights = a.weights,
        .n_attrs = a.n_attrs,
        .attrs = a.attrs,
        .n_outputs = joint->n_outputs,
        .aliases = joint->aliases,
        .n_graphs = joint->n_graphs,
        .graphs = joint->graphs,
    };
    MSC_TRY(MSC_ALLOCATED(spec.name));
    int32_t id;
    bool is_folded;
    MSC_TRY(msc_graph_add_joint(&id, b->graph, &spec));
    MSC_TRY(make_outputs(outputs, &is_folded, b, id, joint->stays));
    if (is_folded) {
        mark_turned(outputs[0], joint, &b->graph->joints[id]->joint);
        b->hints[joint->op] = hint;
        MSC_TRY(remove_new_constants(b, &marks, joint));
    }
    return MSC_OK;
}

enum msc_status msc_builder_copy_joint(struct msc_builder_copy *out, struct msc_builder *b,
                                       const struct msc_joint *from) {
    size_t n_operands = (size_t)from->n_operands, n_outputs = (size_t)from->n_outputs;
    out->operands = msc_arena_array(&b->arena, n_operands, sizeof(out->operands[0]));
    out->aliases = msc_arena_array(&b->arena, n_outputs, sizeof(out->aliases[0]));
    out->outputs = msc_arena_array(&b->arena, n_outputs, sizeof(out->outputs[0]));
    MSC_TRY(MSC_ALLOCATED(out->operands && out->aliases && out->outputs));
    for (size_t i = 0; i < n_outputs; i++) {
        out->aliases[i] = "";
    }
    out->joint = (struct msc_builder_joint){
        .op = from->op,
        .name = from->name,
        .scope = from->scope,
        .n_operands = from->n_operands,
        .operands = out->operands,
        .n_attrs = from->n_attrs,
        .attrs = from->attrs,
        .n_outputs = from->n_outputs,
        .aliases = out->aliases,
        .n_graphs = from->n_graphs,
        .graphs = from->graphs,
    };
    return MSC_OK;
}
