// MSCGraph: a network as a DAG of joints (operations) and tensors (edges and weights), as in MSC,
// the Multi-System Compiler of Apache TVM.
//
// A joint has ordered activation inputs, weights by role ("weight", "bias", ...) and text
// attributes. A tensor is an activation, called "joint:index", or a weight with a name of its own.
// Tensors, joints and prims (symbolic lengths) are referred to by id. Ids are indices; they are
// valid until msc_graph_finalize renumbers them. Shapes are outermost first; `layout` names their
// axes ("NCHW": dims[1] is the number of channels). A dimension of -1 is symbolic; its expression
// is in the tensor's prims. Weights keep the shape and orientation that they have in the model file
// ("OIHW", "OI", "IO").
//
//     struct msc_graph *g;
//     MSC_TRY(msc_graph_create(&g, "main"));
//     int32_t x, w, conv, relu;
//     MSC_TRY(msc_graph_add_input(&x, g, "inp_0", "inp_0", MSC_DTYPE_F32, "NCHW", 4,
//                                 (const int64_t[]){1, 3, 4, 4}));
//     MSC_TRY(msc_graph_add_weight(&w, g, "const", NULL, "OIHW", weights));
//     struct msc_joint_spec spec = {.op = MSC_OP_CONV2D, .name = "conv2d", .n_inputs = 1,
//         .inputs = &x, .n_weights = 1, .weights = &(struct msc_weight_spec){"weight", w}, ...};
//     MSC_TRY(msc_graph_add_joint(&conv, g, &spec));       // outputs are inferred
//     ... relu reading msc_graph_joint(g, conv)->outputs[0] ...
//     MSC_TRY(msc_graph_set_outputs(g, 1, &y));
//     MSC_TRY(msc_graph_finalize(g));
//
// A finalized graph is constant and may be read from several threads.
#ifndef MSC_GRAPH_GRAPH_H
#define MSC_GRAPH_GRAPH_H

#include "base/hash.h"
#include "data/array.h"
#include "graph/op.h"

MSC_PUBLIC_BEGIN

struct cJSON;
struct msc_str;
struct msc_graph;
struct msc_arena;
struct msc_array_list;
struct msc_operators;

#define MSC_NO_ID (-1)

// A tensor as plain data. The graph owns all strings, which are never NULL.
struct msc_tensor {
    const char *name;   // "conv2d:0", or a weight's name
    const char *alias;  // the model's own name of the value; "" if it has none
    const char *layout; // axis letters, "" if unknown
    enum msc_dtype dtype;
    int n_dims;
    int64_t dims[MSC_MAX_DIMS];   // -1: symbolic
    int32_t prims[MSC_MAX_DIMS];  // prim id of each symbolic dimension; MSC_NO_ID for the others
    int32_t producer;             // joint id; MSC_NO_ID for a weight
    int32_t output;               // index among the producer's outputs; MSC_NO_ID for a weight
    const struct msc_array *data; // a weight's elements; NULL for activations
};

struct msc_weight {
    const char *role;
    int32_t tensor;
};

struct msc_attr {
    const char *key;
    const char *value;
};

struct msc_joint {
    const char *name;
    const char *shared_ref; // name of an earlier joint that has one of this joint's weights, or ""
    // components joined with '.'; default: "" for inputs and constants, else "block"
    const char *scope;
    enum msc_op op;
    int32_t id; // index in the graph; in topological order once finalized
    int32_t n_inputs;
    const int32_t *inputs; // tensor ids
    int32_t n_outputs;
    const int32_t *outputs; // tensor ids
    int32_t n_weights;
    const struct msc_weight *weights; // in the order of the operator's roles
    int32_t n_attrs;
    const struct msc_attr *attrs; // sorted by key, unless the notes keep the file's order
    int32_t n_parents;
    const int32_t *parents; // joint ids, each once, in order of first use
    int32_t n_children;
    const int32_t *children;
    // For control flow: the branches `then` and `else`, or the one body of a loop. If a body reads
    // tensors of the enclosing graph, they are operands of the joint and additional inputs of the
    // body, after its own inputs. For a fused joint: a graph of the joints that it replaces.
    int32_t n_graphs;
    const struct msc_graph *const *graphs;
    // All operands in the order of the operator's roles, inputs and weights together; MSC_NO_ID
    // if an optional operand is absent. Kernels, inference and export read these.
    int32_t n_operands;
    const int32_t *operands;
};

