// MSCGraph: a network as a DAG of joints (operations) and tensors (edges and weights).
//
// A joint has ordered activation inputs, weights by role ("weight", "bias", ...) and text
// attributes. A tensor is an activation "joint:index", or a weight under its own name. Tensors,
// joints and prims are referred to by id: an index that stays valid until msc_graph_finalize
// removes what is dead. Shapes are outermost first, in the axis order that `layout` names
// ("NCHW": dims[1] are channels); -1 is a dimension known only as a symbol, whose expression the
// tensor's prims name. Weights keep the model's own shape and orientation ("OIHW", "OI", "IO").
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

#define MSC_NO_ID (-1)

// Plain data, read through the getters below; text is owned by the graph and never NULL.
struct msc_tensor {
    const char *name;   // "conv2d:0", or a weight's name
    const char *alias;  // the model's own name of the value; "" when there is none
    const char *layout; // axis letters, "" when unknown
    enum msc_dtype dtype;
    int n_dims;
    int64_t dims[MSC_MAX_DIMS];   // -1: symbolic
    int32_t prims[MSC_MAX_DIMS];  // prim id of each dim, MSC_NO_ID where it is a number
    int32_t producer;             // joint id; MSC_NO_ID for a weight
    int32_t output;               // which output of the producer; MSC_NO_ID for a weight
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
    const char *shared_ref; // first joint that owns one of these weights, or ""
    const char *scope;      // components joined with '.', "" or "block" by default
    enum msc_op op;
    int32_t id; // its index in topological order once finalized
    int32_t n_inputs;
    const int32_t *inputs; // tensor ids
    int32_t n_outputs;
    const int32_t *outputs; // tensor ids
    int32_t n_weights;
    const struct msc_weight *weights; // sorted by role order of the operator
    int32_t n_attrs;
    const struct msc_attr *attrs; // sorted by key
    int32_t n_parents;
    const int32_t *parents; // joint ids, once each, in order of first use
    int32_t n_children;
    const int32_t *children;
    // Bodies of control flow, in the operator's order: then and else, or one. What they read of the
    // graph around them are operands, and inputs of the body behind its own. Or what several joints
    // were before they became this one.
    int32_t n_graphs;
    const struct msc_graph *const *graphs;
    // Operands in the operator's own order (of its roles, inputs and weights together);
    // MSC_NO_ID where an optional one is absent. What kernels, inference and export read.
    int32_t n_operands;
    const int32_t *operands;
};

struct msc_prim {     // a symbolic dimension or an expression over such
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
    const char *name;  // NULL or taken: the operator's hint, made unique with _1, _2, ...
    const char *scope; // NULL: "block"
    int32_t n_inputs;
    // Dealt to the operator's roles in order, past those given as weights or attributes. MSC_NO_ID
    // leaves an optional operand out.
    const int32_t *inputs;
    int32_t n_weights;
    const struct msc_weight_spec *weights;
    int32_t n_attrs;
    const struct msc_attr *attrs; // absent ones take the operator's defaults
    int32_t n_outputs;            // 0: one
    const char *const *aliases;   // [n_outputs], or NULL
    int32_t n_graphs;
    const struct msc_graph *const *graphs; // finalized bodies, retained
};

// Building. Every add checks its operands and infers types, shapes and layouts of its outputs;
// MSC_E_INVALID names the joint and what does not fit.
enum msc_status msc_graph_create(struct msc_graph **out, const char *name);
void msc_graph_destroy(struct msc_graph *g); // accepts NULL; drops one reference
// One more reference to a finalized graph; safe from several threads. Returns `g`.
struct msc_graph *msc_graph_retain(const struct msc_graph *g);
// A name that is there already gives the same symbol.
enum msc_status msc_graph_add_symbol(int32_t *prim, struct msc_graph *g, const char *name);
enum msc_status msc_graph_add_input(int32_t *tensor, struct msc_graph *g, const char *name,
                                    const char *alias, enum msc_dtype dtype, const char *layout,
                                    int n_dims, const int64_t dims[]);
