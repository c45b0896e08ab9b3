// Internals of struct msc_graph, shared by graph/*.c. Only graph/ includes this header.
//
// All data of a graph is in the graph's arena until the graph is destroyed, so pointers to it
// remain valid while the graph is built and rewritten. Only ids change when the graph is finalized.
//
// To make a changed copy, as binding and other passes do: create a graph; add symbols, inputs,
// weights and joints through graph.h with the old names, aliases and scopes, in topological order;
// finalize. To replace a joint by another of the same name: remove the old joint, add the new one,
// replace the outputs of the old by those of the new (msc_graph_replace_tensor), finalize.
#ifndef MSC_GRAPH_GRAPH_INTERNAL_H
#define MSC_GRAPH_GRAPH_INTERNAL_H

#include "base/alloc.h"
#include "graph/graph.h"
#include "graph/infer.h"
#include "graph/notes.h"

struct msc_array_list;
struct msc_operators;

// Maps names to ids. Keys are borrowed. A key may be added again with another id, which replaces
// the earlier id.
struct msc_graph_names {
    struct msc_graph_name {
        const char *key; // NULL: the entry is free
        int32_t id;
    } * entries;
    size_t capacity; // a power of two, or 0
    size_t n;
};
enum msc_status msc_graph__names_put(struct msc_graph_names *names, const char *key, int32_t id);
int32_t msc_graph__names_find(const struct msc_graph_names *names, const char *key);
void msc_graph__names_finish(struct msc_graph_names *names);

struct msc_graph_tensor {
    struct msc_tensor tensor; // first member, so that msc_graph_tensor can return its address
    bool is_dead;
    // The elements of a small integer tensor, if inference knows them; else n_values is -1.
    int32_t n_values;
    struct msc_dim *values;
    int32_t n_consumers; // set by finalize
    int32_t *consumers;
};

struct msc_graph_joint {
    struct msc_joint joint; // first member, so that msc_graph_joint can return its address
    bool is_dead;
    // The same arrays as in `joint`, but writable; inputs and weights have room for n_operands.
    int32_t *operands;
    int32_t *inputs;
    int32_t *outputs;
    struct msc_weight *weights;
};

struct msc_graph {
    struct msc_arena arena;
    const char *name;
    struct msc_graph_joint **joints;
    int32_t n_joints;
    size_t joints_capacity;
    struct msc_graph_tensor **tensors;
    int32_t n_tensors;
    size_t tensors_capacity;
    struct msc_prim **prims;
    int32_t n_prims;
    size_t prims_capacity;
    int32_t *inputs; // tensor ids
    int32_t n_inputs;
    size_t inputs_capacity;
    int32_t *outputs;
    int32_t n_outputs;
    size_t outputs_capacity;
    const int32_t *entries, *exits; // joint ids; in the arena, set by finalize
    int32_t n_entries, n_exits;
    struct msc_graph_names joint_names, tensor_names, aliases, prim_names;
    struct msc_graph_notes notes;    // its texts are in the arena
    struct msc_operators *operators; // plug-ins that compute external joints, or NULL
    struct msc_graph *own; // wide graphs (graph/wide.h): the graph in the model's own types
    bool is_final;
    int n_references;          // references beyond the first; changed atomically
    struct msc_graph **bodies; // references to the bodies of all joints, including dead ones
    size_t n_bodies, bodies_capacity;
};

// Returns MSC_E_INVALID with a message that `symbol` is not one of the `names` that can be bound.
// The message begins with `place` unless it is NULL.
enum msc_status msc_graph__fail_binding(const char *place, const char *symbol,
                                        const char *const names[], size_t n);

// Finds the prim with this operator, parents and attributes, or adds it. Symbols ("shape") are
// distinguished only by name. If `name` is NULL, a name such as "MUL_2" is made from the operator.
// Attributes must be sorted by key. MSC_E_INVALID if a different prim has the name.
enum msc_status msc_graph__add_prim(int32_t *out, struct msc_graph *g, const char *name,
                                    const char *optype, int n_parents, const int32_t parents[],
                                    int n_attrs, const struct msc_attr attrs[]);

