// What graph/onnx_import*.c share: the state of one import, and one translator for each family of
// ONNX operators. A translator reads a node's attributes and inputs, adds joints by way of the
// builder, and names the last one's outputs as the node's.
#ifndef MSC_GRAPH_ONNX_ONNX_IMPORT_INTERNAL_H
#define MSC_GRAPH_ONNX_ONNX_IMPORT_INTERNAL_H

#include "graph/builder_internal.h"
#include "graph/onnx/onnx.h"
#include "graph/onnx/onnx_file_internal.h"

// A value of the ONNX graph by name.
struct msc_onnx_value {
    struct msc_value *value;            // NULL: an initialiser not yet looked at, or unavailable
    const Onnx__TensorProto *source;    // the initialiser
    const Onnx__NodeProto *unavailable; // the node whose extra output it is, which we do not make
};

// A value of the graph around a body that the body reads: an input of it.
struct msc_onnx_capture {
    const char *name;
    struct msc_value *outer;
};

struct msc_onnx_import {
    const char *path, *folder;
    const struct msc_onnx_import_options *options; // never NULL
    Onnx__ModelProto *model;
    const Onnx__GraphProto *proto;  // the model's graph, or a body of control flow
    struct msc_onnx_import *parent; // of a body; NULL for the model's graph
    struct msc_onnx_capture *captures;
    size_t n_captures, captures_capacity;
    int64_t opset;
    struct msc_builder builder;
    struct msc_graph_names value_names; // to indices of `values`
    struct msc_onnx_value *values;
    size_t n_values, values_capacity;
    struct msc_graph_names node_names; // to how often a node or input has this name
    const char
        *prefix; // of the names of joints, in a branch that became part of the graph; or NULL
};

#define MSC_ONNX_MAX_ATTRS 16
#define MSC_ONNX_MAX_STATES 256 // of a loop

struct msc_onnx_node;
typedef enum msc_status (*msc_onnx_translator)(struct msc_onnx_node *node);

struct msc_onnx_rule {
    const char *onnx;
    msc_onnx_translator translate;
    enum msc_op op;
    int min_inputs, max_inputs; // max -1: any number
};

// One node as translators see it.
struct msc_onnx_node {
    struct msc_onnx_import *import;
    const Onnx__NodeProto *proto;
    struct msc_onnx_rule rule;
    int64_t opset;
    int n_inputs;
    struct msc_value **inputs;                 // [n_inputs], NULL where left out
    struct msc_attr attrs[MSC_ONNX_MAX_ATTRS]; // of the joint to be added last
    int n_attrs;
    bool stays; // the joint to be added last is not folded
    int32_t n_graphs;
    const struct msc_graph *const *graphs; // bodies of the joint to be added last
    unsigned extra_outputs;                // bits of those that msc_onnx__define_extra named
};

// Of an operator; MSC_E_UNSUPPORTED when it is not here. Both names may be NULL.
enum msc_status msc_onnx__find_rule(struct msc_onnx_rule *out, const char *domain,
                                    const char *op_type);

// Fails with the text; the node and file are put before it by the caller.
#define MSC_ONNX_UNSUPPORTED(...) MSC_FAIL(MSC_E_UNSUPPORTED, __VA_ARGS__)

// Attributes of the node. Absent ones are `otherwise`; one of another type is MSC_E_FORMAT.
enum msc_status msc_onnx__int(int64_t *out, const struct msc_onnx_node *n, const char *name,
                              int64_t otherwise);
enum msc_status msc_onnx__float(float *out, const struct msc_onnx_node *n, const char *name,
                                float otherwise);
// Text in the builder's arena.
enum msc_status msc_onnx__text(const char **out, const struct msc_onnx_node *n, const char *name,
                               const char *otherwise);
// *out is borrowed, *count -1 when absent.
enum msc_status msc_onnx__ints(const int64_t **out, int *count, const struct msc_onnx_node *n,
                               const char *name);
enum msc_status msc_onnx__floats(const float **out, int *count, const struct msc_onnx_node *n,
                                 const char *name);
const Onnx__AttributeProto *msc_onnx__attribute(const struct msc_onnx_node *n, const char *name);
// A list of exactly `count` numbers, or `otherwise` repeated.
enum msc_status msc_onnx__ints_of(int64_t out[], const struct msc_onnx_node *n, const char *name,
                                  int count, int64_t otherwise);

// Attributes of the joint. Values are borrowed; NULL is out of memory, found when it is added.
void msc_onnx__set(struct msc_onnx_node *n, const char *key, const char *value);
void msc_onnx__set_ints(struct msc_onnx_node *n, const char *key, const int64_t values[],
                        int count);