// The same with a prim for every dim that is -1 (MSC_NO_ID elsewhere).
enum msc_status msc_graph_add_symbolic_input(int32_t *tensor, struct msc_graph *g, const char *name,
                                             const char *alias, enum msc_dtype dtype,
                                             const char *layout, int n_dims, const int64_t dims[],
                                             const int32_t prims[]);
// Retains `data`. A taken name is MSC_E_INVALID.
enum msc_status msc_graph_add_weight(int32_t *tensor, struct msc_graph *g, const char *name,
                                     const char *alias, const char *layout,
                                     const struct msc_array *data);
enum msc_status msc_graph_add_joint(int32_t *joint, struct msc_graph *g,
                                    const struct msc_joint_spec *spec);
enum msc_status msc_graph_set_outputs(struct msc_graph *g, int32_t n, const int32_t tensors[]);
enum msc_status msc_graph_set_alias(struct msc_graph *g, int32_t tensor, const char *alias);

// Rewriting, between finalizes. Readers of `from` (and graph outputs) read `to` instead, but for
// the joint that makes `to`. An output hands its alias on. Types and known dimensions must agree.
enum msc_status msc_graph_replace_tensor(struct msc_graph *g, int32_t from, int32_t to);
// A removed joint's outputs must have no reader left when the graph is finalized.
enum msc_status msc_graph_remove_joint(struct msc_graph *g, int32_t joint);
enum msc_status msc_graph_set_weight_data(struct msc_graph *g, int32_t tensor,
                                          const struct msc_array *data);
// Drops dead joints, weights and prims that nothing reads (inputs stay), sorts topologically
// (stable), renumbers, and rebuilds parents, children, consumers. Must be called before any query
// of those. A graph whose joints form a cycle, or read a removed joint, is MSC_E_INVALID.
enum msc_status msc_graph_finalize(struct msc_graph *g);
// A copy of a finalized graph that shares the weights' elements.
enum msc_status msc_graph_clone(struct msc_graph **out, const struct msc_graph *g);

// One joint as a graph of its own, which makes its outputs: operands that tell lengths are
// constants, other activations are inputs. `arrays` [n_operands] hold the operands (NULL where
// absent). Lengths that only computing tells stay symbols. *out is owned by the caller.
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
int32_t msc_graph_input(const struct msc_graph *g, int32_t i); // tensor id; negative from the end
int32_t msc_graph_n_outputs(const struct msc_graph *g);
int32_t msc_graph_output(const struct msc_graph *g, int32_t i);
// MSC_NO_ID when there is none. A tensor's own name comes before an alias.
int32_t msc_graph_find_joint(const struct msc_graph *g, const char *name);
int32_t msc_graph_find_tensor(const struct msc_graph *g, const char *name_or_alias);
int32_t msc_graph_find_prim(const struct msc_graph *g, const char *name);
// Joints that read this tensor (weights: their holders), exactly those, in topological order.
int32_t msc_graph_consumers(const struct msc_graph *g, int32_t tensor, const int32_t **joints);
// The joint that makes it; for a weight the first joint that holds it.
int32_t msc_graph_producer(const struct msc_graph *g, int32_t tensor);
// The weight behind a tensor: itself, or what the `constant` joint that makes it holds; MSC_NO_ID:
// its elements are not there before anything runs.
int32_t msc_graph_weight_of(const struct msc_graph *g, int32_t tensor);
bool msc_graph_is_output(const struct msc_graph *g, int32_t tensor);
bool msc_graph_is_bound(const struct msc_graph *g); // no symbolic dims
// Unique producers of inputs and of outputs.
int32_t msc_graph_entries(const struct msc_graph *g, const int32_t **joints);
int32_t msc_graph_exits(const struct msc_graph *g, const int32_t **joints);

// Tensors.
const char *msc_tensor_label(const struct msc_tensor *t);     // its alias, else its name
int64_t msc_tensor_n_elements(const struct msc_tensor *t);    // -1 when symbolic
int msc_tensor_axis(const struct msc_tensor *t, char letter); // axis of a layout letter, or -1
int64_t msc_tensor_dim(const struct msc_tensor *t, int axis); // negative counts from the end
bool msc_tensor_equal(const struct msc_graph *g, const struct msc_tensor *a,
                      const struct msc_graph *h, const struct msc_tensor *b);

