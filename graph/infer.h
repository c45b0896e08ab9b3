// Shape inference: computes the type, shape and layout of a joint's outputs from its operands. If
// an output is a small integer tensor, its elements are computed, too. The column `infer` of
// ops.def names the function for each operator.
//
// A dimension is a number or a prim (symbolic expression). The elements of small integer tensors
// (up to MSC_INFER_MAX_VALUES elements) are tracked through shape arithmetic (shape_of, take,
// concat, slices, +-*/ ...). So the output shape of a Reshape that reads its shape from Shape nodes
// is known, possibly symbolically.
//
// msc_graph_add_joint infers while a graph is built. msc_graph_bind* infers again and folds all
// that becomes constant.
#ifndef MSC_GRAPH_INFER_H
#define MSC_GRAPH_INFER_H

#include "graph/graph.h"

#define MSC_INFER_MAX_VALUES 64

struct msc_dim {
    int64_t value; // -1 if symbolic
    int32_t prim;  // MSC_NO_ID if a number
};

struct msc_infer_tensor {
    enum msc_dtype dtype;
    int n_dims;
    struct msc_dim dims[MSC_MAX_DIMS];
    char layout[MSC_MAX_DIMS + 4]; // axis letters; "" if unknown
    int n_values;                  // -1: elements unknown
    struct msc_dim values[MSC_INFER_MAX_VALUES];
    const struct msc_array *data; // elements of a weight or constant, else NULL
};

struct msc_infer {
    struct msc_graph *graph;       // graph that new prims are added to
    const struct msc_joint *joint; // only op, name and attrs (with defaults) may be read
    int n_operands;
    const struct msc_infer_tensor *const *operands; // NULL: the operand is absent
    int n_outputs;
    // [n_outputs], filled by the call; before it, n_values is -1 and all else is zero
    struct msc_infer_tensor *outputs;
};

// Infers the outputs of one joint. The message of MSC_E_INVALID names the joint, the operand and
// the mismatch.
enum msc_status msc_infer(const struct msc_infer *call);

// Normalises one axis of a slice whose bounds are numbers. On entry, *begin is the given start; on
// return, it is the index of the first element, and *count is the number of elements. `stride` must
// not be 0.
void msc_infer_slice_range(int64_t *begin, int64_t *count, int64_t length, int64_t end,
                           int64_t stride);

// Computes the layout of a transposed tensor: out[i] = in[axes[i]].
void msc_infer_permute_layout(char out[MSC_MAX_DIMS + 4], const char *in, const int64_t axes[],
                              int n);

// Arithmetic on dimensions. Numbers are computed, equal expressions share one prim, and x*1, x+0
// and (x*a)/a are simplified. `optype` is "Add", "Sub", "Mul", "FloorDiv", "CeilDiv" (which is
// expressed by FloorDiv), "FloorMod", "Max" or "Min".
enum msc_status msc_dim_binary(struct msc_dim *out, struct msc_graph *g, const char *optype,
                               struct msc_dim a, struct msc_dim b);
// Computes a dimension from the values of symbols. `symbols` is indexed by prim id; -1 means
// unknown. Returns -1 if the dimension depends on an unknown symbol.
int64_t msc_dim_evaluate(const struct msc_graph *g, struct msc_dim dim, const int64_t symbols[]);

#endif
