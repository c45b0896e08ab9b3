// Shape inference: types, shapes, layouts and, for small integer tensors, contents of a joint's
// outputs from those of its operands. One function for each operator, picked from a table.
//
// A dimension is a number or a prim (symbolic expression). Contents of integer tensors of up to
// MSC_INFER_MAX_VALUES elements are followed through shape arithmetic (shape_of, take, concat,
// slices, +-*/ …), so that a Reshape fed by Shape nodes has a known, possibly symbolic, result.
//
// Used by msc_graph_add_joint while building and by msc_graph_bind*, which folds what became
// constant.
#ifndef MSC_GRAPH_INFER_H
#define MSC_GRAPH_INFER_H

#include "graph/graph.h"

#define MSC_INFER_MAX_VALUES 64

struct msc_dim {
    int64_t value; // -1 when symbolic
    int32_t prim;  // MSC_NO_ID when a number
};

struct msc_infer_tensor {
    enum msc_dtype dtype;
    int n_dims;
    struct msc_dim dims[MSC_MAX_DIMS];
    char layout[MSC_MAX_DIMS + 4]; // axis letters; "" unknown
    int n_values;                  // -1: contents unknown
    struct msc_dim values[MSC_INFER_MAX_VALUES];
    const struct msc_array *data; // of weights and constants; NULL else
};

struct msc_infer {
    struct msc_graph *graph;       // receives new prims
    const struct msc_joint *joint; // op, name, attrs (defaults already in); wiring not to be read
    int n_operands;
    const struct msc_infer_tensor *const *operands; // NULL: absent
    int n_outputs;
    struct msc_infer_tensor *outputs; // zeroed with n_values = -1, to be filled
};

// MSC_E_INVALID names the joint, the operand and what does not fit.
enum msc_status msc_infer(const struct msc_infer *call);

// Arithmetic on dimensions: numbers fold, equal expressions share one prim, x*1, x+0, (x*a)/a fold.
// `optype`: "Add", "Sub", "Mul", "FloorDiv", "CeilDiv"(written with FloorDiv), "FloorMod", "Max",
// "Min".
enum msc_status msc_dim_binary(struct msc_dim *out, struct msc_graph *g, const char *optype,
                               struct msc_dim a, struct msc_dim b);
// The dimension's value when symbols have these values (by prim id; -1 where unknown); -1 unknown.
int64_t msc_dim_evaluate(const struct msc_graph *g, struct msc_dim dim, const int64_t symbols[]);

#endif
