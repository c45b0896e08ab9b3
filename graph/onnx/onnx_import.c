// Imports ONNX as MSCGraph: initialisers and inputs, then sorted nodes, then
// outputs, then the passes that simplify the graph.
#include "graph/onnx/onnx_import_internal.h"

#include "base/file.h"
#include "data/array.h"
#include "graph/narrow_float.h"
#include "graph/onnx/new_weights.h"
#include "graph/operators_internal.h"
#include "graph/passes/constant_internal.h"

#include <stdio.h>
#include <string.h>

// Reads the elements of an initialiser, or takes the elements that replace it.
static enum msc_status read_initializer(struct msc_array **out, const struct msc_onnx_import *im,
                                        const Onnx__TensorProto *source) {
    const struct msc_array_list *weights = im->options->weights;
    const struct msc_array *new = weights ? msc_array_list_find(weights, source->name) : NULL;
    struct msc_array *old;
    MSC_TRY(msc_onnx_array(&old, source, im->folder));
    if (!new) {
        *out = old;
        return MSC_OK;
    }
    const struct msc_onnx_import *root = im;
    while (root->parent) {
        root = root->parent;
    }
    // Weights of a pruned network have their own lengths, which shape inference checks.
    const struct msc_array *like = root->is_pruned && msc_onnx__is_part(new, source) ? new : old;
    enum msc_status status = msc_new_weights__fit(out, source->name, new, msc_array_dtype(old),
                                                  msc_array_n_dims(like), msc_array_dims(like));
    msc_array_release(old);
    return status;
}

enum msc_status msc_onnx__lookup(struct msc_value **out, struct msc_onnx_import *im,
                                 const char *name) {
    struct msc_onnx_value *v = msc_onnx__find_value(im, name);
    if (v == NULL && im->parent != NULL) {
        return msc_onnx__capture(out, im, name);
    }
    if (v == NULL) {
        return MSC_FAIL(MSC_E_FORMAT, "value '%s' is not produced by any earlier node", name);
    }
    if (v->unavailable != NULL) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "value '%s' is an extra output of %s that is not supported", name,
                        v->unavailable->op_type);
    }
    if (v->value == NULL && !v->is_absent) {
        struct msc_array *array;
        MSC_TRY(read_initializer(&array, im, v->source));
        enum msc_status status = msc_builder_constant(&v->value, &im->builder, name, array);
        msc_array_release(array);
        MSC_TRY(status);
        msc_onnx_storage(v->source->data_type, &v->value->format);
    }
    *out = v->value;
    return MSC_OK;
}

enum msc_status msc_onnx__check_opset(int64_t opset) {
    if (opset < MSC_ONNX_OLDEST_OPSET || opset > MSC_ONNX_NEWEST_OPSET) {
        return MSC_FAIL(
            MSC_E_UNSUPPORTED,
            "opset %lld, expected %d to %d; export the model with one of these (opset_version), "
            "or convert it with onnx.version_converter",
            (long long)opset, MSC_ONNX_OLDEST_OPSET, MSC_ONNX_NEWEST_OPSET);
    }
    return MSC_OK;
}

static enum msc_status read_opset(struct msc_onnx_import *im) {
    const Onnx__ModelProto *m = im->model;
    // A model that imports only other domains has none of ONNX's own operators, so any opset fits.
    im->opset = m->n_opset_import > 0 ? MSC_ONNX_NEWEST_OPSET : 0;
    for (size_t i = 0; i < m->n_opset_import; i++) {
        const char *domain = m->opset_import[i]->domain;
        if (domain == NULL || domain[0] == '\0' || strcmp(domain, "ai.onnx") == 0) {
            im->opset = m->opset_import[i]->version;
        }
    }
    return msc_onnx__check_opset(im->opset);
}

static enum msc_status count_name(struct msc_onnx_import *im, const char *name) {
    if (name == NULL || name[0] == '\0') {
        return MSC_OK;
    }
    int32_t n = msc_graph__names_find(&im->node_names, name);
    return msc_graph__names_put(&im->node_names, name, n == MSC_NO_ID ? 1 : n + 1);
}

