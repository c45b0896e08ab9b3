// Internal to tools/: products of the outputs of two linear layers, such as the queries and keys of
// attention. tools/equalizer.h has the method.
#ifndef MSC_TOOLS_EQUALIZER_PAIRS_H
#define MSC_TOOLS_EQUALIZER_PAIRS_H

#include "base/alloc.h"
#include "graph/site.h"
#include "graph/view.h"

// One factor of the product.
struct msc_channel_side {
    int32_t weight, bias; // of the linear layer, tensor ids; MSC_NO_ID: no bias
    bool is_input_first;  // the weight is [inputs, outputs]
    int64_t n_inputs, n_outputs;
    int64_t first, n_own; // the outputs that are the factor; n_own is 0 if all are
    int32_t slot;         // of the product's operand
    int axis, head_axis;  // of the operand; head_axis is -1 if there is one head
    // Measured: positions in all samples; the greatest magnitude; and the sums of the products of
    // elements [heads, size, size] over positions, in units of (greatest / 32767)^2. Integers, so
    // that the order of batches does not change them. `held_sums` are of the samples held back.
    uint64_t n_seen;
    float greatest;
    int64_t *sums, *held_sums;
    uint64_t n_summed, n_held;
};

// Output first + head * size + i of the layers is element i of the head.
struct msc_channel_pair {
    int64_t n_heads, size;
    struct msc_channel_side sides[2];
    double *matrices[2]; // [heads, size, size]: what the outputs of each side are multiplied by
};

// Finds the pairs of a graph, in the order of their products. They are in the arena.
enum msc_status msc_equalizer__find_pairs(struct msc_channel_pair **pairs, size_t *n,
                                          const struct msc_graph *g, const struct msc_sites *sites,
                                          struct msc_arena *arena);

// Forgets what the present pass has measured.
void msc_equalizer__begin_pairs(struct msc_channel_pair pairs[], size_t n, bool is_counting);

// Measures an operand: the first pass its magnitude and positions, the second (is_counting) its
// sums. Of the samples along axis 0, the last `one_of`-th is held back.
void msc_equalizer__see_pair(struct msc_channel_pair *pair, int side, const struct msc_view *value,
                             bool is_counting, int one_of);

// Sets the matrices of a pair. *pays is false if they do not lower the expected error. MSC_E_NOMEM.
enum msc_status msc_equalizer__balance_pair(bool *pays, struct msc_channel_pair *pair,
                                            struct msc_arena *arena);

// Multiplies the outputs of one side's layer by its matrices; `bias` may be NULL.
void msc_equalizer__multiply_side(const struct msc_channel_pair *pair, int side, float weight[],
                                  float bias[]);

#endif
