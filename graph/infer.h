// Shape inference: computes type, shape and layout of a joint's outputs from its operands and,
// for small integer tensors, the contents. A table names the function for each operator.
//
// A dimension is a number or a prim (symbolic expression). Contents of integer tensors of up to
// MSC_INFER_MAX_VALUES elements are tracked through shape arithmetic (shape_of, take, concat,
// slices, +-*/ ...). So the result of a Reshape whose shape comes from Shape nodes is known,
// possibly symbolically.
//
// msc_graph_add_joint uses this while a graph is built. msc_graph_bind* uses it and folds
// whatever becomes constant.
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
    int n_values;                  // -1: contents unknown
    struct msc_dim values[MSC_INFER_MAX_VALUES];
    const struct msc_array *data; // elements of a weight or constant, else NULL
};

struct msc_infer {
    struct msc_graph *graph;       // receives new prims
    const struct msc_joint *joint; // op, name, attrs (with defaults); do not read its wiring
    int n_operands;
    const struct msc_infer_tensor *const *operands; // NULL: absent
    int n_outputs;
    struct msc_infer_tensor *outputs; // zeroed with n_values = -1, to be filled
};

// MSC_E_INVALID names the joint, the operand and the mismatch.
enum msc_status msc_infer(const struct msc_infer *call);

// One axis of a slice, in numbers. *begin is the given start on entry and the first element on
// return; *count is the number of elements taken. `stride` is not 0.
void msc_infer_slice_range(int64_t *begin, int64_t *count, int64_t length, int64_t end,
                           int64_t stride);

// Layout of a transposed tensor: out[i] = in[axes[i]].
void msc_infer_permute_layout(char out[MSC_MAX_DIMS + 4], const char *in, const int64_t axes[],
                              int n);

// Arithmetic on dimensions. Numbers fold, equal expressions share one prim, and x*1, x+0 and
// (x*a)/a simplify. `optype`: "Add", "Sub", "Mul", "FloorDiv", "CeilDiv" (expressed by FloorDiv),
// "FloorMod", "Max", "Min".
enum msc_status msc_dim_binary(struct msc_dim *out, struct msc_graph *g, const char *optype,
                               struct msc_dim a, struct msc_dim b);
// The dimension for given values of symbols (by prim id; -1 if unknown). Returns -1 if a symbol
// that it depends on is unknown.
int64_t msc_dim_evaluate(const struct msc_graph *g, struct msc_dim dim, const int64_t symbols[]);

#endif
