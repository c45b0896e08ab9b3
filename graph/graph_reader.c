#include "graph/graph_reader.h"

#include "data/array_codes.h"

#include <string.h>

// ---- Prims ------------------------------------------------------------------------------------

static const struct prim_kind {
    const char *optype;
    int n_parents;
} prim_kinds[] = {
    {"shape", 0},    {"Int", 0},      {"Add", 2}, {"Sub", 2}, {"Mul", 2},
    {"FloorDiv", 2}, {"FloorMod", 2}, {"Max", 2}, {"Min", 2},
};

static enum msc_status check_prim(const struct msc_read_prim *p) {
    for (size_t i = 0; i < sizeof(prim_kinds) / sizeof(prim_kinds[0]); i++) {
        if (strcmp(prim_kinds[i].optype, p->optype) != 0) {
            continue;
        }
        if (prim_kinds[i].n_parents != p->n_parents) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: %s expects %d parents, found %d", p->where,
                            p->optype, prim_kinds[i].n_parents, p->n_parents);
        }
        return MSC_OK;
    }
    return MSC_FAIL(MSC_E_UNSUPPORTED, "%s: a prim has the unknown operator '%s'", p->where,
                    p->optype);
}

enum msc_status msc_graph__read_prim(struct msc_graph_reader *r, const struct msc_read_prim *p) {
    int32_t parents[3], prim;
    MSC_TRY(check_prim(p));
    for (int i = 0; i < p->n_parents; i++) {
        parents[i] = msc_graph_find_prim(r->g, p->parents[i]);
        if (parents[i] == MSC_NO_ID) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: cannot find parent '%s'", p->where, p->parents[i]);
        }
    }
    if (msc_graph_find_prim(r->g, p->name) != MSC_NO_ID) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: the prim '%s' occurs twice", p->where, p->name);
    }
    MSC_TRY(msc_graph__add_prim(&prim, r->g, p->name, p->optype, p->n_parents, parents, p->n_attrs,
                                p->attrs));
    if (strcmp(r->g->prims[prim]->name, p->name) != 0) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: the prim '%s' is the same expression as '%s'", p->where,
                        p->name, r->g->prims[prim]->name);
    }
    return MSC_OK;
}

// ---- Tensors ----------------------------------------------------------------------------------

enum msc_status msc_graph__read_dtype(struct msc_read_tensor *t, const char *dtype) {
    t->type.dtype = msc_dtype_find(dtype);
    return t->type.dtype != MSC_DTYPE_NONE
               ? MSC_OK
               : MSC_FAIL(MSC_E_FORMAT, "%s: '%s' has the unknown type '%s'", t->where, t->name,
                          dtype);
}

enum msc_status msc_graph__read_layout(struct msc_read_tensor *t, const char *layout) {
    if (strlen(layout) >= sizeof(t->type.layout)) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: layout '%s' of '%s' is too long", t->where, layout,
                        t->name);
    }
    memcpy(t->type.layout, layout, strlen(layout) + 1);
    return MSC_OK;
}

enum msc_status msc_graph__read_symbol(struct msc_read_tensor *t, const struct msc_graph_reader *r,
                                       int dim, const char *symbol) {
    int32_t prim = msc_graph_find_prim(r->g, symbol);
    if (prim == MSC_NO_ID) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: dimension %d of '%s' names the unknown prim '%s'",
                        t->where, dim, t->name, symbol);
    }
    t->type.dims[dim] = (struct msc_dim){-1, prim};
    return MSC_OK;
}

// True if both have the same type and shape; all symbolic dimensions are considered equal.
static bool is_same_type(const struct msc_infer_tensor *a, const struct msc_tensor *b) {
    bool is_same = a->dtype == b->dtype && a->n_dims == b->n_dims;
    for (int i = 0; is_same && i < a->n_dims; i++) {
        is_same = a->dims[i].value == b->dims[i];
    }
    return is_same;
}

