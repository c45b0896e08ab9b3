// Writes the bodies of external joints as functions of the model. A runtime that has the operator
// computes the node itself; any other computes the function.
//
// In a function, values have short names that depend on the joints only, so that joints with equal
// bodies share one function. Functions of the same operator with other bodies are overloads.
#include "graph/onnx/onnx_export_internal.h"

#include "base/str.h"

#include <string.h>

struct msc_onnx_function {
    const struct msc_graph *graph; // the body of the joint
    Onnx__NodeProto *call;
    Onnx__GraphProto *body;
    Onnx__FunctionProto *proto;
    size_t n_bytes; // of `bytes`: proto, packed without its overload
    uint8_t *bytes;
};

enum msc_status msc_onnx__add_function(struct msc_onnx_joint *j, Onnx__GraphProto *body) {
    struct msc_onnx_export *e = j->e;
    MSC_TRY(msc_grow(&e->functions, &e->functions_capacity, e->n_functions + 1,
                     sizeof(e->functions[0])));
    struct msc_onnx_function *f = msc_arena_alloc(&e->arena, sizeof(*f));
    MSC_TRY(MSC_ALLOCATED(f));
    *f = (struct msc_onnx_function){j->joint->graphs[0], j->node, body, NULL, 0, NULL};
    e->functions[e->n_functions++] = f;
    return MSC_OK;
}

Onnx__GraphProto *msc_onnx__function_body(const struct msc_onnx_export *e, size_t i) {
    return e->functions[i]->body;
}

// ---- Names ------------------------------------------------------------------------------------

// The new names of a function's values.
struct names {
    struct msc_arena *arena;
    struct msc_graph_names index; // of the names of the model
    struct msc_graph_names taken;
    const char **names;
    int32_t n;
};

static enum msc_status add_name(struct names *names, const char *from, const char *wanted) {
    const char *name = wanted;
    for (int k = 1; name != NULL && msc_graph__names_find(&names->taken, name) != MSC_NO_ID; k++) {
        name = msc_arena_printf(names->arena, "%s_%d", wanted, k);
    }
    MSC_TRY(MSC_ALLOCATED(name));
    MSC_TRY(msc_graph__names_put(&names->taken, name, 0));
    MSC_TRY(msc_graph__names_put(&names->index, from, names->n));
    names->names[names->n++] = name;
    return MSC_OK;
}

// Replaces a list of names by a list of new names.
static enum msc_status rename_all(const struct names *names, char ***list, size_t n) {
    char **renamed = msc_arena_array(names->arena, n + 1, sizeof(renamed[0]));
    MSC_TRY(MSC_ALLOCATED(renamed));
    for (size_t i = 0; i < n; i++) {
        const char *name = (*list)[i];
        int32_t index = name[0] == '\0' ? MSC_NO_ID : msc_graph__names_find(&names->index, name);
        if (index == MSC_NO_ID && name[0] != '\0') {
            return MSC_FAIL(MSC_E_INVALID, "a function reads '%s', which is not its operand", name);
        }
        renamed[i] = (char *)(index == MSC_NO_ID ? name : names->names[index]);
    }
    *list = renamed;
    return MSC_OK;
}

// ---- Functions --------------------------------------------------------------------------------

static bool is_read(const Onnx__GraphProto *body, const char *name) {
    for (size_t i = 0; i < body->n_node; i++) {
        for (size_t k = 0; k < body->node[i]->n_input; k++) {
            if (strcmp(body->node[i]->input[k], name) == 0) {
                return true;
            }
        }
    }
    return false;
}

// A function has no initialisers, so each becomes a node.
static enum msc_status add_constant(Onnx__NodeProto **out, struct msc_onnx_export *e,
                                    Onnx__TensorProto *tensor) {
    Onnx__NodeProto *node = msc_arena_alloc(&e->arena, sizeof(*node));
    char **output = msc_arena_array(&e->arena, 1, sizeof(output[0]));
    Onnx__AttributeProto *a = msc_arena_alloc(&e->arena, sizeof(*a));
    Onnx__AttributeProto **attrs = msc_arena_array(&e->arena, 1, sizeof(attrs[0]));
    MSC_TRY(MSC_ALLOCATED(node && output && a && attrs));
    onnx__node_proto__init(node);
    onnx__attribute_proto__init(a);
    output[0] = tensor->name;
    tensor->name = NULL;
    a->name = (char *)"value";
    a->has_type = true;
    a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
    a->t = tensor;
    attrs[0] = a;
    node->op_type = (char *)"Constant";
    node->n_output = 1;
    node->output = output;
    node->n_attribute = 1;
    node->attribute = attrs;
    *out = node;
    return MSC_OK;
}

static enum msc_status add_nodes(struct msc_onnx_function *f, struct msc_onnx_export *e) {
    Onnx__GraphProto *body = f->body;
    Onnx__FunctionProto *p = f->proto;
    p->node = msc_arena_array(&e->arena, body->n_initializer + body->n_node, sizeof(p->node[0]));
    MSC_TRY(MSC_ALLOCATED(p->node));
    for (size_t i = 0; i < body->n_initializer; i++) {
        if (is_read(body, body->initializer[i]->name)) {
            MSC_TRY(add_constant(&p->node[p->n_node++], e, body->initializer[i]));
        }
    }
    for (size_t i = 0; i < body->n_node; i++) {
        body->node[i]->name = NULL;
        p->node[p->n_node++] = body->node[i];
    }
    return MSC_OK;
}