enum msc_status msc_onnx__add_initializers(struct msc_onnx_import *im) {
    const Onnx__GraphProto *g = im->proto;
    for (size_t i = 0; i < g->n_initializer; i++) {
        const Onnx__TensorProto *t = g->initializer[i];
        if (t->name == NULL || t->name[0] == '\0') {
            return MSC_FAIL(MSC_E_FORMAT, "initialiser %zu has no name", i);
        }
        struct msc_onnx_value value = {.source = t};
        MSC_TRY(msc_onnx__define(im, t->name, value));
    }
    return MSC_OK;
}

// The value that the options bind a symbol to, or -1.
static int64_t bound_value(const struct msc_onnx_import *im, const char *symbol) {
    for (size_t i = 0; i < im->options->n_bindings; i++) {
        if (strcmp(im->options->bindings[i].symbol, symbol) == 0) {
            return im->options->bindings[i].value;
        }
    }
    return -1;
}

static const struct msc_array *find_feed(const struct msc_onnx_import *im, const char *input) {
    const struct msc_array_list *feeds = im->options->feeds;
    return feeds == NULL ? NULL : msc_array_list_find(feeds, input);
}

// The name of a dimension, or NULL. Some exporters write "?" for unnamed lengths.
static const char *name_of(const Onnx__TensorShapeProto__Dimension *d) {
    bool is_named = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM &&
                    d->dim_param != NULL && d->dim_param[0] != '\0' &&
                    strcmp(d->dim_param, "?") != 0;
    return is_named ? d->dim_param : NULL;
}

static const Onnx__TensorShapeProto *shape_of(const Onnx__ValueInfoProto *input) {
    const Onnx__TypeProto *type = input->type;
    bool is_tensor = type != NULL && input->name != NULL &&
                     type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    return is_tensor ? type->tensor_type->shape : NULL;
}

int64_t msc_onnx__length_of(const struct msc_onnx_import *im, const char *symbol) {
    int64_t length = bound_value(im, symbol);
    while (im->parent != NULL) {
        im = im->parent;
    }
    const Onnx__GraphProto *g = im->model->graph;
    for (size_t i = 0; i < g->n_input && length < 0; i++) {
        const struct msc_array *feed = find_feed(im, g->input[i]->name);
        const Onnx__TensorShapeProto *shape = shape_of(g->input[i]);
        for (size_t d = 0; feed != NULL && shape != NULL && d < shape->n_dim; d++) {
            const char *name = name_of(shape->dim[d]);
            if (name != NULL && strcmp(name, symbol) == 0 && (int)d < msc_array_n_dims(feed)) {
                length = msc_array_dim(feed, (int)d);
            }
        }
    }
    return length;
}

// A dimension that has neither a number nor a name gets a name made of the input and the axis.
static enum msc_status read_dim(int64_t *out, int32_t *prim, struct msc_onnx_import *im,
                                const Onnx__TensorShapeProto__Dimension *d, const char *input,
                                int axis, bool is_list) {
    *prim = MSC_NO_ID;
    bool is_number = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
    // Some exporters write 0 for an unknown length. For a list, such as axes, 0 means an empty
    // list.
    if (is_number && (d->dim_value > 0 || (d->dim_value == 0 && is_list))) {
        *out = d->dim_value;
        return MSC_OK;
    }
    const char *given = name_of(d);
    const char *name =
        given != NULL ? given : msc_arena_printf(&im->builder.arena, "%s.%d", input, axis);
    MSC_TRY(MSC_ALLOCATED(name));
    const struct msc_array *feed = find_feed(im, input);
    bool is_fed = feed != NULL && axis < msc_array_n_dims(feed);
    *out = is_fed ? msc_array_dim(feed, axis) : bound_value(im, name);
    if (*out >= 0) {
        return MSC_OK;
    }
    *out = -1;
    return msc_graph_add_symbol(prim, im->builder.graph, name);
}

// True for one integer or bool, such as a sampling rate. Such an input can be bound like a symbol.
static bool is_whole_number(enum msc_dtype dtype, int n_dims, const int64_t dims[]) {
    bool is_one = n_dims == 0 || (n_dims == 1 && dims[0] == 1);
    return is_one && (msc_dtype_is_integer(dtype) || dtype == MSC_DTYPE_BOOL);
}

static bool is_whole_list(enum msc_dtype dtype, int n_dims) {
    return n_dims <= 1 && (msc_dtype_is_integer(dtype) || dtype == MSC_DTYPE_BOOL);
}

