// Constants: what a tensor holds whatever the network is fed, and joints over constants computed at
// once. Import and binding use this to fold shape arithmetic and weights that models compute
// (transposed, reshaped, cast, scaled).
#ifndef MSC_GRAPH_CONSTANT_INTERNAL_H
#define MSC_GRAPH_CONSTANT_INTERNAL_H

#include "graph/graph.h"

// The elements of a weight, of a `constant` joint's output, or of a small integer tensor whose
// contents inference knows as numbers. *out has a reference owned by the caller, or is NULL when
// the tensor is no constant.
enum msc_status msc_constant_of(struct msc_array **out, const struct msc_graph *g, int32_t tensor);

// Computes a joint from constant operands. *done is false, and nothing is made, when an operand is
// no constant, a shape is symbolic, or the operator is not one that is folded. Otherwise out[i]
// [n_outputs] are owned by the caller.
enum msc_status msc_constant_evaluate(struct msc_array *out[], bool *done,
                                      const struct msc_graph *g, int32_t joint);

// Is it one of the operators that are computed at once, given constant operands?
bool msc_constant_is_folded(enum msc_op op);

// What graph/constant*.c share: one function for each operator that is folded.
#define MSC_CONSTANT_MAX_OPERANDS 64

struct msc_constant_call {
    const struct msc_graph *graph;
    const struct msc_joint *joint;
    int n_operands;
    const struct msc_array *operands[MSC_CONSTANT_MAX_OPERANDS];
    struct msc_array **outputs; // created with the inferred types and shapes, to be filled
};

// False: this form is not folded.
typedef bool (*msc_constant_function)(const struct msc_constant_call *call);

bool msc_constant__copy(const struct msc_constant_call *call); // same elements in the same order
bool msc_constant__permute(const struct msc_constant_call *call);
bool msc_constant__concat(const struct msc_constant_call *call);
bool msc_constant__split(const struct msc_constant_call *call);
bool msc_constant__slice(const struct msc_constant_call *call);
bool msc_constant__take(const struct msc_constant_call *call);
bool msc_constant__broadcast_to(const struct msc_constant_call *call);
bool msc_constant__tile(const struct msc_constant_call *call);
bool msc_constant__unary(const struct msc_constant_call *call);
bool msc_constant__binary(const struct msc_constant_call *call);
bool msc_constant__reduce(const struct msc_constant_call *call);
bool msc_constant__quantize(const struct msc_constant_call *call);
bool msc_constant__dequantize(const struct msc_constant_call *call);
bool msc_constant__where(const struct msc_constant_call *call);

// Copies an array of `dims` element by element; the source steps by `strides` (in elements, may be
// 0 or negative) from `source`.
struct msc_constant_copy {
    int n_dims;
    int64_t dims[MSC_MAX_DIMS];
    int64_t strides[MSC_MAX_DIMS];
    int64_t to_strides[MSC_MAX_DIMS];
};
void msc_constant__copy_strided(char *to, const char *from, size_t element_bytes,
                                const struct msc_constant_copy *copy);
// Strides of a contiguous array.
void msc_constant__strides(int64_t strides[], int n_dims, const int64_t dims[]);

#endif
