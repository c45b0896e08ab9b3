// Shared by graph/onnx/onnx_export*.c: the model while it is assembled, and one writer for each
// family of operators. All data is in one arena; elements of weights are borrowed from the graph.
//
// Three files hold one set of mutually recursive functions: onnx_export.c writes a graph,
// onnx_export_ops.c selects the writer of a joint, and onnx_export_body.c writes control flow,
// whose bodies are graphs again.
#ifndef MSC_GRAPH_ONNX_ONNX_EXPORT_INTERNAL_H
#define MSC_GRAPH_ONNX_ONNX_EXPORT_INTERNAL_H

#include "base/alloc.h"
#include "graph/graph_internal.h"
#include "graph/onnx/onnx.h"
#include "graph/onnx/onnx_file_internal.h"

// Lookup tables that unpack weights (graph/onnx/onnx_export_pack.c); NULL until a weight needs
// them.
struct msc_onnx_unpacking {
    const char *tables[2][8][2]; // [width - 1][first bit][1 if the part includes the sign bit]
};

struct msc_onnx_export {
    const struct msc_graph
        *graph;                 // its tensors have the types that the current joint is written in
    struct msc_onnx_wide *wide; // NULL: all joints are written in the model's own types
    const struct msc_onnx_export_options *options; // never NULL
    struct msc_arena arena;
    struct msc_graph_names value_names, node_names; // names in use
    const char **names; // [n_tensors] name of the value that holds a tensor
    // [n_tensors] for an edited output of the model: its public name, which the value after the
    // edit gets (the value before the edit has names[i]); NULL for other tensors. The array is NULL
    // in bodies, whose outputs have no edits.
    const char **outputs_seen;
    struct msc_onnx_moved **moved; // [n_tensors] tensors that have been written as integers
    bool *is_unread;               // [n_joints] true: omit the joint; NULL: omit none
    bool *is_written;              // [n_tensors] true: the weight's initialiser has been written
    struct msc_array **arrays;     // references to arrays that the export created
    size_t n_arrays, arrays_capacity;
    Onnx__NodeProto **nodes;
    size_t n_nodes, nodes_capacity;
    Onnx__TensorProto **initializers; // each the first member of a struct msc_onnx_initializer
    size_t n_initializers, initializers_capacity;
    struct msc_onnx_pair *pairs; // edited tensors written so far
    size_t n_pairs, pairs_capacity;
    struct msc_onnx_unpacking unpacking;
    int opset;                          // lowest opset that supports all nodes so far
    Onnx__OperatorSetIdProto **domains; // of external joints, each once
    size_t n_domains, domains_capacity;
    struct msc_onnx_function **functions; // bodies of external joints, in the order of their calls
    size_t n_functions, functions_capacity;
};

struct msc_onnx_initializer {
    Onnx__TensorProto tensor;
    const struct msc_array *source; // holds the elements; NULL: they are in `tensor`
};

static inline struct msc_onnx_initializer *msc_onnx__initializer(Onnx__TensorProto *t) {
    return (struct msc_onnx_initializer *)(void *)t;
}

// One joint, as writers see it.
struct msc_onnx_joint {
    struct msc_onnx_export *e;
    const struct msc_joint *joint;
    const char **inputs;   // [n_inputs] value names after edits; "" if absent
    size_t n_inputs;       // the joint's operands, plus a bias if a form adds it
    Onnx__NodeProto *node; // the last node added, which produces the joint's outputs
};

typedef enum msc_status (*msc_onnx_writer)(struct msc_onnx_joint *j);

// Writes the model, of n_bytes, to `path` or, if it is too large for one file, also to PATH.data.
enum msc_status msc_onnx__write_file(struct msc_onnx_export *e, const Onnx__ModelProto *model,
                                     const char *path, uint64_t n_bytes);

// NULL if the operator cannot be exported to ONNX.
msc_onnx_writer msc_onnx__find_writer(enum msc_op op);

// Returns an unused name: `wanted`, or `wanted` followed by the first free number.
const char *msc_onnx__free_name(struct msc_onnx_export *e, struct msc_graph_names *names,
                                const char *wanted);

// Adds a node that reads `inputs` (trailing "" are dropped). Its name is `name`, made unique; its
// outputs are `outputs`, borrowed.
enum msc_status msc_onnx__add_node(Onnx__NodeProto **out, struct msc_onnx_export *e,
                                   const char *op_type, const char *name,
                                   const char *const inputs[], size_t n_inputs,
                                   const char *const outputs[], size_t n_outputs);
