// Building a graph from a file: what the readers of the JSON form and of the text form share.
//
// A reader describes each joint as its file does, and this module adds it to the graph. If the
// weights have elements, the outputs of every joint are inferred and must agree with the file.
// Without elements, the types in the file are used unchecked, because such a graph cannot be
// computed anyway; types that the file leaves out are inferred. Messages begin with `where`, the
// place in the file: "file.json: nodes[3]", "file.msc:12:5".
#ifndef MSC_GRAPH_GRAPH_READER_H
#define MSC_GRAPH_GRAPH_READER_H

#include "data/npy.h"
#include "graph/graph_internal.h"

struct msc_graph_reader {
    struct msc_graph *g;
    struct msc_arena scratch;
    const char *name;                     // name of the file, for error messages
    const struct msc_array_list *weights; // NULL: no elements are available
    // prefix of the names of this graph's weights in `weights`
    const char *prefix;
    struct msc_operators *operators; // plug-ins of the graph, borrowed; may be NULL
};

// A tensor as the file describes it.
struct msc_read_tensor {
    const char *name;
    const char *alias;
    const char *where;
    bool has_type;   // if false, `type` is inferred, or taken from the weight's elements
    bool has_layout; // if false, the layout of an output is inferred
    struct msc_infer_tensor type;
};

// A joint as the file describes it. `spec` has the operands that msc_graph__read_input and
// msc_graph__read_weight find.
struct msc_read_joint {
    const char *where;
    struct msc_joint_spec spec;
    const struct msc_read_tensor *outputs; // [spec.n_outputs]
};

struct msc_read_prim {
    const char *where;
    const char *name, *optype;
    int n_parents;
    const char *const *parents;
    int32_t n_attrs;
    const struct msc_attr *attrs;
};

// Adds a symbol or an expression of symbols. Its parents must have been added.
enum msc_status msc_graph__read_prim(struct msc_graph_reader *r, const struct msc_read_prim *prim);

// Finds the operator, and checks that the name is not empty and not taken.
enum msc_status msc_graph__read_op(enum msc_op *out, const struct msc_graph_reader *r,
                                   const char *name, const char *optype, const char *where);
// Set the element type and the layout of a tensor, which must have its name.
enum msc_status msc_graph__read_dtype(struct msc_read_tensor *t, const char *dtype);
enum msc_status msc_graph__read_layout(struct msc_read_tensor *t, const char *layout);
// Finds the symbol of a dimension. `dim` is the index of the dimension.
enum msc_status msc_graph__read_symbol(struct msc_read_tensor *t, const struct msc_graph_reader *r,
                                       int dim, const char *symbol);
// Fails if the tensor has a type in the file, and it is not the type of tensor `id`. Symbols are
// considered equal. `source` says where the other type comes from: "first mention".
enum msc_status msc_graph__check_read_type(const struct msc_graph_reader *r,
                                           const struct msc_read_tensor *t, int32_t id,
                                           const char *source);
// Finds an input. An empty name is an absent operand: MSC_NO_ID.
enum msc_status msc_graph__read_input(int32_t *out, const struct msc_graph_reader *r,
                                      const char *name, const char *where);
// Finds a weight by name, or adds it with its elements. `joint` is the joint that reads it.
enum msc_status msc_graph__read_weight(int32_t *out, struct msc_graph_reader *r,
                                       const struct msc_read_tensor *t, const char *role,
                                       const struct msc_joint_spec *joint);
// Fails unless output `i` of the joint is called "JOINT:i".
enum msc_status msc_graph__check_output_name(struct msc_graph_reader *r, const char *joint,
                                             int32_t i, const char *name, const char *where);
// Adds a joint, or an input of the graph.
enum msc_status msc_graph__read_joint(int32_t *out, struct msc_graph_reader *r,
                                      const struct msc_read_joint *joint);

// Orders the inputs of the graph, sets its outputs and finalizes it. `inputs` must contain each
// input once. Messages begin with `where`.
enum msc_status msc_graph__read_ends(struct msc_graph_reader *r, const char *where,
                                     const char *const inputs[], size_t n_inputs,
                                     const char *const outputs[], size_t n_outputs);
// Checks the version of ONNX's operator set in the notes of a file.
enum msc_status msc_graph__check_opset(int64_t opset, const char *where);

#endif
