// Imports control flow: each body becomes a graph of its joint. A body is imported like the model's
// graph. If it reads a value of the enclosing graph, that value becomes an operand of the joint and
// an input of the body, after the body's own inputs.
#include "graph/onnx/onnx_import_internal.h"

#include "graph/passes/constant_internal.h"

#include <stdio.h>
#include <string.h>

// Type and shape of an input of a body. A length of -1 may change between iterations.
struct body_input {
    struct msc_onnx_shape shape;
};

struct body {
    const Onnx__GraphProto *proto;
    int n_inputs;
    struct msc_onnx_shape *inputs; // [n_inputs]
    struct msc_graph *graph;       // the imported body
};

// The values of the enclosing graph that the bodies of a joint read. Each value occurs once, even
// if several bodies read it.
struct captures {
    struct msc_onnx_capture *items; // in the arena of the enclosing import
    int n, capacity;
};

static enum msc_status add_body_input(struct msc_value **out, struct msc_onnx_import *im,
                                      const char *name, const struct msc_onnx_shape *shape) {
    int32_t prims[MSC_MAX_DIMS], tensor;
    for (int i = 0; i < shape->n_dims; i++) {
        prims[i] = MSC_NO_ID;
        if (shape->dims[i] < 0) {
            const char *symbol = msc_arena_printf(&im->builder.arena, "%s.%d", name, i);
            MSC_TRY(MSC_ALLOCATED(symbol));
            MSC_TRY(msc_graph_add_symbol(&prims[i], im->builder.graph, symbol));
        }
    }
    MSC_TRY(msc_graph_add_symbolic_input(&tensor, im->builder.graph, name, name, shape->dtype, "",
                                         shape->n_dims, shape->dims, prims));
    return msc_builder_activation(out, &im->builder, name, tensor);
}

// Makes a value of the enclosing graph available in the body: shares a constant, and makes an
// activation an input.
enum msc_status msc_onnx__capture(struct msc_value **out, struct msc_onnx_import *im,
                                  const char *name) {
    struct msc_value *outer;
    MSC_TRY(msc_onnx__lookup(&outer, im->parent, name));
    struct msc_onnx_value value = {0};
    if (outer->constant != NULL) {
        MSC_TRY(msc_builder_constant(&value.value, &im->builder, name, outer->constant));
    } else {
        struct msc_onnx_node parent = {.import = im->parent};
        struct msc_onnx_shape shape = msc_onnx__shape(&parent, outer);
        MSC_TRY(add_body_input(&value.value, im, name, &shape));
        MSC_TRY(msc_grow(&im->captures, &im->captures_capacity, im->n_captures + 1,
                         sizeof(im->captures[0])));
        im->captures[im->n_captures++] = (struct msc_onnx_capture){name, outer};
    }
    value.value->format = outer->format;
    *out = value.value;
    return msc_onnx__define(im, name, value);
}

static enum msc_status import_steps(struct msc_onnx_import *im, const struct body *body,
                                    const struct captures *known) {
    const Onnx__GraphProto *g = body->proto;
    const char *name = g->name == NULL || g->name[0] == '\0' ? "body" : g->name;
    MSC_TRY(msc_graph__create_like(&im->builder.graph, name, im->parent->builder.graph));
    MSC_TRY(msc_onnx__add_initializers(im));
    if (g->n_input != (size_t)body->n_inputs) {
        return MSC_FAIL(MSC_E_FORMAT, "the body '%s' has %zu inputs, expected %d", name, g->n_input,
                        body->n_inputs);
    }
    for (int i = 0; i < body->n_inputs; i++) {
        struct msc_onnx_value value = {0};
        const char *input = g->input[i]->name == NULL ? "" : g->input[i]->name;
        MSC_TRY(add_body_input(&value.value, im, input, &body->inputs[i]));
        MSC_TRY(msc_onnx__define(im, input, value));
    }
    for (int i = 0; i < known->n; i++) {
        struct msc_value *value;
        MSC_TRY(msc_onnx__capture(&value, im, known->items[i].name));
    }
    MSC_TRY(msc_onnx__reserve_names(im));
    MSC_TRY(msc_onnx__add_nodes(im));
    MSC_TRY(msc_onnx__set_outputs(im));
    return msc_onnx__run_passes(im);
}