// Joints. Ids by position; a negative one counts from the end.
int32_t msc_joint_input(const struct msc_joint *j, int32_t i);  // tensor id
int32_t msc_joint_output(const struct msc_joint *j, int32_t i); // tensor id
int32_t msc_joint_parent(const struct msc_joint *j, int32_t i); // joint id
int32_t msc_joint_child(const struct msc_joint *j, int32_t i);  // joint id
// Attribute getters return false when the key is absent or not of that form.
const char *msc_joint_attr(const struct msc_joint *j, const char *key); // NULL when absent
bool msc_joint_attr_i64(const struct msc_joint *j, const char *key, int64_t *out);
bool msc_joint_attr_float(const struct msc_joint *j, const char *key, float *out);
bool msc_joint_attr_bool(const struct msc_joint *j, const char *key, bool *out);
// At most `max` numbers of a list ("1,2"); returns how many the list holds, or -1.
int msc_joint_attr_list(const struct msc_joint *j, const char *key, int64_t out[], int max);
int msc_joint_attr_floats(const struct msc_joint *j, const char *key, float out[], int max);
int32_t msc_joint_weight(const struct msc_joint *j, const char *role); // tensor id or MSC_NO_ID
// Position of an operand by role ("weight"), or -1 when it is absent; the first where a role
// repeats.
int msc_joint_operand(const struct msc_joint *j, const char *role);

// Equality of structure: names, types, shapes, attributes, wiring and (when asked) weight data.
bool msc_graph_equal(const struct msc_graph *a, const struct msc_graph *b, bool with_data);
struct msc_hash msc_graph_hash(const struct msc_graph *g);         // structure, without weight data
struct msc_hash msc_graph_weights_hash(const struct msc_graph *g); // names and elements

// Forms (graph/print.c, graph/json_write.c, graph/prototxt.c), byte for byte as MSC wrote them but
// for attributes, which are sorted by key. The printed form is safe to show, whatever names hold
// (base/shown.h).
void msc_graph_print(const struct msc_graph *g, struct msc_str *out);
void msc_joint_print(const struct msc_graph *g, int32_t joint, struct msc_str *out);
void msc_tensor_print(const struct msc_graph *g, int32_t tensor, struct msc_str *out);
void msc_graph_write_json(const struct msc_graph *g, struct msc_str *out);
void msc_graph_write_prototxt(const struct msc_graph *g, struct msc_str *out);
// Counts by operator, inputs and outputs: {"inputs": [...], "outputs": [...], "nodes": {"total": n,
// ...}}. *out is owned by the caller.
enum msc_status msc_graph_inspect(const struct msc_graph *g, struct cJSON **out);
// Reads the JSON form. `weights` (may be NULL) gives the elements by name. *out owned by caller.
enum msc_status msc_graph_read_json(struct msc_graph **out, const char *text, size_t length,
                                    const char *name, const struct msc_array_list *weights);

// A symbol, by name, and the length that it stands for (graph/passes/bind.h).
struct msc_binding {
    const char *symbol;
    int64_t value;
};
// The symbol that counts samples: that of the first input whose leading length is one; MSC_NO_ID: none.
int32_t msc_graph_sample_symbol(const struct msc_graph *g);
// Names that a binding may have: symbols that are lengths of inputs, and inputs of one integer.
// Borrowed from the graph, the list from the arena.
enum msc_status msc_graph_bindables(const char *const **out, size_t *n, const struct msc_graph *g,
                                    struct msc_arena *arena);
// MSC_E_INVALID that `symbol` is none of them; suggests one, lists all. `place` begins the text.
enum msc_status msc_graph_fail_binding(const struct msc_graph *g, const char *place,
                                       const char *symbol);
// Writes PATH.json and PATH.safetensors.
enum msc_status msc_graph_save(const struct msc_graph *g, const char *path);

MSC_PUBLIC_END

#endif
