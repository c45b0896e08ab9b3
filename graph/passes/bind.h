// Binding: a graph made anew with more known about it. Symbols get values, inputs that parameters
// come from become constants, branches whose condition is known are taken; what is known then is
// computed at once.
//
//     struct msc_graph *bound;
//     MSC_TRY(msc_graph_bind(&bound, g, &(struct msc_binding){"N", 8}, 1));
#ifndef MSC_GRAPH_PASSES_BIND_H
#define MSC_GRAPH_PASSES_BIND_H

#include "graph/graph.h"

MSC_PUBLIC_BEGIN

// A copy with every symbol given a value, all shapes inferred anew as numbers and chains
// of shape arithmetic folded away. Joint and tensor names stay. Symbols may be bound by name or by
// the shapes of inputs; what is left unbound or does not fit is one clear error.
enum msc_status msc_graph_bind(struct msc_graph **out, const struct msc_graph *g,
                               const struct msc_binding bindings[], size_t n);
// The same as far as it goes: lengths that depend on what joints compute stay symbols.
enum msc_status msc_graph_bind_open(struct msc_graph **out, const struct msc_graph *g,
                                    const struct msc_binding bindings[], size_t n);
struct msc_input_shape {
    int n_dims;
    int64_t dims[MSC_MAX_DIMS];
};
// Shapes of the inputs in the graph's order.
enum msc_status msc_graph_bind_shapes(struct msc_graph **out, const struct msc_graph *g,
                                      const struct msc_input_shape shapes[], size_t n);
// Shapes of these arrays, one for each input; and inputs that parameters come from (a Reshape's
// shape, the ends of a Slice) are the constants that the arrays hold. MSC_E_UNSUPPORTED: a length
// is still not known, since it depends on what joints compute.
enum msc_status msc_graph_bind_arrays(struct msc_graph **out, const struct msc_graph *g,
                                      const struct msc_array *const arrays[], size_t n);
// The same as far as it goes: lengths that depend on what joints compute stay symbols.
// is_parameter [n], or NULL: the inputs that became constants.
enum msc_status msc_graph_bind_known(struct msc_graph **out, bool is_parameter[],
                                     const struct msc_graph *g,
                                     const struct msc_array *const arrays[], size_t n);
// A copy in which every If whose condition is known is replaced by the joints of the branch that it
// takes, named as parts of it ("if_1/then/conv"); symbols stay. `arrays` hold what inputs are in
// every run (NULL: they differ); only those that conditions come from become constants. *n_taken is
// how many were replaced.
enum msc_status msc_graph_take_branches(struct msc_graph **out, int32_t *n_taken,
                                        const struct msc_graph *g,
                                        const struct msc_array *const arrays[], size_t n);
// The graph with the joints that `msc.attention` holds in its place, under their own names; in
// bodies too. All that is compressed, computed or exported is split: sites (graph/site.h) are those
// of a split graph, and bound copies are split. *out may be `g` itself; it is owned by the caller.
enum msc_status msc_graph_split(struct msc_graph **out, const struct msc_graph *g);

MSC_PUBLIC_END

#endif