enum msc_status msc_graph__check_read_type(const struct msc_graph_reader *r,
                                           const struct msc_read_tensor *t, int32_t id,
                                           const char *source) {
    const struct msc_tensor *found = &r->g->tensors[id]->tensor;
    if (!t->has_type || is_same_type(&t->type, found)) {
        return MSC_OK;
    }
    int64_t dims[MSC_MAX_DIMS];
    for (int i = 0; i < t->type.n_dims; i++) {
        dims[i] = t->type.dims[i].value;
    }
    char here[MSC_DIMS_TEXT_BYTES], there[MSC_DIMS_TEXT_BYTES];
    return MSC_FAIL(MSC_E_FORMAT, "%s: '%s' is %s%s, but %s%s according to its %s", t->where,
                    t->name, msc_dtype_name(t->type.dtype),
                    msc_dims_format(here, t->type.n_dims, dims), msc_dtype_name(found->dtype),
                    msc_dims_format(there, found->n_dims, found->dims), source);
}

static struct msc_tensor make_tensor(const struct msc_read_tensor *from) {
    struct msc_tensor t = {
        .name = from->name,
        .alias = from->alias,
        .layout = from->type.layout,
        .dtype = from->type.dtype,
        .n_dims = from->type.n_dims,
    };
    for (int i = 0; i < t.n_dims; i++) {
        t.dims[i] = from->type.dims[i].value;
        t.prims[i] = from->type.dims[i].prim;
    }
    return t;
}

// ---- Weights ----------------------------------------------------------------------------------

// Gives a weight the type of its elements, and the layout of its role.
static void take_type(struct msc_tensor *t, const struct msc_array *data, const char *role,
                      const struct msc_joint_spec *joint) {
    t->dtype = msc_array_dtype(data);
    t->n_dims = msc_array_n_dims(data);
    for (int i = 0; i < t->n_dims; i++) {
        t->dims[i] = msc_array_dims(data)[i];
        t->prims[i] = MSC_NO_ID;
    }
    const char *layout =
        msc_graph__role_layout(joint->op, joint->attrs, joint->n_attrs, role, strlen(role));
    t->layout = strlen(layout) == (size_t)t->n_dims ? layout : "";
}

static enum msc_status add_weight(int32_t *out, struct msc_graph_reader *r,
                                  const struct msc_read_tensor *read, const char *role,
                                  const struct msc_joint_spec *joint) {
    struct msc_tensor t = make_tensor(read);
    const struct msc_array *data = NULL;
    if (r->weights != NULL) {
        const char *stored = msc_arena_printf(&r->scratch, "%s%s", r->prefix, read->name);
        MSC_TRY(MSC_ALLOCATED(stored));
        MSC_TRY(msc_array_list_set_codes(r->weights, stored));
        data = msc_array_list_find(r->weights, stored);
        if (data == NULL) {
            return MSC_FAIL(MSC_E_NOT_FOUND, "%s: the weights file has no elements for weight '%s'",
                            read->where, read->name);
        }
    } else if (!read->has_type) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s: weight '%s' has neither a type nor elements; add a type, such as "
                        "<64,3,7,7|float32|OIHW>, or a .safetensors file of the same name",
                        read->where, read->name);
    }
    if (!read->has_type) {
        take_type(&t, data, role, joint);
    }
    MSC_TRY(msc_graph__add_empty_weight(out, r->g, &t));
    return data == NULL ? MSC_OK : msc_graph_set_weight_data(r->g, *out, data);
}

enum msc_status msc_graph__read_weight(int32_t *out, struct msc_graph_reader *r,
                                       const struct msc_read_tensor *t, const char *role,
                                       const struct msc_joint_spec *joint) {
    *out = msc_graph__live_tensor(r->g, t->name);
    if (*out == MSC_NO_ID) {
        return add_weight(out, r, t, role, joint);
    }
    if (r->g->tensors[*out]->tensor.producer != MSC_NO_ID) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: weight '%s' has the name of a joint's output", t->where,
                        t->name);
    }
    return msc_graph__check_read_type(r, t, *out, "first mention");
}

