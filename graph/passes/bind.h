// Binding: rebuilds a graph with more information. Symbols get values, inputs that determine
// lengths become constants, and branches with a known condition are inlined. All results that are
// then known are computed at once.
//
//     struct msc_graph *bound;
//     MSC_TRY(msc_graph_bind(&bound, g, &(struct msc_binding){"N", 8}, 1));
#ifndef MSC_GRAPH_PASSES_BIND_H
#define MSC_GRAPH_PASSES_BIND_H

#include "graph/graph.h"

MSC_PUBLIC_BEGIN

// Binds symbols by name. Makes a copy in which every symbol has a value, all shapes are inferred
// again as numbers, and shape arithmetic is folded. Names of joints and tensors do not change.
// Fails if a symbol gets no value or a value that does not fit.
enum msc_status msc_graph_bind(struct msc_graph **out, const struct msc_graph *g,
                               const struct msc_binding bindings[], size_t n);
// Like msc_graph_bind, but lengths that depend on the results of joints remain symbols.
enum msc_status msc_graph_bind_open(struct msc_graph **out, const struct msc_graph *g,
                                    const struct msc_binding bindings[], size_t n);
struct msc_input_shape {
    int n_dims;
    int64_t dims[MSC_MAX_DIMS];
};
// Like msc_graph_bind, but binds symbols by the shapes of the inputs, in the graph's order.
enum msc_status msc_graph_bind_shapes(struct msc_graph **out, const struct msc_graph *g,
                                      const struct msc_input_shape shapes[], size_t n);
// Like msc_graph_bind_shapes, but with an array for each input. If an input determines a length
// (the shape of a Reshape, the ends of a Slice), it becomes a constant with the elements of its
// array. MSC_E_UNSUPPORTED if a length depends on the results of joints.
enum msc_status msc_graph_bind_arrays(struct msc_graph **out, const struct msc_graph *g,
                                      const struct msc_array *const arrays[], size_t n);
// Like msc_graph_bind_arrays, but lengths that depend on the results of joints remain symbols.
// is_parameter [n] (may be NULL) is set to true for inputs that became constants.
enum msc_status msc_graph_bind_known(struct msc_graph **out, bool is_parameter[],
                                     const struct msc_graph *g,
                                     const struct msc_array *const arrays[], size_t n);
// Makes a copy in which each If with a known condition is replaced by the joints of the branch
// taken. The joints are named as parts of the If ("if_1/then/conv"). Symbols remain. arrays[i]
// holds the elements of input i if they are the same in every run, else it is NULL. Only inputs
// that determine conditions become constants. *n_taken is the number of replaced Ifs.
enum msc_status msc_graph_take_branches(struct msc_graph **out, int32_t *n_taken,
                                        const struct msc_graph *g,
                                        const struct msc_array *const arrays[], size_t n);
// Makes a graph in which each fused joint (`msc.attention`) is replaced by the joints that it
// contains. These joints keep their names. Fused joints in bodies are replaced, too. Compression,
// computation and export work on split graphs: sites (graph/site.h) belong to a split graph, and
// bound copies are split. *out is a reference owned by the caller, possibly to `g` itself.
enum msc_status msc_graph_split(struct msc_graph **out, const struct msc_graph *g);
// Makes a graph in which joints whose operands are all constant are replaced by their results, as
// when a model is read from ONNX. If there is such a joint, the new graph is also split. *out is a
// reference owned by the caller, possibly to `g` itself.
enum msc_status msc_graph_compute_constants(struct msc_graph **out, const struct msc_graph *g);

MSC_PUBLIC_END

#endif