// Makes the bound number a constant for all consumers. The input remains in the graph without
// consumers.
static enum msc_status make_bound_input(struct msc_value **out, struct msc_onnx_import *im,
                                        const char *name, enum msc_dtype dtype, int n_dims,
                                        int64_t number) {
    static const int64_t one = 1;
    struct msc_array *wide, *array;
    MSC_TRY(msc_array_create_from(&wide, MSC_DTYPE_I64, n_dims, &one, &number));
    enum msc_status status = msc_array_convert(&array, wide, dtype);
    msc_array_release(wide);
    MSC_TRY(status);
    status = msc_builder_constant(out, &im->builder, name, array);
    msc_array_release(array);
    return status;
}

static enum msc_status add_input(struct msc_onnx_import *im, const Onnx__ValueInfoProto *info) {
    const char *name = info->name == NULL ? "" : info->name;
    const Onnx__TypeProto *type = info->type;
    if (type == NULL || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ||
        type->tensor_type->shape == NULL) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "input '%s' is not a tensor with a known number of "
                        "dimensions",
                        name);
    }
    const Onnx__TypeProto__Tensor *t = type->tensor_type;
    const char *format;
    enum msc_dtype dtype = msc_onnx_storage(t->elem_type, &format);
    if (dtype == MSC_DTYPE_NONE) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "input '%s' has the unsupported type %s", name,
                        msc_onnx_type_name(t->elem_type));
    }
    if (t->shape->n_dim > MSC_MAX_DIMS) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "input '%s' has %zu dimensions, expected at most %d",
                        name, t->shape->n_dim, MSC_MAX_DIMS);
    }
    int64_t dims[MSC_MAX_DIMS] = {0};
    int32_t prims[MSC_MAX_DIMS] = {0};
    int n_dims = (int)t->shape->n_dim;
    for (int i = 0; i < n_dims; i++) {
        MSC_TRY(read_dim(&dims[i], &prims[i], im, t->shape->dim[i], name, i,
                         n_dims == 1 && msc_dtype_is_integer(dtype)));
    }
    int32_t tensor;
    struct msc_onnx_value value = {0};
    MSC_TRY(msc_graph_add_symbolic_input(&tensor, im->builder.graph, name, name, dtype, "", n_dims,
                                         dims, prims));
    int64_t number = bound_value(im, name);
    const struct msc_array *feed = find_feed(im, name);
    if (feed != NULL && msc_array_dtype(feed) == dtype && msc_array_n_dims(feed) == n_dims &&
        is_whole_list(dtype, n_dims)) {
        MSC_TRY(msc_builder_constant(&value.value, &im->builder, name, feed));
    } else if (number >= 0 && is_whole_number(dtype, n_dims, dims)) {
        MSC_TRY(make_bound_input(&value.value, im, name, dtype, n_dims, number));
    } else {
        MSC_TRY(msc_builder_activation(&value.value, &im->builder, name, tensor));
    }
    value.value->format = format;
    return msc_onnx__define(im, name, value);
}

// Reserves each node name that no other node or input has.
enum msc_status msc_onnx__reserve_names(struct msc_onnx_import *im) {
    const Onnx__GraphProto *g = im->proto;
    MSC_TRY(msc_onnx__find_modules(im));
    for (size_t i = 0; i < g->n_node; i++) {
        im->node = i;
        MSC_TRY(count_name(im, msc_onnx__full_name(im, g->node[i])));
    }
    for (size_t i = 0; i < g->n_node; i++) {
        im->node = i;
        const char *name = msc_onnx__full_name(im, g->node[i]);
        if (name != NULL && msc_graph__names_find(&im->node_names, name) == 1) {
            MSC_TRY(msc_builder_reserve(&im->builder, name));
        }
    }
    return MSC_OK;
}

static enum msc_status add_inputs(struct msc_onnx_import *im) {
    const Onnx__GraphProto *g = im->proto;
    for (size_t i = 0; i < g->n_input; i++) {
        if (!msc_onnx__is_initializer(im, g->input[i]->name)) {
            MSC_TRY(count_name(im, g->input[i]->name));
            MSC_TRY(add_input(im, g->input[i]));
        }
    }
    return msc_onnx__reserve_names(im);
}