// Adds the node that has the joint's name and outputs.
enum msc_status msc_onnx__add_own(struct msc_onnx_joint *j, const char *const inputs[],
                                  size_t n_inputs);

enum msc_status msc_onnx__put_int(struct msc_onnx_export *e, Onnx__NodeProto *node,
                                  const char *name, int64_t value);
enum msc_status msc_onnx__put_float(struct msc_onnx_export *e, Onnx__NodeProto *node,
                                    const char *name, float value);
enum msc_status msc_onnx__put_text(struct msc_onnx_export *e, Onnx__NodeProto *node,
                                   const char *name, const char *value);
enum msc_status msc_onnx__put_ints(struct msc_onnx_export *e, Onnx__NodeProto *node,
                                   const char *name, const int64_t values[], size_t n);

enum msc_status msc_onnx__put_floats(struct msc_onnx_export *e, Onnx__NodeProto *node,
                                     const char *name, const float values[], size_t n);
// Adds an attribute that is a list of strings: the parts of `text` between commas.
enum msc_status msc_onnx__put_texts(struct msc_onnx_export *e, Onnx__NodeProto *node,
                                    const char *name, const char *text);

enum msc_status msc_onnx__put_graph(struct msc_onnx_export *e, Onnx__NodeProto *node,
                                    const char *name, Onnx__GraphProto *graph);

// Writes the graph's notes and the metadata of the options. Call after the graph is described.
enum msc_status msc_onnx__write_notes(Onnx__ModelProto *model, struct msc_onnx_export *e);

// Steps of graph/onnx/onnx_export.c, for the model's graph and for bodies.
enum msc_status msc_onnx__name_tensors(struct msc_onnx_export *e);
enum msc_status msc_onnx__write_joints(struct msc_onnx_export *e);
enum msc_status msc_onnx__describe_all(Onnx__ValueInfoProto ***out, size_t *n_out,
                                       struct msc_onnx_export *e, const int32_t tensors[],
                                       int32_t n);

// Writers of graph/onnx/onnx_export_body.c.
enum msc_status msc_onnx__write_if(struct msc_onnx_joint *j);
enum msc_status msc_onnx__write_loop(struct msc_onnx_joint *j);
enum msc_status msc_onnx__write_scan(struct msc_onnx_joint *j);

// Writes the body of an external joint, whose inputs are all its own.
enum msc_status msc_onnx__write_held(Onnx__GraphProto **out, struct msc_onnx_joint *j);

// Functions of the model (graph/onnx/onnx_export_function.c). add_function keeps the body of the
// joint j until put_functions adds it to the model, once the opset is settled.
enum msc_status msc_onnx__add_function(struct msc_onnx_joint *j, Onnx__GraphProto *body);
Onnx__GraphProto *msc_onnx__function_body(const struct msc_onnx_export *e, size_t i);
enum msc_status msc_onnx__put_functions(Onnx__ModelProto *model, struct msc_onnx_export *e,
                                        Onnx__OperatorSetIdProto **opset);

// Adds a domain to the operator sets that the model imports (graph/onnx/onnx_export_external.c).
enum msc_status msc_onnx__add_domain(struct msc_onnx_export *e, const char *domain,
                                     int64_t version);
// Writer of graph/onnx/onnx_export_external.c.
enum msc_status msc_onnx__write_external(struct msc_onnx_joint *j);
// Makes the names of values in the graphs of external joints' attributes unavailable for others.
enum msc_status msc_onnx__keep_names_free(struct msc_onnx_export *e, const struct msc_graph *g);
// The types of outputs of external joints that are not outputs of the graph: an import needs them.
enum msc_status msc_onnx__describe_external(Onnx__ValueInfoProto ***out, size_t *n_out,
                                            struct msc_onnx_export *e);

// Computes the lowest opset (graph/onnx/onnx_export_opset.c). begin_opset sets it to the model's
// own opset. require_types raises it if a joint's element types need a higher one; call it for each
// joint that is written.
void msc_onnx__begin_opset(struct msc_onnx_export *e);
void msc_onnx__require_types(struct msc_onnx_export *e, const struct msc_joint *j);
// Call after all nodes are written: sets e->opset and converts the nodes to this opset.
enum msc_status msc_onnx__settle_opset(struct msc_onnx_export *e);
int64_t msc_onnx__ir_version(int64_t opset); // the lowest IR version that supports the opset