// Every body is imported twice: once to find the values that it reads, and once with these values
// as inputs. The same holds for nested bodies, so each level doubles the work.
#define MAX_DEPTH 8

static enum msc_status check_depth(const struct msc_onnx_import *im) {
    int depth = 0;
    for (; im != NULL; im = im->parent) {
        depth++;
    }
    return depth <= MAX_DEPTH
               ? MSC_OK
               : MSC_ONNX_UNSUPPORTED("bodies are nested more than %d levels deep", MAX_DEPTH);
}

// Imports the body with the captures known so far, and adds new captures to them.
static enum msc_status import_body(struct body *body, struct captures *c, struct msc_onnx_node *n) {
    struct msc_onnx_import im = *n->import;
    MSC_TRY(check_depth(n->import));
    im = (struct msc_onnx_import){.path = im.path,
                                  .folder = im.folder,
                                  .options = im.options,
                                  .model = im.model,
                                  .opset = im.opset,
                                  .proto = body->proto,
                                  .parent = n->import,
                                  .call = im.call,
                                  .n_inlined = im.n_inlined,
                                  .builder = {.evaluate = msc_constant_evaluate_all}};
    enum msc_status status = import_steps(&im, body, c);
    for (size_t i = (size_t)c->n; status == MSC_OK && i < im.n_captures; i++) {
        struct msc_onnx_capture *items =
            msc_arena_array(&n->import->builder.arena, (size_t)c->n + 1, sizeof(items[0]));
        if (items == NULL) {
            status = MSC_FAIL(MSC_E_NOMEM, "out of memory");
            break;
        }
        if (c->n > 0) {
            memcpy(items, c->items, (size_t)c->n * sizeof(items[0]));
        }
        items[c->n++] = im.captures[i];
        c->items = items;
    }
    msc_graph_destroy(body->graph);
    body->graph = im.builder.graph;
    if (status != MSC_OK) {
        msc_graph_destroy(body->graph);
        body->graph = NULL;
        status = msc_status_prefix(status, "body '%s'",
                                   body->proto->name == NULL ? "" : body->proto->name);
    }
    msc_onnx__finish(&im);
    return status;
}

static enum msc_status find_body(struct body *body, const struct msc_onnx_node *n,
                                 const char *name) {
    const Onnx__AttributeProto *a = msc_onnx__attribute(n, name);
    *body = (struct body){.proto = a == NULL ? NULL : a->g};
    return body->proto != NULL ? MSC_OK : MSC_FAIL(MSC_E_FORMAT, "attribute %s is missing", name);
}

// Adds the joint with `operands` followed by the captures of its bodies.
static enum msc_status onnx_import_body_add_joint(struct msc_onnx_node *n,
                                                  struct msc_value *const operands[],
                                                  int n_operands, const struct captures *c,
                                                  const struct msc_graph *const graphs[],
                                                  int n_graphs) {
    size_t n_all = (size_t)(n_operands + c->n);
    struct msc_value **all = msc_arena_array(&n->import->builder.arena, n_all + 1, sizeof(*all));
    MSC_TRY(MSC_ALLOCATED(all));
    for (int i = 0; i < n_operands; i++) {
        all[i] = operands[i];
    }
    for (int i = 0; i < c->n; i++) {
        all[n_operands + i] = c->items[i].outer;
    }
    n->graphs = graphs;
    n->n_graphs = n_graphs;
    return msc_onnx__add_some(n, n->rule.op, all, (int)n_all, (int)n->proto->n_output);
}

// ---- If ---------------------------------------------------------------------------------------

// Prefix of the names of joints in an inlined branch, such as "if_1/then/". If the branch remains a
// body, its joints get the same prefix.
static const char *branch_prefix(const struct msc_onnx_node *n, int32_t which) {
    struct msc_builder *b = &n->import->builder;
    const char *name = msc_onnx__joint_name(n); // includes the outer prefix
    if (name == NULL) {
        int32_t number = b->hints[MSC_OP_IF]++;
        name = number == 0 ? "if" : msc_arena_printf(&b->arena, "if_%d", (int)number);
    }
    return name == NULL ? NULL : msc_graph_body_prefix(&b->arena, "", MSC_OP_IF, name, which);
}