// Reads inputs by name; drops trailing absent ones and checks that required ones exist.
static enum msc_status read_node_inputs(struct msc_onnx_node *n) {
    struct msc_onnx_import *im = n->import;
    const Onnx__NodeProto *p = n->proto;
    size_t count = p->n_input;
    n->inputs = msc_arena_array(&im->builder.arena, count + 1, sizeof(n->inputs[0]));
    MSC_TRY(MSC_ALLOCATED(n->inputs));
    for (size_t i = 0; i < count; i++) {
        if (p->input[i][0] != '\0') {
            MSC_TRY(msc_onnx__lookup(&n->inputs[i], im, p->input[i]));
        }
    }
    while (count > 0 && n->inputs[count - 1] == NULL) {
        count--;
    }
    bool is_variadic = n->rule.max_inputs < 0;
    if ((int64_t)count < n->rule.min_inputs ||
        (!is_variadic && count > (size_t)n->rule.max_inputs)) {
        return MSC_FAIL(MSC_E_FORMAT, "found %zu inputs, expected %d to %d", count,
                        n->rule.min_inputs, n->rule.max_inputs);
    }
    n->n_inputs = (int)count;
    for (size_t i = 0; i < count; i++) {
        bool is_required = is_variadic ? n->rule.op < MSC_OP_IF : (int64_t)i < n->rule.min_inputs;
        if (n->inputs[i] == NULL && is_required) {
            return MSC_FAIL(MSC_E_FORMAT, "the required input %zu is missing", i);
        }
    }
    return MSC_OK;
}

// Refuses nodes that cannot read their inputs as the graph stores them. Floats of 8 bits or fewer
// are stored as encoded bytes, which only QuantizeLinear and DequantizeLinear convert. Integers of
// 4 and 2 bits are stored as bytes with the same value, so BitCast would read other bits.
static enum msc_status check_formats(const struct msc_onnx_node *n) {
    bool converts = n->rule.op == MSC_OP_QUANTIZE || n->rule.op == MSC_OP_DEQUANTIZE;
    for (int i = 0; !converts && i < n->n_inputs; i++) {
        const char *format = n->inputs[i] == NULL ? "" : n->inputs[i]->format;
        bool has_bits = n->rule.op == MSC_OP_BIT_CAST && format[0] != '\0';
        if (has_bits || msc_narrow_float_find(format) != NULL) {
            return MSC_ONNX_UNSUPPORTED(
                "input %d is %s, which only QuantizeLinear and DequantizeLinear may read", i,
                format);
        }
    }
    return MSC_OK;
}

static enum msc_status onnx_import_add_node(struct msc_onnx_import *im, const Onnx__NodeProto *p) {
    struct msc_onnx_node n = {.import = im, .proto = p, .opset = im->opset};
    const Onnx__FunctionProto *function = msc_onnx__find_function(im, p);
    if (function != NULL) {
        return msc_onnx__call(im, p, function);
    }
    enum msc_status found = msc_onnx__find_rule(&n.rule, p->domain, p->op_type);
    if (found == MSC_E_UNSUPPORTED && msc_onnx__is_external(im, p)) {
        n.rule = (struct msc_onnx_rule){"", msc_onnx__external, MSC_OP_EXTERNAL, 0, -1};
    } else {
        MSC_TRY(found);
    }
    if (p->n_output < 1) {
        return MSC_FAIL(MSC_E_FORMAT, "the node has no outputs");
    }
    MSC_TRY(read_node_inputs(&n));
    MSC_TRY(check_formats(&n));
    return n.rule.translate(&n);
}

enum msc_status msc_onnx__add_nodes(struct msc_onnx_import *im) {
    const Onnx__GraphProto *g = im->proto;
    for (size_t i = 0; i < g->n_node; i++) {
        const Onnx__NodeProto *p = g->node[i];
        im->node = i;
        enum msc_status status = onnx_import_add_node(im, p);
        const char *type = p->op_type == NULL ? "" : p->op_type;
        if (status != MSC_OK && p->name != NULL && p->name[0] != '\0') {
            return msc_status_prefix(status, "node '%s' (%s)", p->name, type);
        }
        if (status != MSC_OK) {
            return msc_status_prefix(status, "node %zu (%s)", i, type);
        }
    }
    return MSC_OK;
}