// Writer of graph/onnx/onnx_export_gelu.c.
enum msc_status msc_onnx__write_gelu(struct msc_onnx_joint *j);

// Writer of graph/onnx/onnx_export_resize.c.
enum msc_status msc_onnx__write_resize(struct msc_onnx_joint *j);

// Writers of graph/onnx/onnx_export_direct.c.
enum msc_status msc_onnx__write_direct(struct msc_onnx_joint *j);
enum msc_status msc_onnx__write_implied(struct msc_onnx_joint *j);
// Adds the joint's attributes with these keys (separated by spaces) to the node, under ONNX's
// names. Skips absent attributes and those that ONNX has as inputs.
enum msc_status msc_onnx__put_attrs(struct msc_onnx_joint *j, const char *keys);
// The value of a float parameter: the operand with this role, else the attribute as an initialiser
// of the first operand's type; "" if neither exists.
enum msc_status msc_onnx__real_input(const char **out, struct msc_onnx_joint *j, const char *key);

// Adds an initialiser, unless an equal one with the same `wanted` name exists. `data` is borrowed
// until the model is saved. *out is its name: `wanted`, made unique.
enum msc_status msc_onnx__add_initializer(const char **out, struct msc_onnx_export *e,
                                          const char *wanted, enum msc_onnx_type type, int n_dims,
                                          const int64_t dims[], const void *data, size_t n_bytes);
// Adds a list of integers or floats as an initialiser named after the joint; copies the list.
enum msc_status msc_onnx__int64s(const char **out, struct msc_onnx_joint *j, const char *role,
                                 const int64_t values[], size_t n);
enum msc_status msc_onnx__floats32(const char **out, struct msc_onnx_joint *j, const char *role,
                                   const float values[], size_t n);
// The value of a list parameter: the operand with this role, else the attribute as an initialiser;
// "" if neither exists.
enum msc_status msc_onnx__list_input(const char **out, struct msc_onnx_joint *j, const char *role);

// Like msc_onnx__add_initializer, but with exactly this name, which must already be reserved.
enum msc_status msc_onnx__put_initializer(struct msc_onnx_export *e, const char *name,
                                          enum msc_onnx_type type, int n_dims, const int64_t dims[],
                                          const void *data, size_t n_bytes);

// An integer type of ONNX and its range.
struct msc_onnx_integers {
    enum msc_onnx_type onnx;
    int32_t low, high;
    int bits;
};
// Picks the type for a quantisation. 4-bit types are used only if `takes_small`. MSC_E_UNSUPPORTED
// if no type is wide enough.
enum msc_status msc_onnx__pick_integers(struct msc_onnx_integers *out, const struct msc_quant *q,
                                        bool takes_small);
// Adds an initialiser of an integer type. `name` may be NULL, which means that memory was short.
enum msc_status msc_onnx__add_integers(const char **out, struct msc_onnx_export *e,
                                       const char *name, const struct msc_onnx_integers *type,
                                       int n_dims, const int64_t dims[], const int32_t values[],
                                       size_t n);
// Adds a weight's integers, stored in the number of bits that graph/packing.h determines. Nodes
// unpack them to `type`.
enum msc_status msc_onnx__put_packed(const char **out, struct msc_onnx_export *e, const char *base,
                                     const struct msc_onnx_integers *type, int32_t bits, int n_dims,
                                     const int64_t dims[], const int32_t values[], size_t n);
// True for a `dequantize` of constant 4-bit codes (graph/onnx/onnx_export_blocks.c).
// msc_onnx__store_codes packs such codes into 4-bit initialisers, and sets the joint's `inputs` to
// the names of these initialisers.
bool msc_onnx__has_codes(const struct msc_onnx_joint *j);
enum msc_status msc_onnx__store_codes(struct msc_onnx_joint *j);
// Adds a node with one output. *out is the output's name: `wanted`, made unique. `out` may point to
// one of the inputs. `wanted` may be NULL, which means that memory was short.
enum msc_status msc_onnx__add_step(const char **out, struct msc_onnx_export *e, const char *op_type,
                                   const char *wanted, const char *const inputs[], size_t n_inputs);

