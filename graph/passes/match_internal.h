// Patterns of joints, written as text and matched in a graph.
//
//     "multiply(x, add(erf(divide(x, 1.4142135)), 1))"
//
// A pattern is one of
//     op(pattern, ...)   the output of a joint with this operator (MSC's name) and these operands
//     name               any tensor; the same name always means the same tensor
//     $name              like name, but the tensor must be constant
//     1.5                a constant with one element of this value
// An operator may have a name for its output before it, and required attributes after it:
// "d:subtract(x, m)", "clip[min=0 max=6](x)". Operands of `add` and `multiply` match in either
// order. Matching does not backtrack over a bound name, so specific operands must be written
// before those that match anything.
//
//     struct msc_match m;
//     if (msc_match(&m, g, g->n_joints, "d:subtract(x, mean(x))", tensor)) {
//         int32_t x = msc_match_tensor(&m, "x"), d = msc_match_tensor(&m, "d");
//
// Only graph/ includes this header.
#ifndef MSC_GRAPH_PASSES_MATCH_INTERNAL_H
#define MSC_GRAPH_PASSES_MATCH_INTERNAL_H

#include "graph/graph_internal.h"

enum { MSC_MATCH_MOST = 24 }; // maximum number of names, and of joints, in a pattern

struct msc_match {
    const struct msc_graph *graph;
    int32_t n_old; // joints from here on cannot be part of a match
    int n_names;
    struct msc_match_name {
        const char *name; // in the pattern, `length` characters
        size_t length;
        int32_t tensor;
    } names[MSC_MATCH_MOST];
    int n_joints;
    int32_t joints[MSC_MATCH_MOST]; // the joint of the outermost operator first
};

// True if the pattern matches `tensor`, and tensors inside the match have no consumers outside
// it. Consumers must be up to date for the first `n_old` joints.
bool msc_match(struct msc_match *m, const struct msc_graph *g, int32_t n_old, const char *pattern,
               int32_t tensor);
// The tensor with this name, or MSC_NO_ID if the pattern does not have the name.
int32_t msc_match_tensor(const struct msc_match *m, const char *name);
// The joint that produces the tensor with this name; in the pattern, the name must be before an
// operator.
const struct msc_joint *msc_match_joint(const struct msc_match *m, const char *name);

// The contents of a weight or of a `constant` joint's output, or NULL. *weight is the weight, or
// MSC_NO_ID.
const struct msc_array *msc_match_constant(int32_t *weight, const struct msc_graph *g,
                                           int32_t tensor);
// Reads the only element of a constant.
bool msc_match_number(double *out, const struct msc_graph *g, int32_t tensor);

#endif