// True if the joint's output already is another output of the graph, or already has another
// output's name.
static bool is_other_output(const struct msc_onnx_import *im, const int32_t outputs[], size_t n,
                            int32_t tensor) {
    const char *alias = im->builder.graph->tensors[tensor]->tensor.alias;
    bool is_other = false;
    for (size_t i = 0; i < n; i++) {
        is_other = is_other || outputs[i] == tensor;
    }
    for (size_t i = 0; i < im->proto->n_output; i++) {
        const char *name = im->proto->output[i]->name;
        is_other = is_other || (name != NULL && strcmp(name, alias) == 0);
    }
    return is_other;
}

// Adds an identity joint for an output that is an input or constant, so that a joint produces every
// output. Also adds one for a value that already has another output's name (from an inlined branch,
// for example). `outputs` holds the n outputs made so far.
static enum msc_status make_output(int32_t outputs[], size_t n, struct msc_onnx_import *im,
                                   const char *name) {
    struct msc_builder *b = &im->builder;
    struct msc_value *v;
    MSC_TRY(msc_onnx__lookup(&v, im, name));
    bool is_made =
        !msc_value_is_constant(v) &&
        b->graph->joints[b->graph->tensors[v->tensor]->tensor.producer]->joint.op != MSC_OP_INPUT;
    if (is_made && strcmp(b->graph->tensors[v->tensor]->tensor.alias, name) == 0) {
        outputs[n] = v->tensor;
        return MSC_OK;
    }
    if (is_made && !is_other_output(im, outputs, n, v->tensor)) {
        outputs[n] = v->tensor;
        return msc_graph_set_alias(b->graph, v->tensor, name);
    }
    int32_t source, joint;
    MSC_TRY(msc_builder_tensor(&source, b, v));
    struct msc_joint_spec spec = {
        .op = MSC_OP_IDENTITY, .n_inputs = 1, .inputs = &source, .aliases = &name};
    MSC_TRY(msc_graph_add_joint(&joint, b->graph, &spec));
    outputs[n] = b->graph->joints[joint]->outputs[0];
    return MSC_OK;
}

enum msc_status msc_onnx__set_outputs(struct msc_onnx_import *im) {
    const Onnx__GraphProto *g = im->proto;
    if (g->n_output == 0) {
        return MSC_FAIL(MSC_E_FORMAT, "the graph has no outputs");
    }
    int32_t *outputs = msc_arena_array(&im->builder.arena, g->n_output, sizeof(outputs[0]));
    MSC_TRY(MSC_ALLOCATED(outputs));
    for (size_t i = 0; i < g->n_output; i++) {
        const char *name = g->output[i]->name == NULL ? "" : g->output[i]->name;
        enum msc_status status = make_output(outputs, i, im, name);
        if (status != MSC_OK) {
            return msc_status_prefix(status, "output '%s'", name);
        }
    }
    return msc_graph_set_outputs(im->builder.graph, (int32_t)g->n_output, outputs);
}

static enum msc_status import_graph(struct msc_onnx_import *im) {
    const char *name = im->proto->name;
    MSC_TRY(read_opset(im));
    MSC_TRY(msc_graph_create(&im->builder.graph, name == NULL || name[0] == '\0' ? "main" : name));
    im->builder.graph->operators = msc_operators_retain(im->options->operators);
    MSC_TRY(msc_onnx__add_initializers(im));
    MSC_TRY(msc_onnx__check_weight_names(im));
    MSC_TRY(msc_onnx__take_pruned(im));
    MSC_TRY(add_inputs(im));
    MSC_TRY(msc_onnx__add_nodes(im));
    MSC_TRY(msc_onnx__check_weight_layers(im));
    MSC_TRY(msc_onnx__set_outputs(im));
    MSC_TRY(msc_onnx__run_passes(im));
    return msc_onnx__read_notes(im);
}

static bool may_decide(const Onnx__ValueInfoProto *input) {
    const char *format;
    enum msc_dtype dtype = msc_onnx_storage(input->type->tensor_type->elem_type, &format);
    return is_whole_list(dtype, (int)shape_of(input)->n_dim);
}

// The name under which a dimension can be bound; NULL if the dimension is a number.
static const char *symbol_of(struct msc_onnx_import *im, const Onnx__ValueInfoProto *input,
                             size_t axis) {
    const Onnx__TensorShapeProto__Dimension *d = shape_of(input)->dim[axis];
    const char *given = name_of(d);
    bool is_number = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
    return given != NULL || (is_number && d->dim_value > 0)
               ? given
               : msc_arena_printf(&im->builder.arena, "%s.%zu", input->name, axis);
}

