// Cost of a joint, computed from its shapes only.
#ifndef MSC_GRAPH_COST_H
#define MSC_GRAPH_COST_H

#include "graph/graph.h"

MSC_PUBLIC_BEGIN

// A multiplication of two operands, as in a matrix product.
struct msc_product {
    double macs;
    // Positions among the joint's operands; -1 for the state of a recurrent layer, which the joint
    // computes itself.
    int32_t operands[2];
};

// Lists the products of a convolution, linear layer, matrix product or recurrent layer. Returns
// their number; 0 for other joints. A length that depends on data counts as 0.
int msc_joint_products(struct msc_product out[2], const struct msc_graph *g,
                       const struct msc_joint *j);
// Like msc_joint_products, but with the lengths in `dims` [n_tensors], by tensor id.
int msc_joint_products_of(struct msc_product out[2], const struct msc_graph *g,
                          const struct msc_joint *j, const int64_t (*dims)[MSC_MAX_DIMS]);
// Multiply-accumulates of all products of the joint.
double msc_joint_macs(const struct msc_graph *g, const struct msc_joint *j);
// Like msc_joint_macs, but with the lengths in `dims` [n_tensors], by tensor id.
double msc_joint_macs_of(const struct msc_graph *g, const struct msc_joint *j,
                         const int64_t (*dims)[MSC_MAX_DIMS]);

// Weights whose names begin so are no part of the model's file: a reader that makes the graph has
// added them, as the frequencies of a rotary embedding (graph/gguf/decoder.h).
#define MSC_ADDED_PREFIX "mscgym."
// Whether the weight counts in the size of the model.
bool msc_tensor_is_stored(const struct msc_tensor *t);

MSC_PUBLIC_END

#endif