void msc_onnx__set_int(struct msc_onnx_node *n, const char *key, int64_t value);
void msc_onnx__set_float(struct msc_onnx_node *n, const char *key, float value);
void msc_onnx__set_bool(struct msc_onnx_node *n, const char *key, bool value);
// Sets those attributes of a joint of `op` that ONNX has as well (ops.def) and that are not set
// yet, where the node gives them or leaving them out means there what is no default here.
enum msc_status msc_onnx__copy_attrs(struct msc_onnx_node *n, enum msc_op op);

bool msc_onnx__is_initializer(struct msc_onnx_import *im, const char *name);

// onnx_import_weights.c: MSC_E_INVALID where the new weights name one that there is none of; where they have a
// layer's only in part.
enum msc_status msc_onnx__check_weight_names(struct msc_onnx_import *im);
enum msc_status msc_onnx__check_weight_layers(struct msc_onnx_import *im);

// The node's name with the prefix; "" for one without.
const char *msc_onnx__full_name(struct msc_onnx_import *im, const Onnx__NodeProto *node);
// What the joint is called: the node's own name, when no other node or input has it; or NULL.
const char *msc_onnx__joint_name(const struct msc_onnx_node *n);

// Input `i`, or NULL when it is left out.
static inline struct msc_value *msc_onnx__input(const struct msc_onnx_node *n, int i) {
    return i < n->n_inputs ? n->inputs[i] : NULL;
}
// Rank, type and dims of a value, constant or not. A symbolic dim is -1.
struct msc_onnx_shape {
    enum msc_dtype dtype;
    int n_dims;
    int64_t dims[MSC_MAX_DIMS];
};
struct msc_onnx_shape msc_onnx__shape(const struct msc_onnx_node *n, const struct msc_value *v);
// A constant list of numbers that the node itself makes.
enum msc_status msc_onnx__make_ints(struct msc_value **out, struct msc_onnx_node *n,
                                    const char *name, const int64_t values[], int count);
// A constant of one element, without dimensions.
enum msc_status msc_onnx__make_scalar(struct msc_value **out, struct msc_onnx_node *n,
                                      enum msc_dtype dtype, double value);
// The joint's attribute `key` is the type that the node's attribute `name` gives, if it is there.
enum msc_status msc_onnx__set_dtype(struct msc_onnx_node *n, const char *key, const char *name);
// A list parameter: from the attribute `name` when it is there, else from input `i`; NULL: absent.
enum msc_status msc_onnx__list_param(struct msc_value **out, struct msc_onnx_node *n, int i,
                                     const char *name);
// The first element of a constant input; false when the input is no constant.
bool msc_onnx__scalar(double *out, const struct msc_value *v);

// Adds a joint with the collected attributes, which are then forgotten. A helper has no name of
// the node's and one output, *out.
enum msc_status msc_onnx__add_helper(struct msc_value **out, struct msc_onnx_node *n,
                                     enum msc_op op, struct msc_value *const operands[],
                                     int n_operands);
// The joint whose outputs are the node's.
enum msc_status msc_onnx__add_last(struct msc_onnx_node *n, enum msc_op op,
                                   struct msc_value *const operands[], int n_operands);
// The same, with only the first `n_outputs` outputs of the node made.
enum msc_status msc_onnx__add_some(struct msc_onnx_node *n, enum msc_op op,
                                   struct msc_value *const operands[], int n_operands,
                                   int n_outputs);
// Output `i` of the node, beside those of the joint added last, is this value. Before that joint.
enum msc_status msc_onnx__define_extra(struct msc_onnx_node *n, int i, struct msc_value *v);
// The node's only output is this value.
enum msc_status msc_onnx__set_output(struct msc_onnx_node *n, struct msc_value *v);

enum msc_status msc_onnx__lookup(struct msc_value **out, struct msc_onnx_import *im,
                                 const char *name);
enum msc_status msc_onnx__define(struct msc_onnx_import *im, const char *name,
                                 struct msc_onnx_value value);
bool msc_onnx__is_initializer(struct msc_onnx_import *im, const char *name);
// From here on nothing has the name.
enum msc_status msc_onnx__hide(struct msc_onnx_import *im, const char *name);

// Importing a graph in steps (graph/onnx/onnx_import.c), for the model's and for bodies.
enum msc_status msc_onnx__add_initializers(struct msc_onnx_import *im);
enum msc_status msc_onnx__reserve_names(struct msc_onnx_import *im);
enum msc_status msc_onnx__add_nodes(struct msc_onnx_import *im);
enum msc_status msc_onnx__set_outputs(struct msc_onnx_import *im);
enum msc_status msc_onnx__run_passes(struct msc_onnx_import *im);
void msc_onnx__finish(struct msc_onnx_import *im);
// Reads a value of the graph around (graph/onnx/onnx_import_body.c).
enum msc_status msc_onnx__capture(struct msc_value **out, struct msc_onnx_import *im,
                                  const char *name);

