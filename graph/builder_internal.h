// Builds a graph from values, some of which are constants. Used to import models and to bind
// symbols.
//
// A value is an activation or a constant. When a joint is added, each constant operand becomes,
// as the operator table requires, an attribute, a weight of the joint, or the output of a
// `constant` joint. If the builder has `evaluate`, a joint is computed at once when all its
// operands are constant or when inference knows its result; its outputs are then constants. Only
// graph/ includes this header.
#ifndef MSC_GRAPH_BUILDER_INTERNAL_H
#define MSC_GRAPH_BUILDER_INTERNAL_H

#include "base/alloc.h"
#include "graph/graph_internal.h"

struct msc_value {
    const char *name;       // name of the weight that the constant becomes, or ""
    const char *alias;      // the model's own name of the activation, or ""
    const char *joint_name; // name of the constant's `constant` joint; NULL: a default name
    // axis letters of the weight; "": the letters that the operand's role defines
    const char *layout;
    const struct msc_array *constant; // NULL for an activation; held by the builder
    struct msc_value *turned;         // the matrix whose transpose this constant is, or NULL
    // the model's element type ("int4", ...) if `constant` has another type, else ""
    const char *format;
    int32_t tensor; // the activation, or the output of the `constant` joint once it exists
    int32_t weight; // the weight tensor once it exists; may have no elements
};

// Computes a joint whose operands are constants, as msc_constant_evaluate (graph/passes/) does.
typedef enum msc_status (*msc_builder_evaluate)(struct msc_array *out[], bool *done,
                                                const struct msc_graph *g, int32_t joint);

struct msc_builder {
    struct msc_graph *graph;       // borrowed
    msc_builder_evaluate evaluate; // NULL: joints are never computed at once
    struct msc_arena arena;        // holds values and texts of attributes
    struct msc_array **arrays;     // references to constants, released at the end
    size_t n_arrays, arrays_capacity;
    struct msc_graph_names reserved; // names that no joint gets by default
    int32_t hints[MSC_OP_COUNT];     // next number to try in a default name
    int32_t n_unnamed;               // last number tried for an unnamed weight
};

struct msc_builder_joint {
    enum msc_op op;
    // the joint's name; if NULL or already taken, the operator's hint with a number
    const char *name;
    const char *scope; // NULL: the default scope
    int32_t n_operands;
    struct msc_value *const *operands; // in the order of the operator's roles; NULL: absent
    int32_t n_attrs;
    const struct msc_attr *attrs;
    int32_t n_outputs;
    const char *const *aliases; // [n_outputs]
    bool stays;                 // never computed at once, even if all operands are constant
    int32_t n_graphs;
    const struct msc_graph *const *graphs;
};

// A joint that is copied from another graph.
struct msc_builder_copy {
    struct msc_builder_joint joint; // borrows texts, attributes and graphs from the other graph
    struct msc_value **operands;    // operands of `joint`, all absent; the caller sets them
    const char **aliases;           // aliases of `joint`, all ""
    struct msc_value **outputs;     // [n_outputs] msc_builder_add writes the new values here
};

// Frees what the builder holds. To start a builder, zero-initialise it and set `graph`. Set
// `evaluate` as well if joints are to be computed at once.
void msc_builder_finish(struct msc_builder *b);

// Reserves a name, so that no joint gets it as a default name.
enum msc_status msc_builder_reserve(struct msc_builder *b, const char *name);
// Make new values. Their names are borrowed for the builder's lifetime.
enum msc_status msc_builder_activation(struct msc_value **out, struct msc_builder *b,
                                       const char *name, int32_t tensor);
enum msc_status msc_builder_constant(struct msc_value **out, struct msc_builder *b,
                                     const char *name, const struct msc_array *array);
static inline bool msc_value_is_constant(const struct msc_value *v) {
    return v->constant != NULL || v->weight != MSC_NO_ID;
}
// The tensor that holds the value when it is read as an activation. For a constant, this is the
// output of a `constant` joint, which is added if necessary.
enum msc_status msc_builder_tensor(int32_t *out, struct msc_builder *b, struct msc_value *v);
// Adds a joint. `outputs` [n_outputs] receives new values, which the builder owns.
enum msc_status msc_builder_add(struct msc_value *outputs[], struct msc_builder *b,
                                const struct msc_builder_joint *joint);

enum msc_status msc_builder_copy_joint(struct msc_builder_copy *out, struct msc_builder *b,
                                       const struct msc_joint *from);

// If attributes have values for only some axes of the first operand `x`, adds values for the other
// axes. Does nothing if lengths are unknown that this needs. `attrs` must have room for two more
// attributes.
enum msc_status msc_builder__broadcast(struct msc_builder *b, enum msc_op op,
                                       struct msc_attr attrs[], int32_t *n_attrs,
                                       const struct msc_value *x);

// Values of attributes as text in the builder's arena; NULL if out of memory.
const char *msc_builder_ints(struct msc_builder *b, const int64_t values[], int n);
const char *msc_builder_floats(struct msc_builder *b, const float values[], int n);
const char *msc_builder_float(struct msc_builder *b, float value);
const char *msc_builder_int(struct msc_builder *b, int64_t value);

#endif
