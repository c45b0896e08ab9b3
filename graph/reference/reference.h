// Reference kernels: one plain C function for each operator, the meaning of the operator for every
// other kernel. Straight loops in the order of the ONNX specification's formula, single-threaded,
// plain layout, all data types the operator table admits. Constants are folded by them; they are the
// fallback of the `cpu` backend and the truth in tests.
//
// Order of float32 arithmetic, each step rounded: a sum starts at 0 and adds product after product,
// over input channels, then kernel planes, rows, columns; then the bias is added. A mean divides
// the sum. Batch normalisation is (x - mean) * (gamma / sqrt(var + epsilon)) + beta. Softmax is
// e / sum(e) with e = exp(x - max). Functions are those of graph/reference/numeric.h.
//
//     struct msc_reference_call call = {.graph = graph, .joint = joint, .n_operands = 3, ...};
//     MSC_TRY(msc_reference_find(joint->op)(&call));
#ifndef MSC_GRAPH_REFERENCE_REFERENCE_H
#define MSC_GRAPH_REFERENCE_REFERENCE_H

#include "base/cancel.h"
#include "graph/graph.h"
#include "graph/view.h"

// What ends work that would not end by itself.
struct msc_reference_limits {
    const struct msc_cancel *cancel; // asked before every joint: MSC_E_CANCELLED
    uint64_t memory_bytes; // for the caller's meter (data/array.h): that the process may hold, or 0
    int64_t max_turns;     // of a Loop that only its condition ends; 0: MSC_REFERENCE_MAX_TURNS
};
// Networks have some thousand. A count of 2^31 and more is none: exporters write it for "no limit".
#define MSC_REFERENCE_MAX_TURNS (INT64_C(1) << 20)

// One run of one joint. Operands in the operator's order; an absent one has data NULL and dtype
// MSC_DTYPE_NONE. Outputs are allocated by the caller with the shapes the graph inferred and do not
// overlap operands. All views are plain, none is quantised.
struct msc_reference_call {
    const struct msc_graph *graph; // of the joint: names the axes of its weights
    const struct msc_joint *joint;
    int n_operands;
    const struct msc_view *operands;
    int n_outputs;
    const struct msc_view *outputs;
    // For operators whose outputs are as long as the data say: makes output `output`, which then
    // stands in `outputs`. NULL: the outputs are there.
    enum msc_status (*allocate)(void *payload, int output, int n_dims, const int64_t dims[]);
    void *payload;
    const struct msc_reference_limits *limits; // NULL: none but that of turns
};

typedef enum msc_status (*msc_reference_fn)(const struct msc_reference_call *call);

// NULL when the operator has no kernel (sources: input, constant).
msc_reference_fn msc_reference_find(enum msc_op op);

// A run over a part of a graph.
struct msc_reference_run {
    const struct msc_graph *graph;
    // Tensors that are there already, borrowed; nothing is run for them. Constants always are.
    size_t n_given;
    const int32_t *given;
    const struct msc_array *const *arrays;
    size_t n_wanted;
    const int32_t *wanted; // tensor ids
    // Optional: what operand `operand` of a joint reads in place of `array`; *out is the run's, one
    // reference.
    enum msc_status (*read)(void *payload, struct msc_array **out, const struct msc_joint *joint,
                            int32_t operand, const struct msc_array *array);
    void *payload;
    const struct msc_reference_limits *limits; // may be NULL
};
// out[i] [n_wanted] are owned by the caller. Lengths that are symbols follow from what is given.
enum msc_status msc_reference_run_part(struct msc_array *out[],
                                       const struct msc_reference_run *run);

// Runs a whole graph, for tests, constant folding and the baseline check. Lengths that are symbols
// follow from the inputs, joint by joint. `inputs` [n_inputs] are borrowed; every tensor in
// `wanted` (ids, [n]) is returned in out [n], each owned by the caller. `limits` may be NULL.
enum msc_status msc_reference_run_graph(struct msc_array *out[], const struct msc_graph *g,
                                        const struct msc_array *const inputs[],
                                        const int32_t wanted[], size_t n,
                                        const struct msc_reference_limits *limits);

#endif
