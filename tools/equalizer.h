// Channel equalisation: rescales the channels of activations so that one scale per tensor suits all
// channels, without changing what the network computes. It helps activations of few bits.
//
// A convolution, linear layer, layer normalisation or product with a constant for each channel,
// such as the last step of an RMS normalisation ("maker"), produces an activation y. If only
// convolutions and linear layers read y, directly or through joints f with f(a y) = a f(y) for
// a > 0 (Relu, LeakyRelu, pooling, flattening, products with other tensors and quotients by them),
// then every channel c can be replaced by
//
//     y'[c] = (y[c] - m[c]) / a[c],  W'[:, c] = W[:, c] a[c],  b' = b + sum over c of W[:, c] m[c]
//
// The division goes into the maker's parameters. The shift m is 0 unless the maker has a bias and
// is read directly, and only by linear layers with a bias: a convolution's padding would not be
// shifted, and Relu does not commute with a shift. (Equalisation across layers: M. Nagel et al.,
// "Data-Free Quantization Through Weight Equalization and Bias Correction", arXiv 1906.04721. After
// layer normalisations: Z. Li et al., "RepQ-ViT", arXiv 2212.08254.)
//
// Other activations that convolutions and linear layers read, such as those after Gelu or a
// residual connection, have no maker. If the bits allow multiplications, these layers then read the
// product of the activation and 1 / a[c], which a new joint computes (msc_strategy_multiply); m is
// 0.
//
// Let r[c] be half the width of the range of channel c, without the outermost 0.1 % of its values
// other than zero at each end. With m = 0 it is the greatest magnitude instead. Then
//
//     a[c] = (r[c] / g)^strength,  g: the geometric mean of r
//
// With strength 1 all channels get the same range. Channels with almost no values count as if they
// had 1/1000 of the widest range. Equal ranges of the activation make the ranges of W' less equal,
// so the strength of each activation, from 0 to 1, is the one with the least expected error of the
// readers' outputs. A step t adds t^2 / 12 to the square of each rounded element, where t is
// 2 r / (2^bits - 1), and half of this for values of one sign.
//
// Queries and keys: a product of the outputs q and k of two linear layers, as in attention, stays
// the same if a head's q and k are multiplied by matrices A and B with A^T B = I, which go into the
// rows of both layers' parameters. With one scale for all elements, a step of q is in proportion to
// the root of the greatest mean square of an element of A q, and its error in the products to the
// sum of the mean squares of B k; likewise for k. If all elements of A q have equal mean squares,
// and likewise those of B k, then the sum of both errors is least if B^T B = M, the geometric mean
// of K^-1 and Q (M K M = Q), where Q and K are the second moments of q and k over the samples;
// tools/equalizer_matrix.c adds a rotation that makes the mean squares equal. Products qualify
// whose factors come from linear layers through reshapes into heads, transposes and products with
// one number. A pair keeps its parameters unless the expected error, greatest(A q) sum(B k) +
// greatest(B k) sum(A q) of mean squares, falls.
//
// The last eighth of the samples of each batch is held back (rows of samples if there are several;
// none of a single one): an activation keeps its channels unless the factors (or matrices) that the
// other samples give lower the expected error on these. The factors then come from all samples.
//
//     const struct msc_equalize_bits bits = {4, 4};
//     MSC_TRY(msc_equalize(&strategy, &n_equalized, graph, evaluator, &bits));
//     if (n_equalized > 0) { ... msc_strategy_prune(&same, strategy, graph) ... }
#ifndef MSC_TOOLS_EQUALIZER_H
#define MSC_TOOLS_EQUALIZER_H

#include "kernels/engine/evaluator.h"

struct msc_strategy;

// The bits that the rescaled tensors shall suit, 2 to 8.
struct msc_equalize_bits {
    int32_t weights, activations;
    bool multiplies; // may multiplications be added to the graph?
    bool rotates;    // are the layers multiplied whose outputs are multiplied with each other?
    bool of_linear;  // only activations that no convolution makes or reads
    // An activation is rescaled only if this share of the expected error is saved, 0 to 1.
    double least_gain;
};

// Makes a strategy that only replaces elements of weights (msc_strategy_replace) and multiplies.
// `ev` evaluates `g`; its samples give the ranges. *n_equalized is the number of activations whose
// channels are rescaled; if it is 0, *out is NULL. Else *out is owned by the caller. The
// result depends neither on threads nor on memory. MSC_E_NOMEM, MSC_E_CANCELLED.
enum msc_status msc_equalize(struct msc_strategy **out, size_t *n_equalized,
                             const struct msc_graph *g, struct msc_evaluator *ev,
                             const struct msc_equalize_bits *bits);

#endif