// ---- Joints -----------------------------------------------------------------------------------

enum msc_status msc_graph__read_op(enum msc_op *out, const struct msc_graph_reader *r,
                                   const char *name, const char *optype, const char *where) {
    if (!msc_op_find(out, optype)) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "%s: '%s' has the unknown operator '%s'", where, name,
                        optype);
    }
    if (name[0] == '\0' || msc_graph_find_joint(r->g, name) != MSC_NO_ID) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: the name '%s' is empty or occurs twice", where, name);
    }
    return MSC_OK;
}

enum msc_status msc_graph__read_input(int32_t *out, const struct msc_graph_reader *r,
                                      const char *name, const char *where) {
    *out = msc_graph__live_tensor(r->g, name);
    return *out != MSC_NO_ID || name[0] == '\0'
               ? MSC_OK
               : MSC_FAIL(MSC_E_FORMAT, "%s: input '%s' must come before the node that reads it",
                          where, name);
}

enum msc_status msc_graph__check_output_name(struct msc_graph_reader *r, const char *joint,
                                             int32_t i, const char *name, const char *where) {
    const char *expected = msc_arena_printf(&r->scratch, "%s:%d", joint, (int)i);
    MSC_TRY(MSC_ALLOCATED(expected));
    return strcmp(name, expected) == 0
               ? MSC_OK
               : MSC_FAIL(MSC_E_FORMAT, "%s: output %d is called '%s', expected '%s'", where,
                          (int)i, name, expected);
}

static enum msc_status add_input(int32_t *out, struct msc_graph_reader *r,
                                 const struct msc_read_joint *j) {
    if (j->spec.n_outputs != 1 || j->spec.n_inputs != 0 || j->spec.n_weights != 0) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: '%s' is an input, expected one output and no operands",
                        j->where, j->spec.name);
    }
    if (!j->outputs[0].has_type) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s: input '%s' needs a type in OUT:, such as %s:0<1,3,224,224|float32>",
                        j->where, j->spec.name, j->spec.name);
    }
    const struct msc_tensor t = make_tensor(&j->outputs[0]);
    int32_t tensor;
    MSC_TRY(msc_graph_add_symbolic_input(&tensor, r->g, j->spec.name, t.alias, t.dtype, t.layout,
                                         t.n_dims, t.dims, t.prims));
    *out = r->g->tensors[tensor]->tensor.producer;
    return MSC_OK;
}

// Checks that the inferred type and shape of an output agree with the file. The symbols and the
// layout, if the file has one, are then taken from the file, because passes may have changed them.
static enum msc_status check_output(struct msc_graph_reader *r, int32_t tensor,
                                    const struct msc_read_tensor *read) {
    struct msc_tensor *t = &r->g->tensors[tensor]->tensor;
    MSC_TRY(msc_graph__check_read_type(r, read, tensor, "inputs"));
    if (!read->has_type) {
        return MSC_OK;
    }
    const char *layout = msc_arena_strdup(&r->g->arena, read->type.layout);
    MSC_TRY(MSC_ALLOCATED(layout));
    if (layout[0] != '\0' && strlen(layout) != (size_t)t->n_dims) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: layout '%s' of '%s' does not name %d axes", read->where,
                        layout, read->name, t->n_dims);
    }
    t->layout = read->has_layout ? layout : t->layout;
    for (int i = 0; i < t->n_dims; i++) {
        t->prims[i] = read->type.dims[i].prim;
    }
    return MSC_OK;
}

