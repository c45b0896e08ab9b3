// Patterns of joints, written as text and found in a graph.
//
//     "multiply(x, add(erf(divide(x, 1.4142135)), 1))"
//
// A pattern is one of
//     op(pattern, ...)   what a joint of this operator makes of its operands; op is MSC's name
//     name               any tensor, the same one wherever the name stands again
//     $name              the same, but a constant
//     1.5                a constant of one element, this number
// An operator may be preceded by a name for what it makes, and followed by attributes that it must
// have: "d:subtract(x, m)", "clip[min=0 max=6](x)". Operands of `add` and `multiply` may stand in
// either order. There is no going back over a name once it is bound: what tells the order of
// operands must be written before what fits everything.
//
//     struct msc_match m;
//     if (msc_match(&m, g, g->n_joints, "d:subtract(x, mean(x))", tensor)) {
//         int32_t x = msc_match_tensor(&m, "x"), d = msc_match_tensor(&m, "d");
//
// Nobody outside graph/ includes this.
#ifndef MSC_GRAPH_PASSES_MATCH_INTERNAL_H
#define MSC_GRAPH_PASSES_MATCH_INTERNAL_H

#include "graph/graph_internal.h"

enum { MSC_MATCH_MOST = 24 }; // names, and joints, of one pattern

struct msc_match {
    const struct msc_graph *graph;
    int32_t n_old; // joints from here on are no part of a match
    int n_names;
    struct msc_match_name {
        const char *name; // in the pattern, `length` characters
        size_t length;
        int32_t tensor;
    } names[MSC_MATCH_MOST];
    int n_joints;
    int32_t joints[MSC_MATCH_MOST]; // that of the pattern's outermost operator first
};

// Is `tensor` what the pattern describes, and read by none but the match's own joints what they
// hand on to each other? Consumers must be up to date for the first `n_old` joints.
bool msc_match(struct msc_match *m, const struct msc_graph *g, int32_t n_old, const char *pattern,
               int32_t tensor);
// The tensor of a name, or MSC_NO_ID when the pattern has none.
int32_t msc_match_tensor(const struct msc_match *m, const char *name);
// The joint that makes it; the name must be one that stands before an operator.
const struct msc_joint *msc_match_joint(const struct msc_match *m, const char *name);

// What a weight or a `constant` joint's output holds, or NULL; *weight is that weight,
// or MSC_NO_ID.
const struct msc_array *msc_match_constant(int32_t *weight, const struct msc_graph *g,
                                           int32_t tensor);
// The only element of a constant.
bool msc_match_number(double *out, const struct msc_graph *g, int32_t tensor);

#endif