struct msc_prim {     // a symbolic dimension, or an expression of such dimensions
    const char *name; // "bz", "MUL_2"
    // "shape", "Int", "Add", "Sub", "Mul", "FloorDiv", "FloorMod", "Max", "Min"
    const char *optype;
    int32_t n_parents;
    int32_t parents[3];
    int32_t n_attrs;
    const struct msc_attr *attrs;
};

struct msc_weight_spec {
    const char *role;
    int32_t tensor;
};

struct msc_joint_spec {
    enum msc_op op;
    const char *name; // if NULL or taken, the operator's hint is used, made unique with _1, _2, ...
    const char *scope; // NULL: "block"
    int32_t n_inputs;
    // Inputs are assigned in order to the roles that are not given as weights or attributes.
    // MSC_NO_ID omits an optional operand.
    const int32_t *inputs;
    int32_t n_weights;
    const struct msc_weight_spec *weights;
    int32_t n_attrs;
    const struct msc_attr *attrs; // missing attributes take the operator's defaults
    int32_t n_outputs;            // 0 means 1
    const char *const *aliases;   // [n_outputs], or NULL
    int32_t n_graphs;
    const struct msc_graph *const *graphs; // finalized bodies; the graph retains them
};

// Building. The functions check their arguments; msc_graph_add_joint also infers the types, shapes
// and layouts of the outputs. They fail with MSC_E_INVALID and a message that names the joint and
// the mismatch.
enum msc_status msc_graph_create(struct msc_graph **out, const char *name);
void msc_graph_destroy(struct msc_graph *g); // accepts NULL; drops one reference
// Adds a reference to a finalized graph and returns `g`. May be called from several threads.
struct msc_graph *msc_graph_retain(const struct msc_graph *g);
// Returns the existing symbol if the name is already in use.
enum msc_status msc_graph_add_symbol(int32_t *prim, struct msc_graph *g, const char *name);
enum msc_status msc_graph_add_input(int32_t *tensor, struct msc_graph *g, const char *name,
                                    const char *alias, enum msc_dtype dtype, const char *layout,
                                    int n_dims, const int64_t dims[]);
// Like msc_graph_add_input, but with a prim for each dimension that is -1 (MSC_NO_ID for the
// others).
enum msc_status msc_graph_add_symbolic_input(int32_t *tensor, struct msc_graph *g, const char *name,
                                             const char *alias, enum msc_dtype dtype,
                                             const char *layout, int n_dims, const int64_t dims[],
                                             const int32_t prims[]);
// Retains `data`. MSC_E_INVALID if the name is taken.
enum msc_status msc_graph_add_weight(int32_t *tensor, struct msc_graph *g, const char *name,
                                     const char *alias, const char *layout,
                                     const struct msc_array *data);
enum msc_status msc_graph_add_joint(int32_t *joint, struct msc_graph *g,
                                    const struct msc_joint_spec *spec);
enum msc_status msc_graph_set_outputs(struct msc_graph *g, int32_t n, const int32_t tensors[]);
enum msc_status msc_graph_set_alias(struct msc_graph *g, int32_t tensor, const char *alias);

// Rewriting, between two calls of msc_graph_finalize. Replaces `from` by `to` in the graph's
// outputs and in all consumers of `from`, except the joint that produces `to`. If `from` is a graph
// output, `to` takes over the alias of `from`. Types and known dimensions must agree.
enum msc_status msc_graph_replace_tensor(struct msc_graph *g, int32_t from, int32_t to);
// Replaces one operand of a joint by `to`. Types and known dimensions must agree.
enum msc_status msc_graph_replace_operand(struct msc_graph *g, int32_t joint, int32_t operand,
                                          int32_t to);
// When the graph is finalized, no joint may still read an output of the removed joint.
enum msc_status msc_graph_remove_joint(struct msc_graph *g, int32_t joint);
// Sets a weight's elements. A wide graph (graph/wide.h) holds a second graph, in the model's own
// types. The same weight is set there too, and in both graphs its elements are rounded to the type
// that it has in the model.
enum msc_status msc_graph_set_weight_data(struct msc_graph *g, int32_t tensor,
                                          const struct msc_array *data);
// Removes joints, weights and prims that no output depends on (inputs remain). Sorts joints
// topologically (stable), renumbers all ids, and rebuilds parents, children and consumers, which
// can only be queried after this call. MSC_E_INVALID if joints form a cycle or read a removed
// joint.
enum msc_status msc_graph_finalize(struct msc_graph *g);
// Copies a finalized graph. The copy shares the elements of the weights.
enum msc_status msc_graph_clone(struct msc_graph **out, const struct msc_graph *g);