// Without elements of weights, the types in the file are used, if all outputs have one.
static enum msc_status declare_outputs(struct msc_infer_tensor **out, struct msc_graph_reader *r,
                                       const struct msc_read_joint *j) {
    size_t n = (size_t)j->spec.n_outputs;
    bool is_declared = r->weights == NULL;
    for (size_t i = 0; i < n; i++) {
        is_declared = is_declared && j->outputs[i].has_type;
    }
    *out = NULL;
    if (!is_declared) {
        return MSC_OK;
    }
    *out = msc_arena_array(&r->scratch, n, sizeof((*out)[0]));
    MSC_TRY(MSC_ALLOCATED(*out));
    for (size_t i = 0; i < n; i++) {
        (*out)[i] = j->outputs[i].type;
    }
    return MSC_OK;
}

enum msc_status msc_graph__read_joint(int32_t *out, struct msc_graph_reader *r,
                                      const struct msc_read_joint *j) {
    struct msc_infer_tensor *declared;
    if (j->spec.op == MSC_OP_INPUT) {
        return add_input(out, r, j);
    }
    MSC_TRY(declare_outputs(&declared, r, j));
    MSC_TRY(msc_graph__add_joint(out, r->g, &j->spec, declared));
    for (int32_t i = 0; declared == NULL && i < j->spec.n_outputs; i++) {
        MSC_TRY(check_output(r, r->g->joints[*out]->outputs[i], &j->outputs[i]));
    }
    return MSC_OK;
}

// ---- Ends -------------------------------------------------------------------------------------

// Finds the tensors that a list of the graph names.
static enum msc_status find_tensors(int32_t **out, struct msc_graph_reader *r, const char *where,
                                    const char *list, const char *const names[], size_t n) {
    *out = msc_arena_array(&r->scratch, n, sizeof(**out));
    MSC_TRY(MSC_ALLOCATED(*out));
    for (size_t i = 0; i < n; i++) {
        (*out)[i] = msc_graph__live_tensor(r->g, names[i]);
        if ((*out)[i] == MSC_NO_ID) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: %s names the unknown tensor '%s'", where, list,
                            names[i]);
        }
    }
    return MSC_OK;
}

// The list must contain each input node once.
static enum msc_status order_inputs(struct msc_graph_reader *r, const char *where,
                                    const int32_t inputs[], size_t n) {
    bool fits = n == (size_t)r->g->n_inputs;
    for (size_t i = 0; fits && i < n; i++) {
        int32_t producer = r->g->tensors[inputs[i]]->tensor.producer;
        fits = producer != MSC_NO_ID && r->g->joints[producer]->joint.op == MSC_OP_INPUT;
        for (size_t k = 0; k < i; k++) {
            fits &= inputs[k] != inputs[i];
        }
    }
    if (!fits) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: inputs must list each of the %d input nodes once", where,
                        (int)r->g->n_inputs);
    }
    for (size_t i = 0; i < n; i++) {
        r->g->inputs[i] = inputs[i];
    }
    return MSC_OK;
}

enum msc_status msc_graph__read_ends(struct msc_graph_reader *r, const char *where,
                                     const char *const inputs[], size_t n_inputs,
                                     const char *const outputs[], size_t n_outputs) {
    int32_t *ids;
    MSC_TRY(find_tensors(&ids, r, where, "inputs", inputs, n_inputs));
    MSC_TRY(order_inputs(r, where, ids, n_inputs));
    MSC_TRY(find_tensors(&ids, r, where, "outputs", outputs, n_outputs));
    MSC_TRY(msc_graph__set_outputs(r->g, (int32_t)n_outputs, ids));
    return msc_graph_finalize(r->g);
}

enum msc_status msc_graph__check_opset(int64_t opset, const char *where) {
    return opset >= MSC_ONNX_OLDEST_OPSET && opset <= MSC_ONNX_NEWEST_OPSET
               ? MSC_OK
               : MSC_FAIL(MSC_E_FORMAT, "%s: \"opset\" is %lld, expected %d to %d", where,
                          (long long)opset, MSC_ONNX_OLDEST_OPSET, MSC_ONNX_NEWEST_OPSET);
}
