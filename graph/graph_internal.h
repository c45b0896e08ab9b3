// What graph/*.c share about struct msc_graph. Nobody outside graph/ includes this.
//
// Everything of a graph lives in its arena until the graph is destroyed, so pointers into it stay
// valid while it is built and rewritten; only ids change, when it is finalized.
//
// To make a changed copy (binding, passes): create a graph, add symbols, inputs, weights and joints
// anew through graph.h with the old names, aliases and scopes, in topological order, then finalize.
// To put a joint in the place of another of the same name: remove the old one, add the new one,
// replace the old one's tensors, finalize.
#ifndef MSC_GRAPH_GRAPH_INTERNAL_H
#define MSC_GRAPH_GRAPH_INTERNAL_H

#include "base/alloc.h"
#include "graph/graph.h"
#include "graph/infer.h"
#include "graph/notes.h"

// Text to id. Keys are borrowed. A key may be put again with another id: find returns the latest.
struct msc_graph_names {
    struct msc_graph_name {
        const char *key; // NULL: free
        int32_t id;
    } * entries;
    size_t capacity; // a power of two, or 0
    size_t n;
};
enum msc_status msc_graph__names_put(struct msc_graph_names *names, const char *key, int32_t id);
int32_t msc_graph__names_find(const struct msc_graph_names *names, const char *key);
void msc_graph__names_finish(struct msc_graph_names *names);

struct msc_graph_tensor {
    struct msc_tensor tensor; // first member: what msc_graph_tensor hands out
    bool is_dead;
    // Contents of a small integer tensor as inference follows them; n_values is -1 when unknown.
    int32_t n_values;
    struct msc_dim *values;
    int32_t n_consumers; // set by finalize
    int32_t *consumers;
};

struct msc_graph_joint {
    struct msc_joint joint; // first member
    bool is_dead;
    // The same arrays as in `joint`, writable; inputs and weights have room for n_operands.
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
    struct msc_graph_notes notes; // texts in the arena
    bool is_final;
    int n_references;          // beyond the first; changed atomically
    struct msc_graph **bodies; // of joints, dead ones too; a reference each
    size_t n_bodies, bodies_capacity;
};

static inline enum msc_status msc_graph__no_memory(const struct msc_graph *g) {
    return MSC_FAIL(MSC_E_NOMEM, "graph '%s': out of memory", g->name);
}

// MSC_E_INVALID that `symbol` is none of the names that can be bound. `place` may be NULL.
enum msc_status msc_graph__fail_binding(const char *place, const char *symbol,
                                        const char *const names[], size_t n);

// Adds a prim, or finds the one of equal operator, parents and attributes. `name` NULL: made from
// the operator, "MUL_2"; a name taken by a different one is MSC_E_INVALID. Attributes must be
// sorted by key. Symbols ("shape") are told apart by their name alone.
enum msc_status msc_graph__add_prim(int32_t *out, struct msc_graph *g, const char *name,
                                    const char *optype, int n_parents, const int32_t parents[],
                                    int n_attrs, const struct msc_attr attrs[]);

// Known contents of an activation: their number, or -1.
int32_t msc_graph__values(const struct msc_graph *g, int32_t tensor, const struct msc_dim **values);

// Fills what inference reads about a tensor.
void msc_graph__infer_tensor(struct msc_infer_tensor *out, const struct msc_graph *g,
                             int32_t tensor);

// Adds a tensor whose text is copied; checks its shape and that the name is free. Does not retain
// its data.
enum msc_status msc_graph__add_tensor(int32_t *out, struct msc_graph *g,
                                      const struct msc_tensor *tensor);
// A joint without operands yet: name made unique, attributes completed with the defaults, arrays
// for `n_operands` operands and `n_outputs` outputs. Not yet part of the graph.
enum msc_status msc_graph__new_joint(struct msc_graph_joint **out, struct msc_graph *g,
                                     const struct msc_joint_spec *spec, int n_operands,
                                     int n_outputs);
// Number of operand positions: those of the roles; for a repeated role as many as there are inputs.
int msc_graph__count_operands(const struct msc_joint_spec *spec);
// Fills the operands of a new joint, and drops attributes whose parameter comes as an input.
enum msc_status msc_graph__deal_operands(struct msc_graph_joint *joint, struct msc_graph *g,
                                         const struct msc_joint_spec *spec);
// The attribute whose key is `key` of so many characters, or NULL.
const struct msc_attr *msc_graph__find_attr(const struct msc_attr attrs[], int32_t n,
                                            const char *key, size_t length);
// A parameter is given when its text is there. Where an optional one is empty, the next input may
// stand for it.
bool msc_graph__is_given_as_attr(const struct msc_attr attrs[], int32_t n,
                                 const struct msc_op_role *role);
enum msc_status msc_graph__push_joint(struct msc_graph *g, struct msc_graph_joint *joint);
// Rebuilds inputs and weights of a joint from its operands.
void msc_graph__refresh_joint(const struct msc_graph *g, struct msc_graph_joint *joint);
// msc_graph_add_joint with the outputs as declared instead of inferred, when `declared` is given
// ([n_outputs]).
enum msc_status msc_graph__add_joint(int32_t *out, struct msc_graph *g,
                                     const struct msc_joint_spec *spec,
                                     const struct msc_infer_tensor *declared);
// A weight whose elements are not there.
enum msc_status msc_graph__add_empty_weight(int32_t *out, struct msc_graph *g,
                                            const struct msc_tensor *tensor);
// msc_graph_set_outputs without default aliases.
enum msc_status msc_graph__set_outputs(struct msc_graph *g, int32_t n, const int32_t tensors[]);
// The scope that needs no mention: "" for inputs and constants, else "block".
const char *msc_graph__default_scope(enum msc_op op);
// Of prototxt: a quoted text with C escapes, and a line `KEY: "TEXT"`.
void msc_graph__prototxt_text(struct msc_str *out, const char *text);
void msc_graph__prototxt_line(struct msc_str *out, const char *indent, const char *key,
                              const char *text);
// Under what the weights of a body are stored beside those of the graph around, whose own is
// `prefix`: "if_1/then/". NULL when memory is short.
const char *msc_graph__body_prefix(struct msc_arena *arena, const char *prefix, enum msc_op op,
                                   const char *joint, int32_t which);
// The live joint of this name, or MSC_NO_ID; for tensors by name alone, without aliases.
int32_t msc_graph__live_joint(const struct msc_graph *g, const char *name);
int32_t msc_graph__live_tensor(const struct msc_graph *g, const char *name);

#endif
