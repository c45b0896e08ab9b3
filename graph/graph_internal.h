// What graph/*.c share about struct msc_graph. Nobody outside graph/ includes this.
//
// Everything of a graph lives in its arena, so pointers into it stay valid while it is built;
// finalizing moves what is alive into a new arena.
//
// To make a changed copy (binding, passes): create a graph, add symbols, inputs, weights and joints
// anew through graph.h with the old names, aliases and scopes, in topological order, then finalize.
#ifndef MSC_GRAPH_GRAPH_INTERNAL_H
#define MSC_GRAPH_GRAPH_INTERNAL_H

#include "base/alloc.h"
#include "graph/graph.h"
#include "graph/infer.h"

// Text to id, open addressing. Keys are borrowed. A key may be added again with another id: find
// returns the latest.
struct msc_graph_names {
    struct msc_graph_name {
        const char *key; // NULL: free
        int32_t id;
    } *entries;
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
    const struct msc_dim *values;
    int32_t n_consumers; // set by finalize
    const int32_t *consumers;
};

struct msc_graph_joint {
    struct msc_joint joint; // first member
    bool is_dead;
    int32_t *operands; // the same array as joint.operands, writable
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
    int32_t *entries, *exits; // joint ids; in the arena, set by finalize
    int32_t n_entries, n_exits;
    struct msc_graph_names joint_names, tensor_names, aliases, prim_names;
    bool is_final;
};

// Adds a prim, or finds the one of equal operator, parents and attributes. `name` NULL: made from
// the operator, "MUL_2"; a taken name is MSC_E_INVALID. Attributes must be sorted by key.
enum msc_status msc_graph__add_prim(int32_t *out, struct msc_graph *g, const char *name,
                                    const char *optype, int n_parents, const int32_t parents[],
                                    int n_attrs, const struct msc_attr attrs[]);

// Known contents of an activation (or of a small integer weight): their number, or -1.
int32_t msc_graph__values(const struct msc_graph *g, int32_t tensor, const struct msc_dim **values);

// Fills what inference reads about a tensor. `out` must outlive nothing of the graph.
void msc_graph__infer_tensor(struct msc_infer_tensor *out, const struct msc_graph *g,
                             int32_t tensor);

#endif
