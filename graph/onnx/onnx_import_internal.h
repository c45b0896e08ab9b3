// Shared by graph/onnx/onnx_import*.c: the state of one import, and one translator for each family
// of ONNX operators. A translator reads a node's attributes and inputs, adds joints through the
// builder, and makes the outputs of the last joint the outputs of the node.
//
// Four files hold one set of mutually recursive functions: onnx_import.c imports a graph, and
// onnx_import_table.c selects the translator of a node. onnx_import_body.c translates control flow,
// and onnx_import_function.c calls of functions; their bodies have nodes again.
#ifndef MSC_GRAPH_ONNX_ONNX_IMPORT_INTERNAL_H
#define MSC_GRAPH_ONNX_ONNX_IMPORT_INTERNAL_H

#include "graph/builder_internal.h"
#include "graph/onnx/onnx.h"
#include "graph/onnx/onnx_file_internal.h"

// A value of the ONNX graph, found by its name.
struct msc_onnx_value {
    struct msc_value *value;         // NULL: unavailable, or an initialiser that was not read yet
    const Onnx__TensorProto *source; // the initialiser, or NULL
    const Onnx__NodeProto *unavailable; // the node whose unsupported output this is, or NULL
    bool is_absent;                     // an optional input that the call of a function leaves out
};

// A value of the enclosing graph that a body reads; it becomes an input of the body.
struct msc_onnx_capture {
    const char *name;
    struct msc_value *outer;
};

// The module of the network that computed a node; all NULL if the file does not say.
struct msc_onnx_module {
    const char *path;  // "layer1.0.conv1"; "": the network itself
    const char *name;  // name of the node within the module
    const char *joint; // the joint's name
};

// A call of one of the model's functions, while its body is imported.
struct msc_onnx_call {
    const Onnx__NodeProto *node;
    const Onnx__FunctionProto *function;
    const struct msc_onnx_call *outer; // the call whose body contains this call; NULL: none
    int depth;                         // 1: called by the model's graph
};

struct msc_onnx_import {
    const char *path, *folder;
    const struct msc_onnx_import_options *options; // never NULL
    Onnx__ModelProto *model;
    const Onnx__GraphProto *proto;  // the model's graph, or a body of control flow
    struct msc_onnx_import *parent; // the enclosing import; NULL for the model's graph
    struct msc_onnx_capture *captures;
    size_t n_captures, captures_capacity;
    int64_t opset;
    struct msc_builder builder;
    struct msc_graph_names value_names; // maps names to indices of `values`
    struct msc_onnx_value *values;
    size_t n_values, values_capacity;
    const struct msc_onnx_module *modules; // of the nodes of `proto`
    size_t node;                           // index of the node that is being imported
    struct msc_graph_names node_names; // maps a name to the number of nodes and inputs that have it
    const char *prefix; // of joint names, while a branch or a function is inlined; or NULL
    const struct msc_onnx_call *call; // the function whose body is imported; NULL: none
    size_t n_inlined;                 // number of nodes imported from functions so far
    bool is_pruned; // for the model's graph: the replacement weights are of a pruned network
};

#define MSC_ONNX_MAX_ATTRS 16
#define MSC_ONNX_MAX_STATES 256 // of a loop

struct msc_onnx_node;
typedef enum msc_status (*msc_onnx_translator)(struct msc_onnx_node *node);

struct msc_onnx_rule {
    const char *onnx;
    msc_onnx_translator translate;
    enum msc_op op;
    int min_inputs, max_inputs; // max_inputs -1: any number
};

// One node as translators see it.
struct msc_onnx_node {
    struct msc_onnx_import *import;
    const Onnx__NodeProto *proto;
    struct msc_onnx_rule rule;
    int64_t opset;
    int n_inputs;
    struct msc_value **inputs;                 // [n_inputs], NULL if absent
    struct msc_attr attrs[MSC_ONNX_MAX_ATTRS]; // attributes of the next joint
    int n_attrs;
    struct msc_attr *own_attrs; // if set, all attributes of the next joint
    int n_own_attrs;
    bool stays; // do not fold the next joint
    int32_t n_graphs;
    const struct msc_graph *const *graphs; // bodies of the next joint
    unsigned extra_outputs;                // bit set of outputs defined by msc_onnx__define_extra
    struct msc_value **result; // if set, receives the output of the last joint, which then does not
                               // become the node's output
};

// The operators of a domain.
struct msc_onnx_domain {
    const char *name;
    const struct msc_onnx_rule *rules;
    size_t n_rules;
};
extern const struct msc_onnx_domain msc_onnx__contrib; // com.microsoft

