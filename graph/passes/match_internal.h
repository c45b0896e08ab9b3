// Finds joints in a graph that match a pattern. Patterns are written as text:
//
//     "multiply(x, add(erf(divide(x, 1.4142135)), 1))"
//
// A pattern is one of
//     op(pattern, ...)   the output of a joint with this operator (MSC's name) and these operands
//     name               any tensor; the same name always means the same tensor
//     $name              like name, but the tensor must be constant
//     1.5                a constant with one element of this value
// A name for the output may precede an operator, and required attributes may follow it:
// "d:subtract(x, m)", "clip[min=0 max=6](x)". Operands of `add` and `multiply` match in either
// order. Once a name is bound to a tensor, matching does not try another tensor. So write specific
// operands before operands that match any tensor.
//
//     struct msc_match m;
//     if (msc_match(&m, g, g->n_joints, "d:subtract(x, mean(x))", tensor)) {
//         int32_t x = msc_match_tensor(&m, "x"), d = msc_match_tensor(&m, "d");
//
// Only graph/ includes this header.
#ifndef MSC_GRAPH_PASSES_MATCH_INTERNAL_H
#define MSC_GRAPH_PASSES_MATCH_INTERNAL_H

#include "graph/graph_internal.h"

enum { MSC_MATCH_MOST = 24 }; // maximum number of names in a pattern, and of joints

struct msc_match {
    const struct msc_graph *graph;
    int32_t n_old; // joints with this id or a higher one cannot be part of a match
    int n_names;
    struct msc_match_name {
        const char *name; // points into the pattern; `length` characters
        size_t length;
        int32_t tensor;
    } names[MSC_MATCH_MOST];
    int n_joints;
    int32_t joints[MSC_MATCH_MOST]; // the first is the joint of the outermost operator
};

// True if the pattern matches `tensor`, and no joint outside the match reads a tensor inside it.
// The lists of consumers must be valid for the first `n_old` joints.
bool msc_match(struct msc_match *m, const struct msc_graph *g, int32_t n_old, const char *pattern,
               int32_t tensor);
// The tensor that this name is bound to; MSC_NO_ID if the pattern does not contain the name.
int32_t msc_match_tensor(const struct msc_match *m, const char *name);
// The joint that produces the tensor with this name. In the pattern, the name must precede an
// operator.
const struct msc_joint *msc_match_joint(const struct msc_match *m, const char *name);

// The elements of a weight or of a `constant` joint's output; *weight is the weight. NULL and
// MSC_NO_ID if the tensor is neither.
const struct msc_array *msc_match_constant(int32_t *weight, const struct msc_graph *g,
                                           int32_t tensor);
// Reads the element of a constant that has only one; false for other tensors.
bool msc_match_number(double *out, const struct msc_graph *g, int32_t tensor);

#endif