// Makes a graph that contains only this joint and has the joint's outputs as its outputs. `arrays`
// [n_operands] holds the operands' elements (NULL if an operand is absent). Operands that determine
// lengths become constants; other activations become inputs. Lengths that are known only after
// computing the joint remain symbols. *out is owned by the caller.
enum msc_status msc_graph_isolate(struct msc_graph **out, const struct msc_graph *g, int32_t joint,
                                  const struct msc_array *const arrays[]);

// Queries. Everything returned is borrowed from the graph. An id out of range is a programming
// error (assert).
const char *msc_graph_name(const struct msc_graph *g);
int32_t msc_graph_n_joints(const struct msc_graph *g);
int32_t msc_graph_n_tensors(const struct msc_graph *g);
int32_t msc_graph_n_prims(const struct msc_graph *g);
const struct msc_joint *msc_graph_joint(const struct msc_graph *g, int32_t id);
const struct msc_tensor *msc_graph_tensor(const struct msc_graph *g, int32_t id);
const struct msc_prim *msc_graph_prim(const struct msc_graph *g, int32_t id);
int32_t msc_graph_n_inputs(const struct msc_graph *g);
// Tensor ids of inputs and outputs; a negative `i` counts from the end.
int32_t msc_graph_input(const struct msc_graph *g, int32_t i);
int32_t msc_graph_n_outputs(const struct msc_graph *g);
int32_t msc_graph_output(const struct msc_graph *g, int32_t i);
// Find an id by name; MSC_NO_ID if there is none. The name of a tensor takes precedence over the
// alias of another tensor.
int32_t msc_graph_find_joint(const struct msc_graph *g, const char *name);
int32_t msc_graph_find_tensor(const struct msc_graph *g, const char *name_or_alias);
int32_t msc_graph_find_prim(const struct msc_graph *g, const char *name);
// Lists the joints that read this tensor, in topological order, and returns their number.
int32_t msc_graph_consumers(const struct msc_graph *g, int32_t tensor, const int32_t **joints);
// The joint that produces the tensor; for a weight, the first joint that reads it.
int32_t msc_graph_producer(const struct msc_graph *g, int32_t tensor);
// The weight that gives the tensor its elements: the tensor itself, or the weight of the
// `constant` joint that produces it. MSC_NO_ID if the elements are not known before the graph
// runs.
int32_t msc_graph_weight_of(const struct msc_graph *g, int32_t tensor);
bool msc_graph_is_output(const struct msc_graph *g, int32_t tensor);
bool msc_graph_is_bound(const struct msc_graph *g); // true if no dimension is symbolic
// The producers of the graph's inputs (entries) and of its outputs (exits), each once.
int32_t msc_graph_entries(const struct msc_graph *g, const int32_t **joints);
int32_t msc_graph_exits(const struct msc_graph *g, const int32_t **joints);

// Tensors.
const char *msc_tensor_label(const struct msc_tensor *t);  // its alias if it has one, else its name
int64_t msc_tensor_n_elements(const struct msc_tensor *t); // -1 if symbolic
int msc_tensor_axis(const struct msc_tensor *t, char letter); // axis of a layout letter, or -1
int64_t msc_tensor_dim(const struct msc_tensor *t, int axis); // a negative axis counts from the end
bool msc_tensor_equal(const struct msc_graph *g, const struct msc_tensor *a,
                      const struct msc_graph *h, const struct msc_tensor *b);

// Joints. `i` is the position in the joint's list; a negative `i` counts from the end.
int32_t msc_joint_input(const struct msc_joint *j, int32_t i);  // tensor id
int32_t msc_joint_output(const struct msc_joint *j, int32_t i); // tensor id
int32_t msc_joint_parent(const struct msc_joint *j, int32_t i); // joint id
int32_t msc_joint_child(const struct msc_joint *j, int32_t i);  // joint id
// Attribute getters return false if the key is absent or its value cannot be read as this type.
const char *msc_joint_attr(const struct msc_joint *j, const char *key); // NULL if absent
bool msc_joint_attr_i64(const struct msc_joint *j, const char *key, int64_t *out);
bool msc_joint_attr_float(const struct msc_joint *j, const char *key, float *out);
bool msc_joint_attr_bool(const struct msc_joint *j, const char *key, bool *out);
// Reads at most `max` numbers of a list ("1,2"). Returns the length of the list, or -1 if the key
// is absent or its value is not a list.
int msc_joint_attr_list(const struct msc_joint *j, const char *key, int64_t out[], int max);
int msc_joint_attr_floats(const struct msc_joint *j, const char *key, float out[], int max);
int32_t msc_joint_weight(const struct msc_joint *j, const char *role); // tensor id or MSC_NO_ID
// Position of the first operand with this role ("weight"), or -1 if it is absent.
int msc_joint_operand(const struct msc_joint *j, const char *role);
// Visits the inputs of a joint in the order of msc_joint_spec, which are assigned to the roles in
// order. So an absent operand before another input is visited, too, as MSC_NO_ID.
void msc_graph_visit_inputs(const struct msc_graph *g, const struct msc_joint *j,
                            void (*visit)(void *payload, int32_t tensor), void *payload);