// Finds the rule of an operator; MSC_E_UNSUPPORTED if there is none. Both names may be NULL.
enum msc_status msc_onnx__find_rule(struct msc_onnx_rule *out, const char *domain,
                                    const char *op_type);

// The rule of an operator of domain ai.onnx.ml (graph/onnx/onnx_import_ml.c); false if there is
// none.
bool msc_onnx__find_ml_rule(struct msc_onnx_rule *out, const char *op_type);

// True if the node's operator is unknown, but the node can be an external joint: the model states
// the types of its outputs, or a plug-in infers them (graph/onnx/onnx_import_external.c).
bool msc_onnx__is_external(const struct msc_onnx_import *im, const Onnx__NodeProto *node);
enum msc_status msc_onnx__external(struct msc_onnx_node *n);
// The length that the options give a symbol of the model, by bindings or feeds; -1: none.
int64_t msc_onnx__length_of(const struct msc_onnx_import *im, const char *symbol);

// Fails with this message, to which the caller prepends file and node.
#define MSC_ONNX_UNSUPPORTED(...) MSC_FAIL(MSC_E_UNSUPPORTED, __VA_ARGS__)

// Read attributes of the node. If the node lacks the attribute, *out is `otherwise`. MSC_E_FORMAT
// if the type differs.
enum msc_status msc_onnx__int(int64_t *out, const struct msc_onnx_node *n, const char *name,
                              int64_t otherwise);
enum msc_status msc_onnx__float(float *out, const struct msc_onnx_node *n, const char *name,
                                float otherwise);
// The string is in the builder's arena.
enum msc_status msc_onnx__text(const char **out, const struct msc_onnx_node *n, const char *name,
                               const char *otherwise);
// *out is borrowed. *count is -1 if the attribute is absent.
enum msc_status msc_onnx__ints(const int64_t **out, int *count, const struct msc_onnx_node *n,
                               const char *name);
enum msc_status msc_onnx__floats(const float **out, int *count, const struct msc_onnx_node *n,
                                 const char *name);
// NULL if the node lacks the attribute.
const Onnx__AttributeProto *msc_onnx__attribute(const struct msc_onnx_node *n, const char *name);
// Reads a list of exactly `count` numbers. If the attribute is absent, fills the list with
// `otherwise`.
enum msc_status msc_onnx__ints_of(int64_t out[], const struct msc_onnx_node *n, const char *name,
                                  int count, int64_t otherwise);

// Set attributes of the next joint. Values are borrowed. A NULL value means that memory was short,
// which is reported when the joint is added.
void msc_onnx__set(struct msc_onnx_node *n, const char *key, const char *value);
void msc_onnx__set_ints(struct msc_onnx_node *n, const char *key, const int64_t values[],
                        int count);
void msc_onnx__set_int(struct msc_onnx_node *n, const char *key, int64_t value);
void msc_onnx__set_float(struct msc_onnx_node *n, const char *key, float value);
void msc_onnx__set_bool(struct msc_onnx_node *n, const char *key, bool value);
// Copies from the node those attributes of `op` that ONNX also has (ops.def), except for attributes
// that are already set. For an attribute that the node lacks, sets ONNX's default if MSC's default
// differs from it.
enum msc_status msc_onnx__copy_attrs(struct msc_onnx_node *n, enum msc_op op);

// onnx_import_weights.c: MSC_E_INVALID if a replacement weight has an unknown name, or if only
// some weights of a layer are replaced.
enum msc_status msc_onnx__check_weight_names(struct msc_onnx_import *im);
// onnx_import_pruned.c: sets is_pruned if replacement weights are smaller than the model's, and
// adjusts the groups of convolutions to them. MSC_E_INVALID if they are not all weights of the
// network.
enum msc_status msc_onnx__take_pruned(struct msc_onnx_import *im);
// True if an array has the dimensions of the initialiser, or smaller ones.
bool msc_onnx__is_part(const struct msc_array *x, const Onnx__TensorProto *of);
enum msc_status msc_onnx__check_weight_layers(struct msc_onnx_import *im);

// Finds the modules of the nodes (graph/onnx/onnx_import_module.c); call once the initialisers are
// defined.
enum msc_status msc_onnx__find_modules(struct msc_onnx_import *im);
// onnx_import_order.c: sorts the nodes of a graph, except those of bodies.
enum msc_status msc_onnx__sort_nodes(Onnx__GraphProto *graph);
// Replaces sparse initialisers and constants, also those of bodies and functions, by dense ones.
// `folder` is where external data is.
enum msc_status msc_onnx__expand_sparse(Onnx__ModelProto *m, const char *folder);

