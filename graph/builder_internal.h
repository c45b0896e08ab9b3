// Building a graph from values of which some are constants: what import and binding share.
//
// A value is an activation or a constant. When a joint is added, each constant operand becomes what
// the operator table says: an attribute, a weight of the joint, or the output of a `constant`
// joint. Where the builder is given `evaluate`, a joint whose operands are all constants (or whose
// result inference knows) is computed at once, and its outputs are constants. Nobody outside graph/
// includes this.
#ifndef MSC_GRAPH_BUILDER_INTERNAL_H
#define MSC_GRAPH_BUILDER_INTERNAL_H

#include "base/alloc.h"
#include "graph/graph_internal.h"

struct msc_value {
    const char *name;                 // of the weight it becomes; "" for none of its own
    const char *alias;                // the model's own name of the activation, or ""
    const char *joint_name;           // of its `constant` joint; NULL: made from the hint
    const char *layout;               // axis letters of the weight; "": what the role says
    const struct msc_array *constant; // NULL for an activation; held by the builder
    struct msc_value *turned;         // the matrix that this constant is the transpose of, or NULL
    const char *format; // of elements that stand in another type here: "int4", ...; else ""
    int32_t tensor;     // the activation, or the `constant` joint's output once that is made
    int32_t weight;     // the weight tensor once that is made; may be there without elements
};

// Computes a joint over constants at once, as msc_constant_evaluate of graph/passes/ does.
typedef enum msc_status (*msc_builder_evaluate)(struct msc_array *out[], bool *done,
                                                const struct msc_graph *g, int32_t joint);

struct msc_builder {
    struct msc_graph *graph;       // borrowed
    msc_builder_evaluate evaluate; // NULL: nothing is computed at once
    struct msc_arena arena;        // values and attribute text
    struct msc_array **arrays;     // references to constants
    size_t n_arrays, arrays_capacity;
    struct msc_graph_names reserved; // names kept for joints to come
    int32_t hints[MSC_OP_COUNT];     // next number to try for a name
    int32_t n_unnamed;               // last number tried for a weight without a name
};

struct msc_builder_joint {
    enum msc_op op;
    const char *name;                  // NULL or taken: made from the hint
    const char *scope;                 // NULL: the usual one
    int32_t n_operands;                // in the order of the operator's roles
    struct msc_value *const *operands; // NULL: absent
    int32_t n_attrs;
    const struct msc_attr *attrs;
    int32_t n_outputs;
    const char *const *aliases; // [n_outputs]
    bool stays;                 // not computed at once, even over constants
    int32_t n_graphs;
    const struct msc_graph *const *graphs;
};

// A joint that is added as another graph has it.
struct msc_builder_copy {
    struct msc_builder_joint joint; // texts, attributes and graphs are borrowed from the other
    struct msc_value **operands;    // of `joint`, all absent, for the caller to set
    const char **aliases;           // of `joint`, all ""
    struct msc_value **outputs;     // room for msc_builder_add
};

// Zero-initialise, then set `graph` and, to compute at once, `evaluate`.
void msc_builder_finish(struct msc_builder *b);

// Keeps a name from being made for a joint without one.
enum msc_status msc_builder_reserve(struct msc_builder *b, const char *name);
// Texts are borrowed for the builder's life.
enum msc_status msc_builder_activation(struct msc_value **out, struct msc_builder *b,
                                       const char *name, int32_t tensor);
enum msc_status msc_builder_constant(struct msc_value **out, struct msc_builder *b,
                                     const char *name, const struct msc_array *array);
static inline bool msc_value_is_constant(const struct msc_value *v) {
    return v->constant != NULL || v->weight != MSC_NO_ID;
}
// The tensor that an activation input reads: for a constant its `constant` joint's output.
enum msc_status msc_builder_tensor(int32_t *out, struct msc_builder *b, struct msc_value *v);
// Adds a joint; outputs[i] [n_outputs] are new values, borrowed from the builder.
enum msc_status msc_builder_add(struct msc_value *outputs[], struct msc_builder *b,
                                const struct msc_builder_joint *joint);

enum msc_status msc_builder_copy_joint(struct msc_builder_copy *out, struct msc_builder *b,
                                       const struct msc_joint *from);

// Replaces attributes that hold parameters for some axes by those for all axes of `x`, the first
// operand, where it can. `attrs` has room for two more.
enum msc_status msc_builder__broadcast(struct msc_builder *b, enum msc_op op,
                                       struct msc_attr attrs[], int32_t *n_attrs,
                                       const struct msc_value *x);

// Attribute text in the builder's arena; NULL when memory is short.
const char *msc_builder_ints(struct msc_builder *b, const int64_t values[], int n);
const char *msc_builder_floats(struct msc_builder *b, const float values[], int n);
const char *msc_builder_float(struct msc_builder *b, float value);
const char *msc_builder_int(struct msc_builder *b, int64_t value);

#endif