// Hides the names that a branch defines. Another branch, or the enclosing graph after the If, may
// use the same names.
static enum msc_status hide_names(struct msc_onnx_import *im, const Onnx__GraphProto *branch) {
    for (size_t i = 0; i < branch->n_initializer; i++) {
        MSC_TRY(msc_onnx__hide(im, branch->initializer[i]->name));
    }
    for (size_t i = 0; i < branch->n_node; i++) {
        for (size_t o = 0; o < branch->node[i]->n_output; o++) {
            MSC_TRY(msc_onnx__hide(im, branch->node[i]->output[o]));
        }
    }
    return MSC_OK;
}

// Defines the branch's outputs under the names of the If's outputs.
static enum msc_status define_outputs(struct msc_onnx_node *n, const Onnx__GraphProto *branch) {
    struct msc_onnx_import *im = n->import;
    struct msc_onnx_value *values =
        msc_arena_array(&im->builder.arena, branch->n_output + 1, sizeof(values[0]));
    MSC_TRY(MSC_ALLOCATED(values));
    for (size_t i = 0; i < branch->n_output; i++) {
        const char *output = branch->output[i]->name == NULL ? "" : branch->output[i]->name;
        MSC_TRY(msc_onnx__lookup(&values[i].value, im, output));
    }
    MSC_TRY(hide_names(im, branch));
    for (size_t i = 0; i < branch->n_output; i++) {
        MSC_TRY(msc_onnx__define(im, n->proto->output[i], values[i]));
    }
    return MSC_OK;
}

// Inlines the branch that is always taken into the enclosing graph.
static enum msc_status inline_branch(struct msc_onnx_node *n, const Onnx__GraphProto *branch,
                                     int32_t which) {
    struct msc_onnx_import *im = n->import;
    const Onnx__GraphProto *around = im->proto;
    const char *around_prefix = im->prefix;
    const struct msc_onnx_module *modules = im->modules;
    size_t node = im->node;
    const char *prefix = branch_prefix(n, which);
    MSC_TRY(MSC_ALLOCATED(prefix));
    if (branch->n_output != n->proto->n_output) {
        return MSC_FAIL(MSC_E_FORMAT, "the branch has %zu outputs, expected %zu", branch->n_output,
                        n->proto->n_output);
    }
    im->proto = branch;
    im->prefix = prefix;
    enum msc_status status = msc_onnx__add_initializers(im);
    status = status == MSC_OK ? msc_onnx__reserve_names(im) : status;
    status = status == MSC_OK ? msc_onnx__add_nodes(im) : status;
    im->proto = around;
    im->prefix = around_prefix;
    im->modules = modules;
    im->node = node;
    return status == MSC_OK ? define_outputs(n, branch) : status;
}

enum msc_status msc_onnx__if(struct msc_onnx_node *n) {
    double condition;
    if (msc_onnx__scalar(&condition, n->inputs[0])) {
        struct body taken;
        MSC_TRY(find_body(&taken, n, condition != 0 ? "then_branch" : "else_branch"));
        return inline_branch(n, taken.proto, condition != 0 ? 0 : 1);
    }
    static const char *const names[] = {"then_branch", "else_branch"};
    struct body bodies[2] = {{0}};
    struct captures captures = {0};
    enum msc_status status = MSC_OK;
    // The first round finds the values that each body reads; the second gives both bodies all of
    // them.
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 2; i++) {
            struct msc_graph *before = bodies[i].graph;
            MSC_TRY_OUT(find_body(&bodies[i], n, names[i]));
            bodies[i].graph = before;
            MSC_TRY_OUT(import_body(&bodies[i], &captures, n));
        }
    }
    const struct msc_graph *const graphs[] = {bodies[0].graph, bodies[1].graph};
    status = onnx_import_body_add_joint(n, n->inputs, 1, &captures, graphs, 2);
out:
    msc_graph_destroy(bodies[0].graph);
    msc_graph_destroy(bodies[1].graph);
    return status;
}

// ---- Loop and Scan ----------------------------------------------------------------------------