// The import's prefix followed by the name that the node's module gives, or else by the node's name
// in the file; "" if the node has no name.
const char *msc_onnx__full_name(struct msc_onnx_import *im, const Onnx__NodeProto *node);
// The alias of a value: its name in the file. Within a function, the import's prefix comes before
// the name. NULL if memory is short.
const char *msc_onnx__alias(struct msc_onnx_import *im, const char *value);
// The joint's name: the node's name if no other node or input has it, else NULL.
const char *msc_onnx__joint_name(const struct msc_onnx_node *n);

// Input `i`, or NULL if absent.
static inline struct msc_value *msc_onnx__input(const struct msc_onnx_node *n, int i) {
    return i < n->n_inputs ? n->inputs[i] : NULL;
}
// MSC_E_FORMAT if an input is absent whose bit is set in `inputs` (bit i: input i). For operators
// with optional inputs before required ones.
enum msc_status msc_onnx__require(const struct msc_onnx_node *n, unsigned inputs);
// Rank, type and dims of a constant or computed value. A symbolic dim is -1.
struct msc_onnx_shape {
    enum msc_dtype dtype;
    int n_dims;
    int64_t dims[MSC_MAX_DIMS];
};
struct msc_onnx_shape msc_onnx__shape(const struct msc_onnx_node *n, const struct msc_value *v);
// Makes a constant list of numbers.
enum msc_status msc_onnx__make_ints(struct msc_value **out, struct msc_onnx_node *n,
                                    const char *name, const int64_t values[], int count);
// Makes a scalar constant.
enum msc_status msc_onnx__make_scalar(struct msc_value **out, struct msc_onnx_node *n,
                                      enum msc_dtype dtype, double value);
// If the node has the attribute `name` (a type), sets the joint's attribute `key` to that type.
enum msc_status msc_onnx__set_dtype(struct msc_onnx_node *n, const char *key, const char *name);
// A list parameter: the attribute `name` if present, else input `i`; NULL if both are absent.
enum msc_status msc_onnx__list_param(struct msc_value **out, struct msc_onnx_node *n, int i,
                                     const char *name);
// The first element of a constant input; false if the input is not constant.
bool msc_onnx__scalar(double *out, const struct msc_value *v);

// Adds a joint with the attributes set so far, and clears them. A helper joint does not get the
// node's name; *out is its only output.
enum msc_status msc_onnx__add_helper(struct msc_value **out, struct msc_onnx_node *n,
                                     enum msc_op op, struct msc_value *const operands[],
                                     int n_operands);
// A helper joint with several outputs.
enum msc_status msc_onnx__add_helpers(struct msc_value *outputs[], int n_outputs,
                                      struct msc_onnx_node *n, enum msc_op op,
                                      struct msc_value *const operands[], int n_operands);
// Adds the joint whose outputs become the outputs of the node. But if n->result is set, sets
// *n->result to the joint's first output, and leaves the node's outputs undefined.
enum msc_status msc_onnx__add_last(struct msc_onnx_node *n, enum msc_op op,
                                   struct msc_value *const operands[], int n_operands);
// Like msc_onnx__add_last, but only for the first `n_outputs` outputs of the node.
enum msc_status msc_onnx__add_some(struct msc_onnx_node *n, enum msc_op op,
                                   struct msc_value *const operands[], int n_operands,
                                   int n_outputs);
// Defines `v` as output `i` of the node, in addition to the outputs of the last joint. Call before
// adding that joint.
enum msc_status msc_onnx__define_extra(struct msc_onnx_node *n, int i, struct msc_value *v);
// Defines `v` as the node's first output. The only other outputs are those that
// msc_onnx__define_extra has defined.
enum msc_status msc_onnx__set_output(struct msc_onnx_node *n, struct msc_value *v);

// The value with this name, which an earlier node, an input, an initialiser or an enclosing graph
// defines. *out is NULL for an optional input that the call of a function leaves out.
enum msc_status msc_onnx__lookup(struct msc_value **out, struct msc_onnx_import *im,
                                 const char *name);
// Finds a value by name; NULL if there is none. The pointer is valid until the next value is
// defined.
struct msc_onnx_value *msc_onnx__find_value(struct msc_onnx_import *im, const char *name);
enum msc_status msc_onnx__define(struct msc_onnx_import *im, const char *name,
                                 struct msc_onnx_value value);
bool msc_onnx__is_initializer(struct msc_onnx_import *im, const char *name);
// Removes the name, so that no value has it.
enum msc_status msc_onnx__hide(struct msc_onnx_import *im, const char *name);

