// Unrolls a network that processes a long signal in chunks: repeats a bound graph for consecutive
// chunks. A result for one chunk (the state of a recurrent network) is an input for the next chunk.
// Weights and constants exist once. Other joints exist once for each chunk: for the first as
// "conv", for the second as "chunk_1/conv", and so on.
//
//     input of the graph       shape of the input in the unrolled graph
//     chunked                  [n_chunks, d0, d1, ...], one entry for each chunk
//     state                    [d0, d1, ...], the state before the first chunk
//     other                    [d0, d1, ...], read by all chunks
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
    const bool *is_chunked; // [n_inputs]
    // [n_inputs] tensor that the next chunk reads as this input, or MSC_NO_ID
    const int32_t *state_of;
    // Tensors whose values in all chunks are concatenated: along their first axis if it has length
    // 1, else along a new axis. A constant is taken only once.
    const int32_t *gathered; // [n_gathered] tensor ids
    size_t n_gathered;
};

struct msc_unrolled {
    struct msc_graph *graph; // outputs: the outputs of each chunk, then the gathered tensors
    int32_t *gathered;       // [n_gathered] tensor ids
    int32_t *joints;         // [n_joints] id of the joint in the original graph, or MSC_NO_ID
    int32_t *chunks;         // [n_joints] chunk of the joint; 0 for shared joints
};

// Unrolls a graph. If a gathered tensor has an unknown length, only its value in the first chunk is
// an output. MSC_E_INVALID if a state does not fit its input. The caller calls msc_unrolled_finish.
enum msc_status msc_graph_unroll(struct msc_unrolled *out, const struct msc_graph *g,
                                 const struct msc_unroll *unroll);
void msc_unrolled_finish(struct msc_unrolled *unrolled); // accepts a zeroed struct

#endif