// Makes a length of a state unknown if an iteration changes it. If *changed is set to true, the
// body must be imported again. State i is the body's input first_state + i and output first_output
// + i.
static enum msc_status widen_states(bool *changed, struct body *body, int n_states, int first_state,
                                    int first_output) {
    *changed = false;
    for (int i = 0; i < n_states; i++) {
        struct msc_onnx_shape *in = &body->inputs[first_state + i];
        const struct msc_tensor *out =
            msc_graph_tensor(body->graph, msc_graph_output(body->graph, first_output + i));
        if (out->dtype != in->dtype || out->n_dims != in->n_dims) {
            return MSC_ONNX_UNSUPPORTED(
                "state %d is initially %s of %d dimensions, but after an iteration it is "
                "%s of %d",
                i, msc_dtype_name(in->dtype), in->n_dims, msc_dtype_name(out->dtype), out->n_dims);
        }
        for (int d = 0; d < in->n_dims; d++) {
            if (in->dims[d] >= 0 && out->dims[d] != in->dims[d]) {
                in->dims[d] = -1;
                *changed = true;
            }
        }
    }
    return MSC_OK;
}

static enum msc_status import_turns(struct body *body, struct captures *captures,
                                    struct msc_onnx_node *n, int n_states, int first_state,
                                    int first_output) {
    bool changed = true;
    // This terminates: each round except the last makes at least one known length unknown, or finds
    // new captures. The last round has all captures.
    while (changed) {
        int n_before = captures->n;
        MSC_TRY(import_body(body, captures, n));
        if (msc_graph_n_outputs(body->graph) < first_output + n_states) {
            return MSC_FAIL(MSC_E_FORMAT, "the body has %d outputs, expected %d or more",
                            (int)msc_graph_n_outputs(body->graph), first_output + n_states);
        }
        MSC_TRY(widen_states(&changed, body, n_states, first_state, first_output));
        changed = changed || captures->n != n_before;
    }
    return MSC_OK;
}

static enum msc_status alloc_inputs(struct body *body, struct msc_onnx_node *n, int n_inputs) {
    body->n_inputs = n_inputs;
    body->inputs =
        msc_arena_array(&n->import->builder.arena, (size_t)n_inputs + 1, sizeof(body->inputs[0]));
    return MSC_ALLOCATED(body->inputs != NULL);
}

// Checks that initial states and scanned inputs exist.
static enum msc_status require_inputs(const struct msc_onnx_node *n, int first) {
    for (int i = first; i < n->n_inputs; i++) {
        if (n->inputs[i] == NULL) {
            return MSC_FAIL(MSC_E_FORMAT, "the required input %d is missing", i);
        }
    }
    return MSC_OK;
}

enum msc_status msc_onnx__loop(struct msc_onnx_node *n) {
    struct body body;
    struct captures captures = {0};
    int n_states = n->n_inputs < 2 ? 0 : n->n_inputs - 2;
    MSC_TRY(find_body(&body, n, "body"));
    MSC_TRY(alloc_inputs(&body, n, n_states + 2));
    body.inputs[0].dtype = MSC_DTYPE_I64;
    body.inputs[1].dtype = MSC_DTYPE_BOOL;
    MSC_TRY(require_inputs(n, 2));
    for (int i = 0; i < n_states; i++) {
        body.inputs[i + 2] = msc_onnx__shape(n, n->inputs[i + 2]);
    }
    struct msc_value *operands[MSC_ONNX_MAX_STATES + 2] = {NULL};
    if (n_states > MSC_ONNX_MAX_STATES) {
        return MSC_ONNX_UNSUPPORTED("the node has %d states, at most %d are supported", n_states,
                                    MSC_ONNX_MAX_STATES);
    }
    for (int i = 0; i < n->n_inputs; i++) {
        operands[i] = n->inputs[i];
    }
    enum msc_status status = import_turns(&body, &captures, n, n_states, 2, 1);
    if (status == MSC_OK) {
        const struct msc_graph *graph = body.graph;
        msc_onnx__set_int(n, "n_states", n_states);
        status = onnx_import_body_add_joint(n, operands, n_states + 2, &captures, &graph, 1);
    }
    msc_graph_destroy(body.graph);
    return status;
}