static enum msc_status fail_binding(struct msc_onnx_import *im, const char *symbol) {
    const Onnx__GraphProto *g = im->proto;
    const char **names = NULL;
    size_t n = 0, capacity = 0;
    enum msc_status status = MSC_OK;
    for (size_t i = 0; i < g->n_input; i++) {
        const Onnx__TensorShapeProto *shape = shape_of(g->input[i]);
        size_t n_dims = shape != NULL ? shape->n_dim : 0;
        MSC_TRY_OUT(msc_grow(&names, &capacity, n + n_dims + 1, sizeof(names[0])));
        for (size_t d = 0; d < n_dims; d++) {
            const char *name = symbol_of(im, g->input[i], d);
            bool is_new = name != NULL;
            for (size_t k = 0; is_new && k < n; k++) {
                is_new = strcmp(names[k], name) != 0;
            }
            if (is_new) {
                names[n++] = name;
            }
        }
        if (shape != NULL && may_decide(g->input[i])) {
            names[n++] = g->input[i]->name;
        }
    }
    status = msc_graph__fail_binding(NULL, symbol, names, n);
out:
    msc_free(names);
    return status;
}

// Checks that every binding names a symbol or an input. Other bindings would have no effect.
static enum msc_status check_bindings(struct msc_onnx_import *im) {
    const Onnx__GraphProto *g = im->proto;
    for (size_t b = 0; b < im->options->n_bindings; b++) {
        const struct msc_binding *binding = &im->options->bindings[b];
        bool is_used = false, is_input = false;
        for (size_t i = 0; i < g->n_input; i++) {
            const Onnx__TensorShapeProto *shape = shape_of(g->input[i]);
            if (shape == NULL) {
                continue;
            }
            is_input |= shape->n_dim <= 1 && strcmp(g->input[i]->name, binding->symbol) == 0;
            for (size_t d = 0; d < shape->n_dim; d++) {
                char name[512];
                snprintf(name, sizeof(name), "%s.%zu", g->input[i]->name, d);
                const char *given = name_of(shape->dim[d]);
                is_used |= strcmp(given != NULL ? given : name, binding->symbol) == 0;
            }
        }
        int64_t least = is_used ? 1 : 0; // a length is at least 1; the value of an input may be 0
        if (!(is_used || is_input)) {
            return fail_binding(im, binding->symbol);
        }
        if (binding->value < least || binding->value > INT32_MAX) {
            return MSC_FAIL(MSC_E_INVALID, "bind: \"%s\" is %lld, expected %lld to %d",
                            binding->symbol, (long long)binding->value, (long long)least,
                            INT32_MAX);
        }
    }
    return MSC_OK;
}

void msc_onnx__finish(struct msc_onnx_import *im) {
    msc_builder_finish(&im->builder);
    msc_graph__names_finish(&im->value_names);
    msc_graph__names_finish(&im->node_names);
    msc_free(im->values);
    msc_free(im->captures);
}

static enum msc_status import_model(struct msc_onnx_import *im) {
    im->proto = im->model->graph;
    MSC_TRY(msc_onnx__expand_sparse(im->model, im->folder));
    MSC_TRY(msc_onnx__sort_nodes(im->model->graph));
    MSC_TRY(check_bindings(im));
    return import_graph(im);
}

enum msc_status msc_onnx_load(struct msc_graph **out, const char *path,
                              const struct msc_onnx_import_options *options) {
    static const struct msc_onnx_import_options defaults = {0};
    struct msc_onnx_import im = {.path = path,
                                 .options = options == NULL ? &defaults : options,
                                 .builder = {.evaluate = msc_constant_evaluate_all}};
    MSC_TRY(msc_onnx_model_read(&im.model, path));
    enum msc_status status = MSC_OK;
    im.folder = msc_path_folder(&im.builder.arena, path);
    if (im.folder == NULL) {
        status = MSC_FAIL(MSC_E_NOMEM, "out of memory");
    } else {
        status = import_model(&im);
    }
    if (status != MSC_OK) {
        status = msc_status_prefix(status, "%s", path);
        msc_graph_destroy(im.builder.graph);
    } else {
        *out = im.builder.graph;
    }
    msc_onnx__finish(&im);
    msc_onnx_model_free(im.model);
    return status;
}