static enum msc_status copy_names(char ***out, struct msc_onnx_export *e,
                                  Onnx__ValueInfoProto *const infos[], size_t n) {
    *out = msc_arena_array(&e->arena, n + 1, sizeof((*out)[0]));
    MSC_TRY(MSC_ALLOCATED(*out));
    for (size_t i = 0; i < n; i++) {
        (*out)[i] = infos[i]->name;
    }
    return MSC_OK;
}

// Operands keep the names that they have in the rule; values of joints are called after operators.
static enum msc_status name_values(struct names *names, Onnx__FunctionProto *p,
                                   const struct msc_graph *graph) {
    for (size_t i = 0; i < p->n_input; i++) {
        MSC_TRY(add_name(names, p->input[i],
                         msc_graph_tensor(graph, msc_graph_input(graph, (int32_t)i))->alias));
    }
    for (size_t i = 0; i < p->n_node; i++) {
        for (size_t k = 0; k < p->node[i]->n_output; k++) {
            const char *name = p->node[i]->output[k];
            MSC_TRY(name[0] == '\0' ? MSC_OK : add_name(names, name, p->node[i]->op_type));
        }
    }
    MSC_TRY(rename_all(names, &p->input, p->n_input));
    MSC_TRY(rename_all(names, &p->output, p->n_output));
    for (size_t i = 0; i < p->n_node; i++) {
        MSC_TRY(rename_all(names, &p->node[i]->input, p->node[i]->n_input));
        MSC_TRY(rename_all(names, &p->node[i]->output, p->node[i]->n_output));
    }
    return MSC_OK;
}

static enum msc_status rename_values(struct msc_onnx_function *f, struct msc_onnx_export *e) {
    struct names names = {.arena = &e->arena};
    size_t n = f->proto->n_input;
    for (size_t i = 0; i < f->proto->n_node; i++) {
        n += f->proto->node[i]->n_output;
    }
    names.names = msc_arena_array(&e->arena, n + 1, sizeof(names.names[0]));
    enum msc_status status = MSC_ALLOCATED(names.names);
    status = status == MSC_OK ? name_values(&names, f->proto, f->graph) : status;
    msc_graph__names_finish(&names.index);
    msc_graph__names_finish(&names.taken);
    return status;
}

static enum msc_status make_function(struct msc_onnx_function *f, struct msc_onnx_export *e,
                                     Onnx__OperatorSetIdProto **opset) {
    Onnx__FunctionProto *p = f->proto = msc_arena_alloc(&e->arena, sizeof(*p));
    MSC_TRY(MSC_ALLOCATED(p));
    onnx__function_proto__init(p);
    p->name = f->call->op_type;
    p->domain = f->call->domain;
    p->n_opset_import = 1;
    p->opset_import = opset;
    p->n_input = f->body->n_input;
    p->n_output = f->body->n_output;
    MSC_TRY(copy_names(&p->input, e, f->body->input, p->n_input));
    MSC_TRY(copy_names(&p->output, e, f->body->output, p->n_output));
    MSC_TRY(add_nodes(f, e));
    MSC_TRY(rename_values(f, e));
    f->n_bytes = onnx__function_proto__get_packed_size(p);
    f->bytes = msc_arena_alloc(&e->arena, f->n_bytes);
    MSC_TRY(MSC_ALLOCATED(f->bytes));
    onnx__function_proto__pack(p, f->bytes);
    return MSC_OK;
}

// Gives a call the overload of an equal function before it, or a new one. *is_new tells which.
static enum msc_status give_overload(bool *is_new, struct msc_onnx_export *e, size_t i) {
    struct msc_onnx_function *f = e->functions[i];
    int n_overloads = 0;
    *is_new = true;
    for (size_t k = 0; k < i; k++) {
        const struct msc_onnx_function *other = e->functions[k];
        if (other->n_bytes == f->n_bytes && memcmp(other->bytes, f->bytes, f->n_bytes) == 0) {
            *is_new = false;
            f->call->overload = other->call->overload;
            return MSC_OK;
        }
        bool is_overload = other->proto != NULL &&
                           strcmp(other->call->op_type, f->call->op_type) == 0 &&
                           strcmp(other->call->domain, f->call->domain) == 0;
        n_overloads += is_overload;
    }
    if (n_overloads > 0) {
        f->call->overload = msc_arena_printf(&e->arena, "%d", n_overloads);
        f->proto->overload = f->call->overload;
        return MSC_ALLOCATED(f->call->overload);
    }
    return MSC_OK;
}

enum msc_status msc_onnx__put_functions(Onnx__ModelProto *model, struct msc_onnx_export *e,
                                        Onnx__OperatorSetIdProto **opset) {
    model->functions = msc_arena_array(&e->arena, e->n_functions + 1, sizeof(model->functions[0]));
    MSC_TRY(MSC_ALLOCATED(model->functions));
    for (size_t i = 0; i < e->n_functions; i++) {
        struct msc_onnx_function *f = e->functions[i];
        bool is_new;
        int64_t least = 8; // the first version with functions
        MSC_TRY(make_function(f, e, opset));
        MSC_TRY(give_overload(&is_new, e, i));
        least = f->call->overload != NULL && f->call->overload[0] != '\0' ? 10 : least;
        model->ir_version = model->ir_version < least ? least : model->ir_version;
        if (is_new) {
            model->functions[model->n_functions++] = f->proto;
        } else {
            f->proto = NULL; // the call has the overload of an equal function
        }
    }
    return MSC_OK;
}