// If the node has this list attribute, sets the joint's attribute of the same key.
static enum msc_status onnx_import_body_copy_list(struct msc_onnx_node *n, const char *key,
                                                  const char *name) {
    const int64_t *values;
    int count;
    MSC_TRY(msc_onnx__ints(&values, &count, n, name));
    if (count > 0) {
        msc_onnx__set_ints(n, key, values, count);
    }
    return MSC_OK;
}

// Removes the scan axis, which gives the shape of one slice.
static enum msc_status take_axis(struct msc_onnx_shape *shape, int64_t axis, int input) {
    if (axis < -shape->n_dims || axis >= shape->n_dims) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "scan axis %lld is out of range for input %d, which has %d dimensions",
                        (long long)axis, input, shape->n_dims);
    }
    for (int d = (int)(axis < 0 ? axis + shape->n_dims : axis); d + 1 < shape->n_dims; d++) {
        shape->dims[d] = shape->dims[d + 1];
    }
    shape->n_dims--;
    return MSC_OK;
}

static enum msc_status scan_inputs(struct body *body, struct msc_onnx_node *n, int first,
                                   int n_scans, bool has_batch) {
    const int64_t *axes;
    int n_axes, n_values = n->n_inputs - first;
    MSC_TRY(msc_onnx__ints(&axes, &n_axes, n, "scan_input_axes"));
    MSC_TRY(alloc_inputs(body, n, n_values));
    MSC_TRY(require_inputs(n, first));
    for (int i = 0; i < n_values; i++) {
        struct msc_onnx_shape shape = msc_onnx__shape(n, n->inputs[first + i]);
        int scan = i - (n_values - n_scans);
        if (has_batch) {
            MSC_TRY(take_axis(&shape, 0, first + i));
        }
        if (scan >= 0) {
            MSC_TRY(take_axis(&shape, scan < n_axes ? axes[scan] : 0, first + i));
        }
        body->inputs[i] = shape;
    }
    return MSC_OK;
}

enum msc_status msc_onnx__scan(struct msc_onnx_node *n) {
    struct body body;
    struct captures captures = {0};
    int64_t n_scans;
    // In opset 8 all values have a batch axis, and the first input holds the sequence lengths.
    bool has_batch = n->opset < 9;
    int first = has_batch ? 1 : 0;
    MSC_TRY(find_body(&body, n, "body"));
    MSC_TRY(msc_onnx__int(&n_scans, n, "num_scan_inputs", 0));
    if (n_scans < 1 || n_scans > n->n_inputs - first) {
        return MSC_FAIL(MSC_E_FORMAT, "num_scan_inputs is %lld, but the node has %d inputs",
                        (long long)n_scans, n->n_inputs);
    }
    int n_states = n->n_inputs - first - (int)n_scans;
    if (has_batch && n->inputs[0] != NULL) {
        return MSC_ONNX_UNSUPPORTED("sequences of different lengths are not supported");
    }
    MSC_TRY(scan_inputs(&body, n, first, (int)n_scans, has_batch));
    enum msc_status status = import_turns(&body, &captures, n, n_states, 0, 0);
    if (status == MSC_OK) {
        const struct msc_graph *graph = body.graph;
        msc_onnx__set_bool(n, "has_batch", has_batch);
        msc_onnx__set_int(n, "n_states", n_states);
        msc_onnx__set_int(n, "n_scans", n_scans);
        status = onnx_import_body_copy_list(n, "scan_input_axes", "scan_input_axes");
        status = status == MSC_OK ? onnx_import_body_copy_list(n, "scan_input_directions",
                                                               has_batch ? "directions"
                                                                         : "scan_input_directions")
                                  : status;
        status = status == MSC_OK
                     ? onnx_import_body_copy_list(n, "scan_output_axes", "scan_output_axes")
                     : status;
        status = status == MSC_OK ? onnx_import_body_copy_list(n, "scan_output_directions",
                                                               "scan_output_directions")
                                  : status;
        if (status == MSC_OK) {
            status = onnx_import_body_add_joint(n, n->inputs + first, n_states + (int)n_scans,
                                                &captures, &graph, 1);
        }
    }
    msc_graph_destroy(body.graph);
    return status;
}