// True if names, types, shapes, attributes, connections and, if requested, weights' elements are
// equal.
bool msc_graph_equal(const struct msc_graph *a, const struct msc_graph *b, bool with_data);
// Covers everything except weights' elements, notes, the order of attributes, and the plug-ins that
// compute external joints.
struct msc_hash msc_graph_hash(const struct msc_graph *g);
struct msc_hash msc_graph_weights_hash(const struct msc_graph *g); // names and elements of weights

// Text forms (graph/print.c, graph/json_write.c, graph/prototxt.c). They are byte for byte what MSC
// writes, except that attributes are sorted by key. The printed form and the JSON form also have
// what MSC leaves out, so both read back as the same graph. The printed form is safe to show on a
// terminal, whatever the names contain (base/shown.h); docs/text-form.md describes it.
void msc_graph_print(const struct msc_graph *g, struct msc_str *out);
void msc_joint_print(const struct msc_graph *g, int32_t joint, struct msc_str *out);
void msc_tensor_print(const struct msc_graph *g, int32_t tensor, struct msc_str *out);
void msc_graph_write_json(const struct msc_graph *g, struct msc_str *out);
void msc_graph_write_prototxt(const struct msc_graph *g, struct msc_str *out);
// Describes inputs and outputs, and counts joints by operator: {"inputs": [...], "outputs": [...],
// "nodes": {"total": n, ...}}. *out is owned by the caller.
enum msc_status msc_graph_inspect(const struct msc_graph *g, struct cJSON **out);
// Read the JSON form and the printed form. `weights` (may be NULL) holds the weights' elements by
// name, and their codes (data/array_codes.h), which the arrays then have. `operators` (may be NULL)
// has the plug-ins for external joints. Error messages call the text `name`. *out is owned by the
// caller.
enum msc_status msc_graph_read_json(struct msc_graph **out, const char *text, size_t length,
                                    const char *name, const struct msc_array_list *weights,
                                    struct msc_operators *operators);
enum msc_status msc_graph_read_text(struct msc_graph **out, const char *text, size_t length,
                                    const char *name, const struct msc_array_list *weights,
                                    struct msc_operators *operators);

// Lists the weights of a graph and of its bodies under the names that they have in a weights file,
// and after them their codes (data/array_codes.h). `prefix` is "" for a whole network. MSC_E_STATE
// if a weight has no elements.
enum msc_status msc_graph_list_weights(struct msc_array_list *list, struct msc_arena *arena,
                                       const struct msc_graph *g, const char *prefix);
// The prefix of the names that a body's weights have in the weights file, such as "if_1/then/". It
// begins with `prefix`, the prefix of the enclosing graph. NULL if out of memory.
const char *msc_graph_body_prefix(struct msc_arena *arena, const char *prefix, enum msc_op op,
                                  const char *joint, int32_t which);

// A symbol and the length that it is bound to (graph/passes/bind.h).
struct msc_binding {
    const char *symbol;
    int64_t value;
};
// The symbol for the number of samples: the first symbolic length among the first dimensions of the
// inputs. If an input lacks this symbol, but all have the symbol for the number of sequences of a
// recurrent joint, it is that one. MSC_NO_ID if there is none.
int32_t msc_graph_sample_symbol(const struct msc_graph *g);
// Lists the names that can be bound: symbols that are lengths of inputs, and inputs that hold one
// integer. The list is in the arena; the graph owns the names.
enum msc_status msc_graph_bindables(const char *const **out, size_t *n, const struct msc_graph *g,
                                    struct msc_arena *arena);
// Returns MSC_E_INVALID with a message that `symbol` cannot be bound. The message begins with
// `place`, suggests a similar name and lists all names.
enum msc_status msc_graph_fail_binding(const struct msc_graph *g, const char *place,
                                       const char *symbol);
// Writes the text form if `path` ends in .msc, else the JSON form (.json, which is appended if it
// is missing). The weights are written next to it, in a .safetensors of the same name.
enum msc_status msc_graph_save(const struct msc_graph *g, const char *path);
// True if the path names a file in one of these forms: it ends in .msc or .json.
bool msc_graph_can_save(const char *path);

MSC_PUBLIC_END

#endif