// Steps of importing a graph (graph/onnx/onnx_import.c), for the model's graph and for bodies.
enum msc_status msc_onnx__add_initializers(struct msc_onnx_import *im);
enum msc_status msc_onnx__reserve_names(struct msc_onnx_import *im);
enum msc_status msc_onnx__add_nodes(struct msc_onnx_import *im);
enum msc_status msc_onnx__set_outputs(struct msc_onnx_import *im);
enum msc_status msc_onnx__run_passes(struct msc_onnx_import *im);
void msc_onnx__finish(struct msc_onnx_import *im);
enum msc_status msc_onnx__check_opset(int64_t opset);

// Calls of the model's functions (graph/onnx/onnx_import_function.c).
// The function that a node calls; NULL if the node is an operator.
const Onnx__FunctionProto *msc_onnx__find_function(const struct msc_onnx_import *im,
                                                   const Onnx__NodeProto *node);
enum msc_status msc_onnx__call(struct msc_onnx_import *im, const Onnx__NodeProto *node,
                               const Onnx__FunctionProto *function);

// Reads a value of the enclosing graph (graph/onnx/onnx_import_body.c).
enum msc_status msc_onnx__capture(struct msc_value **out, struct msc_onnx_import *im,
                                  const char *name);

// Reads the notes of the file (graph/notes.h).
enum msc_status msc_onnx__read_notes(struct msc_onnx_import *im);

// Translates an operator that matches its row in ops.def.
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
enum msc_status msc_onnx__cast_to_number(struct msc_onnx_node *n); // Cast since opset 6
enum msc_status msc_onnx__attention(struct msc_onnx_node *n);
enum msc_status msc_onnx__rms_norm(struct msc_onnx_node *n);
enum msc_status msc_onnx__rotary_embedding(struct msc_onnx_node *n);
enum msc_status msc_onnx__swish(struct msc_onnx_node *n);
enum msc_status msc_onnx__swiglu(struct msc_onnx_node *n);
enum msc_status msc_onnx__causal_conv(struct msc_onnx_node *n);
enum msc_status msc_onnx__range(struct msc_onnx_node *n);
enum msc_status msc_onnx__resize(struct msc_onnx_node *n);
enum msc_status msc_onnx__upsample(struct msc_onnx_node *n);

// Operators of com.microsoft.
enum msc_status msc_onnx__fused_matmul(struct msc_onnx_node *n);
enum msc_status msc_onnx__fused_gemm(struct msc_onnx_node *n);
enum msc_status msc_onnx__fused_conv(struct msc_onnx_node *n);
enum msc_status msc_onnx__bias_gelu(struct msc_onnx_node *n); // Gelu, BiasGelu, FastGelu
enum msc_status msc_onnx__quick_gelu(struct msc_onnx_node *n);
enum msc_status msc_onnx__bias_split_gelu(struct msc_onnx_node *n);
enum msc_status msc_onnx__nhwc(struct msc_onnx_node *n); // NhwcConv, NhwcFusedConv, NhwcMaxPool
enum msc_status msc_onnx__skip_layer_norm(struct msc_onnx_node *n);
enum msc_status msc_onnx__skip_rms_norm(struct msc_onnx_node *n);
enum msc_status msc_onnx__embed_layer_norm(struct msc_onnx_node *n);
enum msc_status msc_onnx__contrib_attention(struct msc_onnx_node *n);
enum msc_status msc_onnx__multi_head_attention(struct msc_onnx_node *n);
enum msc_status msc_onnx__group_query_attention(struct msc_onnx_node *n);
enum msc_status msc_onnx__contrib_rotary_embedding(struct msc_onnx_node *n);
enum msc_status msc_onnx__matmul_bits(struct msc_onnx_node *n);
enum msc_status msc_onnx__gather_blocks(struct msc_onnx_node *n);
enum msc_status msc_onnx__quantized_binary(struct msc_onnx_node *n); // QLinearAdd, QLinearMul
enum msc_status msc_onnx__quantized_unary(struct msc_onnx_node *n);  // QLinearSigmoid, ...
enum msc_status msc_onnx__quantized_pool(struct msc_onnx_node *n);
enum msc_status msc_onnx__quantized_concat(struct msc_onnx_node *n);
enum msc_status msc_onnx__quantized_conv(struct msc_onnx_node *n);
enum msc_status msc_onnx__quantized_gemm(struct msc_onnx_node *n);
enum msc_status msc_onnx__quantized_where(struct msc_onnx_node *n);
enum msc_status msc_onnx__dynamic_matmul(struct msc_onnx_node *n);
enum msc_status msc_onnx__matmul_to_float(struct msc_onnx_node *n);

#endif