// Describes a tensor for inference.
void msc_graph__infer_tensor(struct msc_infer_tensor *out, const struct msc_graph *g,
                             int32_t tensor);

// Creates an empty graph that has the plug-ins of `from`.
enum msc_status msc_graph__create_like(struct msc_graph **out, const char *name,
                                       const struct msc_graph *from);
// Adds a tensor and copies its strings. Checks its shape and that its name is free. Does not retain
// its data.
enum msc_status msc_graph__add_tensor(int32_t *out, struct msc_graph *g,
                                      const struct msc_tensor *tensor);
// Makes a joint with a unique name, attributes completed with defaults, and empty arrays for
// `n_operands` operands and `n_outputs` outputs. The joint is not part of the graph yet.
enum msc_status msc_graph__new_joint(struct msc_graph_joint **out, struct msc_graph *g,
                                     const struct msc_joint_spec *spec, int n_operands,
                                     int n_outputs);
// Number of operands: one for each role; a repeated role has one for each of its inputs.
int msc_graph__count_operands(const struct msc_joint_spec *spec);
// Fills the operands of a new joint, and drops attributes whose parameter is given as an input.
enum msc_status msc_graph__deal_operands(struct msc_graph_joint *joint, struct msc_graph *g,
                                         const struct msc_joint_spec *spec);
// The attribute whose key is the `length` characters at `key`, or NULL.
const struct msc_attr *msc_graph__find_attr(const struct msc_attr attrs[], int32_t n,
                                            const char *key, size_t length);
// True if the parameter is given as an attribute. If an optional parameter has an empty attribute,
// the result is false, because the next input may provide the parameter.
bool msc_graph__is_given_as_attr(const struct msc_attr attrs[], int32_t n,
                                 const struct msc_op_role *role);
// The axis letters of a weight with this role (`length` characters), if the model does not name
// them; "" if the role defines none. `attrs` are those of the joint.
const char *msc_graph__role_layout(enum msc_op op, const struct msc_attr attrs[], int32_t n,
                                   const char *role, size_t length);
enum msc_status msc_graph__push_joint(struct msc_graph *g, struct msc_graph_joint *joint);
// Rebuilds the lists of a joint's inputs and weights from its operands.
void msc_graph__refresh_joint(const struct msc_graph *g, struct msc_graph_joint *joint);
// Like msc_graph_add_joint, but if `declared` [n_outputs] is not NULL, takes the outputs' types and
// shapes from it instead of inferring them.
enum msc_status msc_graph__add_joint(int32_t *out, struct msc_graph *g,
                                     const struct msc_joint_spec *spec,
                                     const struct msc_infer_tensor *declared);
// Adds a weight without elements.
enum msc_status msc_graph__add_empty_weight(int32_t *out, struct msc_graph *g,
                                            const struct msc_tensor *tensor);
// Like msc_graph_set_outputs, but without default aliases.
enum msc_status msc_graph__set_outputs(struct msc_graph *g, int32_t n, const int32_t tensors[]);
// Gives an output without an alias a default alias: the name of its joint if the joint has only one
// output, else the tensor's name with '_' in place of ':'.
enum msc_status msc_graph__default_alias(struct msc_graph *g, int32_t tensor);
// The default scope, which is not printed: "" for inputs and constants, else "block".
const char *msc_graph__default_scope(enum msc_op op);
// The first function appends `text` to a prototxt, in quotes with C escapes. The second appends a
// line `KEY: "TEXT"`.
void msc_graph__prototxt_text(struct msc_str *out, const char *text);
void msc_graph__prototxt_line(struct msc_str *out, const char *indent, const char *key,
                              const char *text);
// The joint or tensor with this name, unless it is dead; else MSC_NO_ID. Tensors are found by name
// only, not by alias.
int32_t msc_graph__live_joint(const struct msc_graph *g, const char *name);
int32_t msc_graph__live_tensor(const struct msc_graph *g, const char *name);

#endif