// Prepares the inputs of a DequantizeLinear along the axis of `q`. inputs[0] holds the tensor's
// float value and is replaced by the quantised integers; inputs[1] and inputs[2] become scale and
// zero point.
enum msc_status msc_onnx__quantize_integers(const char *inputs[3], struct msc_onnx_export *e,
                                            int32_t tensor, const struct msc_quant *q);
// Replaces *value, which holds the tensor, by the quantised value.
enum msc_status msc_onnx__quantize_activation(const char **value, struct msc_onnx_export *e,
                                              int32_t tensor, const struct msc_quant *q);
// Adds scale and zero point with the given dims. out[1] is "" if no zero point is needed.
enum msc_status msc_onnx__add_parameters(const char *out[2], struct msc_onnx_export *e,
                                         const char *base, const struct msc_quant *q,
                                         const struct msc_onnx_integers *type, int n_dims,
                                         const int64_t dims[]);
// Quantises these elements of a weight and writes them as the value `result`.
enum msc_status msc_onnx__quantize_weight(const char *result, struct msc_onnx_export *e,
                                          int32_t weight, const struct msc_array *elements,
                                          const struct msc_quant *q);
// Writes a weight that has codes (data/array_codes.h) as these codes, as the value `result`.
enum msc_status msc_onnx__write_codes(const char *result, struct msc_onnx_export *e, int32_t weight,
                                      const struct msc_array *elements);
// Writes those edited outputs of the model that were not written for a consumer.
enum msc_status msc_onnx__edit_outputs(struct msc_onnx_export *e);
// Writes the rounded bias `result`: integers with a DequantizeLinear.
enum msc_status msc_onnx__round_bias(const char *result, struct msc_onnx_export *e, int32_t bias,
                                     const struct msc_array *elements,
                                     const struct msc_bias_rounding *rounding);
// The value that slot (joint, operand) reads if it is edited, else "".
enum msc_status msc_onnx__edited_input(const char **out, struct msc_onnx_export *e,
                                       const struct msc_joint *joint, int32_t operand);
// The value that an operand reads, edited if there is an edit; "" if absent.
enum msc_status msc_onnx__operand(const char **out, struct msc_onnx_export *e,
                                  const struct msc_joint *joint, int32_t operand);
// The value that holds a tensor, in the type that the tensor has in e->graph. For a weight, first
// writes its initialiser.
enum msc_status msc_onnx__value(const char **out, struct msc_onnx_export *e, int32_t tensor);

// Functions of graph/onnx/onnx_export_wide.c, for wide graphs (graph/wide.h). For other graphs they
// change nothing.
//
// Call before anything is named. Decides which joints are written in float32, and sets e->graph to
// the graph in the model's own types.
enum msc_status msc_onnx__find_wide(struct msc_onnx_export *e);
// Sets e->graph to the graph that has the types in which the joint is written. Returns the joint of
// that graph.
const struct msc_joint *msc_onnx__take_types(struct msc_onnx_export *e, int32_t joint);
// True if the graph has a wide graph, but e->graph is the one with the model's own types.
bool msc_onnx__is_narrow(const struct msc_onnx_export *e);
// Sets e->graph to the wide graph. Returns the previous e->graph.
const struct msc_graph *msc_onnx__widen_types(struct msc_onnx_export *e);
// Replaces the value that the tensor's producer wrote by a value in the type that the tensor has in
// e->graph.
enum msc_status msc_onnx__typed(const char **value, struct msc_onnx_export *e, int32_t tensor);
// Like msc_onnx__typed, for the value after an edit, which is float32.
enum msc_status msc_onnx__typed_edit(const char **value, struct msc_onnx_export *e, int32_t tensor);
// The elements of a weight in the model's own type; NULL: none.
const struct msc_array *msc_onnx__stored(const struct msc_onnx_export *e, int32_t weight);
// Call after edited outputs have been named. Gives the public name to the Cast of an output that is
// written in float32.
enum msc_status msc_onnx__name_wide_outputs(struct msc_onnx_export *e);
// Call after a joint is written. If it is written in float32 and produces outputs of the model,
// adds a Cast from each of them to the public output.
enum msc_status msc_onnx__cast_outputs(struct msc_onnx_export *e, const struct msc_joint *j);
// If the value after the edit of an output has another type than the public output, adds a Cast
// from the value to the public output.
enum msc_status msc_onnx__cast_edited_output(bool *is_cast, struct msc_onnx_export *e,
                                             int32_t tensor, const char *value);

#endif