// What the file says beside the network (graph/notes.h).
enum msc_status msc_onnx__read_notes(struct msc_onnx_import *im);

// As ops.def says.
enum msc_status msc_onnx__direct(struct msc_onnx_node *n);
enum msc_status msc_onnx__if(struct msc_onnx_node *n);
enum msc_status msc_onnx__loop(struct msc_onnx_node *n);
enum msc_status msc_onnx__scan(struct msc_onnx_node *n);
enum msc_status msc_onnx__identity(struct msc_onnx_node *n);
enum msc_status msc_onnx__reshape(struct msc_onnx_node *n);
enum msc_status msc_onnx__concat(struct msc_onnx_node *n);
enum msc_status msc_onnx__tile(struct msc_onnx_node *n);
enum msc_status msc_onnx__selu(struct msc_onnx_node *n);
enum msc_status msc_onnx__constant(struct msc_onnx_node *n);
enum msc_status msc_onnx__constant_of_shape(struct msc_onnx_node *n);
enum msc_status msc_onnx__conv(struct msc_onnx_node *n);
enum msc_status msc_onnx__conv_transpose(struct msc_onnx_node *n);
enum msc_status msc_onnx__pool(struct msc_onnx_node *n);
enum msc_status msc_onnx__conv_integer(struct msc_onnx_node *n);
enum msc_status msc_onnx__max_unpool(struct msc_onnx_node *n);
enum msc_status msc_onnx__mean_variance(struct msc_onnx_node *n);
enum msc_status msc_onnx__lp_norm(struct msc_onnx_node *n);
enum msc_status msc_onnx__global_lp_pool(struct msc_onnx_node *n);
enum msc_status msc_onnx__roi_align(struct msc_onnx_node *n);
enum msc_status msc_onnx__dft(struct msc_onnx_node *n);
enum msc_status msc_onnx__random(struct msc_onnx_node *n);
enum msc_status msc_onnx__bernoulli(struct msc_onnx_node *n);
enum msc_status msc_onnx__tf_idf(struct msc_onnx_node *n);
enum msc_status msc_onnx__global_pool(struct msc_onnx_node *n);
enum msc_status msc_onnx__gemm(struct msc_onnx_node *n);
enum msc_status msc_onnx__matmul(struct msc_onnx_node *n);
enum msc_status msc_onnx__batch_norm(struct msc_onnx_node *n);
enum msc_status msc_onnx__layer_norm(struct msc_onnx_node *n);
enum msc_status msc_onnx__softmax(struct msc_onnx_node *n);
enum msc_status msc_onnx__dropout(struct msc_onnx_node *n);
enum msc_status msc_onnx__clip(struct msc_onnx_node *n);
enum msc_status msc_onnx__extremum(struct msc_onnx_node *n);
enum msc_status msc_onnx__sum(struct msc_onnx_node *n);
enum msc_status msc_onnx__reduce(struct msc_onnx_node *n);
enum msc_status msc_onnx__spelled_reduce(struct msc_onnx_node *n); // ReduceL1, ReduceL2, ...
enum msc_status msc_onnx__reduce_log_sum_exp(struct msc_onnx_node *n);
enum msc_status msc_onnx__mean(struct msc_onnx_node *n);
enum msc_status msc_onnx__mod(struct msc_onnx_node *n);
enum msc_status msc_onnx__bit_shift(struct msc_onnx_node *n);
enum msc_status msc_onnx__top_k(struct msc_onnx_node *n);
enum msc_status msc_onnx__trilu(struct msc_onnx_node *n);
enum msc_status msc_onnx__binary(struct msc_onnx_node *n);
enum msc_status msc_onnx__cross_entropy(struct msc_onnx_node *n);
enum msc_status msc_onnx__cast_like(struct msc_onnx_node *n);
enum msc_status msc_onnx__transpose(struct msc_onnx_node *n);
enum msc_status msc_onnx__axes(struct msc_onnx_node *n); // Squeeze, Unsqueeze
enum msc_status msc_onnx__split(struct msc_onnx_node *n);
enum msc_status msc_onnx__slice(struct msc_onnx_node *n);
enum msc_status msc_onnx__pad(struct msc_onnx_node *n);
enum msc_status msc_onnx__quantize(struct msc_onnx_node *n);
enum msc_status msc_onnx__dequantize(struct msc_onnx_node *n);
enum msc_status msc_onnx__cast(struct msc_onnx_node *n);
enum msc_status msc_onnx__cast_to_number(struct msc_onnx_node *n); // since opset 6
enum msc_status msc_onnx__resize(struct msc_onnx_node *n);
enum msc_status msc_onnx__upsample(struct msc_onnx_node *n);

#endif
