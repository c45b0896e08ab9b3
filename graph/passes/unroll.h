// A bound graph repeated for chunks that follow one another: what one chunk hands on (the state of a
// recurrent network) feeds an input of the next. Weights and constants are there once, other joints
// once for each chunk, in the second as "chunk_1/conv", and so on.
//
//     inputs of the graph    in the unrolled graph
//     chunked                [n_chunks, d0, d1, ...], a chunk each
//     fed by a state         [d0, d1, ...] for the first chunk
//     others                 [d0, d1, ...], read by all
//
//     struct msc_unroll u = {.n_chunks = 20, .is_chunked = chunked, .state_of = states, ...};
//     MSC_TRY(msc_graph_unroll(&unrolled, g, &u));
//     ... unrolled.graph, unrolled.gathered ...
//     msc_unrolled_finish(&unrolled);
#ifndef MSC_GRAPH_PASSES_UNROLL_H
#define MSC_GRAPH_PASSES_UNROLL_H

#include "graph/graph.h"

struct msc_unroll {
    int64_t n_chunks;
    const bool *is_chunked;  // [n_inputs]
    const int32_t *state_of; // [n_inputs] tensor that feeds the input in the next chunk, MSC_NO_ID
    // Tensors of all chunks one after the other, along their first axis where that has length 1,
    // else along a new one. Constants are there as they are.
    const int32_t *gathered; // [n_gathered] tensor ids
    size_t n_gathered;
};

struct msc_unrolled {
    struct msc_graph *graph; // its outputs: what is gathered, and the graph's own of every chunk
    int32_t *gathered;       // [n_gathered] tensor ids
    int32_t *joints;         // [n_joints] of the graph that was unrolled, MSC_NO_ID: of none
    int32_t *chunks;         // [n_joints] 0 for what all share
};

// What is gathered is the first chunk's alone where its length is open. The caller finishes *out.
// MSC_E_INVALID: a state does not fit its input.
enum msc_status msc_graph_unroll(struct msc_unrolled *out, const struct msc_graph *g,
                                 const struct msc_unroll *unroll);
void msc_unrolled_finish(struct msc_unrolled *unrolled); // accepts zeroed ones

#endif
