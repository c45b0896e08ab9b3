// Reference kernels: one plain C function per operator, which defines the operator's results for
// all other kernels. Each is a straight loop in the order of the ONNX specification's formula,
// single-threaded, in the plain (row-major) layout, for all data types that the operator table
// allows. Reference kernels fold constants, are the fallback of the `cpu` backend, and are the
// ground truth in tests.
//
// Order of float32 arithmetic, with each step rounded: a sum starts at 0 and adds one product after
// another. The outermost loop is over input channels, then kernel planes, rows and columns. The
// bias is added last. A mean divides the sum. Batch normalisation is (x - mean) * (gamma / sqrt(var
// + epsilon)) + beta. Softmax is e / sum(e) with e = exp(x - max). Elementary functions are in
// graph/reference/numeric.h.
//
//     struct msc_reference_call call = {.graph = graph, .joint = joint, .n_operands = 3, ...};
//     MSC_TRY(msc_reference_find(joint->op)(&call));
#ifndef MSC_GRAPH_REFERENCE_REFERENCE_H
#define MSC_GRAPH_REFERENCE_REFERENCE_H

#include "base/cancel.h"
#include "graph/graph.h"
#include "graph/view.h"

// Limits that stop a run which would otherwise not end or use too much memory.
struct msc_reference_limits {
    const struct msc_cancel *cancel; // checked before every joint; fails with MSC_E_CANCELLED
    // A run fails if the process memory that the caller's meter counts (data/array.h) exceeds this
    // limit; 0: no limit.
    uint64_t memory_bytes;
    int64_t max_turns; // most iterations of a Loop without a count; 0: MSC_REFERENCE_MAX_TURNS
};
// Loops of real networks have at most a few thousand iterations. A Loop's count of 2^31 or more is
// not used as a limit, because exporters write it for "unlimited".
#define MSC_REFERENCE_MAX_TURNS (INT64_C(1) << 20)

// One run of one joint. Operands are in the operator's order. An absent operand has data NULL and
// dtype MSC_DTYPE_NONE. The caller allocates outputs with the inferred shapes; they do not overlap
// operands. All views have the plain layout and are not quantised.
struct msc_reference_call {
    const struct msc_graph *graph; // graph of the joint; gives the layouts of the joint's weights
    const struct msc_joint *joint;
    int n_operands;
    const struct msc_view *operands;
    int n_outputs;
    const struct msc_view *outputs;
    // For operators whose output lengths depend on data: allocates output `output` and stores it in
    // `outputs`. NULL: the outputs are already allocated.
    enum msc_status (*allocate)(void *payload, int output, int n_dims, const int64_t dims[]);
    void *payload;
    const struct msc_reference_limits *limits; // NULL: only MSC_REFERENCE_MAX_TURNS applies
};

typedef enum msc_status (*msc_reference_fn)(const struct msc_reference_call *call);

// NULL if the operator has no kernel (input and constant).
msc_reference_fn msc_reference_find(enum msc_op op);

// A run of a part of a graph.
struct msc_reference_run {
    const struct msc_graph *graph;
    // Given tensors, borrowed. Their producers do not run. Constants need not be given.
    size_t n_given;
    const int32_t *given;
    const struct msc_array *const *arrays;
    size_t n_wanted;
    const int32_t *wanted; // tensor ids
    // Optional. Operand number `operand` of the joint is `array`. Sets *out to the array that the
    // joint reads instead. The run releases *out.
    enum msc_status (*read)(void *payload, struct msc_array **out, const struct msc_joint *joint,
                            int32_t operand, const struct msc_array *array);
    // Optional. Computes output 0 of a joint from what it reads, operands [joint->n_operands]. The
    // run owns *out; if it is NULL, the reference kernel computes the joint.
    enum msc_status (*compute)(void *payload, struct msc_array **out, const struct msc_joint *joint,
                               const struct msc_array *const operands[]);
    void *payload;
    const struct msc_reference_limits *limits; // may be NULL
};
// The caller owns the arrays out[n_wanted]. Symbolic lengths follow from the given tensors.
enum msc_status msc_reference_run_part(struct msc_array *out[],
                                       const struct msc_reference_run *run);

// Runs a whole graph, for tests, constant folding and the baseline check. Symbolic lengths follow
// from the inputs, joint by joint. `inputs` [n_inputs] are borrowed. out[i] is the array of tensor
// wanted[i], owned by the caller. `limits` may be NULL.
enum msc_status msc_reference_run_graph(struct msc_array *out[], const struct msc_graph *g,
                                        const struct msc_array *const inputs[],
                                        const int32_t wanted[], size_t n,
                                        const struct msc_reference_limits *limits);

#endif
