// Imports calls of the model's own functions: the body of the function is imported in place of the
// node. Names of joints and tensors in the body get the name of the call as a prefix.
//
// A body sees only the function's inputs and its own values. An attribute may take the value of an
// attribute of the call (`ref_attr_name`), or else the function's default.
#include "graph/onnx/onnx_import_internal.h"

#include <string.h>

// Limits against functions that call each other without end, or that double in size at each call.
enum { MOST_DEPTH = 32, MOST_NODES = 1000000 };

static bool is_same(const char *a, const char *b) {
    return strcmp(a == NULL ? "" : a, b == NULL ? "" : b) == 0;
}

const Onnx__FunctionProto *msc_onnx__find_function(const struct msc_onnx_import *im,
                                                   const Onnx__NodeProto *node) {
    for (size_t i = 0; i < im->model->n_functions; i++) {
        const Onnx__FunctionProto *f = im->model->functions[i];
        if (is_same(f->name, node->op_type) && is_same(f->domain, node->domain) &&
            is_same(f->overload, node->overload)) {
            return f;
        }
    }
    return NULL;
}

// The opset of the function's body; if the function does not import one, the model's opset.
static enum msc_status read_opset(int64_t *out, const Onnx__FunctionProto *f, int64_t otherwise) {
    *out = otherwise;
    for (size_t i = 0; i < f->n_opset_import; i++) {
        const char *domain = f->opset_import[i]->domain;
        if (is_same(domain, "") || is_same(domain, "ai.onnx")) {
            *out = f->opset_import[i]->version;
        }
    }
    return msc_onnx__check_opset(*out);
}

// Defines the function's inputs in its own scope. Inputs that the call leaves out are absent.
static enum msc_status define_inputs(struct msc_onnx_import *im, const struct msc_onnx_call *call,
                                     struct msc_value *const inputs[], size_t n) {
    const Onnx__FunctionProto *f = call->function;
    for (size_t i = 0; i < f->n_input; i++) {
        struct msc_onnx_value value = {.value = i < n ? inputs[i] : NULL};
        value.is_absent = value.value == NULL;
        MSC_TRY(msc_onnx__define(im, f->input[i], value));
    }
    return MSC_OK;
}

static enum msc_status read_inputs(struct msc_value **inputs, struct msc_onnx_import *im,
                                   const Onnx__NodeProto *node) {
    for (size_t i = 0; i < node->n_input; i++) {
        if (node->input[i][0] != '\0') {
            MSC_TRY(msc_onnx__lookup(&inputs[i], im, node->input[i]));
        }
    }
    return MSC_OK;
}

// Imports the body in a scope of its own; outputs[n_output of the function] are its results.
static enum msc_status import_body(struct msc_value *outputs[], struct msc_onnx_import *im,
                                   const struct msc_onnx_call *call,
                                   struct msc_value *const inputs[]) {
    const Onnx__FunctionProto *f = call->function;
    Onnx__GraphProto body = ONNX__GRAPH_PROTO__INIT;
    body.n_node = f->n_node;
    body.node = f->node;
    body.n_value_info = f->n_value_info;
    body.value_info = f->value_info;
    im->proto = &body;
    MSC_TRY(define_inputs(im, call, inputs, call->node->n_input));
    MSC_TRY(msc_onnx__reserve_names(im));
    MSC_TRY(msc_onnx__add_nodes(im));
    for (size_t i = 0; i < f->n_output && i < call->node->n_output; i++) {
        MSC_TRY(msc_onnx__lookup(&outputs[i], im, f->output[i]));
    }
    return MSC_OK;
}

static bool is_input(const struct msc_value *v, struct msc_value *const inputs[], size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (inputs[i] == v) {
            return true;
        }
    }
    return false;
}

// Defines the results under the names of the call's outputs.
static enum msc_status define_outputs(struct msc_onnx_import *im, const Onnx__NodeProto *node,
                                      struct msc_value *const outputs[],
                                      struct msc_value *const inputs[]) {
    for (size_t i = 0; i < node->n_output; i++) {
        struct msc_value *v = outputs[i];
        struct msc_onnx_value value = {.value = v, .is_absent = v == NULL};
        MSC_TRY(msc_onnx__define(im, node->output[i], value));
        if (v != NULL && node->output[i][0] != '\0' && !msc_value_is_constant(v) &&
            !is_input(v, inputs, node->n_input)) {
            v->alias = msc_onnx__alias(im, node->output[i]);
            MSC_TRY(MSC_ALLOCATED(v->alias));
            MSC_TRY(msc_graph_set_alias(im->builder.graph, v->tensor, v->alias));
        }
    }
    return MSC_OK;
}

// "NAME/", with the name of the call or, if it has none, of the function and a number.
static const char *make_prefix(struct msc_onnx_import *im, const Onnx__NodeProto *node) {
    struct msc_arena *arena = &im->builder.arena;
    const char *around = im->prefix == NULL ? "" : im->prefix;
    const char *name = msc_onnx__full_name(im, node);
    if (name != NULL && name[0] != '\0') {
        return msc_arena_printf(arena, "%s/", name);
    }
    return msc_arena_printf(arena, "%s%s_%zu/", around, node->op_type, im->n_inlined);
}

enum msc_status msc_onnx__call(struct msc_onnx_import *im, const Onnx__NodeProto *node,
                               const Onnx__FunctionProto *function) {
    struct msc_onnx_call call = {.node = node, .function = function, .outer = im->call};
    struct msc_arena *arena = &im->builder.arena;
    call.depth = im->call == NULL ? 1 : im->call->depth + 1;
    if (call.depth > MOST_DEPTH || im->n_inlined + function->n_node > MOST_NODES) {
        return MSC_ONNX_UNSUPPORTED("functions call each other more than %d levels deep, or have "
                                    "more than %d nodes in all",
                                    MOST_DEPTH, MOST_NODES);
    }
    struct msc_value **inputs = msc_arena_array(arena, node->n_input + 1, sizeof inputs[0]);
    struct msc_value **outputs = msc_arena_array(arena, node->n_output + 1, sizeof outputs[0]);
    const char *prefix = make_prefix(im, node);
    MSC_TRY(MSC_ALLOCATED(inputs && outputs && prefix));
    if (node->n_input > function->n_input) {
        return MSC_FAIL(MSC_E_FORMAT, "found %zu inputs, but the function has %zu", node->n_input,
                        function->n_input);
    }
    MSC_TRY(read_inputs(inputs, im, node));
    im->n_inlined += function->n_node;
    struct msc_onnx_import around = *im;
    MSC_TRY(read_opset(&im->opset, function, around.opset));
    im->value_names = (struct msc_graph_names){0};
    im->values = NULL;
    im->n_values = im->values_capacity = 0;
    im->parent = NULL;
    im->call = &call;
    im->prefix = prefix;
    enum msc_status status = import_body(outputs, im, &call, inputs);
    msc_graph__names_finish(&im->value_names);
    msc_free(im->values);
    im->value_names = around.value_names;
    im->values = around.values;
    im->n_values = around.n_values;
    im->values_capacity = around.values_capacity;
    im->parent = around.parent;
    im->call = around.call;
    im->prefix = around.prefix;
    im->opset = around.opset;
    im->proto = around.proto;
    im->modules = around.modules;
    im->node = around.node;
    return status == MSC_OK ? define_outputs(im, node, outputs, inputs) : status;
}
