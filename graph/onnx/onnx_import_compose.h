// Adds the joints of a node that is a formula of other operators.
//
//     struct msc_compose c = {.node = n};
//     struct msc_value *square = MSC_COMPOSE(&c, MSC_OP_MULTIPLY, x, x);
//     struct msc_value *mean = msc_compose_reduce(&c, MSC_OP_MEAN, square, axes, n_axes);
//     return MSC_COMPOSE_LAST(&c, MSC_OP_MULTIPLY, x, mean);
//
// After a failure all functions return NULL and add nothing, and MSC_COMPOSE_LAST returns the
// failure. Check `status` before you read a value's fields.
#ifndef MSC_GRAPH_ONNX_ONNX_IMPORT_COMPOSE_H
#define MSC_GRAPH_ONNX_ONNX_IMPORT_COMPOSE_H

#include "graph/onnx/onnx_import_internal.h"

struct msc_compose {
    struct msc_onnx_node *node;
    enum msc_status status; // the first failure
};

// Adds a joint with the attributes set by msc_onnx__set..., and returns its only output.
struct msc_value *msc_compose_joint(struct msc_compose *c, enum msc_op op,
                                    struct msc_value *const operands[], int n_operands);
#define MSC_COMPOSE(c, op, ...)                                                                    \
    msc_compose_joint(                                                                             \
        c, op, (struct msc_value *[]){__VA_ARGS__},                                                \
        (int)(sizeof((struct msc_value *[]){__VA_ARGS__}) / sizeof(struct msc_value *)))

// Adds the joint whose output becomes the first output of the node.
enum msc_status msc_compose_last(struct msc_compose *c, enum msc_op op,
                                 struct msc_value *const operands[], int n_operands);
#define MSC_COMPOSE_LAST(c, op, ...)                                                               \
    msc_compose_last(                                                                              \
        c, op, (struct msc_value *[]){__VA_ARGS__},                                                \
        (int)(sizeof((struct msc_value *[]){__VA_ARGS__}) / sizeof(struct msc_value *)))
// Calls another operator's translator, with these inputs in place of the node's inputs, but with
// the node's own attributes. `op` is the operator of that translator's rule. The last joint that it
// adds gets the node's name.
struct msc_value *msc_compose_translate(struct msc_compose *c, msc_onnx_translator translate,
                                        enum msc_op op, struct msc_value *const inputs[], int n);
// Adds (x - mean) / sqrt(variance + epsilon) * gamma + beta over the last axis as the first output
// of the node; beta may be NULL.
enum msc_status msc_compose_last_norm(struct msc_compose *c, struct msc_value *x,
                                      struct msc_value *gamma, struct msc_value *beta,
                                      float epsilon);
// Defines `v` as the first output of the node.
enum msc_status msc_compose_end(struct msc_compose *c, struct msc_value *v);
// Defines another output of the node; call before MSC_COMPOSE_LAST. If `v` is an input of the
// node, the output is a copy of it.
void msc_compose_extra(struct msc_compose *c, int output, struct msc_value *v);

// Constants: a scalar, and a list of int64.
struct msc_value *msc_compose_scalar(struct msc_compose *c, enum msc_dtype dtype, double value);
struct msc_value *msc_compose_ints(struct msc_compose *c, const int64_t values[], int n);

// Type and dims of a value; zeros after a failure.
struct msc_onnx_shape msc_compose_shape(const struct msc_compose *c, const struct msc_value *v);

struct msc_value *msc_compose_cast(struct msc_compose *c, struct msc_value *x,
                                   enum msc_dtype dtype); // x itself if it has this type
// 0 copies the dim of `x` at the same index, -1 is inferred.
struct msc_value *msc_compose_reshape(struct msc_compose *c, struct msc_value *x,
                                      const int64_t dims[], int n);
struct msc_value *msc_compose_permute(struct msc_compose *c, struct msc_value *x,
                                      const int64_t axes[], int n);
// Moves the axis at index `from` to index `to`; the other axes keep their order.
struct msc_value *msc_compose_move(struct msc_compose *c, struct msc_value *x, int from, int to);
// Inserts an axis of length 1 at index `axis` of the result.
struct msc_value *msc_compose_unsqueeze(struct msc_compose *c, struct msc_value *x, int64_t axis);
// Every `step`-th element along the axis, from `begin` to before `end`.
struct msc_value *msc_compose_slice(struct msc_compose *c, struct msc_value *x, int64_t axis,
                                    int64_t begin, int64_t end, int64_t step);
struct msc_value *msc_compose_concat(struct msc_compose *c, struct msc_value *a,
                                     struct msc_value *b, int64_t axis);
struct msc_value *msc_compose_take(struct msc_compose *c, struct msc_value *x,
                                   struct msc_value *indices, int64_t axis);
// A reduction over one axis, which is kept with length 1.
struct msc_value *msc_compose_reduce(struct msc_compose *c, enum msc_op op, struct msc_value *x,
                                     int64_t axis);
// The length of an axis: a scalar of int64.
struct msc_value *msc_compose_length(struct msc_compose *c, struct msc_value *x, int64_t axis);
// x / sqrt(mean(x^2) + epsilon) over the axes from `first` on, computed in this type.
struct msc_value *msc_compose_rms_norm(struct msc_compose *c, struct msc_value *x, int64_t first,
                                       float epsilon, enum msc_dtype dtype);
// The gate is sigmoid(alpha * x); Swish is x * sigmoid(alpha * x).
struct msc_value *msc_compose_gate(struct msc_compose *c, struct msc_value *x, float alpha);
struct msc_value *msc_compose_swish(struct msc_compose *c, struct msc_value *x, float alpha);

#endif
